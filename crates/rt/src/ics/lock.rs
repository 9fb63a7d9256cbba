//! Interruptible locks: threads below a cutoff lock before they enter a section; the others do not, and interrupt them.

use super::strategy::Strategy;
use crate::mutex::{self, Mutex, MutexProtocol};
use lockwright_ics::{Ics, Stats, Stop, Transaction, View, Words, Writer};
use lockwright_locks::{Algorithm, SpinLock};
use lockwright_sys::sched::{self, ME};
use std::fmt;

/// The slot of all threads that lock. They take turns, so one record is enough.
const SHARED_SLOT: usize = 0;

/// A lock that a thread locks before a section.
///
/// # Safety
/// After a [`Gate::enter`] succeeds, no other one succeeds before its guard is dropped. Everything done before that
/// drop is visible after the next successful `enter`.
#[allow(unsafe_code)] // Each implementation makes a promise.
pub unsafe trait Gate {
    /// Unlocks when dropped.
    type Guard<'g>
    where
        Self: 'g;

    /// Waits as the lock does, and locks it.
    ///
    /// # Errors
    /// [`GateError`] if the lock fails.
    fn enter(&self) -> Result<Self::Guard<'_>, GateError>;
}

/// Why the lock before a section could not be locked, as the lock's own message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GateError(String);

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GateError {}

// SAFETY: a mutex admits one guard at a time, and its unlock happens before the next lock.
#[allow(unsafe_code)]
unsafe impl Gate for Mutex<()> {
    type Guard<'g> = mutex::Guard<'g, ()>;

    fn enter(&self) -> Result<Self::Guard<'_>, GateError> {
        match self.lock() {
            Ok(guard) => Ok(guard),
            // The protected section needs no repair: the section of the dead owner is committed or was never begun.
            Err(mutex::LockError::OwnerDied(guard)) => {
                mutex::Guard::make_consistent(&guard);
                Ok(guard)
            }
            Err(error) => Err(GateError(error.to_string())),
        }
    }
}

// SAFETY: `Algorithm` promises mutual exclusion, and that an unlock happens before the next lock.
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

/// A builder of an interruptible lock. Get one from [`InterruptibleLock::builder`].
#[derive(Debug)]
pub struct InterruptibleLockBuilder<L> {
    cutoff: u8,
    gate: L,
    strategy: Strategy,
}

impl<L: Gate> InterruptibleLockBuilder<L> {
    /// Replaces the mutex by another lock.
    #[must_use]
    pub fn lock<M: Gate>(self, gate: M) -> InterruptibleLockBuilder<M> {
        InterruptibleLockBuilder { cutoff: self.cutoff, gate, strategy: self.strategy }
    }

    /// Sets how commits are decided. The default is correct for all threads.
    #[must_use]
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Builds the lock around these words.
    #[must_use]
    pub fn build<W: Words, const SLOTS: usize, const WRITES: usize>(
        self,
        words: W,
    ) -> InterruptibleLock<W, SLOTS, WRITES, L> {
        InterruptibleLock { ics: Ics::with(words, self.strategy), cutoff: self.cutoff, gate: self.gate }
    }
}

/// Shared words for which urgent threads never wait, and on which less urgent threads work one after the other.
///
/// A section of a thread below the cutoff restarts only when a thread at or above the cutoff commits, because the
/// threads below lock first. The lock is a mutex with a ceiling just below the cutoff, unless another one is given. All
/// threads below share one record, and so use one of the `SLOTS` slots.
///
/// # Bound
/// At or above the cutoff: as [`Ics`]. Below: the wait for the lock, and then as [`Ics`], one attempt for each commit
/// of a thread at or above. A waiter for the lock also waits for the attempts of its holder (the paper's BP).
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
    /// Returns a builder of a lock with this cutoff, a level of SCHED_FIFO.
    ///
    /// Threads at the cutoff and above do not lock; threads below do. The lock is a mutex whose ceiling is the level
    /// below the cutoff, at most 99. For a cutoff of 0 or 1 there is no such level, and the mutex inherits instead. At
    /// a cutoff of 100 or more all threads lock except those of SCHED_DEADLINE.
    #[must_use]
    pub fn builder(cutoff: u8) -> InterruptibleLockBuilder<Mutex<()>> {
        let protocol = match cutoff.saturating_sub(1).min(99) {
            0 => MutexProtocol::Inherit,
            level => MutexProtocol::Protect(level),
        };
        InterruptibleLockBuilder {
            cutoff,
            gate: Mutex::builder().protocol(protocol).build(()),
            strategy: Strategy::locked(),
        }
    }
}

/// Why a section under an interruptible lock did not commit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum InterruptibleLockError {
    /// The lock failed.
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
    /// Registers the calling thread at its present level. A thread of SCHED_DEADLINE counts as above all levels, and
    /// one that is not a real-time thread has level 0. Returns `None` if the thread needs a slot and none is left.
    pub fn thread(&self) -> Option<Thread<'_, W, SLOTS, WRITES, L>> {
        let level = sched::scheduling(ME).map_or(0, |scheduling| match scheduling {
            // Such a thread could not lock a mutex with a ceiling either.
            scheduling if scheduling.is_deadline() => u8::MAX,
            scheduling if scheduling.has_level() => scheduling.level,
            _ => 0,
        });
        self.thread_at(level)
    }

    /// Registers a thread of this level. Returns `None` if the thread needs a slot and none is left.
    pub fn thread_at(&self, level: u8) -> Option<Thread<'_, W, SLOTS, WRITES, L>> {
        self.reserve();
        let slot = if level >= self.cutoff { Some(self.ics.writer()?) } else { None };
        Some(Thread { lock: self, slot })
    }

    /// Reads the words like [`Ics::query`], without the lock.
    ///
    /// # Errors
    /// The error with which `body` stops, except [`Stop::Conflict`].
    pub fn query<R>(
        &self,
        body: impl FnMut(&View<'_, W, SLOTS, WRITES, Strategy>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        self.ics.query(body)
    }

    /// Returns how commits are decided.
    pub const fn strategy(&self) -> &Strategy {
        self.ics.commit()
    }

    /// Returns the statistics of all threads that lock, together.
    ///
    /// The counts of a thread that is inside may be missing.
    pub fn stats_below(&self) -> Stats {
        self.ics.stats(SHARED_SLOT).unwrap_or_default()
    }

    /// Reserves the shared slot, so that no thread is given it from now on.
    fn reserve(&self) {
        self.ics.reserve(SHARED_SLOT);
    }
}

/// A thread that may enter sections under an interruptible lock.
#[derive(Debug)]
pub struct Thread<'l, W, const SLOTS: usize, const WRITES: usize, L> {
    lock: &'l InterruptibleLock<W, SLOTS, WRITES, L>,
    /// Its own slot, if it is at the cutoff or above.
    slot: Option<Writer<'l, W, SLOTS, WRITES, Strategy>>,
}

impl<W: Words, const SLOTS: usize, const WRITES: usize, L: Gate> Thread<'_, W, SLOTS, WRITES, L> {
    /// Executes a section like [`Writer::update`], under the lock if the thread is below the cutoff. The lock is
    /// unlocked in any case: after a result, an error, or a panic.
    ///
    /// # Errors
    /// [`InterruptibleLockError`] if the lock fails or the section stops.
    pub fn update<R>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, W, SLOTS, WRITES, Strategy>) -> Result<R, Stop>,
    ) -> Result<R, InterruptibleLockError> {
        if let Some(slot) = &mut self.slot {
            return Ok(slot.update(body)?);
        }
        let _guard = self.lock.gate.enter().map_err(InterruptibleLockError::Gate)?;
        // SAFETY: every user of this slot has entered the gate, which admits one at a time. No writer was given the
        // slot, because it was reserved before.
        #[allow(unsafe_code)]
        let slot = unsafe { self.lock.ics.shared_writer(SHARED_SLOT) };
        match slot {
            Some(mut slot) => Ok(slot.update(body)?),
            None => Err(InterruptibleLockError::Stop(Stop::Full)),
        }
    }

    /// Whether the thread locks before its sections.
    #[must_use]
    pub const fn takes_lock(&self) -> bool {
        self.slot.is_none()
    }

    /// Returns the thread's statistics. Threads that lock are counted together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.slot.as_ref().map_or_else(|| self.lock.stats_below(), Writer::stats)
    }
}
