//! Many tasks share one resource. At most one holds it, or no invalidated section is committed; no task starves, and
//! the protocol's order is kept.

use crate::judge::tell;
use crate::support::{
    R, acquisitions, as_nested_as, at, expect, fault, for_each_protocol, require_cpus, require_realtime, run_ms,
    run_us, scale, system, task, unfinished, us, violation,
};
use lockwright_engine::{Outcome, RunConfig};
use lockwright_model::{Duration, Event, Mode, Protocol, Record, ResourceId, Step, System, TaskId};
use std::cell::RefCell;

#[test]
fn the_checker_sees_two_holders() {
    let overlap = [
        at(0, 0, Event::Acquire(R)),
        at(5, 1, Event::Acquire(R)),
        at(6, 0, Event::Release(R)),
        at(7, 1, Event::Release(R)),
    ];
    assert_eq!(violation(&overlap), Some(overlap[1]));
    let foreign = [at(0, 0, Event::Acquire(R)), at(1, 1, Event::Release(R))];
    assert_eq!(violation(&foreign), Some(foreign[1]));
    let fine = [overlap[0], overlap[2], at(8, 1, Event::Acquire(R)), at(9, 1, Event::Release(R))];
    assert_eq!(violation(&fine), None);
}

/// The same tasks with a resource each do not exclude each other. Their records, rewritten to one resource, are
/// rejected.
#[test]
fn the_checker_sees_missing_exclusion() {
    let Some(_machine) = require_cpus(2) else { return };
    let tasks = (0..2).map(|index: usize| {
        let own = ResourceId::new(index);
        let body = vec![run_us(20), Step::Lock(own), run_us(300), Step::Unlock(own)];
        task(&format!("t{index}"), index, 1, 1_000, body)
    });
    let mut outcome = run_ms(&system(2, 2, tasks.collect()), Protocol::Pip, 100);
    assert_eq!(violation(&outcome.records), None);
    for record in &mut outcome.records {
        record.event = match record.event {
            Event::Acquire(_) => Event::Acquire(R),
            Event::Release(_) => Event::Release(R),
            event => event,
        };
    }
    assert!(violation(&outcome.records).is_some());
}

/// Three tasks on each of two CPUs share two resources, one nested in the other, and spend most of the time in
/// sections, `scale` times as long as on this machine's own processors. If sections execute on a home CPU, two
/// migrations take longer than a section, so the periods are long enough for the machine to keep up.
fn contended(protocol: Protocol, scale: u64) -> System {
    let stretch = if protocol.has_homes() { 4 * scale } else { scale };
    let run_us = |time| run_us(time * scale);
    const INNER: ResourceId = ResourceId(1);
    let tasks = (0..6).map(|index: usize| {
        let body = vec![
            run_us(20),
            Step::Lock(R),
            run_us(40),
            Step::Lock(INNER),
            run_us(20),
            Step::Unlock(INNER),
            Step::Unlock(R),
            run_us(10),
            Step::Lock(INNER),
            run_us(30),
            Step::Unlock(INNER),
        ];
        task(&format!("t{index}"), index % 2, 10 - index as u32, (700 + 130 * index as u64) * stretch, body)
    });
    system(2, 2, tasks.collect())
}

#[test]
fn one_holder_at_a_time_on_two_cpus() {
    let Some(_machine) = require_cpus(2) else { return };
    for protocol in Protocol::ALL {
        let system = as_nested_as(protocol, &contended(protocol, scale()));
        let config = RunConfig::new(protocol, Duration::from_ms(for_each_protocol(100) * scale()));
        // Whether tasks meet depends on the machine, so a run in which they do not is repeated.
        let missing = RefCell::new(None);
        for _attempt in 0..20 {
            expect(protocol.name(), &system, &config, Duration::from_ms(50), |outcome| {
                assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
                *missing.borrow_mut() = missing_contention(&system, protocol, outcome);
                let jobs: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.jobs).collect();
                jobs.contains(&0).then(|| format!("a task finished no job: {jobs:?}"))
            });
            match &*missing.borrow() {
                Some(what) => tell(&format!("{protocol}: {what}; the run is repeated")),
                None => break,
            }
        }
        assert_eq!(missing.into_inner(), None, "{protocol}");
    }
}

/// The contention that a run of [`contended`] lacks: waits or invalidated sections.
fn missing_contention(system: &System, protocol: Protocol, outcome: &Outcome) -> Option<String> {
    let waits = outcome.records.windows(2).filter(|pair| is_waiting(pair)).count();
    let sections: usize = system.task_ids().map(|task| acquisitions(&outcome.records, task, R).len()).sum();
    let restarts: u64 = outcome.tasks.iter().map(|task| task.observation.restarts).sum();
    let longest = outcome.tasks.iter().map(|task| task.lock_waits.max()).max();
    println!("{protocol}: {sections} sections, {waits} waits, {restarts} restarts, {:?}", outcome.ended);
    let repeats = protocol.is_interruptible() && protocol != Protocol::WaitFree;
    assert!(repeats || restarts == 0, "{protocol}: {restarts} invalidated sections");
    if repeats && restarts == 0 {
        return Some("no section was invalidated".into());
    }
    let has_waits = waits > 0 || longest > Some(20_000) || protocol == Protocol::Ics || protocol.is_object();
    (!has_waits).then(|| "no task waited".into())
}

fn is_waiting(pair: &[Record]) -> bool {
    matches!(pair[0].event, Event::Request(_)) && matches!(pair[1].event, Event::Stop) && pair[0].task == pair[1].task
}

/// The holder is on CPU 0. On CPU 1, the less urgent of two tasks requests first.
#[test]
fn mpcp_serves_by_priority_not_by_arrival() {
    let Some(_machine) = require_cpus(2) else { return };
    let section = |before, inside| vec![run_us(before), Step::Lock(R), run_us(inside), Step::Unlock(R)];
    let mut low = task("low", 1, 1, 100_000, section(1_000, 1_000));
    let mut high = task("high", 1, 2, 100_000, section(1_000, 1_000));
    let holder = task("holder", 0, 3, 100_000, section(100, 9_000));
    (low.offset, high.offset) = (us(0), us(3_000));
    let system = system(2, 1, vec![low, high, holder]);
    let config = RunConfig::new(Protocol::Mpcp, Duration::from_ms(100));
    // The events are at least 800 us apart.
    expect("mpcp", &system, &config, us(500), |outcome| {
        let place = |task, event| outcome.records.iter().position(|r| r.task == TaskId(task) && r.event == event);
        let is_staged = place(2, Event::Acquire(R)) < place(0, Event::Request(R))
            && place(0, Event::Request(R)) < place(1, Event::Request(R))
            && place(1, Event::Request(R)) < place(2, Event::Release(R));
        if !is_staged {
            return Some("the two tasks did not wait at the same time".into());
        }
        let [low, high] = [0, 1].map(|task| acquisitions(&outcome.records, TaskId(task), R));
        assert!(high[0] < low[0], "{high:?} {low:?}");
        None
    });
}

/// The holder shares its CPU with a more urgent task, which arrives during the section.
#[test]
fn a_holder_under_mpcp_is_not_preempted_by_a_base_priority() {
    let Some(_machine) = require_cpus(2) else { return };
    let section = |inside| vec![run_us(100), Step::Lock(R), run_us(inside), Step::Unlock(R), run_us(100)];
    let holder = task("holder", 0, 1, 100_000, section(8_000));
    let mut local = task("local", 0, 9, 100_000, vec![run_us(1_000)]);
    let mut remote = task("remote", 1, 5, 100_000, section(100));
    (local.offset, remote.offset) = (us(3_000), us(4_000));
    let system = system(2, 1, vec![holder, local, remote]);
    for (protocol, is_preempted) in [(Protocol::Mpcp, false), (Protocol::None, true)] {
        let config = RunConfig::new(protocol, Duration::from_ms(100));
        // The section begins 2.9 ms before the other task arrives, and ends 5 ms after that.
        expect(protocol.name(), &system, &config, us(2_000), |outcome| {
            let time = |task, event| {
                let found = outcome.records.iter().find(|record| record.task == TaskId(task) && record.event == event);
                found.map(|record| record.at)
            };
            let (Some(runs), Some(released)) = (time(1, Event::Run), time(0, Event::Release(R))) else {
                return Some(format!("ended before both jobs: {:?}", outcome.ended));
            };
            let preempted = runs < released;
            (preempted != is_preempted).then(|| format!("preempted: {preempted}"))
        });
    }
}

/// Three tasks on each of two CPUs use one resource; one of each CPU writes, and the others read.
fn readers_and_writers() -> System {
    let tasks = (0..6).map(|index: usize| {
        let mode = if index < 2 { Mode::Write } else { Mode::Read };
        let body = vec![run_us(10 * scale()), mode.step(R), run_us(60 * scale()), Step::Unlock(R)];
        task(&format!("t{index}"), index % 2, 10 - index as u32, (500 + 90 * index as u64) * scale(), body)
    });
    system(2, 1, tasks.collect())
}

/// The first record at which a writer and another task hold the resource.
fn shared_with_a_writer(system: &System, records: &[Record]) -> Option<Record> {
    let writes = |task: TaskId| system.requests(task)[0].mode == Mode::Write;
    let mut inside: Vec<TaskId> = Vec::new();
    records.iter().copied().find(|record| match record.event {
        Event::Acquire(_) => {
            inside.push(record.task);
            inside.len() > 1 && inside.iter().any(|&task| writes(task))
        }
        Event::Release(_) => {
            inside.retain(|&task| task != record.task);
            false
        }
        _ => false,
    })
}

#[test]
fn writers_are_alone_and_readers_together() {
    let Some(_machine) = require_cpus(2) else { return };
    let (system, ms) = (readers_and_writers(), for_each_protocol(70) * scale());
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()) {
        if !protocol.has_readers() {
            assert_eq!(violation(&run_ms(&system, protocol, ms).records), None, "{protocol} has no readers");
            continue;
        }
        // Whether readers meet depends on the machine.
        let together = (0..10).find_map(|_attempt| {
            let outcome = run_ms(&system, protocol, ms);
            assert_eq!(shared_with_a_writer(&system, &outcome.records), None, "{protocol}");
            violation(&outcome.records)
        });
        let record = together.expect("two readers are inside at a time");
        assert_eq!(system.requests(record.task)[0].mode, Mode::Read, "{protocol}");
    }
    let mixed = [at(0, 2, Event::Acquire(R)), at(1, 0, Event::Acquire(R))];
    assert_eq!(shared_with_a_writer(&system, &mixed), Some(mixed[1]));
}

/// Eight tasks of different priorities on one CPU: under `icpp`, each finds its resource free.
#[test]
fn no_task_waits_under_icpp_on_one_cpu() {
    let Some(_machine) = require_realtime() else { return };
    let tasks = (0..8).map(|index: usize| {
        let resource = ResourceId::new(index % 3);
        let body = vec![run_us(20), Step::Lock(resource), run_us(30), Step::Unlock(resource), run_us(10)];
        task(&format!("t{index}"), 0, 20 - index as u32, 900 + 110 * index as u64, body)
    });
    let system = system(1, 3, tasks.collect());
    let config = RunConfig::new(Protocol::Icpp, Duration::from_ms(300));
    // The last jobs arrive 900 us before the run ends.
    expect("icpp", &system, &config, us(500), |outcome| {
        assert_eq!(violation(&outcome.records), None);
        // A holder is at least as urgent as every task that may request the resource, so no other task gets to request
        // it.
        let mut owners = [None; 3];
        for record in &outcome.records {
            match record.event {
                Event::Request(resource) => assert_eq!(owners[resource.index()], None, "not free: {record:?}"),
                Event::Acquire(resource) => owners[resource.index()] = Some(record.task),
                Event::Release(resource) => owners[resource.index()] = None,
                _ => {}
            }
        }
        for (task, seen) in system.task_ids().zip(&outcome.tasks) {
            let arrives = |record: &&Record| record.task == task && record.event == Event::Arrive;
            let arrived = outcome.records.iter().filter(arrives).count() as u64;
            assert!(seen.observation.jobs <= arrived, "task {} finished jobs that never arrived", task.0);
        }
        unfinished(&system, &config, outcome)
    });
}
