//! Condition variables: wait until another thread signals a change.
//!
//! One word counts the signals. A waiter reads it, unlocks the mutex, and suspends while the word stays the same. A
//! signal changes the word and takes the most urgent waiter from the kernel's queue. The only lock inside, `look`,
//! inherits priorities. A signaller holds it while it checks whether it owns the mutex to which the waiters would move.
//! A waiter that leaves holds it too, so that its mutex does not disappear during such a check.
//!
//! | mutex | signal by the mutex's owner | signal by another thread | broadcast |
//! |---|---|---|---|
//! | none, protect | moves the first waiter to the mutex | wakes the first waiter | moves all waiters (by the owner), or wakes the first and moves the others |
//! | inherit | the kernel gives the first waiter the mutex, or queues it there (`FUTEX_CMP_REQUEUE_PI`) | the same | the same for all waiters |
//! | shared mutex or condition variable, or a robust mutex that does not inherit | wakes the first waiter | wakes the first waiter | wakes all waiters |
//!
//! A waiter that was moved executes only when it owns the mutex.
//!
//! The kernel refuses to give a mutex to a waiter if that would close a cycle of owners, and only its deadline can then
//! wake a thread in that wait: the signal would be lost. Such a cycle goes through a mutex that the waiter holds. So a
//! waiter that holds another inheriting mutex waits to be woken and locks the mutex itself, and a deadlock is reported
//! to it. The kernel serves all other waiters.
//!
//! A waiter that was woken or moved still has to leave the condition variable. A thread that
//! [destroys](RawCondvar::destroy) it waits for those waiters.

use super::cycle;
use super::error::{Acquired, Limit, RawError};
use super::kind;
use super::raw::RawMutex;
use lockwright_sys::futex::{self, Arguments, Clock, Deadline, Ended, Scope};
use lockwright_sys::pi_word::PiWord;
use lockwright_sys::sched::gettid;
use lockwright_sys::{KeepErrno, SysError, clock, held};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

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
/// Nanoseconds after which a destroying thread looks at the count again.
const LEAVE_NAP_NS: u64 = 10_000_000;
/// Nanoseconds without a leaving waiter after which the remaining ones count as gone. They were killed, or are threads
/// of the process that forked this one.
const LEAVE_MAX_NS: u64 = 1_000_000_000;

/// Nanoseconds between two attempts to move waiters if the kernel lacks memory.
const NO_MEMORY_NAP_NS: u64 = 100_000;

/// How often a signal may find that another signal came in between. More would need as many signals at the same
/// instant.
const ATTEMPTS_MAX: u32 = 1_000;

/// The kernel refuses to give a mutex to a waiter, for example because of a system call filter. Then all waiters wait
/// to be woken.
static GIVING_IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// A condition variable without its mutex type. It is as large as the C library's, and zeros are a private one. It must
/// not move while anybody uses it.
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
    /// The number of waiters whose mutex is `mutex`.
    shown: AtomicU32,
    /// The number of waiters that are not moved: once woken, they lock their mutex themselves.
    strangers: AtomicU32,
    unused: [u32; 3],
}

/// A wait in progress: the mutex is unlocked and is not locked again yet.
#[derive(Clone, Copy, Debug)]
#[must_use = "a waiter is counted until it rejoins"]
pub struct Waiting {
    seen: u32,
    moves: u32,
    kind: u32,
    way: Way,
    /// The caller still holds the mutex, because it had locked it more than once.
    is_kept: bool,
    /// The caller is counted as a real-time waiter of the mutex.
    is_counted: bool,
    /// The caller's place in the table of threads that may wait for the mutex.
    place: Option<usize>,
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

/// When the waiters that a signal took from the queue will leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaving {
    /// When they execute.
    Soon,
    /// When they own the mutex, which another thread holds.
    Later,
    /// When the caller unlocks the mutex.
    WithTheMutex,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEnd {
    /// By a signal, or for no reason.
    Woken,
    /// The deadline passed without a signal since the wait began.
    TimedOut,
}

impl RawCondvar {
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
            shown: AtomicU32::new(0),
            strangers: AtomicU32::new(0),
            unused: [0; 3],
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

    /// Whether a thread waits.
    pub fn is_waited_for(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        self.waiters.load(Ordering::Relaxed) >= WAITER
    }

    /// Unlocks `mutex`, which the caller holds, waits, and locks it again in any case.
    ///
    /// # Errors
    /// Those of the mutex; then the caller does not hold it.
    ///
    /// # Bound
    /// Until a signal or `until`; then the bound of the mutex.
    pub fn wait(&self, mutex: &RawMutex, until: Option<Deadline>) -> Result<(Acquired, WaitEnd), RawError> {
        // SAFETY: the caller rejoins below, and the mutex is borrowed until then.
        let mut waiting = unsafe { self.enlist(mutex, true) }?;
        let ended = self.suspend(&mut waiting, mutex, until);
        self.rejoin(waiting, mutex, ended)
    }

    /// First part of a wait: counts the caller as a waiter and unlocks the mutex.
    ///
    /// `may_be_given` allows the kernel to give the caller a mutex that inherits. It must be false if another thread
    /// may destroy the condition variable while it holds that mutex, because the destroying thread would wait for a
    /// waiter that waits for the mutex. Without it, or if the caller holds another inheriting mutex, the caller locks
    /// the mutex itself after it is woken.
    ///
    /// # Errors
    /// Those of the unlock; then nothing has changed.
    ///
    /// # Safety
    /// The caller calls [`RawCondvar::rejoin`] or [`RawCondvar::withdraw`] afterwards, and the mutex stays where it is
    /// until then.
    pub unsafe fn enlist(&self, mutex: &RawMutex, may_be_given: bool) -> Result<Waiting, RawError> {
        let kind = mutex.kind();
        if kind::is_unlocked_by_owner(kind) && !mutex.is_mine() {
            return Err(RawError::NotOwner);
        }
        // ORDERING: Relaxed: a hint.
        let may_be_given = may_be_given && !GIVING_IS_REFUSED.load(Ordering::Relaxed);
        let is_bindable = kind & kind::INHERIT == 0 || may_be_given && !held::holds_two();
        // ORDERING: Relaxed: read before the mutex is shown. A signaller counts its move while it holds `look`, and one
        // that can move this waiter takes `look` after `bind` did.
        let moves = self.moves.load(Ordering::Relaxed);
        let way = self.bind(kind, mutex, is_bindable);
        self.waiters.fetch_add(WAITER, Ordering::SeqCst);
        // ORDERING: SeqCst, like the counts and changes of a signal: a signal that sees no waiter comes before this
        // load, which sees its change.
        let seen = self.signals.load(Ordering::SeqCst);
        mutex.go_away();
        match mutex.unlock() {
            Ok(()) => {
                let is_kept = kind & kind::TYPE == kind::RECURSIVE && mutex.is_mine();
                Ok(Waiting { seen, moves, kind, way, is_kept, is_counted: false, place: None })
            }
            Err(error) => {
                mutex.come_back();
                self.unbind(way);
                self.leave();
                Err(error)
            }
        }
    }

    /// Like [`RawCondvar::enlist`], for a caller whose mutex is not a [`RawMutex`]. The caller unlocks its mutex
    /// itself, suspends, calls [`RawCondvar::leave_stranger`] in any case, and then locks its mutex.
    pub fn enlist_stranger(&self) -> Waiting {
        // As in `bind`: counted under `look`, so that no signal moves waiters without having counted this stranger.
        let be_stranger = || self.strangers.fetch_add(1, Ordering::Relaxed);
        if self.scope() == Scope::Shared || self.looking(be_stranger).is_none() {
            be_stranger();
        }
        // ORDERING: as in `enlist`.
        self.waiters.fetch_add(WAITER, Ordering::SeqCst);
        let (seen, moves) = (self.signals.load(Ordering::SeqCst), self.moves.load(Ordering::Relaxed));
        Waiting { seen, moves, kind: 0, way: Way::Takes, is_kept: false, is_counted: false, place: None }
    }

    /// Ends a wait that began with [`RawCondvar::enlist_stranger`]. `ended` is `None` if the thread was cancelled: a
    /// signal that was perhaps meant for it then goes on to another waiter.
    pub fn leave_stranger(&self, waiting: Waiting, ended: Option<Suspended>) -> WaitEnd {
        let is_signalled = self.is_signalled(&waiting);
        if ended.is_none() && is_signalled {
            self.signal();
        }
        self.unbind(waiting.way);
        self.leave();
        match ended {
            Some(Suspended(Ended::TimedOut)) if !is_signalled => WaitEnd::TimedOut,
            _ => WaitEnd::Woken,
        }
    }

    /// Shows the caller's mutex to signals, if waiters can be moved to it and no present waiter uses another one.
    fn bind(&self, kind: u32, mutex: &RawMutex, is_bindable: bool) -> Way {
        let inherits = kind & kind::INHERIT != 0;
        let is_kept = kind & kind::TYPE == kind::RECURSIVE && mutex.is_taken_again();
        let is_bindable = is_bindable && self.moves(kind) && !is_kept;
        let be_stranger = || {
            self.strangers.fetch_add(1, Ordering::Relaxed);
            false
        };
        let bind = || {
            // ORDERING: Relaxed, here and below: only the holder of `look` uses these fields.
            let (shown, target) = (self.shown.load(Ordering::Relaxed), std::ptr::from_ref(mutex).cast_mut());
            if !is_bindable || shown > 0 && self.mutex.load(Ordering::Relaxed) != target {
                return be_stranger();
            }
            if shown == 0 {
                self.mutex.store(target, Ordering::Relaxed);
                let flags = self.flags.load(Ordering::Relaxed) & !INHERITS;
                self.flags.store(flags | if inherits { INHERITS } else { 0 }, Ordering::Relaxed);
            }
            // An atomic change, because a waiter that the kernel refuses `look` leaves without it.
            self.shown.fetch_add(1, Ordering::Relaxed);
            true
        };
        // Nothing is bound between processes, and `look` is for the threads of one process.
        let is_bound =
            if self.scope() == Scope::Shared { bind() } else { self.looking(bind).unwrap_or_else(be_stranger) };
        match (is_bound, inherits) {
            (false, _) => Way::Takes,
            (true, false) => Way::Moved,
            (true, true) => Way::Given,
        }
    }

    /// Ends what `bind` began: the caller's mutex is not shown any more, and no look at it is in progress.
    fn unbind(&self, way: Way) {
        let count = if way == Way::Takes { &self.strangers } else { &self.shown };
        let unbind = || count.fetch_sub(1, Ordering::Relaxed);
        if self.scope() == Scope::Shared || self.looking(unbind).is_none() {
            unbind();
        }
    }

    /// Leaves the condition variable: the last access of a waiter.
    fn leave(&self) {
        let waiters = std::ptr::from_ref(&self.waiters);
        let scope = self.scope();
        // ORDERING: Release pairs with the Acquire in `destroy`, so that all accesses of the waiter come before it.
        if self.waiters.fetch_sub(WAITER, Ordering::Release) == WAITER | DESTROYED {
            futex::wake(scope, waiters, i32::MAX);
        }
    }

    /// Second part of a wait: suspends the caller.
    pub fn suspend(&self, waiting: &mut Waiting, mutex: &RawMutex, until: Option<Deadline>) -> Suspended {
        let _errno = KeepErrno::now();
        let arguments = self.expect(waiting, mutex, until.map(|until| until.clock));
        let ended = Suspended(futex::call(&arguments, until));
        self.resumed(waiting, mutex);
        ended
    }

    /// Returns the system call that [`RawCondvar::suspend`] makes, for callers that make it themselves from a
    /// cancellation point. The condition variable and the mutex stay where they are meanwhile. The caller calls
    /// [`RawCondvar::resumed`] or [`RawCondvar::withdraw`] afterwards.
    pub fn suspension(&self, waiting: &mut Waiting, mutex: &RawMutex, until: Option<Deadline>) -> Suspension {
        Suspension {
            arguments: self.expect(waiting, mutex, until.map(|until| until.clock)).in_order(),
            time: until.map(|until| clock::timespec(until.at_ns)),
        }
    }

    fn expect(&self, waiting: &mut Waiting, mutex: &RawMutex, clock: Option<Clock>) -> Arguments {
        let scope = self.scope();
        if waiting.kind & kind::CHECKED != 0 && waiting.way != Way::Takes {
            waiting.place = cycle::publish_waiting(gettid(), mutex, &self.signals, waiting.seen);
        }
        match waiting.way {
            Way::Given => {
                mutex.expect_gift();
                return Arguments::wait_requeue_pi(scope, &self.signals, waiting.seen, clock, mutex.word());
            }
            Way::Moved => waiting.is_counted = mutex.expect_move(),
            Way::Takes => {}
        }
        Arguments::wait(scope, &self.signals, waiting.seen, clock)
    }

    /// Ends what [`RawCondvar::suspension`] began.
    pub fn resumed(&self, waiting: &mut Waiting, mutex: &RawMutex) {
        if waiting.place.is_some() {
            cycle::forget_place(waiting.place.take());
        }
        match waiting.way {
            Way::Given => mutex.expected_gift(),
            Way::Moved => mutex.expected_move(std::mem::take(&mut waiting.is_counted)),
            Way::Takes => {}
        }
    }

    /// Whether the wait was interrupted: no signal came since it began, and the deadline has not passed. The caller may
    /// wait again.
    pub fn is_disturbed(&self, waiting: &Waiting, Suspended(ended): Suspended) -> bool {
        ended == Ended::Interrupted && !self.is_signalled(waiting)
    }

    fn is_signalled(&self, waiting: &Waiting) -> bool {
        // ORDERING: Relaxed: a wait that timed out is not ordered after a signal.
        self.signals.load(Ordering::Relaxed) != waiting.seen
    }

    /// Whether waiters are moved to a mutex of this kind. Not across processes, where a signaller does not know the
    /// mutex's address.
    fn moves(&self, kind: u32) -> bool {
        self.scope() == Scope::Private && RawMutex::scope(kind) == Scope::Private
    }

    /// Last part of a wait: locks the mutex again.
    ///
    /// # Errors
    /// Those of the lock.
    pub fn rejoin(
        &self,
        waiting: Waiting,
        mutex: &RawMutex,
        Suspended(ended): Suspended,
    ) -> Result<(Acquired, WaitEnd), RawError> {
        let _errno = KeepErrno::now();
        // A signal that came meanwhile was perhaps meant for this waiter, and must not get lost.
        let is_signalled = self.is_signalled(&waiting);
        // If no signal moved a waiter since the wait began, the caller was woken from the condition variable, and a
        // mutex that was handed to a waiter is not its own.
        // ORDERING: Relaxed: the kernel orders a move before it wakes the moved waiter.
        let may_be_moved = self.moves.load(Ordering::Relaxed) != waiting.moves;
        self.unbind(waiting.way);
        self.leave();
        let acquired = if waiting.is_kept {
            mutex.lock(Limit::Never)
        } else if waiting.kind & kind::INHERIT != 0 {
            mutex.lock_moved()
        } else {
            mutex.lock_after_wait(ended == Ended::Woken && may_be_moved)
        };
        mutex.come_back();
        let acquired = acquired?;
        match ended {
            Ended::TimedOut if !is_signalled => Ok((acquired, WaitEnd::TimedOut)),
            // This counts as a wake-up without reason; the next wait does without the kernel's help.
            Ended::Refused(libc::EPERM | libc::ENOSYS) if waiting.way == Way::Given => {
                GIVING_IS_REFUSED.store(true, Ordering::Relaxed);
                Ok((acquired, WaitEnd::Woken))
            }
            Ended::Refused(errno) if !matches!(errno, libc::EDEADLK) => {
                // The caller holds the mutex, and the error explains why it did not wait.
                let _ = mutex.unlock();
                Err(RawError::Sys(SysError { call: "futex wait", errno }))
            }
            _ => Ok((acquired, WaitEnd::Woken)),
        }
    }

    /// Last part of a wait for a thread that was cancelled meanwhile: like [`RawCondvar::rejoin`]. A signal that was
    /// perhaps meant for the caller goes on to another waiter.
    ///
    /// # Errors
    /// Those of the lock.
    pub fn withdraw(&self, mut waiting: Waiting, mutex: &RawMutex) -> Result<Acquired, RawError> {
        self.resumed(&mut waiting, mutex);
        if self.is_signalled(&waiting) {
            self.signal();
        }
        self.rejoin(waiting, mutex, Suspended::GIVEN_UP).map(|(acquired, _)| acquired)
    }

    /// Ends the use of the condition variable: waits until the waiters that signals took from the queue have left, so
    /// that its memory can be reused. In a shared one, such waiters count as killed if none has left for 1 s.
    ///
    /// # Bound
    /// A few instructions of each waiter that was woken, plus the time until it executes; at most 1 s after the last
    /// one left. For waiters that were moved to an inheriting mutex that another thread holds: until that thread
    /// unlocks it.
    pub fn destroy(&self) -> Destroyed {
        let _errno = KeepErrno::now();
        let scope = self.scope();
        // ORDERING: Acquire, here and below, pairs with the Release of `leave`.
        let mut waiters = self.waiters.fetch_or(DESTROYED, Ordering::Acquire) | DESTROYED;
        let mut left_ns = clock::now_ns();
        // BOUND: see above; each round ends after LEAVE_NAP_NS.
        while waiters >= WAITER {
            let now_ns = clock::now_ns();
            let is_left_over = now_ns.saturating_sub(left_ns) > LEAVE_MAX_NS;
            let leaving = self.wake_moved();
            if futex::has_waiters(scope, &self.signals)
                || leaving == Leaving::WithTheMutex
                || leaving == Leaving::Soon && is_left_over && scope == Scope::Private
            {
                self.waiters.fetch_and(!DESTROYED, Ordering::Relaxed);
                return Destroyed::InUse;
            }
            if is_left_over && leaving == Leaving::Soon {
                break;
            }
            let until = Deadline::monotonic(now_ns + LEAVE_NAP_NS);
            let _ = futex::wait(scope, &self.waiters, waiters, Some(until));
            let before = std::mem::replace(&mut waiters, self.waiters.load(Ordering::Acquire));
            if waiters != before || leaving == Leaving::Later {
                left_ns = clock::now_ns();
            }
        }
        Destroyed::Done
    }

    /// Wakes the waiters that were moved to the mutex, so that they leave before they wait for it again. Waiters of an
    /// inheriting mutex are not woken.
    fn wake_moved(&self) -> Leaving {
        // As in `try_to_move`.
        if self.scope() == Scope::Shared {
            return Leaving::Soon;
        }
        let look = || {
            // ORDERING: Relaxed: only the holder of `look` uses these fields.
            if self.shown.load(Ordering::Relaxed) == 0 {
                return Leaving::Soon;
            }
            // SAFETY: the mutex is shown, so a waiter for it has not left and the mutex exists: see `unbind`.
            let mutex = unsafe { &*self.mutex.load(Ordering::Relaxed) };
            if self.flags.load(Ordering::Relaxed) & INHERITS == 0 {
                futex::wake(self.scope(), mutex.word(), i32::MAX);
                return Leaving::Soon;
            }
            match (mutex.is_mine(), futex::has_waiters(self.scope(), mutex.word())) {
                (true, _) => Leaving::WithTheMutex,
                (false, true) => Leaving::Later,
                (false, false) => Leaving::Soon,
            }
        };
        // If the kernel refuses the look, the next round tries again.
        self.looking(look).unwrap_or(Leaving::Soon)
    }

    /// Takes the most urgent waiter from the queue, and wakes it or moves it to the mutex.
    ///
    /// # Bound
    /// One system call if a thread waits, none otherwise; one more for each signal at the same instant.
    pub fn signal(&self) {
        self.take_off(false);
    }

    /// Takes all waiters from the queue, and wakes them or moves them to the mutex.
    ///
    /// # Bound
    /// That of [`RawCondvar::signal`]; the kernel's own work grows with the number of waiters.
    pub fn broadcast(&self) {
        self.take_off(true);
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

    #[inline]
    fn take_off(&self, all: bool) {
        // ORDERING: Relaxed: a waiter that this signal is meant for was counted before it unlocked the mutex, and the
        // caller has had the mutex since, or knows of the waiter by other means that order memory.
        if self.waiters.load(Ordering::Relaxed) >= WAITER {
            self.take_off_waiters(all);
        }
    }

    #[cold]
    fn take_off_waiters(&self, all: bool) {
        // ORDERING: SeqCst: see `enlist`.
        self.signals.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) < WAITER {
            return;
        }
        let _errno = KeepErrno::now();
        // ORDERING: Relaxed: see `enlist`.
        let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0 && self.shown.load(Ordering::Relaxed) > 0;
        let is_mixed = self.strangers.load(Ordering::Relaxed) > 0;
        self.take_off_seen(all, inherits, is_mixed);
    }

    /// Takes waiters from the queue, given what the caller saw of them. Others may have come since and stand before
    /// those that were seen.
    fn take_off_seen(&self, all: bool, inherits: bool, is_mixed: bool) {
        let is_taken = match (inherits, is_mixed) {
            (true, true) => false,
            (true, false) => self.give(all),
            (false, _) => self.try_to_move(all),
        };
        if !is_taken && (inherits && is_mixed || self.wake(if all { i32::MAX } else { 1 }).is_err()) {
            self.take_off_mixed(all);
        }
    }

    /// Takes waiters from a queue in which some wait for the kernel to give them the mutex and others to be woken, in
    /// any order. Each of the two system calls stops at the first waiter of the other sort.
    fn take_off_mixed(&self, all: bool) {
        let mut idle = 0;
        // ORDERING: Relaxed: a bound.
        let rounds = (self.waiters.load(Ordering::Relaxed) / WAITER).saturating_add(ATTEMPTS_MAX);
        // BOUND: one round for each waiter, and ATTEMPTS_MAX for those that come meanwhile. Three rounds in a row
        // without a woken waiter end it.
        for _ in 0..rounds {
            let woken = match self.wake(1) {
                // The kernel's queue is empty.
                Ok(0) => return,
                Ok(_) if !all || self.wake(i32::MAX).is_ok() => return,
                woken => woken.is_ok(),
            };
            if self.give(all) {
                return;
            }
            idle = if woken { 0 } else { idle + 1 };
            if idle > 2 {
                return;
            }
        }
    }

    /// Wakes up to `count` waiters. The call fails at a waiter to which the kernel is to give the mutex; those before
    /// it are woken all the same.
    fn wake(&self, count: i32) -> Result<usize, i32> {
        futex::try_wake(self.scope(), &raw const self.signals, count)
    }

    /// Lets the kernel give the mutex to the first waiter or queue it there; with `all`, the others are queued as well.
    /// Returns whether the kernel did. It knows the mutex of each waiter and refuses another, so an outdated address
    /// does no harm.
    fn give(&self, all: bool) -> bool {
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            // ORDERING: Relaxed: a value to compare with, and an address.
            let now = self.signals.load(Ordering::Relaxed);
            let word = RawMutex::word_of(self.mutex.load(Ordering::Relaxed));
            match futex::cmp_requeue_pi(self.scope(), &self.signals, now, if all { i32::MAX } else { 0 }, word) {
                Ok(_) => return true,
                Err(libc::EAGAIN) => {}
                // Wait for memory: no other call would wake these waiters.
                Err(libc::ENOMEM) => {
                    let _ = clock::sleep_until(clock::now_ns() + NO_MEMORY_NAP_NS);
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Moves the first waiter to its mutex if the caller owns that mutex. With `all`, moves all waiters, and wakes the
    /// first one unless the caller owns the mutex. Returns whether it did.
    fn try_to_move(&self, all: bool) -> bool {
        // Nothing is bound in a shared one, and `look` is for the threads of one process.
        if self.scope() == Scope::Shared {
            return false;
        }
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let moved = self.looking(|| {
                // ORDERING: Relaxed, here and below: only the holder of `look` uses these fields. The kernel would also
                // move waiters of another mutex, so a mixed queue is not moved.
                let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0;
                if self.shown.load(Ordering::Relaxed) == 0 || self.strangers.load(Ordering::Relaxed) > 0 || inherits {
                    return Some(false);
                }
                // SAFETY: the mutex is shown, so a waiter for it has not left and the mutex exists: see `unbind`.
                let mutex = unsafe { &*self.mutex.load(Ordering::Relaxed) };
                let is_mine = mutex.is_mine();
                if is_mine {
                    mutex.announce_waiters();
                } else if !all {
                    return Some(false);
                }
                // The woken waiter announces waiters when it locks the mutex, because it has waited.
                let (wake, count) = (i32::from(!is_mine), if all { i32::MAX } else { 1 });
                self.moves.fetch_add(1, Ordering::Relaxed);
                let now = self.signals.load(Ordering::Relaxed);
                // Inside the look, because the mutex stays that of all shown waiters only until the look ends.
                let moved = futex::requeue(self.scope(), &self.signals, now, wake, count, mutex.word());
                if !is_mine && mutex.kind() & kind::CHECKED != 0 {
                    cycle::look_after_move(mutex);
                }
                moved.map(|_| true)
            });
            // If the kernel refuses the look, nobody is moved.
            if let Some(moved) = moved.unwrap_or(Some(false)) {
                return moved;
            }
        }
        false
    }
}

/// How [`RawCondvar::suspend`] ended.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Suspension {
    /// The arguments in order. The fourth, the address of a `timespec`, is 0: the caller replaces it by the address of
    /// `time`, if there is one.
    pub arguments: [libc::c_long; 6],
    /// The deadline.
    pub time: Option<libc::timespec>,
}

/// How [`RawCondvar::destroy`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destroyed {
    /// Nobody uses the condition variable any more.
    Done,
    /// A thread waits, or was moved to an inheriting mutex that the caller holds, or has not left for 1 s, as the
    /// waiters of the parent appear in a child process. Nothing has changed.
    InUse,
}

impl RawMutex {
    /// Locks a mutex that the kernel may already have given to the caller.
    fn lock_moved(&self) -> Result<Acquired, RawError> {
        if self.is_mine() { self.settle_moved() } else { self.lock(Limit::Never) }
    }
}

#[cfg(test)]
mod tests;
