//! Every interleaving of a few slots: one at a time, nobody stuck, first batches first, at most one section of each other while one waits.

use super::steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};
use core::cell::Cell;
use std::collections::HashMap;
use std::vec::Vec;

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
            assert!(batch != 0, "a batch has members");
            shared.batches[usize::from(shared.count)] = batch as u8;
            shared.count += 1;
        });
    }
    fn front(&self) -> Option<u64> {
        let shared = self.shared.get();
        (shared.count != 0 && self.fault != Fault::FreedTooEarly).then_some(u64::from(shared.batches[0]))
    }
    fn remove(&self, slot: usize) {
        self.change(|shared| {
            shared.batches[0] &= !(1 << slot);
            if shared.batches[0] == 0 {
                shared.batches.rotate_left(1);
                shared.count -= 1;
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
struct Model {
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
}

/// What goes wrong in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

impl Model {
    fn new(setting: &Setting) -> Self {
        Self {
            shared: Shared::default(),
            tasks: [Task::Idle; SLOTS],
            left: setting.requests,
            passed: [[0; SLOTS]; SLOTS],
            later: [0; SLOTS],
            closed: 0,
            queued: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.tasks.iter().all(|&task| task == Task::Idle) && self.left.iter().all(|&left| left == 0)
    }

    /// The next step of `task`; of `SLOTS + task`: it gives up.
    fn step(&self, setting: &Setting, task: usize) -> Option<Result<Self, Wrong>> {
        let mut next = self.clone();
        let (task, gives_up) = (task % SLOTS, task >= SLOTS);
        let bit = 1 << task;
        if gives_up {
            let Task::Asks(contender) = &mut next.tasks[task] else { return None };
            if contender.at != At::Wait || setting.give_up & bit == 0 {
                return None;
            }
            contender.at = At::Abandon;
            return Some(Ok(next));
        }
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
                next.watch(task, self.tasks[task], view.at);
                match outcome {
                    Outcome::Holds => {
                        if let Err(wrong) = next.enters(task) {
                            return Some(Err(wrong));
                        }
                    }
                    Outcome::Gone => next.tasks[task] = Task::Idle,
                    Outcome::Steps | Outcome::Spins => {}
                }
            }
        }
        Some(Ok(next))
    }

    /// Keeps the books of the promise.
    fn watch(&mut self, task: usize, before: Task, at: At) {
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
            At::Collect if matches!(before, Task::Leaves(_)) && self.shared.arrivals == 0 => self.closed |= self.queued,
            At::Gather if matches!(before, Task::Leaves(_)) => self.closed |= self.queued,
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

struct Found {
    states: usize,
    stuck: usize,
}

fn search(setting: &Setting) -> Result<Found, Wrong> {
    let first = Model::new(setting);
    let mut states = Vec::from([first.clone()]);
    let mut numbers = HashMap::from([(first, 0_u32)]);
    let mut before: Vec<Vec<u32>> = Vec::from([Vec::new()]);
    let mut at = 0;
    while at < states.len() {
        for task in 0..2 * SLOTS {
            let Some(next) = states[at].step(setting, task) else { continue };
            let next = next?;
            let number = *numbers.entry(next.clone()).or_insert_with(|| {
                states.push(next);
                before.push(Vec::new());
                states.len() as u32 - 1
            });
            before[number as usize].push(at as u32);
        }
        at += 1;
    }
    // Backwards from the ends: what is not reached cannot end.
    let mut ends: Vec<bool> = states.iter().map(Model::is_done).collect();
    let mut open: Vec<usize> = (0..states.len()).filter(|&state| ends[state]).collect();
    while let Some(state) = open.pop() {
        for &earlier in &before[state] {
            if !core::mem::replace(&mut ends[earlier as usize], true) {
                open.push(earlier as usize);
            }
        }
    }
    Ok(Found { states: states.len(), stuck: ends.iter().filter(|&&ends| !ends).count() })
}

const TWO_EACH: Setting = Setting { requests: [2; SLOTS], priorities: [1, 2, 3], give_up: 0, fault: Fault::None };

fn holds(setting: Setting) {
    let found = search(&setting).expect("the promise is kept");
    std::println!("{} states", found.states);
    assert_eq!(found.stuck, 0, "of {} states", found.states);
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

fn fails(fault: Fault) -> Option<Wrong> {
    match search(&Setting { fault, ..TWO_EACH }) {
        Err(wrong) => Some(wrong),
        Ok(found) => {
            assert_ne!(found.stuck, 0, "{fault:?} goes unnoticed");
            None
        }
    }
}

#[test]
fn wrong_locks_are_caught() {
    assert_eq!(fails(Fault::NoTake), Some(Wrong::TwoInside));
    assert_eq!(fails(Fault::LostGrant), None);
    assert_eq!(fails(Fault::LateBatches), Some(Wrong::PassedTwice));
    assert_eq!(fails(Fault::FreedTooEarly), Some(Wrong::PassedTwice));
}
