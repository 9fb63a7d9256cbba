//! Faults in a file, with the line, a caret and a suggestion.

use crate::layout::Layout;
use crate::tame::line;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use lockwright_model::format::Diagnostic;
use std::ops::Range;

/// Longest part of a line that is shown in a pipe; longer lines are cut around the fault.
const WIDTH: usize = 140;
/// Room for what the renderer puts before a message or a help: its kind, and the width of the greatest line number.
const MARGIN: usize = 20;
/// Greatest number of bytes on either side of a fault that the renderer gets.
const CONTEXT_BYTES_MAX: usize = 4096;

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is read, and a part of it is ignored.
    Note,
}

/// How diagnostics are rendered.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether they have colours.
    pub color: bool,
    /// The layout of a terminal. In a pipe each message is one line.
    pub layout: Option<Layout>,
}

impl Look {
    fn wrapped(self, text: &str) -> String {
        let text = line(text);
        match self.layout {
            Some(layout) => layout.narrower(MARGIN).prose(&text).trim_end().to_owned(),
            None => text,
        }
    }
}

/// Renders one diagnostic of the file `name`, whose text is `source`.
#[must_use]
pub fn render(diagnostic: &Diagnostic, severity: Severity, name: &str, source: &str, look: Look) -> String {
    let width = look.layout.map_or(WIDTH, |layout| layout.width().min(WIDTH));
    let renderer = if look.color { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Note => Level::NOTE,
    };
    let message = look.wrapped(&diagnostic.message);
    let title = level.primary_title(message.as_str());
    let help = diagnostic.help.as_deref().map(|help| look.wrapped(help));
    let label = line(&diagnostic.label);
    let Some(span) = diagnostic.span.clone() else {
        // The fault concerns the whole file.
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

/// The lines of a fault only: a file, and even a line, may have many megabytes.
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
        // A very long line is cut, and its column is then that of the cut.
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
    use lockwright_model::format::parse_system;

    const PLAIN: Look = Look { color: false, layout: None };

    fn diagnostic(span: Option<Range<usize>>) -> Diagnostic {
        let fault =
            Diagnostic::new("task `camera` requests `buss`").label("no such resource").help("did you mean `bus`?");
        match span {
            Some(span) => fault.at(span),
            None => fault,
        }
    }

    #[test]
    fn faults_have_line_column_caret_and_help() {
        let source = "a = 1\nb = \"buss\"\nc = 2\n";
        let at = source.find("\"buss\"").expect("is there");
        let text = render(&diagnostic(Some(at..at + 6)), Severity::Error, "sys.toml", source, PLAIN);
        for part in [
            "error: task `camera` requests `buss`",
            "sys.toml:2:5",
            "^^^^^^ no such resource",
            "help: did you mean `bus`?",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains('\x1b') && !text.contains("c = 2"), "{text}");
        assert!(
            render(&diagnostic(Some(at..at + 6)), Severity::Error, "sys.toml", source, Look { color: true, ..PLAIN })
                .contains('\x1b')
        );
    }

    #[test]
    fn faults_without_place_name_the_file() {
        let text = render(&diagnostic(None), Severity::Note, "sys.toml", "", PLAIN);
        for part in ["note: task", "--> sys.toml", "help: did you mean"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn no_span_panics() {
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
                let _ = render(&diagnostic(Some(span)), Severity::Error, "f", &source, PLAIN);
            }
        }
    }

    #[test]
    fn huge_lines_are_cut() {
        let source = "x".repeat(1 << 22);
        let text = render(&diagnostic(Some(2_000_000..2_000_003)), Severity::Error, "f", &source, PLAIN);
        assert!(text.len() < 10_000, "{}", text.len());
    }

    #[test]
    fn faults_fit_the_terminal() {
        let long = "x".repeat(300);
        let words = format!("[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"{long}\"\n");
        let keys =
            format!("[[task]]\nname = \"a\"\nperoid = \"1 ms\" # {long}\nbody = [{}]\n", "{ run = 7 }, ".repeat(40));
        for source in ["<taskset/>", "tasks:\n  - a", "{}", "name = [", &words, &keys, "[[task]]"] {
            let faults = parse_system(source).expect_err("no task set");
            for width in [80, 100, 120] {
                let look = Look { color: false, layout: Some(Layout::new(width, false)) };
                for fault in &*faults {
                    let text = render(fault, Severity::Error, "system.toml", source, look);
                    let widest = text.lines().map(|line| line.chars().count()).max();
                    assert!(widest <= Some(width), "{widest:?} at {width}:\n{text}");
                }
            }
        }
    }
}
