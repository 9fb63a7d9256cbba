//! Every interleaving of a few slots: one at a time, nobody stuck, first batches first, at most one section of each other while one waits.

use super::steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};
use crate::testing::search::{self, columns};
use core::cell::Cell;
use std::format;
use std::string::String;

const SLOTS: usize = 3;

/// What is shared, as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Shared {
    taken: bool,
    arrivals: u8,
    batches: [u8; SLOTS],
    count: u8,
    places: [(u8, u8); SLOTS],
}

/// How a lock can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Fault {
    None,
    /// A batch is closed when all before it are served, not at the end of each section.
    LateBatches,
    /// A grant is not written.
    LostGrant,
    /// A lock that is held can be taken.
    NoTake,
    /// The lock is freed though a batch waits.
    FreedTooEarly,
}

/// One step's view of what is shared.
struct View {
    shared: Cell<Shared>,
    fault: Fault,
    at: At,
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
    fn arrivals(&self) -> u64 {
        let shared = self.shared.get();
        match (self.fault, self.at) {
            (Fault::LateBatches, At::Collect) if shared.count > 0 => 0,
            _ => u64::from(shared.arrivals),
        }
    }
    fn arrive(&self, slot: usize) {
        self.change(|shared| shared.arrivals |= 1 << slot);
    }
    fn take_arrivals(&self) -> u64 {
        self.change(|shared| u64::from(core::mem::take(&mut shared.arrivals)))
    }
    fn is_taken(&self) -> bool {
        self.shared.get().taken
    }
    fn take(&self) -> bool {
        self.change(|shared| !core::mem::replace(&mut shared.taken, true)) || self.fault == Fault::NoTake
    }
    fn free(&self) {
        self.change(|shared| shared.taken = false);
    }
    fn state(&self, slot: usize) -> u32 {
        u32::from(self.shared.get().places[slot].0)
    }
    fn enlist(&self, slot: usize, priority: u32) {
        self.change(|shared| shared.places[slot] = (WAITING as u8, priority as u8));
    }
    fn rejoin(&self, slot: usize, priority: u32) -> bool {
        self.change(|shared| {
            let gave_up = u32::from(shared.places[slot].0) == ABANDONED;
            if gave_up {
                shared.places[slot] = (WAITING as u8, priority as u8);
            }
            gave_up
        })
    }
    fn abandon(&self, slot: usize) -> bool {
        self.change(|shared| {
            let waits = u32::from(shared.places[slot].0) == WAITING;
            if waits {
                shared.places[slot].0 = ABANDONED as u8;
            }
            waits
        })
    }
    fn grant(&self, slot: usize) -> u32 {
        let before = self.state(slot);
        if self.fault != Fault::LostGrant {
            self.change(|shared| shared.places[slot].0 = OUT as u8);
        }
        before
    }
    fn priority(&self, slot: usize) -> u32 {
        u32::from(self.shared.get().places[slot].1)
    }
    fn push(&self, batch: u64) {
        self.change(|shared| {
            assert!(batch != 0 || self.fault == Fault::NoTake, "a batch has members");
            if let Some(last) = shared.batches.get_mut(usize::from(shared.count)) {
                *last = batch as u8;
                shared.count += 1;
            }
        });
    }
    fn front(&self) -> Option<u64> {
        let shared = self.shared.get();
        // Two at once (NoTake) can leave an empty one.
        (shared.batches[0] != 0 && self.fault != Fault::FreedTooEarly).then_some(u64::from(shared.batches[0]))
    }
    fn remove(&self, slot: usize) {
        self.change(|shared| {
            shared.batches[0] &= !(1 << slot);
            if shared.batches[0] == 0 {
                shared.batches.rotate_left(1);
                shared.count = shared.count.saturating_sub(1);
            }
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Task {
    Idle,
    Asks(Contender),
    Inside,
    Leaves(Contender),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    shared: Shared,
    tasks: [Task; SLOTS],
    /// Requests to come.
    left: [u8; SLOTS],
    /// Of one that waits: how many sections of each other went on meanwhile.
    passed: [[u8; SLOTS]; SLOTS],
    /// Of one that waits: whose arrival came after its batch was closed.
    later: [u8; SLOTS],
    /// Of one that waits: whether its batch is closed.
    closed: u8,
    /// Who has arrived and waits, or gave up and is still queued.
    queued: u8,
    /// What must not have happened.
    wrong: Option<Wrong>,
}

/// What goes wrong in a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wrong {
    TwoInside,
    LaterBatchFirst,
    PassedTwice,
}

#[derive(Clone, Copy)]
struct Setting {
    requests: [u8; SLOTS],
    priorities: [u32; SLOTS],
    /// Who may give up, as bits.
    give_up: u8,
    fault: Fault,
}

impl State {
    fn new(setting: &Setting) -> Self {
        Self {
            shared: Shared::default(),
            tasks: [Task::Idle; SLOTS],
            left: setting.requests,
            passed: [[0; SLOTS]; SLOTS],
            later: [0; SLOTS],
            closed: 0,
            queued: 0,
            wrong: None,
        }
    }

    fn is_done(&self) -> bool {
        self.tasks.iter().all(|&task| task == Task::Idle) && self.left.iter().all(|&left| left == 0)
    }

    /// The next step of `task`; `None` where it has nothing to do.
    fn step(&self, setting: &Setting, task: usize) -> Option<Self> {
        let mut next = self.clone();
        match self.tasks[task] {
            Task::Idle if self.left[task] == 0 => return None,
            Task::Idle => {
                next.left[task] -= 1;
                next.tasks[task] = Task::Asks(Contender::asks(task, setting.priorities[task], At::Test));
            }
            Task::Inside => next.tasks[task] = Task::Leaves(Contender::gives_back()),
            Task::Asks(contender) | Task::Leaves(contender) => {
                let leaves = matches!(self.tasks[task], Task::Leaves(_));
                let mut contender = contender;
                let view = View { shared: Cell::new(self.shared), fault: setting.fault, at: contender.at };
                let outcome = contender.step(&view);
                next.shared = view.shared.get();
                next.tasks[task] = if leaves { Task::Leaves(contender) } else { Task::Asks(contender) };
                next.watch(task, leaves, view.at);
                match outcome {
                    Outcome::Holds => next.wrong = next.enters(task).err(),
                    Outcome::Gone => next.tasks[task] = Task::Idle,
                    Outcome::Steps | Outcome::Spins => {}
                }
            }
        }
        Some(next)
    }

    /// The same, where a waiter decides to give up.
    fn gives_up(&self, setting: &Setting, task: usize) -> Option<Self> {
        let mut next = self.clone();
        let Task::Asks(contender) = &mut next.tasks[task] else { return None };
        if contender.at != At::Wait || setting.give_up & 1 << task == 0 {
            return None;
        }
        contender.at = At::Abandon;
        Some(next)
    }

    /// Keeps the books of the promise.
    fn watch(&mut self, task: usize, leaves: bool, at: At) {
        let bit = 1 << task;
        match at {
            At::Join => {
                self.queued |= bit;
                self.closed &= !bit;
                self.later[task] = 0;
                // The section that goes on now counts.
                for (other, inside) in self.tasks.iter().enumerate() {
                    self.passed[task][other] = u8::from(*inside == Task::Inside);
                }
                let closed = self.closed;
                let waiters = (0..SLOTS).filter(|&waiter| self.queued & closed & 1 << waiter != 0);
                for waiter in waiters {
                    self.later[waiter] |= bit;
                }
            }
            // The end of a section closes the batches, when it has seen that nobody arrived, or takes who did.
            At::Collect if leaves && self.shared.arrivals == 0 => self.closed |= self.queued,
            At::Gather if leaves => self.closed |= self.queued,
            _ => {}
        }
        // Who was taken out of the queue does not wait any more, whether it knows or not.
        for slot in 0..SLOTS {
            if u32::from(self.shared.places[slot].0) == OUT {
                self.queued &= !(1 << slot);
            }
        }
    }

    fn enters(&mut self, task: usize) -> Result<(), Wrong> {
        if self.tasks.contains(&Task::Inside) {
            return Err(Wrong::TwoInside);
        }
        self.tasks[task] = Task::Inside;
        let waits = |slot: usize| matches!(&self.tasks[slot], Task::Asks(_)) && self.queued & 1 << slot != 0;
        for waiter in (0..SLOTS).filter(|&waiter| waits(waiter)) {
            if self.later[waiter] & 1 << task != 0 {
                return Err(Wrong::LaterBatchFirst);
            }
            self.passed[waiter][task] += 1;
            if self.passed[waiter][task] > 1 {
                return Err(Wrong::PassedTwice);
            }
        }
        // Of one that does not wait, nothing is kept.
        self.passed[task] = [0; SLOTS];
        self.later[task] = 0;
        self.closed &= !(1 << task);
        for waiter in 0..SLOTS {
            self.later[waiter] &= !(1 << task);
        }
        Ok(())
    }
}

impl search::Model for Setting {
    type State = State;

    fn start(&self) -> State {
        State::new(self)
    }
    fn tasks(&self) -> usize {
        SLOTS
    }
    fn steps(&self, state: &State, task: usize, to: &mut dyn FnMut(State)) {
        // What is wrong stays so: its future says nothing.
        if state.wrong.is_none() {
            state.step(self, task).into_iter().chain(state.gives_up(self, task)).for_each(to);
        }
    }
    fn is_done(&self, state: &State) -> bool {
        state.is_done()
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
            (Task::Asks(contender) | Task::Leaves(contender), None) => format!("{:?}", contender.at),
            (other, None) => format!("{other:?}"),
        }
    }
}

const TWO_EACH: Setting = Setting { requests: [2; SLOTS], priorities: [1, 2, 3], give_up: 0, fault: Fault::None };

fn holds(setting: Setting) {
    let found = search::search(&setting);
    std::println!("{} states", found.states);
    assert_eq!(found.wrong, 0, "the promise is broken:\n{}", columns(SLOTS, &found.way_to_counted));
    assert_eq!(found.stuck, 0, "somebody waits for ever:\n{}", columns(SLOTS, &found.way_to_stuck));
}

#[test]
fn three_slots_twice_each() {
    holds(TWO_EACH);
}

#[test]
fn three_slots_three_times_each() {
    holds(Setting { requests: [3; SLOTS], ..TWO_EACH });
}

#[test]
fn three_slots_that_may_give_up() {
    holds(Setting { give_up: 0b111, ..TWO_EACH });
}

/// What the shortest way to a broken promise ends in; `None` where only an end is missing.
fn fails(fault: Fault) -> Option<String> {
    let found = search::search(&Setting { fault, ..TWO_EACH });
    assert!(found.wrong > 0 || found.stuck > 0, "{fault:?} goes unnoticed");
    found.way_to_counted.last().map(|(_, what)| what.clone())
}

#[test]
fn wrong_locks_are_caught() {
    assert_eq!(fails(Fault::NoTake).as_deref(), Some("TwoInside"));
    assert_eq!(fails(Fault::LateBatches).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::FreedTooEarly).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::LostGrant), None);
}
