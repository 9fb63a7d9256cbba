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
//!
//! The kernel refuses to give a mutex to a waiter where that would close a cycle of owners, and a thread in that wait can then be woken by nothing but
//! its deadline: the signal would be lost. A cycle goes through what the waiter holds. So one that holds another mutex with inheritance waits to be
//! woken, and takes the mutex itself: what is a deadlock it is told. All others the kernel serves.
//!
//! A waiter that was woken or moved still says good-bye here. Who [destroys](RawCondvar::destroy) a condition variable waits for those.

use super::cycle;
use super::error::{Acquired, Limit, RawError};
use super::kind;
use super::raw::RawMutex;
use lockwright_sys::futex::{self, Arguments, Clock, Deadline, Ended, Scope};
use lockwright_sys::pi_word::PiWord;
use lockwright_sys::sched::gettid;
use lockwright_sys::{KeepErrno, SysError, clock, held};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// Threads of all processes that map it may wait.
const SHARED: u32 = 1;
/// Its waiters wait for a mutex with inheritance.
const INHERITS: u32 = 2;

/// Deadlines are by the monotonic clock, where a caller names none. Nothing here asks: it is kept for those who do.
const MONOTONIC: u32 = 4;

/// What a waiter adds to the count of waiters.
const WAITER: u32 = 2;
/// Set in that count: somebody waits for the last waiter to leave.
const DESTROYED: u32 = 1;
/// How long that takes at most until it is looked at again.
const LEAVE_NAP_NS: u64 = 10_000_000;
/// So long nobody left: those that are counted never will. They were killed, or are threads of the process that forked this one.
const LEAVE_MAX_NS: u64 = 1_000_000_000;

/// Between two attempts to give, where the kernel lacks memory.
const NO_MEMORY_NAP_NS: u64 = 100_000;

/// How often a signal may find that another one came between. More would need as many signals at one instant.
const ATTEMPTS_MAX: u32 = 1_000;

/// The kernel refuses to give a mutex to a waiter, as filters of system calls make it: all wait to be woken.
static GIVING_IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// A condition variable, as memory: as large as the C library's, and zeros are one for this process. Never move it while anybody uses it.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondvar {
    /// Counts signals.
    signals: AtomicU32,
    /// Twice the number of waiters, and DESTROYED.
    waiters: AtomicU32,
    /// The mutex that waiters are moved to. Looked at, and changed, by who has `look`.
    mutex: AtomicPtr<RawMutex>,
    flags: AtomicU32,
    /// Counts signals that moved somebody.
    moves: AtomicU32,
    /// Had by who looks at the mutex of the waiters, and by waiters that leave.
    look: PiWord,
    /// Waiters whose mutex is the one above.
    shown: AtomicU32,
    /// Waiters that are not moved: woken, they take their mutex themselves.
    strangers: AtomicU32,
    unused: [u32; 3],
}

/// Between giving the mutex back and taking it again.
#[derive(Clone, Copy, Debug)]
#[must_use = "a waiter is counted until it rejoins"]
pub struct Waiting {
    seen: u32,
    moves: u32,
    kind: u32,
    way: Way,
    /// The caller has the mutex still: it had taken it more than once.
    is_kept: bool,
    /// It is counted among those that wait for the mutex.
    is_counted: bool,
    /// Where it is entered as one that may come to wait for the mutex.
    place: Option<usize>,
}

/// How a waiter comes by its mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It takes it itself.
    Takes,
    /// It may be moved to it.
    Moved,
    /// The kernel gives it.
    Given,
}

/// When those that were taken off leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaving {
    /// When they execute.
    Soon,
    /// When they have the mutex that somebody has.
    Later,
    /// When the caller gives it back.
    WithTheMutex,
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
            shown: AtomicU32::new(0),
            strangers: AtomicU32::new(0),
            unused: [0; 3],
        }
    }

    /// The same, with a clock for those of its users who name none; at first the time of day.
    #[must_use]
    pub const fn with_clock(self, clock: Clock) -> Self {
        let mut flags = self.flags.into_inner();
        flags = match clock {
            Clock::Monotonic => flags | MONOTONIC,
            Clock::Realtime => flags & !MONOTONIC,
        };
        Self { flags: AtomicU32::new(flags), ..self }
    }

    /// The clock it was made with.
    pub fn clock(&self) -> Clock {
        // ORDERING: Relaxed: set before anybody else knows it.
        if self.flags.load(Ordering::Relaxed) & MONOTONIC == 0 { Clock::Realtime } else { Clock::Monotonic }
    }

    fn scope(&self) -> Scope {
        // ORDERING: Relaxed: set before anybody else knows it.
        if self.flags.load(Ordering::Relaxed) & SHARED == 0 { Scope::Private } else { Scope::Shared }
    }

    /// Whether somebody waits.
    pub fn is_waited_for(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        self.waiters.load(Ordering::Relaxed) >= WAITER
    }

    /// Gives `mutex`, which the caller holds, back and waits; takes it again whatever happens.
    ///
    /// # Errors
    /// Those of the mutex: then the caller does not hold it.
    ///
    /// # Bound
    /// Until a signal, or `until`; then that of the mutex.
    pub fn wait(&self, mutex: &RawMutex, until: Option<Deadline>) -> Result<(Acquired, WaitEnd), RawError> {
        // SAFETY: it rejoins below, and the mutex is borrowed until then.
        let mut waiting = unsafe { self.enlist(mutex, true) }?;
        let ended = self.suspend(&mut waiting, mutex, until);
        self.rejoin(waiting, mutex, ended)
    }

    /// First part of a wait: the caller is counted, and gives the mutex back. `may_be_given`: the kernel may give it a mutex that inherits. Who
    /// destroys the condition variable while it holds that mutex must not have to wait for such a one: it takes the mutex by itself. So does, whatever
    /// is allowed, who holds another mutex that inherits.
    ///
    /// # Errors
    /// Those of the unlock: then nothing has changed.
    ///
    /// # Safety
    /// [`RawCondvar::rejoin`] or [`RawCondvar::withdraw`] comes after it, and the mutex stays where it is until then.
    pub unsafe fn enlist(&self, mutex: &RawMutex, may_be_given: bool) -> Result<Waiting, RawError> {
        let kind = mutex.kind();
        if kind::is_unlocked_by_owner(kind) && !mutex.is_mine() {
            return Err(RawError::NotOwner);
        }
        // ORDERING: Relaxed: a hint.
        let may_be_given = may_be_given && !GIVING_IS_REFUSED.load(Ordering::Relaxed);
        let is_bindable = kind & kind::INHERIT == 0 || may_be_given && !held::holds_two();
        // ORDERING: Relaxed: before it is shown. Who moves waiters counts that inside a look; one that can move this one looks after `bind` did.
        let moves = self.moves.load(Ordering::Relaxed);
        let way = self.bind(kind, mutex, is_bindable);
        self.waiters.fetch_add(WAITER, Ordering::SeqCst);
        // ORDERING: SeqCst, as the counts and the changes of a signal: one that sees no waiter comes before this load, which sees its change.
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

    /// As [`RawCondvar::enlist`], for a caller whose mutex is none of these. It unlocks that mutex itself, then suspends, and locks it after
    /// [`RawCondvar::leave_stranger`], which comes after this in any case.
    pub fn enlist_stranger(&self) -> Waiting {
        // As in `bind`: nobody is moved by a look that does not know of this stranger.
        let be_stranger = || self.strangers.fetch_add(1, Ordering::Relaxed);
        if self.scope() == Scope::Shared || self.looking(be_stranger).is_none() {
            be_stranger();
        }
        // ORDERING: as in `enlist`.
        self.waiters.fetch_add(WAITER, Ordering::SeqCst);
        let (seen, moves) = (self.signals.load(Ordering::SeqCst), self.moves.load(Ordering::Relaxed));
        Waiting { seen, moves, kind: 0, way: Way::Takes, is_kept: false, is_counted: false, place: None }
    }

    /// After [`RawCondvar::enlist_stranger`]. `None` where the thread was cancelled: a signal that was perhaps for it goes on to another.
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

    /// Shows the caller's mutex to signals, if waiters are moved to such a one, and those that wait are moved to no other.
    fn bind(&self, kind: u32, mutex: &RawMutex, is_bindable: bool) -> Way {
        let inherits = kind & kind::INHERIT != 0;
        let is_kept = kind & kind::TYPE == kind::RECURSIVE && mutex.is_taken_again();
        let is_bindable = is_bindable && self.moves(kind) && !is_kept;
        let be_stranger = || {
            self.strangers.fetch_add(1, Ordering::Relaxed);
            false
        };
        let bind = || {
            // ORDERING: Relaxed, here and below: one looks at a time.
            let (shown, target) = (self.shown.load(Ordering::Relaxed), std::ptr::from_ref(mutex).cast_mut());
            if !is_bindable || shown > 0 && self.mutex.load(Ordering::Relaxed) != target {
                return be_stranger();
            }
            if shown == 0 {
                self.mutex.store(target, Ordering::Relaxed);
                let flags = self.flags.load(Ordering::Relaxed) & !INHERITS;
                self.flags.store(flags | if inherits { INHERITS } else { 0 }, Ordering::Relaxed);
            }
            // Others leave without a look, where they are refused one.
            self.shown.fetch_add(1, Ordering::Relaxed);
            true
        };
        // Between processes nobody is bound, and `look` is for the threads of one.
        let is_bound =
            if self.scope() == Scope::Shared { bind() } else { self.looking(bind).unwrap_or_else(be_stranger) };
        match (is_bound, inherits) {
            (false, _) => Way::Takes,
            (true, false) => Way::Moved,
            (true, true) => Way::Given,
        }
    }

    /// The caller's mutex is not shown any more: looks at it have come to an end.
    fn unbind(&self, way: Way) {
        let count = if way == Way::Takes { &self.strangers } else { &self.shown };
        let unbind = || count.fetch_sub(1, Ordering::Relaxed);
        if self.scope() == Scope::Shared || self.looking(unbind).is_none() {
            unbind();
        }
    }

    /// Says good-bye: the last thing a waiter does here.
    fn leave(&self) {
        let waiters = std::ptr::from_ref(&self.waiters);
        let scope = self.scope();
        // ORDERING: Release pairs with the Acquire in `destroy`: what a waiter did here comes before that.
        if self.waiters.fetch_sub(WAITER, Ordering::Release) == WAITER | DESTROYED {
            futex::wake(scope, waiters, i32::MAX);
        }
    }

    /// Second part: suspends.
    pub fn suspend(&self, waiting: &mut Waiting, mutex: &RawMutex, until: Option<Deadline>) -> Suspended {
        let _errno = KeepErrno::now();
        let arguments = self.expect(waiting, mutex, until.map(|until| until.clock));
        let ended = Suspended(futex::call(&arguments, until));
        self.resumed(waiting, mutex);
        ended
    }

    /// The call by which [`RawCondvar::suspend`] suspends, for those who make it themselves, from a point where the thread may be cancelled.
    /// Condition variable and mutex stay where they are meanwhile. [`RawCondvar::resumed`] or [`RawCondvar::withdraw`] comes after it.
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

    /// After a [`Suspension`].
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

    /// Whether it ended for no reason: no signal came since the wait began, and the deadline did not. Who likes waits again.
    pub fn is_disturbed(&self, waiting: &Waiting, Suspended(ended): Suspended) -> bool {
        ended == Ended::Interrupted && !self.is_signalled(waiting)
    }

    fn is_signalled(&self, waiting: &Waiting) -> bool {
        // ORDERING: Relaxed: of a time-out it is known already that no order is meant.
        self.signals.load(Ordering::Relaxed) != waiting.seen
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
        let _errno = KeepErrno::now();
        // A signal that came meanwhile was perhaps for this one: it must not get lost.
        let is_signalled = self.is_signalled(&waiting);
        // Where nobody was moved since, it was woken off here, and what was handed to a waiter of the mutex is not its.
        // ORDERING: Relaxed: the kernel orders a move and what wakes who was moved.
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
            // It is as if it had been woken for no reason; the next time it does without.
            Ended::Refused(libc::EPERM | libc::ENOSYS) if waiting.way == Way::Given => {
                GIVING_IS_REFUSED.store(true, Ordering::Relaxed);
                Ok((acquired, WaitEnd::Woken))
            }
            Ended::Refused(errno) if !matches!(errno, libc::EDEADLK) => {
                // The mutex is the caller's all the same; what is told is why it did not wait.
                let _ = mutex.unlock();
                Err(RawError::Sys(SysError { call: "futex wait", errno }))
            }
            _ => Ok((acquired, WaitEnd::Woken)),
        }
    }

    /// Last part where the thread was cancelled meanwhile: as [`RawCondvar::rejoin`]. A signal that was perhaps for this one goes on to another.
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

    /// Ends its use: waits for those who were taken off it to leave, so that its memory may become something else. Of a shared one, who was taken
    /// off and has not left for 1 s counts as killed.
    ///
    /// # Bound
    /// That of a few instructions of each waiter that was woken, and of their getting to execute; 1 s since the last one left. Of waiters that were
    /// moved to a mutex with inheritance that another thread has: until that gives it back.
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

    /// Wakes those that were moved to the mutex, who say good-bye before they wait for it again. Those that wait with inheritance are not woken.
    fn wake_moved(&self) -> Leaving {
        // As in `try_to_move`.
        if self.scope() == Scope::Shared {
            return Leaving::Soon;
        }
        let look = || {
            // ORDERING: Relaxed: one looks at a time.
            if self.shown.load(Ordering::Relaxed) == 0 {
                return Leaving::Soon;
            }
            // SAFETY: it is shown, so who waits for it has not come to its end: see `unbind`.
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
        // Refused a look, it comes again.
        self.looking(look).unwrap_or(Leaving::Soon)
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

    /// Does `look` while no other looks. `None` where the kernel refuses that: it lacks memory, or the heir of one who ended does not execute.
    ///
    /// BOUND: the looks of others, some instructions each, at the caller's priority.
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

    /// By what was seen of the waiters: others may have come since, and stand before those who are meant.
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

    /// Where some wait for the kernel to give them the mutex, and others to be woken, in any order: each of the two calls ends at the first
    /// whom it is not for.
    fn take_off_mixed(&self, all: bool) {
        let mut idle = 0;
        // ORDERING: Relaxed: a bound.
        let rounds = (self.waiters.load(Ordering::Relaxed) / WAITER).saturating_add(ATTEMPTS_MAX);
        // BOUND: as many rounds as waiters, and ATTEMPTS_MAX for those who come meanwhile; three in a row without anybody woken are the end.
        for _ in 0..rounds {
            let woken = match self.wake(1) {
                // The kernel has nobody here any more.
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

    /// Wakes so many. Refused where it meets one to whom the kernel is to give the mutex; those before are woken then, too.
    fn wake(&self, count: i32) -> Result<usize, i32> {
        futex::try_wake(self.scope(), &raw const self.signals, count)
    }

    /// The kernel gives the mutex to the first waiter, or lets it wait for that. Says whether it could. It knows by itself which mutex each waiter waits for, and
    /// refuses another: an address that is out of date does no harm.
    fn give(&self, all: bool) -> bool {
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            // ORDERING: Relaxed: only compared with, and an address.
            let now = self.signals.load(Ordering::Relaxed);
            let word = RawMutex::word_of(self.mutex.load(Ordering::Relaxed));
            match futex::cmp_requeue_pi(self.scope(), &self.signals, now, if all { i32::MAX } else { 0 }, word) {
                Ok(_) => return true,
                Err(libc::EAGAIN) => {}
                // Memory comes back; nothing else would wake who waits there.
                Err(libc::ENOMEM) => {
                    let _ = clock::sleep_until(clock::now_ns() + NO_MEMORY_NAP_NS);
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Moves the first waiter to its mutex, if the caller holds that, or all. Says whether it did.
    fn try_to_move(&self, all: bool) -> bool {
        // Nobody is; and `look` is for the threads of one process.
        if self.scope() == Scope::Shared {
            return false;
        }
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let moved = self.looking(|| {
                // ORDERING: Relaxed, here and below: one looks at a time. The kernel would move all of them: those that wait for another mutex, too.
                let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0;
                if self.shown.load(Ordering::Relaxed) == 0 || self.strangers.load(Ordering::Relaxed) > 0 || inherits {
                    return Some(false);
                }
                // SAFETY: it is shown, so who waits for it has not come to its end: see `unbind`.
                let mutex = unsafe { &*self.mutex.load(Ordering::Relaxed) };
                let is_mine = mutex.is_mine();
                if is_mine {
                    mutex.announce_waiters();
                } else if !all {
                    return Some(false);
                }
                // Who is woken takes the mutex as one behind whom others wait.
                let (wake, count) = (i32::from(!is_mine), if all { i32::MAX } else { 1 });
                self.moves.fetch_add(1, Ordering::Relaxed);
                let now = self.signals.load(Ordering::Relaxed);
                // Inside the look: the mutex is that of all who are shown until it is over.
                let moved = futex::requeue(self.scope(), &self.signals, now, wake, count, mutex.word());
                if !is_mine && mutex.kind() & kind::CHECKED != 0 {
                    cycle::look_after_move(mutex);
                }
                moved.map(|_| true)
            });
            // Refused a look, nobody is moved.
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
    /// Nobody knows how: the wait was given up. Perhaps it was woken, and handed the mutex.
    pub const GIVEN_UP: Self = Self(Ended::Woken);

    /// By what the kernel answered to a [`Suspension`]: 0 or more, or an error's number, negative.
    #[must_use]
    pub fn answered(answer: i64) -> Self {
        Self(Ended::of(answer))
    }
}

/// A system call (`futex`) that suspends.
#[derive(Clone, Copy, Debug)]
pub struct Suspension {
    /// In their order. The fourth, a `timespec`'s address, is 0: it is that of `time`, where there is one.
    pub arguments: [libc::c_long; 6],
    /// The deadline.
    pub time: Option<libc::timespec>,
}

/// How [`RawCondvar::destroy`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destroyed {
    /// Nobody uses it.
    Done,
    /// Somebody waits there, or was moved to a mutex with inheritance that the caller has; or has not left for 1 s (a child process finds the waiters
    /// of its parent so). Nothing has changed.
    InUse,
}

impl RawMutex {
    /// Takes a mutex the kernel may have given to the caller already.
    fn lock_moved(&self) -> Result<Acquired, RawError> {
        if self.is_mine() { self.settle_moved() } else { self.lock(Limit::Never) }
    }
}

#[cfg(test)]
mod tests;
