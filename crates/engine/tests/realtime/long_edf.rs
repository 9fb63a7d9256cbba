//! Runs under `p-edf` with long resources, on two CPUs: deadlines, the order of jobs and of owners, and stops.
//!
//! The order is judged from the records of a run, see [`Judged`].

use crate::order::{Promise, turns, waits, with_turns};
use crate::support::{
    R, expect, fault as violated, for_each_protocol, require_cpus, run_until_under, run_us, run_with, scale, system,
    task, unfinished, us,
};
use lockwright_engine::{Ended, Outcome, RunConfig};
use lockwright_model::{Duration, Event, Instant, Protocol, Record, ResourceId, Scheduler, Step, System, Task};

const PROTOCOL: Protocol = Protocol::FmlpLong;
const OTHER: ResourceId = ResourceId(1);
/// Of the first CPU.
const OWN: ResourceId = ResourceId(2);

/// The time after which a job must have been preempted.
fn latency() -> Duration {
    Duration::from_ms(scale())
}

/// The observations in the records of a run.
#[derive(Default, Debug)]
struct Judged {
    /// The owner of a long resource did not execute for more than [`latency`], while a job of its CPU did that owned
    /// none.
    preempted: Option<String>,
    /// The job with the earliest deadline of a CPU did not execute for more than [`latency`], while another one did
    /// that owned no resource.
    passed: Option<String>,
    /// The number of jobs that waited for an owner of their CPU, or for its end, for more than [`latency`].
    delayed: usize,
}

#[derive(Clone, Default)]
struct Now {
    arrivals: Vec<Instant>,
    executes: bool,
    waits: bool,
    owned: Vec<ResourceId>,
    preempted: Duration,
    passed: Duration,
    behind: Duration,
}

fn judge(system: &System, records: &[Record]) -> Judged {
    let mut judged = Judged::default();
    let mut all = vec![Now::default(); system.tasks().len()];
    for pair in records.windows(2) {
        let (record, elapsed) = (pair[0], pair[1].at.since(pair[0].at));
        let own = &mut all[record.task.index()];
        match record.event {
            Event::Arrive => own.arrivals.push(record.at),
            Event::Run => own.executes = true,
            Event::Stop => own.executes = false,
            Event::Finish => {
                own.arrivals.remove(0);
                judged.delayed += usize::from(own.behind > latency());
                (own.passed, own.behind) = Default::default();
            }
            Event::Request(_) => own.waits = true,
            Event::Acquire(on) => {
                own.waits = false;
                own.owned.push(on);
            }
            Event::Release(on) => own.owned.retain(|&other| other != on),
            _ => {}
        }
        let tasks = || 0..all.len();
        let cpu = |task: usize| system.tasks()[task].cpu;
        let owns_long = |task: usize| all[task].owned.iter().any(|&on| system.is_global(on));
        let key = |task: usize| Some((*all[task].arrivals.first()? + system.tasks()[task].deadline, task));
        let first_of = |one: usize| {
            let here = tasks().filter(|&task| cpu(task) == cpu(one) && !all[task].waits);
            here.filter_map(key).min().map(|(_, task)| task)
        };
        let beside = |one: usize, is: &dyn Fn(usize) -> bool| {
            tasks().any(|task| task != one && cpu(task) == cpu(one) && all[task].executes && is(task))
        };
        let now: Vec<(bool, bool, bool)> = tasks()
            .map(|task| {
                let is_idle = !all[task].executes && !all[task].waits && !all[task].arrivals.is_empty();
                let is_first = is_idle && first_of(task) == Some(task);
                let is_preempted = is_idle && owns_long(task) && beside(task, &|other| !owns_long(other));
                let is_passed = is_first && beside(task, &|other| all[other].owned.is_empty());
                (is_preempted, is_passed, is_first && beside(task, &owns_long))
            })
            .collect();
        for (task, (is_preempted, is_passed, is_behind)) in now.into_iter().enumerate() {
            let one = &mut all[task];
            one.preempted = if is_preempted { one.preempted + elapsed } else { Duration::ZERO };
            one.passed = if is_passed { one.passed + elapsed } else { Duration::ZERO };
            one.behind += if is_behind { elapsed } else { Duration::ZERO };
            let name = || format!("`{}` at {}", system.tasks()[task].name, record.at);
            if one.preempted > latency() {
                judged.preempted.get_or_insert_with(|| format!("{} was preempted as the owner", name()));
            }
            if one.passed > latency() {
                judged.passed.get_or_insert_with(|| format!("{} was passed", name()));
            }
        }
    }
    judged
}

/// What must hold of each run, however slow the machine is.
fn check(system: &System, outcome: &Outcome) {
    assert_eq!(violated(system, PROTOCOL, &outcome.records), None);
    let turns = turns(system, outcome, PROTOCOL).expect("turns are counted");
    for resource in [R, OTHER] {
        let seen = waits(system, PROTOCOL, &turns, resource);
        assert_eq!(seen.against(Promise::Fifo), 0, "{resource:?}: {seen:?}");
    }
}

fn section(on: ResourceId, time: u64) -> [Step; 3] {
    [Step::Lock(on), run_us(time), Step::Unlock(on)]
}

/// Tasks of two CPUs that share two long resources, and two of one CPU that share a third one. The priorities are
/// against the deadlines.
fn sharing() -> System {
    let stretch = scale();
    let run = |time| vec![run_us(time * stretch)];
    let lock = |on, time| section(on, time * stretch).to_vec();
    let of = |name: &str, cpu: usize, priority: u32, period: u64, offset: u64, body: Vec<Vec<Step>>| Task {
        offset: us(offset * stretch),
        ..task(name, cpu, priority, period * stretch, body.concat())
    };
    let tasks = vec![
        of("a", 0, 1, 19_000, 3_000, vec![run(1_500)]),
        of("b", 0, 2, 41_000, 1_000, vec![lock(OWN, 1_500), run(500), lock(R, 1_500)]),
        of("c", 0, 3, 83_000, 0, vec![lock(R, 5_000), run(2_000), lock(OWN, 2_000), lock(OTHER, 2_000)]),
        of("d", 1, 1, 23_000, 4_000, vec![run(1_500)]),
        of("e", 1, 2, 47_000, 500, vec![run(500), lock(R, 2_000), run(500)]),
        of("f", 1, 3, 97_000, 0, vec![lock(OTHER, 5_000), run(2_500), lock(R, 3_000)]),
    ];
    system(2, 3, tasks).under(Scheduler::PEdf)
}

#[test]
fn jobs_and_owners_execute_in_order() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sharing();
    let config = with_turns(PROTOCOL, 3 * for_each_protocol(120) * scale());
    expect("p-edf under fmlp_long", &system, &config, Duration::from_ms(2), |outcome| {
        check(&system, outcome);
        let judged = judge(&system, &outcome.records);
        println!("{judged:?}");
        let misses: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.misses).collect();
        let late = misses.iter().any(|&misses| misses > 0).then(|| format!("misses {misses:?}"));
        let alone = (judged.delayed == 0).then(|| "no job met an owner".to_owned());
        let order = judged.preempted.or(judged.passed);
        order.or(late).or_else(|| unfinished(&system, &config, outcome)).or(alone)
    });
}

/// Other schedules of the same tasks are found wrong: owners that inherit, and the order of fixed priorities. Where
/// other programs disturb the jobs, a run may show neither.
#[test]
fn other_orders_are_noticed() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sharing();
    let config = RunConfig::new(PROTOCOL, Duration::from_ms(400 * scale()));
    // The owner `c` has a low priority now.
    let tasks = system.tasks().iter().map(|task| {
        let level = lockwright_model::Priority::base(4 - task.priority.level());
        Task { priority: level, ..task.clone() }
    });
    let inherits = system.with_tasks(tasks.collect()).expect("valid").under(Scheduler::PFp);
    let shows = |other: &System, is_noticed: fn(&Judged) -> bool| {
        (0..10).any(|_| is_noticed(&judge(&system, &run_with(other, &config).records)))
    };
    assert!(shows(&inherits, |judged| judged.preempted.is_some()), "owners that are preempted are noticed");
    let fixed = system.clone().under(Scheduler::PFp);
    assert!(shows(&fixed, |judged| judged.passed.is_some()), "fixed priorities are noticed");
}

/// Most jobs wait when the run is stopped.
#[test]
fn a_stop_ends_all_waiting_jobs() {
    let Some(_machine) = require_cpus(2) else { return };
    let tasks = (0..8).map(|index| {
        let on = ResourceId::new(index % 2);
        let body = if index < 6 { section(on, 100_000).into() } else { vec![run_us(400_000)] };
        let cpu = index / 2 % 2;
        let task = task(&format!("t{index}"), cpu, 1, 1_000_000 + 50_000 * index as u64, body);
        Task { offset: us(1_000 * (7 - index as u64)), ..task }
    });
    let system = system(2, 2, tasks.collect()).under(Scheduler::PEdf);
    let outcome = run_until_under(&system, PROTOCOL, Duration::from_ms(60));
    assert_eq!((outcome.ended, outcome.dropped), (Ended::Interrupted, 0));
    assert_eq!(violated(&system, PROTOCOL, &outcome.records), None);
    let of = |is: fn(&Event) -> bool| outcome.records.iter().filter(|record| is(&record.event)).count();
    let acquired = of(|event| matches!(event, Event::Acquire(_)));
    assert_eq!(acquired, of(|event| matches!(event, Event::Release(_))), "no resource is left locked");
    let finished = of(|event| *event == Event::Finish);
    assert!(acquired > 0 && finished < 8, "jobs wait: {finished} of 8 have finished");
}
