//! The word of a semaphore and its transitions, as pure functions. `mod` carries them out.
//!
//! ```text
//!   event                                   balance           grants
//!   a thread takes a unit                   - 1, if above 0
//!   a thread begins to wait                 - 1, if not above 0
//!   n units are released, w threads wait    + n               + min(n, w)
//!   a thread that has no grant gives up     + 1
//! ```
//! The balance is the number of free units or, below zero, of the threads that wait without a grant. A grant is a unit
//! that belongs to the threads that wait. Grants are only counted here, so that a change of the count ends a wait; the
//! semaphore counts beside the word how many of them were taken.

/// The value of the word. Zero is a semaphore without units.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct State(pub u64);

/// The difference of two states whose balances differ by 1.
pub(super) const UNIT: u64 = 1 << 32;

impl State {
    pub(super) const fn of(balance: i32, grants: u32) -> Self {
        Self((balance as u32 as u64) << 32 | grants as u64)
    }

    pub(super) const fn balance(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// How many grants there have been. The number wraps to 0.
    pub(super) const fn grants(self) -> u32 {
        self.0 as u32
    }

    /// A thread takes a free unit, or begins to wait.
    pub(super) const fn ask(self) -> Self {
        Self(self.0.wrapping_sub(UNIT))
    }

    /// Units are released. Returns how many are granted, or `None` if there would be too many units.
    pub(super) const fn release(self, units: u32) -> Option<(Self, u32)> {
        let Some(balance) = self.balance().checked_add_unsigned(units) else { return None };
        let waiting = if self.balance() < 0 { self.balance().unsigned_abs() } else { 0 };
        let granted = if units < waiting { units } else { waiting };
        Some((Self::of(balance, self.grants().wrapping_add(granted)), granted))
    }

    /// A thread that waits gives up. Returns `None` if every thread that waits has a grant.
    pub(super) const fn give_up(self) -> Option<Self> {
        if self.balance() < 0 { Some(Self(self.0.wrapping_add(UNIT))) } else { None }
    }

    /// The word in a child process, where nobody waits, with another number of grants. The units that were granted and
    /// not taken are free.
    pub(super) const fn without_waiters(self, taken: u32, grants: u32) -> Self {
        let free = if self.balance() > 0 { self.balance() } else { 0 };
        // Negative if a fork copied the two words, in two pages, at different moments.
        let granted = self.grants().wrapping_sub(taken) as i32;
        Self::of(free.saturating_add(if granted > 0 { granted } else { 0 }), grants)
    }
}
