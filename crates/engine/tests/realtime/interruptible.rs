//! `ics` and `ics_lock`: an invalidated section is executed again, and is never committed.

use crate::judge::scale;
use crate::support::{
    R, at, expect, fault, require_cpus, require_realtime, run_ms, run_us, stop_after, system, task, unfinished,
    unsound, us, violation,
};
use lockwright_engine::observe::observe;
use lockwright_engine::{Control, Ended, Outcome, PriorityChange, RunConfig, RunError};
use lockwright_model::{
    Duration, Event, Instant, Priority, Protocol, Record, Resource, ResourceId, Step, System, Task, TaskId,
};

#[test]
fn the_checker_sees_invalidated_sections() {
    let (asks, enters) = (Event::Request(R), Event::Acquire(R));
    let (again, commits) = (Event::Restart(R), Event::Release(R));
    let inside = [at(0, 0, asks), at(1, 0, enters)];
    let other = [at(2, 1, asks), at(3, 1, enters), at(4, 1, commits)];
    let with = |rest: &[Record]| [&inside[..], &other, rest].concat();
    assert_eq!(unsound(&with(&[at(5, 0, again), at(6, 0, commits)])), None);
    assert_eq!(unsound(&with(&[at(6, 0, commits)])), Some(at(6, 0, commits)), "the section was invalidated");
    let twice = [at(5, 0, again), at(6, 0, again)];
    assert_eq!(unsound(&with(&twice)), Some(twice[1]), "no commit since the last restart");
    let elsewhere = Event::Release(ResourceId(1));
    assert_eq!(unsound(&[at(0, 0, commits)]), Some(at(0, 0, commits)));
    assert_eq!(unsound(&with(&[at(5, 1, elsewhere)])), Some(at(5, 1, elsewhere)));
    // A commit between the request and the entry may or may not invalidate the section.
    let between = [at(0, 0, asks), at(2, 1, asks), at(3, 1, enters), at(4, 1, commits), at(5, 0, enters)];
    for last in [&[at(6, 0, commits)][..], &[at(6, 0, again), at(7, 0, commits)]] {
        assert_eq!(unsound(&[&between[..], last].concat()), None);
    }
}

fn section(before: u64, inside: u64) -> Vec<Step> {
    vec![run_us(before), Step::Lock(R), run_us(inside), Step::Unlock(R), run_us(10)]
}

/// One CPU: the least urgent task has a long section, the middle one a shorter one, and the most urgent one a short
/// one.
fn disturbed() -> System {
    system(
        1,
        1,
        vec![
            task("low", 0, 1, 20_000, section(100, 1_500)),
            task("middle", 0, 2, 7_000, section(100, 600)),
            task("high", 0, 3, 3_900, section(20, 150)),
        ],
    )
}

fn restarts(outcome: &Outcome) -> Vec<u64> {
    outcome.tasks.iter().map(|task| task.observation.restarts).collect()
}

#[test]
fn no_task_waits_and_no_invalidated_section_commits() {
    let Some(_machine) = require_realtime() else { return };
    let system = disturbed();
    for protocol in [Protocol::Ics, Protocol::IcsLock] {
        let config = RunConfig::new(protocol, Duration::from_ms(400));
        expect(protocol.name(), &system, &config, us(500), |outcome| {
            let restarts = restarts(outcome);
            println!("{protocol}: invalidated {restarts:?}, {:?}, {} dropped", outcome.ended, outcome.dropped);
            assert_eq!(outcome.dropped, 0, "{protocol}");
            assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
            let read = observe(&system, &outcome.records);
            assert_eq!(read.iter().map(|seen| seen.restarts).collect::<Vec<_>>(), restarts, "{protocol}");
            assert!(restarts[0] > 0 && restarts[2] == 0, "{protocol}: {restarts:?}");
            for task in system.task_ids() {
                let changes = |record: &&Record| record.task == task && matches!(record.event, Event::Priority(_));
                let changed = outcome.records.iter().filter(changes).count() > 0;
                // Of the tasks that lock, only `low` is below the ceiling.
                assert_eq!(changed, protocol == Protocol::IcsLock && task == TaskId(0), "{protocol}, task {}", task.0);
            }
            // Each commit of another task invalidates at most one section of a task.
            let commits = |task: u16| outcome.tasks[usize::from(task)].observation.jobs;
            assert!(restarts[0] <= commits(1) + commits(2) + 2 && restarts[1] <= commits(2) + 1, "{restarts:?}");
            // The mutant: without restarts, the checker rejects the records.
            let kept = |record: &&Record| !matches!(record.event, Event::Restart(_));
            let records: Vec<Record> = outcome.records.iter().filter(kept).copied().collect();
            assert!(unsound(&records).is_some(), "{protocol}");
            if protocol == Protocol::Ics {
                assert!(violation(&outcome.records).is_some(), "no two tasks were in sections at once");
            }
            unfinished(&system, &config, outcome)
        });
    }
}

/// If each task has a resource of its own, nothing is invalidated. The records, rewritten to one resource, are
/// rejected.
#[test]
fn missing_restarts_are_noticed() {
    let Some(_machine) = require_realtime() else { return };
    let mut tasks = disturbed().tasks().to_vec();
    for (index, task) in tasks.iter_mut().enumerate() {
        let own = ResourceId::new(index);
        (task.body[1], task.body[3]) = (Step::Lock(own), Step::Unlock(own));
    }
    let mut outcome = run_ms(&system(1, 3, tasks), Protocol::Ics, 200);
    assert_eq!((unsound(&outcome.records), restarts(&outcome)), (None, vec![0; 3]));
    for record in &mut outcome.records {
        record.event = match record.event {
            Event::Request(_) => Event::Request(R),
            Event::Acquire(_) => Event::Acquire(R),
            Event::Release(_) => Event::Release(R),
            event => event,
        };
    }
    assert!(unsound(&outcome.records).is_some());
}

/// An invalidated section is executed again from its beginning, and takes as long as the first time.
#[test]
fn a_restarted_section_takes_its_time_again() {
    let Some(_machine) = require_realtime() else { return };
    let low = task("low", 0, 1, 200_000, vec![run_us(1_000), Step::Lock(R), run_us(10_000), Step::Unlock(R)]);
    let mut high = task("high", 0, 2, 200_000, vec![Step::Lock(R), run_us(1_000), Step::Unlock(R)]);
    high.offset = us(6_000);
    let system = system(1, 1, vec![low, high]);
    let config = RunConfig::new(Protocol::Ics, Duration::from_ms(100));
    // The section begins 5 ms before the other task arrives.
    expect("ics", &system, &config, us(3_000), |outcome| {
        let order: Vec<_> = outcome
            .records
            .iter()
            .filter_map(|record| match record.event {
                Event::Acquire(_) => Some((record.task.0, "enters")),
                Event::Restart(_) => Some((record.task.0, "again")),
                Event::Release(_) => Some((record.task.0, "commits")),
                _ => None,
            })
            .collect();
        if order != [(0, "enters"), (1, "enters"), (1, "commits"), (0, "again"), (0, "commits")] {
            return Some(format!("{order:?}"));
        }
        assert_eq!(restarts(outcome), [1, 0]);
        let responses: Vec<_> = outcome.tasks.iter().map(|task| task.observation.response).collect();
        // 1 ms, 10 ms invalidated, 10 ms again, and 1 ms of the other task.
        assert!(responses[0] >= Some(us(22_000)), "{responses:?}");
        None
    });
}

/// More urgent tasks keep a section from ever being committed. The run ends as soon as it is stopped, and no section is
/// left open.
#[test]
fn an_uncommitted_section_does_not_delay_the_end() {
    let Some(_machine) = require_cpus(2) else { return };
    let low = task("low", 0, 1, 60_000_000, section(10, 5_000 * scale()));
    let high = task("high", 0, 3, 2_000 * scale(), section(10, 100));
    let least = Step::Run(Duration::from_ns(1));
    let short = task("short", 0, 2, 2_000 * scale(), vec![run_us(10), Step::Lock(R), least, Step::Unlock(R)]);
    // The other CPU is free for the stopper.
    let system = system(1, 1, vec![low, high, short]);
    for protocol in [Protocol::Ics, Protocol::IcsLock] {
        let control = Control::new();
        let stopper = stop_after(Duration::from_ms(100 * scale()), &control);
        let config = RunConfig::new(protocol, Duration::from_ms(60_000));
        let outcome = lockwright_engine::run(&system, &config, &control).expect("a run");
        let (_, stopped) = stopper.join().expect("the stopper ends");
        let restarts = restarts(&outcome);
        let after = outcome.elapsed.saturating_sub(stopped);
        println!("{protocol}: invalidated {restarts:?}, {:?} {after} after the stop", outcome.ended);
        assert!(after < Duration::from_ms(100 * scale()), "{protocol}: {after}");
        assert_eq!((outcome.ended, outcome.tasks[0].observation.jobs), (Ended::Interrupted, 0), "{protocol}");
        assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
        assert!(restarts[0] > 10, "{protocol}: {restarts:?}");
        let count = |event: fn(&Event) -> bool| outcome.records.iter().filter(|record| event(&record.event)).count();
        let entered = count(|event| matches!(event, Event::Acquire(_)));
        assert_eq!(entered, count(|event| matches!(event, Event::Release(_))), "{protocol}");
    }
}

/// Both protocols on two CPUs, while base priorities change, also across the cutoff.
#[test]
fn changes_of_priority_lose_nothing() {
    let Some(_machine) = require_cpus(2) else { return };
    let resources = [Protocol::IcsLock, Protocol::Ics].map(|protocol| {
        let mut resource = Resource::new(protocol.name());
        resource.protocol = Some(protocol);
        // Tasks that lock are below 14, which leaves 13 for their ceiling.
        resource.cutoff = Some(Priority::base(14));
        resource
    });
    let tasks: Vec<Task> = (0..6)
        .map(|index: usize| {
            let mut body = Vec::new();
            for resource in [0, 1, 0].map(ResourceId) {
                body.extend([run_us(10), Step::Lock(resource), run_us(30), Step::Unlock(resource)]);
            }
            task(&format!("t{index}"), index % 2, 10 + index as u32, 1_800 + 180 * index as u64, body)
        })
        .collect();
    let system = System::new("mixed".into(), 2, None, resources.into(), tasks).expect("valid");
    let mut config = RunConfig::new(Protocol::Icpp, Duration::from_ms(300));
    config.changes = (0..600)
        .map(|index: u64| PriorityChange {
            at: Instant::from_ns(index * 480_000),
            task: TaskId::new(index as usize % 6),
            priority: Priority::base(1 + (index * 7 % 20) as u32),
        })
        .collect();
    expect("changes", &system, &config, us(500), |outcome| {
        println!("invalidated {:?}, {:?}", restarts(outcome), outcome.ended);
        assert_eq!(outcome.dropped, 0);
        assert_eq!(unsound(&outcome.records), None);
        unfinished(&system, &config, outcome)
    });
    // From 13 to the cutoff, no ceiling covers the tasks that lock.
    let mut resource = system.resource(R).clone();
    resource.cutoff = Some(Priority::base(18));
    let tasks =
        system.tasks().iter().map(|task| Task { body: section(10, 10), wcet: us(30), ..task.clone() }).collect();
    let system = System::new("gap".into(), 2, None, vec![resource], tasks).expect("valid");
    let refused =
        lockwright_engine::run(&system, &config, &Control::new()).expect_err("16 and 17 are above the ceiling");
    assert!(matches!(refused, RunError::AboveCeiling { resource: R, .. }), "{refused:?}");
}
