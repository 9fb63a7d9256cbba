//! The lock as steps, which the lock executes on its atomics, and which a search executes in all interleavings
//! (`search`).
//!
//! The search and the lock share the order of the steps.
//! They differ in the memory, which is a ring in the lock and an array in the search, and in the straight-line code for
//! a lock without contention. Tests compare both, step by step (`equivalence`).
//!
//! ```text
//!   request   Test ─ held ──> Resume ─ gave up before, still queued ─> Rejoin ─ has its place again ─┐
//!              │ free          ▲  │ in no queue                                                     │
//!            TryLock ─ lost ──┘ Join                                                               │
//!              │                  │                                                                 │
//!             Own ─> holds       Wait <─────────────────────────────────────────────────────────────┘
//!              │ gave up before   │ ▲ ├ granted: holds
//!           Retract ─> holds Poll ┘ │ └ gives up: Abandon ─> gone, or holds
//!                             free  │ held
//!                               └ Seize
//!                                   │
//!   release ──────────────────> Collect ─> Gather ─> Choose ─> Grant ─> done: Wait, or gone
//!                                                     └ no waiter: Free ─> done
//! ```
//! From `TryLock` and `Seize` to `Grant` or `Free`, one contender at a time owns the lock.
//! It is the holder, or a waiter that found the lock free and hands it to the right slot.

/// The slot is in no queue. To a waiter it means that the lock was granted.
pub(super) const OUT: u32 = 0;
/// The slot waits, in the arrivals or in a batch.
pub(super) const WAITING: u32 = 1;
/// The slot gave up and is still in the arrivals or in a batch.
pub(super) const ABANDONED: u32 = 2;

/// The shared words. A step calls one method; the lock chooses the orderings.
///
/// Most methods are one access. The others are as good as one access:
/// `enlist` and `retract` write where no other contender reads, and only the owner of the lock accesses the batches.
/// A choice during a `rejoin` sees the former or the new priority.
pub(super) trait Memory {
    /// The slots that arrived since the last batch was closed.
    fn arrivals(&self) -> u64;
    /// Adds a slot to the arrivals, and publishes what it wrote.
    fn arrive(&self, slot: usize);
    /// Removes and returns the arrivals, with all that they wrote.
    fn take_arrivals(&self) -> u64;

    fn is_locked(&self) -> bool;
    /// Locks the lock if it is free.
    fn try_lock(&self) -> bool;
    fn unlock(&self);

    fn state(&self, slot: usize) -> u32;
    /// Makes a slot that is in no queue wait, with its priority.
    fn enlist(&self, slot: usize, priority: u32);
    /// Changes `ABANDONED` to `WAITING`, with a new priority. Returns whether it did.
    fn rejoin(&self, slot: usize, priority: u32) -> bool;
    /// Changes `WAITING` to `ABANDONED`. Returns the former state.
    fn abandon(&self, slot: usize) -> u32;
    /// Removes a slot from the arrivals. The slot owns the lock, and had given up.
    fn retract(&self, slot: usize);
    /// Changes the state to `OUT`. Returns the former state.
    fn grant(&self, slot: usize) -> u32;
    fn priority(&self, slot: usize) -> u32;

    // Only the owner of the lock accesses the batches.

    /// Appends a batch.
    fn push(&self, batch: u64);
    /// Returns the first batch that is not empty.
    fn front(&self) -> Option<u64>;
    /// Removes a slot from the first batch.
    fn remove(&self, slot: usize);
}

/// The next step of a contender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum At {
    /// The lock itself begins after `TryLock`, see `lock_if_free`.
    #[cfg_attr(not(test), allow(dead_code))]
    Test,
    TryLock,
    /// The lock was free. The slot may still be queued, since it gave up.
    Own,
    Retract,
    Resume,
    Rejoin,
    Join,
    Wait,
    Poll,
    Seize,
    Abandon,
    Collect,
    Gather,
    Choose,
    Grant(u8),
    Free,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The contender continues.
    Steps,
    /// A check failed: the time to relax.
    Spins,
    /// The contender holds the lock.
    Holds,
    /// The contender is done with the lock.
    Gone,
}

/// A request, or a release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Contender {
    pub(super) slot: u8,
    pub(super) priority: u32,
    pub(super) at: At,
    /// Whether it releases the lock. It is gone after the hand-off, and does not wait.
    pub(super) leaves: bool,
}

impl Contender {
    pub(super) const fn requests(slot: usize, priority: u32, at: At) -> Self {
        Self { slot: slot as u8, priority, at, leaves: false }
    }

    /// A release needs no slot.
    pub(super) const fn releases() -> Self {
        Self { slot: 0, priority: 0, at: At::Collect, leaves: true }
    }

    #[inline]
    pub(super) fn step(&mut self, memory: &impl Memory) -> Outcome {
        let slot = usize::from(self.slot);
        let next = match self.at {
            At::Test if memory.is_locked() => At::Resume,
            At::Test => At::TryLock,
            At::TryLock if memory.try_lock() => At::Own,
            At::TryLock => At::Resume,
            // A free lock has no batches, so the place is in the arrivals. A holder keeps no place, or it could enter
            // twice before a slot that waits.
            At::Own if memory.state(slot) == ABANDONED => At::Retract,
            At::Own => return Outcome::Holds,
            At::Retract => {
                memory.retract(slot);
                return Outcome::Holds;
            }

            At::Resume if memory.state(slot) == ABANDONED => At::Rejoin,
            At::Resume => {
                // No other contender reads a slot that is in no queue.
                memory.enlist(slot, self.priority);
                At::Join
            }
            At::Rejoin if memory.rejoin(slot, self.priority) => At::Wait,
            At::Rejoin => At::Resume,
            At::Join => {
                memory.arrive(slot);
                At::Wait
            }

            At::Wait if memory.state(slot) == OUT => return Outcome::Holds,
            At::Wait => At::Poll,
            At::Poll if memory.is_locked() => {
                self.at = At::Wait;
                return Outcome::Spins;
            }
            At::Poll => At::Seize,
            At::Seize if memory.try_lock() => At::Collect,
            At::Seize => At::Wait,
            // The lock may have been granted meanwhile.
            At::Abandon => return if memory.abandon(slot) == OUT { Outcome::Holds } else { Outcome::Gone },

            At::Collect if memory.arrivals() == 0 => At::Choose,
            At::Collect => At::Gather,
            At::Gather => {
                memory.push(memory.take_arrivals());
                At::Choose
            }
            At::Choose => match memory.front() {
                None => At::Free,
                Some(batch) => {
                    let best = most_urgent(batch, memory);
                    memory.remove(best);
                    At::Grant(best as u8)
                }
            },
            // A slot that gave up leaves the queue, and the lock is handed to another one.
            At::Grant(best) if memory.grant(usize::from(best)) == ABANDONED => At::Choose,
            At::Grant(_) => return self.handed_over(),
            At::Free => {
                memory.unlock();
                return self.handed_over();
            }
        };
        self.at = next;
        Outcome::Steps
    }

    fn handed_over(&mut self) -> Outcome {
        self.at = At::Wait;
        if self.leaves { Outcome::Gone } else { Outcome::Steps }
    }
}

/// Returns the most urgent slot of a batch, the lowest one among equals.
///
/// BOUND: one step for each member.
fn most_urgent(batch: u64, memory: &impl Memory) -> usize {
    let first = batch.trailing_zeros() as usize;
    let mut rest = batch & (batch - 1);
    if rest == 0 {
        return first;
    }
    let (mut best, mut highest) = (first, memory.priority(first));
    while rest != 0 {
        let slot = rest.trailing_zeros() as usize;
        let priority = memory.priority(slot);
        if priority > highest {
            (best, highest) = (slot, priority);
        }
        rest &= rest - 1;
    }
    best
}
