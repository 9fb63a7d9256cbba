//! Counts the locks with priority inheritance that the calling thread holds.
//!
//! Robust locks are in the list that the C library registered with the kernel. The others are counted here.
//!
//! The count is written with each lock and unlock of such a mutex, so accessing it must not need a call, also in shared
//! libraries. On x86-64 with glibc, it is a thread-local word at a fixed distance from the thread pointer (the
//! initial-exec model).

use crate::block;
use crate::head::{Head, registered};

/// The lowest bit of a link: the lock has priority inheritance. See `robust`.
const INHERITS: usize = 1;
/// The most links that are read. A longer list counts as two locks.
const LINKS_MAX: usize = 1_024;

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod count {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.lockwright_held,\"awT\",@nobits",
        ".weak lockwright_held",
        ".hidden lockwright_held",
        ".type lockwright_held,@object",
        ".size lockwright_held,4",
        ".p2align 2",
        "lockwright_held:",
        ".zero 4",
        ".popsection",
    );

    #[inline]
    pub fn add(change: i32) {
        // SAFETY: the word belongs to the calling thread while it lives, and no other code names it.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + lockwright_held@GOTTPOFF]",
                "add dword ptr fs:[{at}], {change:e}",
                at = out(reg) _, change = in(reg) change, options(nostack),
            );
        }
    }

    #[inline]
    pub fn get() -> i32 {
        let count: i32;
        // SAFETY: the word belongs to the calling thread while it lives, and is only read.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + lockwright_held@GOTTPOFF]",
                "mov {count:e}, dword ptr fs:[{at}]",
                at = out(reg) _, count = out(reg) count, options(nostack, readonly, preserves_flags),
            );
        }
        count
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
mod count {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<i32> = const { Cell::new(0) };
    }

    #[inline]
    pub fn add(change: i32) {
        HELD.set(HELD.get().wrapping_add(change));
    }

    #[inline]
    pub fn get() -> i32 {
        HELD.get()
    }
}

/// Records that the calling thread locked something that has priority inheritance and is not robust: a mutex, a
/// reader-writer lock for writing, a resource under `pip`, or the slot of an initialiser.
#[inline]
pub fn took_one() {
    count::add(1);
}

/// Records that the calling thread unlocked such a lock.
#[inline]
pub fn gave_one_back() {
    count::add(-1);
}

/// Whether the calling thread, which holds one lock with inheritance, holds another. Locks of other libraries count if
/// they are robust.
///
/// BOUND: LINKS_MAX steps.
pub fn holds_two() -> bool {
    let head = block::block().map(block::Block::head).or_else(|| registered().ok());
    let robust = head.map_or(0, robust_ones);
    i64::from(count::get()) + robust > 1
}

/// The number of locks in the list that have priority inheritance; 2 if the list is too long.
fn robust_ones(head: *mut Head) -> i64 {
    let mut count = 0;
    let mut at = head.cast::<usize>();
    for _ in 0..LINKS_MAX {
        // SAFETY: `at` is the first word of the head, or the `next` of a lock that this thread holds, which does not
        // move.
        let link = unsafe { at.read_volatile() };
        at = std::ptr::with_exposed_provenance_mut(link & !INHERITS);
        if at.is_null() || at == head.cast() {
            return count;
        }
        count += i64::from(link & INHERITS != 0);
    }
    2
}
