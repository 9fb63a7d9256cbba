//! Texts from files, made harmless for a terminal.

/// A text from a file, such as a name, for a terminal: control characters must not move its cursor.
#[must_use]
pub fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
