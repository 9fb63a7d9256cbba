//! All interleavings of the steps of a few tasks.
//!
//! `cargo test --release -p lockwright-locks bpl::search -- --nocapture --include-ignored` prints the figures and the ways that `docs/bpl.md` shows.

use super::steps::{At, Contender, Memory, Outcome, Place, Rules, Version};
use crate::testing::search::{Found, Model, columns, search};
use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use std::format;
use std::string::{String, ToString};

const TASKS_MAX: usize = 3;

/// Some tasks that take one lock a few times each.
#[derive(Clone, Copy)]
struct Tasks {
    rules: Rules,
    /// One a task; less is more urgent.
    priorities: &'static [u8],
    requests: [u8; TASKS_MAX],
    /// The batch at the beginning.
    batch: u8,
    /// Who may give up, at any look, a bit a task.
    give_up: u8,
    counted: Step,
}

/// Which steps are counted.
#[derive(Clone, Copy)]
enum Step {
    /// A waiter gets in while one of an earlier batch waits.
    LaterBatchIn,
    /// Ids begin anew while somebody waits in a batch.
    RestartWhileOneWaits,
}

/// The shared words and the tasks, as small as can be: there are millions of them.
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
    /// Requests that are not done.
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

/// Plain words, which remember what was done to them last.
struct Plain {
    rules: Rules,
    words: Cell<[u8; 7]>,
    log: Option<RefCell<String>>,
}

impl Plain {
    fn new(rules: Rules, words: [u8; 7]) -> Self {
        Self { rules, words: Cell::new(words), log: None }
    }

    fn get(&self, place: Place) -> u64 {
        u64::from(self.words.get()[place as usize])
    }

    /// Writes what `new` makes of the word, and gives the word before.
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

impl Memory for Plain {
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

    /// The next request begins where the last one ended.
    fn with(&self, state: &State, task: usize, memory: &Plain, contender: Contender) -> State {
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
        let memory = Plain::new(self.rules, state.memory);
        let outcome = contender.step(&memory);
        to(self.with(state, task, &memory, contender));
        if outcome == Outcome::Waits && self.give_up >> task & 1 == 1 {
            contender.give_up(self.rules);
            to(self.with(state, task, &memory, contender));
        }
    }

    /// All are out, and nothing of them stays.
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
        let mut memory = Plain::new(self.rules, from.memory);
        memory.log = Some(RefCell::default());
        self.contender(from, task).step(&memory);
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

/// Tasks with ids of five bits: none runs over in a few requests.
fn tasks(version: Version, priorities: &'static [u8], requests: u8) -> Tasks {
    let rules = Rules { id_bits: 5, bits: 8, version };
    let requests = [requests; TASKS_MAX];
    Tasks { rules, priorities, requests, batch: 0, give_up: 0, counted: Step::LaterBatchIn }
}

/// Searches, prints what was found, and asserts exclusion.
fn searched(what: &str, tasks: Tasks) -> Found {
    let found = searched_as_it_is(what, tasks);
    assert_eq!(found.wrong, 0, "two at once");
    found
}

fn searched_as_it_is(what: &str, tasks: Tasks) -> Found {
    let begin = std::time::Instant::now();
    let found = search(&tasks);
    std::eprintln!(
        "{what}: {} states, {} with two inside, {} stuck, {} steps {}, {:.1} s",
        found.states,
        found.wrong,
        found.stuck,
        found.counted,
        match tasks.counted {
            Step::LaterBatchIn => "let a later batch in first",
            Step::RestartWhileOneWaits => "let ids begin anew while one waits",
        },
        begin.elapsed().as_secs_f64()
    );
    found
}

#[test]
fn two_inside_are_caught() {
    for give_up in [0b00, 0b01, 0b10] {
        let takes_by_store = Tasks { give_up, ..tasks(Version::TakesByStore, &[0, 1], 2) };
        assert!(searched_as_it_is("takes by a store, 2 tasks x 2", takes_by_store).wrong > 0);
    }
}

#[test]
fn as_published_a_waiter_can_be_left_for_ever() {
    let found = searched("published, 2 tasks x 2 requests", tasks(Version::Published, &[0, 1], 2));
    assert!(found.stuck > 0);
    std::eprintln!("a shortest way to where nobody gets out:\n{}", columns(2, &found.way_to_stuck));
    // With equal priorities what stays in `barrier[1]` is nobody's hindrance.
    assert_eq!(searched("published, equal priorities", tasks(Version::Published, &[1, 1], 2)).stuck, 0);
    // And the reset alone is what it takes.
    assert_eq!(searched("published, with the reset", tasks(Version::PublishedWithReset, &[0, 1], 2)).stuck, 0);
}

/// Who read the batch, found nobody and was slow takes a batch of the same number for the one it read.
#[test]
fn as_published_ids_can_begin_anew_while_one_waits() {
    let once_more =
        |version| Tasks { requests: [2, 1, 1], counted: Step::RestartWhileOneWaits, ..tasks(version, &[0, 1, 2], 1) };
    let found = searched("published, 3 tasks x 2, 1, 1", once_more(Version::PublishedWithReset));
    assert!(found.counted > 0);
    std::eprintln!("a shortest way to ids that begin anew while one waits:\n{}", columns(3, &found.way_to_counted));
    // To those that begin anew past the half only, it takes as many sections as that while one is slow.
    for batch in 12..20 {
        let near_half = Tasks { batch, ..once_more(Version::Repaired) };
        assert_eq!(searched(&format!("repaired, from batch {batch}, 3 tasks x 2, 1, 1"), near_half).counted, 0);
    }
}

#[test]
fn repaired_no_waiter_is() {
    for priorities in [&[0, 1], &[1, 1]] {
        let found = searched("repaired, 2 tasks x 4", tasks(Version::Repaired, priorities, 4));
        assert_eq!(found.stuck, 0);
    }
    for priorities in [&[0, 1, 2], &[0, 0, 1], &[0, 1, 1], &[1, 1, 1]] {
        let found = searched("repaired, 3 tasks x 1", tasks(Version::Repaired, priorities, 1));
        assert_eq!(found.stuck, 0);
    }
}

/// The bound of m - 1 sections is one for cores of about equal speed: nothing in the steps forbids to pass an earlier batch.
#[test]
fn a_later_batch_can_get_in_before_an_earlier_one() {
    let found = searched("repaired, 2 tasks x 2", tasks(Version::Repaired, &[0, 1], 2));
    assert!(found.counted > 0);
    std::eprintln!("a shortest way to a later batch that gets in first:\n{}", columns(2, &found.way_to_counted));
}

#[test]
fn three_tasks_twice() {
    let found = searched("repaired, 3 tasks x 2", tasks(Version::Repaired, &[0, 1, 2], 2));
    assert_eq!(found.stuck, 0);
    assert!(found.counted > 0);
}

/// Tens of millions of states: `cargo test --release -p lockwright-locks three_tasks_in_all_ways -- --ignored --nocapture`.
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
        let rules = Rules { id_bits: 3, bits: 5, version: Version::Repaired };
        let running_over = Tasks { rules, batch, ..tasks(Version::Repaired, &[0, 1, 2], 2) };
        assert_eq!(searched("repaired, 3 tasks x 2, 8 ids", running_over).stuck, 0);
    }
}

#[test]
fn who_gives_up_leaves_nobody_stuck() {
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

/// Twins: what who gives up has to do, left out.
#[test]
fn who_gives_up_without_cleaning_up_is_caught() {
    for version in [Version::PublishedGivingUp, Version::SilentGivingUp] {
        let gives_up = Tasks { give_up: 0b01, ..tasks(version, &[0, 1], 2) };
        let found = searched(&format!("{version:?}, 2 tasks x 2, one may give up"), gives_up);
        assert!(found.stuck > 0);
        std::eprintln!("{}", columns(2, &found.way_to_stuck));
    }
}

/// With three and two bits ids run over, and begin anew, many times.
#[test]
fn ids_that_run_over_leave_nobody_stuck() {
    for id_bits in [2, 3] {
        let rules = Rules { id_bits, bits: id_bits + 2, version: Version::Repaired };
        for batch in (1 << (id_bits - 1))..1 << id_bits {
            let running_over = Tasks { rules, batch, ..tasks(Version::Repaired, &[0, 1], 5) };
            assert_eq!(searched(&format!("{} ids from {batch}, 2 tasks x 5", 1 << id_bits), running_over).stuck, 0);
        }
    }
}
