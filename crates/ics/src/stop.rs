//! The reasons for which a section stops.

use core::fmt;

/// The reason for which a section stopped before its end.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Stop, Var, Word};
///
/// let ics: Ics<[Word; 1], 1, 1> = Ics::new([Word::new(0)]);
/// let read = ics.query(|view| view.read(Var::<u64>::new(1)));
/// assert_eq!(read, Err(Stop::NoSuchWord));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Stop {
    /// Another section committed and invalidated this one. `update` and `query` restart the section.
    Conflict,
    /// The section writes more words than its record holds, or needs a node when none is left.
    Full,
    /// The object has no word of this number.
    NoSuchWord,
    /// The nodes of a structure form a ring: its memory was never constructed, or was overwritten.
    Damaged,
    /// The body of the section gave up.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "another section committed and invalidated this one; restart it",
            Self::Full => {
                "the section writes more words than its record holds, or no node is left; \
                 make the object larger, or write less at once"
            }
            Self::NoSuchWord => "the object has no word of this number",
            Self::Damaged => "the memory of the structure was never constructed, or was overwritten",
            Self::Cancelled => "the section gave up and changed nothing",
        })
    }
}

impl core::error::Error for Stop {}
