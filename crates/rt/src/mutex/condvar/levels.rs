//! The levels at which real-time threads began to wait at condition variables.
//!
//! The kernel sorts its queue when a thread suspends, and never again. A signal checks here whether the level of a
//! waiter has changed since, and then finds the waiter that is the most urgent one by now. The answers are only hints:
//! they decide whether a signal wakes one waiter or all of them. No signal is lost if a level changes meanwhile.
//!
//! Each entry has a mark in the kernel's queue, by which a signal wakes this waiter before those that the kernel has
//! sorted before it.
//!
//! The entries of a condition variable are in a window of the table that its address determines. A waiter that finds
//! the window full is not entered.

use lockwright_sys::fork;
use lockwright_sys::sched::{self, ME, Scheduling, Tid};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The number of slots at which a window may begin.
const WINDOWS: usize = 1_024;
/// The most slots that a waiter or a signal looks at. Each slot of a window has another mark.
pub(super) const WINDOW: usize = 31;
const SLOTS: usize = WINDOWS + WINDOW;

/// The mark of a waiter without an entry.
pub(super) const NO_ENTRY: u32 = 1 << WINDOW;

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
fn window(at: usize) -> Range<usize> {
    // Multiplied by 2^64 divided by the golden ratio, which spreads near addresses.
    let first = ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % WINDOWS;
    first..first + WINDOW
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

impl Entry {
    /// The waiter's mark. No other waiter of its condition variable has it.
    pub(super) fn mark(self) -> u32 {
        1 << (self.slot % WINDOW)
    }
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
    waiters(at).any(|(entry, now)| u64::from(now) != entry.waiter & 0xff)
}

/// The entries of a condition variable, with the present ranks. Removes those of threads that have ended.
fn waiters(at: usize) -> impl Iterator<Item = (Entry, u8)> {
    window(at).filter_map(move |slot| {
        // ORDERING: Relaxed: advice.
        let waiter = TABLE[slot].waiter.load(Ordering::Relaxed);
        if waiter == 0 || TABLE[slot].at.load(Ordering::Relaxed) != at {
            return None;
        }
        match sched::scheduling_separately(Tid((waiter >> 8) as u32)) {
            Ok(now) => Some((Entry { slot, waiter }, rank(now))),
            Err(error) => {
                if error.errno == libc::ESRCH {
                    clear(&TABLE[slot], waiter);
                }
                None
            }
        }
    })
}

/// A waiter that the caller alone is about to wake. Its mark is its own until this is dropped.
pub(super) struct Claimed(Entry);

impl Claimed {
    pub(super) fn mark(&self) -> u32 {
        self.0.mark()
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // ORDERING: as in `clear`.
        TABLE[self.0.slot].at.store(0, Ordering::Release);
    }
}

/// Removes the waiter of the condition variable at this address that is the most urgent one by now. Returns `None` if
/// no waiter is a real-time thread, or if others are as urgent: their order is not known.
///
/// BOUND: WINDOW slots, and two system calls for each waiter found.
pub(super) fn claim_most_urgent(at: usize) -> Option<Claimed> {
    let mut first: Option<(Entry, u8)> = None;
    let mut is_alone = true;
    for (entry, now) in waiters(at) {
        let most = first.map_or(0, |(_, rank)| rank);
        is_alone = now > most || is_alone && now < most;
        if now > most {
            first = Some((entry, now));
        }
    }
    let (entry, _) = first.filter(|_| is_alone)?;
    // The slot stays occupied, so no waiter that comes now gets the mark.
    let claim = TABLE[entry.slot].waiter.compare_exchange(entry.waiter, 0, Ordering::Relaxed, Ordering::Relaxed);
    claim.is_ok().then_some(Claimed(entry))
}
