//! The lock as steps, each of which is one access to the shared words.
//!
//! The lock executes these steps on its atomics, and the search of `search.rs` executes them in all interleavings.
//!
//! ```text
//!   request   Enlist ─> Head ─ none ─> Own ─> TryLock ─> holds
//!                        │ held
//!                       First ─> Check ─┬─ no waiter behind ────────────────────┐
//!                                       ├─> Priority ─> After ─> Again ─ less ──┤
//!                                       └───── as urgent: from that one on ──┘  │
//!                                                           Prepare <───────────┘
//!                                                              │
//!                                                             Put ─> Wait ─> holds
//!             TryLock, Check, Again, Put, and a node that left: the queue has changed, to Head
//!
//!   release   Leave ─> Pass ─ no waiter behind ─> gone
//!                        └──> Grant ────────────> gone
//! ```

/// No node, in the head and in a link.
pub(super) const NONE: usize = 0xFF;
/// The mark of a link whose node has left the queue.
pub(super) const LEFT: usize = 0x100;
/// The increment of the version of a link.
pub(super) const VERSION: usize = 0x200;

pub(super) const fn next_of(link: usize) -> usize {
    link & NONE
}

/// Returns the next link of a node that is in no queue.
pub(super) const fn prepared(link: usize, next: usize) -> usize {
    (link & !(VERSION - 1)).wrapping_add(VERSION) | next
}

/// The shared words. Each method is one access, or several to what only its caller writes; the lock chooses the
/// orderings.
pub(super) trait Memory {
    /// Returns the holder or none, possibly out of date.
    fn holder(&self) -> usize;
    fn is_holder(&self, node: usize) -> bool;
    /// Sets the head to `me` if there was none. Returns whether it did.
    fn try_lock(&self, me: usize) -> bool;
    /// Sets the head to another node, or to none.
    fn pass(&self, next: usize);

    fn link(&self, node: usize) -> usize;
    /// Whether a link is unchanged.
    fn is_linked(&self, node: usize, link: usize) -> bool;
    /// Writes a new version of the link of a node in no queue, to `next`.
    fn prepare(&self, me: usize, next: usize);
    /// Redirects an unchanged link to `me`. Returns whether it did.
    fn put(&self, before: usize, link: usize, me: usize) -> bool;
    /// Marks the link. Returns the next node.
    fn leave(&self, me: usize) -> usize;

    /// Makes a node that is in no queue wait, with its priority.
    fn enlist(&self, me: usize, priority: u32);
    fn priority(&self, node: usize) -> u32;
    fn is_granted(&self, me: usize) -> bool;
    fn grant(&self, node: usize);
}

/// A node, and its link as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    pub(super) before: u8,
    pub(super) link: usize,
}

/// The next step of a contender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum At {
    Enlist,
    Head,
    Own,
    TryLock,
    First(u8),
    Check(Place),
    Priority(Place),
    After(Place, u32),
    Again(Place, u32, usize),
    Prepare(Place),
    Put(Place),
    Wait,
    Leave,
    Pass(u8),
    Grant(u8),
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The contender continues.
    Steps,
    /// The queue has changed: the time to relax, and to walk again.
    Again,
    /// The node has its place, and waits.
    Queued,
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
    pub(super) me: u8,
    pub(super) priority: u32,
    pub(super) at: At,
}

impl Contender {
    pub(super) const fn requests(me: usize, priority: u32) -> Self {
        Self { me: me as u8, priority, at: At::Enlist }
    }

    /// The lock itself executes these steps in a straight line, see `release`.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) const fn releases(me: usize) -> Self {
        Self { me: me as u8, priority: 0, at: At::Leave }
    }

    #[inline]
    pub(super) fn step(&mut self, memory: &impl Memory) -> Outcome {
        let me = usize::from(self.me);
        let next = match self.at {
            At::Enlist => {
                memory.enlist(me, self.priority);
                At::Head
            }
            At::Head => match memory.holder() {
                NONE => At::Own,
                holder => At::First(holder as u8),
            },
            At::Own => {
                memory.prepare(me, NONE);
                At::TryLock
            }
            At::TryLock if memory.try_lock(me) => return Outcome::Holds,
            At::TryLock => return self.again(),

            At::First(holder) => At::Check(Place { before: holder, link: memory.link(usize::from(holder)) }),
            At::Check(place) if memory.is_holder(usize::from(place.before)) => return self.stands_on(place),
            At::Check(_) => return self.again(),
            At::Priority(place) => At::After(place, memory.priority(next_of(place.link))),
            At::After(place, other) => At::Again(place, other, memory.link(next_of(place.link))),
            At::Again(place, ..) if !memory.is_linked(usize::from(place.before), place.link) => return self.again(),
            At::Again(place, other, _) if other < self.priority => At::Prepare(place),
            At::Again(place, _, after) => {
                return self.stands_on(Place { before: next_of(place.link) as u8, link: after });
            }

            At::Prepare(place) => {
                memory.prepare(me, next_of(place.link));
                At::Put(place)
            }
            At::Put(place) if memory.put(usize::from(place.before), place.link, me) => {
                self.at = At::Wait;
                return Outcome::Queued;
            }
            At::Put(_) => return self.again(),
            At::Wait => return if memory.is_granted(me) { Outcome::Holds } else { Outcome::Spins },

            At::Leave => At::Pass(memory.leave(me) as u8),
            At::Pass(next) => {
                memory.pass(usize::from(next));
                if usize::from(next) == NONE {
                    return Outcome::Gone;
                }
                At::Grant(next)
            }
            At::Grant(next) => {
                memory.grant(usize::from(next));
                return Outcome::Gone;
            }
        };
        self.at = next;
        Outcome::Steps
    }

    /// The walk has reached a node that was in the queue when its link was read.
    fn stands_on(&mut self, place: Place) -> Outcome {
        if place.link & LEFT != 0 {
            return self.again();
        }
        self.at = if next_of(place.link) == NONE { At::Prepare(place) } else { At::Priority(place) };
        Outcome::Steps
    }

    fn again(&mut self) -> Outcome {
        self.at = At::Head;
        Outcome::Again
    }
}
