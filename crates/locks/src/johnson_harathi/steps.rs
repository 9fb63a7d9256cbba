//! The lock as steps, each with one access to what is shared: executed by the lock over its atomics, and by a search over all
//! interleavings (`search.rs`). So what is searched is what is executed.
//!
//! ```text
//!   request   Enlist ─> Head ─ none ─> Own ─> Take ─> holds
//!                        │ held
//!                       First ─> Check ─┬─ nobody behind ───────────────────────┐
//!                                       ├─> Priority ─> After ─> Again ─ less ──┤
//!                                       └───── as urgent: from that one on ──┘  │
//!                                                           Prepare <───────────┘
//!                                                              │
//!                                                             Put ─> Wait ─> holds
//!             Take, Check, Again, Put, and a node that left: the queue has changed, to Head
//!
//!   release   Leave ─> Pass ─ nobody behind ─> gone
//!                        └──> Grant ─────────> gone
//! ```

/// No node, as a head and as a link's next.
pub(super) const NONE: usize = 0xFF;
/// A link of a node that has left the queue.
pub(super) const LEFT: usize = 0x100;
/// A link's version, one more.
pub(super) const VERSION: usize = 0x200;

pub(super) const fn next_of(link: usize) -> usize {
    link & NONE
}

/// The link that a node in no queue gets, after the one it had.
pub(super) const fn prepared(link: usize, next: usize) -> usize {
    (link & !(VERSION - 1)).wrapping_add(VERSION) | next
}

/// What is shared. Each method is one access, or accesses to what only its caller writes; orderings are the lock's.
pub(super) trait Memory {
    /// The holder, or none, as it was a while ago.
    fn holder(&self) -> usize;
    fn is_holder(&self, node: usize) -> bool;
    /// The head becomes `me`, if there was none.
    fn take(&self, me: usize) -> bool;
    /// The head becomes another, or none.
    fn pass(&self, next: usize);

    fn link(&self, node: usize) -> usize;
    /// Whether a link is the same still.
    fn is_linked(&self, node: usize, link: usize) -> bool;
    /// Of a node in no queue: a new version of its link, to `next`.
    fn prepare(&self, me: usize, next: usize);
    /// The same link, but to `me`; or not, if it is another by now.
    fn put(&self, before: usize, link: usize, me: usize) -> bool;
    /// Marks the link: the one it leads to.
    fn leave(&self, me: usize) -> usize;

    /// Of a node in no queue: its priority, and that it waits.
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

/// Where a contender is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum At {
    Enlist,
    Head,
    Own,
    Take,
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

/// What came of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Go on.
    Steps,
    /// The queue has changed: relax, and walk again.
    Again,
    /// The node is in its place, and waits.
    Queued,
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
    pub(super) me: u8,
    pub(super) priority: u32,
    pub(super) at: At,
}

impl Contender {
    pub(super) const fn asks(me: usize, priority: u32) -> Self {
        Self { me: me as u8, priority, at: At::Enlist }
    }

    /// The lock itself takes these steps straight: see `release`.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) const fn gives_back(me: usize) -> Self {
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
                At::Take
            }
            At::Take if memory.take(me) => return Outcome::Holds,
            At::Take => return self.again(),

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

    /// The walk has come to a node that was in the queue when its link was read.
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
