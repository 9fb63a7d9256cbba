//! Waiting for the word of a mutex that does not inherit, and passing the word to waiters (`robust/pass` if the mutex
//! is robust).

use super::attributes::{AUTO, CHECKED, INHERIT, ROBUST, SERIAL, SHARED};
use super::cycle;
use super::error::{Acquired, Limit, RawError};
use super::raw::{NOT_RECOVERABLE, RawMutex};
use super::robust::OPEN;
use super::word::{self, Ask, FREE, GiveBack, HANDED};
use lockwright_sys::futex::{self, Deadline, Ended, Scope};
use lockwright_sys::sched::{self, ME, Tid};
use lockwright_sys::{SysError, clock};
use std::sync::atomic::{AtomicU16, Ordering};

/// For mutexes shared by processes: the number of ticks after which the heir of a hand-off counts as dead. The heir is
/// the woken waiter to which the mutex was handed. The time runs from the moment when any thread first found the mutex
/// handed over; 4 ticks are 50 to 67 ms. The thread that finds the time over locks the mutex.
const HANDED_TICKS: u8 = 4;
const TICK_NS: u64 = 1 << 24;
/// Ticks are counted from 1 to this number, again and again.
const TICKS: u8 = OPEN - 1;

impl RawMutex {
    /// Locks the word, waiting within `limit`. `waited` is `Some` if the caller has already waited for the mutex, and
    /// then holds whether it was woken.
    pub(super) fn wait_for_word(
        &self,
        me: Tid,
        attributes: u32,
        limit: Limit,
        waited: Option<bool>,
    ) -> Result<Acquired, RawError> {
        let (mut has_waited, mut was_woken) = (waited.is_some(), waited == Some(true));
        let mut urgent = None;
        let mut published = None;
        // BOUND: in each round the word changed, a signal came, or a wait ended; until the owner and the waiters before
        // the caller unlock.
        loop {
            let word = self.word.load(Ordering::Relaxed);
            let is_left = word == HANDED && Self::scope(attributes) == Scope::Shared && self.is_left_to_all();
            // The word of a robust mutex remembers other waiters, unless a process with another library unlocked it.
            let keeps = has_waited && attributes & (ROBUST | SHARED) != ROBUST;
            match word::ask(word, me.0, keeps, was_woken || is_left) {
                Ask::Take { word: taken, died } => {
                    // ORDERING: Acquire pairs with the Release of the unlock.
                    if self.word.compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return Ok(if died { Acquired::OwnerDied } else { Acquired::Clean });
                    }
                }
                _ if limit == Limit::Now => return Err(RawError::Busy),
                Ask::Announce(announced) => {
                    // Another thread owns the mutex now, so a later hand-off is not for a waiter that was woken before.
                    was_woken = false;
                    // ORDERING: Relaxed: it publishes nothing.
                    let _ = self.word.compare_exchange(word, announced, Ordering::Relaxed, Ordering::Relaxed);
                }
                Ask::Wait => {
                    if attributes & CHECKED != 0 && published.is_none() {
                        published =
                            Some(cycle::publish(me, self, matches!(limit, Limit::At(_))).map_err(RawError::Deadlock)?);
                    }
                    if attributes & AUTO != 0 && urgent.is_none() {
                        urgent = Some(Urgent::count(&self.urgent));
                    }
                    was_woken = self.wait(attributes, word, limit)?;
                    has_waited = true;
                    // A robust mutex forgets the counts of threads that do not sleep.
                    urgent.take_if(|_| attributes & ROBUST != 0);
                }
            }
        }
    }

    /// Whether any thread may lock a mutex whose word is HANDED: it is open, or its heir must be presumed dead, because
    /// it did not lock the mutex in time.
    ///
    /// Attempts of any length count together, so a thread that only tries also gets the mutex in the end. The exception
    /// is a thread whose attempts are 254 ticks (4.3 s) apart, or a multiple of that. If a thread reads the mark of an
    /// earlier hand-off, it may lock the mutex in place of the heir. The heir then finds an owner in the word, and
    /// waits.
    #[cold]
    fn is_left_to_all(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of the unlock, which sets or clears the mark.
        if self.word.load(Ordering::Acquire) != HANDED {
            return false;
        }
        // ORDERING: Relaxed, here and below: it orders nothing else.
        if self.handed_at.load(Ordering::Relaxed) == OPEN {
            return true;
        }
        let tick = (clock::now_ns() / TICK_NS % u64::from(TICKS)) as u8 + 1;
        match self.handed_at.compare_exchange(0, tick, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(OPEN) => true,
            Err(first) if tick >= first => tick - first >= HANDED_TICKS,
            Err(first) => tick + (TICKS - first) >= HANDED_TICKS,
        }
    }

    /// Waits while the word stays as it is. Returns whether the caller was woken.
    fn wait(&self, attributes: u32, word: u32, limit: Limit) -> Result<bool, RawError> {
        let scope = Self::scope(attributes);
        let until = limit.until();
        if scope == Scope::Shared && word == HANDED {
            let grace_ns = u64::from(HANDED_TICKS) * TICK_NS;
            if until.is_none_or(|until| grace_ns < until.left_ns()) {
                let grace = Deadline::monotonic(clock::now_ns() + grace_ns);
                return match futex::wait(scope, &self.word, word, Some(grace)) {
                    // The woken heir has perhaps ended since; the next round checks that.
                    Ended::TimedOut => Ok(false),
                    ended => Self::woken(ended),
                };
            }
        }
        Self::woken(futex::wait(scope, &self.word, word, until))
    }

    fn woken(ended: Ended) -> Result<bool, RawError> {
        match ended {
            Ended::Woken => Ok(true),
            Ended::Changed | Ended::Interrupted => Ok(false),
            Ended::TimedOut => Err(RawError::TimedOut),
            Ended::Refused(errno) => Err(RawError::Sys(SysError { call: "futex wait", errno })),
        }
    }

    /// Unlocks the word, and wakes waiters if there are any.
    pub(super) fn unlock_word(&self, me: Tid, attributes: u32) -> Result<(), RawError> {
        let scope = Self::scope(attributes);
        if attributes & INHERIT != 0 {
            return self.unlock_inheriting(me, attributes, scope);
        }
        let is_lost = attributes & ROBUST != 0 && self.state.load(Ordering::Relaxed) == NOT_RECOVERABLE;
        if attributes & ROBUST != 0 && !is_lost {
            self.unlock_remembering(me, attributes);
            return Ok(());
        }
        let serial = self.is_serial(attributes);
        // Only the address is used after the unlock, because the mutex may then no longer exist.
        let address = std::ptr::from_ref(&self.word);
        // ORDERING: Release, here and below, pairs with the Acquire of the next lock.
        // BOUND: a second round if a waiter announced itself meanwhile.
        loop {
            let word = self.word.load(Ordering::Relaxed);
            // A mutex that is not recoverable wakes all waiters, including those that a dead owner did not wake.
            match if is_lost { GiveBack::Wake } else { word::give_back(word, serial) } {
                GiveBack::Free => {
                    if self.word.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
                        continue;
                    }
                }
                GiveBack::Wake if is_lost => {
                    // In one step: the thread may end, and the word of the next owner does not announce the sleepers.
                    if futex::zero_and_wake_all(scope, &self.word).is_err() {
                        self.word.store(FREE, Ordering::Release);
                        futex::wake(scope, address, i32::MAX);
                    }
                }
                GiveBack::Wake => {
                    self.word.store(FREE, Ordering::Release);
                    futex::wake(scope, address, 1);
                }
                GiveBack::Hand(handed) => {
                    // ORDERING: Relaxed: ordered by the store of the word.
                    self.handed_at.store(0, Ordering::Relaxed);
                    self.word.store(handed, Ordering::Release);
                    // Nobody was woken: the announced waiter gave up, or has yet to wait. The latter is woken below, or
                    // sees that the mutex is free.
                    if futex::wake(scope, address, 1) == 0
                        && self.word.compare_exchange(handed, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
                    {
                        futex::wake(scope, address, 1);
                    }
                }
            }
            return Ok(());
        }
    }

    /// Whether the unlock hands the mutex over.
    pub(super) fn is_serial(&self, attributes: u32) -> bool {
        // ORDERING: Relaxed: a hint; a thread that begins to wait later is served as it comes.
        attributes & SERIAL != 0 || attributes & AUTO != 0 && self.urgent.load(Ordering::Relaxed) > 0
    }

    /// Prepares a wait during which the caller may be moved to this mutex, which does not inherit. Returns whether the
    /// caller was counted as a real-time waiter.
    pub(super) fn expect_move(&self) -> bool {
        let urgent = (self.attributes() & AUTO != 0).then(|| Urgent::count(&self.urgent));
        let is_counted = urgent.as_ref().is_some_and(|urgent| urgent.0.is_some());
        std::mem::forget(urgent);
        is_counted
    }

    /// Ends what [`RawMutex::expect_move`] began, after that wait.
    pub(super) fn expected_move(&self, is_counted: bool) {
        drop(Urgent(is_counted.then_some(&self.urgent)));
    }
}

/// A counted real-time waiter; dropping it removes it from the count.
struct Urgent<'a>(Option<&'a AtomicU16>);

impl<'a> Urgent<'a> {
    fn count(urgent: &'a AtomicU16) -> Self {
        let is_real_time = sched::scheduling_separately(ME).is_ok_and(|now| now.has_level() || now.is_deadline());
        if is_real_time {
            // ORDERING: Relaxed, here and below: a hint.
            urgent.fetch_add(1, Ordering::Relaxed);
        }
        Self(is_real_time.then_some(urgent))
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        if let Some(urgent) = self.0 {
            // A robust mutex may have forgotten the count.
            let _ = urgent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        }
    }
}
