//! The mutex all doors share, as memory.
//!
//! | protocol | waiting | what the kernel does | what is done here |
//! |---|---|---|---|
//! | none | `FUTEX_WAIT`, the most urgent first | keeps the queue | the word; unlock modes |
//! | inherit | `FUTEX_LOCK_PI2` | queue, order, inheritance along chains, hand-off, deadlock | the word without contention |
//! | protect | as none | as none | the ceiling |
//!
//! | file | what it does |
//! |---|---|
//! | `lock` | locks: without contention, and otherwise from top to bottom |
//! | `unlock` | unlocks |
//! | `wait` | waits for the word of one that does not inherit, and passes it to those that wait |
//! | `inherit` | asks the kernel, for one that inherits |
//! | `robust` | links one that survives its owner into the list that the C library registered, so that the kernel marks its word when the owner ends |
//! | `protect` | rises to the ceiling and falls; `ceiling` counts what a thread has risen to |
//!
//! The layout is that of the C library's mutex (glibc, 64 bits), field by field, and zeros are a free one: a static initialiser of C is
//! one of ours, and code of the C library that meets one of ours locks and unlocks it, too.

use super::kind::{BY_OTHERS, INHERIT, RECURSIVE, ROBUST, SHARED, TYPE};
use super::word::{FREE, WAITERS, owner};
use lockwright_sys::futex::Scope;
use lockwright_sys::robust::Node;
use lockwright_sys::sched::gettid;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// `state` of a robust one whose last owner ended, and that is not made consistent yet; and of one that never will be.
pub(super) const INCONSISTENT: u32 = 0x7fff_ffff;
pub(super) const NOT_RECOVERABLE: u32 = 0x7fff_fffe;

/// A mutex, as memory. Never move it while anybody uses it.
#[repr(C)]
pub struct RawMutex {
    pub(super) word: AtomicU32,
    /// How often its owner took it again.
    pub(super) depth: AtomicU32,
    /// The states of a robust one; otherwise the owner's id, where that is [shown](Self::show_owner).
    pub(super) state: AtomicU32,
    /// Threads that gave it back to wait for a condition, and will ask for it again.
    pub(super) away: AtomicU32,
    pub(super) kind: AtomicU32,
    /// Real-time threads that wait, where that is asked for.
    pub(super) urgent: AtomicU16,
    pub(super) ceiling: AtomicU8,
    /// Tick at which somebody found it handed to another; 0 where nobody did.
    pub(super) handed_at: AtomicU8,
    pub(super) node: Node,
}

// SAFETY: all but the node are atomics; the node is touched only by the thread that holds the mutex, or is about to.
unsafe impl Sync for RawMutex {}
// SAFETY: as above; a free one is in no list.
unsafe impl Send for RawMutex {}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex").field("word", &self.word).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl RawMutex {
    /// A free one of this kind; `ceiling` is a level of SCHED_FIFO, for those that protect.
    ///
    /// # Safety
    /// A [robust](super::kind::ROBUST) one stays where it is, and what it is, while a thread has it, also one that forgot to give it back or ended with it: the
    /// kernel and the thread's other robust mutexes know its address.
    #[must_use]
    pub const unsafe fn new(kind: u32, ceiling: u8) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            depth: AtomicU32::new(0),
            state: AtomicU32::new(0),
            away: AtomicU32::new(0),
            kind: AtomicU32::new(kind),
            urgent: AtomicU16::new(0),
            ceiling: AtomicU8::new(ceiling),
            handed_at: AtomicU8::new(0),
            // SAFETY: the caller promises the same for robust mutexes, and the nodes of others are not used.
            node: unsafe { Node::new() },
        }
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> u32 {
        // ORDERING: Relaxed: set before anybody else knows the mutex.
        self.kind.load(Ordering::Relaxed)
    }

    /// Adds to what it is, for one that others initialised: before anybody takes it. Says whether it was still of kind `before`.
    ///
    /// # Safety
    /// That of [`RawMutex::new`], for what it becomes.
    pub unsafe fn add_to_kind(&self, before: u32, more: u32) -> bool {
        // ORDERING: Relaxed: of those who ask first one changes it, and all see that, for it is one word.
        self.kind.compare_exchange(before, before | more, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether threads unlock it for each other, as a semaphore: then its owner is not the one that others wait for.
    pub(super) fn is_unlocked_by_others(&self) -> bool {
        self.kind() & BY_OTHERS != 0
    }

    /// Whether it survives its owners.
    pub fn is_robust(&self) -> bool {
        self.kind() & ROBUST != 0
    }

    /// Whether nobody has it, waits for it, or ended with it.
    pub fn is_free(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        self.word.load(Ordering::Relaxed) == FREE
    }

    /// Whether somebody has it, waits for it, or will after a wait for a condition.
    pub fn is_in_use(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        !self.is_free() || self.away.load(Ordering::Relaxed) > 0
    }

    /// The caller, which has it, gives it back to wait for a condition.
    pub(super) fn go_away(&self) {
        // ORDERING: Relaxed, here and below: only counted.
        self.away.fetch_add(1, Ordering::Relaxed);
    }

    /// It has come back.
    pub(super) fn come_back(&self) {
        self.away.fetch_sub(1, Ordering::Relaxed);
    }

    /// In a child process: what `thread` of the parent had is the caller's, which came from it. Says whether it had this.
    ///
    /// For those that are neither robust nor protect, of this process alone.
    pub fn take_over(&self, thread: u32) -> bool {
        // ORDERING: Relaxed: nobody else in this process knows of it as taken.
        let word = self.word.load(Ordering::Relaxed);
        // The parent's threads wait in the parent.
        thread != 0
            && owner(word) == thread
            && self.word.compare_exchange(word, gettid().0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whose it is; 0 where nobody's.
    pub fn owner(&self) -> u32 {
        // ORDERING: Relaxed: only looked at.
        owner(self.word.load(Ordering::Relaxed))
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// The address of a word: the mutex may be gone.
    pub(crate) fn word_of(mutex: *const Self) -> *const AtomicU32 {
        mutex.wrapping_byte_add(std::mem::offset_of!(Self, word)).cast()
    }

    /// The kernel wakes who waits for a dead owner, and does that as if all processes could wait. Where it inherits it knows its waiters.
    pub(crate) fn scope(kind: u32) -> Scope {
        let is_woken_by_death = kind & (ROBUST | INHERIT) == ROBUST;
        if kind & SHARED == 0 && !is_woken_by_death { Scope::Private } else { Scope::Shared }
    }

    /// The level of a ceiling.
    pub fn ceiling(&self) -> u8 {
        // ORDERING: Relaxed: changed by the owner only.
        self.ceiling.load(Ordering::Relaxed)
    }

    /// Shows the owner in the field where the C library has it, for programs that read it there. For the owner.
    #[inline(always)]
    pub fn show_owner(&self) {
        // ORDERING: Relaxed, here and below: the owner's.
        if self.state.load(Ordering::Relaxed) < NOT_RECOVERABLE {
            self.state.store(gettid().0, Ordering::Relaxed);
        }
    }

    /// Clears that field, before the owner unlocks. Does nothing for another thread, and while the owner has it more than once.
    #[inline(always)]
    pub fn hide_owner(&self) {
        if self.state.load(Ordering::Relaxed) == gettid().0 && self.is_locked_once(self.kind()) {
            self.state.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the caller has it.
    pub fn is_mine(&self) -> bool {
        self.owner() == gettid().0
    }

    /// Whether its owner took it again, and so has to give it back more than once. For the owner.
    pub fn is_taken_again(&self) -> bool {
        // ORDERING: Relaxed: only the owner writes it.
        self.depth.load(Ordering::Relaxed) > 0
    }

    /// For the owner; looked at by others it says nothing.
    #[inline(always)]
    pub(super) fn is_locked_once(&self, kind: u32) -> bool {
        // ORDERING: Relaxed: the owner's.
        kind & TYPE != RECURSIVE || self.depth.load(Ordering::Relaxed) == 0
    }

    /// Says that somebody may wait, so that the caller, which holds the mutex, wakes it.
    pub(crate) fn announce_waiters(&self) {
        // ORDERING: Relaxed: the word is the caller's.
        self.word.fetch_or(WAITERS, Ordering::Relaxed);
    }
}
