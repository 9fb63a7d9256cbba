//! Diagnostics: the faults of a file and their places.

use core::ops::Range;

/// The maximum number of faults reported of one file. The first ones in order of place are kept.
pub const DIAGNOSTICS_MAX: usize = 50;

/// The maximum length in bytes of a file that is read.
pub const SOURCE_BYTES_MAX: usize = 16 << 20;

/// The maximum number of characters of a quoted name. A longer name is cut.
const SHOWN_MAX: usize = 48;

/// One fault of a file, or one remark on it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The fault, in words.
    pub message: String,
    /// The bytes at fault, on character boundaries. `None` if the file as a whole is at fault.
    pub span: Option<Range<usize>>,
    /// The text to print under the bytes at fault. It may be empty.
    pub label: String,
    /// How to correct it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Returns a fault of the file as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None, label: String::new(), help: None }
    }

    /// Returns the fault with its place: the bytes at fault.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    /// Returns the fault with a text to print under the bytes at fault.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Returns the fault with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the line and the column of the first byte at fault. Both count from 1, and the column counts characters.
    ///
    /// Returns `None` if the diagnostic has no span, or if the span does not begin on a character boundary of `source`.
    #[must_use]
    pub fn line_column(&self, source: &str) -> Option<(usize, usize)> {
        let before = source.get(..self.span.as_ref()?.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        // A byte order mark takes no column.
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        Some((line, column))
    }
}

impl core::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// The faults of a file that was refused: at least one, in order of place.
///
/// It is read like a slice. Its text has one line for each fault.
///
/// # Examples
/// ```
/// use lockwright_model::format::parse_system;
/// let faults = parse_system("[[task]]\nname = \"camera\"\nwcet = \"2 ms\"\n").expect_err("no period");
/// assert_eq!(faults[0].message, "task `camera` has no period");
/// assert_eq!(faults.to_string().lines().count(), faults.len());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl core::ops::Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = core::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(fault: Diagnostic) -> Self {
        Self(vec![fault])
    }
}

impl core::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{fault}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Diagnostics {}

/// The faults found so far.
#[derive(Default, Debug)]
pub struct Faults(Vec<Diagnostic>);

impl Faults {
    /// Reports a fault.
    pub fn push(&mut self, fault: Diagnostic) {
        // Readers report almost in order of place, so only faults far down are dropped here.
        if self.0.len() < 2 * DIAGNOSTICS_MAX {
            self.0.push(fault);
        }
    }

    /// Returns whether no fault was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= 2 * DIAGNOSTICS_MAX
    }

    /// Moves the spans of a part of a text to their places in the whole text.
    pub(super) fn move_by(&mut self, distance: usize) {
        for span in self.0.iter_mut().filter_map(|fault| fault.span.as_mut()) {
            *span = span.start + distance..span.end + distance;
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|fault| self.push(fault));
    }

    /// Returns the faults as the reason why `source` is refused. `what` is the only one if none was reported.
    pub(super) fn into_refusal(mut self, source: &str, what: impl Into<String>) -> Diagnostics {
        if self.is_empty() {
            self.push(Diagnostic::new(what));
        }
        Diagnostics(self.into_sorted(source))
    }

    /// Returns the faults in order of place, with each span inside `source` and on character boundaries.
    pub(super) fn into_sorted(mut self, source: &str) -> Vec<Diagnostic> {
        for fault in &mut self.0 {
            fault.span = fault.span.take().map(|span| fit(span, source));
        }
        self.0.sort_by_key(|fault| fault.span.as_ref().map_or((0, 0), |span| (span.start, span.end)));
        self.0.truncate(DIAGNOSTICS_MAX);
        self.0
    }
}

/// Returns the span, extended to character boundaries and cut to the source.
fn fit(span: Range<usize>, source: &str) -> Range<usize> {
    let mut start = span.start.min(source.len());
    let mut end = span.end.clamp(start, source.len());
    // BOUND: a character has at most four bytes.
    while !source.is_char_boundary(start) {
        start -= 1;
    }
    while !source.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Refuses a file that is too long to be read.
pub(super) fn check_length(bytes: usize) -> Result<(), Diagnostics> {
    if bytes <= SOURCE_BYTES_MAX {
        return Ok(());
    }
    let fault = Diagnostic::new(format!("the file has {bytes} bytes"));
    Err(fault.help(format!("at most {SOURCE_BYTES_MAX} bytes are supported")).into())
}

/// Returns a name as messages quote it: in backticks, without control characters, and cut to [`SHOWN_MAX`] characters.
pub(super) fn shown(name: &str) -> String {
    let mut shown = String::new();
    for character in name.chars().take(SHOWN_MAX) {
        if character.is_control() { shown.extend(character.escape_debug()) } else { shown.push(character) }
    }
    if name.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Returns a kind and a name, such as "task `camera`", or "a task" if the name is empty.
pub(super) fn named(kind: &str, name: &str) -> String {
    if name.is_empty() { format!("a {kind}") } else { format!("{kind} {}", shown(name)) }
}

/// Returns the candidate nearest to `word`, if one is near enough to be what was probably meant. Case is ignored.
///
/// # Examples
/// ```
/// use lockwright_model::format::nearest;
/// assert_eq!(nearest("buss", ["bus", "map"]), Some("bus"));
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().take(SHOWN_MAX + 1).count();
    if letters > SHOWN_MAX {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 4 * SHOWN_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (letters / 3).max(1))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = "a\nµ µx";
        let fault = Diagnostic::new("").at(6..7);
        assert_eq!(fault.line_column(source), None, "inside a character");
        assert_eq!(Diagnostic::new("").at(7..8).line_column(source), Some((2, 4)));
        assert_eq!(Diagnostic::new("").at(9..9).line_column(source), None, "outside");
        assert_eq!(Diagnostic::new("").line_column(source), None);
        assert_eq!(Diagnostic::new("").at(3..4).line_column("\u{feff}x"), Some((1, 1)));
    }

    #[test]
    fn spans_are_cut_to_the_source() {
        assert_eq!(fit(3..900, "µµ"), 2..4);
        assert_eq!(fit(1..1, "µµ"), 0..2);
        assert_eq!(fit(70..80, "µµ"), 4..4);
    }

    #[test]
    fn the_nearest_word_is_near() {
        assert_eq!(nearest("perod", ["deadline", "period"]), Some("period"));
        assert_eq!(nearest("MPCP", ["none", "mpcp"]), Some("mpcp"));
        assert_eq!(nearest("zebra", ["deadline", "period"]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), ["period"]), None);
    }

    #[test]
    fn long_and_strange_names_are_shown_safely() {
        assert_eq!(shown("a\nb"), "`a\\nb`");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), SHOWN_MAX + 3);
    }
}
