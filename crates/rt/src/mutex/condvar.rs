//! Condition variables: wait until another thread says that something changed.
//!
//! One word counts the signals. A waiter reads it, gives the mutex back, and suspends while the word stays so; a signal changes the word and
//! takes the most urgent waiter off it. Nothing here is locked meanwhile but for one look: who signals looks whether it holds the mutex the
//! waiters would be moved to, and a waiter that leaves, with which the mutex may go, waits for the end of such a look. Those who look inherit.
//!
//! | mutex | signal, its holder | signal, somebody else | broadcast |
//! |---|---|---|---|
//! | none, protect | moves the first waiter to the mutex | wakes it | moves all (its holder) or all but the first |
//! | inherit | the kernel gives it the mutex, or lets it wait for that (`FUTEX_CMP_REQUEUE_PI`) | the same | the same |
//! | one of both is for several processes, or the mutex robust and does not inherit | wakes it | wakes it | wakes all |
//!
//! A waiter that was moved executes when it has the mutex, and not before.

use super::raw::{Acquired, Limit, RawError, RawMutex, kind};
use crate::pi_word::PiWord;
use crate::sys::SysError;
use crate::sys::futex::{self, Deadline, Ended, Scope};
use crate::sys::sched::gettid;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Threads of all processes that map it may wait.
const SHARED: u32 = 1;
/// Its waiters wait for a mutex with inheritance.
const INHERITS: u32 = 2;

/// How often a signal may find that another one came between. More would need as many signals at one instant.
const ATTEMPTS_MAX: u32 = 1_000;

/// A condition variable, as memory: as large as the C library's, and zeros are one for this process. Never move it while anybody uses it.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondvar {
    /// Counts signals.
    signals: AtomicU32,
    waiters: AtomicU32,
    /// The mutex of the last who came to wait, where its waiters are moved to it.
    mutex: AtomicPtr<RawMutex>,
    flags: AtomicU32,
    /// Counts signals that moved somebody.
    moves: AtomicU32,
    /// Had by who looks at the mutex of the waiters, and by waiters that leave.
    look: PiWord,
    unused: [u32; 5],
}

/// Between giving the mutex back and taking it again.
#[derive(Clone, Copy, Debug)]
#[must_use = "a waiter is counted until it rejoins"]
pub struct Waiting {
    seen: u32,
    moves: u32,
    kind: u32,
    /// The caller has the mutex still: it had taken it more than once.
    is_kept: bool,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEnd {
    /// By a signal, or for no reason.
    Woken,
    /// The time has come, and no signal since the wait began.
    TimedOut,
}

impl RawCondvar {
    /// With nobody waiting; `shared` for threads of several processes.
    #[must_use]
    pub const fn new(shared: bool) -> Self {
        Self {
            signals: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(std::ptr::null_mut()),
            flags: AtomicU32::new(if shared { SHARED } else { 0 }),
            moves: AtomicU32::new(0),
            look: PiWord::new(),
            unused: [0; 5],
        }
    }

    fn scope(&self) -> Scope {
        // ORDERING: Relaxed: set before anybody else knows it.
        if self.flags.load(Ordering::Relaxed) & SHARED == 0 { Scope::Private } else { Scope::Shared }
    }

    /// Whether somebody waits.
    pub fn is_waited_for(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Gives `mutex`, which the caller holds, back and waits; takes it again whatever happens.
    ///
    /// # Errors
    /// Those of the mutex: then the caller does not hold it.
    ///
    /// # Bound
    /// Until a signal, or `until`; then that of the mutex.
    pub fn wait(&self, mutex: &RawMutex, until: Option<Deadline>) -> Result<(Acquired, WaitEnd), RawError> {
        let waiting = self.enlist(mutex)?;
        let ended = self.suspend(&waiting, mutex, until);
        self.rejoin(waiting, mutex, ended)
    }

    /// First part of a wait: the caller is counted, and gives the mutex back.
    ///
    /// # Errors
    /// Those of the unlock: then nothing has changed.
    pub fn enlist(&self, mutex: &RawMutex) -> Result<Waiting, RawError> {
        let kind = mutex.kind();
        // ORDERING: Relaxed, here and below: whoever signals after the unlock sees all of this by the mutex; who signals without
        // it may come before.
        if kind & kind::INHERIT != 0 {
            self.flags.fetch_or(INHERITS, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!INHERITS, Ordering::Relaxed);
        }
        let target = if self.moves(kind) { std::ptr::from_ref(mutex).cast_mut() } else { std::ptr::null_mut() };
        self.mutex.store(target, Ordering::Relaxed);
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // ORDERING: SeqCst, as the counts and the changes of a signal: one that sees no waiter comes before this load, which sees its change.
        let seen = self.signals.load(Ordering::SeqCst);
        let moves = self.moves.load(Ordering::Relaxed);
        match mutex.unlock() {
            Ok(()) => {
                let is_kept = kind & kind::TYPE == kind::RECURSIVE && mutex.is_mine();
                Ok(Waiting { seen, moves, kind, is_kept })
            }
            Err(error) => {
                self.waiters.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Second part: suspends.
    pub fn suspend(&self, waiting: &Waiting, mutex: &RawMutex, until: Option<Deadline>) -> Suspended {
        let scope = self.scope();
        let waits = || futex::wait_in(scope, &self.signals, waiting.seen, until);
        Suspended(if waiting.is_kept || !self.moves(waiting.kind) {
            waits()
        } else if waiting.kind & kind::INHERIT != 0 {
            mutex.while_given(|| futex::wait_requeue_pi(scope, &self.signals, waiting.seen, until, mutex.word()))
        } else {
            mutex.while_moved(waits)
        })
    }

    /// Whether waiters are moved to such a mutex. Across processes a signal does not know where that is.
    fn moves(&self, kind: u32) -> bool {
        self.scope() == Scope::Private && RawMutex::scope(kind) == Scope::Private
    }

    /// Last part: takes the mutex again.
    ///
    /// # Errors
    /// Those of the lock.
    pub fn rejoin(
        &self,
        waiting: Waiting,
        mutex: &RawMutex,
        Suspended(ended): Suspended,
    ) -> Result<(Acquired, WaitEnd), RawError> {
        // A signal that came meanwhile was perhaps for this one: it must not get lost.
        // ORDERING: Relaxed: of a time-out it is known already that no order is meant.
        let is_signalled = self.signals.load(Ordering::Relaxed) != waiting.seen;
        // Where nobody was moved since, it was woken off here, and what was handed to a waiter of the mutex is not its.
        // ORDERING: Relaxed: the kernel orders a move and what wakes who was moved.
        let may_be_moved = self.moves.load(Ordering::Relaxed) != waiting.moves;
        // ORDERING: Release pairs with the Acquire of `looks`.
        self.waiters.fetch_sub(1, Ordering::Release);
        if waiting.kind & kind::INHERIT == 0 && self.moves(waiting.kind) {
            // Who looks at the mutex does not any more; who comes later finds that this one does not wait.
            self.looking(|| ());
        }
        let acquired = if waiting.is_kept {
            mutex.lock(Limit::Never)
        } else if waiting.kind & kind::INHERIT != 0 {
            mutex.lock_moved()
        } else {
            mutex.lock_after_wait(ended == Ended::Woken && may_be_moved)
        }?;
        match ended {
            Ended::TimedOut if !is_signalled => Ok((acquired, WaitEnd::TimedOut)),
            Ended::Refused(errno) if !matches!(errno, libc::EDEADLK) => {
                // The mutex is the caller's all the same; what is told is why it did not wait.
                let _ = mutex.unlock();
                Err(RawError::Sys(SysError { call: "futex wait", errno }))
            }
            _ => Ok((acquired, WaitEnd::Woken)),
        }
    }

    /// Takes the most urgent waiter off.
    ///
    /// # Bound
    /// One system call where somebody waits, none otherwise; one more for each signal at the same instant.
    pub fn signal(&self) {
        self.take_off(false);
    }

    /// Takes all waiters off.
    ///
    /// # Bound
    /// That of [`RawCondvar::signal`]; the kernel's own work grows with the waiters.
    pub fn broadcast(&self) {
        self.take_off(true);
    }

    /// Does `look` while no other looks.
    ///
    /// BOUND: the looks of others, some instructions each, at the caller's priority.
    fn looking<T>(&self, look: impl FnOnce() -> T) -> T {
        let me = gettid();
        // Refused it is not: a thread takes it once, and one that ended with it is inherited from.
        let taken = self.look.lock_or_inherit(me);
        let seen = look();
        if taken.is_ok() {
            let _ = self.look.unlock(me);
        }
        seen
    }

    /// The mutex that waiters are moved to, and whether the caller holds it; then it says that somebody waits. `None` where nobody waits.
    fn looks(&self) -> Option<(bool, *const RawMutex)> {
        self.looking(|| {
            // ORDERING: Acquire pairs with the Release of a waiter that left: its mutex is not looked at any more.
            if self.waiters.load(Ordering::Acquire) == 0 {
                return None;
            }
            let mutex = self.mutex.load(Ordering::Relaxed);
            if mutex.is_null() {
                return Some((false, mutex.cast_const()));
            }
            // SAFETY: somebody waits, so its mutex is there, and stays until the look is over: see `rejoin`.
            let is_mine = unsafe { (*mutex).is_mine() };
            if is_mine {
                // SAFETY: the caller holds it.
                unsafe { (*mutex).announce_waiters() };
            }
            Some((is_mine, mutex.cast_const()))
        })
    }

    fn take_off(&self, all: bool) {
        // ORDERING: SeqCst: see `enlist`.
        let mut now = self.signals.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let scope = self.scope();
        // ORDERING: Relaxed, here and below: see `enlist`.
        let mutex = self.mutex.load(Ordering::Relaxed);
        if mutex.is_null() {
            futex::wake_in(scope, &raw const self.signals, if all { i32::MAX } else { 1 });
            return;
        }
        let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0;
        let word = RawMutex::word_of(mutex);
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let is_done = if inherits {
                let others = if all { i32::MAX } else { 0 };
                match futex::cmp_requeue_pi(scope, &self.signals, now, others, word) {
                    Ok(_) => true,
                    Err(libc::EAGAIN) => false,
                    // Whoever waits there waits in another way.
                    Err(_) => break,
                }
            } else {
                let Some((is_mine, mutex)) = self.looks() else { return };
                if mutex.is_null() {
                    break;
                }
                let word = RawMutex::word_of(mutex);
                let (wake, moved) = match (is_mine, all) {
                    (true, true) => (0, i32::MAX),
                    (true, false) => (0, 1),
                    // Who is woken takes the mutex as one behind whom others wait.
                    (false, true) => (1, i32::MAX),
                    (false, false) => (1, 0),
                };
                if moved > 0 {
                    self.moves.fetch_add(1, Ordering::Relaxed);
                }
                futex::requeue(scope, &self.signals, now, wake, moved, word).is_some()
            };
            if is_done {
                return;
            }
            // ORDERING: Relaxed: only compared with.
            now = self.signals.load(Ordering::Relaxed);
        }
        futex::wake_in(scope, &raw const self.signals, if all { i32::MAX } else { 1 });
    }
}

/// How [`RawCondvar::suspend`] ended.
#[derive(Clone, Copy, Debug)]
pub struct Suspended(Ended);

impl Suspended {
    /// Not at all: the wait was given up in between.
    pub const GIVEN_UP: Self = Self(Ended::Interrupted);
}

impl RawMutex {
    /// Takes a mutex the kernel may have given to the caller already.
    fn lock_moved(&self) -> Result<Acquired, RawError> {
        if self.is_mine() { self.settle_moved() } else { self.lock(Limit::Never) }
    }
}
