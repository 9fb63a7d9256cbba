//! Variables: the places of values among the words.

use crate::data::Data;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// The number of a variable's first word, and the type of its value.
///
/// # Examples
/// ```
/// use lockwright_ics::Var;
///
/// const SPEEDS: Var<[f64; 3]> = Var::new(0);
/// const IS_MOVING: Var<bool> = SPEEDS.then();
/// assert_eq!(IS_MOVING, Var::new(3));
/// ```
pub struct Var<T> {
    pub(crate) index: usize,
    holds: PhantomData<fn() -> T>,
}

impl<T: Data> Var<T> {
    /// Creates a variable that begins at the word of this number.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self { index, holds: PhantomData }
    }

    /// Creates the variable that follows this one.
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

// Derived implementations would require the same of `T`.

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Var<T> {}

impl<T> PartialEq for Var<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<T> Eq for Var<T> {}

impl<T> Hash for Var<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

impl<T> fmt::Debug for Var<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Var").field(&self.index).finish()
    }
}
