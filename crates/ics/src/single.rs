//! A single word, whose value is its own head.

use crate::commit::{Commit, Locked};
use crate::data::Value;
use crate::stop::Stop;
use crate::sync::{AtomicU64, constructor};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// A single word and sections on it, without records, writers, and work for other threads.
///
/// The commit compares the value.
/// A value that other commits changed and restored does no harm, because a section reads nothing else.
///
/// # Bound
/// A section makes one more attempt for each commit during it. An attempt is one load and one conditional store.
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
        /// Creates a word from the bits of its value, see [`Value::to_bits`], for threads on any processors.
        #[must_use]
        pub fn new(bits: u64) -> Self {
            Self::with(bits, Locked)
        }
    }
}

impl<T: Value, C> Single<T, C> {
    constructor! {
        /// Creates a word as [`Single::new`] does, with another strategy.
        #[must_use]
        pub fn with(bits: u64, commit: C) -> Self {
            Self { word: AtomicU64::new(bits), commit, holds: PhantomData }
        }
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn commit(&self) -> &C {
        &self.commit
    }

    /// Returns the value.
    #[must_use]
    #[inline]
    pub fn get(&self) -> T {
        // ORDERING: Acquire pairs with the Release of the commit.
        T::from_bits(self.word.load(Ordering::Acquire))
    }
}

impl<T: Value, C: Commit> Single<T, C> {
    /// Executes a section until no other section commits during it.
    ///
    /// `body` receives the value, and returns the new value and a result.
    ///
    /// # Errors
    /// The error of `body`, except [`Stop::Conflict`], which restarts it. The word is unchanged then.
    ///
    /// # Bound
    /// One more attempt for each commit of another thread during the section.
    #[inline]
    pub fn update<R>(&self, mut body: impl FnMut(T) -> Result<(T, R), Stop>) -> Result<R, Stop> {
        // BOUND: the commits of other threads.
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
