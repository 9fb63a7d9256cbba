//! The three orders in which waiting requests are granted.

use std::fmt;

/// The order in which a lock grants waiting requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lock {
    /// First come, first served, and in random order among requests of one instant.
    Fifo,
    /// The most important request first.
    Priority,
    /// The requests of the earliest critical section first, and the most important first among them.
    Batched,
}

impl Lock {
    /// All three orders, the paper's baseline first.
    pub const ALL: [Self; 3] = [Self::Fifo, Self::Priority, Self::Batched];

    /// Returns the name, in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Priority => "priority",
            Self::Batched => "batched",
        }
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of places of a ring: the maximum number of sources.
const PLACES: usize = 64;

/// A set of sources, with one bit for each. A higher bit is more important.
pub(super) type Set = u64;

/// Returns the most important member of a set, which must not be empty.
pub(super) fn best(set: Set) -> u32 {
    debug_assert_ne!(set, 0, "an empty set has no best member");
    set.ilog2()
}

/// The choice of the waiting request that is granted next.
pub(super) trait Order: Default {
    /// `source` begins to wait. The members of one burst come in the order in which they were drawn.
    fn request(&mut self, source: u32);
    /// The current critical section ends. Later requests are made during another one.
    fn section_ends(&mut self);
    /// Removes and returns the next source. `waiting` is the set of all waiting sources and is not empty.
    fn next(&mut self, waiting: Set) -> u32;
}

/// First come, first served: a ring of sources.
pub(super) struct Fifo {
    ring: [u8; PLACES],
    first: usize,
    last: usize,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { ring: [0; PLACES], first: 0, last: 0 }
    }
}

impl Order for Fifo {
    #[inline]
    fn request(&mut self, source: u32) {
        self.ring[self.last % PLACES] = source as u8;
        self.last = self.last.wrapping_add(1);
    }

    #[inline]
    fn section_ends(&mut self) {}

    #[inline]
    fn next(&mut self, _waiting: Set) -> u32 {
        let source = self.ring[self.first % PLACES];
        self.first = self.first.wrapping_add(1);
        u32::from(source)
    }
}

/// The most important source first, regardless of its arrival.
#[derive(Default)]
pub(super) struct Priority;

impl Order for Priority {
    #[inline]
    fn request(&mut self, _source: u32) {}

    #[inline]
    fn section_ends(&mut self) {}

    #[inline]
    fn next(&mut self, waiting: Set) -> u32 {
        best(waiting)
    }
}

/// Batches in order of arrival: a ring of sets. No set in the ring
/// is empty, so there are at most as many sets as waiting sources.
///
/// ```text
/// request        open batch gains a member
/// section ends   open batch -> ring, unless it is empty; the next one opens
/// next           best member of the first batch in the ring; the batch leaves with its last member
/// ```
pub(super) struct Batched {
    ring: [Set; PLACES],
    first: usize,
    last: usize,
    open: Set,
}

impl Default for Batched {
    fn default() -> Self {
        Self { ring: [0; PLACES], first: 0, last: 0, open: 0 }
    }
}

impl Order for Batched {
    #[inline]
    fn request(&mut self, source: u32) {
        self.open |= 1 << source;
    }

    #[inline]
    fn section_ends(&mut self) {
        if self.open != 0 {
            self.ring[self.last % PLACES] = self.open;
            self.last = self.last.wrapping_add(1);
            self.open = 0;
        }
    }

    #[inline]
    fn next(&mut self, _waiting: Set) -> u32 {
        let batch = &mut self.ring[self.first % PLACES];
        let source = best(*batch);
        *batch &= !(1 << source);
        if *batch == 0 {
            self.first = self.first.wrapping_add(1);
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::Priority as Urgency;
    use lockwright_protocol::{Order as Specified, Waiting};

    /// Returns the order of grants when sources 2, 9 and 5 request during one section, and 7 and 3 during the next.
    fn order<O: Order>() -> Vec<u32> {
        let mut order = O::default();
        let mut waiting = 0;
        for section in [&[2, 9, 5][..], &[7, 3]] {
            for &source in section {
                order.request(source);
                waiting |= 1 << source;
            }
            order.section_ends();
        }
        let mut granted = Vec::new();
        while waiting != 0 {
            let source = order.next(waiting);
            waiting &= !(1 << source);
            granted.push(source);
        }
        granted
    }

    #[test]
    fn orders_by_hand() {
        assert_eq!(order::<Fifo>(), [2, 9, 5, 7, 3]);
        assert_eq!(order::<Priority>(), [9, 7, 5, 3, 2]);
        assert_eq!(order::<Batched>(), [9, 5, 2, 7, 3]);
    }

    /// Returns the number of hand-offs in random sections that `specified` allows, and the number of hand-offs until
    /// the first one that it does not allow.
    fn allowed<O: Order>(specified: Specified) -> (u32, u32) {
        const SOURCES: u32 = 64;
        let mut random = fastrand::Rng::with_seed(11);
        let (mut order, mut specification) = (O::default(), Waiting::new(specified));
        let (mut waiting, mut holder): (Set, u32) = (0, 0);
        let (mut allowed, mut all) = (0, 0);
        for _ in 0..20_000 {
            // There are few or many requests at a time, so that the rings are
            // sometimes empty and sometimes full. The holder makes no request.
            let often = random.u32(0..4) * random.u32(0..4);
            for _ in 0..SOURCES / 4 {
                let source = random.u32(0..SOURCES);
                if random.u32(0..32) < often && source != holder && waiting & 1 << source == 0 {
                    order.request(source);
                    specification.request(source as usize, Urgency::base(source));
                    waiting |= 1 << source;
                }
            }
            order.section_ends();
            if waiting == 0 {
                continue;
            }
            holder = order.next(waiting);
            waiting &= !(1 << holder);
            all += 1;
            if !specification.may_be_next(holder as usize) {
                break;
            }
            allowed += 1;
            specification.hand_off(holder as usize);
        }
        (allowed, all)
    }

    #[test]
    fn orders_match_the_specification_of_the_spinlocks() {
        for (allowed, all) in [
            allowed::<Fifo>(Specified::Fifo),
            allowed::<Priority>(Specified::Priority),
            allowed::<Batched>(Specified::Batched),
        ] {
            assert!(allowed == all && all > 10_000, "{allowed} of {all}");
        }
        // The mutants: another order is recognised.
        for (allowed, all) in [
            allowed::<Fifo>(Specified::Batched),
            allowed::<Priority>(Specified::Batched),
            allowed::<Batched>(Specified::Fifo),
            allowed::<Batched>(Specified::Priority),
        ] {
            assert!(allowed < all, "{allowed} of {all}");
        }
    }
}
