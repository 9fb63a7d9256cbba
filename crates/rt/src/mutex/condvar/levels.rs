//! The levels at which real-time threads began to wait at condition variables.
//!
//! The kernel sorts its queue when a thread suspends, and never again. A signal checks here whether the level of a
//! waiter has changed since. The answer is only a hint: it decides whether a signal wakes more than one waiter, which
//! is correct in any case.
//!
//! The entries of a condition variable are in a window of the table that its address determines. A waiter that finds
//! the window full is not entered.

use lockwright_sys::fork;
use lockwright_sys::sched::{self, ME, Scheduling, Tid};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SLOTS: usize = 1_024;
/// The most slots that a waiter or a signal looks at.
const WINDOW: usize = 64;

static TABLE: [WaiterSlot; SLOTS] =
    [const { WaiterSlot { at: AtomicUsize::new(0), waiter: AtomicU64::new(0) } }; SLOTS];

struct WaiterSlot {
    /// The address of the condition variable, or 0 if the slot is free.
    at: AtomicUsize,
    /// The waiter's id and rank, or 0 if they are not known yet, or no longer.
    waiter: AtomicU64,
}

/// The rank in the kernel's queue; 0 for threads that are not real-time.
fn rank(now: Scheduling) -> u8 {
    match now {
        _ if now.is_deadline() => u8::MAX,
        _ if now.has_level() => now.level,
        _ => 0,
    }
}

/// The slots of the condition variable at this address.
fn window(at: usize) -> impl Iterator<Item = usize> {
    // Multiplied by 2^64 divided by the golden ratio, which spreads near addresses.
    let first = ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
    (first..first + WINDOW).map(|slot| slot % SLOTS)
}

/// Registers the fork handler, before the first wait does.
pub(crate) fn warm_up() {
    fork::in_child(forget);
}

/// The threads of the parent do not wait in the child.
extern "C" fn forget() {
    // ORDERING: Relaxed: the child has one thread.
    for slot in &TABLE {
        slot.waiter.store(0, Ordering::Relaxed);
        slot.at.store(0, Ordering::Relaxed);
    }
}

/// A waiter in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    slot: usize,
    waiter: u64,
}

/// Enters the calling thread `me`, if it is a real-time thread, as a waiter of the condition variable at this address.
///
/// BOUND: two system calls and WINDOW slots.
pub(super) fn enter(me: Tid, at: usize) -> Option<Entry> {
    let own = rank(sched::scheduling_separately(ME).ok()?);
    if own == 0 {
        return None;
    }
    warm_up();
    // ORDERING: Acquire pairs with the Release in `clear`: the earlier waiter was removed before this one enters.
    let slot = window(at)
        .find(|&slot| TABLE[slot].at.compare_exchange(0, at, Ordering::Acquire, Ordering::Relaxed).is_ok())?;
    let waiter = u64::from(me.0) << 8 | u64::from(own);
    TABLE[slot].waiter.store(waiter, Ordering::Relaxed);
    Some(Entry { slot, waiter })
}

/// Removes the entry that [`enter`] made.
pub(super) fn leave(entry: Entry) {
    clear(&TABLE[entry.slot], entry.waiter);
}

/// Frees the slot of a waiter, unless another thread did.
fn clear(slot: &WaiterSlot, waiter: u64) {
    if slot.waiter.compare_exchange(waiter, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        // ORDERING: Release pairs with the Acquire in `enter`: a thread that finds the slot free finds no waiter in it.
        slot.at.store(0, Ordering::Release);
    }
}

/// Whether a waiter of the condition variable at this address has another rank than when it began to wait. Removes the
/// entries of threads that have ended.
///
/// BOUND: WINDOW slots, and two system calls for each waiter found.
pub(super) fn have_changed(at: usize) -> bool {
    window(at).map(|slot| &TABLE[slot]).any(|slot| {
        // ORDERING: Relaxed: advice.
        let waiter = slot.waiter.load(Ordering::Relaxed);
        if waiter == 0 || slot.at.load(Ordering::Relaxed) != at {
            return false;
        }
        match sched::scheduling_separately(Tid((waiter >> 8) as u32)) {
            Ok(now) => u64::from(rank(now)) != waiter & 0xff,
            Err(error) => {
                if error.errno == libc::ESRCH {
                    clear(slot, waiter);
                }
                false
            }
        }
    })
}
