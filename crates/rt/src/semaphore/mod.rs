//! Counting semaphores for real-time threads.
//!
//! A semaphore has a number of units. [`Semaphore::acquire`] takes one and waits while there is none;
//! [`Semaphore::release`] adds one; any thread may call it, and so may a signal handler.
//!
//! Units are **handed over**. A unit that is released while threads wait belongs to these threads: a thread that
//! requests one later cannot take it, even if it executes first. With the usual rule, under which a woken thread
//! competes with all others, a thread that releases and acquires in a loop can keep a more urgent waiter of another
//! processor waiting for ever. The price is a switch to the waiter for each such unit.
//!
//! Of the waiting threads, the kernel wakes the most urgent one, and among equally urgent ones the one that has waited
//! longest.
//!
//! Without waiters, each call makes one atomic exchange and no system call. Nothing spins, and nothing allocates.
//!
//! # Bound
//! A thread that waits gets the first unit that is released while no more urgent thread waits, and none of its own
//! level that began before, with three exceptions:
//! - A thread that made its request before the release and has yet to suspend (some instructions later) may take the
//!   unit in its place. At most one thread of each processor executes these instructions at a time, and it takes one
//!   unit for each request. Threads that are preempted there count in addition.
//! - So may a thread whose wait is ended by a signal or by its deadline just after the release.
//! - The kernel sorts a thread by the priority with which it suspends. A later change of the priority does not move it,
//!   nor does a boost. A thread that was woken, and finds no unit, suspends again behind those of its level.
//!
//! # Limits
//! - A semaphore has no owner, so a waiter lends its priority to no thread. Use a [mutex](crate::mutex) to protect
//!   data.
//! - A thread or process that ends keeps the units that it took, and one unit that was handed to it.
//! - A thread may free the memory as soon as it has acquired the last unit, although the thread that released this unit
//!   has yet to return from its call: after its exchange, the release uses only the address.
//!
//! # Examples
//! ```
//! use lockwright::semaphore::{Semaphore, SemaphoreError};
//!
//! static FULL: Semaphore = Semaphore::new(0);
//!
//! assert_eq!(FULL.try_acquire(), Err(SemaphoreError::Empty));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| FULL.acquire());
//!     FULL.release()
//! })?;
//! # Ok::<(), SemaphoreError>(())
//! ```

mod state;
#[cfg(test)]
mod walk;

use crate::mutex::{Deadline, Limit, Suspended, Suspension};
use lockwright_sys::futex::{self, Arguments, Ended, Scope};
use lockwright_sys::{KeepErrno, SysError, fork};
use state::{State, UNIT};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A counting semaphore. It must not move while it is in use.
///
/// # Bound
/// See the [module](self).
///
/// # Examples
/// ```
/// use lockwright::semaphore::{Semaphore, SemaphoreError};
/// use std::time::Duration;
///
/// let slots = Semaphore::new(2);
/// slots.acquire()?;
/// slots.acquire()?;
/// assert_eq!(slots.acquire_for(Duration::from_millis(1)), Err(SemaphoreError::TimedOut));
/// slots.release_many(2)?;
/// assert_eq!(slots.available(), 2);
/// # Ok::<(), SemaphoreError>(())
/// ```
// The C library has the word that tells whether processes share a semaphore at 8 as well, and zeros are a private
// semaphore without units.
#[repr(C)]
pub struct Semaphore {
    state: AtomicU64,
    /// 1 if several processes use it.
    shared: AtomicU32,
    /// How many grants were taken. The number wraps to 0.
    taken: AtomicU32,
    /// The generation of processes to which the waiters belong.
    generation: AtomicU32,
    unused: AtomicU32,
}

const _: () = assert!(std::mem::offset_of!(Semaphore, shared) == 8 && size_of::<Semaphore>() == 24);

/// A request that waits. It must end with a call that acquires or gives up.
#[derive(Clone, Copy, Debug)]
#[must_use = "a request is counted until it ends"]
pub struct Request {
    /// The grants up to now are not for this request, unless the kernel wakes it.
    seen: u32,
}

/// The result of a suspended request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Progress {
    /// The caller has a unit, and the request has ended.
    Acquired,
    /// The caller suspends again.
    Waits,
    /// A signal arrived; the caller suspends again or gives up.
    Interrupted,
    /// The deadline passed; the caller gives up.
    TimedOut,
    /// The kernel refuses; the caller gives up.
    Refused(SysError),
}

impl Semaphore {
    /// The most units.
    pub const MAX: u32 = i32::MAX as u32;

    /// Creates a semaphore with `units` units for the threads of this process. More than [`Semaphore::MAX`] count as
    /// that many.
    #[must_use]
    pub const fn new(units: u32) -> Self {
        Self::make(units, 0)
    }

    /// Creates a semaphore for the threads of all processes that map it.
    #[must_use]
    pub const fn shared(units: u32) -> Self {
        Self::make(units, 1)
    }

    const fn make(units: u32, shared: u32) -> Self {
        let units = if units > Self::MAX { i32::MAX } else { units as i32 };
        Self {
            state: AtomicU64::new(State::of(units, 0).0),
            shared: AtomicU32::new(shared),
            taken: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            unused: AtomicU32::new(0),
        }
    }

    /// Whether several processes use the semaphore.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // ORDERING: Relaxed: set before other threads use it.
        self.shared.load(Ordering::Relaxed) != 0
    }

    /// How many units are free at this moment.
    pub fn available(&self) -> u32 {
        self.forgets_parent();
        self.load().balance().max(0).unsigned_abs()
    }

    /// Whether a thread waits.
    pub fn is_waited_for(&self) -> bool {
        self.forgets_parent();
        let taken = self.taken.load(Ordering::Acquire);
        let state = self.load();
        state.balance() < 0 || state.grants() != taken
    }

    /// Takes a unit, waiting until there is one.
    ///
    /// # Errors
    /// [`SemaphoreError::Sys`] if the kernel refuses to wait.
    #[inline]
    pub fn acquire(&self) -> Result<(), SemaphoreError> {
        self.acquire_within(Limit::Never)
    }

    /// Takes a unit if one is free.
    ///
    /// # Errors
    /// [`SemaphoreError::Empty`].
    #[inline]
    pub fn try_acquire(&self) -> Result<(), SemaphoreError> {
        self.acquire_within(Limit::Now)
    }

    /// Takes a unit, waiting at most until `deadline`.
    ///
    /// # Errors
    /// [`SemaphoreError::TimedOut`], and those of [`Semaphore::acquire`].
    #[inline]
    pub fn acquire_until(&self, deadline: Deadline) -> Result<(), SemaphoreError> {
        self.acquire_within(Limit::At(deadline))
    }

    /// Takes a unit like [`Semaphore::acquire_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`Semaphore::acquire_until`].
    pub fn acquire_for(&self, time: Duration) -> Result<(), SemaphoreError> {
        self.acquire_until(Deadline::after(time))
    }

    /// Takes a unit, waiting within `limit`.
    ///
    /// # Errors
    /// Those of [`Semaphore::try_acquire`] and [`Semaphore::acquire_until`], according to the limit.
    ///
    /// # Bound
    /// If a unit is free, one exchange of the word, repeated if another thread changes it at the same time. Otherwise
    /// until `limit`, or until the caller is the most urgent waiter and a unit is released.
    #[inline]
    pub fn acquire_within(&self, limit: Limit) -> Result<(), SemaphoreError> {
        if self.take() { Ok(()) } else { self.wait(limit) }
    }

    /// Takes a free unit.
    #[inline]
    fn take(&self) -> bool {
        // ORDERING: Relaxed: the exchange orders.
        let mut state = State(self.state.load(Ordering::Relaxed));
        // BOUND: a round fails because another thread has changed the word.
        while state.balance() > 0 {
            // ORDERING: Acquire, here and below, pairs with the Release in `release_many`.
            match self.state.compare_exchange(state.0, state.ask().0, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    #[cold]
    fn wait(&self, limit: Limit) -> Result<(), SemaphoreError> {
        let until = match limit {
            // A unit that was granted to a thread of the parent process is free.
            Limit::Now if self.forgets_parent() && self.take() => return Ok(()),
            Limit::Now => return Err(SemaphoreError::Empty),
            Limit::At(until) => Some(until),
            Limit::Never => None,
        };
        let _errno = KeepErrno::now();
        let Some(mut request) = self.request() else { return Ok(()) };
        // BOUND: `until`, and the thread that releases. A round ends with a grant that others took, with a signal, or
        // with a wake-up that was meant for a former user of the address.
        loop {
            let ended = futex::wait(self.scope(), futex::low_half(&self.state), request.seen, until);
            let failed = match self.progress(&mut request, ended) {
                Progress::Acquired => return Ok(()),
                Progress::Waits | Progress::Interrupted => continue,
                Progress::TimedOut => SemaphoreError::TimedOut,
                Progress::Refused(error) => SemaphoreError::Sys(error),
            };
            return if self.give_up(request) { Ok(()) } else { Err(failed) };
        }
    }

    /// Adds a unit.
    ///
    /// A signal handler may call this.
    ///
    /// # Errors
    /// [`SemaphoreError::Overflow`]; then nothing has changed.
    ///
    /// # Bound
    /// One exchange of the word, repeated if another thread changes it at the same time; with a waiter, one system
    /// call.
    #[inline]
    pub fn release(&self) -> Result<(), SemaphoreError> {
        self.release_many(1)
    }

    /// Adds `units` units at once. The most urgent waiters get them, and the remaining units are free.
    ///
    /// # Errors
    /// Those of [`Semaphore::release`].
    ///
    /// # Bound
    /// That of [`Semaphore::release`]; the kernel's own work grows with the number of waiters that it wakes.
    #[inline]
    pub fn release_many(&self, units: u32) -> Result<(), SemaphoreError> {
        // After the exchange, a thread that got a unit may have freed the memory.
        let (scope, half) = (self.scope(), std::ptr::from_ref(futex::low_half(&self.state)));
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word, or is the first one in a child process.
        loop {
            if state.balance() < 0 && self.forgets_parent() {
                state = self.load();
            }
            let (next, granted) = state.release(units).ok_or(SemaphoreError::Overflow)?;
            // ORDERING: Release pairs with the Acquire of the thread that takes a unit.
            match self.state.compare_exchange(state.0, next.0, Ordering::Release, Ordering::Acquire) {
                Ok(_) if granted > 0 => {
                    wake(scope, half, granted);
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(now) => state = State(now),
            }
        }
    }

    /// First part of an acquisition by a caller that suspends itself: takes a free unit and returns `None`, or begins
    /// to wait.
    ///
    /// The caller makes the system call that [`Semaphore::suspension`] returns, and passes the answer to
    /// [`Semaphore::answered`], until the request ends there, or with [`Semaphore::give_up`] or [`Semaphore::cancel`].
    pub fn request(&self) -> Option<Request> {
        if self.take() {
            return None;
        }
        self.forgets_parent();
        // ORDERING: Acquire as in `take`; Release, so that a thread which sees this request sees the generation.
        let state = State(self.state.fetch_sub(UNIT, Ordering::AcqRel));
        (state.balance() <= 0).then_some(Request { seen: state.grants() })
    }

    /// Returns the system call that suspends the caller, for callers that make it themselves from a cancellation point.
    pub fn suspension(&self, request: &Request, until: Option<Deadline>) -> Suspension {
        let half = futex::low_half(&self.state);
        Suspension::new(&Arguments::wait(self.scope(), half, request.seen, until.map(|until| until.clock)), until)
    }

    /// Checks whether a suspended request has a unit now.
    pub fn answered(&self, request: &mut Request, answer: Suspended) -> Progress {
        self.progress(request, answer.ended())
    }

    fn progress(&self, request: &mut Request, ended: Ended) -> Progress {
        // A thread that was woken may take any grant: the grant for which it was woken may have gone to a thread that
        // did not sleep yet.
        match self.take_grant(|state| ended == Ended::Woken || state.grants() != request.seen) {
            Ok(()) => return Progress::Acquired,
            // Those up to this one were taken, or none came. One that comes now ends the next wait at once.
            Err(state) => request.seen = state.grants(),
        }
        match ended {
            Ended::Woken | Ended::Changed => Progress::Waits,
            Ended::Interrupted => Progress::Interrupted,
            Ended::TimedOut => Progress::TimedOut,
            Ended::Refused(errno) => Progress::Refused(SysError { call: "futex wait", errno }),
        }
    }

    /// Takes a grant if there is one and `may_take` permits it. Otherwise returns the word in which it is so.
    fn take_grant(&self, may_take: impl Fn(State) -> bool) -> Result<(), State> {
        // BOUND: a round fails because another waiter has taken a grant.
        loop {
            // ORDERING: Acquire: read before the word, so that a grant is there if the numbers differ and the exchange
            // succeeds.
            let taken = self.taken.load(Ordering::Acquire);
            let state = self.load();
            if taken == state.grants() || !may_take(state) {
                return Err(state);
            }
            // ORDERING: AcqRel: the last access of this waiter comes after those of earlier ones.
            if self.taken.compare_exchange(taken, taken.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
    }

    /// Ends a request without waiting any longer. Returns whether the caller has nevertheless got a unit.
    pub fn give_up(&self, request: Request) -> bool {
        // BOUND: a round fails because another thread has changed the word or taken a grant.
        loop {
            let state = match self.take_grant(|state| state.grants() != request.seen || state.balance() >= 0) {
                Ok(()) => return true,
                Err(state) => state,
            };
            // Without a free grant, a balance of 0 says that nobody waits: the memory was initialised again meanwhile.
            let Some(next) = state.give_up() else { return false };
            // The exchange fails if a grant has come. ORDERING: as in `take_grant`.
            if self.state.compare_exchange(state.0, next.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return false;
            }
        }
    }

    /// Ends a request of a thread that is cancelled. It is not known whether the thread was woken, so a unit that was
    /// perhaps meant for it goes on to another waiter.
    pub fn cancel(&self, request: Request) {
        if self.take_grant(|_| true).is_ok() || self.give_up(request) {
            // A unit that was there before is not too many.
            let _ = self.release();
        }
    }

    /// Waiters that were counted before a `fork` are those of the parent. Removes them from the word, and returns
    /// whether it did.
    fn forgets_parent(&self) -> bool {
        let now = fork::generation();
        // ORDERING: Acquire, here and below, pairs with the Release below.
        if self.generation.load(Ordering::Acquire) == now || self.is_shared() {
            return false;
        }
        // Both numbers of grants move to one that belongs to the generation, so that an exchange by a thread that read
        // the word before another one forgot the waiters fails. Nobody waits in this process before the generation is
        // stored, so `taken` changes here alone until then.
        let target = now.wrapping_mul(0x9E37_79B1);
        // BOUND: a round fails because another thread has changed a word.
        loop {
            let taken = self.taken.load(Ordering::Acquire);
            let state = self.load();
            // Read last: a thread of this process waits only after it has seen the new generation.
            if self.generation.load(Ordering::Acquire) == now {
                return true;
            }
            if state.grants() != target {
                let next = state.without_waiters(taken, target);
                if self.state.compare_exchange(state.0, next.0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                    continue;
                }
            }
            if taken != target
                && self.taken.compare_exchange(taken, target, Ordering::AcqRel, Ordering::Relaxed).is_err()
            {
                continue;
            }
            self.generation.store(now, Ordering::Release);
            return true;
        }
    }

    #[inline]
    fn load(&self) -> State {
        // ORDERING: Acquire pairs with the Release in `release_many`.
        State(self.state.load(Ordering::Acquire))
    }

    #[inline]
    fn scope(&self) -> Scope {
        if self.is_shared() { Scope::Shared } else { Scope::Private }
    }
}

#[cold]
fn wake(scope: Scope, half: *const AtomicU32, count: u32) {
    let _errno = KeepErrno::now();
    futex::wake(scope, half, i32::try_from(count).unwrap_or(i32::MAX));
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("available", &self.available()).finish_non_exhaustive()
    }
}

/// Why a call of a semaphore failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SemaphoreError {
    /// [`Semaphore::try_acquire`] found no free unit.
    Empty,
    /// The deadline passed.
    TimedOut,
    /// There would be more than [`Semaphore::MAX`] units.
    Overflow,
    /// The kernel refused an operation.
    Sys(SysError),
}

impl fmt::Display for SemaphoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the semaphore has no free unit"),
            Self::TimedOut => f.write_str("the deadline passed before a unit was released"),
            Self::Overflow => write!(f, "the semaphore would have more than {} units", Semaphore::MAX),
            Self::Sys(error) => write!(f, "no unit was acquired: {error}"),
        }
    }
}

impl std::error::Error for SemaphoreError {}
