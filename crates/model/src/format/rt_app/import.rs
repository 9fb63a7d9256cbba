//! The import in progress: its faults and notes, and readers of single values that report them.

use super::loose_json::{Member, Node, Value};
use crate::Duration;
use crate::format::diagnostic::{Diagnostic, Faults, nearest, shown};
use core::ops::Range;

/// The import in progress.
#[derive(Default)]
pub(super) struct Import {
    pub(super) faults: Faults,
    pub(super) notes: Faults,
}

impl Import {
    pub(super) fn fault(&mut self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.faults.push(Diagnostic::new(message).at(span.clone()).help(help));
    }

    pub(super) fn note(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.notes.push(Diagnostic::new(message).at(span.clone()));
    }

    pub(super) fn object<'a, 's>(&mut self, node: &'a Node<'s>, what: &str) -> Option<&'a [Member<'s>]> {
        match &node.value {
            Value::Object(members) => Some(members),
            _ => {
                self.fault(&node.span, format!("{what} is not an object"), "write { \"key\" : value }");
                None
            }
        }
    }

    pub(super) fn given_twice(&mut self, member: &Member) {
        self.fault(&member.key_span, format!("{} is given twice", shown(&member.key)), "keep one of them");
    }

    pub(super) fn mistyped(&mut self, member: &Member, wanted: &str) {
        let fault = Diagnostic::new(format!("{} is not {wanted}", shown(&member.key)));
        self.faults.push(fault.at(member.node.span.clone()));
    }

    pub(super) fn unknown_key(&mut self, member: &Member, owner: &str, valid: &[&str]) {
        let help = match nearest(&member.key, valid.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "it cannot be imported: remove it".into(),
        };
        self.fault(&member.key_span, format!("unknown key {} in {owner}", shown(&member.key)), help);
    }

    /// Reads a whole number from 0 to `most`.
    pub(super) fn whole(&mut self, member: &Member, most: u64) -> Option<u64> {
        let number = match member.node.value {
            Value::Number(number) => number.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| *number <= most);
        if number.is_none() {
            self.mistyped(member, &format!("a whole number from 0 to {most}"));
        }
        number
    }

    /// Reads a time, with its place.
    pub(super) fn time_at(&mut self, member: &Member) -> Option<(Duration, Range<usize>)> {
        self.microseconds(member).map(|time| (time, member.node.span.clone()))
    }

    pub(super) fn microseconds(&mut self, member: &Member) -> Option<Duration> {
        self.whole(member, crate::DURATION_MAX.as_ns() / 1_000).map(Duration::from_us)
    }
}
