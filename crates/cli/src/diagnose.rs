//! Faults of a file, shown at their place: file name, line, column, a caret, what would be right.

use crate::console::tame;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use lockwright_model::format::Diagnostic;
use std::ops::Range;

/// How much of one line is shown beside its fault; longer lines are cut around it.
const WIDTH: usize = 140;
/// Bytes of a file that are handed to the renderer on either side of a fault; the lines in between decide.
const CONTEXT_BYTES_MAX: usize = 4096;

/// What a diagnostic is to the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is read, but not all of it means something.
    Note,
}

/// Renders one diagnostic of the file `name`, whose text is `source`.
#[must_use]
pub fn render(diagnostic: &Diagnostic, severity: Severity, name: &str, source: &str, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Note => Level::NOTE,
    };
    let message = tame(&diagnostic.message);
    let title = level.primary_title(message.as_str());
    let help = diagnostic.help.as_deref().map(tame);
    let label = tame(&diagnostic.label);
    let Some(span) = diagnostic.span.clone() else {
        // No place in the file: the whole file is meant.
        let mut group = Group::with_title(title).element(annotate_snippets::Origin::path(name));
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        return finish(renderer.render(&[group]));
    };
    let excerpt = Excerpt::around(span, source);
    let annotation = AnnotationKind::Primary.span(excerpt.span.clone());
    let annotation = if label.is_empty() { annotation } else { annotation.label(label.as_str()) };
    let snippet = Snippet::source(excerpt.text).line_start(excerpt.line_start).path(name).annotation(annotation);
    let mut group = title.element(snippet);
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    finish(renderer.render(&[group]))
}

fn finish(mut text: String) -> String {
    text.push('\n');
    text
}

/// The lines of a fault, and no more: a file may be many megabytes, and one line too.
struct Excerpt<'a> {
    text: &'a str,
    span: Range<usize>,
    line_start: usize,
}

impl<'a> Excerpt<'a> {
    fn around(span: Range<usize>, source: &'a str) -> Self {
        let start = floor(source, span.start);
        let end = floor(source, span.end).clamp(start, floor(source, start + CONTEXT_BYTES_MAX));
        let line_begin = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = source[end..].find('\n').map_or(source.len(), |newline| end + newline);
        let line_start = source[..line_begin].bytes().filter(|&byte| byte == b'\n').count() + 1;
        // A line that is absurdly long is cut; its column is then that of the cut.
        let begin = if start - line_begin > CONTEXT_BYTES_MAX { start } else { line_begin };
        let line_end = floor(source, line_end.min(end + CONTEXT_BYTES_MAX));
        Self { text: &source[begin..line_end], span: start - begin..end - begin, line_start }
    }
}

/// The character boundary at or before `index`.
fn floor(source: &str, index: usize) -> usize {
    let mut index = index.min(source.len());
    // BOUND: a character has at most four bytes.
    while !source.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(span: Option<Range<usize>>) -> Diagnostic {
        Diagnostic {
            message: "task `camera` requests `buss`".into(),
            span,
            label: "no such resource".into(),
            help: Some("did you mean `bus`?".into()),
        }
    }

    #[test]
    fn a_fault_is_shown_with_line_column_caret_and_help() {
        let source = "a = 1\nb = \"buss\"\nc = 2\n";
        let at = source.find("\"buss\"").expect("is there");
        let text = render(&diagnostic(Some(at..at + 6)), Severity::Error, "sys.toml", source, false);
        for part in [
            "error: task `camera` requests `buss`",
            "sys.toml:2:5",
            "^^^^^^ no such resource",
            "help: did you mean `bus`?",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains('\x1b') && !text.contains("c = 2"), "{text}");
        assert!(render(&diagnostic(Some(at..at + 6)), Severity::Error, "sys.toml", source, true).contains('\x1b'));
    }

    #[test]
    fn a_fault_without_place_names_the_file() {
        let text = render(&diagnostic(None), Severity::Note, "sys.toml", "", false);
        for part in ["note: task", "--> sys.toml", "help: did you mean"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    /// A small generator is enough here: the point is that no span in no text breaks the renderer.
    #[test]
    fn no_span_in_no_text_panics() {
        let alphabet = ["a", "\n", "\r\n", "\t", "µ", "…", "\u{200d}", "漢", "\0", "\x1b[31m", "   ", "=", "\u{feff}"];
        let mut state = 1_u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..3000 {
            let length = next(60);
            let source: String = (0..length).map(|_| alphabet[next(alphabet.len())]).collect();
            let start = next(source.len() + 3);
            let end = next(source.len() + 3);
            for span in [start..end, start..start, 0..source.len()] {
                let _ = render(&diagnostic(Some(span)), Severity::Error, "f", &source, false);
            }
        }
    }

    #[test]
    fn a_huge_line_is_cut() {
        let source = "x".repeat(1 << 22);
        let text = render(&diagnostic(Some(2_000_000..2_000_003)), Severity::Error, "f", &source, false);
        assert!(text.len() < 10_000, "{}", text.len());
    }
}
