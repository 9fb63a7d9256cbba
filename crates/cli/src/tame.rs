//! Texts from files, made harmless for a terminal.

/// A text of several lines for a terminal: control characters must not move its cursor, nor turn its text around.
#[must_use]
pub fn tame(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && is_wild(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// As [`tame`], for a part of a line, such as a name: it must not look like a line of ours.
#[must_use]
pub fn line(text: &str) -> String {
    tame(text).replace('\n', " ")
}

/// Whether it is a control character, or changes the direction of text.
fn is_wild(c: char) -> bool {
    let is_bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}
