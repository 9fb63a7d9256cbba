//! What a section reads and writes: words, and the types that fit into one.

use crate::sync::{AtomicU64, constructor};
use core::marker::PhantomData;

/// A word of shared data, read and written in sections.
///
/// It is where its value is, and which commit put it there; a section that writes leads it to another place, so that no old value is overwritten while
/// somebody may read it.
#[derive(Debug)]
pub struct Word {
    /// | version (48 bits) | place of the value, zero for this word's own (16 bits) |: zeros at first.
    pub(crate) locator: AtomicU64,
    /// One of the places; at first this word's own, later anybody's.
    pub(crate) place: AtomicU64,
}

impl Word {
    constructor! {
        /// With a value, as its [`Value::to_bits`] are.
        #[must_use]
        pub fn new(bits: u64) -> Self {
            Self { locator: AtomicU64::new(0), place: AtomicU64::new(bits) }
        }
    }
}

/// The words of an [`Ics`](crate::Ics), by number.
///
/// An array of [`Word`]s is one; so is whatever else has them.
pub trait Words {
    /// How many.
    const COUNT: usize;

    /// The word of a number below [`Words::COUNT`], always the same one; `None` beyond.
    fn word(&self, index: usize) -> Option<&Word>;
}

impl<const N: usize> Words for [Word; N] {
    const COUNT: usize = N;

    #[inline]
    fn word(&self, index: usize) -> Option<&Word> {
        self.get(index)
    }
}

/// What fits into a word.
pub trait Value: Copy {
    /// As bits.
    fn to_bits(self) -> u64;
    /// Out of the bits of one.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            #[inline]
            fn to_bits(self) -> u64 {
                self as u64
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl Value for bool {
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl Value for f64 {
    #[inline]
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
    #[inline]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

impl Value for f32 {
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(f32::to_bits(self))
    }
    #[inline]
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

/// The number of a word, and the type of what is in it.
///
/// # Examples
/// ```
/// use lockwright_ics::Var;
///
/// const SPEED: Var<f64> = Var::new(0);
/// const IS_MOVING: Var<bool> = Var::new(1);
/// # let _ = (SPEED, IS_MOVING);
/// ```
#[derive(Debug)]
pub struct Var<T> {
    pub(crate) index: usize,
    holds: PhantomData<fn() -> T>,
}

impl<T: Value> Var<T> {
    /// The word of this number.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self { index, holds: PhantomData }
    }
}

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Var<T> {}
