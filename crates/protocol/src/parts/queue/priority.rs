//! The priority order: most urgent first, first come first served among equals.
//!
//! A list consists of levels, and each level is a ring of its members in the order of their arrival. A member is in at
//! most one list (a task waits for at most one resource, a lock has at most one owner), so one link for each member
//! serves all lists of a machine.
//!
//! ```text
//!   first -> P 9: 7 -> 2 -> 4 -.
//!              |  ^------------'
//!            P 4: 5 -.
//!              |  ^--'
//!            none
//! ```

use lockwright_model::{Priority, ResourceId, TaskId};

/// A member of a list.
pub(crate) trait Member: Copy + Eq {
    fn place(self) -> usize;
}

impl Member for TaskId {
    fn place(self) -> usize {
        self.index()
    }
}

impl Member for ResourceId {
    fn place(self) -> usize {
        self.index()
    }
}

/// The link of every member, shared by all lists of a machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Links<M, const MEMBERS: usize>([Link<M>; MEMBERS]);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Link<M> {
    /// The ring of its level, `(before, after)`; `None` in no list. A member alone on its level is its own neighbour.
    ring: Option<(M, M)>,
    /// Of the first of a level: the firsts of the next more and the next less urgent one.
    above: Option<M>,
    below: Option<M>,
    /// The priority by which it was inserted.
    key: Priority,
}

impl<M> Link<M> {
    /// The link of a member in no list. It has one form, so that equal states are equal.
    const OUT: Self = Self { ring: None, above: None, below: None, key: Priority::MIN };
}

/// One list: its first member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PriorityList<M> {
    first: Option<M>,
}

/// Tasks that wait.
pub(crate) type WaitQueue = PriorityList<TaskId>;

impl<M: Member, const MEMBERS: usize> Links<M, MEMBERS> {
    pub(crate) const fn new() -> Self {
        Self([Link::OUT; MEMBERS])
    }

    /// Returns the priority by which a member was inserted.
    pub(crate) fn key(&self, member: M) -> Priority {
        self.0[member.place()].key
    }

    /// Makes `after` the successor of `before`; both are in rings.
    fn join(&mut self, before: M, after: M) {
        let (first, _) = self.ring(before);
        self.0[before.place()].ring = Some((first, after));
        let (_, last) = self.ring(after);
        self.0[after.place()].ring = Some((before, last));
    }

    fn ring(&self, member: M) -> (M, M) {
        self.0[member.place()].ring.unwrap_or((member, member))
    }
}

impl<M: Member> PriorityList<M> {
    pub(crate) const EMPTY: Self = Self { first: None };

    pub(crate) const fn first(self) -> Option<M> {
        self.first
    }

    /// Inserts `member` behind all members of at least its priority. It must be in no list.
    ///
    /// BOUND: one step for each more urgent level, whatever the number of its members.
    pub(crate) fn insert<const MEMBERS: usize>(&mut self, links: &mut Links<M, MEMBERS>, member: M, key: Priority) {
        let (mut above, mut below) = (None, self.first);
        while let Some(level) = below.filter(|&level| links.key(level) > key) {
            (above, below) = (Some(level), links.0[level.place()].below);
        }
        match below {
            Some(level) if links.key(level) == key => {
                let (last, _) = links.ring(level);
                links.0[member.place()] = Link { ring: Some((last, level)), key, ..Link::OUT };
                links.join(last, member);
                links.join(member, level);
            }
            _ => {
                links.0[member.place()] = Link { ring: Some((member, member)), above, below, key };
                self.attach(links, member);
            }
        }
    }

    /// Removes `member` from this list. Returns `false` if it is in no list.
    ///
    /// BOUND: no loop.
    pub(crate) fn remove<const MEMBERS: usize>(&mut self, links: &mut Links<M, MEMBERS>, member: M) -> bool {
        let link = core::mem::replace(&mut links.0[member.place()], Link::OUT);
        let Some((before, after)) = link.ring else { return false };
        let is_level = self.first == Some(member) || link.above.is_some();
        if after != member {
            links.join(before, after);
            if is_level {
                let heir = &mut links.0[after.place()];
                (heir.above, heir.below) = (link.above, link.below);
                self.attach(links, after);
            }
        } else {
            match link.above {
                Some(above) => links.0[above.place()].below = link.below,
                None => self.first = link.below,
            }
            if let Some(below) = link.below {
                links.0[below.place()].above = link.above;
            }
        }
        true
    }

    /// Removes the first member.
    pub(crate) fn pop<const MEMBERS: usize>(&mut self, links: &mut Links<M, MEMBERS>) -> Option<M> {
        let first = self.first?;
        self.remove(links, first);
        Some(first)
    }

    /// Moves a member whose priority has changed behind its new equals. A member with the same priority keeps its
    /// place.
    pub(crate) fn reorder<const MEMBERS: usize>(&mut self, links: &mut Links<M, MEMBERS>, member: M, key: Priority) {
        if links.key(member) != key && self.remove(links, member) {
            self.insert(links, member, key);
        }
    }

    /// Returns all members, in order.
    pub(crate) fn iter<const MEMBERS: usize>(self, links: &Links<M, MEMBERS>) -> impl Iterator<Item = M> {
        let levels = core::iter::successors(self.first, |level| links.0[level.place()].below);
        levels.flat_map(move |level| {
            let next = move |&member: &M| Some(links.ring(member).1).filter(|&next| next != level);
            core::iter::successors(Some(level), next)
        })
    }

    /// Links the neighbours of a level to its first member.
    fn attach<const MEMBERS: usize>(&mut self, links: &mut Links<M, MEMBERS>, level: M) {
        let Link { above, below, .. } = links.0[level.place()];
        match above {
            Some(above) => links.0[above.place()].below = Some(level),
            None => self.first = Some(level),
        }
        if let Some(below) = below {
            links.0[below.place()].above = Some(level);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::{check_states, reach};
    use std::vec::Vec;

    fn order(queue: WaitQueue, links: &Links<TaskId, 8>) -> Vec<u16> {
        let (mut copy, mut left) = (queue, links.clone());
        let popped: Vec<u16> = core::iter::from_fn(|| copy.pop(&mut left)).map(|task| task.0).collect();
        assert!(popped.iter().all(|&task| left.0[usize::from(task)] == Link::OUT), "a link stayed behind");
        assert!(queue.iter(links).map(|task| task.0).eq(popped.iter().copied()));
        popped
    }

    #[test]
    fn most_urgent_first_and_first_come_among_equals() {
        let (mut queue, mut links) = (WaitQueue::EMPTY, Links::<TaskId, 8>::new());
        for (task, level) in [(0, 3), (1, 5), (2, 3), (3, 9), (4, 5)] {
            queue.insert(&mut links, TaskId(task), Priority::base(level));
        }
        assert_eq!(order(queue, &links), [3, 1, 4, 0, 2]);
        assert!(queue.remove(&mut links, TaskId(1)));
        assert!(!queue.remove(&mut links, TaskId(1)));
        queue.reorder(&mut links, TaskId(2), Priority::base(9));
        assert_eq!(order(queue, &links), [3, 2, 4, 0]);
        queue.reorder(&mut links, TaskId(3), Priority::base(1));
        assert_eq!(order(queue, &links), [2, 4, 0, 3]);
    }

    /// Four members, three levels, two lists: in every state that can be reached, every operation does what it does to
    /// sorted vectors.
    #[test]
    fn as_sorted_vectors() {
        type State = ([WaitQueue; 2], Links<TaskId, 8>, [Vec<(u16, u32)>; 2]);
        let start: State = ([WaitQueue::EMPTY; 2], Links::new(), Default::default());
        let states = reach(start, |state, next_states| {
            for (list, plain) in state.0.iter().zip(&state.2) {
                assert_eq!(order(*list, &state.1), plain.iter().map(|member| member.0).collect::<Vec<_>>());
            }
            for (task, which) in (0..4).flat_map(|task| [(task, 0), (task, 1)]) {
                let holds = |which: usize| state.2[which].iter().find(|member| member.0 == task).copied();
                if holds(1 - which).is_some() {
                    continue;
                }
                for level in 0..3 {
                    let (mut lists, mut links, mut plain) = state.clone();
                    match holds(which) {
                        Some(_) => lists[which].reorder(&mut links, TaskId(task), Priority::base(level)),
                        None => lists[which].insert(&mut links, TaskId(task), Priority::base(level)),
                    }
                    if holds(which) != Some((task, level)) {
                        plain[which].retain(|member| member.0 != task);
                        let place = plain[which].partition_point(|member| member.1 >= level);
                        plain[which].insert(place, (task, level));
                    }
                    next_states.push((lists, links, plain));
                }
                let (mut lists, mut links, mut plain) = state.clone();
                assert_eq!(lists[which].remove(&mut links, TaskId(task)), holds(which).is_some());
                plain[which].retain(|member| member.0 != task);
                next_states.push((lists, links, plain));
            }
        });
        check_states("lists", states, 1_000);
    }
}
