//! The words of an object.

use crate::sync::{AtomicU64, constructor};

/// A word of shared data, read and written in sections.
///
/// A word names the place of its value and the commit that put it there.
/// A section that writes the word redirects it to another place, so no value is overwritten while a thread may read it.
///
/// # Examples
/// ```
/// use lockwright_ics::{Value, Word};
///
/// let zero = Word::new(0);
/// let half = Word::new(0.5_f64.to_bits());
/// # let _ = (zero, half);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Word {
    /// | version (48 bits) | place of the value, zero for the word's own (16 bits) |, zero at first.
    pub(crate) locator: AtomicU64,
    /// One of the places: the word's own at first, later that of any word.
    pub(crate) place: AtomicU64,
}

impl Word {
    constructor! {
        /// Creates a word from the bits of its value, see [`Value::to_bits`](crate::Value::to_bits).
        #[must_use]
        pub fn new(bits: u64) -> Self {
            Self { locator: AtomicU64::new(0), place: AtomicU64::new(bits) }
        }
    }
}

impl Default for Word {
    /// Creates a word of zeros.
    fn default() -> Self {
        Self::new(0)
    }
}

/// The words of an [`Ics`](crate::Ics), by number.
///
/// Arrays of [`Word`]s implement it, and a structure with fields of words can.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word, Words};
///
/// #[derive(Default)]
/// struct Pair {
///     first: Word,
///     second: Word,
/// }
///
/// impl Words for Pair {
///     const COUNT: usize = 2;
///
///     fn word(&self, index: usize) -> Option<&Word> {
///         match index {
///             0 => Some(&self.first),
///             1 => Some(&self.second),
///             _ => None,
///         }
///     }
/// }
///
/// let ics: Ics<Pair, 1, 2> = Ics::new(Pair::default());
/// assert_eq!(ics.query(|view| view.read(Var::<u64>::new(1)))?, 0);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
pub trait Words {
    /// The number of words.
    const COUNT: usize;

    /// Returns the word of a number below [`Words::COUNT`], always the same one, and `None` for other numbers.
    fn word(&self, index: usize) -> Option<&Word>;
}

impl<const N: usize> Words for [Word; N] {
    const COUNT: usize = N;

    #[inline]
    fn word(&self, index: usize) -> Option<&Word> {
        self.get(index)
    }
}
