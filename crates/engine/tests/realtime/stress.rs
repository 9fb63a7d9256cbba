//! Storms: three tasks on each processor of the machine, with sections of many lengths and random homes, under every
//! protocol for several processors, and in clusters.
//!
//! The protocol's exclusion holds, sections execute at their homes, no job is lost, the most urgent task of each
//! processor executes, and where the protocol serves in order of arrival, no wait is overtaken.

use crate::order::{Promise, is_for_one, promise, turns, waits, with_turns};
use crate::support::{as_nested_as, at, expect, fault, for_each_protocol, require_cpus, run_us, scale, task};
use lockwright_engine::{Ended, Outcome};
use lockwright_model::{
    CpuId, Duration, Event, Protocol, Record, Resource, ResourceId, Scheduler, Step, System, Task, TaskId,
};

/// More than on the machines of our tests; more threads than this would only repeat each other.
const CPUS_MAX: usize = 16;
const RESOURCES: usize = 4;

/// Each task has two sections of different resources, and every third a nested one. The periods grow with the number of
/// processors, so that most jobs end in time.
fn stressed(cpus: usize, scale: u64, seed: u64) -> System {
    let varied = |base: u64, number: usize, count: usize| (base + 7 * (number % count) as u64) * scale;
    let section = |number: usize, nested: bool| {
        let outer = ResourceId::new(number % (RESOURCES - 1));
        let inner = ResourceId::new(RESOURCES - 1);
        let mut body = vec![Step::Lock(outer), run_us(varied(20, number, 5))];
        if nested {
            body.extend([Step::Lock(inner), run_us(varied(10, number, 3)), Step::Unlock(inner)]);
        }
        body.push(Step::Unlock(outer));
        body
    };
    let tasks = (0..3 * cpus).map(|index| {
        let mut body = vec![run_us(varied(10, index, 11))];
        // Every third task; on several processors, however many there are.
        body.extend(section(index, (2 * index + index / cpus).is_multiple_of(3)));
        body.push(run_us(varied(10, index, 7)));
        body.extend(section(index + 1 + index / 5, false));
        let period_us = (1_200 * cpus as u64 + 61 * index as u64) * scale;
        task(&format!("t{index}"), index % cpus, 1 + (3 * cpus - index) as u32, period_us, body)
    });
    let resource = |index: usize| {
        let mut resource = Resource::new(format!("r{index}"));
        resource.home = Some(CpuId::new(draw(seed, index) as usize % cpus));
        resource
    };
    let resources = (0..RESOURCES).map(resource).collect();
    System::new("stress".into(), cpus, None, resources, tasks.collect()).expect("a valid system")
}

/// The same tasks in clusters of these sizes; each executes on all processors of its cluster.
fn in_clusters(system: &System, sizes: &[usize]) -> System {
    let first = |cluster: usize| -> usize { sizes[..cluster].iter().sum() };
    let cluster = |cpu: CpuId| (0..sizes.len()).rfind(|&cluster| first(cluster) <= cpu.index()).unwrap_or(0);
    let move_to = |task: &Task| Task { cpu: CpuId::new(first(cluster(task.cpu))), ..task.clone() };
    let masks = system.tasks().iter().map(|task| ((1 << sizes[cluster(task.cpu)]) - 1) << first(cluster(task.cpu)));
    let moved = system.with_tasks(system.tasks().iter().map(move_to).collect()).expect("valid");
    moved.in_clusters(&masks.collect::<Vec<u64>>()).expect("the clusters are disjoint")
}

/// A number of a sequence that depends on the seed (SplitMix64).
fn draw(seed: u64, index: usize) -> u64 {
    let mut word = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The seed of the homes: LOCKWRIGHT_TEST_SEED, or always the same.
fn seed() -> u64 {
    let seed = std::env::var("LOCKWRIGHT_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("LOCKWRIGHT_TEST_SEED={seed}");
    seed
}

/// The first section that a task entered away from the home of its resource, if the protocol executes sections there.
fn away(system: &System, protocol: Protocol, records: &[Record]) -> Option<Record> {
    let mut places: Vec<CpuId> = system.tasks().iter().map(|task| task.cpu).collect();
    let is_at_home = |protocol| matches!(protocol, Protocol::Dpcp | Protocol::Dflp);
    records.iter().copied().find(|record| match record.event {
        Event::Migrate(cpu) => {
            places[record.task.index()] = cpu;
            false
        }
        Event::Acquire(resource) => {
            is_at_home(system.protocol_of(resource, protocol))
                && system.resource(resource).home.is_some_and(|home| places[record.task.index()] != home)
        }
        _ => false,
    })
}

/// A task whose jobs are not all there: each that arrived has finished, except the last one of a run that was cut.
fn lost(system: &System, records: &[Record], ended: Ended) -> Option<String> {
    system.task_ids().find_map(|task| {
        let count = |event: Event| records.iter().filter(|it| it.task == task && it.event == event).count();
        let (arrived, finished) = (count(Event::Arrive), count(Event::Finish));
        let is_whole = finished == arrived || ended != Ended::Completed && finished < arrived;
        (!is_whole).then(|| format!("task {} finished {finished} of {arrived} jobs, {ended:?}", task.0))
    })
}

/// The first resource whose waits did not keep the order of arrival, as far as it is known.
fn out_of_order(system: &System, protocol: Protocol, outcome: &Outcome) -> Option<String> {
    let turns = turns(system, outcome, protocol)?;
    (0..RESOURCES).map(ResourceId::new).find_map(|resource| {
        let seen = waits(system, protocol, &turns, resource);
        println!("{protocol} {resource:?}: {seen:?}");
        (seen.against(Promise::Fifo) > 0).then(|| format!("{resource:?}: {seen:?}"))
    })
}

/// What must hold of each run, however slow the machine is.
fn check(system: &System, protocol: Protocol, outcome: &Outcome) {
    assert_eq!(fault(system, protocol, &outcome.records), None, "{protocol}");
    assert_eq!(away(system, protocol, &outcome.records), None, "{protocol}");
    if outcome.dropped == 0 {
        assert_eq!(lost(system, &outcome.records, outcome.ended), None, "{protocol}");
    }
}

fn storm(system: &System, protocol: Protocol, is_fifo: bool, heads: &[TaskId]) {
    let scale = scale();
    let config = with_turns(protocol, for_each_protocol(80) * scale);
    expect(protocol.name(), system, &config, Duration::from_ms(8 * scale), |outcome| {
        check(system, protocol, outcome);
        let order = out_of_order(system, protocol, outcome);
        assert!(!is_fifo || order.is_none(), "{protocol} promises the order of requests: {order:?}");
        // Others may get no time where the machine is overloaded.
        let jobs: Vec<u64> = heads.iter().map(|task| outcome.tasks[task.index()].observation.jobs).collect();
        jobs.contains(&0).then(|| format!("jobs {jobs:?}"))
    });
}

/// Switching threads takes longer on an emulated processor, so sections and periods are longer there.
#[test]
fn all_processors_share_resources() {
    let Some(_machine) = require_cpus(2) else { return };
    let cpus = std::thread::available_parallelism().map_or(2, usize::from).min(CPUS_MAX);
    let seed = seed();
    let heads: Vec<TaskId> = (0..cpus).map(TaskId::new).collect();
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !is_for_one(*protocol)) {
        let system = as_nested_as(protocol, &stressed(cpus, scale(), seed));
        storm(&system, protocol, promise(protocol) == Promise::Fifo, &heads);
    }
}

/// By deadlines on all processors, no task is left out, whether the machine is overloaded or not.
#[test]
fn all_processors_share_resources_by_deadlines() {
    let Some(_machine) = require_cpus(2) else { return };
    let cpus = std::thread::available_parallelism().map_or(2, usize::from).min(CPUS_MAX);
    let seed = seed();
    let tasks: Vec<TaskId> = (0..3 * cpus).map(TaskId::new).collect();
    for protocol in [Protocol::FmlpShort, Protocol::FmlpLong] {
        let system = as_nested_as(protocol, &stressed(cpus, scale(), seed)).under(Scheduler::GEdf);
        storm(&system, protocol, true, &tasks);
    }
}

/// The most urgent task of each cluster executes.
#[test]
fn clusters_share_resources() {
    let Some(_machine) = require_cpus(2) else { return };
    let cpus = std::thread::available_parallelism().map_or(2, usize::from).min(CPUS_MAX);
    let seed = seed();
    let shapes: [&[usize]; 5] = [&[2], &[4, 4], &[8], &[4, 3], &[2, 2, 4]];
    for sizes in shapes.into_iter().filter(|sizes| sizes.iter().sum::<usize>() <= cpus) {
        println!("clusters of {sizes:?}");
        let tasks = as_nested_as(Protocol::Omlp, &stressed(sizes.iter().sum(), scale(), seed));
        let system = in_clusters(&tasks, sizes);
        let heads: Vec<TaskId> = (0..sizes.len()).map(|cluster| TaskId::new(sizes[..cluster].iter().sum())).collect();
        storm(&system, Protocol::Omlp, true, &heads);
    }
}

#[test]
fn clusters_have_their_sizes() {
    let system = in_clusters(&stressed(7, 1, 1), &[4, 3]);
    let cpus = |task| system.cpus_of(TaskId(task)).map(CpuId::index).collect::<Vec<_>>();
    assert_eq!(
        [cpus(0), cpus(3), cpus(4), cpus(13)],
        [vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![4, 5, 6], vec![4, 5, 6]]
    );
}

/// A storm is no judge if it does not find a wrong record.
#[test]
fn a_wrong_record_is_found() {
    let system = stressed(3, 1, 1);
    let home = system.resource(ResourceId(0)).home.expect("a home");
    let elsewhere = CpuId::new((home.index() + 1) % 3);
    let r = ResourceId(0);
    let records = |place: CpuId| {
        let events = [Event::Arrive, Event::Migrate(place), Event::Request(r), Event::Acquire(r), Event::Release(r)];
        let mut records: Vec<Record> = (1..).zip(events).map(|(us, event)| at(us, 0, event)).collect();
        records.push(at(9, 0, Event::Finish));
        records
    };
    let right = records(home);
    assert_eq!(away(&system, Protocol::Dflp, &right), None);
    assert_eq!(away(&system, Protocol::Dflp, &records(elsewhere)), Some(records(elsewhere)[3]));
    assert_eq!(away(&system, Protocol::Mpcp, &records(elsewhere)), None, "its sections execute anywhere");
    assert_eq!(fault(&system, Protocol::Dflp, &right), None);
    let twice = [&right[..4], &[at(5, 1, Event::Acquire(r))]].concat();
    assert_eq!(fault(&system, Protocol::Dflp, &twice), Some(twice[4]));
    assert_eq!(lost(&system, &right, Ended::Completed), None);
    assert!(lost(&system, &right[..5], Ended::Completed).is_some(), "a job that never finished");
    assert_eq!(lost(&system, &right[..5], Ended::Watchdog), None);
    assert!(lost(&system, &right[1..], Ended::Watchdog).is_some(), "a job that never arrived");
}
