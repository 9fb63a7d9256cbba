//! The identity of a requester: a slot, and a priority.

use crate::Relax;
use crate::registry::{self, SLOTS_MAX};
use core::cell::Cell;
use core::marker::PhantomData;

/// The value of [`Slot::index_or_waits`] while the slot waits. It is not below any number of slots.
const WAITS: u8 = u8::MAX;

/// The priority of a request. A greater priority is more urgent.
///
/// # Examples
/// ```
/// use lockwright_locks::Priority;
///
/// assert!(Priority::new(2) > Priority::new(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Priority(u32);

impl Priority {
    /// Creates a priority.
    #[must_use]
    pub const fn new(level: u32) -> Self {
        Self(level)
    }

    /// Returns the number of the priority.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The exclusive right to one place among the waiters of every lock.
///
/// A thread or core waits for one lock at a time, so one slot serves all its locks, including nested ones.
/// A slot can neither be sent to another thread nor be used by two threads at once.
///
/// A slot that waits makes no other request.
/// A [`Deadline`](crate::Deadline) or a [`Relax`] that makes one from the waiting slot panics, for every lock with
/// slots: the slot has one place in a queue.
///
/// # Examples
/// ```
/// use lockwright_locks::Slot;
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// assert!(slot.index() < 64);
/// ```
#[derive(Debug)]
pub struct Slot {
    index: u8,
    /// The index, or [`WAITS`]. One comparison thus checks that a lock serves the slot and that the slot does not wait.
    index_or_waits: Cell<u8>,
    claimed: bool,
    /// A slot is neither `Send` nor `Sync`.
    here: PhantomData<*mut ()>,
}

impl Slot {
    /// Claims the lowest free slot of this process until it is dropped. Returns `None` if all [`SLOTS_MAX`] are
    /// claimed.
    ///
    /// A lock of `N` slots serves the slots below `N`.
    /// If every thread claims its slot at its start, a lock needs as many slots as there are threads.
    ///
    /// # Bound
    /// One attempt for each slot that other threads claim meanwhile, at most [`SLOTS_MAX`] and the number of slots that
    /// they free.
    #[must_use = "a slot becomes free when dropped"]
    pub fn claim() -> Option<Self> {
        registry::claim().map(|index| Self {
            index,
            index_or_waits: Cell::new(index),
            claimed: true,
            here: PhantomData,
        })
    }

    /// Returns the slot of a core, for a kernel that can determine on which core it executes.
    ///
    /// # Panics
    /// If `index` is not below [`SLOTS_MAX`].
    ///
    /// # Safety
    /// While the slot lives, no other core, thread, or interrupt handler makes requests from a slot of this number to
    /// the same locks, and none gets this number from [`Slot::claim`].
    /// The actions of the number's last user on those locks happen before this call.
    #[must_use]
    #[allow(unsafe_code)] // The caller guarantees the contract; the body is safe.
    pub const unsafe fn new(index: usize) -> Self {
        assert!(index < SLOTS_MAX, "a slot is below SLOTS_MAX");
        let index = index as u8;
        Self { index, index_or_waits: Cell::new(index), claimed: false, here: PhantomData }
    }

    /// Returns its number, which is below [`SLOTS_MAX`].
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// Returns its number for a request to a lock of `slots` slots. Every request begins here.
    ///
    /// # Panics
    /// If the number is not below `slots`, or the slot waits.
    #[inline]
    pub(crate) fn below(&self, slots: usize) -> usize {
        let index = usize::from(self.index_or_waits.get());
        if index >= slots {
            self.refuse(slots);
        }
        index
    }

    #[cold]
    fn refuse(&self, slots: usize) -> ! {
        assert!(self.index_or_waits.get() != WAITS, "slot {} requests a lock while it waits for one", self.index);
        panic!("slot {} requests a lock that has slots 0 to {}", self.index, slots - 1);
    }

    /// Executes `wait` while the slot waits.
    ///
    /// User code runs only here while a request is queued: `R::default()`, `relax` and `passed`.
    /// If it panics, the slot keeps waiting, as its request does. Code that withdraws the request calls
    /// [`Slot::stop_waiting`].
    #[inline]
    pub(crate) fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.index_or_waits.set(WAITS);
        let result = wait();
        self.stop_waiting();
        result
    }

    /// Notes that no queue holds a request of the slot.
    #[inline]
    pub(crate) fn stop_waiting(&self) {
        self.index_or_waits.set(self.index);
    }

    /// Waits until `is_done`, if it does not hold at the first check.
    ///
    /// BOUND: that of the caller.
    #[inline]
    pub(crate) fn wait_until<R: Relax>(&self, mut is_done: impl FnMut() -> bool) {
        if is_done() {
            return;
        }
        self.while_waiting(|| {
            let mut relax = R::default();
            loop {
                relax.relax();
                if is_done() {
                    break;
                }
            }
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A slot that panicked while it waited may stay in a queue, so its number is not reused.
        if self.claimed && self.index_or_waits.get() != WAITS {
            registry::release(self.index);
        }
    }
}
