//! Condition variables: wait until another thread signals a change.
//!
//! One word counts the signals. A waiter reads it, unlocks the mutex, and suspends while the word stays the same. A
//! signal changes the word and takes the most urgent waiter from the kernel's queue. The only lock inside, `look`,
//! inherits priorities. A signaller holds it while it checks whether it owns the mutex to which the waiters would move.
//! A waiter that leaves also holds it, so that its mutex does not disappear during such a check.
//!
//! | mutex | signal by the mutex's owner | signal by another thread | broadcast |
//! |---|---|---|---|
//! | none | moves the first waiter to the mutex | wakes the first waiter | moves all waiters (by the owner), or wakes the first and moves the others |
//! | inherit | the kernel gives the first waiter the mutex, or queues it there (`FUTEX_CMP_REQUEUE_PI`) | the same | the same for all waiters |
//! | protect, a shared mutex or condition variable, or a robust mutex that does not inherit | wakes the first waiter | wakes the first waiter | wakes all waiters |
//!
//! A waiter that was moved executes only when it owns the mutex.
//!
//! The kernel sorts its queue only when a thread suspends. If a waiter's level has changed since ([`levels`]), a signal
//! wakes the waiter that is the most urgent one by now, and a broadcast wakes one after the other. If the kernel gives
//! the mutex to the waiters, the signal acts as a broadcast instead: the kernel sorts those that it queues at the
//! mutex.
//!
//! The kernel refuses to give a mutex to a waiter if that would close a cycle of owners, and only its deadline can then
//! wake a thread in that wait: the signal would be lost. Such a cycle goes through a lock that the waiter holds. So a
//! waiter that holds another lock with inheritance waits to be woken and locks the mutex itself, and a deadlock is
//! reported to it. The kernel serves all other waiters.
//!
//! A waiter that was woken or moved still has to leave the condition variable. A thread that
//! [destroys](RawCondvar::destroy) it waits for those waiters.

mod destroy;
mod levels;
mod signal;
#[cfg(test)]
mod tests;
mod wait;

pub(super) use levels::warm_up;

use super::error::{Acquired, RawError};
use super::raw::RawMutex;
use lockwright_sys::futex::{Arguments, Clock, Deadline, Ended, Scope};
use lockwright_sys::pi_word::PiWord;
use lockwright_sys::sched::gettid;
use lockwright_sys::{SysError, clock};
use std::ffi::c_long;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Flag: threads of all processes that map it may wait.
const SHARED: u32 = 1;
/// Flag: its waiters wait for a mutex with inheritance.
const INHERITS: u32 = 2;

/// Flag: deadlines of callers that name no clock are on the monotonic clock. This module does not use it; it is kept
/// for such callers.
const MONOTONIC: u32 = 4;

/// The amount that a waiter adds to the count of waiters.
const WAITER: u32 = 2;
/// Set in that count: a thread waits for the last waiter to leave.
const DESTROYED: u32 = 1;

/// A condition variable without its mutex type. It is as large as the C library's, and zeros are a private one. It must
/// not move while it is in use.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondvar {
    /// The number of signals.
    signals: AtomicU32,
    /// Twice the number of waiters, plus DESTROYED.
    waiters: AtomicU32,
    /// The mutex to which waiters are moved. Read and written while holding `look`.
    mutex: AtomicPtr<RawMutex>,
    flags: AtomicU32,
    /// The number of signals that moved waiters.
    moves: AtomicU32,
    /// Held while a signaller looks at the waiters' mutex, and while a waiter registers or leaves.
    look: PiWord,
    /// Always zero, like `unmarked`. Newer C libraries mark their shared condition variables here.
    unmarked_too: u32,
    /// The number of waiters that are not moved: once woken, they lock their mutex themselves.
    strangers: AtomicU32,
    /// Always zero. The C library marks its shared condition variables here.
    unmarked: u32,
    /// The number of waiters in the table of [`levels`].
    watched: AtomicU32,
    /// The number of waiters whose mutex is `mutex`.
    shown: AtomicU32,
}

/// A wait in progress: the mutex is unlocked and is not locked again yet.
#[derive(Clone, Copy, Debug)]
#[must_use = "a waiter is counted until it rejoins"]
pub struct Waiting {
    seen: u32,
    moves: u32,
    attributes: u32,
    way: Way,
    /// The caller still holds the mutex, because it had locked it more than once.
    is_kept: bool,
    /// The caller is counted as a real-time waiter of the mutex.
    is_counted: bool,
    /// The caller's place in the table of threads that may wait for the mutex.
    place: Option<usize>,
    /// The caller's entry in the table of waiters' levels.
    watched: Option<levels::Entry>,
}

/// How a waiter gets its mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It locks the mutex itself.
    Takes,
    /// A signal may move it to the mutex.
    Moved,
    /// The kernel gives it the mutex.
    Given,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitEnd {
    /// By a signal, or for no reason.
    Woken,
    /// The deadline passed without a signal since the wait began.
    TimedOut,
}

/// What a waiter has at the end of its wait.
#[derive(Debug)]
#[must_use = "the caller may hold the mutex"]
#[non_exhaustive]
pub struct Rejoined {
    /// How the mutex was locked again. After an error, the caller does not hold it.
    pub locked: Result<Acquired, RawError>,
    /// How the wait ended, or why the kernel refused it.
    pub end: Result<WaitEnd, SysError>,
}

impl RawCondvar {
    /// The offsets of the words that are always zero. In one of them, depending on its version, the C library marks its
    /// shared condition variables: glibc 2.41 and 2.43 in the first, glibc 2.36 in the second.
    pub const UNMARKED_AT: [usize; 2] =
        [std::mem::offset_of!(Self, unmarked_too), std::mem::offset_of!(Self, unmarked)];

    /// Creates a condition variable without waiters. `shared` makes it usable by the threads of several processes.
    #[must_use]
    pub const fn new(shared: bool) -> Self {
        Self {
            signals: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(std::ptr::null_mut()),
            flags: AtomicU32::new(if shared { SHARED } else { 0 }),
            moves: AtomicU32::new(0),
            look: PiWord::new(),
            unmarked_too: 0,
            strangers: AtomicU32::new(0),
            unmarked: 0,
            watched: AtomicU32::new(0),
            shown: AtomicU32::new(0),
        }
    }

    /// Returns the same condition variable with another clock for callers that name none. [`RawCondvar::new`] sets the
    /// real-time clock.
    #[must_use]
    pub const fn with_clock(self, clock: Clock) -> Self {
        let mut flags = self.flags.into_inner();
        flags = match clock {
            Clock::Monotonic => flags | MONOTONIC,
            Clock::Realtime => flags & !MONOTONIC,
        };
        Self { flags: AtomicU32::new(flags), ..self }
    }

    /// Returns the clock for callers that name none.
    pub fn clock(&self) -> Clock {
        // ORDERING: Relaxed: set before other threads use it.
        if self.flags.load(Ordering::Relaxed) & MONOTONIC == 0 { Clock::Realtime } else { Clock::Monotonic }
    }

    fn scope(&self) -> Scope {
        // ORDERING: Relaxed: set before other threads use it.
        if self.flags.load(Ordering::Relaxed) & SHARED == 0 { Scope::Private } else { Scope::Shared }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether a thread waits. If not, a signal or a broadcast does nothing.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        // ORDERING: Relaxed: a waiter that a signal is meant for was counted before it unlocked the mutex, and the
        // caller has had the mutex since, or knows of the waiter by other means that order memory.
        self.waiters.load(Ordering::Relaxed) >= WAITER
    }

    /// Calls `look` while no other thread looks. Returns `None` if the kernel refuses that: it lacks memory, or the
    /// heir of an ended thread does not execute.
    ///
    /// BOUND: the looks of other threads, a few instructions each, at the caller's priority.
    fn looking<T>(&self, look: impl FnOnce() -> T) -> Option<T> {
        let me = gettid();
        self.look.lock_or_inherit(me).ok()?;
        let seen = look();
        let _ = self.look.unlock(me);
        Some(seen)
    }
}

/// How [`RawCondvar::suspend`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Suspended(Ended);

impl Suspended {
    /// The wait was given up, and its end is unknown. The thread was perhaps woken or handed the mutex.
    pub const GIVEN_UP: Self = Self(Ended::Woken);

    /// Converts the kernel's answer to a [`Suspension`]: 0 or more, or a negative error number.
    #[must_use]
    pub fn answered(answer: i64) -> Self {
        Self(Ended::of(answer))
    }

    pub(crate) fn ended(self) -> Ended {
        self.0
    }
}

/// The system call (`futex`) that suspends a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Suspension {
    /// The arguments in order. The fourth, the address of a `timespec`, is 0: the caller replaces it by the address of
    /// `time`, if there is one.
    pub arguments: [c_long; 6],
    /// The deadline with the fields of a `timespec`: seconds and nanoseconds since the clock's zero.
    pub time: Option<[c_long; 2]>,
}

impl Suspension {
    pub(crate) fn new(arguments: &Arguments<'_>, until: Option<Deadline>) -> Self {
        let time = until.map(|until| clock::timespec(until.at_ns));
        Self { arguments: arguments.in_order(), time: time.map(|time| [time.tv_sec, time.tv_nsec]) }
    }
}

/// How [`RawCondvar::destroy`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Destroyed {
    /// The condition variable is no longer in use.
    Done,
    /// A thread waits, or was moved to an inheriting mutex that the caller holds, or has not left for 1 s, as the
    /// waiters of the parent appear in a child process. Nothing has changed.
    InUse,
}
