//! The initialisers that execute in this process: one slot for each, a word with priority inheritance that belongs to
//! the executing thread. Threads that wait for an initialiser wait for its slot.
//!
//! A slot may pass to another initialiser while a thread is about to wait for the last one. So a thread that gets a
//! slot reads the state of its own [`Once`](super::Once) again. If that state names this slot, no thread is executing
//! the initialiser: a thread that executed it would still have the slot.
//!
//! A child process finds the slots of its parent. No handler of `fork` frees them: the child's memory may show that a
//! slot belongs to a thread, but not that this thread registered a handler before.

use super::error::OnceError;
use lockwright_sys::SysError;
use lockwright_sys::futex::Deadline;
use lockwright_sys::held;
use lockwright_sys::pi_word::{PiError, PiWord};
use lockwright_sys::sched::Tid;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SLOTS: usize = 64;

/// How long a thread waits for a slot before it looks whether its initialiser still has it.
const LOOK: Duration = Duration::from_millis(10);

static WORDS: [PiWord; SLOTS] = [const { PiWord::new() }; SLOTS];
/// The address of the once that each slot is for. Only the owner of a slot reads it.
static ONCES: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

thread_local! {
    /// A bit for each slot with which the thread executes an initialiser. Its id in a slot means nothing without that:
    /// the id may be that of a thread that ended.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
}

/// The place of an initialiser that executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RunSlot(u8);

impl RunSlot {
    /// Returns the slot with this number.
    pub(super) fn of(number: u32) -> Option<Self> {
        u8::try_from(number).ok().filter(|&number| usize::from(number) < SLOTS).map(Self)
    }

    pub(super) fn number(self) -> u32 {
        self.0.into()
    }

    fn bit(self) -> u64 {
        1 << self.0
    }

    fn word(self) -> &'static PiWord {
        &WORDS[usize::from(self.0)]
    }

    /// Returns a slot that now belongs to the caller, or `None` if initialisers use all of them.
    ///
    /// BOUND: SLOTS exchanges; then as many system calls, to find slots of threads that have ended.
    pub(super) fn enter(me: Tid) -> Option<Self> {
        let mut slots = (0..SLOTS as u8).map(Self);
        slots.clone().find(|slot| slot.word().try_lock(me)).or_else(|| slots.find(|slot| slot.word().take_over(me)))
    }

    /// Waits until the slot belongs to the caller, and returns whether it does. Otherwise the caller looks at its once
    /// again: the slot may have passed to another initialiser, for which it must not wait.
    ///
    /// BOUND: until its initialiser ends, executed with at least the caller's priority; LOOK.
    pub(super) fn wait(self, me: Tid) -> Result<bool, OnceError> {
        if self.word().take_over(me) {
            return Ok(true);
        }
        match self.word().lock_or_inherit_until(me, Deadline::after(LOOK)) {
            Ok(_) => Ok(true),
            Err(PiError::Sys(SysError { errno: libc::ETIMEDOUT, .. })) => Ok(false),
            Err(PiError::Deadlock) => Err(OnceError::Deadlock),
            Err(PiError::OwnerDied) => Err(OnceError::Sys(SysError { call: "futex lock", errno: libc::ESRCH })),
            Err(PiError::Sys(error)) => Err(OnceError::Sys(error)),
        }
    }

    /// Whether the caller executes an initialiser with this slot.
    pub(super) fn is_used_by(self, me: Tid) -> bool {
        RUNNING.get() & self.bit() != 0 && self.word().is_owned_by(me)
    }

    /// Whether the slot, which belongs to the caller, is for the once at this address.
    pub(super) fn is_for(self, once: usize) -> bool {
        ONCES[usize::from(self.0)].load(Ordering::Relaxed) == once
    }

    /// Notes that the caller executes the initialiser of the once at this address with this slot.
    pub(super) fn begin(self, once: usize) -> Self {
        // ORDERING: Relaxed, here and above: the same thread reads it.
        ONCES[usize::from(self.0)].store(once, Ordering::Relaxed);
        RUNNING.set(RUNNING.get() | self.bit());
        held::took_one();
        self
    }

    /// Notes that the caller's initialiser has ended.
    pub(super) fn end(self) {
        RUNNING.set(RUNNING.get() & !self.bit());
        held::gave_one_back();
    }

    /// Passes the slot to the most urgent thread that waits for it.
    pub(super) fn leave(self, me: Tid) {
        // In a child process the slot may belong to another thread, or to the parent: the kernel refuses.
        let _ = self.word().unlock(me);
    }
}
