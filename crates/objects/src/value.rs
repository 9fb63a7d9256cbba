//! The values that objects hold.

/// A value that fits into one word.
///
/// # Examples
/// ```
/// use lockwright_objects::Value;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Millivolts(i16);
///
/// impl Value for Millivolts {
///     fn to_bits(self) -> u64 {
///         self.0.to_bits()
///     }
///     fn from_bits(bits: u64) -> Self {
///         Self(Value::from_bits(bits))
///     }
/// }
///
/// assert_eq!(Millivolts::from_bits(Millivolts(-5).to_bits()), Millivolts(-5));
/// ```
pub trait Value: Copy + Send {
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
