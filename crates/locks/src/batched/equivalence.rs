//! The lock and the search execute the same steps: random walks compare the lock with the memory of the search.

use super::Batched;
use super::search::{Fault, Setting, Shared, State, Task, View, setting};
use super::steps::{At, Contender, Outcome, WAITING};
use core::sync::atomic::Ordering;

impl<const SLOTS: usize> Batched<SLOTS> {
    fn shared(&self) -> Shared<SLOTS> {
        let count = self.queue.count.load(Ordering::Relaxed) as usize;
        let first = self.queue.first.load(Ordering::Relaxed) as usize;
        let mut batches = [0; SLOTS];
        for (index, batch) in batches[..count].iter_mut().enumerate() {
            *batch = self.queue.ring[(first + index) % SLOTS].load(Ordering::Relaxed) as u8;
        }
        Shared {
            locked: self.locked.load(Ordering::Relaxed) != 0,
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
        lock.locked.store(shared.locked.into(), Ordering::Relaxed);
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

/// A difference between the lock and the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Difference {
    /// A step on the atomics has another effect.
    Step,
    /// The straight-line code has another effect.
    StraightLine,
}

/// Returns the first difference in a walk of random steps, if there is one.
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
        if differs_in_straight_line(setting.fault, &state, task) {
            return Some(Difference::StraightLine);
        }
        let Some(next) = state.step(setting, task) else { continue };
        if let Task::Requests(mut contender) | Task::Leaves(mut contender) = state.tasks[task] {
            let became = match contender.step(&lock) {
                Outcome::Holds => Task::Inside,
                Outcome::Gone => Task::Idle,
                Outcome::Steps | Outcome::Spins if contender.leaves => Task::Leaves(contender),
                Outcome::Steps | Outcome::Spins => Task::Requests(contender),
            };
            if became != next.tasks[task] || lock.shared() != next.shared {
                return Some(Difference::Step);
            }
        }
        state = next;
    }
    None
}

/// Whether the straight-line code and the steps differ, if `task` could request or release now.
fn differs_in_straight_line<const SLOTS: usize>(fault: Fault, state: &State<SLOTS>, task: usize) -> bool {
    let lock = Batched::in_state(state.shared);
    let (straight, mut contender) = match state.tasks[task] {
        Task::Idle => (lock.lock_if_free(task), Contender::requests(task, 0, At::Test)),
        Task::Inside => (lock.unlock_if_no_slot_waits(), Contender::releases()),
        Task::Requests(_) | Task::Leaves(_) => return false,
    };
    let mut shared = state.shared;
    let stepped = loop {
        // From these steps on, the lock executes step by step.
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
    straight != stepped.is_some() || lock.shared() != stepped.unwrap_or(state.shared)
}

#[test]
fn the_lock_executes_the_searched_steps() {
    let (seeds, requests) = if cfg!(miri) { (1, 2) } else { (300, 20) };
    for seed in 0..seeds {
        assert_eq!(difference(&setting([3; 3], 0b111), seed), None, "seed {seed}");
        assert_eq!(difference(&Setting { more: 1, ..setting([requests; 5], 0b01110) }, seed), None, "seed {seed}");
        assert_eq!(difference(&setting([requests; 8], 0), seed), None, "seed {seed}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many walks")]
fn mutants_of_the_memory_are_caught() {
    let differs = |fault| {
        let found = (0..100).find_map(|seed| difference(&Setting { fault, ..setting([20; 5], 0b01110) }, seed));
        found.unwrap_or_else(|| panic!("{fault:?} is not caught"))
    };
    assert_eq!(differs(Fault::LastBatchFirst), Difference::Step);
    assert_eq!(differs(Fault::LeastUrgentFirst), Difference::Step);
    assert_eq!(differs(Fault::LostAbandon), Difference::Step);
    assert_eq!(differs(Fault::KeepsItsPlace), Difference::StraightLine);
    // A slot releases while another one is in a batch.
    let mut state = State::new(&setting([1; 2], 0));
    state.tasks[0] = Task::Inside;
    (state.shared.locked, state.shared.count) = (true, 1);
    (state.shared.batches[0], state.shared.places[1]) = (0b10, (WAITING as u8, 0));
    assert!(differs_in_straight_line(Fault::FreedTooEarly, &state, 0));
    assert!(!differs_in_straight_line(Fault::None, &state, 0));
}
