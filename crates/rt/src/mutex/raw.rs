//! The mutex that all interfaces share, without a value.
//!
//! | protocol | waiting | the kernel's part | this module's part |
//! |---|---|---|---|
//! | none | `FUTEX_WAIT`, the most urgent first | keeps the queue | the word; unlock modes |
//! | inherit | `FUTEX_LOCK_PI2` | queue, order, inheritance along chains, hand-off, deadlock | the word without contention |
//! | protect | as none | as none | the ceiling |
//!
//! | file | what it does |
//! |---|---|
//! | `lock` | locks: without contention, and otherwise from top to bottom |
//! | `unlock` | unlocks |
//! | `wait` | waits for the word of a mutex that does not inherit, and passes it to waiters |
//! | `inherit` | locks and unlocks through the kernel, with priority inheritance |
//! | `robust` | links a robust mutex into the list that the C library registered, so that the kernel marks its word when the owner ends |
//! | `protect` | rises to the ceiling and falls; `ceiling` counts the ceilings that a thread holds |
//!
//! The layout is that of the C library's mutex (glibc, 64 bits), field by field, and zeros are a free mutex. So a
//! static initialiser of C makes a valid mutex of this module, and code of the C library that is given a mutex of this
//! module locks and unlocks it while no thread waits.

use super::attributes::{Attributes, BY_OTHERS, INHERIT, RECURSIVE, ROBUST, SHARED, TYPE};
use super::word::{FREE, WAITERS, owner};
use lockwright_sys::futex::Scope;
use lockwright_sys::robust::Node;
use lockwright_sys::sched::{Tid, gettid, is_ours};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Values of `state` for a robust mutex: its last owner ended and it is not yet consistent, or it is not recoverable.
pub(super) const INCONSISTENT: u32 = 0x7fff_ffff;
pub(super) const NOT_RECOVERABLE: u32 = 0x7fff_fffe;

/// A mutex without a value. It must not move while it is in use.
#[repr(C)]
pub struct RawMutex {
    pub(super) word: AtomicU32,
    /// How often the owner has locked it again.
    pub(super) depth: AtomicU32,
    /// The state of a robust mutex; otherwise the owner's id, if it is [shown](Self::show_owner).
    pub(super) state: AtomicU32,
    /// The number of threads that unlocked it to wait for a condition and will lock it again.
    pub(super) away: AtomicU32,
    pub(super) attributes: AtomicU32,
    /// The number of real-time threads that wait, if the mutex needs it.
    pub(super) urgent: AtomicU16,
    pub(super) ceiling: AtomicU8,
    /// The tick at which a thread first found the mutex handed to another one, or 0; `robust::OPEN` if it was handed to
    /// nobody.
    pub(super) handed_at: AtomicU8,
    pub(super) node: Node,
}

// SAFETY: all fields except the node are atomics. Only the thread that holds the mutex, or is about to, accesses the
// node.
unsafe impl Sync for RawMutex {}
// SAFETY: only a held robust mutex has its node in a list, and the contract of `new` forbids moving it then.
unsafe impl Send for RawMutex {}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex")
            .field("word", &self.word)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

impl RawMutex {
    /// Creates a free mutex with these attributes. `ceiling` is a level of SCHED_FIFO, used with
    /// [`PROTECT`](Attributes::PROTECT).
    ///
    /// # Safety
    /// A [robust](Attributes::ROBUST) mutex must keep its address and its memory while a thread holds it. That
    /// includes a thread that forgot to unlock it and one that ended with it locked: the kernel and the thread's other
    /// robust mutexes hold its address.
    #[must_use]
    pub const unsafe fn new(attributes: Attributes, ceiling: u8) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            depth: AtomicU32::new(0),
            state: AtomicU32::new(0),
            away: AtomicU32::new(0),
            attributes: AtomicU32::new(attributes.bits()),
            urgent: AtomicU16::new(0),
            ceiling: AtomicU8::new(ceiling),
            handed_at: AtomicU8::new(0),
            // SAFETY: the contract of `new` keeps a robust mutex, and so its node, in place while a thread holds it.
            // Other mutexes do not insert their nodes.
            node: unsafe { Node::new() },
        }
    }

    /// Returns the [bits](Attributes::bits) of the mutex: its attributes, and what
    /// [`add_attributes`](Self::add_attributes) has added.
    #[inline]
    pub fn attributes(&self) -> u32 {
        // ORDERING: Relaxed: set before other threads use the mutex.
        self.attributes.load(Ordering::Relaxed)
    }

    /// Adds attributes to a mutex that other code initialised, before any thread locks it. Returns whether they were
    /// still `before`.
    ///
    /// # Safety
    /// If the new attributes make the mutex robust, it must keep its address and its memory while a thread holds it.
    pub unsafe fn add_attributes(&self, before: u32, more: u32) -> bool {
        // ORDERING: Relaxed: one of the first lockers changes the attributes, and all see the change because it is one
        // word.
        self.attributes.compare_exchange(before, before | more, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether threads unlock it for each other, as a semaphore. Then its waiters do not wait for its owner.
    pub(super) fn is_unlocked_by_others(&self) -> bool {
        self.attributes() & BY_OTHERS != 0
    }

    /// Whether it survives the end of its owner.
    pub fn is_robust(&self) -> bool {
        self.attributes() & ROBUST != 0
    }

    /// Whether the word is that of a free mutex: no owner, no waiter, and no owner that ended.
    pub fn is_free(&self) -> bool {
        // ORDERING: Relaxed: a hint.
        self.word.load(Ordering::Relaxed) == FREE
    }

    /// Whether a thread holds it, waits for it, or will lock it again after a wait for a condition. A robust mutex is
    /// in use only while a thread holds it: threads that ended may still be counted as its waiters.
    pub fn is_in_use(&self) -> bool {
        if self.is_robust() {
            return self.owner() != 0;
        }
        // ORDERING: Relaxed: a hint.
        !self.is_free() || self.away.load(Ordering::Relaxed) > 0
    }

    /// Counts the owner, which is about to unlock the mutex to wait for a condition.
    pub(super) fn go_away(&self) {
        // ORDERING: Relaxed, here and below: only a count.
        self.away.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends what [`RawMutex::go_away`] began.
    pub(super) fn come_back(&self) {
        self.away.fetch_sub(1, Ordering::Relaxed);
    }

    /// In a child process: makes the caller the owner of a mutex that `thread` of the parent held. Returns whether
    /// `thread` held it.
    ///
    /// The mutex must be private to the process, not robust, and without a ceiling. If a thread of this process has the
    /// id `thread` meanwhile, the mutex may be its own, and the result is `false`.
    pub fn take_over(&self, thread: u32) -> bool {
        // ORDERING: Relaxed, here and below: the value is only compared, and if no thread of this process has that id,
        // none uses the mutex yet.
        let word = self.word.load(Ordering::Relaxed);
        // The waiters are not announced: the parent's threads wait in the parent.
        thread != 0
            && owner(word) == thread
            && !is_ours(Tid(thread))
            && self.word.compare_exchange(word, gettid().0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the owner's thread id, or 0 if the mutex is free.
    pub fn owner(&self) -> u32 {
        // ORDERING: Relaxed: a hint.
        owner(self.word.load(Ordering::Relaxed))
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Returns the address of the word without reading the mutex, which may no longer exist.
    pub(crate) fn word_of(mutex: *const Self) -> *const AtomicU32 {
        mutex.wrapping_byte_add(std::mem::offset_of!(Self, word)).cast()
    }

    /// Returns the scope of the mutex's futex. A robust mutex that does not inherit is always shared, because the
    /// kernel wakes the waiters of a dead owner in that scope. With inheritance the kernel finds the waiters itself.
    pub(crate) fn scope(attributes: u32) -> Scope {
        let is_woken_by_death = attributes & (ROBUST | INHERIT) == ROBUST;
        if attributes & SHARED == 0 && !is_woken_by_death { Scope::Private } else { Scope::Shared }
    }

    /// Returns the ceiling, as a level of SCHED_FIFO.
    pub fn ceiling(&self) -> u8 {
        // ORDERING: Relaxed: only the owner changes it.
        self.ceiling.load(Ordering::Relaxed)
    }

    /// Stores the owner's id in the field where the C library has it, for programs that read it there. For the owner
    /// only.
    #[inline(always)]
    pub fn show_owner(&self) {
        // ORDERING: Relaxed, here and below: only the owner uses the field.
        if self.state.load(Ordering::Relaxed) < NOT_RECOVERABLE {
            self.state.store(gettid().0, Ordering::Relaxed);
        }
    }

    /// Clears that field before the mutex is unlocked, unless its owner has locked it more than once.
    #[inline(always)]
    pub fn hide_owner(&self) {
        // ORDERING: Relaxed: as above. The field of a robust mutex is also its state, so only its owner writes it. For
        // other mutexes a caller that is not the owner makes the display wrong, and nothing else.
        let may_write = self.attributes() & ROBUST == 0 || self.state.load(Ordering::Relaxed) == gettid().0;
        if may_write && self.depth.load(Ordering::Relaxed) == 0 {
            self.state.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the caller holds the mutex.
    pub fn is_mine(&self) -> bool {
        self.owner() == gettid().0
    }

    /// Whether the owner has locked the mutex more than once. For the owner only.
    pub fn is_taken_again(&self) -> bool {
        // ORDERING: Relaxed: only the owner writes it.
        self.depth.load(Ordering::Relaxed) > 0
    }

    /// Whether the owner has locked the mutex exactly once. For other threads the answer means nothing.
    #[inline(always)]
    pub(super) fn is_locked_once(&self, attributes: u32) -> bool {
        // ORDERING: Relaxed: the owner reads its own write.
        attributes & TYPE != RECURSIVE || self.depth.load(Ordering::Relaxed) == 0
    }

    /// Announces a waiter in the word, so that the caller, which holds the mutex, wakes one when it unlocks.
    pub(crate) fn announce_waiters(&self) {
        // ORDERING: Relaxed: the word is the caller's.
        self.word.fetch_or(WAITERS, Ordering::Relaxed);
    }
}
