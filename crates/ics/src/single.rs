//! One word alone: its value is the head.

use crate::commit::{Commit, Locked};
use crate::sync::{AtomicU64, constructor};
use crate::transaction::Stop;
use crate::value::Value;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// A single word, and sections on it: no record, no slot, and nothing for others to perform.
///
/// The commit compares the value. That another came between and led back to the same value does no harm: there is nothing else that a
/// section could have seen.
///
/// # Bound
/// An attempt a commit that comes between; each a load and a conditional store.
///
/// # Examples
/// ```
/// use lockwright_ics::Single;
///
/// static LEVEL: Single<u32> = Single::new(7);
/// assert_eq!(LEVEL.update(|level| Ok((level + 1, level)))?, 7);
/// assert_eq!(LEVEL.get(), 8);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct Single<T, C = Locked> {
    word: AtomicU64,
    commit: C,
    holds: PhantomData<fn() -> T>,
}

impl<T: Value> Single<T> {
    constructor! {
        /// With a value as [`Value::to_bits`] has it, for threads on whatever processors.
        #[must_use]
        pub fn new(bits: u64) -> Self {
            Self::with(bits, Locked)
        }
    }
}

impl<T: Value, C> Single<T, C> {
    constructor! {
        /// The same with another strategy.
        #[must_use]
        pub fn with(bits: u64, commit: C) -> Self {
            Self { word: AtomicU64::new(bits), commit, holds: PhantomData }
        }
    }

    /// The strategy.
    pub const fn commit(&self) -> &C {
        &self.commit
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> T {
        // ORDERING: Acquire pairs with the Release of the commit.
        T::from_bits(self.word.load(Ordering::Acquire))
    }
}

impl<T: Value, C: Commit> Single<T, C> {
    /// Executes a section, which gives the new value and a result, until no other one commits in between.
    ///
    /// # Errors
    /// What `body` stops with, but for [`Stop::Conflict`]; nothing is changed then.
    #[inline]
    pub fn update<R>(&self, mut body: impl FnMut(T) -> Result<(T, R), Stop>) -> Result<R, Stop> {
        // BOUND: the commits of others.
        loop {
            // ORDERING: Acquire pairs with the Release of the commit.
            let seen = self.word.load(Ordering::Acquire);
            match body(T::from_bits(seen)) {
                Ok((new, result)) if self.commit.post(&self.word, seen, new.to_bits()) => return Ok(result),
                Ok(_) | Err(Stop::Conflict) => {}
                Err(stop) => return Err(stop),
            }
        }
    }
}
