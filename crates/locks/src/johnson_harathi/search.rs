//! The search of every interleaving of a few slots.
//!
//! It checks exclusion, that no slot waits forever, and at each release that the queue is the one that the requests so
//! far make.

use super::steps::{At, Contender, LEFT, Memory, NONE, Outcome, VERSION, next_of, prepared};
use crate::testing::search::{self, columns};
use core::cell::Cell;
use std::format;
use std::string::String;

const SLOTS: usize = 3;

/// The shared words as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Shared {
    head: u8,
    links: [u16; SLOTS],
    priorities: [u8; SLOTS],
    granted: [bool; SLOTS],
}

/// The mutants of the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fault {
    None,
    /// A new link keeps its version.
    NoVersion,
    /// A walk continues without a check that the predecessor is still linked to the next node.
    NoSecondCheck,
    /// A walk begins at a node that may no longer be the holder.
    NoHeadCheck,
    /// A node that leaves does not mark its link.
    NoMark,
    /// A walk finds every node as urgent as itself.
    NoPriorities,
    /// A grant is not written.
    LostGrant,
    /// A held lock can be locked.
    NoExclusion,
}

/// The shared words, as one step accesses them.
struct View {
    shared: Cell<Shared>,
    fault: Fault,
}

impl View {
    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let mut shared = self.shared.get();
        let result = change(&mut shared);
        self.shared.set(shared);
        result
    }
}

impl Memory for View {
    fn holder(&self) -> usize {
        usize::from(self.shared.get().head)
    }
    fn is_holder(&self, node: usize) -> bool {
        self.fault == Fault::NoHeadCheck || usize::from(self.shared.get().head) == node
    }
    fn try_lock(&self, me: usize) -> bool {
        self.change(|shared| {
            let is_locked_now = usize::from(shared.head) == NONE || self.fault == Fault::NoExclusion;
            if is_locked_now {
                shared.head = me as u8;
            }
            is_locked_now
        })
    }
    fn pass(&self, next: usize) {
        self.change(|shared| shared.head = next as u8);
    }
    fn link(&self, node: usize) -> usize {
        usize::from(self.shared.get().links[node])
    }
    fn is_linked(&self, node: usize, link: usize) -> bool {
        self.fault == Fault::NoSecondCheck || usize::from(self.shared.get().links[node]) == link
    }
    fn prepare(&self, me: usize, next: usize) {
        let version = if self.fault == Fault::NoVersion { VERSION } else { 0 };
        self.change(|shared| {
            shared.links[me] = (prepared(usize::from(shared.links[me]), next) - version) as u16;
        });
    }
    fn put(&self, before: usize, link: usize, me: usize) -> bool {
        self.change(|shared| {
            let is_same = usize::from(shared.links[before]) == link;
            if is_same {
                shared.links[before] = (link & !NONE | me) as u16;
            }
            is_same
        })
    }
    fn leave(&self, me: usize) -> usize {
        let mark = if self.fault == Fault::NoMark { 0 } else { LEFT };
        self.change(|shared| {
            let link = usize::from(shared.links[me]);
            shared.links[me] = (link | mark) as u16;
            next_of(link)
        })
    }
    fn enlist(&self, me: usize, priority: u32) {
        self.change(|shared| {
            shared.priorities[me] = priority as u8;
            shared.granted[me] = false;
        });
    }
    fn priority(&self, node: usize) -> u32 {
        if self.fault == Fault::NoPriorities { u32::MAX } else { u32::from(self.shared.get().priorities[node]) }
    }
    fn is_granted(&self, me: usize) -> bool {
        self.shared.get().granted[me]
    }
    fn grant(&self, node: usize) {
        if self.fault != Fault::LostGrant {
            self.change(|shared| shared.granted[node] = true);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Task {
    Requests(Contender),
    /// The slot is inside before the step `Leave`, and leaves from that step on.
    Leaves(Contender),
    Done,
}

/// A broken guarantee.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wrong {
    TwoInside,
    /// The next holder is not the most urgent waiter, or not the first one of them.
    OutOfOrder,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    shared: Shared,
    tasks: [Task; SLOTS],
    /// The requests that are left.
    left: [u8; SLOTS],
    /// The waiters in the queue, in the order in which they were linked.
    queued: [u8; SLOTS],
    wrong: Option<Wrong>,
}

/// No slot, in `queued`.
const NOBODY: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Setting {
    requests: [u8; SLOTS],
    /// The priorities of each slot's last request, and of the one before.
    priorities: [[u32; 2]; SLOTS],
    fault: Fault,
}

impl State {
    /// Returns the state after the next step of `task`, and `None` if it has nothing to do.
    fn step(&self, setting: &Setting, task: usize) -> Option<Self> {
        let (Task::Requests(mut contender) | Task::Leaves(mut contender)) = self.tasks[task] else { return None };
        let mut next = self.clone();
        let (at, view) = (contender.at, View { shared: Cell::new(self.shared), fault: setting.fault });
        let outcome = contender.step(&view);
        next.shared = view.shared.get();
        let leaves = matches!(self.tasks[task], Task::Leaves(_));
        next.tasks[task] = if leaves { Task::Leaves(contender) } else { Task::Requests(contender) };
        match outcome {
            Outcome::Queued => next.is_linked(task),
            Outcome::Holds => {
                if self.tasks.iter().any(|other| matches!(other, Task::Leaves(Contender { at: At::Leave, .. }))) {
                    next.wrong = Some(Wrong::TwoInside);
                }
                next.tasks[task] = Task::Leaves(Contender::releases(task));
            }
            Outcome::Gone => next.begins(setting, task),
            Outcome::Steps if at == At::Leave => next.hands_over(contender.at),
            Outcome::Steps | Outcome::Spins | Outcome::Again => {}
        }
        Some(next)
    }

    /// Begins the next request of a slot.
    fn begins(&mut self, setting: &Setting, task: usize) {
        self.tasks[task] = self.left[task].checked_sub(1).map_or(Task::Done, |left| {
            self.left[task] = left;
            Task::Requests(Contender::requests(task, setting.priorities[task][usize::from(left) % 2]))
        });
    }

    fn is_linked(&mut self, task: usize) {
        if let Some(last) = self.queued.iter_mut().find(|slot| **slot == NOBODY) {
            *last = task as u8;
        }
    }

    /// Checks the next holder, which the release has read.
    fn hands_over(&mut self, at: At) {
        let priority = |slot: u8| match self.tasks[usize::from(slot)] {
            Task::Requests(contender) => contender.priority,
            _ => 0,
        };
        let waiters = self.queued.iter().copied().filter(|&slot| slot != NOBODY);
        // Among equals it is the first one.
        let first = waiters.reduce(|best, slot| if priority(slot) > priority(best) { slot } else { best });
        if at != At::Pass(first.unwrap_or(NONE as u8)) {
            self.wrong = Some(Wrong::OutOfOrder);
        }
        if let Some(place) = self.queued.iter().position(|&slot| Some(slot) == first) {
            self.queued[place..].rotate_left(1);
            self.queued[SLOTS - 1] = NOBODY;
        }
    }
}

impl search::Model for Setting {
    type State = State;

    fn start(&self) -> State {
        let links = [(NONE | LEFT) as u16; SLOTS];
        let mut state = State {
            shared: Shared { head: NONE as u8, links, priorities: [0; SLOTS], granted: [true; SLOTS] },
            tasks: [Task::Done; SLOTS],
            left: self.requests,
            queued: [NOBODY; SLOTS],
            wrong: None,
        };
        (0..SLOTS).for_each(|task| state.begins(self, task));
        state
    }
    fn tasks(&self) -> usize {
        SLOTS
    }
    fn steps(&self, state: &State, task: usize, to: &mut dyn FnMut(State)) {
        // A wrong state stays wrong, so its successors are not needed.
        if state.wrong.is_none() {
            state.step(self, task).into_iter().for_each(to);
        }
    }
    fn is_done(&self, state: &State) -> bool {
        state.tasks == [Task::Done; SLOTS]
    }
    fn is_wrong(&self, state: &State) -> bool {
        state.wrong.is_some()
    }
    fn counts(&self, _: &State, _: usize, to: &State) -> bool {
        to.wrong.is_some()
    }
    fn describe(&self, from: &State, task: usize, to: &State) -> String {
        match (from.tasks[task], to.wrong) {
            (_, Some(wrong)) => format!("{wrong:?}"),
            (Task::Requests(contender) | Task::Leaves(contender), None) => format!("{:?}", contender.at),
            (Task::Done, None) => String::new(),
        }
    }
}

const TWO_RETURN: Setting = Setting { requests: [2, 2, 1], priorities: [[3; 2], [2; 2], [1; 2]], fault: Fault::None };

fn holds(setting: Setting) {
    let found = search::search(&setting);
    std::println!("{} states", found.states);
    assert!(!found.is_wrong, "a guarantee is broken:\n{}", columns(SLOTS, &found.way_to_counted));
    assert_eq!(found.stuck, 0, "a slot waits forever:\n{}", columns(SLOTS, &found.way_to_stuck));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn two_of_three_slots_return() {
    holds(TWO_RETURN);
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn two_of_three_slots_return_with_other_priorities() {
    holds(Setting { priorities: [[1, 3], [3, 1], [2; 2]], ..TWO_RETURN });
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn two_of_three_equal_slots_return() {
    holds(Setting { priorities: [[1; 2]; SLOTS], ..TWO_RETURN });
}

#[test]
#[ignore = "takes some gigabytes"]
fn all_three_slots_return() {
    holds(Setting { requests: [2; SLOTS], ..TWO_RETURN });
}

/// Returns the first broken guarantee, and `None` if a slot only waits forever.
fn fails(fault: Fault) -> Option<String> {
    let found = search::search(&Setting { fault, ..TWO_RETURN });
    std::println!("{fault:?}: {} states", found.states);
    assert!(found.is_wrong || found.stuck > 0, "{fault:?} is not caught");
    found.way_to_counted.last().map(|(_, what)| what.clone())
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn mutants_are_caught() {
    for fault in [Fault::NoVersion, Fault::NoSecondCheck, Fault::NoHeadCheck, Fault::NoMark, Fault::NoPriorities] {
        assert_eq!(fails(fault).as_deref(), Some("OutOfOrder"));
    }
    assert_eq!(fails(Fault::NoExclusion).as_deref(), Some("TwoInside"));
    assert_eq!(fails(Fault::LostGrant), None);
}
