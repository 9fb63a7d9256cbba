//! The import in progress: its faults and notes, and readers of single values that report them.

use crate::format::diagnostic::{Diagnostic, Diagnostics, Faults, check_length, shown};
use crate::format::rt_app::Imported;
use crate::{Duration, Invalid, Subject, System};
use core::ops::Range;
use roxmltree::{Document, Node};

/// The import in progress.
pub(super) struct Import {
    pub(super) faults: Faults,
    pub(super) notes: Faults,
    /// The unit of all times in the file.
    pub(super) unit: Duration,
}

/// How a time that is not a whole number of nanoseconds is rounded: costs up, and periods and deadlines down.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// Reads a document, and the system from its root.
pub(super) fn import(
    source: &str,
    unit: Duration,
    read: impl FnOnce(&mut Import, Node) -> Option<System>,
) -> Result<Imported, Diagnostics> {
    check_length(source.len())?;
    let mut import = Import { faults: Faults::default(), notes: Faults::default(), unit };
    if let Some(fault) = beyond_limits(source) {
        return Err(fault.into());
    }
    let system = match Document::parse(source) {
        Ok(document) => read(&mut import, document.root_element()),
        Err(error) => {
            import.faults.push(syntax_fault(source, &error));
            None
        }
    };
    match system {
        Some(system) if import.faults.is_empty() => Ok(Imported { system, notes: import.notes.into_sorted(source) }),
        _ => Err(import.faults.into_refusal(source, "this is not a task set")),
    }
}

/// Returns the fault of a text on which the parser would take far more time or memory than its length: it compares all
/// attributes of an element with each other, copies namespaces to all elements inside, and reserves some 70 bytes for
/// each `<` and each `=` before it reads anything.
fn beyond_limits(source: &str) -> Option<Diagnostic> {
    const QUOTES_MAX: usize = 256;
    const SIGNS_FREE: usize = 1 << 16;
    const BYTES_PER_SIGN: usize = 4;
    let signs = source.bytes().filter(|byte| matches!(byte, b'<' | b'=')).count();
    if signs > SIGNS_FREE.max(source.len() / BYTES_PER_SIGN) {
        let fault = Diagnostic::new(format!("of {} bytes, {signs} are `<` and `=`: this is no task set", source.len()));
        return Some(fault.help(format!("at most one in {BYTES_PER_SIGN} is supported")));
    }
    if let Some(at) = source.find("xmlns") {
        let fault = Diagnostic::new("namespaces are not part of these formats").at(at..at + 5);
        return Some(fault.help("remove the `xmlns` attributes"));
    }
    let mut start = 0;
    for tag in source.split_inclusive('<') {
        let end = tag.find('>').unwrap_or(tag.len());
        if tag.as_bytes()[..end].iter().filter(|&&byte| matches!(byte, b'"' | b'\'')).count() > QUOTES_MAX {
            let fault = Diagnostic::new("an element has too many attributes").at(start..start);
            return Some(fault.help(format!("at most {} are supported", QUOTES_MAX / 2)));
        }
        start += tag.len();
    }
    None
}

/// Returns the fault of a text that is not XML. The parser's message ends with the place, which the diagnostic has.
fn syntax_fault(source: &str, error: &roxmltree::Error) -> Diagnostic {
    let place = error.pos();
    let line_start: usize = source.split_inclusive('\n').take(place.row as usize - 1).map(str::len).sum();
    let line = source.get(line_start..).unwrap_or_default();
    let at = line_start + line.chars().take(place.col as usize - 1).map(char::len_utf8).sum::<usize>();
    let message = error.to_string();
    let message = message.strip_suffix(&format!(" at {place}")).unwrap_or(&message).to_owned();
    Diagnostic::new(format!("this is not XML: {message}")).at(at..at)
}

/// Returns the place of an element's name.
pub(super) fn place(element: Node) -> Range<usize> {
    let start = element.range().start + 1;
    start..start + element.tag_name().name().len()
}

/// Returns the elements below an element, without text and comments.
pub(super) fn elements<'a, 'i>(element: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    element.children().filter(Node::is_element)
}

impl Import {
    pub(super) fn fault(&mut self, at: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.faults.push(Diagnostic::new(message).at(at).help(help));
    }

    pub(super) fn note(&mut self, at: Range<usize>, message: impl Into<String>) {
        self.notes.push(Diagnostic::new(message).at(at));
    }

    /// Reads a time: a decimal number of units.
    pub(super) fn time(&mut self, what: &str, text: &str, at: Range<usize>, rounding: Rounding) -> Option<Duration> {
        let text = text.trim();
        let time = decimal(text, self.unit, rounding);
        if time.is_none() {
            let message = format!("{what}, {}, is not a duration", shown(text));
            self.fault(at, message, "write a decimal number of at most 11 days, without a unit");
        }
        time
    }

    /// Reads a whole number from `least` to `most`.
    pub(super) fn whole(&mut self, what: &str, text: &str, at: Range<usize>, least: u64, most: u64) -> Option<u64> {
        let text = text.trim();
        // Python writes whole numbers of type float with `.0`.
        let number = text.strip_suffix(".0").unwrap_or(text).parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("{what}, {}, is not a whole number from {least} to {most}", shown(text));
            self.fault(at, message, "correct it in the file");
        }
        number
    }

    /// Reports the rule that the imported system breaks. `spans` are the places of its tasks and of its resources.
    pub(super) fn invalid(&mut self, invalid: Invalid, spans: (&[Range<usize>], &[Range<usize>])) {
        let at = match invalid.subject {
            Subject::Task(task) | Subject::Step(task, _) => spans.0[task.index()].clone(),
            Subject::Resource(resource) => spans.1[resource.index()].clone(),
            Subject::System => 0..0,
        };
        self.fault(at, invalid.message, invalid.help);
    }
}

/// Returns a decimal number of units as a duration, if it does not exceed the longest one.
fn decimal(text: &str, unit: Duration, rounding: Rounding) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // The units have at most ten digits, so that the product has at most 22 and later digits only decide rounding.
    let (head, tail) = fraction.split_at(fraction.len().min(12));
    let scale = 10_u128.pow(head.len() as u32);
    let part = if head.is_empty() { 0 } else { head.parse::<u128>().ok()? } * u128::from(unit.as_ns());
    let rest = !part.is_multiple_of(scale) || tail.bytes().any(|digit| digit != b'0');
    let part = (part / scale) as u64 + u64::from(rest && matches!(rounding, Rounding::Up));
    let time = unit.checked_mul(whole)?.checked_add(Duration::from_ns(part))?;
    (time <= crate::DURATION_MAX).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_exact_and_rounded_to_the_safe_side() {
        let us = Duration::from_us(1);
        let read = |text| decimal(text, us, Rounding::Up).map(Duration::as_ns);
        assert_eq!(read("12"), Some(12_000));
        assert_eq!(read("12.0"), Some(12_000));
        assert_eq!(read(".25"), Some(250));
        assert_eq!(read("0.0001"), Some(1), "a cost is rounded up");
        assert_eq!(decimal("0.0019", us, Rounding::Down), Some(Duration::from_ns(1)));
        assert_eq!(read("3.10000000000000008882"), Some(3_101), "digits beyond the twelfth count");
        for bad in ["", ".", "-1", "1e3", "1 ms", "inf", "99999999999999999999", "1000000000000.1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
