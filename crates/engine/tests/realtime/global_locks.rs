//! Runs under `g-edf` with locks of the FMLP, on two CPUs: deadlines, the order of jobs, sections, stops and late jobs.
//!
//! The order is judged from the records of a run, see [`Judged`].

use crate::order::{Promise, turns, waits, with_turns};
use crate::support::{
    R, expect, fault as violated, for_each_protocol, require_cpus, run_until_under, run_us, run_with, scale, system,
    task, unfinished, us,
};
use lockwright_engine::{Control, Ended, Outcome, RunConfig, RunError, run};
use lockwright_model::{Duration, Event, Instant, Protocol, Record, ResourceId, Scheduler, Step, System, Task, TaskId};

const BOTH: [Protocol; 2] = [Protocol::FmlpShort, Protocol::FmlpLong];
const OTHER: ResourceId = ResourceId(1);

/// The time after which a job must have been preempted.
fn latency() -> Duration {
    ms(scale())
}

fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

fn section(on: ResourceId, time: u64) -> [Step; 3] {
    [Step::Lock(on), run_us(time), Step::Unlock(on)]
}

/// The observations in the records of a run. The m most urgent jobs that do not wait for a long resource are *first*.
#[derive(Default, Debug)]
struct Judged {
    /// A job that was first did not execute for more than [`latency`], while one that was not first and could be
    /// preempted did. It was not that for each such first job another one was in a short section, or spun for one.
    passed: Option<String>,
    /// A job executed as one of the first, remained among them, and then waited for more than [`latency`] for one that
    /// was not preempted.
    again: Option<String>,
    /// A job in a short section did not execute for more than [`latency`].
    preempted: Option<String>,
    /// The number of jobs that waited for longer than [`latency`] for one that was not preempted.
    delayed: usize,
    /// The number of jobs that executed because of an inherited deadline.
    inherited: usize,
}

impl Judged {
    fn fault(&self) -> Option<String> {
        [&self.passed, &self.again, &self.preempted].into_iter().flatten().next().cloned()
    }
}

/// The state of a task in the records.
#[derive(Clone, Default)]
struct Now {
    /// The arrivals of its unfinished jobs.
    arrivals: Vec<Instant>,
    executes: bool,
    /// The resource that it requested and has not released, and when, or the beginning if it owns it.
    asked: Option<(ResourceId, Instant)>,
    /// It has executed since it is first.
    has_executed: bool,
    passed: Duration,
    behind: Duration,
    again: Duration,
    preempted: Duration,
}

fn judge(system: &System, protocol: Protocol, records: &[Record]) -> Judged {
    let mut judged = Judged::default();
    let mut all = vec![Now::default(); system.tasks().len()];
    let is_short = |on: ResourceId| system.protocol_of(on, protocol) == Protocol::FmlpShort;
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
                (own.passed, own.behind, own.again) = Default::default();
                own.has_executed = false;
            }
            Event::Request(on) => own.asked = Some((on, record.at)),
            Event::Acquire(on) => own.asked = Some((on, Instant::ZERO)),
            Event::Release(_) => own.asked = None,
            _ => {}
        }
        if elapsed == Duration::ZERO {
            continue;
        }
        let key = |task: usize| Some((*all[task].arrivals.first()? + system.tasks()[task].deadline, task));
        let tasks = || 0..all.len();
        // A grant is recorded when the new owner executes. Until then, the first request counts as the owner's.
        let asked_long = |task: usize| all[task].asked.filter(|&(on, _)| !is_short(on));
        let users = |on: ResourceId| tasks().filter(move |&task| asked_long(task).is_some_and(|(own, _)| own == on));
        let owner = |on: ResourceId| users(on).min_by_key(|&task| all[task].asked.map(|(_, at)| at));
        let waits = |task: usize| asked_long(task).is_some_and(|(on, _)| owner(on) != Some(task));
        let effective = |task: usize| match asked_long(task) {
            Some((on, _)) if owner(on) == Some(task) => users(on).filter_map(key).min(),
            _ => key(task),
        };
        let mut pending: Vec<_> =
            tasks().filter(|&task| !waits(task)).filter_map(|task| Some((effective(task)?, task))).collect();
        pending.sort_unstable();
        let first: Vec<usize> = pending.iter().take(system.cpus()).map(|&(_, task)| task).collect();
        let kept = |task: usize| all[task].executes && all[task].asked.is_some_and(|(on, _)| is_short(on));
        let in_the_way = tasks().filter(|&task| kept(task) && !first.contains(&task)).count();
        let idle: Vec<usize> = first.iter().copied().filter(|&task| !all[task].executes).collect();
        let is_wrong = |task: usize| all[task].executes && !first.contains(&task) && !kept(task);
        let has_wrong = tasks().any(is_wrong);
        let by_own: Vec<usize> = {
            let mut own: Vec<_> = pending.iter().filter_map(|&(_, task)| Some((key(task)?, task))).collect();
            own.sort_unstable();
            own.into_iter().take(system.cpus()).map(|(_, task)| task).collect()
        };
        judged.inherited += first.iter().filter(|task| all[**task].executes && !by_own.contains(task)).count();
        for (task, now) in all.iter_mut().enumerate() {
            if !first.contains(&task) {
                (now.has_executed, now.passed, now.again) = (false, Duration::ZERO, Duration::ZERO);
            } else if now.executes {
                now.has_executed = true;
                (now.passed, now.again) = (Duration::ZERO, Duration::ZERO);
            } else if idle.len() > in_the_way {
                now.passed += if has_wrong { elapsed } else { Duration::ZERO };
            } else {
                now.behind += elapsed;
                now.again += if now.has_executed { elapsed } else { Duration::ZERO };
            }
            let is_inside = now.asked.is_some_and(|(on, since)| is_short(on) && since == Instant::ZERO);
            now.preempted = if is_inside && !now.executes { now.preempted + elapsed } else { Duration::ZERO };
            let name = || format!("`{}` at {}", system.tasks()[task].name, record.at);
            if now.preempted > latency() {
                judged.preempted.get_or_insert_with(|| format!("{} was preempted in a section", name()));
            }
            if now.passed > latency() {
                judged.passed.get_or_insert_with(|| format!("{} was passed", name()));
            }
            if now.again > latency() {
                judged.again.get_or_insert_with(|| format!("{} waited again", name()));
            }
        }
    }
    judged
}

/// Whether no wait was overtaken.
fn out_of_order(system: &System, protocol: Protocol, outcome: &Outcome) -> Option<String> {
    let turns = turns(system, outcome, protocol)?;
    system.resource_ids().find_map(|resource| {
        let seen = waits(system, protocol, &turns, resource);
        (seen.against(Promise::Fifo) > 0).then(|| format!("{resource:?}: {seen:?}"))
    })
}

/// What must hold of each run, however slow the machine is.
fn check(system: &System, protocol: Protocol, outcome: &Outcome) {
    assert_eq!(violated(system, protocol, &outcome.records), None, "{protocol}");
    assert_eq!(out_of_order(system, protocol, outcome), None, "{protocol}");
}

/// Seven tasks of utilization 1.5 that share two resources.
fn sharing() -> System {
    let with = |parts: &[&[Step]]| parts.concat();
    let stretch = scale();
    let run = |time| run_us(time * stretch);
    let lock = |on, time| section(on, time * stretch);
    let of = |name: &str, index: u32, period: u64, offset: u64, body| Task {
        offset: us(offset * stretch),
        ..task(name, 0, 1 + index, period * stretch, body)
    };
    let tasks = vec![
        of("a", 0, 15_000, 3_000, with(&[&[run(500)], &lock(R, 1_000), &[run(500)]])),
        of("b", 1, 20_000, 1_000, with(&[&lock(OTHER, 1_500), &[run(1_500)]])),
        of("c", 2, 31_000, 2_000, with(&[&[run(2_000)], &lock(R, 2_500), &[run(1_000)]])),
        of("d", 3, 43_000, 0, with(&[&lock(OTHER, 3_000), &[run(3_000)], &lock(R, 2_000)])),
        of("e", 4, 61_000, 0, with(&[&lock(R, 8_000), &[run(4_000)]])),
        of("f", 5, 87_000, 0, with(&[&[run(6_000)], &lock(OTHER, 7_000), &[run(2_000)]])),
        of("g", 6, 120_000, 0, vec![run(14_000)]),
    ];
    system(2, 2, tasks).under(Scheduler::GEdf)
}

#[test]
fn jobs_execute_in_the_order_of_their_deadlines() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = sharing();
    for protocol in BOTH {
        let config = with_turns(protocol, 3 * for_each_protocol(120) * scale());
        expect(&format!("g-edf under {protocol}"), &system, &config, ms(2), |outcome| {
            check(&system, protocol, outcome);
            let judged = judge(&system, protocol, &outcome.records);
            println!("{protocol}: {judged:?}");
            let misses: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.misses).collect();
            let late = misses.iter().any(|&misses| misses > 0).then(|| format!("misses {misses:?}"));
            let met = if protocol == Protocol::FmlpShort { judged.delayed } else { judged.inherited };
            let alone = (met == 0).then(|| "sections do not meet".to_owned());
            judged.fault().or(late).or_else(|| unfinished(&system, &config, outcome)).or(alone)
        });
    }
}

/// The same tasks in another order are found wrong.
#[test]
fn other_orders_are_noticed() {
    let Some(_machine) = require_cpus(2) else { return };
    let of_length = |protocol| RunConfig::new(protocol, ms(360 * scale()));
    // By fixed priorities that are against the deadlines.
    let system = sharing();
    let clustered = system.clone().under(Scheduler::PFp).in_clusters(&[0b11; 7]).expect("one cluster");
    let outcome = run_with(&clustered, &of_length(Protocol::Omlp));
    let judged = judge(&system, Protocol::FmlpLong, &outcome.records);
    assert!(judged.passed.is_some(), "fixed priorities are noticed: {judged:?}");
    // Sections that are preempted, and sections that are not.
    let long = run_with(&system, &of_length(Protocol::FmlpLong));
    let judged = judge(&system, Protocol::FmlpShort, &long.records);
    assert!(judged.passed.is_some(), "waiters that do not spin are noticed: {judged:?}");
    let short = run_with(&system, &of_length(Protocol::FmlpShort));
    let judged = judge(&system, Protocol::FmlpLong, &short.records);
    assert!(judged.passed.is_some(), "waiters that spin are noticed: {judged:?}");
}

/// Both protocols in one system, and an object.
#[test]
fn both_locks_and_objects_are_executed_together() {
    let Some(_machine) = require_cpus(2) else { return };
    let body = |own| {
        [
            vec![run_us(own)],
            section(R, 300).into(),
            vec![run_us(own)],
            section(OTHER, 200).into(),
            section(ResourceId(2), 100).into(),
        ]
        .concat()
    };
    let tasks = (0..6).map(|index| {
        let period = (8_000 + 1_000 * index) * scale();
        Task { offset: us(100 * index), ..task(&format!("t{index}"), 0, 1 + index as u32, period, body(300)) }
    });
    let plain = system(2, 3, tasks.collect());
    let of = |protocols: [Protocol; 3]| {
        let mut resources = plain.resources().to_vec();
        resources.iter_mut().zip(protocols).for_each(|(resource, own)| resource.protocol = Some(own));
        System::new("mixed".into(), 2, None, resources, plain.tasks().to_vec()).expect("valid").under(Scheduler::GEdf)
    };
    let mixed = of([Protocol::FmlpShort, Protocol::FmlpLong, Protocol::LockFree]);
    let config = RunConfig::new(Protocol::FmlpShort, ms(400 * scale()));
    expect("both locks", &mixed, &config, ms(2), |outcome| unfinished(&mixed, &config, outcome));
    // A wait for a plain mutex is not known to the scheduler.
    for other in [Protocol::None, Protocol::Mpcp] {
        let refused = run(&of([Protocol::FmlpShort, other, Protocol::LockFree]), &config, &Control::new());
        assert_eq!(refused.err(), Some(RunError::NotByDeadlines { resource: OTHER, protocol: other }));
    }
}

/// Most jobs wait when the run is stopped.
#[test]
fn a_stop_ends_all_waiting_jobs() {
    let Some(_machine) = require_cpus(2) else { return };
    for protocol in BOTH {
        let tasks = (0..12).map(|index| {
            let on = ResourceId::new(index % 2);
            let body = if index < 8 { section(on, 100_000).into() } else { vec![run_us(400_000)] };
            let task = task(&format!("t{index}"), 0, 1, 1_000_000 + 50_000 * index as u64, body);
            Task { offset: us(1_000 * (11 - index as u64)), ..task }
        });
        let system = system(2, 2, tasks.collect()).under(Scheduler::GEdf);
        let outcome = run_until_under(&system, protocol, ms(60));
        assert_eq!((outcome.ended, outcome.dropped), (Ended::Interrupted, 0));
        assert_eq!(violated(&system, protocol, &outcome.records), None);
        let owned = |event: fn(ResourceId) -> Event| {
            outcome.records.iter().filter(|record| (0..2).any(|on| record.event == event(ResourceId(on)))).count()
        };
        assert_eq!(owned(Event::Acquire), owned(Event::Release), "no resource is left locked");
        let finished = outcome.records.iter().filter(|record| record.event == Event::Finish).count();
        assert!(owned(Event::Acquire) > 0 && finished < 12, "jobs wait: {finished} of 12 have finished");
        println!("{protocol}: ended after {}", outcome.elapsed);
    }
}

/// Utilization 2.4 of two CPUs: jobs are late, also for their next release, and keep their deadlines.
#[test]
fn late_jobs_keep_their_order() {
    let Some(_machine) = require_cpus(2) else { return };
    let stretch = scale();
    let body = |ms: u64| {
        [vec![run_us(500)], section(R, 1_000 * ms * stretch).into(), vec![run_us(3_000 * ms * stretch)]].concat()
    };
    let tasks = (0..4_u64).map(|index| {
        let period = 20_000 + 3_000 * index;
        task(&format!("t{index}"), 0, 1, period * stretch, body(3 + index % 2))
    });
    let system = system(2, 1, tasks.collect()).under(Scheduler::GEdf);
    for protocol in BOTH {
        let config = with_turns(protocol, 240 * stretch);
        expect("late jobs", &system, &config, ms(2), |outcome| {
            check(&system, protocol, outcome);
            let misses: u64 = outcome.tasks.iter().map(|task| task.observation.misses).sum();
            assert!(misses > 0, "the CPUs are overloaded");
            let judged = judge(&system, protocol, &outcome.records);
            println!("{protocol}: {judged:?}");
            judged.passed
        });
    }
}

/// Negative controls of the judgement, in milliseconds. The relative deadlines are 100, 110, 120 and 130.
#[test]
fn each_wrong_order_is_noticed() {
    let tasks = (0..4).map(|index| {
        let body = [section(R, 5_000 * scale()), section(OTHER, 5_000 * scale())].concat();
        task(&format!("t{index}"), 0, 1, (100_000 + 10_000 * index) * scale(), body)
    });
    let system = system(2, 2, tasks.collect()).under(Scheduler::GEdf);
    let judged = |protocol, events: &[(u64, u16, Event)]| {
        let record =
            |&(at, task, event)| Record { at: Instant::from_ns(at * 1_000_000 * scale()), task: TaskId(task), event };
        judge(&system, protocol, &events.iter().map(record).collect::<Vec<_>>())
    };
    let (arrives, runs, stops, ends) = (Event::Arrive, Event::Run, Event::Stop, Event::Finish);
    let (asks, owns, leaves) = (Event::Request(R), Event::Acquire(R), Event::Release(R));
    let begin = [(0, 3, arrives), (0, 3, runs), (0, 3, asks), (0, 3, owns), (1, 2, arrives), (1, 2, runs)];
    let of = |rest: &[(u64, u16, Event)]| [&begin[..], rest].concat();
    // The first job waits for the section of the last one, and the third one continues.
    let waits = of(&[
        (2, 0, arrives),
        (6, 3, leaves),
        (6, 3, stops),
        (6, 0, runs),
        (8, 0, ends),
        (8, 0, stops),
        (8, 3, runs),
        (9, 3, ends),
    ]);
    let right = judged(Protocol::FmlpShort, &waits);
    assert_eq!((right.fault(), right.delayed), (None, 1), "{right:?}");
    assert!(judged(Protocol::FmlpLong, &waits).passed.is_some(), "a long section is preempted");
    // It waits for a job outside sections as well.
    let free = judged(Protocol::FmlpShort, &of(&[(2, 0, arrives), (6, 3, leaves), (9, 3, ends)]));
    assert!(free.passed.is_some(), "{free:?}");
    // The first job takes the CPU of the third one, which is among the first and has executed.
    let takes =
        [(2, 0, arrives), (2, 2, stops), (2, 0, runs), (6, 3, leaves), (6, 3, stops), (6, 2, runs), (8, 0, ends)];
    let again = judged(Protocol::FmlpShort, &of(&takes));
    assert!(again.again.is_some() && again.passed.is_none(), "{again:?}");
    // The owner inherits the deadline of the first job, or does not.
    let waits = of(&[(2, 0, arrives), (2, 3, stops), (2, 0, runs), (3, 0, asks), (3, 0, stops), (3, 3, runs)]);
    let heir =
        [(4, 1, arrives), (4, 2, stops), (4, 1, runs), (7, 3, leaves), (7, 3, stops), (7, 0, owns), (7, 0, runs)];
    let inside = of(&[(2, 0, arrives), (2, 0, runs), (2, 3, stops), (5, 0, ends), (5, 0, stops), (5, 3, runs)]);
    assert!(judged(Protocol::FmlpShort, &[&inside[..], &[(6, 3, leaves)]].concat()).preempted.is_some());
    let right = judged(Protocol::FmlpLong, &[&waits[..], &heir, &[(9, 0, leaves), (9, 1, ends)]].concat());
    assert!(right.fault().is_none() && right.inherited > 0, "{right:?}");
    let none = [(4, 1, arrives), (4, 3, stops), (4, 1, runs), (9, 2, ends)];
    let alone = [&waits[..], &none].concat();
    assert!(judged(Protocol::FmlpLong, &alone).passed.is_some(), "without inheritance");
}
