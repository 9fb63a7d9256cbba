//! Waits: a waiter unlocks its mutex, suspends, and locks the mutex again.

use super::{DESTROYED, INHERITS, RawCondvar, Rejoined, Suspended, Suspension, WAITER, WaitEnd, Waiting, Way, levels};
use crate::mutex::error::{Acquired, Limit, RawError};
use crate::mutex::raw::RawMutex;
use crate::mutex::{attributes, cycle};
use lockwright_sys::futex::{self, Arguments, Clock, Deadline, Ended, Scope};
use lockwright_sys::sched::gettid;
use lockwright_sys::{KeepErrno, SysError, held};
use std::sync::atomic::{AtomicBool, Ordering};

/// The kernel refuses to give a mutex to a waiter, for example because of a system call filter. Then all waiters wait
/// to be woken.
static GIVING_IS_REFUSED: AtomicBool = AtomicBool::new(false);

impl RawCondvar {
    /// Unlocks `mutex`, which the caller holds, waits, and locks it again in any case.
    ///
    /// # Errors
    /// Those of the mutex, or [`RawError::Sys`] if the kernel refuses the wait. Then the caller does not hold the
    /// mutex, unless it had locked a recursive one more than once.
    ///
    /// # Bound
    /// Until a signal or `until`; then the bound of the mutex. A real-time thread asks for its level before it
    /// suspends: two system calls, and at most 31 slots of a table.
    pub fn wait(&self, mutex: &RawMutex, until: Option<Deadline>) -> Result<(Acquired, WaitEnd), RawError> {
        // SAFETY: the wait rejoins below, and `mutex` is borrowed until then, so it stays where it is.
        let mut waiting = unsafe { self.enlist(mutex, true) }?;
        let ended = self.suspend(&mut waiting, mutex, until);
        let Rejoined { locked, end } = self.rejoin(waiting, mutex, ended);
        let acquired = locked?;
        let end = end.inspect_err(|_| mutex.give_up(acquired)).map_err(RawError::Sys)?;
        Ok((acquired, end))
    }

    /// First part of a wait: counts the caller as a waiter and unlocks the mutex.
    ///
    /// `may_be_given` allows the kernel to give the caller a mutex that inherits. It must be false if another thread
    /// may destroy the condition variable while it holds that mutex, because the destroying thread would wait for a
    /// waiter that waits for the mutex. Without it, or if the caller holds another lock with inheritance, the caller
    /// locks the mutex itself after it is woken.
    ///
    /// # Errors
    /// Those of the unlock; then nothing has changed.
    ///
    /// # Safety
    /// The caller calls [`RawCondvar::rejoin`] or [`RawCondvar::withdraw`] afterwards, and the mutex stays where it is
    /// until then.
    pub unsafe fn enlist(&self, mutex: &RawMutex, may_be_given: bool) -> Result<Waiting, RawError> {
        let attributes = mutex.attributes();
        if attributes::is_unlocked_by_owner(attributes) && !mutex.is_mine() {
            return Err(RawError::NotOwner);
        }
        // ORDERING: Relaxed: a hint.
        let may_be_given = may_be_given && !GIVING_IS_REFUSED.load(Ordering::Relaxed);
        let is_bindable = attributes & attributes::INHERIT == 0 || may_be_given && !held::holds_two();
        // ORDERING: Relaxed: read before the mutex is shown. A signaller counts its move while it holds `look`, and one
        // that can move this waiter takes `look` after `bind` did.
        let moves = self.moves.load(Ordering::Relaxed);
        let way = self.bind(attributes, mutex, is_bindable);
        self.waiters.fetch_add(WAITER, Ordering::SeqCst);
        // ORDERING: SeqCst, like the counts and changes of a signal: a signal that sees no waiter comes before this
        // load, which sees its change.
        let seen = self.signals.load(Ordering::SeqCst);
        mutex.go_away();
        match mutex.unlock() {
            Ok(()) => {
                let is_kept = attributes & attributes::TYPE == attributes::RECURSIVE && mutex.is_mine();
                Ok(Waiting { seen, moves, attributes, way, is_kept, is_counted: false, place: None, watched: None })
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
        Waiting {
            seen,
            moves,
            attributes: 0,
            way: Way::Takes,
            is_kept: false,
            is_counted: false,
            place: None,
            watched: None,
        }
    }

    /// Ends a wait that began with [`RawCondvar::enlist_stranger`]. `ended` is `None` if the thread was cancelled: a
    /// signal that was perhaps meant for it then goes on to another waiter.
    pub fn leave_stranger(&self, mut waiting: Waiting, ended: Option<Suspended>) -> WaitEnd {
        self.unwatch(&mut waiting);
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
    fn bind(&self, attributes: u32, mutex: &RawMutex, is_bindable: bool) -> Way {
        let inherits = attributes & attributes::INHERIT != 0;
        let is_kept = attributes & attributes::TYPE == attributes::RECURSIVE && mutex.is_taken_again();
        let is_bindable = is_bindable && self.moves(attributes) && !is_kept;
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
        Suspension::new(&self.expect(waiting, mutex, until.map(|until| until.clock)), until)
    }

    fn expect<'a>(&'a self, waiting: &mut Waiting, mutex: &'a RawMutex, clock: Option<Clock>) -> Arguments<'a> {
        let scope = self.scope();
        waiting.watched = levels::enter(gettid(), self.address());
        if waiting.watched.is_some() {
            // ORDERING: Relaxed, here and where it is read: a hint.
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        if waiting.attributes & attributes::CHECKED != 0 && waiting.way != Way::Takes {
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
        let mark = waiting.watched.map_or(levels::NO_ENTRY, levels::Entry::mark);
        Arguments::wait(scope, &self.signals, waiting.seen, clock).marked(mark)
    }

    /// Removes the waiter's level from the table.
    fn unwatch(&self, waiting: &mut Waiting) {
        if let Some(entry) = waiting.watched.take() {
            levels::leave(entry);
            // ORDERING: Relaxed: a hint.
            self.watched.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends what [`RawCondvar::suspension`] began.
    pub fn resumed(&self, waiting: &mut Waiting, mutex: &RawMutex) {
        self.unwatch(waiting);
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

    /// Whether waiters are moved to a mutex with these attributes. Not across processes, where a signaller does not
    /// know the mutex's address. Not to a mutex with a ceiling: a waiter of such a mutex rises before it suspends, and
    /// a moved one would own the mutex at its own level.
    fn moves(&self, attributes: u32) -> bool {
        self.scope() == Scope::Private
            && RawMutex::scope(attributes) == Scope::Private
            && attributes & attributes::PROTECT == 0
    }

    /// Last part of a wait: locks the mutex again.
    pub fn rejoin(&self, waiting: Waiting, mutex: &RawMutex, Suspended(ended): Suspended) -> Rejoined {
        let _errno = KeepErrno::now();
        // A signal that came meanwhile was perhaps meant for this waiter, and must not get lost.
        let is_signalled = self.is_signalled(&waiting);
        // If no signal moved a waiter since the wait began, or none moves this one, the caller was woken from the
        // condition variable, and a mutex that was handed to a waiter is not its own.
        // ORDERING: Relaxed: the kernel orders a move before it wakes the moved waiter.
        let may_be_moved = waiting.way == Way::Moved && self.moves.load(Ordering::Relaxed) != waiting.moves;
        self.unbind(waiting.way);
        self.leave();
        let locked = if waiting.is_kept {
            mutex.lock(Limit::Never)
        } else if waiting.attributes & attributes::INHERIT != 0 {
            mutex.lock_moved()
        } else {
            mutex.lock_after_wait(ended == Ended::Woken && may_be_moved)
        };
        mutex.come_back();
        let end = match ended {
            Ended::TimedOut if !is_signalled => Ok(WaitEnd::TimedOut),
            // This counts as a wake-up without reason; the next wait does without the kernel's help.
            Ended::Refused(libc::EPERM | libc::ENOSYS) if waiting.way == Way::Given => {
                // ORDERING: Relaxed: a hint.
                GIVING_IS_REFUSED.store(true, Ordering::Relaxed);
                Ok(WaitEnd::Woken)
            }
            Ended::Refused(errno) if errno != libc::EDEADLK => Err(SysError { call: "futex wait", errno }),
            _ => Ok(WaitEnd::Woken),
        };
        Rejoined { locked, end }
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
        self.rejoin(waiting, mutex, Suspended::GIVEN_UP).locked
    }
}

impl RawMutex {
    /// Locks a mutex that the kernel may already have given to the caller.
    fn lock_moved(&self) -> Result<Acquired, RawError> {
        if self.is_mine() { self.settle_moved() } else { self.lock(Limit::Never) }
    }

    /// Unlocks a mutex that the caller has just locked again, after a wait that the kernel refused.
    fn give_up(&self, acquired: Acquired) {
        // The error of the wait is reported instead of one of the unlock.
        let _ = match acquired {
            Acquired::Clean => self.unlock(),
            Acquired::OwnerDied => self.pass_on(gettid(), self.attributes(), acquired),
        };
    }
}
