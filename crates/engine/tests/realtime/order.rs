//! The order in which waiting tasks acquire a resource.
//!
//! For each wait, the tests count whether another task requests the resource later and owns it earlier: it overtakes.
//! For each change of owners, they check whether a more urgent task had requested in time. Both are compared with the
//! protocol's promise, which must hold for each wait.
//!
//! The order of requests is that of their decisions ([`lockwright_engine::Outcome::turns`]). A machine decides under
//! its guard. Other locks decide in an atomic operation, and a request has a number before and after it: of two
//! requests whose operations overlap, either may be the earlier one, and they are not compared.
//!
//! `omlp` and `mpcp_vs` hold requests back, and their promise counts from the admission of a request. The tests check
//! for each admission that its time had come.
//!
//! Under `pip`, the kernel decides. When the owner unlocks, the kernel hands the mutex to the most urgent of the
//! threads that wait for it, or to a more urgent one that requests it before that thread executes. A thread certainly
//! waits when it has left its CPU without having been preempted, which the kernel records. (On PREEMPT_RT, a thread may
//! leave its CPU shortly before it waits.) Where the kernel refuses to record this, `pip` is not judged.

use crate::judge::tell;
use crate::support::{R, for_each_protocol, require_cpus, require_realtime, run_us, run_with, task};
use lockwright_engine::{Outcome, RunConfig};
use lockwright_model::{
    CpuId, Duration, Event, Instant, Priority, Protocol, Record, Resource, ResourceId, Step, System, Task, TaskId,
};

/// A protocol's promise about the order in which tasks own one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// In the order of the requests: no wait is overtaken.
    Fifo,
    /// By priority: the next owner is the most urgent task that has requested.
    Priority,
    /// By priority from the arrival at the home CPU: a task on its way may be overtaken.
    AtHome,
    /// No order: a woken task tries again, and may find the resource locked.
    Nothing,
}

pub fn promise(protocol: Protocol) -> Promise {
    match protocol {
        Protocol::Dflp
        | Protocol::FmlpLong
        | Protocol::FmlpPlus
        | Protocol::FmlpShort
        | Protocol::Msrp
        | Protocol::Mrsp
        | Protocol::Omlp
        | Protocol::PhaseFair
        | Protocol::TaskFair => Promise::Fifo,
        Protocol::Pip | Protocol::Icpp | Protocol::Pcp | Protocol::Srp | Protocol::Mpcp | Protocol::MpcpVs => {
            Promise::Priority
        }
        Protocol::Dpcp => Promise::AtHome,
        // Interruptible sections and operations on objects do not exclude other tasks.
        Protocol::None | Protocol::Ics | Protocol::IcsLock | Protocol::LockFree | Protocol::WaitFree => {
            Promise::Nothing
        }
        other => panic!("the promise of {other} is not listed"),
    }
}

/// Whether requests wait for their admission before they wait for the resource.
fn holds_back(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Omlp | Protocol::MpcpVs)
}

/// The observed waits for one resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Waits {
    waits: usize,
    /// Waits of which it is known that the request was decided before the grant.
    decided: usize,
    /// Waits that another task overtook.
    passed: usize,
    /// Changes of owners for which a more urgent task waited when the previous owner released the resource.
    out_of_turn: usize,
}

impl Waits {
    /// Adds the waits of another run.
    fn add(&mut self, other: Self) {
        self.waits += other.waits;
        self.decided += other.decided;
        self.passed += other.passed;
        self.out_of_turn += other.out_of_turn;
    }

    /// The number of waits that are against the promise.
    pub fn against(&self, promise: Promise) -> usize {
        match promise {
            Promise::Fifo => self.passed,
            Promise::Priority | Promise::AtHome => self.out_of_turn,
            Promise::Nothing => 0,
        }
    }
}

/// An open request.
#[derive(Clone, Copy)]
struct Open {
    /// It was not decided before.
    from: Instant,
    /// It has been decided since, if that is known yet.
    since: Option<Instant>,
    /// Whether another task has overtaken it.
    is_passed: bool,
}

/// For each granted request, counts whether a request of another task came later and was granted earlier, and checks
/// whose turn it was. A task that stops has a request that is decided. A request that is held back begins with its
/// admission.
///
/// A machine grants to the most urgent of the requests that it has decided. Under `pip`, the kernel chooses at the
/// release, and a request that comes later is not in time.
pub fn waits(system: &System, protocol: Protocol, turns: &[Record], resource: ResourceId) -> Waits {
    let mut seen = Waits::default();
    let tasks = system.tasks();
    let mut open: Vec<Option<Open>> = vec![None; tasks.len()];
    let mut is_held_back = vec![false; tasks.len()];
    let mut released: Option<Instant> = None;
    for turn in turns {
        let me = turn.task.index();
        let begun = |since| Some(Open { from: turn.at, since, is_passed: false });
        match turn.event {
            Event::Request(asked) if asked == resource && holds_back(protocol) => is_held_back[me] = true,
            Event::Priority(_) if std::mem::take(&mut is_held_back[me]) => open[me] = begun(Some(turn.at)),
            Event::Request(asked) if asked == resource => open[me] = begun(None),
            Event::Stop => {
                if let Some(open) = &mut open[me] {
                    open.since.get_or_insert(turn.at);
                }
            }
            Event::Release(left) if left == resource => released = Some(turn.at),
            Event::Acquire(owned) if owned == resource => {
                let Some(mine) = open[me].take() else { continue };
                let chosen = if protocol == Protocol::Pip { released } else { Some(turn.at) };
                let mut is_skipped = false;
                for (open, other) in open.iter_mut().zip(tasks) {
                    let Some(open) = open else { continue };
                    open.is_passed |= open.since.is_some_and(|since| mine.from > since);
                    let is_in_time = open.since.is_some() && open.since < chosen;
                    is_skipped |= is_in_time && other.priority > tasks[me].priority;
                }
                seen.waits += 1;
                seen.decided += usize::from(mine.since.is_some());
                seen.passed += usize::from(mine.is_passed);
                seen.out_of_turn += usize::from(is_skipped);
            }
            _ => {}
        }
    }
    seen
}

/// How far the request of a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    HeldBack {
        since: Instant,
    },
    /// It waits for the resource, or owns it.
    Admitted,
}

/// The first decision under a protocol that holds requests back that admits a request at a wrong time, or does not
/// admit one whose time has come:
/// - a more urgent request of the same cluster is held back;
/// - the places of the cluster are taken. Under `omlp`, there is one for each processor, and each admitted request
///   takes one. Under `mpcp_vs`, there is one, and requests of less urgent tasks do not take it;
/// - a request is held back although a place is free. Under `omlp`, a more urgent job without a request takes one, too.
///   No record tells when its arrival and its end were decided, so each more urgent task counts. Under `mpcp_vs`, this
///   is checked when the request is made: afterwards, the task repeats it when it executes.
///
/// A grant without an admission is wrong, too.
pub fn wrong_admission(system: &System, protocol: Protocol, turns: &[Record]) -> Option<Record> {
    let is_omlp = protocol == Protocol::Omlp;
    let mut stages: Vec<Option<Stage>> = vec![None; system.tasks().len()];
    let turns = ruled_by(system, protocol, turns);
    // One decision has one number.
    turns.chunk_by(|one, other| one.at == other.at).filter(|_| holds_back(protocol)).find_map(|decision| {
        let is_wrong = |turn: &&Record| !follows(system, is_omlp, &mut stages, turn);
        let wrong = decision.iter().find(is_wrong).copied();
        let at = decision[0].at;
        let is_late = |task: TaskId| match stages[task.index()] {
            Some(Stage::HeldBack { since }) => (is_omlp || since == at) && has_place(system, is_omlp, &stages, task),
            _ => false,
        };
        wrong.or_else(|| system.task_ids().any(is_late).then_some(decision[0]))
    })
}

/// The turns that concern resources under the protocol itself. Those of one processor can be under another one.
fn ruled_by(system: &System, protocol: Protocol, turns: &[Record]) -> Vec<Record> {
    let mut elsewhere: Vec<bool> = vec![false; system.tasks().len()];
    let is_its = |turn: &&Record| {
        let elsewhere = &mut elsewhere[turn.task.index()];
        if let Event::Request(asked) = turn.event {
            *elsewhere = system.protocol_of(asked, protocol) != protocol;
        }
        !*elsewhere
    };
    turns.iter().filter(is_its).copied().collect()
}

/// The other tasks of the cluster of a task: each with its index, and whether it is more urgent. And the number of
/// places.
fn beside(system: &System, is_omlp: bool, task: TaskId) -> (impl Iterator<Item = (usize, bool)> + '_, usize) {
    let own = system.task(task);
    let cluster = system.cluster(own.cpu);
    let tasks = system.tasks().iter().enumerate();
    let others = tasks.filter(move |(other, it)| *other != task.index() && cluster >> it.cpu.index() & 1 == 1);
    let places = if is_omlp { cluster.count_ones() as usize } else { 1 };
    (others.map(|(other, it)| (other, it.priority > own.priority)), places)
}

/// Whether the request of a task that is held back certainly has a place.
fn has_place(system: &System, is_omlp: bool, stages: &[Option<Stage>], task: TaskId) -> bool {
    let (others, places) = beside(system, is_omlp, task);
    let takes_place = |&(other, is_above): &(usize, bool)| match stages[other] {
        _ if is_omlp && is_above => true,
        Some(Stage::Admitted) => is_omlp || is_above,
        stage => stage.is_some() && is_above,
    };
    others.filter(takes_place).count() < places
}

/// Applies an event. Returns whether it may happen at this time.
fn follows(system: &System, is_omlp: bool, stages: &mut [Option<Stage>], turn: &Record) -> bool {
    let me = turn.task.index();
    match turn.event {
        Event::Request(_) => stages[me] = Some(Stage::HeldBack { since: turn.at }),
        Event::Priority(_) if stages[me] != Some(Stage::Admitted) => {
            let (mut admitted, mut is_first) = (0, true);
            let (others, places) = beside(system, is_omlp, turn.task);
            for (other, is_above) in others {
                match stages[other] {
                    Some(Stage::Admitted) => admitted += usize::from(is_omlp || is_above),
                    Some(Stage::HeldBack { since }) => is_first &= !is_above || since == turn.at,
                    None => {}
                }
            }
            stages[me] = Some(Stage::Admitted);
            return is_first && admitted < places;
        }
        Event::Acquire(_) => return stages[me] == Some(Stage::Admitted),
        Event::Release(_) => stages[me] = None,
        _ => {}
    }
    true
}

/// One task for each of these CPUs, the least urgent first, with a section of `inside_us` in each period.
fn sections(cpus: &[usize], home: usize, period_us: u64, inside_us: u64) -> System {
    let body = || vec![run_us(20), Step::Lock(R), run_us(inside_us), Step::Unlock(R)];
    let named = |(index, &cpu): (usize, &usize)| task(&format!("t{index}"), cpu, 1 + index as u32, period_us, body());
    let tasks = cpus.iter().enumerate().map(named).collect();
    let mut resource = Resource::new("r");
    resource.home = Some(CpuId::new(home));
    let processors = cpus.iter().copied().max().unwrap_or(0).max(home) + 1;
    System::new("order".into(), processors, None, vec![resource], tasks).expect("a valid system")
}

/// The turns of a run. Returns `None` with a message if the kernel does not record which threads wait under `pip`; with
/// LOCKWRIGHT_REQUIRE_RT, that is a failure.
pub fn turns(system: &System, outcome: &Outcome, protocol: Protocol) -> Option<Vec<Record>> {
    let owned = |records: &[Record]| records.iter().filter(|record| matches!(record.event, Event::Acquire(_))).count();
    if promise(protocol) == Promise::Nothing {
        return Some(Vec::new());
    }
    if protocol != Protocol::Pip {
        assert_eq!(owned(&outcome.turns), owned(&outcome.records), "{protocol}");
        if let Some(wrong) = wrong_admission(system, protocol, &outcome.turns) {
            let before: Vec<&Record> = outcome.turns.iter().take_while(|turn| turn.at <= wrong.at).collect();
            panic!("{protocol}: {wrong:?} is wrong after {:#?}", &before[before.len().saturating_sub(30)..]);
        }
        return Some(outcome.turns.clone());
    }
    assert_eq!(owned(&outcome.turns), 0, "the kernel decides");
    let Some(occupancy) = outcome.occupancy.as_ref() else {
        let why = "the kernel does not let threads record their switches, so the order under pip is not judged";
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{why}");
        tell(&format!("skipped: {why}"));
        return None;
    };
    let is_turn = |event| matches!(event, Event::Request(_) | Event::Acquire(_) | Event::Release(_));
    let mut turns: Vec<Record> = outcome.records.iter().copied().filter(|record| is_turn(record.event)).collect();
    for task in system.task_ids() {
        turns.extend(occupancy.waits(task).map(|at| Record { at, task, event: Event::Stop }));
    }
    turns.sort_by_key(|turn| turn.at);
    Some(turns)
}

/// The configuration of a run with turns.
pub fn with_turns(protocol: Protocol, ms: u64) -> RunConfig {
    let watch = protocol == Protocol::Pip;
    RunConfig { turns: true, watch, ..RunConfig::new(protocol, Duration::from_ms(ms)) }
}

fn run_turns(system: &System, protocol: Protocol, ms: u64) -> Option<Vec<Record>> {
    turns(system, &run_with(system, &with_turns(protocol, ms)), protocol)
}

fn observe(system: &System, protocol: Protocol, ms: u64) -> Option<Waits> {
    let seen = waits(system, protocol, &run_turns(system, protocol, ms)?, R);
    println!("{protocol}: {seen:?}");
    Some(seen)
}

/// Checks the promise in runs with more than a hundred waits. In an overloaded system, some of them were seen to be
/// decided before the grant: only these prove something, and the kernel's ring may lose them under `pip`.
fn hold(system: &System, protocol: Protocol, ms: u64, is_overloaded: bool) {
    // A run on a busy machine may have too few waits to judge the order by.
    let mut seen = Waits::default();
    for _attempt in 0..10 {
        let Some(observed) = observe(system, protocol, ms) else { return };
        seen.add(observed);
        let promise = promise(protocol);
        assert_eq!(seen.against(promise), 0, "{protocol} promises {promise:?}: {seen:?}");
        if seen.waits > 100 && (seen.decided > 20 || !is_overloaded) {
            return;
        }
        tell(&format!("{protocol}: too few waits yet: {seen:?}"));
    }
    panic!("{protocol}: too few waits in ten runs: {seen:?}");
}

/// Runs until waits are found that are against another promise than the protocol's.
fn find(system: &System, protocol: Protocol, other: Promise) {
    // On a busy machine the tasks of a CPU may not execute at all.
    let found = (0..10).any(|_| observe(system, protocol, 400).is_none_or(|seen| seen.against(other) > 0));
    assert!(found, "no wait under {protocol} is against {other:?}");
}

/// Whether the analyses and locks of the protocol are for one processor.
pub fn is_for_one(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Icpp | Protocol::Pcp | Protocol::Srp)
}

/// Whether the protocol is for several processors, and promises an order.
fn is_global(protocol: &Protocol) -> bool {
    promise(*protocol) != Promise::Nothing && !is_for_one(*protocol)
}

#[test]
fn no_wait_is_overtaken_on_an_overloaded_home() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0; 7], 1, 1_000, 200);
    for protocol in [Protocol::Dflp, Protocol::Dpcp] {
        hold(&system, protocol, for_each_protocol(140), true);
    }
}

#[test]
fn no_wait_for_an_overloaded_resource_is_overtaken() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 1, 1_000, 200);
    for protocol in Protocol::ALL.into_iter().filter(is_global) {
        hold(&system, protocol, for_each_protocol(100), true);
    }
}

#[test]
fn no_wait_for_short_sections_is_overtaken() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 0, 500, 30);
    for protocol in Protocol::ALL.into_iter().filter(is_global) {
        hold(&system, protocol, for_each_protocol(70), false);
    }
}

#[test]
fn no_wait_on_one_processor_is_overtaken() {
    let Some(_machine) = require_realtime() else { return };
    // The second period overloads the processor.
    for period_us in [2_000, 1_000] {
        let system = sections(&[0; 7], 0, period_us, 200);
        for protocol in [Protocol::Icpp, Protocol::Pcp, Protocol::Srp, Protocol::Pip] {
            hold(&system, protocol, for_each_protocol(100), period_us == 1_000);
        }
    }
}

/// Three tasks request while a less urgent task of their processor is in a long section, and after the only task of the
/// other processor.
fn late_requests() -> System {
    let named = |(index, &(cpu, offset_us, inside_us)): (usize, &(usize, u64, u64))| {
        let body = vec![run_us(20), Step::Lock(R), run_us(inside_us), Step::Unlock(R)];
        let task = task(&format!("t{index}"), cpu, 1 + index as u32, 2_000, body);
        Task { offset: Duration::from_us(offset_us), ..task }
    };
    let tasks = [(0, 100, 100), (1, 0, 600), (1, 200, 60), (1, 300, 60), (1, 400, 60)];
    let resource = Resource::new("r");
    let tasks = tasks.iter().enumerate().map(named).collect();
    System::new("late".into(), 2, None, vec![resource], tasks).expect("a valid system")
}

#[test]
fn a_wait_that_nothing_holds_back_is_not_overtaken() {
    let Some(_machine) = require_cpus(2) else { return };
    for protocol in [Protocol::Omlp, Protocol::MpcpVs] {
        hold(&late_requests(), protocol, for_each_protocol(140), true);
    }
}

/// A protocol by priority breaks the order of requests, and the reverse. If the count found neither, the tests would
/// prove nothing.
#[test]
fn the_count_finds_another_order() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 1, 1_000, 200);
    find(&system, Protocol::Mpcp, Promise::Fifo);
    find(&system, Protocol::FmlpPlus, Promise::Priority);
}

/// One exchange of two neighbouring grants in a whole run is found.
#[test]
fn one_grant_out_of_turn_is_found() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 1, 1_000, 200);
    // Under the others, at most one task of each processor waits, so no two wait at a time.
    'protocols: for protocol in [Protocol::Pip, Protocol::Mpcp, Protocol::Dflp, Protocol::FmlpLong, Protocol::FmlpPlus]
    {
        let promise = promise(protocol);
        // On a busy machine, no two may wait.
        let mut found = None;
        for _attempt in 0..10 {
            let Some(turns) = run_turns(&system, protocol, 100) else { continue 'protocols };
            assert_eq!(waits(&system, protocol, &turns, R).against(promise), 0);
            found = found.or_else(|| Some((exchangeable(&system, promise, &turns)?, turns)));
            if found.is_some() {
                break;
            }
        }
        let (pair, mut turns) = found.unwrap_or_else(|| panic!("{protocol}: no task waits for another"));
        let [one, other] = pair.map(|index| turns[index].task);
        (turns[pair[0]].task, turns[pair[1]].task) = (other, one);
        assert_ne!(waits(&system, protocol, &turns, R).against(promise), 0, "{protocol}");
    }
}

/// Two neighbouring grants to tasks that both waited at the last release, the first of them more urgent.
fn exchangeable(system: &System, promise: Promise, turns: &[Record]) -> Option<[usize; 2]> {
    let owned = |record: &Record| record.event == Event::Acquire(R);
    let grants: Vec<usize> = (0..turns.len()).filter(|&index| owned(&turns[index])).collect();
    let waited = |task: TaskId, before: usize| {
        let is_meant = |turn: &&Record| turn.task == task && !matches!(turn.event, Event::Priority(_));
        let mut own = turns[..before].iter().rev().filter(is_meant).map(|turn| turn.event);
        own.next() == Some(Event::Stop) && own.find(|&event| event != Event::Stop) == Some(Event::Request(R))
    };
    let pair = grants.windows(2).find(|pair| {
        let left = turns[..pair[0]].iter().rposition(|turn| turn.event == Event::Release(R));
        let [one, other] = [pair[0], pair[1]].map(|index| turns[index].task);
        let is_above = system.task(one).priority > system.task(other).priority;
        // Of two requests that were decided at the same time, either may be the earlier one.
        let last = |task, event, before: usize| {
            turns[..before].iter().rposition(|turn| turn.task == task && turn.event == event)
        };
        let are_apart = |left| last(one, Event::Stop, left) < last(other, Event::Request(R), left);
        let are_ordered = |left| promise != Promise::Fifo || are_apart(left);
        is_above && left.is_some_and(|left| waited(one, left) && waited(other, left) && are_ordered(left))
    })?;
    Some([pair[0], pair[1]])
}

/// These records, in which each request is decided at once.
fn decided(records: &[Record]) -> Vec<Record> {
    let turns = |&record: &Record| match record.event {
        Event::Request(_) => vec![record, Record { event: Event::Stop, ..record }],
        _ => vec![record],
    };
    records.iter().flat_map(turns).collect()
}

#[test]
fn passes_are_counted_by_task_and_urgency() {
    let system = sections(&[0, 1, 0], 1, 1_000, 200);
    let record = |at: u64, task, event| Record { at: Instant::from_ns(at * 100_000), task: TaskId(task), event };
    let (asks, owns, ends) = (Event::Request(R), Event::Acquire(R), Event::Release(R));
    // Task 2 waits from 1 on. Task 1 owned the resource before, and overtakes it at 3 and 5; task 0 overtakes it once,
    // at 7.
    let records = [
        record(0, 1, asks),
        record(1, 1, owns),
        record(1, 2, asks),
        record(2, 1, ends),
        record(2, 1, asks),
        record(3, 1, owns),
        record(4, 1, ends),
        record(4, 1, asks),
        record(5, 1, owns),
        record(6, 0, asks),
        record(7, 1, ends),
        record(7, 0, owns),
        record(8, 0, ends),
        record(8, 2, owns),
    ];
    let seen = waits(&system, Protocol::Mpcp, &decided(&records), R);
    assert_eq!(seen, Waits { waits: 5, decided: 5, passed: 1, out_of_turn: 3 });
    let once = decided(&records[..6]);
    let wanted = Waits { waits: 2, decided: 2, passed: 0, out_of_turn: 1 };
    assert_eq!(waits(&system, Protocol::Mpcp, &once, R), wanted);
    // Task 2 does not certainly wait before 3, so the grant at that time is not out of turn.
    let rest = decided(&records[3..]);
    let late = [&once[..4], &rest[..4], &[record(3, 2, Event::Stop)], &rest[4..]].concat();
    assert_eq!(waits(&system, Protocol::Mpcp, &late, R).out_of_turn, 2);
}

/// Decisions on a resource, one for each word: a digit is a task, and `?`, `!`, `+` and `-` are its request, its
/// admission, its grant and its release. Each request is decided at once.
fn decisions(words: &str) -> Vec<Record> {
    let mut records = Vec::new();
    for (at, word) in (1..).map(Instant::from_ns).zip(words.split(' ')) {
        let mut task = TaskId(0);
        for letter in word.chars() {
            let event = match letter {
                '?' => Event::Request(R),
                '!' => Event::Priority(Priority::BASE_MAX.boosted()),
                '+' => Event::Acquire(R),
                '-' => Event::Release(R),
                digit => {
                    task = TaskId::new(digit.to_digit(10).expect("a task") as usize);
                    continue;
                }
            };
            records.push(Record { at, task, event });
        }
    }
    decided(&records)
}

#[test]
fn a_request_that_is_held_back_waits_from_its_admission() {
    let system = sections(&[0, 1, 0], 1, 1_000, 200);
    let seen = |protocol, words| waits(&system, protocol, &decisions(words), R);
    // Task 2 requests first, is held back by task 0, and comes behind task 1.
    let behind = "0?!+ 2? 1?! 0-1+2! 1-2+";
    assert_eq!(seen(Protocol::Omlp, behind), Waits { waits: 3, decided: 3, passed: 0, out_of_turn: 0 });
    assert_eq!(seen(Protocol::FmlpPlus, behind).passed, 1, "without admissions");
    // The other way round, task 2 overtakes task 1, which is less urgent.
    let before = "0?!+ 2? 1?! 0-2!+ 2-1+";
    assert_eq!(seen(Protocol::Omlp, before), Waits { waits: 3, decided: 3, passed: 1, out_of_turn: 0 });
    // A more urgent task is out of turn from the decision after its admission.
    assert_eq!(seen(Protocol::MpcpVs, behind).out_of_turn, 0);
    assert_eq!(seen(Protocol::MpcpVs, "0?!+ 2? 1?! 0- 2! 1+").out_of_turn, 1);
}

#[test]
fn wrong_admissions_are_found() {
    let wrong = |cpus: &[usize], protocol, words| {
        let system = sections(cpus, 0, 1_000, 200);
        wrong_admission(&system, protocol, &decisions(words)).map(|record| (record.task.0, record.event))
    };
    let admitted = Event::Priority(Priority::BASE_MAX.boosted());
    for protocol in [Protocol::Omlp, Protocol::MpcpVs] {
        assert_eq!(wrong(&[0, 0, 0, 1], protocol, "2?!+ 0? 1? 2-1!+ 1-0!+ 0-"), None, "{protocol}");
        // A less urgent request is admitted first.
        assert_eq!(wrong(&[0, 0, 0, 1], protocol, "2?!+ 0? 1? 2-0!+ 0-1!+ 1-"), Some((0, admitted)), "{protocol}");
        // The processor has a request already, or it has none.
        assert_eq!(wrong(&[0, 1, 0], protocol, "2?!+ 0?!"), Some((0, admitted)), "{protocol}");
        assert_eq!(wrong(&[0, 1], protocol, "1? 0?! 1!"), Some((1, Event::Request(R))), "{protocol}");
        assert_eq!(wrong(&[0, 1], protocol, "1?+"), Some((1, Event::Acquire(R))), "{protocol}");
        assert_eq!(wrong(&[0, 1], Protocol::Mpcp, "1? 0?! 1! 1-1+"), None, "nothing is held back");
    }
    // A less urgent request holds a more urgent one back under `omlp`, and must be followed by it.
    for (words, under_omlp, under_mpcp_vs) in [
        ("0?!+ 1?! 0-1+", Some((1, admitted)), None),
        ("0?!+ 1? 0-1!+", None, Some((1, Event::Request(R)))),
        ("0?!+ 1? 0- 1!+", Some((0, Event::Release(R))), Some((1, Event::Request(R)))),
    ] {
        assert_eq!(wrong(&[0, 0, 1], Protocol::Omlp, words), under_omlp, "{words}");
        assert_eq!(wrong(&[0, 0, 1], Protocol::MpcpVs, words), under_mpcp_vs, "{words}");
    }
    // A resource of one processor is under `icpp`.
    for protocol in [Protocol::Omlp, Protocol::MpcpVs] {
        assert_eq!(wrong(&[0; 2], protocol, "1? 1+"), None, "{protocol}");
        assert_eq!(wrong(&[0, 0, 1], protocol, "1? 1+"), Some((1, Event::Request(R))), "{protocol}");
    }
    // Under `omlp`, a job of task 1 may have the place of task 0.
    assert_eq!(wrong(&[0, 0, 1], Protocol::Omlp, "0? 0!+"), None);
    assert_eq!(wrong(&[0, 0, 1], Protocol::MpcpVs, "0? 0!+"), Some((0, Event::Request(R))));
}

/// A cluster of two processors has at most two requests.
#[test]
fn wrong_admissions_to_a_cluster_are_found() {
    let system = sections(&[0; 4], 1, 1_000, 200).in_clusters(&[0b11; 4]).expect("one cluster");
    let wrong = |words| wrong_admission(&system, Protocol::Omlp, &decisions(words)).map(|it| it.task.0);
    assert_eq!(wrong("0?!+ 1?! 3? 0-1+3! 1-3+"), None);
    assert_eq!(wrong("0?!+ 1?! 3?!"), Some(3));
    assert_eq!(wrong("0?!+ 1?! 3? 2? 0-1+2!"), Some(2), "task 3 is more urgent");
    assert_eq!(wrong("0?!+ 1?! 3? 0-1+"), Some(0), "task 3 is not admitted");
    assert_eq!(wrong("0?!+ 1?! 2? 0-1+"), None, "a job of task 3 may have the place");
}

/// A machine decides each request, so one that comes between a release and a grant counts, and one for a free resource.
/// The kernel chooses at the release.
#[test]
fn a_machine_grants_to_the_most_urgent_request_that_it_decided() {
    let system = sections(&[0, 0, 0], 0, 1_000, 200);
    let record = |at: u64, task, event| Record { at: Instant::from_ns(at), task: TaskId(task), event };
    let (asks, owns, ends) = (Event::Request(R), Event::Acquire(R), Event::Release(R));
    let before_it = [record(1, 1, asks), record(2, 1, owns), record(3, 0, asks), record(10, 1, ends)];
    let woken = [record(11, 2, asks), record(12, 0, owns), record(13, 0, ends), record(14, 2, owns)];
    let between = [&before_it[..], &woken[..]].concat();
    let free = [record(1, 0, asks), record(2, 2, asks), record(3, 0, owns)];
    for records in [&between[..], &free[..]] {
        let out_of_turn = |protocol| waits(&system, protocol, &decided(records), R).out_of_turn;
        for protocol in [Protocol::Pcp, Protocol::Icpp, Protocol::Srp, Protocol::Mpcp, Protocol::Dpcp] {
            assert_eq!(out_of_turn(protocol), 1, "{protocol}: {records:?}");
        }
        assert_eq!(out_of_turn(Protocol::Pip), 0, "{records:?}");
    }
    // The machine decides at the grant, at the earliest.
    let behind = [record(1, 0, asks), record(2, 2, asks), record(3, 0, owns), record(3, 2, Event::Stop)];
    assert_eq!(waits(&system, Protocol::Pcp, &behind, R).out_of_turn, 0);
}
