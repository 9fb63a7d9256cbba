//! The lock as steps: executed by the lock over its atomics, and by a search over all interleavings (`search.rs`).
//!
//! The order of the steps is searched as it is executed. Not shared are the memory below them, which is a ring here and an array there, and
//! the ways of a lock that nobody else wants, which are written out: tests hold both against each other, step by step.
//!
//! ```text
//!   request   Test ─ taken ─> Resume ─ gave up before, still queued ─> Rejoin ─ has its place again ─┐
//!              │ free          ▲  │ in no queue                                                     │
//!             Take ─ quicker ──┘ Join                                                               │
//!              │                  │                                                                 │
//!             Own ─> holds       Wait <─────────────────────────────────────────────────────────────┘
//!              │ gave up before   │ ▲ ├ my turn came: holds
//!           Retract ─> holds Poll ┘ │ └ gives up: Abandon ─> gone, or holds
//!                             free  │ taken
//!                               └ Seize
//!                                   │
//!   release ──────────────────> Collect ─> Gather ─> Choose ─> Grant ─> done: Wait, or gone
//!                                                     └ nobody: Free ─> done
//! ```
//! From `Take` and `Seize` to `Grant` or `Free` one contender at a time has the lock: its holder, or a waiter that found it free and
//! sees to it that the right one gets it.

/// A slot in no queue; for one that waits: its turn has come.
pub(super) const OUT: u32 = 0;
/// A slot that waits, in the arrivals or in a batch.
pub(super) const WAITING: u32 = 1;
/// A slot that gave up, still in the arrivals or in a batch.
pub(super) const ABANDONED: u32 = 2;

/// What is shared. A step calls one method; orderings are the lock's.
///
/// Most methods are one access. Those with more could not be told from one: `enlist` and `retract` write where nobody else looks, the batches and
/// priorities of a choice are read and written by the one that has the lock, and who chooses during a `rejoin` sees the priority before or the new one.
pub(super) trait Memory {
    /// Who has arrived since the last batch was closed.
    fn arrivals(&self) -> u64;
    /// Arrives, with all that was written before.
    fn arrive(&self, slot: usize);
    /// Takes the arrivals, and all they wrote.
    fn take_arrivals(&self) -> u64;

    fn is_taken(&self) -> bool;
    /// Takes the lock, if it was free.
    fn take(&self) -> bool;
    fn free(&self);

    fn state(&self, slot: usize) -> u32;
    /// Of a slot that is in no queue: with its priority.
    fn enlist(&self, slot: usize, priority: u32);
    /// `ABANDONED -> WAITING` with a new priority, or not.
    fn rejoin(&self, slot: usize, priority: u32) -> bool;
    /// `WAITING -> ABANDONED`, or not: what it was.
    fn abandon(&self, slot: usize) -> u32;
    /// Of a slot that has the lock, and is in the arrivals as one that gave up: it is in no queue any more.
    fn retract(&self, slot: usize);
    /// `-> OUT`: what it was.
    fn grant(&self, slot: usize) -> u32;
    fn priority(&self, slot: usize) -> u32;

    // The batches: for the one that has the lock.

    /// Another batch, the last.
    fn push(&self, batch: u64);
    /// The first batch that is not empty.
    fn front(&self) -> Option<u64>;
    /// Takes a slot out of the first batch.
    fn remove(&self, slot: usize);
}

/// Where a contender is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum At {
    /// The lock itself begins after `Take`: see `take_if_free`.
    #[cfg_attr(not(test), allow(dead_code))]
    Test,
    Take,
    /// The lock was free. Whether its slot is queued yet, since it gave up.
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

/// What came of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Go on.
    Steps,
    /// A look that found nothing: relax.
    Spins,
    /// The lock is the contender's.
    Holds,
    /// The contender has nothing to do with the lock any more.
    Gone,
}

/// One that asks for the lock, or gives it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Contender {
    pub(super) slot: u8,
    pub(super) priority: u32,
    pub(super) at: At,
    /// Whether it gives the lock back: after a hand-off it is gone, and does not wait.
    pub(super) leaves: bool,
}

impl Contender {
    pub(super) const fn asks(slot: usize, priority: u32, at: At) -> Self {
        Self { slot: slot as u8, priority, at, leaves: false }
    }

    /// It needs no slot.
    pub(super) const fn gives_back() -> Self {
        Self { slot: 0, priority: 0, at: At::Collect, leaves: true }
    }

    #[inline]
    pub(super) fn step(&mut self, memory: &impl Memory) -> Outcome {
        let slot = usize::from(self.slot);
        let next = match self.at {
            At::Test if memory.is_taken() => At::Resume,
            At::Test => At::Take,
            At::Take if memory.take() => At::Own,
            At::Take => At::Resume,
            // A free lock has no batches, so the place is in the arrivals. Who enters has none, or it could come in twice before one that waits.
            At::Own if memory.state(slot) == ABANDONED => At::Retract,
            At::Own => return Outcome::Holds,
            At::Retract => {
                memory.retract(slot);
                return Outcome::Holds;
            }

            At::Resume if memory.state(slot) == ABANDONED => At::Rejoin,
            At::Resume => {
                // Nobody else looks at a slot that is in no queue.
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
            At::Poll if memory.is_taken() => {
                self.at = At::Wait;
                return Outcome::Spins;
            }
            At::Poll => At::Seize,
            At::Seize if memory.take() => At::Collect,
            At::Seize => At::Wait,
            // The lock may have come meanwhile.
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
            // Who gave up leaves the queue, and the lock goes to another.
            At::Grant(best) if memory.grant(usize::from(best)) == ABANDONED => At::Choose,
            At::Grant(_) => return self.handed_over(),
            At::Free => {
                memory.free();
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

/// The most urgent of a batch, the lowest slot among equals.
///
/// BOUND: one step a member.
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
