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

/// What a variable may hold: one word or several, which sections read and write as a whole.
///
/// What fits into a word does, arrays and tuples (up to four) of such, and structures by [`data!`](crate::data).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read and written in sections",
    label = "neither fits into a word nor is made of such",
    note = "for a structure of your own say `data!(Name {{ field: Type, ... }})`"
)]
pub trait Data: Copy {
    /// How many words it takes. One that takes more than it says may be written by halves, where a record has room for the first ones only.
    const WORDS: usize;

    /// Hands out its words, as many as [`Data::WORDS`], in order.
    ///
    /// # Errors
    /// The first one of `each`.
    fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E>;

    /// Out of as many words.
    ///
    /// # Errors
    /// The first one of `next`.
    fn take<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E>;
}

impl<T: Value> Data for T {
    const WORDS: usize = 1;

    #[inline]
    fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        each(self.to_bits())
    }
    #[inline]
    fn take<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        next().map(T::from_bits)
    }
}

impl<T: Data, const N: usize> Data for [T; N] {
    const WORDS: usize = {
        assert!(N > 0, "an array of data has one element at least");
        N * T::WORDS
    };

    #[inline]
    fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        self.into_iter().try_for_each(|part| part.put(each))
    }
    #[inline]
    fn take<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        let mut parts = [T::take(next)?; N];
        for part in parts.iter_mut().skip(1) {
            *part = T::take(next)?;
        }
        Ok(parts)
    }
}

/// Makes a structure of the program's [`Data`]: all its fields by name, in the order given.
///
/// The structure is [`Copy`], has no generic parameters, and goes by one name where the macro stands.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word, data};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Pose {
///     x: f64,
///     y: f64,
///     heading: f32,
/// }
/// data!(Pose { x: f64, y: f64, heading: f32 });
///
/// const POSE: Var<Pose> = Var::new(0);
/// const COUNT: Var<u32> = POSE.then();
/// static SHARED: Ics<[Word; 4], 2, 4> = Ics::new([const { Word::new(0) }; 4]);
///
/// let mut slot = SHARED.slot().expect("two threads may have one");
/// slot.update(|section| {
///     let pose = section.read(POSE)?;
///     section.write(POSE, Pose { x: pose.x + 1.5, ..pose })?;
///     let count = section.read(COUNT)?;
///     section.write(COUNT, count + 1)
/// })?;
/// let now = SHARED.query(|view| Ok((view.read(POSE)?, view.read(COUNT)?)))?;
/// assert_eq!(now, (Pose { x: 1.5, y: 0.0, heading: 0.0 }, 1));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[macro_export]
macro_rules! data {
    ($name:ident { $($field:ident: $type:ty),+ $(,)? }) => {
        impl $crate::Data for $name {
            const WORDS: usize = 0 $(+ <$type as $crate::Data>::WORDS)+;

            #[inline]
            fn put<ErrorOfEach>(
                self,
                each: &mut impl ::core::ops::FnMut(u64) -> ::core::result::Result<(), ErrorOfEach>,
            ) -> ::core::result::Result<(), ErrorOfEach> {
                $(<$type as $crate::Data>::put(self.$field, each)?;)+
                ::core::result::Result::Ok(())
            }
            #[inline]
            fn take<ErrorOfNext>(
                next: &mut impl ::core::ops::FnMut() -> ::core::result::Result<u64, ErrorOfNext>,
            ) -> ::core::result::Result<Self, ErrorOfNext> {
                // Every field, or it does not compile.
                ::core::result::Result::Ok(Self { $($field: <$type as $crate::Data>::take(next)?),+ })
            }
        }
    };
}

macro_rules! tuples {
    ($(($($type:ident $part:tt),+))*) => {$(
        impl<$($type: Data),+> Data for ($($type,)+) {
            const WORDS: usize = 0 $(+ $type::WORDS)+;

            #[inline]
            fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
                $(self.$part.put(each)?;)+
                Ok(())
            }
            #[inline]
            fn take<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
                Ok(($($type::take(next)?,)+))
            }
        }
    )*};
}
tuples!((A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3));

/// The number of a variable's first word, and the type of what is in it.
///
/// # Examples
/// ```
/// use lockwright_ics::Var;
///
/// const SPEEDS: Var<[f64; 3]> = Var::new(0);
/// const IS_MOVING: Var<bool> = SPEEDS.then();
/// # let _ = (SPEEDS, IS_MOVING);
/// ```
#[derive(Debug)]
pub struct Var<T> {
    pub(crate) index: usize,
    holds: PhantomData<fn() -> T>,
}

impl<T: Data> Var<T> {
    /// From the word of this number on.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self { index, holds: PhantomData }
    }

    /// The variable behind this one.
    #[must_use]
    pub const fn then<U: Data>(self) -> Var<U> {
        Var::new(self.index.saturating_add(T::WORDS))
    }

    #[inline]
    pub(crate) fn take<E>(self, mut read: impl FnMut(usize) -> Result<u64, E>) -> Result<T, E> {
        let mut index = self.index;
        T::take(&mut || {
            let bits = read(index)?;
            index = index.saturating_add(1);
            Ok(bits)
        })
    }

    #[inline]
    pub(crate) fn put<E>(self, value: T, mut write: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        let mut index = self.index;
        value.put(&mut |bits| {
            write(index, bits)?;
            index = index.saturating_add(1);
            Ok(())
        })
    }
}

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Var<T> {}
