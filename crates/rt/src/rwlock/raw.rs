//! The reader-writer lock that all interfaces share, without a value.
//!
//! | word | contents |
//! |---|---|
//! | `state` | the readers, and the writer's progress; see `state` |
//! | `turn` | the writer's thread id; other writers wait here, in the order of their priorities |
//! | `gates` | the writer's thread id, where readers of this phase wait |
//! | `leaver` | the thread id of a writer that has admitted others, or of one that waited for it |
//!
//! `turn`, the gates and `leaver` are words with priority inheritance, so every thread that waits for a writer lends it
//! its priority. A writer that waits for readers waits at the lower half of `state`, and lends nothing: the kernel
//! lends priorities only to owners of words, and readers are only counted.
//!
//! When the writer leaves, it unlocks each gate. A reader that gets a gate unlocks it for the next one at this gate.
//!
//! # The last access
//! The last user of a lock may free its memory as soon as its own unlock has returned. So when any unlock returns, no
//! thread that unlocked earlier still accesses the lock:
//!
//! - A reader leaves by one exchange of `state`, its last access.
//! - A writer for which nobody waits passes the turn on and then exchanges `state`, its last access. A writer that gets
//!   the turn in between finds `state` occupied, and waits at a gate as a reader until the other has left.
//! - A writer for which others wait owns `leaver`, exchanges `state` and sets LEAVING in it, and then unlocks the gates
//!   and the turn. To unlock `leaver` is its last access.
//! - Whoever unlocks first looks at LEAVING. If it is set, the thread locks `leaver`. It then knows that the writer is
//!   gone, because only the owner of `leaver` sets the bit. It clears the bit, unlocks `leaver`, and then leaves.
//!
//! The writer itself cannot clear the bit: its last access, to `leaver`, comes after, and an unlock that found the bit
//! clear would not wait for it. A thread that waited can: it still holds the lock when it unlocks `leaver`. If no
//! thread unlocks meanwhile, the bit stays set until the next unlock, which locks the free word and clears it.
//!
//! An owner of `leaver` without LEAVING still holds the lock, so no unlock needs to wait for it. This matters: else
//! threads would wait for each other, one after the other, long after the writer is gone, and without end if they lock
//! again. So only unlocks that saw the bit before it was cleared wait, each once. While a writer is inside, no other
//! sets the bit. While readers are inside, a writer sets it that gives up waiting for them, if others wait behind it. A
//! reader that has looked before does not wait for this one: it is no thread that has unlocked.
//!
//! Waiters for `leaver` lend its owner their priority, and it requests no other word. Yet an unlock depends on the
//! thread of the writer until its last access: if a signal interrupts it, also on the handler, and if the process of a
//! shared lock is stopped, on its continuation.
//!
//! The layout leaves the fields of the C library's lock (glibc, 64 bits) at 28 and 48 free, and zeros are a free lock.
//! There, `leaver` is padding, which C does not require an initialiser to clear, though compilers do. With other
//! contents, a writer for which others wait would wait for the thread of that id, if the process has it.

use super::state::{Enter, GATES, Place, State};
use crate::mutex::inherit::wait_inheriting;
use crate::mutex::{Limit, RawError, nap};
use lockwright_sys::futex::{self, Ended, Scope};
use lockwright_sys::pi_word;
use lockwright_sys::sched::{Tid, gettid, is_ours};
use lockwright_sys::{KeepErrno, SysError, held};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// The thread id in a word.
const TID: u32 = 0x3fff_ffff;

/// Nanoseconds between two attempts to wait for a writer that leaves, if the kernel refuses to wait.
const LEAVER_NAP_NS: u64 = 1_000_000;

thread_local! {
    /// How many words `leaver` the thread requests or owns: several only in a handler of a signal.
    static LEAVERS: Cell<u32> = const { Cell::new(0) };
}

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
    leaver: AtomicU32,
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
            leaver: AtomicU32::new(0),
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

    /// Whether a thread holds the lock, waits for it, or still accesses it to leave.
    pub fn is_in_use(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        !self.load().is_free() || [&self.turn, &self.leaver].iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Whether the caller holds the lock for writing. It is also true in a handler of a signal that interrupts the
    /// caller while it has the turn, and waits for readers or for a writer that is about to leave.
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
    /// caller alone, one system call. If a writer that left or gave up may still access the lock, also the time that it
    /// needs for this at the priority of the caller, and one system call of each more urgent thread that unlocks
    /// meanwhile; more only if writers give up meanwhile.
    #[inline]
    pub fn unlock_read(&self) -> Result<(), RawError> {
        let mut state = self.load();
        if state.is_leaving() {
            self.await_leaver();
            state = self.load();
        }
        // BOUND: a round fails because another thread has changed the word.
        loop {
            let (next, wakes) = state.reader_leaves().ok_or(RawError::NotOwner)?;
            // Read before the exchange: after it, a writer that does not sleep may enter, unlock and free the lock.
            let writer = wakes.then(|| self.writer());
            // ORDERING: Release pairs with the Acquire of the next writer. Acquire pairs with the Release of all that
            // left earlier: the caller may free the lock after this.
            match (self.exchange(state, next, Ordering::AcqRel), writer) {
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
    /// Those of [`RawRwLock::read`].
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
            if limit == Limit::Now && (state.has_writer() || state.inside() > 0 || state.is_held_up()) {
                return self.unlock_word(&self.turn, me).and(Err(RawError::Busy));
            }
            // The last writer has passed the turn on and is about to leave, or has ended.
            if state.has_writer() {
                if let Err(error) = self.follow(state, limit) {
                    return self.unlock_word(&self.turn, me).and(Err(error));
                }
                state = self.load();
                continue;
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

    /// Waits as a reader until the last writer has left.
    #[cold]
    fn follow(&self, mut state: State, limit: Limit) -> Result<(), RawError> {
        // BOUND: a round fails because another thread has changed the word.
        loop {
            match state.enter(false) {
                Enter::In(_) => return Ok(()),
                Enter::Full => return Err(RawError::TooOften),
                // ORDERING: Acquire: as in `read_as`.
                Enter::Wait(next, place) => match self.exchange(state, next, Ordering::Acquire) {
                    Ok(()) => return self.wait_to_read(place, limit).and_then(|()| self.unlock_read()),
                    Err(now) => state = now,
                },
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
    /// Two exchanges. With waiters, one system call for each gate with a reader, one for writers, and one for threads
    /// that unlock meanwhile. If an earlier writer may still access the lock, also what [`RawRwLock::unlock_read`]
    /// states for this.
    #[inline]
    pub fn unlock_write(&self) -> Result<(), RawError> {
        if !self.is_writer() {
            return Err(RawError::NotOwner);
        }
        let left = self.leave(gettid());
        held::gave_one_back();
        left
    }

    /// Passes the turn on and leaves. The last access is that to `state`, unless other threads wait.
    #[inline]
    fn leave(&self, me: Tid) -> Result<(), RawError> {
        // No other writer sets LEAVING until the caller has left.
        if self.load().is_leaving() {
            self.await_leaver();
        }
        // ORDERING: Release pairs with the Acquire of the next owner.
        if self.turn.compare_exchange(me.0, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            return self.leave_to_waiters(me, true);
        }
        let mut state = self.load();
        // BOUND: a round fails because a reader inside has left or passed, or one that waits has given up.
        while state.waiting() == 0 {
            // ORDERING: as in `leave_to_waiters`.
            match self.exchange(state, state.writer_leaves(), Ordering::AcqRel) {
                Ok(()) => return Ok(()),
                Err(now) => state = now,
            }
        }
        self.leave_to_waiters(me, false)
    }

    /// Admits all waiting readers, wakes them, and passes the turn on if the caller still has it. The last access is
    /// that to `leaver`.
    #[cold]
    fn leave_to_waiters(&self, me: Tid, has_turn: bool) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        let has_leaver = self.lock_leaver(me);
        let mut state = self.load();
        // BOUND: a round fails because a reader has come, left, passed or given up.
        // ORDERING: Release pairs with the Acquire of the readers, also for `leaver`. Acquire orders what the next
        // writer stores at the gates after the readers that left them.
        while let Err(now) = self.exchange(state, state.writer_leaves().leaving(), Ordering::AcqRel) {
            state = now;
        }
        let mut result = Ok(());
        if state.waiting() > 0 {
            for gate in self.gates(state.phase()) {
                result = result.and(self.unlock_word(gate, me));
            }
        }
        if has_turn {
            result = result.and(self.unlock_word(&self.turn, me));
        }
        if has_leaver {
            result = result.and(self.unlock_leaver(me));
        }
        result
    }

    /// Becomes the owner of `leaver`, once no other thread accesses the lock to leave. Returns whether it did: not if
    /// the caller is in a handler of a signal that has interrupted its own unlock.
    ///
    /// # Bound
    /// Until the owner unlocks: a writer that leaves makes at most GATES + 2 system calls at the priority of the
    /// caller, and another thread one. Then one system call of each thread that found LEAVING set and is more urgent
    /// than the caller. A writer that gives up may set the bit again, for further ones.
    fn lock_leaver(&self, me: Tid) -> bool {
        let others = LEAVERS.replace(LEAVERS.get() + 1);
        // A handler must not find the word in the caller's name before.
        compiler_fence(Ordering::SeqCst);
        // BOUND: until the owner has unlocked. Rounds with a nap end when the kernel has memory again, or knows the
        // thread that was chosen after an owner ended, or when the owner waits for the caller no more.
        loop {
            // ORDERING: Acquire pairs with the Release of the last owner.
            if self.leaver.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return true;
            }
            // ORDERING: Relaxed: a thread that reads its own id wrote it, or a thread that had the id before.
            if others > 0 && self.leaver.load(Ordering::Relaxed) & TID == me.0 {
                LEAVERS.set(others);
                return false;
            }
            // An owner that ended, or one of the parent process, does not access this memory.
            if pi_word::wait_or_inherit(self.scope(), &self.leaver, me, None).is_ok() {
                return true;
            }
            nap(LEAVER_NAP_NS, Limit::Never);
        }
    }

    /// Unlocks `leaver`, which the caller owns.
    fn unlock_leaver(&self, me: Tid) -> Result<(), RawError> {
        let unlocked = self.unlock_word(&self.leaver, me);
        compiler_fence(Ordering::SeqCst);
        LEAVERS.set(LEAVERS.get() - 1);
        unlocked
    }

    /// Waits until the writer that set LEAVING accesses the lock no more, and clears the bit. The caller holds the
    /// lock. In a handler that has interrupted this writer, it leaves the bit for others.
    #[cold]
    fn await_leaver(&self) {
        let (_errno, me) = (KeepErrno::now(), gettid());
        if !self.lock_leaver(me) {
            return;
        }
        let mut state = self.load();
        // BOUND: a round fails because another thread has changed the word.
        // ORDERING: Release pairs with the Acquire of an unlock that finds the bit clear, and may free the lock.
        while let Err(now) = self.exchange(state, state.left(), Ordering::AcqRel) {
            state = now;
        }
        let _ = self.unlock_leaver(me);
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
        self.leaver.store(0, Ordering::Relaxed);
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
    use crate::mutex::{Deadline, nap};
    use crate::process::holds_in_child;
    use std::thread;

    fn until(mut holds: impl FnMut() -> bool) {
        while !holds() {
            nap(100_000, Limit::Never);
        }
    }

    /// A writer that has passed the turn on, and is stopped before it leaves.
    #[test]
    fn a_writer_that_is_about_to_leave_is_waited_for() {
        let (lock, steps) = (RawRwLock::new(false, 0), AtomicU32::new(0));
        let stopped = || {
            let me = gettid();
            assert_eq!(lock.write(Limit::Never), Ok(()));
            lock.turn.store(0, Ordering::Release);
            me
        };
        thread::scope(|scope| {
            let me = stopped();
            assert_eq!(lock.write(Limit::Now), Err(RawError::Busy));
            scope.spawn(|| {
                let soon = Limit::At(Deadline::after(std::time::Duration::from_millis(20)));
                assert_eq!(lock.write(soon), Err(RawError::TimedOut));
                steps.store(1, Ordering::Relaxed);
                assert_eq!(lock.write(Limit::Never), Ok(()));
                assert_eq!(steps.load(Ordering::Relaxed), 2);
                assert_eq!(lock.unlock_write(), Ok(()));
            });
            until(|| steps.load(Ordering::Relaxed) == 1 && lock.load().waiting() == 1);
            steps.store(2, Ordering::Relaxed);
            assert_eq!(lock.leave_to_waiters(me, false), Ok(()));
        });
        assert!(!lock.is_in_use());
        held::gave_one_back();
    }

    /// It ended after it had passed the turn on.
    #[test]
    fn a_writer_that_ended_when_it_was_about_to_leave_is_reported() {
        let lock = RawRwLock::new(false, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(lock.write(Limit::Never), Ok(()));
                lock.turn.store(0, Ordering::Release);
            });
        });
        assert_eq!(lock.write(Limit::Now), Err(RawError::Busy));
        let told = lock.write(Limit::Never);
        assert!(matches!(told, Err(RawError::Sys(SysError { errno: libc::ESRCH, .. }))), "{told:?}");
        assert_eq!(lock.turn.load(Ordering::Relaxed), 0);
    }

    /// A lock that a writer has left, with these words.
    fn left_by(thread: u32, is_leaving: bool) -> RawRwLock {
        let lock = RawRwLock::new(false, 0);
        lock.leaver.store(thread, Ordering::Relaxed);
        let state = State(0);
        lock.state.store(if is_leaving { state.leaving().0 } else { state.0 }, Ordering::Relaxed);
        lock
    }

    fn reads(lock: &RawRwLock) -> bool {
        lock.read(Limit::Never).and_then(|()| lock.unlock_read()) == Ok(())
    }

    fn writes(lock: &RawRwLock) -> bool {
        lock.write(Limit::Never).and_then(|()| lock.unlock_write()) == Ok(())
    }

    /// A writer that still accessed the lock when it ended, or when another thread called `fork`.
    #[test]
    fn a_leaver_outside_the_process_is_not_waited_for() {
        let lock = left_by(gettid().0, true);
        for works in [reads, writes] {
            assert!(holds_in_child(|| works(&lock) && !lock.is_in_use() && !lock.load().is_leaving()));
            let ended = thread::spawn(gettid).join().expect("it does not panic").0;
            for waiters in [0, libc::FUTEX_WAITERS] {
                let lock = left_by(ended | waiters, true);
                assert!(works(&lock) && !lock.is_in_use() && !lock.load().is_leaving());
            }
        }
    }

    /// The writer has ended, and the system has given its id to the caller. In a handler of a signal, the caller may be
    /// this writer.
    #[test]
    fn a_leaver_with_the_id_of_the_caller() {
        let me = gettid().0;
        for works in [reads, writes] {
            let lock = left_by(me, true);
            assert!(works(&lock) && !lock.is_in_use() && !lock.load().is_leaving());
            let lock = left_by(me, true);
            LEAVERS.set(1);
            assert!(works(&lock));
            LEAVERS.set(0);
            assert!(lock.leaver.load(Ordering::Relaxed) == me && lock.load().is_leaving());
        }
        assert_eq!(LEAVERS.get(), 0);
    }

    /// Unlocks wait for the owner of `leaver` while LEAVING is set, and for no other owner.
    #[test]
    fn unlocks_wait_for_a_writer_that_leaves_and_not_for_each_other() {
        for (works, is_leaving) in [(reads as fn(&_) -> _, true), (writes, true), (reads, false), (writes, false)] {
            let (lock, step) = (left_by(0, is_leaving), AtomicU32::new(0));
            thread::scope(|scope| {
                scope.spawn(|| {
                    assert!(lock.lock_leaver(gettid()));
                    step.store(1, Ordering::Relaxed);
                    // Without LEAVING, the other thread sets it to 2.
                    let mut naps = 0;
                    until(|| {
                        naps += 1;
                        step.load(Ordering::Relaxed) == 2 || naps > if is_leaving { 20 } else { 10_000 }
                    });
                    assert_eq!(step.load(Ordering::Relaxed) == 2, !is_leaving);
                    assert_eq!(lock.unlock_leaver(gettid()), Ok(()));
                });
                until(|| step.load(Ordering::Relaxed) == 1);
                assert!(works(&lock));
                step.store(2, Ordering::Relaxed);
            });
            assert!(!lock.is_in_use() && !lock.load().is_leaving());
        }
    }

    /// A writer sets LEAVING for those that it wakes, and the next unlock clears it.
    #[test]
    fn the_next_unlock_clears_leaving() {
        let lock = RawRwLock::new(false, 0);
        for works in [reads, writes] {
            thread::scope(|scope| {
                assert_eq!(lock.write(Limit::Never), Ok(()));
                scope.spawn(|| assert_eq!(lock.read(Limit::Never), Ok(())));
                until(|| lock.load().waiting() == 1);
                assert_eq!(lock.unlock_write(), Ok(()));
            });
            assert!(lock.load().is_leaving() && lock.is_in_use());
            assert_eq!(lock.unlock_read(), Ok(()));
            assert!(!lock.load().is_leaving() && !lock.is_in_use());
            lock.state.fetch_or(State(0).leaving().0, Ordering::Relaxed);
            assert!(!lock.is_in_use());
            assert!(works(&lock) && !lock.load().is_leaving());
        }
    }
}
