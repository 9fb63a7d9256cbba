//! How a word is changed on condition: the one place where threads decide something between them.
//!
//! | | one processor | several | on x86-64 |
//! |---|---|---|---|
//! | [`Locked`] | yes | yes | `lock cmpxchg` |
//! | [`Plain`] | yes | no | `cmpxchg`: one instruction, so nobody comes between on its processor |
//!
//! The third, a restartable sequence of Linux, is in the runtime crate.

use crate::sync::{AtomicU64, fence};
use core::sync::atomic::Ordering;

/// A strategy: compare, and change if nothing has happened meanwhile.
///
/// An object has one for all its life, and all who enter it use that one.
///
/// # Safety
/// For all threads that may enter an object with this strategy, however they preempt each other:
/// - [`Commit::post`] is atomic, and releases what was written before it.
/// - [`Commit::perform`] does not change `word` unless it is `old`, or is `new` already, *at the instant of the change*; and does change it if the head is `seen` still
///   and nobody else has. It may leave the word alone once the head is not `seen` any more. A change releases what was written before it; and what
///   the caller read before it was read no later than the look at the head.
#[allow(unsafe_code)] // A promise to be made by each implementation.
pub unsafe trait Commit {
    /// `head`: `seen` → `new`, or nothing. Says whether it was.
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool;

    /// `word`: `old` → `new` as long as `head` is `seen`.
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64);
}

/// By the atomic compare-and-swap of the processor: right for whoever enters, also on several processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Locked;

// SAFETY: both are one compare-and-swap of all processors. A word that was `old` while the head was `seen` is changed once for that head, by whoever is first, and before the
// head is changed; it never is `old` again, for each change has another version. That goes for locators and for marks, which the owner of a record sets by a store, too
// (`Slot::begin`).
#[allow(unsafe_code)]
unsafe impl Commit for Locked {
    #[inline]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        // ORDERING: Release pairs with the Acquire of the next entry: who sees the head sees the record and the values.
        head.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        // ORDERING: the fence pairs with that of who writes a record anew: if what was read came from there, this look sees a newer head.
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == seen {
            // ORDERING: Release pairs with the Acquire of readers of the word; who fails finds that another has done it.
            let _ = word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// By a compare-and-swap without the LOCK prefix: a thread on the same processor cannot come between, one on another can.
#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain(());

#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[allow(unsafe_code)]
impl Plain {
    /// For an object that is entered on one processor alone.
    ///
    /// # Safety
    /// All threads that enter the object, to write or to query, are bound to one and the same processor, and stay bound to it for as long as
    /// they are inside: nobody moves them.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }

    #[inline]
    fn compare_exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
        let is_done: u8;
        // SAFETY: the address is that of an atomic, aligned and valid; no other processor touches it, as `new` was promised, and on this one
        // the instruction is either done or not.
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
}

// SAFETY: as for `Locked`, on one processor, as `new` was promised; there all accesses are seen in the order of the text.
#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
#[allow(unsafe_code)]
unsafe impl Commit for Plain {
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
