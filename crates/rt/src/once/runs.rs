//! The initialisers that execute in this process: one slot for each, a word with priority inheritance that belongs to
//! the executing thread. Threads that wait for an initialiser wait for its slot.
//!
//! A slot may pass to another initialiser while a thread still wants to wait for the last one. So a thread that gets a
//! slot reads the state of its own [`Once`](super::Once) again. If that names this slot, the initialiser is executing
//! nowhere: the thread that executed it would still have the slot.
//!
//! A child process finds the slots of its parent. No handler of `fork` frees them: the child's memory may show that a
//! slot belongs to a thread, but not that this thread registered a handler before.

use super::error::OnceError;
use lockwright_sys::SysError;
use lockwright_sys::pi_word::{PiError, PiWord};
use lockwright_sys::sched::Tid;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

const SLOTS: usize = 64;

static WORDS: [PiWord; SLOTS] = [const { PiWord::new() }; SLOTS];
/// The address of the once that each slot is for. Only the owner of a slot reads it.
static ONCES: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

thread_local! {
    /// How many initialisers the thread executes. Its id in a slot means nothing without them: the id may be that of a
    /// thread that ended.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// The place of an initialiser that executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u8);

impl Slot {
    /// Returns the slot with this number.
    pub(super) fn of(number: u32) -> Option<Self> {
        u8::try_from(number).ok().filter(|&number| usize::from(number) < SLOTS).map(Self)
    }

    pub(super) fn number(self) -> u32 {
        self.0.into()
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

    /// Waits until the slot belongs to the caller.
    ///
    /// BOUND: until its initialiser ends, executed with at least the caller's priority.
    pub(super) fn wait(self, me: Tid) -> Result<(), OnceError> {
        if self.word().take_over(me) {
            return Ok(());
        }
        self.word().lock_or_inherit(me).map(drop).map_err(|error| match error {
            PiError::Deadlock => OnceError::Deadlock,
            PiError::OwnerDied => OnceError::Sys(SysError { call: "futex lock", errno: libc::ESRCH }),
            PiError::Sys(error) => OnceError::Sys(error),
        })
    }

    /// Whether the caller executes an initialiser with this slot.
    pub(super) fn is_used_by(self, me: Tid) -> bool {
        RUNNING.get() > 0 && self.word().is_owned_by(me)
    }

    /// Whether the slot, which belongs to the caller, is for the once at this address.
    pub(super) fn is_for(self, once: usize) -> bool {
        ONCES[usize::from(self.0)].load(Ordering::Relaxed) == once
    }

    /// Notes that the caller executes the initialiser of the once at this address with this slot.
    pub(super) fn begin(self, once: usize) -> Self {
        // ORDERING: Relaxed, here and above: the same thread reads it.
        ONCES[usize::from(self.0)].store(once, Ordering::Relaxed);
        RUNNING.set(RUNNING.get() + 1);
        self
    }

    /// Notes that the caller's initialiser has ended.
    pub(super) fn end(self) {
        RUNNING.set(RUNNING.get().saturating_sub(1));
    }

    /// Passes the slot to the most urgent thread that waits for it.
    pub(super) fn leave(self, me: Tid) {
        // In a child process the slot may belong to another thread, or to the parent: the kernel refuses.
        let _ = self.word().unlock(me);
    }
}
