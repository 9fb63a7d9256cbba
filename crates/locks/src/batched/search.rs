//! The search of every interleaving of a few slots.
//!
//! It checks exclusion, that no slot waits forever, that the first batch and the most urgent slot of a batch are served
//! first, and that at most one section of each other slot executes while a slot waits.
//!
//! The memory is sequentially consistent here; loom covers weaker memory (`cargo xtask test --deep loom`).
//!
//! The command
//! `cargo test --release -p lockwright-locks batched::search -- --nocapture --include-ignored --test-threads 1`
//! prints the figures that `docs/batched.md` shows.

use super::steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};
use crate::testing::search::{self, Found, columns};
use core::cell::Cell;
use std::format;
use std::string::String;

/// The shared words as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shared<const SLOTS: usize> {
    pub(super) locked: bool,
    pub(super) arrivals: u8,
    pub(super) batches: [u8; SLOTS],
    pub(super) count: u8,
    /// The state and the priority of each slot.
    pub(super) places: [(u8, u8); SLOTS],
}

/// The mutants of the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Fault {
    None,
    /// A batch is closed when all before it are served, and not at the end of each section.
    LateBatches,
    /// A grant is not written.
    LostGrant,
    /// A held lock can be locked.
    NoExclusion,
    /// The lock is freed while a batch waits.
    FreedTooEarly,
    /// The last batch is served first.
    LastBatchFirst,
    /// The least urgent slot of a batch is served first.
    LeastUrgentFirst,
    /// A slot that gives up goes although the lock was granted to it.
    LostAbandon,
    /// A slot that enters a free lock keeps the place where it gave up before.
    KeepsItsPlace,
    /// A slot that recovers its place also arrives again.
    ArrivesAgain,
    /// No waiter locks a free lock.
    NeverSeizes,
    /// A waiter that locks a free lock does not check who else arrived.
    SeizesBlindly,
}

/// The shared words, as one step accesses them.
pub(super) struct View<const SLOTS: usize> {
    pub(super) shared: Cell<Shared<SLOTS>>,
    pub(super) fault: Fault,
    at: At,
    leaves: bool,
}

impl<const SLOTS: usize> View<SLOTS> {
    pub(super) fn new(shared: Shared<SLOTS>, fault: Fault, contender: Contender) -> Self {
        Self { shared: Cell::new(shared), fault, at: contender.at, leaves: contender.leaves }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Shared<SLOTS>) -> T) -> T {
        let mut shared = self.shared.get();
        let result = change(&mut shared);
        self.shared.set(shared);
        result
    }

    /// Returns the index of the batch that is served.
    fn first(&self) -> usize {
        match self.fault {
            Fault::LastBatchFirst => usize::from(self.shared.get().count).saturating_sub(1),
            _ => 0,
        }
    }
}

impl<const SLOTS: usize> Memory for View<SLOTS> {
    fn arrivals(&self) -> u64 {
        let shared = self.shared.get();
        match (self.fault, self.at) {
            (Fault::LateBatches, At::Collect) if shared.count > 0 => 0,
            (Fault::SeizesBlindly, At::Collect) if !self.leaves => 0,
            _ => u64::from(shared.arrivals),
        }
    }
    fn arrive(&self, slot: usize) {
        self.change(|shared| shared.arrivals |= 1 << slot);
    }
    fn take_arrivals(&self) -> u64 {
        self.change(|shared| u64::from(core::mem::take(&mut shared.arrivals)))
    }
    fn is_locked(&self) -> bool {
        self.shared.get().locked || (self.fault, self.at) == (Fault::NeverSeizes, At::Poll)
    }
    fn try_lock(&self) -> bool {
        self.change(|shared| !core::mem::replace(&mut shared.locked, true)) || self.fault == Fault::NoExclusion
    }
    fn unlock(&self) {
        self.change(|shared| shared.locked = false);
    }
    fn state(&self, slot: usize) -> u32 {
        match (self.fault, self.at) {
            (Fault::KeepsItsPlace, At::Own) => OUT,
            _ => u32::from(self.shared.get().places[slot].0),
        }
    }
    fn enlist(&self, slot: usize, priority: u32) {
        self.change(|shared| shared.places[slot] = (WAITING as u8, priority as u8));
    }
    fn rejoin(&self, slot: usize, priority: u32) -> bool {
        self.change(|shared| {
            let gave_up = u32::from(shared.places[slot].0) == ABANDONED;
            shared.places[slot].1 = priority as u8;
            if gave_up {
                shared.places[slot].0 = WAITING as u8;
            }
            gave_up && self.fault != Fault::ArrivesAgain
        })
    }
    fn abandon(&self, slot: usize) -> u32 {
        let was = self.state(slot);
        if was == WAITING {
            self.change(|shared| shared.places[slot].0 = ABANDONED as u8);
        }
        if self.fault == Fault::LostAbandon { WAITING } else { was }
    }
    fn retract(&self, slot: usize) {
        self.change(|shared| {
            shared.arrivals &= !(1 << slot);
            shared.places[slot].0 = OUT as u8;
        });
    }
    fn grant(&self, slot: usize) -> u32 {
        let before = self.state(slot);
        if self.fault != Fault::LostGrant {
            self.change(|shared| shared.places[slot].0 = OUT as u8);
        }
        before
    }
    fn priority(&self, slot: usize) -> u32 {
        let priority = u32::from(self.shared.get().places[slot].1);
        if self.fault == Fault::LeastUrgentFirst { u32::MAX - priority } else { priority }
    }
    fn push(&self, batch: u64) {
        self.change(|shared| {
            assert!(batch != 0 || self.fault == Fault::NoExclusion, "a batch has members");
            if let Some(last) = shared.batches.get_mut(usize::from(shared.count)) {
                *last = batch as u8;
                shared.count += 1;
            }
        });
    }
    fn front(&self) -> Option<u64> {
        let batch = self.shared.get().batches[self.first()];
        // Two holders at once (NoExclusion) can leave an empty batch.
        (batch != 0 && self.fault != Fault::FreedTooEarly).then_some(u64::from(batch))
    }
    fn remove(&self, slot: usize) {
        self.change(|shared| {
            let first = self.first();
            shared.batches[first] &= !(1 << slot);
            if shared.batches[first] == 0 {
                shared.batches[first..].rotate_left(1);
                shared.count = shared.count.saturating_sub(1);
            }
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Task {
    Idle,
    Requests(Contender),
    Inside,
    Leaves(Contender),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State<const SLOTS: usize> {
    pub(super) shared: Shared<SLOTS>,
    pub(super) tasks: [Task; SLOTS],
    /// The requests that are left.
    left: [u8; SLOTS],
    /// For each queued slot, the sections of each other slot that executed meanwhile.
    passed: [[u8; SLOTS]; SLOTS],
    /// For each queued slot, the slots that arrived after its batch was closed.
    later: [u8; SLOTS],
    /// The queued slots whose batch is closed.
    closed: u8,
    /// The slots that have arrived and wait, or gave up and are still queued.
    queued: u8,
    /// The broken guarantee, if there is one.
    wrong: Option<Wrong>,
}

/// A broken guarantee.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wrong {
    TwoInside,
    LaterBatchFirst,
    LessUrgentFirst,
    PassedTwice,
}

#[derive(Clone, Copy)]
pub(super) struct Setting<const SLOTS: usize> {
    pub(super) requests: [u8; SLOTS],
    /// The priorities of the first requests. Each later one is greater by `more`, modulo 4.
    pub(super) priorities: [u32; SLOTS],
    pub(super) more: u32,
    /// The slots that may give up, a bit each.
    pub(super) give_up: u8,
    pub(super) fault: Fault,
}

impl<const SLOTS: usize> Setting<SLOTS> {
    /// Returns the priority of a request. If it changes, a slot recovers its place with another priority than it gave
    /// up with.
    fn priority(&self, task: usize, left: u8) -> u32 {
        (self.priorities[task] + self.more * u32::from(self.requests[task] - left)) % 4
    }
}

impl<const SLOTS: usize> State<SLOTS> {
    pub(super) fn new(setting: &Setting<SLOTS>) -> Self {
        let places = [(OUT as u8, 0); SLOTS];
        Self {
            shared: Shared { locked: false, arrivals: 0, batches: [0; SLOTS], count: 0, places },
            tasks: [Task::Idle; SLOTS],
            left: setting.requests,
            passed: [[0; SLOTS]; SLOTS],
            later: [0; SLOTS],
            closed: 0,
            queued: 0,
            wrong: None,
        }
    }

    /// Whether all slots are idle and the lock is free. A lock that is held then was granted to a slot that had gone.
    pub(super) fn is_done(&self) -> bool {
        let idle = self.tasks.iter().all(|&task| task == Task::Idle) && self.left.iter().all(|&left| left == 0);
        idle && !self.shared.locked
    }

    /// Returns the state after the next step of `task`, and `None` if it has nothing to do.
    pub(super) fn step(&self, setting: &Setting<SLOTS>, task: usize) -> Option<Self> {
        let mut next = self.clone();
        match self.tasks[task] {
            Task::Idle if self.left[task] == 0 => return None,
            Task::Idle => {
                let priority = setting.priority(task, self.left[task]);
                next.left[task] -= 1;
                next.tasks[task] = Task::Requests(Contender::requests(task, priority, At::Test));
            }
            Task::Inside => next.tasks[task] = Task::Leaves(Contender::releases()),
            Task::Requests(contender) | Task::Leaves(contender) => {
                let mut contender = contender;
                let view = View::new(self.shared, setting.fault, contender);
                let outcome = contender.step(&view);
                next.shared = view.shared.get();
                next.tasks[task] = if contender.leaves { Task::Leaves(contender) } else { Task::Requests(contender) };
                next.watch(task, view.at, contender.at);
                match outcome {
                    Outcome::Holds => next.wrong = next.wrong.or(next.enters(task).err()),
                    Outcome::Gone => next.tasks[task] = Task::Idle,
                    Outcome::Steps | Outcome::Spins => {}
                }
            }
        }
        Some(next)
    }

    /// Returns the state after a waiter decided to give up.
    pub(super) fn gives_up(&self, setting: &Setting<SLOTS>, task: usize) -> Option<Self> {
        let mut next = self.clone();
        let Task::Requests(contender) = &mut next.tasks[task] else { return None };
        if contender.at != At::Wait || setting.give_up & 1 << task == 0 {
            return None;
        }
        contender.at = At::Abandon;
        Some(next)
    }

    /// Updates the records of the guarantees after a step from one place to another.
    fn watch(&mut self, task: usize, from: At, to: At) {
        let bit = 1 << task;
        match from {
            At::Join => {
                self.queued |= bit;
                self.closed &= !bit;
                self.later[task] = 0;
                // The section in progress counts.
                for (other, inside) in self.tasks.iter().enumerate() {
                    self.passed[task][other] = u8::from(*inside == Task::Inside);
                }
                let closed = self.closed;
                let waiters = (0..SLOTS).filter(|&waiter| self.queued & closed & 1 << waiter != 0);
                for waiter in waiters {
                    self.later[waiter] |= bit;
                }
            }
            // The owner of the lock closes the batches, when it has seen no arrivals, or collects them.
            At::Collect if self.shared.arrivals == 0 => self.closed |= self.queued,
            At::Gather => self.closed |= self.queued,
            At::Choose => {
                if let At::Grant(best) = to {
                    self.chooses(usize::from(best));
                }
            }
            _ => {}
        }
        // A slot that was removed from the queue does not wait any more, even before it has seen that.
        for slot in 0..SLOTS {
            if u32::from(self.shared.places[slot].0) == OUT {
                self.queued &= !(1 << slot);
            }
        }
    }

    /// Checks that no waiter in the batch of `best` is more urgent. A slot that gave up does not enter, so it is not
    /// checked.
    fn chooses(&mut self, best: usize) {
        let urgency = |slot: usize| match self.tasks[slot] {
            Task::Requests(contender) if u32::from(self.shared.places[slot].0) == WAITING => Some(contender.priority),
            _ => None,
        };
        let in_its_batch = |slot: usize| {
            self.queued & self.closed & 1 << slot != 0
                && self.later[slot] & 1 << best == 0
                && self.later[best] & 1 << slot == 0
        };
        let Some(chosen) = urgency(best) else { return };
        if (0..SLOTS).any(|slot| in_its_batch(slot) && urgency(slot) > Some(chosen)) {
            self.wrong = Some(Wrong::LessUrgentFirst);
        }
    }

    fn enters(&mut self, task: usize) -> Result<(), Wrong> {
        if self.tasks.contains(&Task::Inside) {
            return Err(Wrong::TwoInside);
        }
        self.tasks[task] = Task::Inside;
        let queued = self.queued;
        for waiter in (0..SLOTS).filter(|&waiter| queued & 1 << waiter != 0) {
            if self.later[waiter] & 1 << task != 0 {
                return Err(Wrong::LaterBatchFirst);
            }
            self.passed[waiter][task] += 1;
            if self.passed[waiter][task] > 1 {
                return Err(Wrong::PassedTwice);
            }
        }
        // There are no records for a slot that is not queued.
        self.passed[task] = [0; SLOTS];
        self.later[task] = 0;
        self.closed &= !(1 << task);
        for waiter in 0..SLOTS {
            self.later[waiter] &= !(1 << task);
        }
        Ok(())
    }
}

impl<const SLOTS: usize> search::Model for Setting<SLOTS> {
    type State = State<SLOTS>;

    fn start(&self) -> Self::State {
        State::new(self)
    }
    fn tasks(&self) -> usize {
        SLOTS
    }
    fn steps(&self, state: &Self::State, task: usize, to: &mut dyn FnMut(Self::State)) {
        // A wrong state stays wrong, so its successors are not needed.
        if state.wrong.is_none() {
            state.step(self, task).into_iter().chain(state.gives_up(self, task)).for_each(to);
        }
    }
    fn is_done(&self, state: &Self::State) -> bool {
        state.is_done()
    }
    fn is_wrong(&self, state: &Self::State) -> bool {
        state.wrong.is_some()
    }
    fn counts(&self, _: &Self::State, _: usize, to: &Self::State) -> bool {
        to.wrong.is_some()
    }
    fn describe(&self, from: &Self::State, task: usize, to: &Self::State) -> String {
        match (from.tasks[task], to.wrong) {
            (_, Some(wrong)) => format!("{wrong:?}"),
            (Task::Requests(contender) | Task::Leaves(contender), None) => format!("{:?}", contender.at),
            (other, None) => format!("{other:?}"),
        }
    }
}

/// The given requests of each slot; the slots in `give_up` may give up at any check.
pub(super) fn setting<const SLOTS: usize>(requests: [u8; SLOTS], give_up: u8) -> Setting<SLOTS> {
    let mut priorities = [3; SLOTS];
    (priorities[0], priorities[1]) = (1, 2);
    Setting { requests, priorities, more: 0, give_up, fault: Fault::None }
}

/// Whether all of the searches are made, as in CI, or those that take longer are made smaller.
fn is_deep() -> bool {
    std::env::var_os("LOCKWRIGHT_DEEP").is_some()
}

fn searched<const SLOTS: usize>(setting: Setting<SLOTS>) -> Found {
    let begin = std::time::Instant::now();
    let found = search::search(&setting);
    std::eprintln!(
        "requests {:?}, each more urgent by {}, {:0SLOTS$b} may give up, {:?}: {} states, wrong: {}, {} stuck, {:.1} s",
        setting.requests,
        setting.more,
        setting.give_up,
        setting.fault,
        found.states,
        found.is_wrong,
        found.stuck,
        begin.elapsed().as_secs_f64()
    );
    found
}

fn holds<const SLOTS: usize>(setting: Setting<SLOTS>) {
    let found = searched(setting);
    assert!(!found.is_wrong, "a guarantee is broken:\n{}", columns(SLOTS, &found.way_to_counted));
    assert_eq!(found.stuck, 0, "a slot waits forever:\n{}", columns(SLOTS, &found.way_to_stuck));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn three_slots_twice_each() {
    for give_up in 0b000..=0b111 {
        for more in [0, 1] {
            holds(Setting { more, ..setting([2; 3], give_up) });
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn three_slots_three_times_each() {
    holds(setting([3; 3], 0));
}

/// If one slot cannot give up, a lock that is granted to no slot is noticed, because that slot waits forever.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn three_times_some_may_give_up() {
    let all = [0b110, 0b101, 0b011, 0b111];
    for give_up in &all[..if is_deep() { all.len() } else { 1 }] {
        holds(setting([3; 3], *give_up));
    }
}

/// Slot 1 gives up, enters the free lock, and requests it again. From its old place it would enter before slot 0.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn a_slot_that_enters_keeps_no_place() {
    holds(setting([1, 3, 2], 0b010));
    assert_eq!(fails(Fault::KeepsItsPlace, setting([1, 3, 2], 0b010)).as_deref(), Some("PassedTwice"));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn four_slots_twice_each() {
    holds(setting(if is_deep() { [2; 4] } else { [2, 2, 1, 1] }, 0));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn four_slots_of_which_one_may_give_up() {
    holds(setting([1, 3, 2, 1], 0b0010));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn four_slots_that_may_give_up() {
    holds(setting(if is_deep() { [2, 2, 1, 1] } else { [2, 1, 1, 1] }, 0b1111));
}

#[test]
#[ignore = "takes half a minute and two gigabytes"]
fn four_slots_twice_each_in_more_ways() {
    holds(setting([2; 4], 0b0010));
}

/// Returns the end of the shortest way to a broken guarantee, and `None` if a slot only waits forever.
fn fails<const SLOTS: usize>(fault: Fault, setting: Setting<SLOTS>) -> Option<String> {
    let found = searched(Setting { fault, ..setting });
    assert!(found.is_wrong || found.stuck > 0, "{fault:?} is not caught");
    found.way_to_counted.last().map(|(_, what)| what.clone())
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn mutants_are_caught() {
    let fails = |fault, give_up| fails(fault, setting([2; 3], give_up));
    assert_eq!(fails(Fault::NoExclusion, 0).as_deref(), Some("TwoInside"));
    assert_eq!(fails(Fault::LateBatches, 0).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::FreedTooEarly, 0).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::LastBatchFirst, 0).as_deref(), Some("LaterBatchFirst"));
    assert_eq!(fails(Fault::LeastUrgentFirst, 0).as_deref(), Some("LessUrgentFirst"));
    assert_eq!(fails(Fault::ArrivesAgain, 0b010).as_deref(), Some("LaterBatchFirst"));
    // A slot waits forever, and no guarantee is broken.
    assert_eq!(fails(Fault::LostGrant, 0), None);
    let part = |all: &'static [u8]| &all[..if is_deep() { all.len() } else { 2 }];
    for &give_up in part(&[0, 0b011, 0b101, 0b110]) {
        assert_eq!(fails(Fault::NeverSeizes, give_up), None);
        assert_eq!(fails(Fault::SeizesBlindly, give_up), None);
    }
    for &give_up in part(&[0b001, 0b111, 0b011, 0b101, 0b110]) {
        assert_eq!(fails(Fault::LostAbandon, give_up), None);
    }
}
