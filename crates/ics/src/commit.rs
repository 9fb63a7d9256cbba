//! Strategies that decide commits, the only point at which threads synchronise.
//!
//! | strategy | one processor | several | on x86-64 |
//! |---|---|---|---|
//! | [`Locked`] | yes | yes | `lock cmpxchg` |
//! | [`Uniprocessor`] | yes | no | `cmpxchg`, one instruction that no thread of the same processor can interrupt |
//!
//! The crate `lockwright` has a third strategy, a restartable sequence of Linux.

use crate::sync::{AtomicU64, fence};
use core::sync::atomic::Ordering;

/// A strategy that decides commits: it compares, and changes a word if no other commit came first.
///
/// An object keeps one strategy for its whole life, and every entry uses it.
///
/// # Safety
/// The following must hold for all threads that may enter an object with this strategy, however they preempt each
/// other.
/// - [`Commit::post`] is atomic and releases what was written before it.
/// - [`Commit::perform`] changes `word` only if, *at the instant of the change*, the word is `old` or already `new`.
/// - [`Commit::perform`] does change `word` if the head is still `seen` and no other thread has changed the word.
///   It may leave the word as it is once the head is not `seen`.
/// - A change by [`Commit::perform`] releases what was written before it.
///   What the caller read before the call was read no later than the head.
/// - [`Commit::chosen`] passes a strategy for which all of this holds, together with this one.
#[allow(unsafe_code)] // Each implementation guarantees the contract above.
pub unsafe trait Commit {
    /// Changes `head` from `seen` to `new`, or leaves it as it is. Returns whether it was changed.
    #[must_use]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool;

    /// Changes `word` from `old` to `new` as long as `head` is `seen`.
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64);

    /// Whether the methods call functions, so that their caller saves registers.
    #[doc(hidden)]
    #[inline(always)]
    fn calls(&self) -> bool {
        false
    }

    /// Calls `work` with this strategy. A strategy that chooses among others passes the chosen one.
    #[doc(hidden)]
    #[inline(always)]
    fn chosen(&self, work: impl Work)
    where
        Self: Sized,
    {
        work.with(self);
    }
}

/// What [`Commit::chosen`] calls.
#[doc(hidden)]
pub trait Work {
    /// Works with a strategy.
    fn with(self, commit: &impl Commit);
}

/// Commits with the atomic compare-and-swap of the processor, which is correct on any number of processors.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Locked, Word};
///
/// static SHARED: Ics<[Word; 1], 2, 1, Locked> = Ics::with([Word::new(0)], Locked);
/// assert_eq!(SHARED.commit(), &Locked);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Locked;

// SAFETY: each method is one compare-and-swap, which is atomic for all processors and releases. A word that is `old`
// while the head is `seen` is changed once for that head, by the first thread and before the head changes. It never
// becomes `old` again, because each change has another version. That holds for locators, and for marks, which the owner
// of a record also sets by a store (`Writer::begin`).
#[allow(unsafe_code)]
unsafe impl Commit for Locked {
    #[inline]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        // ORDERING: Release pairs with the Acquire of the next entry: a thread that sees the head sees the record and
        // the values.
        head.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        // ORDERING: the fence pairs with that of a thread that rewrites the record: if this thread read a rewritten
        // value, it sees a newer head here.
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == seen {
            // ORDERING: Release pairs with the Acquire of readers of the word. If it fails, another thread has done the
            // change.
            let _ = word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// Commits with a compare-and-swap without the LOCK prefix, which is correct on one processor.
///
/// A thread of the same processor cannot interrupt the instruction; a thread of another processor can.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Uniprocessor, Word};
///
/// // SAFETY: a single thread enters the object.
/// let ics: Ics<[Word; 1], 1, 1, Uniprocessor> = Ics::with([Word::new(0)], unsafe { Uniprocessor::new() });
/// # let _ = ics;
/// ```
#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Uniprocessor(());

#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[allow(unsafe_code)]
impl Uniprocessor {
    /// Creates the strategy for an object that is entered on one processor only.
    ///
    /// # Safety
    /// All threads that enter the object, to write or to query, are bound to the same processor for as long as they are
    /// inside; or a single thread enters the object.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }

    #[cfg(not(miri))]
    #[inline]
    fn compare_exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
        let is_done: u8;
        // SAFETY: the address is that of an atomic, so it is valid and aligned. The contract of `new` excludes other
        // processors, and on one processor an instruction is executed completely or not at all.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                "sete {is_done}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                is_done = lateout(reg_byte) is_done,
                inout("rax") old => _,
                options(nostack),
            );
        }
        is_done != 0
    }

    /// Miri does not execute assembly.
    #[cfg(miri)]
    fn compare_exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
        word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

// SAFETY: on one processor, to which the contract of `new` limits all threads, each instruction is atomic, and every
// access is seen in the order of the program. Each method changes memory by one compare-and-swap, so a word that is
// `old` while the head is `seen` is changed once for that head, and never becomes `old` again, as for `Locked`.
#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[allow(unsafe_code)]
unsafe impl Commit for Uniprocessor {
    #[inline]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Self::compare_exchange(head, seen, new)
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == seen {
            let _ = Self::compare_exchange(word, old, new);
        }
    }
}
