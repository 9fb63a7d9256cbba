//! The types that sections read and write.

/// A value that fits into one word.
///
/// # Examples
/// ```
/// use lockwright_ics::Value;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// enum Mode {
///     Idle,
///     Running,
/// }
///
/// impl Value for Mode {
///     fn to_bits(self) -> u64 {
///         self as u64
///     }
///     fn from_bits(bits: u64) -> Self {
///         if bits == 0 { Self::Idle } else { Self::Running }
///     }
/// }
///
/// assert_eq!(Mode::from_bits(Mode::Running.to_bits()), Mode::Running);
/// ```
pub trait Value: Copy {
    /// Returns the bits of the value.
    fn to_bits(self) -> u64;
    /// Returns the value of bits that [`Value::to_bits`] returned.
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
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

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

/// The content of a variable: one word or several, which sections read and write as a whole.
///
/// Every [`Value`] implements it, and so do arrays and tuples of up to four elements.
/// The macro [`data!`](crate::data) implements it for a structure.
///
/// # Examples
/// ```
/// use lockwright_ics::Data;
///
/// assert_eq!(<[(u8, f64); 3] as Data>::WORDS, 6);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read and written in sections",
    label = "this type neither fits into a word nor consists of types that do",
    note = "for a structure of your own write `data!(Name {{ field: Type, ... }})`"
)]
pub trait Data: Copy {
    /// The number of words.
    ///
    /// A type that passes more words to [`Data::put`] may be written in part when a record has no room for all of them.
    const WORDS: usize;

    /// Passes the words to `each`, [`Data::WORDS`] of them, in order.
    ///
    /// # Errors
    /// The first error of `each`.
    fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E>;

    /// Builds the value from the words that `next` returns, [`Data::WORDS`] of them, in order.
    ///
    /// # Errors
    /// The first error of `next`.
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
        assert!(N > 0, "an array in a variable has at least one element");
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

/// Implements [`Data`] for a structure: the macro lists every field with its type, in the order of the words.
///
/// The structure is [`Copy`] and has no generic parameters. The macro accepts a name without a path.
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
/// let mut writer = SHARED.writer().expect("two threads may write");
/// writer.update(|section| {
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
                // A missing field does not compile.
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
