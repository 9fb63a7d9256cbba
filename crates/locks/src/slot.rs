//! Who asks: a slot, and a priority.

use crate::registry;
use core::marker::PhantomData;

/// The most slots a lock can have.
pub const SLOTS_MAX: usize = 64;

/// How urgent a request is: greater is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Priority(pub u32);

/// The right to one place among the waiters of every lock: nobody else asks from it meanwhile.
///
/// A thread or core waits for one lock at a time, so one slot serves all locks it takes, nested ones too. It cannot be sent to
/// another thread, nor used by two at once.
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
        registry::claim().map(|index| Self { index, claimed: true, here: PhantomData })
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
        Self { index: index as u8, claimed: false, here: PhantomData }
    }

    /// Its number, below [`SLOTS_MAX`].
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// Its number, which a lock of `slots` slots serves.
    ///
    /// # Panics
    /// When it is not below `slots`.
    #[inline]
    pub(crate) fn below(&self, slots: usize) -> usize {
        assert!(self.index() < slots, "slot {} asks for a lock that has slots 0 to {}", self.index, slots - 1);
        self.index()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.claimed {
            registry::give_back(self.index);
        }
    }
}
