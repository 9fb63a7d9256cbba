//! The order in which waiting tasks acquire a resource.
//!
//! For each wait, the tests count how often another task requests the resource later and owns it earlier: it overtakes.
//! For each change of owners, they check whether a more urgent task had requested in time. Both are compared with the
//! protocol's promise, which must hold for each wait.
//!
//! The order of requests is that of their decisions ([`lockwright_engine::Outcome::turns`]). A machine decides under
//! its guard. Other locks decide in an atomic operation, and a request has a number before and after it: of two
//! requests whose operations overlap, either may be the earlier one, and they are not compared.
//!
//! Under `pip`, the kernel decides. When the owner unlocks, the kernel hands the mutex to the most urgent of the
//! threads that wait for it, or to a more urgent one that requests it before that thread executes. A thread certainly
//! waits when it has left its CPU without having been preempted, which the kernel records. (On PREEMPT_RT, a thread may
//! leave its CPU shortly before it waits.) Where the kernel refuses to record this, `pip` is not judged.

use crate::judge::tell;
use crate::support::{R, for_each_protocol, require_cpus, require_realtime, run_us, run_with, task};
use lockwright_engine::{Outcome, RunConfig};
use lockwright_model::{
    CpuId, Duration, Event, Instant, Protocol, Record, Resource, ResourceId, Step, System, Task, TaskId,
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
    /// In the order of requests, of which each processor has one at a time (`omlp`): if no other task of its processor
    /// has a request, no wait is overtaken. Otherwise the request is held back. While each request of its processor is
    /// served, and once before its own, one request of each other processor may overtake it. No less urgent task of the
    /// same processor does.
    HeldFifo,
    /// By priority, but a request is held back while a task of its processor that is at least as urgent has one
    /// (`mpcp_vs`): until then, the next owner is the most urgent task that has requested. When the request of such a
    /// task ends, one less urgent task of another processor may overtake. No less urgent task of the same processor
    /// does.
    HeldPriority,
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
        | Protocol::PhaseFair
        | Protocol::TaskFair => Promise::Fifo,
        Protocol::Pip | Protocol::Icpp | Protocol::Pcp | Protocol::Srp | Protocol::Mpcp => Promise::Priority,
        Protocol::Dpcp => Promise::AtHome,
        Protocol::Omlp => Promise::HeldFifo,
        Protocol::MpcpVs => Promise::HeldPriority,
        // Interruptible sections and operations on objects do not exclude other tasks.
        Protocol::None | Protocol::Ics | Protocol::IcsLock | Protocol::LockFree | Protocol::WaitFree => {
            Promise::Nothing
        }
        other => panic!("the promise of {other} is not listed"),
    }
}

/// The observed waits for one resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Waits {
    waits: usize,
    /// Waits of which it is known that the request was decided before the grant.
    decided: usize,
    /// Waits that another task overtook.
    passed: usize,
    /// Waits that a less urgent task of the same processor overtook.
    by_less_urgent: usize,
    /// Changes of owners for which a more urgent task waited when the previous owner released the resource.
    out_of_turn: usize,
    /// Waits that others overtook more often than [`Promise::HeldFifo`] allows.
    beyond_fifo: usize,
    /// Waits that less urgent tasks overtook more often than [`Promise::HeldPriority`] allows, and changes of owners
    /// that were out of turn although nothing held the more urgent request back.
    beyond_priority: usize,
}

impl Waits {
    /// Adds the waits of another run.
    fn add(&mut self, other: Self) {
        self.waits += other.waits;
        self.decided += other.decided;
        self.passed += other.passed;
        self.by_less_urgent += other.by_less_urgent;
        self.out_of_turn += other.out_of_turn;
        self.beyond_fifo += other.beyond_fifo;
        self.beyond_priority += other.beyond_priority;
    }

    /// The number of waits that are against the promise.
    pub fn against(&self, promise: Promise) -> usize {
        match promise {
            Promise::Fifo => self.passed,
            Promise::Priority | Promise::AtHome => self.out_of_turn,
            Promise::HeldFifo => self.by_less_urgent + self.beyond_fifo,
            Promise::HeldPriority => self.by_less_urgent + self.beyond_priority,
            Promise::Nothing => 0,
        }
    }
}

/// An open request.
#[derive(Clone)]
struct Open {
    /// It was not decided before.
    from: Instant,
    /// It has been decided since, if that is known yet.
    since: Option<Instant>,
    /// How often each other task has overtaken it.
    passed: Vec<usize>,
    /// Requests of other tasks of its processor that are or were served meanwhile: of all, and of those at least as
    /// urgent.
    local: usize,
    local_urgent: usize,
    /// Whether another task of its processor had a request before it was decided: any, or one at least as urgent.
    is_held: bool,
    is_held_by_urgent: bool,
}

impl Open {
    /// Whether others overtook it more often than [`Promise::HeldFifo`] allows.
    fn is_beyond_fifo(&self, own: &Task, tasks: &[Task]) -> bool {
        let by = |cpu: CpuId| -> usize {
            let passed = self.passed.iter().zip(tasks).filter(|(_, other)| other.cpu == cpu);
            passed.map(|(passed, _)| passed).sum()
        };
        let is_passed = self.passed.iter().any(|&passed| passed > 0);
        let mut remote = tasks.iter().map(|task| task.cpu).filter(|&cpu| cpu != own.cpu);
        (is_passed && !self.is_held) || remote.any(|cpu| by(cpu) > 1 + self.local)
    }

    /// Whether less urgent tasks overtook it more often than [`Promise::HeldPriority`] allows.
    fn is_beyond_priority(&self, own: &Task, tasks: &[Task]) -> bool {
        let is_meant = |other: &Task| other.cpu != own.cpu && other.priority < own.priority;
        let passed = self.passed.iter().zip(tasks).filter(|(_, other)| is_meant(other));
        passed.map(|(passed, _)| passed).sum::<usize>() > self.local_urgent
    }
}

/// The open requests for a resource, and its owner.
struct Queue<'s> {
    tasks: &'s [Task],
    open: Vec<Option<Open>>,
    owner: Option<usize>,
}

impl Queue<'_> {
    fn request(&mut self, me: usize, at: Instant) {
        let own = &self.tasks[me];
        let local = |other: usize| other != me && self.tasks[other].cpu == own.cpu;
        let urgent = |other: usize| local(other) && self.tasks[other].priority >= own.priority;
        let (mut is_held, mut is_held_by_urgent) = (self.owner.is_some_and(local), self.owner.is_some_and(urgent));
        let counts = [is_held, is_held_by_urgent].map(usize::from);
        for other in (0..self.tasks.len()).filter(|&other| local(other)) {
            if self.open[other].is_none() {
                continue;
            }
            is_held = true;
            is_held_by_urgent |= self.tasks[other].priority >= own.priority;
        }
        let passed = vec![0; self.tasks.len()];
        let [local, local_urgent] = counts;
        self.open[me] = Some(Open { from: at, since: None, passed, local, local_urgent, is_held, is_held_by_urgent });
    }

    fn decided(&mut self, me: usize, at: Instant) {
        if let Some(open) = &mut self.open[me] {
            open.since.get_or_insert(at);
        }
    }

    /// Returns the request that is granted, after others noted whether it overtakes them.
    fn acquire(&mut self, me: usize) -> Option<Open> {
        let mine = self.open[me].take()?;
        self.owner = Some(me);
        for (open, other) in self.open.iter_mut().zip(self.tasks) {
            let Some(open) = open else { continue };
            open.passed[me] += usize::from(open.since.is_some_and(|since| mine.from > since));
            let is_local = other.cpu == self.tasks[me].cpu;
            open.local += usize::from(is_local);
            open.local_urgent += usize::from(is_local && self.tasks[me].priority >= other.priority);
        }
        Some(mine)
    }

    /// The open requests, with their tasks.
    fn waiting(&self) -> impl Iterator<Item = (&Open, &Task)> {
        self.open.iter().zip(self.tasks).filter_map(|(open, task)| Some((open.as_ref()?, task)))
    }
}

/// For each granted request, counts the requests of other tasks that came later and were granted earlier, and checks
/// whose turn it was. A task that stops has a request that is decided.
///
/// A machine grants to the most urgent of the requests that it has decided. Under `pip`, the kernel chooses at the
/// release, and a request that comes later is not in time.
pub fn waits(system: &System, protocol: Protocol, turns: &[Record], resource: ResourceId) -> Waits {
    let mut seen = Waits::default();
    let tasks = system.tasks();
    let mut queue = Queue { tasks, open: vec![None; tasks.len()], owner: None };
    let mut released: Option<Instant> = None;
    for turn in turns {
        let me = turn.task.index();
        let own = &tasks[me];
        match turn.event {
            Event::Request(asked) if asked == resource => queue.request(me, turn.at),
            Event::Stop => queue.decided(me, turn.at),
            Event::Release(left) if left == resource => {
                queue.owner = queue.owner.filter(|&owner| owner != me);
                released = Some(turn.at);
            }
            Event::Acquire(owned) if owned == resource => {
                let Some(mine) = queue.acquire(me) else { continue };
                seen.waits += 1;
                seen.decided += usize::from(mine.since.is_some());
                seen.passed += usize::from(mine.passed.iter().any(|&passed| passed > 0));
                let mut passers = mine.passed.iter().zip(tasks).filter(|(passed, _)| **passed > 0);
                seen.by_less_urgent +=
                    usize::from(passers.any(|(_, other)| other.cpu == own.cpu && other.priority < own.priority));
                let chosen = if protocol == Protocol::Pip { released } else { Some(turn.at) };
                let is_skipped = |(open, other): &(&Open, &Task)| {
                    open.since.is_some() && open.since < chosen && other.priority > own.priority
                };
                seen.out_of_turn += usize::from(queue.waiting().any(|waiting| is_skipped(&waiting)));
                let is_free = |waiting: (&Open, &Task)| is_skipped(&waiting) && !waiting.0.is_held_by_urgent;
                let is_beyond = mine.is_beyond_priority(own, tasks) || queue.waiting().any(is_free);
                seen.beyond_fifo += usize::from(mine.is_beyond_fifo(own, tasks));
                seen.beyond_priority += usize::from(is_beyond);
            }
            _ => {}
        }
    }
    seen
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

/// Without the protocols that hold requests back: a task repeats such a request when it executes, and another one may
/// come first meanwhile.
#[test]
fn no_wait_for_short_sections_is_overtaken() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 0, 500, 30);
    for protocol in Protocol::ALL.into_iter().filter(is_global) {
        if matches!(promise(protocol), Promise::HeldFifo | Promise::HeldPriority) {
            continue;
        }
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
    // The owner is preempted by the three tasks, and they are served before the first that waits.
    find(&late_requests(), Protocol::Pip, Promise::HeldFifo);
}

/// A protocol by priority breaks the order of requests, and the reverse. If the count found neither, the tests would
/// prove nothing.
#[test]
fn the_count_finds_another_order() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 1, 1_000, 200);
    find(&system, Protocol::Mpcp, Promise::Fifo);
    find(&system, Protocol::FmlpPlus, Promise::Priority);
    find(&system, Protocol::FmlpPlus, Promise::HeldPriority);
}

/// One exchange of two neighbouring grants in a whole run is found.
#[test]
fn one_grant_out_of_turn_is_found() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sections(&[0, 1, 0, 1, 0, 1, 0], 1, 1_000, 200);
    // Under the others, at most one task of each processor waits, so no two wait at a time.
    for protocol in [Protocol::Pip, Protocol::Mpcp, Protocol::Dflp, Protocol::FmlpLong, Protocol::FmlpPlus] {
        let Some(mut turns) = run_turns(&system, protocol, 100) else { continue };
        let promise = promise(protocol);
        assert_eq!(waits(&system, protocol, &turns, R).against(promise), 0);
        let owned = |record: &Record| record.event == Event::Acquire(R);
        let grants: Vec<usize> = (0..turns.len()).filter(|&index| owned(&turns[index])).collect();
        // Both of the exchanged tasks waited at the last release, and the first is the more urgent one.
        let waited = |task: TaskId, before: usize| {
            let mut own = turns[..before].iter().rev().filter(|turn| turn.task == task).map(|turn| turn.event);
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
        });
        let pair = pair.unwrap_or_else(|| panic!("{protocol}: no task waits for another"));
        let (one, other) = (turns[pair[0]].task, turns[pair[1]].task);
        (turns[pair[0]].task, turns[pair[1]].task) = (other, one);
        assert_ne!(waits(&system, protocol, &turns, R).against(promise), 0, "{protocol}");
    }
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
    let wanted = Waits {
        waits: 5,
        decided: 5,
        passed: 1,
        by_less_urgent: 1,
        out_of_turn: 3,
        beyond_fifo: 1,
        beyond_priority: 4,
    };
    assert_eq!(seen, wanted);
    let once = decided(&records[..6]);
    let wanted = Waits { waits: 2, decided: 2, out_of_turn: 1, beyond_priority: 1, ..Waits::default() };
    assert_eq!(waits(&system, Protocol::Mpcp, &once, R), wanted);
    // Task 2 does not certainly wait before 3, so the grant at that time is not out of turn.
    let rest = decided(&records[3..]);
    let late = [&once[..4], &rest[..4], &[record(3, 2, Event::Stop)], &rest[4..]].concat();
    assert_eq!(waits(&system, Protocol::Mpcp, &late, R).out_of_turn, 2);
    // If task 2 is held back by a request of its processor, task 1 may overtake it before and behind that request.
    let held = [
        record(0, 0, asks),
        record(1, 2, asks),
        record(2, 1, asks),
        record(3, 1, owns),
        record(4, 1, ends),
        record(4, 0, owns),
        record(5, 1, asks),
        record(6, 0, ends),
        record(6, 1, owns),
        record(7, 1, ends),
        record(7, 2, owns),
    ];
    let seen = waits(&system, Protocol::Mpcp, &decided(&held), R);
    // It overtakes task 0, which nothing holds back.
    assert_eq!((seen.passed, seen.beyond_fifo), (2, 1));
    // Task 0 is less urgent than task 2, and does not hold it back by priority.
    assert_eq!(seen.beyond_priority, 4);
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
