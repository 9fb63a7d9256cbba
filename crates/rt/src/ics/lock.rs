//! Interruptible locks: below a cutoff threads take a lock before they enter a section; the others do not, and interrupt them.

use super::strategy::Strategy;
use crate::mutex::{self, Mutex, Protocol};
use lockwright_ics::{Ics, Stats, Stop, Transaction, View, Words, Writer};
use lockwright_locks::{Algorithm, SpinLock};
use lockwright_sys::sched::{self, ME};
use std::fmt;

/// The slot of those that take the lock: they take turns, so one record is enough.
const SHARED_SLOT: usize = 0;

/// A lock to be taken before a section.
///
/// # Safety
/// Between an [`Gate::enter`] that succeeds and the drop of its guard, no other one succeeds; and what was done before that drop is seen after the next one.
#[allow(unsafe_code)] // A promise to be made by each implementation.
pub unsafe trait Gate {
    /// Leaves when dropped.
    type Guard<'g>
    where
        Self: 'g;

    /// Waits as the lock does.
    ///
    /// # Errors
    /// [`GateError`].
    fn enter(&self) -> Result<Self::Guard<'_>, GateError>;
}

/// Why a lock before a section could not be taken: in the lock's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateError(String);

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GateError {}

// SAFETY: a mutex.
#[allow(unsafe_code)]
unsafe impl Gate for Mutex<()> {
    type Guard<'g> = mutex::Guard<'g, ()>;

    fn enter(&self) -> Result<Self::Guard<'_>, GateError> {
        match self.lock() {
            Ok(guard) => Ok(guard),
            // What it protects mends itself: the section of who died is committed or was never begun.
            Err(mutex::LockError::OwnerDied(guard)) => {
                guard.make_consistent();
                Ok(guard)
            }
            Err(error) => Err(GateError(error.to_string())),
        }
    }
}

// SAFETY: what `Algorithm` promises.
#[allow(unsafe_code)]
unsafe impl<A> Gate for SpinLock<A, ()>
where
    A: for<'r> Algorithm<Request<'r> = ()>,
{
    type Guard<'g>
        = lockwright_locks::Guard<'g, A, ()>
    where
        A: 'g;

    fn enter(&self) -> Result<Self::Guard<'_>, GateError> {
        Ok(self.lock_with(()))
    }
}

/// An interruptible lock to be. Get it from [`InterruptibleLock::builder`].
#[derive(Debug)]
pub struct InterruptibleLockBuilder<L> {
    cutoff: u8,
    gate: L,
    strategy: Strategy,
}

impl<L: Gate> InterruptibleLockBuilder<L> {
    /// Another lock than a mutex with a ceiling.
    #[must_use]
    pub fn lock<M: Gate>(self, gate: M) -> InterruptibleLockBuilder<M> {
        InterruptibleLockBuilder { cutoff: self.cutoff, gate, strategy: self.strategy }
    }

    /// How commits are decided. Without it, so that it is right everywhere.
    #[must_use]
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Around these words.
    #[must_use]
    pub fn build<W: Words, const SLOTS: usize, const WRITES: usize>(
        self,
        words: W,
    ) -> InterruptibleLock<W, SLOTS, WRITES, L> {
        InterruptibleLock { ics: Ics::with(words, self.strategy), cutoff: self.cutoff, gate: self.gate }
    }
}

/// Shared words that urgent threads never wait for, and that less urgent ones work on one after the other.
///
/// A section of a thread below the cutoff begins again only when a thread at or above it commits: those below take a lock before. It is a mutex with a ceiling just
/// below the cutoff, unless another is given. All below share one record; of `SLOTS` slots, one is theirs.
///
/// # Bound
/// At or above the cutoff: as [`Ics`]. Below: the wait for the lock, then as [`Ics`], an attempt for each commit of a thread at or above. Whoever waits for the lock waits for
/// those attempts, too (the paper's BP).
///
/// # Reference
/// Johnson and Harathi, section 5.
///
/// # Examples
/// ```
/// use lockwright::ics::{InterruptibleLock, Var, Word};
///
/// const COUNT: Var<u64> = Var::new(0);
/// let shared: InterruptibleLock<[Word; 1], 4, 1> = InterruptibleLock::builder(50).build([Word::new(0)]);
///
/// let mut thread = shared.thread_at(60).expect("a slot");
/// thread.update(|section| {
///     let count = section.read(COUNT)?;
///     section.write(COUNT, count + 1)
/// })?;
/// # Ok::<(), lockwright::ics::InterruptibleLockError>(())
/// ```
#[derive(Debug)]
pub struct InterruptibleLock<W, const SLOTS: usize, const WRITES: usize, L = Mutex<()>> {
    ics: Ics<W, SLOTS, WRITES, Strategy>,
    cutoff: u8,
    gate: L,
}

impl InterruptibleLock<(), 1, 1> {
    /// Threads at this level of SCHED_FIFO and above do not take the lock; below they do. The lock is a mutex whose ceiling is the level below the
    /// cutoff, 99 at most; where that is none (a cutoff of 0 or 1), one that inherits. At a cutoff of 100 or more all take the lock but the threads of SCHED_DEADLINE.
    #[must_use]
    pub fn builder(cutoff: u8) -> InterruptibleLockBuilder<Mutex<()>> {
        let protocol = match cutoff.saturating_sub(1).min(99) {
            0 => Protocol::Inherit,
            level => Protocol::Protect(level),
        };
        InterruptibleLockBuilder {
            cutoff,
            gate: Mutex::builder().protocol(protocol).build(()),
            strategy: Strategy::locked(),
        }
    }
}

/// Why a section under an interruptible lock did not commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InterruptibleLockError {
    /// The lock could not be taken.
    Gate(GateError),
    /// The section stopped.
    Stop(Stop),
}

impl From<Stop> for InterruptibleLockError {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl fmt::Display for InterruptibleLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(error) => write!(f, "the lock before the section: {error}"),
            Self::Stop(stop) => stop.fmt(f),
        }
    }
}

impl std::error::Error for InterruptibleLockError {}

impl<W: Words, const SLOTS: usize, const WRITES: usize, L: Gate> InterruptibleLock<W, SLOTS, WRITES, L> {
    /// The calling thread, at the level it has now; one of SCHED_DEADLINE is above all levels, and one that is not a real-time thread is at 0. `None` where it would need
    /// a slot and there is none.
    pub fn thread(&self) -> Option<Thread<'_, W, SLOTS, WRITES, L>> {
        let level = sched::scheduling(ME).map_or(0, |scheduling| match scheduling {
            // Nor could it take a mutex with a ceiling.
            scheduling if scheduling.is_deadline() => u8::MAX,
            scheduling if scheduling.has_level() => scheduling.level,
            _ => 0,
        });
        self.thread_at(level)
    }

    /// A thread of this level.
    pub fn thread_at(&self, level: u8) -> Option<Thread<'_, W, SLOTS, WRITES, L>> {
        self.reserve();
        let slot = if level >= self.cutoff { Some(self.ics.writer()?) } else { None };
        Some(Thread { lock: self, slot })
    }

    /// As [`Ics::query`]: nobody takes the lock for it.
    ///
    /// # Errors
    /// What `body` stops with, but for [`Stop::Conflict`].
    pub fn query<R>(
        &self,
        body: impl FnMut(&View<'_, W, SLOTS, WRITES, Strategy>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        self.ics.query(body)
    }

    /// How commits are decided.
    pub const fn strategy(&self) -> &Strategy {
        self.ics.commit()
    }

    /// What those that take the lock did, together.
    ///
    /// The counts of who is inside may be missing.
    pub fn stats_below(&self) -> Stats {
        self.ics.stats(SHARED_SLOT).unwrap_or_default()
    }

    /// From now on nobody is given the shared slot.
    fn reserve(&self) {
        self.ics.reserve(SHARED_SLOT);
    }
}

/// The right of a thread to enter sections under an interruptible lock.
#[derive(Debug)]
pub struct Thread<'l, W, const SLOTS: usize, const WRITES: usize, L> {
    lock: &'l InterruptibleLock<W, SLOTS, WRITES, L>,
    /// Its own, at the cutoff or above.
    slot: Option<Writer<'l, W, SLOTS, WRITES, Strategy>>,
}

impl<W: Words, const SLOTS: usize, const WRITES: usize, L: Gate> Thread<'_, W, SLOTS, WRITES, L> {
    /// As [`Writer::update`], behind the lock if the thread is below the cutoff. The lock is given back whatever happens: a result, an error, or a panic.
    ///
    /// # Errors
    /// [`InterruptibleLockError`].
    pub fn update<R>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, W, SLOTS, WRITES, Strategy>) -> Result<R, Stop>,
    ) -> Result<R, InterruptibleLockError> {
        if let Some(slot) = &mut self.slot {
            return Ok(slot.update(body)?);
        }
        let _guard = self.lock.gate.enter().map_err(InterruptibleLockError::Gate)?;
        // SAFETY: whoever uses this slot has entered the gate, which lets one in at a time; nobody was given it, for it was reserved before.
        #[allow(unsafe_code)]
        let slot = unsafe { self.lock.ics.shared_writer(SHARED_SLOT) };
        match slot {
            Some(mut slot) => Ok(slot.update(body)?),
            None => Err(InterruptibleLockError::Stop(Stop::Full)),
        }
    }

    /// Whether it takes the lock.
    #[must_use]
    pub const fn takes_lock(&self) -> bool {
        self.slot.is_none()
    }

    /// What the thread did; those that take the lock count together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.slot.as_ref().map_or_else(|| self.lock.stats_below(), Writer::stats)
    }
}
