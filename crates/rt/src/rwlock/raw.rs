//! The reader-writer lock that all interfaces share, without a value.
//!
//! | word | contents |
//! |---|---|
//! | `state` | the readers, and the writer's progress; see `state` |
//! | `turn` | the writer's thread id; other writers wait here, in the order of their priorities |
//! | `gates` | the writer's thread id, where readers of this phase wait |
//!
//! `turn` and the gates are words with priority inheritance, so every thread that waits for a writer lends it its
//! priority. A writer that waits for readers waits at the lower half of `state`, and lends nothing: the kernel lends
//! priorities only to owners of words, and readers are only counted.
//!
//! When the writer leaves, it unlocks each gate. A reader that gets a gate unlocks it for the next one at this gate.
//!
//! # The last access
//! A writer that leaves exchanges `state`, and the lock is free. Then it touches the lock again: the gates if readers
//! wait, and the turn. A reader that it has admitted may be the last user, and may destroy the lock in between:
//!
//! ```text
//!   the writer (low priority)     the last user (high priority)      state      turn
//!   exchanges `state`                                                inside 1   writer
//!   unlocks the gate              gets the gate, passes                         writer
//!     (preempted)                 unlocks                            free       writer
//!                                 `settle`: requests the turn                   writer | WAITERS
//!     (lent high priority)
//!   unlocks the other gates
//!   unlocks the turn, in the kernel                                             last user | WAITERS
//!                                 unlocks the turn                              0
//!                                 frees the memory
//! ```
//! The kernel hands the turn over in the last access of the writer. No other word is touched after the lock is free: a
//! reader unlocks its gate before it passes, and wakes a writer without accessing the lock.
//!
//! `turn` has an owner and `state` is free also if a writer comes. `settle` must not wait until this writer leaves, so
//! it looks at `state` again after a while.
//!
//! The layout leaves the fields of the C library's lock (glibc, 64 bits) at 28 and 48 free, and zeros are a free lock.

use super::state::{Enter, GATES, Place, State};
use crate::mutex::inherit::wait_inheriting;
use crate::mutex::{Deadline, Limit, RawError, nap};
use lockwright_sys::futex::{self, Ended, Scope};
use lockwright_sys::sched::{Tid, gettid, is_ours};
use lockwright_sys::{KeepErrno, SysError, held};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The thread id in a word.
const TID: u32 = 0x3fff_ffff;
/// The time between two looks whether a writer has come while the lock should be destroyed.
const SETTLE: Duration = Duration::from_millis(5);
/// The same in nanoseconds, if the kernel refuses to lend priorities.
const SETTLE_NAP_NS: u64 = 50_000;

/// A reader-writer lock without a value. It must not move while it is in use.
#[repr(C)]
pub struct RawRwLock {
    state: AtomicU64,
    turn: AtomicU32,
    even: [AtomicU32; GATES],
    /// 1 if several processes use the lock.
    shared: AtomicU32,
    odd: [AtomicU32; GATES],
    /// For the user of the lock.
    kind: AtomicU32,
    unused: AtomicU32,
}

const _: () = assert!(std::mem::offset_of!(RawRwLock, shared) == 28 && std::mem::offset_of!(RawRwLock, kind) == 48);
const _: () = assert!(size_of::<RawRwLock>() == 56);

impl fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRwLock").field("state", &self.load()).finish_non_exhaustive()
    }
}

impl RawRwLock {
    /// Creates a free lock, for threads of this process or for those of all processes that map it. The user may store
    /// anything in `kind`.
    #[must_use]
    pub const fn new(shared: bool, kind: u32) -> Self {
        Self {
            state: AtomicU64::new(0),
            turn: AtomicU32::new(0),
            even: [const { AtomicU32::new(0) }; GATES],
            shared: AtomicU32::new(shared as u32),
            odd: [const { AtomicU32::new(0) }; GATES],
            kind: AtomicU32::new(kind),
            unused: AtomicU32::new(0),
        }
    }

    /// Returns what the user has stored.
    #[inline]
    pub fn kind(&self) -> u32 {
        // ORDERING: Relaxed: set before other threads use the lock.
        self.kind.load(Ordering::Relaxed)
    }

    /// Whether several processes use the lock.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // ORDERING: Relaxed: as in `kind`.
        self.shared.load(Ordering::Relaxed) != 0
    }

    /// Whether a thread holds the lock or waits for it.
    pub fn is_in_use(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        !self.load().is_free() || self.turn.load(Ordering::Relaxed) != 0
    }

    /// Waits until a writer that has left the lock no longer touches it, so that the last user can free its memory. The
    /// writer has at least the priority of the caller meanwhile.
    ///
    /// # Errors
    /// [`RawError::Busy`] if a thread holds the lock or waits for it; [`RawError::Sys`] if the kernel refuses to wake a
    /// writer that waits.
    ///
    /// # Bound
    /// Until the writer has unlocked the gates of the readers that it has admitted, and has passed the turn on. If
    /// another writer has the turn, at most 5 ms longer than until it enters. A writer that has ended, or is a thread
    /// of the parent process, is not waited for, unless a thread of this process has its id.
    pub fn settle(&self) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        // BOUND: until the writer that leaves has executed; the caller lends it its priority. Another round is for a
        // writer that comes, for one that is preempted although it has the priority of the caller, and for a kernel
        // that refuses to lend priorities.
        loop {
            if !self.load().is_free() || self.is_writer() {
                return Err(RawError::Busy);
            }
            // ORDERING: Acquire pairs with the Release with which the writer passes the turn on.
            if self.turn.load(Ordering::Acquire) == 0 {
                return Ok(());
            }
            match self.wait_for(&self.turn, Limit::At(Deadline::after(SETTLE))) {
                Ok(()) => {
                    self.unlock_word(&self.turn, gettid())?;
                    return if self.is_in_use() { Err(RawError::Busy) } else { Ok(()) };
                }
                Err(RawError::TimedOut) => {}
                // The writer has ended, or is a thread of the parent process, which does not touch this memory.
                Err(RawError::Sys(SysError { errno: libc::ESRCH, .. })) => return Ok(()),
                Err(_) => {
                    nap(SETTLE_NAP_NS, Limit::Never);
                }
            }
        }
    }

    /// Whether the caller holds the lock for writing.
    #[inline]
    pub fn is_writer(&self) -> bool {
        // ORDERING: Relaxed: a thread that reads its own id wrote it.
        self.turn.load(Ordering::Relaxed) & TID == gettid().0
    }

    /// Locks for reading. Waits for a writer that is inside or waits for readers, and for no other writer.
    ///
    /// # Errors
    /// [`RawError::Busy`] with [`Limit::Now`]; [`RawError::TimedOut`]; [`RawError::Deadlock`] if the caller holds the
    /// lock for writing, or the kernel finds that it would wait for itself; [`RawError::TooOften`] with more readers
    /// than can be counted; [`RawError::Sys`] if the kernel refuses, with ESRCH if the writer has ended.
    ///
    /// # Bound
    /// Without a writer, one exchange of the word, repeated if another thread changes it at the same time. Otherwise
    /// until `limit`, or until the readers inside and this writer unlock.
    #[inline]
    pub fn read(&self, limit: Limit) -> Result<(), RawError> {
        self.read_as(false, limit)
    }

    /// Locks for reading as [`RawRwLock::read`] does, for a caller that may already hold the lock for reading. It also
    /// enters while a writer waits for readers; that writer then also waits for the caller.
    ///
    /// # Errors
    /// Those of [`RawRwLock::read`].
    #[inline]
    pub fn read_nested(&self, limit: Limit) -> Result<(), RawError> {
        self.read_as(true, limit)
    }

    #[inline]
    fn read_as(&self, nested: bool, limit: Limit) -> Result<(), RawError> {
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word.
        loop {
            match state.enter(nested) {
                // ORDERING: Acquire, here and below, pairs with the Release of the writer that left, and for the gates
                // with that of the writer that came.
                Enter::In(next) => match self.exchange(state, next, Ordering::Acquire) {
                    Ok(()) => return Ok(()),
                    Err(now) => state = now,
                },
                Enter::Full => return Err(RawError::TooOften),
                Enter::Wait(..) if limit == Limit::Now => return Err(RawError::Busy),
                Enter::Wait(..) if self.is_writer() => return Err(RawError::Deadlock(None)),
                Enter::Wait(next, place) => match self.exchange(state, next, Ordering::Acquire) {
                    Ok(()) => return self.wait_to_read(place, limit),
                    Err(now) => state = now,
                },
            }
        }
    }

    /// Waits at a gate until the writer has admitted the caller.
    #[cold]
    fn wait_to_read(&self, place: Place, limit: Limit) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        let mut waited = Ok(());
        if !self.load().has_admitted(place.phase) {
            let gate = &self.gates(place.phase)[place.gate];
            waited = self.wait_for(gate, limit).and_then(|()| self.unlock_word(gate, gettid()));
        }
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word.
        loop {
            if state.has_admitted(place.phase) {
                let (next, wakes) = state.pass();
                // ORDERING: Acquire pairs with the Release of the writer. Release: the gate is free for the next one.
                match self.exchange(state, next, Ordering::AcqRel) {
                    Ok(()) if wakes => self.writer().wake(),
                    Ok(()) => {}
                    Err(now) => {
                        state = now;
                        continue;
                    }
                }
                return Ok(());
            }
            match self.exchange(state, state.give_up(), Ordering::Release) {
                // The gate is the caller's, and the writer has not left: it has ended.
                Ok(()) => return waited.and(Err(ended())),
                Err(now) => state = now,
            }
        }
    }

    /// Unlocks after reading.
    ///
    /// # Errors
    /// [`RawError::NotOwner`] if no reader is inside.
    ///
    /// # Bound
    /// One exchange of the word, repeated if another thread changes it at the same time; if a writer waits for the
    /// caller alone, one system call.
    #[inline]
    pub fn unlock_read(&self) -> Result<(), RawError> {
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word.
        loop {
            let (next, wakes) = state.reader_leaves().ok_or(RawError::NotOwner)?;
            // Read before the exchange: after it, a writer that does not sleep may enter, unlock and free the lock.
            let writer = wakes.then(|| self.writer());
            // ORDERING: Release pairs with the Acquire of the next writer.
            match (self.exchange(state, next, Ordering::Release), writer) {
                (Ok(()), Some(writer)) => {
                    writer.wake();
                    return Ok(());
                }
                (Ok(()), None) => return Ok(()),
                (Err(now), _) => state = now,
            }
        }
    }

    /// Locks for writing.
    ///
    /// # Errors
    /// Those of [`RawRwLock::read`], except [`RawError::TooOften`].
    ///
    /// # Bound
    /// Without contention, two exchanges. Otherwise until `limit`, or until the writer, the more urgent writers and the
    /// readers between these have unlocked.
    #[inline]
    pub fn write(&self, limit: Limit) -> Result<(), RawError> {
        let me = gettid();
        // ORDERING: Acquire pairs with the Release of the unlock; the kernel's own path is a full barrier.
        if self.turn.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait_for_turn(limit)?;
        }
        let entered = self.come(me, limit);
        if entered.is_ok() {
            held::took_one();
        }
        entered
    }

    #[cold]
    fn wait_for_turn(&self, limit: Limit) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        if limit == Limit::Now {
            return Err(RawError::Busy);
        }
        if self.is_writer() {
            return Err(RawError::Deadlock(None));
        }
        self.wait_for(&self.turn, limit)
    }

    /// Enters as the writer whose turn it is.
    fn come(&self, me: Tid, limit: Limit) -> Result<(), RawError> {
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word, or waits within `limit` until readers of an
        // earlier phase have executed.
        loop {
            // The last writer ended without unlocking.
            if state.has_writer() {
                return self.unlock_word(&self.turn, me).and(Err(ended()));
            }
            if limit == Limit::Now && (state.inside() > 0 || state.is_held_up()) {
                return self.unlock_word(&self.turn, me).and(Err(RawError::Busy));
            }
            if state.is_held_up() {
                if let Err(error) = self.wait_for_readers(state, limit) {
                    return self.unlock_word(&self.turn, me).and(Err(error));
                }
                state = self.load();
                continue;
            }
            for gate in self.gates(state.phase()) {
                // ORDERING: Relaxed: published by the exchange below.
                gate.store(me.0, Ordering::Relaxed);
            }
            // ORDERING: Acquire pairs with the Release of readers that left, if none is inside. Release publishes the
            // gates.
            match self.exchange(state, state.writer_comes(), Ordering::AcqRel) {
                Ok(()) if state.inside() == 0 => return Ok(()),
                Ok(()) => return self.drain(me, limit),
                Err(now) => state = now,
            }
        }
    }

    /// Waits until the readers inside have left.
    #[cold]
    fn drain(&self, me: Tid, limit: Limit) -> Result<(), RawError> {
        let mut state = self.load();
        // BOUND: `limit`. A round fails because a reader has left, passed, or come.
        loop {
            let next = state.writer_continues();
            if next.is_written() {
                // ORDERING: Acquire pairs with the Release of the readers.
                match self.exchange(state, next, Ordering::Acquire) {
                    Ok(()) => return Ok(()),
                    Err(now) => state = now,
                }
                continue;
            }
            if let Err(error) = self.wait_for_readers(state, limit) {
                return self.leave(me).and(Err(error));
            }
            state = self.load();
        }
    }

    /// Unlocks after writing.
    ///
    /// # Errors
    /// [`RawError::NotOwner`] if the caller does not hold the lock for writing; [`RawError::Sys`] if the kernel refuses
    /// to wake a waiter.
    ///
    /// # Bound
    /// Two exchanges; with waiters, one system call for each gate with a reader, and one for writers.
    #[inline]
    pub fn unlock_write(&self) -> Result<(), RawError> {
        if !self.is_writer() {
            return Err(RawError::NotOwner);
        }
        let left = self.leave(gettid());
        held::gave_one_back();
        left
    }

    /// Admits all waiting readers, wakes them, and passes the turn on.
    fn leave(&self, me: Tid) -> Result<(), RawError> {
        let mut state = self.load();
        // BOUND: a round fails because a reader has come or given up.
        // ORDERING: Release pairs with the Acquire of the readers. Acquire orders what the next writer stores at the
        // gates after the readers that left them.
        while let Err(now) = self.exchange(state, state.writer_leaves(), Ordering::AcqRel) {
            state = now;
        }
        let mut result = Ok(());
        if state.waiting() > 0 {
            for gate in self.gates(state.phase()) {
                result = result.and(self.unlock_word(gate, me));
            }
        }
        result.and(self.unlock_word(&self.turn, me))
    }

    /// In a child process: makes the caller the writer if `thread` of the parent held the lock for writing. Returns
    /// whether it did. If a thread of this process has the id `thread` meanwhile, it may be the writer, and the result
    /// is `false`.
    pub fn take_over(&self, thread: u32) -> bool {
        // ORDERING: Relaxed, here and below: the value is only compared, and if no thread of this process has that id,
        // none uses the lock yet.
        if thread == 0 || self.turn.load(Ordering::Relaxed) & TID != thread || is_ours(Tid(thread)) {
            return false;
        }
        // The waiters are those of the parent.
        let state = self.load().without_readers();
        let me = gettid();
        self.state.store(state.0, Ordering::Relaxed);
        self.gates(state.phase()).iter().chain([&self.turn]).for_each(|word| word.store(me.0, Ordering::Relaxed));
        true
    }

    fn load(&self) -> State {
        // ORDERING: Acquire pairs with the Release of those who left: a writer stores its id at gates that they used.
        State(self.state.load(Ordering::Acquire))
    }

    /// Exchanges the word. Returns the present one if it has changed.
    #[inline]
    fn exchange(&self, from: State, to: State, order: Ordering) -> Result<(), State> {
        self.state.compare_exchange(from.0, to.0, order, Ordering::Acquire).map(drop).map_err(State)
    }

    fn gates(&self, phase: usize) -> &[AtomicU32; GATES] {
        if phase == 0 { &self.even } else { &self.odd }
    }

    fn scope(&self) -> Scope {
        if self.is_shared() { Scope::Shared } else { Scope::Private }
    }

    /// The half of `state` at which a writer waits for readers.
    fn low_half(&self) -> &AtomicU32 {
        futex::low_half(&self.state)
    }

    /// Waits while no reader leaves or passes.
    fn wait_for_readers(&self, state: State, limit: Limit) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        self.wait(self.low_half(), state.low(), limit)
    }

    /// Waits while the word is `expected`. It may also return for no reason.
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Limit) -> Result<(), RawError> {
        match futex::wait(self.scope(), word, expected, limit.until()) {
            Ended::Woken | Ended::Changed | Ended::Interrupted => Ok(()),
            Ended::TimedOut => Err(RawError::TimedOut),
            Ended::Refused(errno) => Err(RawError::Sys(SysError { call: "futex wait", errno })),
        }
    }

    /// Where a writer waits for readers.
    fn writer(&self) -> Writer {
        Writer { scope: self.scope(), word: std::ptr::from_ref(self.low_half()) }
    }

    /// Waits until the caller owns a word with priority inheritance.
    fn wait_for(&self, word: &AtomicU32, limit: Limit) -> Result<(), RawError> {
        wait_inheriting(self.scope(), word, limit, || matches!(limit, Limit::At(_)))
    }

    /// Unlocks a word with priority inheritance that the caller owns.
    fn unlock_word(&self, word: &AtomicU32, me: Tid) -> Result<(), RawError> {
        // ORDERING: Release pairs with the Acquire of the next owner.
        if word.compare_exchange(me.0, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            return Ok(());
        }
        let _errno = KeepErrno::now();
        futex::unlock_pi(self.scope(), word).map_err(RawError::Sys)
    }
}

/// Where a writer waits for readers. The lock may be freed meanwhile: nobody then waits there.
struct Writer {
    scope: Scope,
    word: *const AtomicU32,
}

impl Writer {
    #[cold]
    fn wake(self) {
        let _errno = KeepErrno::now();
        futex::wake(self.scope, self.word, 1);
    }
}

/// The error for a lock whose writer ended while it held it.
#[cold]
fn ended() -> RawError {
    RawError::Sys(SysError { call: "futex lock", errno: libc::ESRCH })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::holds_in_child;
    use std::thread;

    /// A writer between its two exchanges: it has the turn and has not entered yet.
    #[test]
    fn a_writer_that_comes_is_not_waited_for() {
        let (lock, is_answered) = (RawRwLock::new(false, 0), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let me = gettid();
                lock.turn.store(me.0, Ordering::Relaxed);
                while lock.turn.load(Ordering::Relaxed) == me.0 {
                    nap(SETTLE_NAP_NS, Limit::Never);
                }
                assert_eq!(lock.come(me, Limit::Never), Ok(()));
                while is_answered.load(Ordering::Relaxed) == 0 {
                    nap(SETTLE_NAP_NS, Limit::Never);
                }
                assert_eq!(lock.leave(me), Ok(()));
            });
            while lock.turn.load(Ordering::Relaxed) == 0 {
                nap(SETTLE_NAP_NS, Limit::Never);
            }
            assert_eq!(lock.settle(), Err(RawError::Busy));
            is_answered.store(1, Ordering::Relaxed);
        });
        assert_eq!(lock.settle(), Ok(()));
    }

    /// Its writer was about to unlock when it ended, or when another thread called `fork`.
    #[test]
    fn a_writer_outside_the_process_is_not_waited_for() {
        let lock = RawRwLock::new(false, 0);
        lock.turn.store(gettid().0, Ordering::Relaxed);
        assert!(holds_in_child(|| lock.settle() == Ok(())));
        let ended = thread::spawn(gettid).join().expect("it does not panic");
        lock.turn.store(ended.0, Ordering::Relaxed);
        assert_eq!(lock.settle(), Ok(()));
    }
}
