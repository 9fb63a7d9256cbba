//! From text to TOML tables.

use super::{Diagnostic, Faults, shown};
use toml::Spanned;
use toml::de::DeTable;

/// The tables of a text that is TOML; otherwise the first fault of each line.
pub(super) fn parse<'i>(source: &'i str, faults: &mut Faults) -> Option<Spanned<DeTable<'i>>> {
    let (document, errors) = DeTable::parse_recoverable(source);
    if errors.is_empty() {
        return Some(document);
    }
    let mut errors: Vec<_> = errors.iter().map(|error| (error.span().unwrap_or(0..0), error.message())).collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut last_end = None;
    for (span, message) in errors {
        if faults.is_full() {
            break;
        }
        // A slip makes the parser stumble again further along its line: report it once.
        let stumbled = last_end.and_then(|end| source.get(end..span.start));
        if stumbled.is_some_and(|between| !between.contains('\n')) {
            continue;
        }
        last_end = Some(span.end);
        let text = source.get(span.clone()).unwrap_or_default();
        let fault = match message {
            "duplicate key" => {
                Diagnostic::new(format!("the key {} is given twice", shown(text))).help("keep one of them")
            }
            _ => Diagnostic::new(format!("this is not TOML: {message}")),
        };
        faults.push(fault.at(span));
    }
    None
}
