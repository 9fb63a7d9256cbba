//! The places of the parts of a table, for faults that are found when the table has been read.

use super::fields::Found;
use crate::Invalid;
use crate::format::Diagnostic;
use core::ops::Range;

/// Returns the diagnostic of a broken rule of [`System::new`](crate::System::new).
pub(super) fn refusal(invalid: Invalid, span: Option<Range<usize>>) -> Diagnostic {
    Diagnostic { message: invalid.message, span, label: String::new(), help: Some(invalid.help) }
}

/// The places of the parts of one table in the file.
#[derive(Default)]
pub(super) struct Places {
    /// The header, or the whole table if it is written inline.
    head: Range<usize>,
    /// The places of the values, by key.
    pub(super) values: Vec<(&'static str, Range<usize>)>,
    /// The places of the steps of the body.
    pub(super) steps: Vec<Range<usize>>,
}

impl Places {
    pub(super) fn at(head: Range<usize>) -> Self {
        Self { head, ..Self::default() }
    }

    /// Moves the places of a part of a text to those in the whole text.
    pub(super) fn move_by(&mut self, distance: usize) {
        let values = self.values.iter_mut().map(|(_, span)| span);
        for span in values.chain(&mut self.steps).chain([&mut self.head]) {
            *span = span.start + distance..span.end + distance;
        }
    }

    pub(super) fn note(&mut self, key: &'static str, found: Option<&Found>) {
        self.values.extend(found.map(|found| (key, found.span())));
    }

    /// Returns the place of the value of `key`. Without one it is
    /// the place of the name, and without a name that of the head.
    pub(super) fn of(&self, key: Option<&str>) -> Range<usize> {
        let value = |key| self.values.iter().find(|(known, _)| *known == key).map(|(_, span)| span.clone());
        key.and_then(value).or_else(|| value("name")).unwrap_or_else(|| self.head.clone())
    }

    pub(super) fn of_step(&self, step: usize) -> Range<usize> {
        self.steps.get(step).cloned().unwrap_or_else(|| self.of(Some("body")))
    }
}
