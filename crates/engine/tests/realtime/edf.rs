//! Runs under `p-edf`: deadlines, the order of jobs, sections, stops and late jobs.
//!
//! The order is judged from the records of a run, see [`Judged`].

use crate::support::{
    R, expect, fault as violated, require_cpus, require_realtime, run_ms, run_until, run_us, system, task, unfinished,
    us,
};
use lockwright_engine::{Control, Ended, Outcome, PriorityChange, RunConfig, RunError};
use lockwright_model::{
    Duration, Event, Instant, Priority, Protocol, Record, ResourceId, Scheduler, Step, System, TaskId, format,
};

/// The time after which a job must have been preempted.
const LATENCY: Duration = Duration::from_ms(1);

/// The least part of a section that counts as a delay: the rest is a race with an arrival.
const PART: Duration = Duration::from_us(250);

/// A job in the records, by its position among the jobs of its task.
struct Job {
    task: usize,
    /// The deadline; of equal ones, that of the task with the lower id is earlier.
    key: (Instant, usize),
    arrived: usize,
    /// The place of the record with which it begins to execute. A job that waits to start executes for a moment when it
    /// arrives, which does not count.
    begun: Option<usize>,
    finished: Option<usize>,
}

/// The observations in the records of a run under `p-edf`.
#[derive(Default, Debug)]
struct Judged {
    /// From the order of records alone: a job began although one with an earlier deadline had arrived, and finished
    /// before it.
    passed: Option<String>,
    /// A job executed outside sections for more than [`LATENCY`], while one with an earlier deadline was ready.
    free: Option<String>,
    /// A job was delayed by sections of two jobs with later deadlines, or by two sections of one.
    twice: Option<String>,
    /// The number of jobs that one such section delayed for more than [`LATENCY`].
    blocked: usize,
}

impl Judged {
    fn fault(&self) -> Option<String> {
        [&self.passed, &self.free, &self.twice].into_iter().flatten().next().cloned()
    }
}

fn jobs(system: &System, records: &[Record]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for task in 0..system.tasks().len() {
        let of_task = || records.iter().enumerate().filter(move |(_, record)| record.task.index() == task);
        let arrivals = of_task().filter(|(_, record)| record.event == Event::Arrive);
        let finishes: Vec<usize> =
            of_task().filter(|(_, record)| record.event == Event::Finish).map(|(place, _)| place).collect();
        let own: Vec<(usize, &Record)> = of_task().collect();
        for (number, (arrived, record)) in arrivals.enumerate() {
            let after =
                arrived.max(number.checked_sub(1).map_or(0, |last| finishes.get(last).copied().unwrap_or(usize::MAX)));
            let executes = |pair: &&[(usize, &Record)]| {
                let [(place, from), (_, next)] = pair else { return false };
                let is_moment = next.event == Event::Stop && next.at == from.at;
                *place > after && from.event == Event::Run && !is_moment
            };
            let begun = own.windows(2).find(executes).map(|pair| pair[0].0);
            let key = (record.at + system.tasks()[task].deadline, task);
            jobs.push(Job { task, key, arrived, begun, finished: finishes.get(number).copied() });
        }
    }
    jobs
}

fn judge(system: &System, records: &[Record]) -> Judged {
    let jobs = jobs(system, records);
    let cpu = |job: &Job| system.tasks()[job.task].cpu;
    let name = |job: &Job| format!("`{}` due at {}", system.tasks()[job.task].name, job.key.0);
    let mut judged = Judged::default();
    for late in &jobs {
        for early in jobs.iter().filter(|early| cpu(early) == cpu(late) && early.key < late.key) {
            let (Some(begun), Some(finished)) = (late.begun, late.finished) else { continue };
            if early.arrived < begun && early.finished.is_none_or(|early| finished < early) {
                judged.passed.get_or_insert(format!("{} passed {}", name(late), name(early)));
            }
        }
    }
    // For each task: whether it executes, the resources that it requested and has not released, its sections so far,
    // and the jobs that it finished.
    let count = system.tasks().len();
    let (mut runs, mut open, mut sections, mut done) =
        (vec![false; count], vec![0_u32; count], vec![0_u32; count], vec![0_usize; count]);
    // By job: execution of jobs with later deadlines on its CPU instead of it, outside sections and by section.
    let mut free = vec![Duration::ZERO; jobs.len()];
    let mut inside: Vec<Vec<((usize, u32), Duration)>> = vec![Vec::new(); jobs.len()];
    for (place, pair) in records.windows(2).enumerate() {
        let (record, elapsed) = (pair[0], pair[1].at.since(pair[0].at));
        let own = record.task.index();
        match record.event {
            Event::Run => runs[own] = true,
            Event::Stop => runs[own] = false,
            Event::Request(_) => {
                sections[own] += u32::from(open[own] == 0);
                open[own] += 1;
            }
            Event::Release(_) => open[own] = open[own].saturating_sub(1),
            Event::Finish => done[own] += 1,
            _ => {}
        }
        if elapsed == Duration::ZERO {
            continue;
        }
        for (index, job) in jobs.iter().enumerate() {
            if job.arrived > place || job.finished.is_some_and(|finished| finished <= place) || runs[job.task] {
                continue;
            }
            for task in (0..count).filter(|&task| runs[task] && system.tasks()[task].cpu == cpu(job)) {
                let executing = jobs.iter().filter(|other| other.task == task).nth(done[task]);
                if executing.is_none_or(|other| other.key <= job.key) {
                    continue;
                }
                if open[task] == 0 {
                    free[index] += elapsed;
                    continue;
                }
                match inside[index].iter_mut().find(|(section, _)| *section == (task, sections[task])) {
                    Some((_, total)) => *total += elapsed,
                    None => inside[index].push(((task, sections[task]), elapsed)),
                }
            }
        }
    }
    for (index, job) in jobs.iter().enumerate() {
        let delays = inside[index].iter().filter(|(_, total)| *total > PART).count();
        if free[index] > LATENCY {
            judged.free.get_or_insert(format!("{} waited while a later job executed for {}", name(job), free[index]));
        }
        if delays > 1 {
            judged.twice.get_or_insert(format!("{} was delayed by {delays} sections", name(job)));
        }
        judged.blocked += usize::from(inside[index].iter().any(|(_, total)| *total > LATENCY));
    }
    judged
}

/// Requires that a run meets every deadline in the right order.
fn meets_every_deadline(name: &str, system: &System, ms: u64, harmless: Duration) {
    let config = RunConfig::new(Protocol::None, Duration::from_ms(ms));
    expect(name, system, &config, harmless, |outcome| {
        assert_eq!(violated(system, Protocol::Srp, &outcome.records), None);
        let misses: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.misses).collect();
        let late = misses.iter().any(|&misses| misses > 0).then(|| format!("misses {misses:?}"));
        late.or_else(|| unfinished(system, &config, outcome)).or_else(|| judge(system, &outcome.records).fault())
    });
}

fn example(name: &str) -> System {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).expect("the example exists");
    format::parse_system_bytes(&text).expect("the example is valid").under(Scheduler::PEdf)
}

#[test]
fn pathfinder_meets_every_deadline() {
    let Some(_machine) = require_realtime() else { return };
    meets_every_deadline("pathfinder", &example("pathfinder"), 400, Duration::from_ms(10));
}

#[test]
fn the_robot_meets_every_deadline() {
    let Some(_machine) = require_cpus(2) else { return };
    meets_every_deadline("robot", &example("robot"), 400, us(1_500));
}

/// Utilization 0.93. By fixed priorities, in either order, a job is late: the second one takes 39 + 2 * 20 > 75 ms, or
/// the first one 39 + 20 > 50 ms.
fn only_by_deadlines() -> System {
    let body = |ms| vec![Step::Run(Duration::from_ms(ms))];
    let tasks = vec![
        task("short", 0, 3, 50_000, body(20)),
        task("long", 0, 2, 75_000, body(39)),
        task("rare", 0, 1, 150_000, body(1)),
    ];
    system(1, 0, tasks)
}

#[test]
fn a_system_that_fixed_priorities_miss_meets_every_deadline() {
    let Some(_machine) = require_realtime() else { return };
    let fixed = only_by_deadlines();
    let outcome = run_ms(&fixed, Protocol::None, 450);
    let misses: u64 = outcome.tasks.iter().map(|task| task.observation.misses).sum();
    assert!(misses > 0, "fixed priorities miss");
    // The order by fixed priorities is not that of the deadlines.
    let judged = judge(&fixed, &outcome.records);
    println!("by fixed priorities: {misses} misses, {judged:?}");
    assert!(judged.passed.is_some(), "the order by fixed priorities is noticed");
    meets_every_deadline("only by deadlines", &fixed.under(Scheduler::PEdf), 450, Duration::from_ms(5));
}

/// The least urgent task holds both resources while the others arrive.
#[test]
fn a_job_is_blocked_by_at_most_one_section() {
    let Some(_machine) = require_realtime() else { return };
    let section =
        |on: u16, ms| [Step::Lock(ResourceId(on)), Step::Run(Duration::from_ms(ms)), Step::Unlock(ResourceId(on))];
    let mut tasks = vec![
        task("first", 0, 1, 30_000, [section(0, 1), section(1, 1)].concat()),
        task("second", 0, 1, 40_000, section(1, 2).into()),
        task("third", 0, 1, 60_000, section(0, 4).into()),
        task("last", 0, 1, 80_000, [section(0, 6), section(1, 6), section(0, 6)].concat()),
    ];
    (tasks[0].offset, tasks[1].offset, tasks[2].offset) = (us(7_000), us(3_000), us(1_000));
    let system = system(1, 2, tasks).under(Scheduler::PEdf);
    meets_every_deadline("sections", &system, 480, Duration::from_ms(2));
    let judged = judge(&system, &run_ms(&system, Protocol::None, 480).records);
    println!("{judged:?}");
    assert!(judged.blocked > 3, "sections meet: {judged:?}");
}

/// Tasks of two CPUs share the first resource, and those of the first CPU the second.
fn on_two_cpus() -> System {
    let (near, far) = (ResourceId(1), R);
    let near = || [Step::Lock(near), run_us(1_500), Step::Unlock(near)];
    let far = || [Step::Lock(far), run_us(400), Step::Unlock(far)];
    let with = |parts: &[&[Step]]| parts.concat();
    let tasks = vec![
        task("a", 0, 1, 5_000, with(&[&[run_us(100)], &far()])),
        task("b", 0, 1, 12_000, with(&[&far(), &near(), &[run_us(500)]])),
        task("c", 0, 1, 30_000, with(&[&near(), &far(), &near(), &[run_us(1_000)]])),
        task("d", 1, 1, 2_000, with(&[&[run_us(100)], &far()])),
        task("e", 1, 1, 9_000, with(&[&far(), &[run_us(900)], &far()])),
    ];
    system(2, 2, tasks).under(Scheduler::PEdf)
}

#[test]
fn resources_of_several_cpus_exclude_and_end() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = on_two_cpus();
    meets_every_deadline("two CPUs", &system, 400, us(1_000));
    let outcome = run_ms(&system, Protocol::None, 400);
    let waited = outcome.tasks.iter().filter(|task| task.observation.lock_wait > Some(us(50))).count();
    assert!(waited > 0, "tasks of the CPUs meet");
}

/// Most jobs wait when the run is stopped.
#[test]
fn a_stop_ends_all_waiting_jobs() {
    let Some(_machine) = require_cpus(2) else { return };
    let section = |on| [Step::Lock(ResourceId(on)), Step::Run(Duration::from_ms(400)), Step::Unlock(ResourceId(on))];
    let tasks = (0..12).map(|index| {
        let cpu = index % 2;
        let body = if index < 8 { section(cpu as u16).into() } else { vec![Step::Run(Duration::from_ms(400))] };
        task(&format!("t{index}"), cpu, 1, 1_000_000 + 50_000 * index as u64, body)
    });
    let system = system(2, 2, tasks.collect()).under(Scheduler::PEdf);
    let outcome = run_until(&system, Duration::from_ms(60));
    assert_eq!((outcome.ended, outcome.dropped), (Ended::Interrupted, 0));
    assert_eq!(violated(&system, Protocol::Srp, &outcome.records), None);
    let owned = |event: fn(ResourceId) -> Event| {
        outcome.records.iter().filter(|record| (0..2).any(|on| record.event == event(ResourceId(on)))).count()
    };
    assert_eq!(owned(Event::Acquire), owned(Event::Release), "no resource is left locked");
    let finished = outcome.records.iter().filter(|record| record.event == Event::Finish).count();
    assert!(owned(Event::Acquire) > 0 && finished < 12, "jobs wait: {finished} of 12 have finished");
    println!("ended after {}", outcome.elapsed);
}

/// Utilization 1.05: jobs are late, also for their next release, and keep their deadlines.
#[test]
fn late_jobs_keep_their_order() {
    let Some(_machine) = require_realtime() else { return };
    let body = |ms| vec![run_us(500), Step::Lock(R), Step::Run(Duration::from_ms(ms)), Step::Unlock(R)];
    let tasks = vec![task("often", 0, 1, 20_000, body(10)), task("seldom", 0, 1, 30_000, body(15))];
    let system = system(1, 1, tasks).under(Scheduler::PEdf);
    let config = RunConfig::new(Protocol::None, Duration::from_ms(240));
    expect("late jobs", &system, &config, Duration::from_ms(5), |outcome: &Outcome| {
        assert_eq!(violated(&system, Protocol::Srp, &outcome.records), None);
        let misses: u64 = outcome.tasks.iter().map(|task| task.observation.misses).sum();
        let fault = unfinished(&system, &config, outcome).or_else(|| judge(&system, &outcome.records).fault());
        fault.or_else(|| (misses == 0).then(|| "no job is late, though the CPU is overloaded".into()))
    });
}

#[test]
fn base_priorities_do_not_change() {
    let Some(_machine) = require_realtime() else { return };
    let system = only_by_deadlines().under(Scheduler::PEdf);
    let mut config = RunConfig::new(Protocol::None, Duration::from_ms(10));
    config.changes = vec![PriorityChange { at: Instant::ZERO, task: TaskId(0), priority: Priority::base(1) }];
    let refused = lockwright_engine::run(&system, &config, &Control::new()).expect_err("a refusal");
    assert_eq!(refused, RunError::NoPriorities(TaskId(0)));
}

/// Negative controls of the judgement, in milliseconds. The second task has the longer period.
#[test]
fn each_wrong_order_is_noticed() {
    let section = [Step::Lock(R), run_us(5_000), Step::Unlock(R)];
    let tasks =
        vec![task("short", 0, 2, 50_000, section.into()), task("long", 0, 1, 75_000, [section, section].concat())];
    let system = system(1, 1, tasks).under(Scheduler::PEdf);
    let judged = |events: &[(u64, u16, Event)]| {
        let record = |&(at, task, event)| Record { at: Instant::from_ns(at * 1_000_000), task: TaskId(task), event };
        judge(&system, &events.iter().map(record).collect::<Vec<_>>())
    };
    let (asks, owns, ends) = (Event::Request(R), Event::Acquire(R), Event::Release(R));
    let (arrives, runs, stops, finishes) = (Event::Arrive, Event::Run, Event::Stop, Event::Finish);
    // The short job is held by a section that has begun.
    let right = judged(&[
        (0, 1, arrives),
        (0, 1, runs),
        (0, 1, asks),
        (0, 1, owns),
        (2, 0, arrives),
        (2, 0, runs),
        (2, 0, stops),
        (5, 1, ends),
        (5, 1, stops),
        (5, 0, runs),
        (6, 0, finishes),
        (6, 0, stops),
        (6, 1, runs),
        (8, 1, finishes),
        (8, 1, stops),
    ]);
    assert_eq!((right.fault(), right.blocked), (None, 1));
    // It waits for the whole job.
    let free = judged(&[
        (0, 1, arrives),
        (0, 1, runs),
        (2, 0, arrives),
        (2, 0, runs),
        (2, 0, stops),
        (5, 1, finishes),
        (5, 1, stops),
        (5, 0, runs),
        (6, 0, finishes),
        (6, 0, stops),
    ]);
    assert!(free.free.is_some() && free.passed.is_none(), "{free:?}");
    // It has started, and waits for the other job later.
    let outrun = judged(&[
        (0, 0, arrives),
        (0, 1, arrives),
        (0, 0, runs),
        (1, 0, stops),
        (1, 1, runs),
        (5, 1, stops),
        (5, 0, runs),
        (6, 0, finishes),
        (6, 0, stops),
        (6, 1, runs),
        (7, 1, finishes),
        (7, 1, stops),
    ]);
    assert!(outrun.free.is_some() && outrun.passed.is_none(), "{outrun:?}");
    // It waits for two sections.
    let twice = judged(&[
        (0, 1, arrives),
        (0, 1, runs),
        (0, 1, asks),
        (0, 1, owns),
        (2, 0, arrives),
        (2, 0, runs),
        (2, 0, stops),
        (5, 1, ends),
        (5, 1, asks),
        (5, 1, owns),
        (8, 1, ends),
        (8, 1, stops),
        (8, 0, runs),
        (9, 0, finishes),
        (9, 0, stops),
    ]);
    assert!(twice.twice.is_some() && twice.free.is_none(), "{twice:?}");
    // The long job begins after the short one has arrived, and is before it.
    let passed = judged(&[
        (0, 0, arrives),
        (1, 1, arrives),
        (1, 1, runs),
        (2, 1, finishes),
        (2, 1, stops),
        (2, 0, runs),
        (3, 0, finishes),
        (3, 0, stops),
    ]);
    assert!(passed.passed.is_some(), "{passed:?}");
    // Of equal deadlines, that of the first task is earlier: 50 + 50 and 25 + 75.
    let tie = judged(&[
        (25, 1, arrives),
        (50, 0, arrives),
        (50, 1, runs),
        (51, 1, finishes),
        (51, 1, stops),
        (51, 0, runs),
        (52, 0, finishes),
        (52, 0, stops),
    ]);
    assert!(tie.passed.is_some(), "{tie:?}");
}
