//! The search of all interleavings of the steps of a few tasks.
//!
//! The command
//! `cargo test --release -p lockwright-locks bpl::search -- --nocapture --include-ignored`
//! prints the figures and the schedules that `docs/bpl.md` shows.

use super::steps::{At, Contender, Memory, Outcome, Place, Rules};
use crate::testing::search::{Found, Model, columns, search};
use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use std::format;
use std::string::{String, ToString};

const TASKS_MAX: usize = 3;

/// Tasks that make a few requests each to one lock.
#[derive(Clone, Copy)]
struct Tasks {
    rules: Rules,
    version: Version,
    /// The priority of each task. Less is more urgent.
    priorities: &'static [u8],
    requests: [u8; TASKS_MAX],
    /// The batch at the start.
    batch: u8,
    /// The tasks that may give up at any check, a bit each.
    give_up: u8,
    counted: Step,
}

/// The steps that are counted.
#[derive(Clone, Copy)]
enum Step {
    /// A waiter acquires the lock while a waiter of an earlier batch waits.
    LaterBatchIn,
    /// The ids restart while a request waits in a batch.
    RestartWhileOneWaits,
}

/// The version of the algorithm: the repaired one of this crate, the published one, or a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Repaired,
    /// The published version leaves the final stage for stage 0 without a reset of `barrier[1]`.
    ///
    /// It resets the batch at every acquire that finds no waiter.
    Published,
    /// The published version with the reset of `barrier[1]` on that exit.
    PublishedWithReset,
    /// A contender that gives up only resets the barriers, as published.
    PublishedGivingUp,
    /// A contender that gives up does not reset the barriers.
    SilentGivingUp,
    /// A contender that found the lock free at its last check acquires it by a store.
    LocksByStore,
}

impl Version {
    /// Executes one step. Each version differs from the repaired one in a few steps.
    fn step(self, contender: &mut Contender, memory: &impl Memory) -> Outcome {
        let before = *contender;
        if (self, before.at) == (Self::LocksByStore, At::FinalTry) {
            memory.store(Place::Status, 1);
            contender.at = At::Uncount;
            return Outcome::Goes;
        }
        let outcome = contender.step(memory);
        match (self, before.at, contender.at) {
            (Self::Published | Self::PublishedWithReset, At::ReadWaiters, At::TryStatus) => {
                (contender.at, contender.seen) = (At::Restart, before.seen);
            }
            (Self::Published, At::FinalLowest, At::ResetOnExit) => contender.at = At::Enter0,
            (Self::SilentGivingUp, At::Withdraw1, _) => contender.at = At::Retire,
            (Self::PublishedGivingUp, At::WithdrawLowest, _) => {
                (contender.at, contender.batch) = (At::Outside, 0);
                return Outcome::Outside;
            }
            _ => {}
        }
        outcome
    }

    fn give_up(self, contender: &mut Contender) {
        contender.give_up();
        if self == Self::PublishedGivingUp {
            contender.at = At::WithdrawUrgent;
        }
    }
}

/// The shared words and the tasks, kept small because there are millions of states.
#[derive(Clone, PartialEq, Eq)]
struct State {
    memory: [u8; 7],
    tasks: [Task; TASKS_MAX],
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Task {
    at: At,
    batch: u8,
    seen: u8,
    /// The requests that are not finished.
    left: u8,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut bytes = [0; 7 + 4 * TASKS_MAX];
        bytes[..7].copy_from_slice(&self.memory);
        for (bytes, task) in bytes[7..].chunks_mut(4).zip(&self.tasks) {
            bytes.copy_from_slice(&[task.at as u8, task.batch, task.seen, task.left]);
        }
        hasher.write(&bytes);
    }
}

/// The shared words as numbers, with a description of the last access.
struct Numbers {
    rules: Rules,
    words: Cell<[u8; 7]>,
    log: Option<RefCell<String>>,
}

impl Numbers {
    fn new(rules: Rules, words: [u8; 7]) -> Self {
        Self { rules, words: Cell::new(words), log: None }
    }

    fn get(&self, place: Place) -> u64 {
        u64::from(self.words.get()[place as usize])
    }

    /// Writes the result of `new` for the word, if there is one. Returns the former word.
    fn update(&self, place: Place, new: impl FnOnce(u64) -> Option<u64>) -> u64 {
        let old = self.get(place);
        let new = new(old).map(|new| new & self.rules.nobody());
        if let Some(new) = new {
            let mut words = self.words.get();
            words[place as usize] = new as u8;
            self.words.set(words);
        }
        if let Some(log) = &self.log {
            let mut log = log.borrow_mut();
            assert!(log.is_empty(), "a step is one access");
            *log = match new {
                None => format!("{} is {}", name(place), self.word(place, old)),
                Some(new) => format!("{} {} -> {}", name(place), self.word(place, old), self.word(place, new)),
            };
        }
        old
    }

    fn word(&self, place: Place, word: u64) -> String {
        match place {
            Place::Lowest | Place::Urgent if word == self.rules.nobody() => "-".to_string(),
            Place::Settling0 | Place::Settling1 => format!("{word:03b}"),
            Place::Batch => format!("{}+{}", self.rules.id(word), word >> self.rules.id_bits),
            _ => word.to_string(),
        }
    }
}

fn name(place: Place) -> &'static str {
    match place {
        Place::Waiters => "waiters",
        Place::Batch => "batch",
        Place::Lowest => "barrier[0]",
        Place::Urgent => "barrier[1]",
        Place::Settling0 => "settling[0]",
        Place::Settling1 => "settling[1]",
        Place::Status => "status",
    }
}

impl Memory for Numbers {
    fn rules(&self) -> Rules {
        self.rules
    }
    fn load(&self, place: Place) -> u64 {
        self.update(place, |_| None)
    }
    fn store(&self, place: Place, value: u64) {
        self.update(place, |_| Some(value));
    }
    fn compare_exchange(&self, place: Place, current: u64, new: u64) -> Result<u64, u64> {
        let old = self.update(place, |old| (old == current).then_some(new));
        if old == current { Ok(old) } else { Err(old) }
    }
    fn fetch_add(&self, place: Place, value: u64) -> u64 {
        self.update(place, |old| Some(old.wrapping_add(value)))
    }
    fn fetch_sub(&self, place: Place, value: u64) -> u64 {
        self.update(place, |old| Some(old.wrapping_sub(value)))
    }
    fn fetch_or(&self, place: Place, value: u64) -> u64 {
        self.update(place, |old| Some(old | value))
    }
    fn fetch_and(&self, place: Place, value: u64) -> u64 {
        self.update(place, |old| Some(old & value))
    }
}

impl Tasks {
    fn contender(&self, state: &State, task: usize) -> Contender {
        let Task { at, batch, seen, .. } = state.tasks[task];
        Contender { at, bit: 1 << task, priority: self.priorities[task].into(), batch: batch.into(), seen: seen.into() }
    }

    /// Returns the state after a step. The next request begins where the last one ended.
    fn with(&self, state: &State, task: usize, memory: &Numbers, contender: Contender) -> State {
        let mut state = state.clone();
        state.memory = memory.words.get();
        let it = &mut state.tasks[task];
        (it.at, it.batch, it.seen) = (contender.at, contender.batch as u8, contender.seen as u8);
        if it.at == At::Outside {
            it.left -= 1;
            if it.left > 0 {
                it.at = At::ReadBatch;
            }
        }
        state
    }
}

fn waits(task: &Task) -> bool {
    (At::Enter0..=At::FinalTry).contains(&task.at)
}

fn holds(task: &Task) -> bool {
    (At::Uncount..=At::Free).contains(&task.at)
}

impl Model for Tasks {
    type State = State;

    fn start(&self) -> State {
        let nobody = self.rules.nobody() as u8;
        let mut memory = [0; 7];
        memory[Place::Batch as usize] = self.batch;
        (memory[Place::Lowest as usize], memory[Place::Urgent as usize]) = (nobody, nobody);
        let mut tasks = [Task { at: At::Outside, batch: 0, seen: 0, left: 0 }; TASKS_MAX];
        for (task, requests) in tasks[..self.tasks()].iter_mut().zip(self.requests) {
            (task.at, task.left) = (At::ReadBatch, requests);
        }
        State { memory, tasks }
    }

    fn tasks(&self) -> usize {
        self.priorities.len()
    }

    fn steps(&self, state: &State, task: usize, to: &mut dyn FnMut(State)) {
        let mut contender = self.contender(state, task);
        if contender.at == At::Outside {
            return;
        }
        let memory = Numbers::new(self.rules, state.memory);
        let outcome = self.version.step(&mut contender, &memory);
        to(self.with(state, task, &memory, contender));
        if outcome == Outcome::Waits && self.give_up >> task & 1 == 1 {
            self.version.give_up(&mut contender);
            to(self.with(state, task, &memory, contender));
        }
    }

    /// Whether all tasks are outside and have left nothing behind.
    fn is_done(&self, state: &State) -> bool {
        let stays = [Place::Status, Place::Waiters, Place::Settling0, Place::Settling1];
        state.tasks.iter().all(|task| task.at == At::Outside)
            && stays.iter().all(|&place| state.memory[place as usize] == 0)
    }

    fn is_wrong(&self, state: &State) -> bool {
        state.tasks.iter().filter(|task| holds(task)).count() > 1
    }

    fn counts(&self, from: &State, task: usize, to: &State) -> bool {
        let mut waiting = from.tasks.iter().filter(|task| waits(task));
        match self.counted {
            Step::LaterBatchIn => {
                let mine = from.tasks[task].batch.into();
                (from.tasks[task].at, to.tasks[task].at) == (At::FinalTry, At::Uncount)
                    && waiting.any(|other| self.rules.is_earlier(other.batch.into(), mine))
            }
            Step::RestartWhileOneWaits => {
                from.tasks[task].at == At::Restart && from.memory != to.memory && waiting.next().is_some()
            }
        }
    }

    fn describe(&self, from: &State, task: usize, to: &State) -> String {
        let mut memory = Numbers::new(self.rules, from.memory);
        memory.log = Some(RefCell::default());
        self.version.step(&mut self.contender(from, task), &memory);
        let log = memory.log.take().expect("it was just set").into_inner();
        let after = match (from.tasks[task].at, to.tasks[task].at) {
            (_, At::Uncount) => ": in",
            (At::TryStatus, At::Inside) => ": in",
            (At::Free, _) => ": out",
            (At::FinalLowest, At::Enter0) => ": back to stage 0, barrier[1] stays",
            (_, At::ResetOnExit | At::Leave1) => ": back to stage 0",
            _ => "",
        };
        format!("{log}{after}")
    }
}

/// Tasks with ids of five bits, which do not wrap around in a few requests.
fn tasks(version: Version, priorities: &'static [u8], requests: u8) -> Tasks {
    let rules = Rules { id_bits: 5, bits: 8 };
    let requests = [requests; TASKS_MAX];
    Tasks { rules, version, priorities, requests, batch: 0, give_up: 0, counted: Step::LaterBatchIn }
}

/// Searches, prints the result, and asserts exclusion.
fn searched(what: &str, tasks: Tasks) -> Found {
    let found = searched_without_check(what, tasks);
    assert!(!found.is_wrong, "two tasks are inside");
    found
}

fn searched_without_check(what: &str, tasks: Tasks) -> Found {
    let begin = std::time::Instant::now();
    let found = search(&tasks);
    std::eprintln!(
        "{what}: {} states, two inside: {}, {} stuck, {} steps {}, {:.1} s",
        found.states,
        found.is_wrong,
        found.stuck,
        found.counted,
        match tasks.counted {
            Step::LaterBatchIn => "admit a later batch first",
            Step::RestartWhileOneWaits => "restart the ids while a request waits",
        },
        begin.elapsed().as_secs_f64()
    );
    found
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn two_tasks_inside_are_caught() {
    for give_up in [0b00, 0b01, 0b10] {
        let locks_by_store = Tasks { give_up, ..tasks(Version::LocksByStore, &[0, 1], 2) };
        assert!(searched_without_check("locks by a store, 2 tasks x 2", locks_by_store).is_wrong);
    }
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn a_published_waiter_can_wait_forever() {
    let found = searched("published, 2 tasks x 2 requests", tasks(Version::Published, &[0, 1], 2));
    assert!(found.stuck > 0);
    std::eprintln!("a shortest way to a state without exit:\n{}", columns(2, &found.way_to_stuck));
    // With equal priorities the value that stays in `barrier[1]` does no harm.
    assert_eq!(searched("published, equal priorities", tasks(Version::Published, &[1, 1], 2)).stuck, 0);
    // The reset alone repairs it.
    assert_eq!(searched("published, with the reset", tasks(Version::PublishedWithReset, &[0, 1], 2)).stuck, 0);
}

/// A slow task that read the batch and found no waiter mistakes a batch of the same number for the one that it read.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn published_ids_can_restart_while_one_waits() {
    let twice_once_once =
        |version| Tasks { requests: [2, 1, 1], counted: Step::RestartWhileOneWaits, ..tasks(version, &[0, 1, 2], 1) };
    let found = searched("published, 3 tasks x 2, 1, 1", twice_once_once(Version::PublishedWithReset));
    assert!(found.counted > 0);
    std::eprintln!("a shortest way to ids that restart while a request waits:\n{}", columns(3, &found.way_to_counted));
    // Ids that restart only past the half would need that many sections during one slow step.
    for batch in 12..20 {
        let near_half = Tasks { batch, ..twice_once_once(Version::Repaired) };
        assert_eq!(searched(&format!("repaired, from batch {batch}, 3 tasks x 2, 1, 1"), near_half).counted, 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn no_repaired_waiter_waits_forever() {
    for priorities in [&[0, 1], &[1, 1]] {
        let found = searched("repaired, 2 tasks x 4", tasks(Version::Repaired, priorities, 4));
        assert_eq!(found.stuck, 0);
    }
    for priorities in [&[0, 1, 2], &[0, 0, 1], &[0, 1, 1], &[1, 1, 1]] {
        let found = searched("repaired, 3 tasks x 1", tasks(Version::Repaired, priorities, 1));
        assert_eq!(found.stuck, 0);
    }
}

/// The bound of m − 1 sections assumes cores of about equal speed: no step prevents a waiter from passing an earlier
/// batch.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn a_later_batch_can_pass_an_earlier_one() {
    let found = searched("repaired, 2 tasks x 2", tasks(Version::Repaired, &[0, 1], 2));
    assert!(found.counted > 0);
    std::eprintln!("a shortest way to a later batch that is served first:\n{}", columns(2, &found.way_to_counted));
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn three_tasks_twice() {
    let found = searched("repaired, 3 tasks x 2", tasks(Version::Repaired, &[0, 1, 2], 2));
    assert_eq!(found.stuck, 0);
    assert!(found.counted > 0);
}

/// This search has tens of millions of states:
/// `cargo test --release -p lockwright-locks three_tasks_in_all_ways -- --ignored --nocapture`.
#[test]
#[ignore = "takes three minutes and some gigabytes"]
fn three_tasks_in_all_ways() {
    assert!(searched("published, 3 tasks x 2", tasks(Version::Published, &[0, 1, 2], 2)).stuck > 0);
    let with_reset = tasks(Version::PublishedWithReset, &[0, 1, 2], 2);
    assert_eq!(searched("published, with the reset, 3 tasks x 2", with_reset).stuck, 0);
    for priorities in [&[0, 0, 1], &[0, 1, 1], &[1, 1, 1]] {
        let found = searched("repaired, 3 tasks x 2, some equal", tasks(Version::Repaired, priorities, 2));
        assert_eq!(found.stuck, 0);
    }
    for give_up in [0b001, 0b010, 0b100] {
        let one_gives_up = Tasks { give_up, ..tasks(Version::Repaired, &[0, 1, 2], 2) };
        assert_eq!(searched("repaired, 3 tasks x 2, one may give up", one_gives_up).stuck, 0);
    }
    for batch in 4..8 {
        let rules = Rules { id_bits: 3, bits: 5 };
        let wrapping = Tasks { rules, batch, ..tasks(Version::Repaired, &[0, 1, 2], 2) };
        assert_eq!(searched("repaired, 3 tasks x 2, 8 ids", wrapping).stuck, 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn giving_up_leaves_no_waiter_stuck() {
    for give_up in [0b01, 0b10] {
        for priorities in [&[0, 1], &[1, 1]] {
            let one_gives_up = Tasks { give_up, ..tasks(Version::Repaired, priorities, 3) };
            assert_eq!(searched("repaired, 2 tasks x 3, one may give up", one_gives_up).stuck, 0);
        }
    }
    for give_up in [0b001, 0b010, 0b100, 0b011, 0b101, 0b110] {
        let some_give_up = Tasks { give_up, ..tasks(Version::Repaired, &[0, 1, 2], 1) };
        assert_eq!(searched("repaired, 3 tasks x 1, some may give up", some_give_up).stuck, 0);
    }
}

/// The mutants omit a part of giving up.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn giving_up_without_cleanup_is_caught() {
    for version in [Version::PublishedGivingUp, Version::SilentGivingUp] {
        let gives_up = Tasks { give_up: 0b01, ..tasks(version, &[0, 1], 2) };
        let found = searched(&format!("{version:?}, 2 tasks x 2, one may give up"), gives_up);
        assert!(found.stuck > 0);
        std::eprintln!("{}", columns(2, &found.way_to_stuck));
    }
}

/// Ids of two and three bits wrap around and restart many times.
#[test]
#[cfg_attr(miri, ignore = "executes safe code on plain numbers")]
fn ids_that_wrap_around_leave_no_waiter_stuck() {
    for id_bits in [2, 3] {
        let rules = Rules { id_bits, bits: id_bits + 2 };
        for batch in (1 << (id_bits - 1))..1 << id_bits {
            let wrapping = Tasks { rules, batch, ..tasks(Version::Repaired, &[0, 1], 5) };
            assert_eq!(searched(&format!("{} ids from {batch}, 2 tasks x 5", 1 << id_bits), wrapping).stuck, 0);
        }
    }
}
