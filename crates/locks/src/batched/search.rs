//! Every interleaving of a few slots: one at a time, nobody stuck, first batches first, the most urgent of a batch first, at most one section of
//! each other while one waits.
//!
//! Memory is sequentially consistent here; what weaker memory adds is loom's part (`cargo xtask loom`).
//!
//! `cargo test --release -p lockwright-locks batched::search -- --nocapture --include-ignored --test-threads 1` prints the figures that
//! `docs/batched.md` shows.

use super::Batched;
use super::steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};
use crate::testing::search::{self, Found, columns};
use core::cell::Cell;
use core::sync::atomic::Ordering;
use std::format;
use std::string::String;

/// What is shared, as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Shared<const SLOTS: usize> {
    taken: bool,
    arrivals: u8,
    batches: [u8; SLOTS],
    count: u8,
    /// State and priority.
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
    /// The last batch is served first.
    LastBatchFirst,
    /// The least urgent of a batch is served first.
    LeastUrgentFirst,
    /// Who gives up goes, though the lock came to it.
    LostAbandon,
    /// Who enters a free lock leaves the place behind where it gave up before.
    KeepsItsPlace,
    /// Who has its place again arrives again too.
    ArrivesAgain,
    /// Nobody that waits takes a lock that is free.
    NobodySeizes,
    /// Who takes the lock while it waits does not look who else arrived.
    SeizesBlindly,
}

/// One step's view of what is shared.
struct View<const SLOTS: usize> {
    shared: Cell<Shared<SLOTS>>,
    fault: Fault,
    at: At,
    leaves: bool,
}

impl<const SLOTS: usize> View<SLOTS> {
    fn new(shared: Shared<SLOTS>, fault: Fault, contender: Contender) -> Self {
        Self { shared: Cell::new(shared), fault, at: contender.at, leaves: contender.leaves }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Shared<SLOTS>) -> T) -> T {
        let mut shared = self.shared.get();
        let result = change(&mut shared);
        self.shared.set(shared);
        result
    }

    /// Which batch is served.
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
    fn is_taken(&self) -> bool {
        self.shared.get().taken || (self.fault, self.at) == (Fault::NobodySeizes, At::Poll)
    }
    fn take(&self) -> bool {
        self.change(|shared| !core::mem::replace(&mut shared.taken, true)) || self.fault == Fault::NoTake
    }
    fn free(&self) {
        self.change(|shared| shared.taken = false);
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
            assert!(batch != 0 || self.fault == Fault::NoTake, "a batch has members");
            if let Some(last) = shared.batches.get_mut(usize::from(shared.count)) {
                *last = batch as u8;
                shared.count += 1;
            }
        });
    }
    fn front(&self) -> Option<u64> {
        let batch = self.shared.get().batches[self.first()];
        // Two at once (NoTake) can leave an empty one.
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
enum Task {
    Idle,
    Asks(Contender),
    Inside,
    Leaves(Contender),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State<const SLOTS: usize> {
    shared: Shared<SLOTS>,
    tasks: [Task; SLOTS],
    /// Requests to come.
    left: [u8; SLOTS],
    /// Of one that is queued: how many sections of each other went on meanwhile.
    passed: [[u8; SLOTS]; SLOTS],
    /// Of one that is queued: whose arrival came after its batch was closed.
    later: [u8; SLOTS],
    /// Of one that is queued: whether its batch is closed.
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
    LessUrgentFirst,
    PassedTwice,
}

#[derive(Clone, Copy)]
struct Setting<const SLOTS: usize> {
    requests: [u8; SLOTS],
    /// Of the first requests; of each later one by so much more, modulo 4.
    priorities: [u32; SLOTS],
    more: u32,
    /// Who may give up, as bits.
    give_up: u8,
    fault: Fault,
}

impl<const SLOTS: usize> Setting<SLOTS> {
    /// Where it is another one for each request, who has its place again has another than it gave up with.
    fn priority(&self, task: usize, left: u8) -> u32 {
        (self.priorities[task] + self.more * u32::from(self.requests[task] - left)) % 4
    }
}

impl<const SLOTS: usize> State<SLOTS> {
    fn new(setting: &Setting<SLOTS>) -> Self {
        let places = [(OUT as u8, 0); SLOTS];
        Self {
            shared: Shared { taken: false, arrivals: 0, batches: [0; SLOTS], count: 0, places },
            tasks: [Task::Idle; SLOTS],
            left: setting.requests,
            passed: [[0; SLOTS]; SLOTS],
            later: [0; SLOTS],
            closed: 0,
            queued: 0,
            wrong: None,
        }
    }

    /// Nobody has anything to do, and the lock is free: if not, it came to one that had gone.
    fn is_done(&self) -> bool {
        let idle = self.tasks.iter().all(|&task| task == Task::Idle) && self.left.iter().all(|&left| left == 0);
        idle && !self.shared.taken
    }

    /// The next step of `task`; `None` where it has nothing to do.
    fn step(&self, setting: &Setting<SLOTS>, task: usize) -> Option<Self> {
        let mut next = self.clone();
        match self.tasks[task] {
            Task::Idle if self.left[task] == 0 => return None,
            Task::Idle => {
                let priority = setting.priority(task, self.left[task]);
                next.left[task] -= 1;
                next.tasks[task] = Task::Asks(Contender::asks(task, priority, At::Test));
            }
            Task::Inside => next.tasks[task] = Task::Leaves(Contender::gives_back()),
            Task::Asks(contender) | Task::Leaves(contender) => {
                let mut contender = contender;
                let view = View::new(self.shared, setting.fault, contender);
                let outcome = contender.step(&view);
                next.shared = view.shared.get();
                next.tasks[task] = if contender.leaves { Task::Leaves(contender) } else { Task::Asks(contender) };
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

    /// The same, where a waiter decides to give up.
    fn gives_up(&self, setting: &Setting<SLOTS>, task: usize) -> Option<Self> {
        let mut next = self.clone();
        let Task::Asks(contender) = &mut next.tasks[task] else { return None };
        if contender.at != At::Wait || setting.give_up & 1 << task == 0 {
            return None;
        }
        contender.at = At::Abandon;
        Some(next)
    }

    /// Keeps the books of the promise, after a step from one place to another.
    fn watch(&mut self, task: usize, from: At, to: At) {
        let bit = 1 << task;
        match from {
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
            // Who has the lock closes the batches, when it has seen that nobody arrived, or takes who did.
            At::Collect if self.shared.arrivals == 0 => self.closed |= self.queued,
            At::Gather => self.closed |= self.queued,
            At::Choose => {
                if let At::Grant(best) = to {
                    self.chooses(usize::from(best));
                }
            }
            _ => {}
        }
        // Who was taken out of the queue does not wait any more, whether it knows or not.
        for slot in 0..SLOTS {
            if u32::from(self.shared.places[slot].0) == OUT {
                self.queued &= !(1 << slot);
            }
        }
    }

    /// Nobody who waits in the batch of `best` is more urgent. Of one that gave up that is not asked: it does not enter.
    fn chooses(&mut self, best: usize) {
        let urgency = |slot: usize| match self.tasks[slot] {
            Task::Asks(contender) if u32::from(self.shared.places[slot].0) == WAITING => Some(contender.priority),
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
        // Of one that is not queued, nothing is kept.
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
        // What is wrong stays so: its future says nothing.
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
            (Task::Asks(contender) | Task::Leaves(contender), None) => format!("{:?}", contender.at),
            (other, None) => format!("{other:?}"),
        }
    }
}

/// So many requests of each slot, of which those in `give_up` may give up at any look.
fn setting<const SLOTS: usize>(requests: [u8; SLOTS], give_up: u8) -> Setting<SLOTS> {
    let mut priorities = [3; SLOTS];
    (priorities[0], priorities[1]) = (1, 2);
    Setting { requests, priorities, more: 0, give_up, fault: Fault::None }
}

fn searched<const SLOTS: usize>(setting: Setting<SLOTS>) -> Found {
    let begin = std::time::Instant::now();
    let found = search::search(&setting);
    std::eprintln!(
        "requests {:?}, each by {} more urgent, {:0SLOTS$b} may give up, {:?}: {} states, {} wrong, {} stuck, {:.1} s",
        setting.requests,
        setting.more,
        setting.give_up,
        setting.fault,
        found.states,
        found.wrong,
        found.stuck,
        begin.elapsed().as_secs_f64()
    );
    found
}

fn holds<const SLOTS: usize>(setting: Setting<SLOTS>) {
    let found = searched(setting);
    assert_eq!(found.wrong, 0, "the promise is broken:\n{}", columns(SLOTS, &found.way_to_counted));
    assert_eq!(found.stuck, 0, "somebody waits for ever:\n{}", columns(SLOTS, &found.way_to_stuck));
}

#[test]
fn three_slots_twice_each() {
    for give_up in 0b000..=0b111 {
        for more in [0, 1] {
            holds(Setting { more, ..setting([2; 3], give_up) });
        }
    }
}

#[test]
fn three_slots_three_times_each() {
    holds(setting([3; 3], 0));
}

/// Where one cannot give up, a lock that comes to nobody is noticed: it waits for ever.
#[test]
fn three_times_all_but_one_may_give_up() {
    holds(setting([3; 3], 0b110));
}

#[test]
fn three_times_all_but_another_may_give_up() {
    holds(setting([3; 3], 0b101));
}

#[test]
fn three_times_all_but_the_most_urgent_may_give_up() {
    holds(setting([3; 3], 0b011));
}

#[test]
fn three_times_all_may_give_up() {
    holds(setting([3; 3], 0b111));
}

/// Slot 1 gives up, enters while the lock is free, and asks again: it would have come in from its old place before slot 0.
#[test]
fn who_enters_has_no_place_left() {
    holds(setting([1, 3, 2], 0b010));
    assert_eq!(fails(Fault::KeepsItsPlace, setting([1, 3, 2], 0b010)).as_deref(), Some("PassedTwice"));
}

#[test]
fn four_slots_twice_each() {
    holds(setting([2; 4], 0));
}

#[test]
fn four_slots_of_which_one_may_give_up() {
    holds(setting([1, 3, 2, 1], 0b0010));
}

#[test]
fn four_slots_that_may_give_up() {
    holds(setting([2, 2, 1, 1], 0b1111));
}

#[test]
#[ignore = "takes half a minute and two gigabytes"]
fn four_slots_twice_each_in_more_ways() {
    holds(setting([2; 4], 0b0010));
}

/// What the shortest way to a broken promise ends in; `None` where only an end is missing.
fn fails<const SLOTS: usize>(fault: Fault, setting: Setting<SLOTS>) -> Option<String> {
    let found = searched(Setting { fault, ..setting });
    assert!(found.wrong > 0 || found.stuck > 0, "{fault:?} goes unnoticed");
    found.way_to_counted.last().map(|(_, what)| what.clone())
}

#[test]
fn wrong_locks_are_caught() {
    let fails = |fault, give_up| fails(fault, setting([2; 3], give_up));
    assert_eq!(fails(Fault::NoTake, 0).as_deref(), Some("TwoInside"));
    assert_eq!(fails(Fault::LateBatches, 0).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::FreedTooEarly, 0).as_deref(), Some("PassedTwice"));
    assert_eq!(fails(Fault::LastBatchFirst, 0).as_deref(), Some("LaterBatchFirst"));
    assert_eq!(fails(Fault::LeastUrgentFirst, 0).as_deref(), Some("LessUrgentFirst"));
    assert_eq!(fails(Fault::ArrivesAgain, 0b010).as_deref(), Some("LaterBatchFirst"));
    // Somebody waits for ever, and that is all.
    assert_eq!(fails(Fault::LostGrant, 0), None);
    for give_up in [0, 0b011, 0b101, 0b110] {
        assert_eq!(fails(Fault::NobodySeizes, give_up), None);
        assert_eq!(fails(Fault::SeizesBlindly, give_up), None);
    }
    for give_up in [0b001, 0b011, 0b101, 0b110, 0b111] {
        assert_eq!(fails(Fault::LostAbandon, give_up), None);
    }
}

// The memory of the lock, held against that of the search.

impl<const SLOTS: usize> Batched<SLOTS> {
    fn shared(&self) -> Shared<SLOTS> {
        let count = self.queue.count.load(Ordering::Relaxed) as usize;
        let first = self.queue.first.load(Ordering::Relaxed) as usize;
        let mut batches = [0; SLOTS];
        for (index, batch) in batches[..count].iter_mut().enumerate() {
            *batch = self.queue.ring[(first + index) % SLOTS].load(Ordering::Relaxed) as u8;
        }
        Shared {
            taken: self.taken.load(Ordering::Relaxed) != 0,
            arrivals: self.queue.arrivals.load(Ordering::Relaxed) as u8,
            batches,
            count: count as u8,
            places: core::array::from_fn(|slot| {
                let place = &self.places[slot];
                (place.state.load(Ordering::Relaxed) as u8, place.priority.load(Ordering::Relaxed) as u8)
            }),
        }
    }

    fn in_state(shared: Shared<SLOTS>) -> Self {
        let lock = Self::new();
        lock.taken.store(shared.taken.into(), Ordering::Relaxed);
        lock.queue.arrivals.store(shared.arrivals.into(), Ordering::Relaxed);
        lock.queue.count.store(shared.count.into(), Ordering::Relaxed);
        for slot in 0..SLOTS {
            lock.queue.ring[slot].store(shared.batches[slot].into(), Ordering::Relaxed);
            lock.places[slot].state.store(shared.places[slot].0.into(), Ordering::Relaxed);
            lock.places[slot].priority.store(shared.places[slot].1.into(), Ordering::Relaxed);
        }
        lock
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Difference {
    /// A step over the atomics does another thing.
    Step,
    /// What is written out does.
    QuickWay,
}

/// What the lock does otherwise than the steps over the memory of the search, in a walk of random steps.
fn difference<const SLOTS: usize>(setting: &Setting<SLOTS>, seed: u64) -> Option<Difference> {
    let mut random = fastrand::Rng::with_seed(seed);
    let lock = Batched::<SLOTS>::new();
    let mut state = State::new(setting);
    while !state.is_done() {
        let task = random.usize(..SLOTS);
        if random.u8(..) < 32
            && let Some(next) = state.gives_up(setting, task)
        {
            state = next;
        }
        if differs_quickly(setting.fault, &state, task) {
            return Some(Difference::QuickWay);
        }
        let Some(next) = state.step(setting, task) else { continue };
        if let Task::Asks(mut contender) | Task::Leaves(mut contender) = state.tasks[task] {
            let became = match contender.step(&lock) {
                Outcome::Holds => Task::Inside,
                Outcome::Gone => Task::Idle,
                Outcome::Steps | Outcome::Spins if contender.leaves => Task::Leaves(contender),
                Outcome::Steps | Outcome::Spins => Task::Asks(contender),
            };
            if became != next.tasks[task] || lock.shared() != next.shared {
                return Some(Difference::Step);
            }
        }
        state = next;
    }
    None
}

/// Whether what is written out does another thing than the steps, where `task` could ask or leave now.
fn differs_quickly<const SLOTS: usize>(fault: Fault, state: &State<SLOTS>, task: usize) -> bool {
    let lock = Batched::in_state(state.shared);
    let (quick, mut contender) = match state.tasks[task] {
        Task::Idle => (lock.take_if_free(task), Contender::asks(task, 0, At::Test)),
        Task::Inside => (lock.free_if_nobody_waits(), Contender::gives_back()),
        Task::Asks(_) | Task::Leaves(_) => return false,
    };
    let mut shared = state.shared;
    let came_of_it = loop {
        // Here the other ways begin, which the lock executes step by step.
        if matches!(contender.at, At::Resume | At::Gather | At::Grant(_)) {
            break None;
        }
        let view = View::new(shared, fault, contender);
        let outcome = contender.step(&view);
        shared = view.shared.get();
        if outcome != Outcome::Steps {
            break Some(shared);
        }
    };
    quick != came_of_it.is_some() || lock.shared() != came_of_it.unwrap_or(state.shared)
}

#[test]
fn the_lock_does_what_is_searched() {
    for seed in 0..300 {
        assert_eq!(difference(&setting([3; 3], 0b111), seed), None, "seed {seed}");
        assert_eq!(difference(&Setting { more: 1, ..setting([20; 5], 0b01110) }, seed), None, "seed {seed}");
        assert_eq!(difference(&setting([20; 8], 0), seed), None, "seed {seed}");
    }
}

#[test]
fn another_memory_is_caught() {
    let differs = |fault| {
        let found = (0..100).find_map(|seed| difference(&Setting { fault, ..setting([20; 5], 0b01110) }, seed));
        found.unwrap_or_else(|| panic!("{fault:?} goes unnoticed"))
    };
    assert_eq!(differs(Fault::LastBatchFirst), Difference::Step);
    assert_eq!(differs(Fault::LeastUrgentFirst), Difference::Step);
    assert_eq!(differs(Fault::LostAbandon), Difference::Step);
    assert_eq!(differs(Fault::KeepsItsPlace), Difference::QuickWay);
    // One that leaves while another is in a batch.
    let mut state = State::new(&setting([1; 2], 0));
    state.tasks[0] = Task::Inside;
    (state.shared.taken, state.shared.count) = (true, 1);
    (state.shared.batches[0], state.shared.places[1]) = (0b10, (WAITING as u8, 0));
    assert!(differs_quickly(Fault::FreedTooEarly, &state, 0));
    assert!(!differs_quickly(Fault::None, &state, 0));
}
