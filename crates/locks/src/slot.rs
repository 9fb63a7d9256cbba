//! Who asks: a slot, and a priority.

use crate::{Relax, registry};
use core::cell::Cell;
use core::marker::PhantomData;

/// The most slots a lock can have.
pub const SLOTS_MAX: usize = 64;

/// What a slot asks as while it waits: below no number of slots.
const WAITS: u8 = u8::MAX;

/// How urgent a request is: greater is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Priority(pub u32);

/// The right to one place among the waiters of every lock: nobody else asks from it meanwhile.
///
/// A thread or core waits for one lock at a time, so one slot serves all locks it takes, nested ones too. It cannot be sent to
/// another thread, nor used by two at once.
///
/// While it waits it asks for nothing: a [`Deadline`](crate::Deadline) or a [`Relax`] of its own that asks for a lock from the same slot
/// panics, for any lock that has slots. The place in the queue would be there once, and asked for twice.
///
/// # Examples
/// ```
/// use lockwright_locks::Slot;
///
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// assert!(slot.index() < 64);
/// ```
#[derive(Debug)]
pub struct Slot {
    index: u8,
    /// The index, or [`WAITS`]: so the look whether a lock serves the slot is the look whether the slot may ask.
    asks: Cell<u8>,
    claimed: bool,
    /// Neither `Send` nor `Sync`.
    here: PhantomData<*mut ()>,
}

impl Slot {
    /// The lowest slot of this process that is free, until dropped; `None` where all [`SLOTS_MAX`] are taken.
    ///
    /// A lock of `N` slots serves the slots below `N` only: claim early, and a lock with as many slots as threads will do.
    ///
    /// # Bound
    /// One attempt a slot that others claim meanwhile, at most [`SLOTS_MAX`] and what they give back.
    #[must_use = "a slot is given back when dropped"]
    pub fn claim() -> Option<Self> {
        registry::claim().map(|index| Self { index, asks: Cell::new(index), claimed: true, here: PhantomData })
    }

    /// The slot of a core, for a kernel that knows which core it is on.
    ///
    /// # Panics
    /// When `index` is not below [`SLOTS_MAX`].
    ///
    /// # Safety
    /// For as long as it lives nobody else asks a lock that is asked from it, from a slot of this number: no other core or thread, no
    /// interrupt handler that can come between, and nobody by [`Slot::claim`]. What the last one did that asked those locks from this
    /// number happens before.
    #[must_use]
    #[allow(unsafe_code)] // It says what the caller must promise; nothing unsafe is done.
    pub const unsafe fn new(index: usize) -> Self {
        assert!(index < SLOTS_MAX, "a slot is below SLOTS_MAX");
        let index = index as u8;
        Self { index, asks: Cell::new(index), claimed: false, here: PhantomData }
    }

    /// Its number, below [`SLOTS_MAX`].
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// Its number, which a lock of `slots` slots serves: every request begins with it.
    ///
    /// # Panics
    /// When it is not below `slots`, or the slot waits.
    #[inline]
    pub(crate) fn below(&self, slots: usize) -> usize {
        let asks = usize::from(self.asks.get());
        if asks >= slots {
            self.refuse(slots);
        }
        asks
    }

    #[cold]
    fn refuse(&self, slots: usize) -> ! {
        assert!(self.asks.get() != WAITS, "slot {} waits already, and asks for a lock", self.index);
        panic!("slot {} asks for a lock that has slots 0 to {}", self.index, slots - 1);
    }

    /// Waits by `wait`, the one way to execute what users wrote while a request is queued: `R::default()`, `relax`, `passed`.
    ///
    /// Where it panics the slot goes on waiting, as its request does. Who takes the request back says so by [`Slot::has_left`].
    #[inline]
    pub(crate) fn while_it_waits<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.asks.set(WAITS);
        let came_of_it = wait();
        self.has_left();
        came_of_it
    }

    /// Its request is in no queue any more.
    #[inline]
    pub(crate) fn has_left(&self) {
        self.asks.set(self.index);
    }

    /// Looks until `it_comes`, and waits only if it has not come at the first look.
    ///
    /// BOUND: the caller's.
    #[inline]
    pub(crate) fn wait_until<R: Relax>(&self, mut it_comes: impl FnMut() -> bool) {
        if it_comes() {
            return;
        }
        self.while_it_waits(|| {
            let mut relax = R::default();
            loop {
                relax.relax();
                if it_comes() {
                    break;
                }
            }
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // One that panicked while it waited may be in a queue for ever: nobody else gets its number.
        if self.claimed && self.asks.get() != WAITS {
            registry::give_back(self.index);
        }
    }
}
