//! Barriers: each of a number of threads waits until all have arrived.
//!
//! The last thread to arrive in a round is its leader. It does not suspend, and it wakes the others, the most urgent
//! first. The barrier can be used again at once: threads may arrive for the next round while others of this round have
//! yet to execute.
//!
//! Nothing spins, and nothing allocates. An arrival is two atomic exchanges; the leader makes one system call, and each
//! other thread one.
//!
//! # Bound
//! A thread waits for the last arrival. A barrier has no owner, so no thread inherits a priority. The time of the
//! leader's own call in the kernel grows with the number of threads.
//!
//! # Limits
//! - The kernel sorts waiting threads by the priority with which they began to wait. All of a round are woken together,
//!   so the order decides only how soon each one is ready to execute.
//! - If a thread ends without arriving, the others wait for ever.
//! - In a child of `fork`, the arrivals of the parent's threads still count.
//!
//! # Examples
//! ```
//! use lockwright::barrier::Barrier;
//!
//! let barrier = Barrier::new(3);
//! let leaders: Vec<bool> = std::thread::scope(|scope| {
//!     let threads = [(); 3].map(|()| scope.spawn(|| barrier.wait()));
//!     threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<_, _>>()
//! })?;
//! assert_eq!(leaders.iter().filter(|is_leader| **is_leader).count(), 1);
//! # Ok::<(), lockwright::SysError>(())
//! ```

#[cfg(test)]
mod walk;

use crate::mutex::Destroyed;
use lockwright_sys::futex::{self, Deadline, Ended, Scope};
use lockwright_sys::{KeepErrno, SysError, clock};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The amount that a thread inside a call adds to the count of such threads.
const CALLER: u32 = 2;
/// Set in that count: a thread waits for the last of them to leave.
const DESTROYED: u32 = 1;
/// Nanoseconds after which a destroying thread looks at the count again.
const LEAVE_NAP_NS: u64 = 10_000_000;
/// Nanoseconds without a leaving thread after which the barrier counts as in use.
const LEAVE_MAX_NS: u64 = 1_000_000_000;

/// How many threads have arrived in the present round, and the number of this round, which wraps to 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State(u64);

impl State {
    const fn of(arrived: u32, round: u32) -> Self {
        Self((arrived as u64) << 32 | round as u64)
    }

    const fn arrived(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn round(self) -> u32 {
        self.0 as u32
    }

    /// A thread arrives. The last one of `count` begins the next round.
    const fn arrive(self, count: u32) -> Self {
        if self.arrived() + 1 < count {
            Self::of(self.arrived() + 1, self.round())
        } else {
            Self::of(0, self.round().wrapping_add(1))
        }
    }

    /// A thread that arrived in this round goes away.
    const fn withdraw(self) -> Self {
        Self::of(self.arrived() - 1, self.round())
    }
}

/// A barrier for a number of threads. It must not move while it is in use.
///
/// # Bound
/// See the [module](self).
#[repr(C)]
pub struct Barrier {
    state: AtomicU64,
    count: AtomicU32,
    /// 1 if several processes use it.
    shared: AtomicU32,
    /// How many threads are inside [`Barrier::wait`], times CALLER, plus DESTROYED.
    callers: AtomicU32,
    unused: AtomicU32,
}

const _: () = assert!(size_of::<Barrier>() == 24);

impl Barrier {
    /// Creates a barrier for `count` threads of this process. With 0 or 1, every thread is a leader.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self::make(count, 0)
    }

    /// Creates a barrier for `count` threads of all processes that map it.
    #[must_use]
    pub const fn shared(count: u32) -> Self {
        Self::make(count, 1)
    }

    const fn make(count: u32, shared: u32) -> Self {
        Self {
            state: AtomicU64::new(0),
            count: AtomicU32::new(count),
            shared: AtomicU32::new(shared),
            callers: AtomicU32::new(0),
            unused: AtomicU32::new(0),
        }
    }

    /// Arrives, and waits until all threads of the round have arrived. Returns whether the caller is the leader; each
    /// round has one.
    ///
    /// # Errors
    /// The kernel's, if it refuses to suspend the caller. The caller then has not arrived.
    pub fn wait(&self) -> Result<bool, SysError> {
        // The last access is that to the count of callers. After it, another thread may free the memory.
        let (scope, callers) = (self.scope(), std::ptr::from_ref(&self.callers));
        // ORDERING: Relaxed: the exchange of the state publishes it.
        self.callers.fetch_add(CALLER, Ordering::Relaxed);
        let waited = self.arrive(scope);
        // ORDERING: Release pairs with the Acquire in `destroy`, so that all accesses of the caller come before it.
        if self.callers.fetch_sub(CALLER, Ordering::Release) == CALLER | DESTROYED {
            let _errno = KeepErrno::now();
            futex::wake(scope, callers, i32::MAX);
        }
        waited
    }

    fn arrive(&self, scope: Scope) -> Result<bool, SysError> {
        // ORDERING: Relaxed: set before other threads use it.
        let count = self.count.load(Ordering::Relaxed);
        let _errno = KeepErrno::now();
        let mut state = self.load();
        // BOUND: a round fails because another thread has arrived.
        let round = loop {
            let next = state.arrive(count);
            // ORDERING: AcqRel pairs with itself: what a thread did before it arrived comes before what others do after
            // they have waited.
            match self.state.compare_exchange(state.0, next.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if next.round() != state.round() => {
                    if count > 1 {
                        futex::wake(scope, futex::low_half(&self.state), i32::MAX);
                    }
                    return Ok(true);
                }
                Ok(_) => break state.round(),
                Err(now) => state = State(now),
            }
        };
        // BOUND: the last arrival. A round ends with a signal, or with a wake-up that was meant for a former user of
        // the address.
        while self.load().round() == round {
            if let Ended::Refused(errno) = futex::wait(scope, futex::low_half(&self.state), round, None)
                && self.withdraws(round)
            {
                return Err(SysError { call: "futex wait", errno });
            }
        }
        Ok(false)
    }

    /// Takes back the arrival of the caller. Returns whether the round had not ended.
    #[cold]
    fn withdraws(&self, round: u32) -> bool {
        let mut state = self.load();
        // BOUND: a round fails because another thread has arrived.
        while state.round() == round {
            // ORDERING: as in `arrive`.
            match self.state.compare_exchange(state.0, state.withdraw().0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    /// Ends the use of the barrier: waits until all threads have left [`Barrier::wait`], so that its memory can be
    /// freed. A thread may call this as soon as its own wait has returned.
    ///
    /// # Bound
    /// Until each woken thread has executed some instructions; at most 1 s after the last one left. The barrier is in
    /// use if a thread waits for a round, or if no thread leaves for 1 s.
    pub fn destroy(&self) -> Destroyed {
        let _errno = KeepErrno::now();
        // ORDERING: Acquire, here and below, pairs with the Release in `wait`.
        let mut callers = self.callers.fetch_or(DESTROYED, Ordering::Acquire) | DESTROYED;
        let mut left_ns = clock::now_ns();
        // BOUND: see above; each round ends after LEAVE_NAP_NS.
        while callers >= CALLER {
            let now_ns = clock::now_ns();
            if self.load().arrived() > 0 || now_ns.saturating_sub(left_ns) > LEAVE_MAX_NS {
                self.callers.fetch_and(!DESTROYED, Ordering::Relaxed);
                return Destroyed::InUse;
            }
            let until = Deadline::monotonic(now_ns + LEAVE_NAP_NS);
            let _ = futex::wait(self.scope(), &self.callers, callers, Some(until));
            let before = std::mem::replace(&mut callers, self.callers.load(Ordering::Acquire));
            if callers != before {
                left_ns = clock::now_ns();
            }
        }
        Destroyed::Done
    }

    #[inline]
    fn load(&self) -> State {
        // ORDERING: Acquire pairs with the AcqRel of those that arrive.
        State(self.state.load(Ordering::Acquire))
    }

    fn scope(&self) -> Scope {
        // ORDERING: Relaxed: set before other threads use it.
        if self.shared.load(Ordering::Relaxed) != 0 { Scope::Shared } else { Scope::Private }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("count", &self.count)
            .field("arrived", &self.load().arrived())
            .finish_non_exhaustive()
    }
}
