//! Three tasks on each processor of the machine, with sections of many lengths and homes everywhere, under every
//! protocol for several processors: the protocol's exclusion holds, the most urgent task of each processor executes,
//! and where the protocol serves in order of arrival, no wait is overtaken.

use crate::order::{Promise, is_for_one, promise, turns, waits, with_turns};
use crate::support::{as_nested_as, expect, fault, require_cpus, run_us, task};
use lockwright_model::{CpuId, Duration, Protocol, Resource, ResourceId, Step, System};

/// More than on the machines of our tests; more threads than this would only repeat each other.
const CPUS_MAX: usize = 16;
const RESOURCES: usize = 4;

/// Each task has two sections of different resources, and every third a nested one. The periods grow with the number of
/// processors, so that most jobs end in time.
fn stressed(cpus: usize, scale: u64) -> System {
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
        body.extend(section(index, index % 3 == 0));
        body.push(run_us(varied(10, index, 7)));
        body.extend(section(index + 1 + index / 5, false));
        let period_us = (1_200 * cpus as u64 + 61 * index as u64) * scale;
        task(&format!("t{index}"), index % cpus, 1 + (3 * cpus - index) as u32, period_us, body)
    });
    let resource = |index: usize| {
        let mut resource = Resource::new(format!("r{index}"));
        resource.home = Some(CpuId::new((3 * index + 1) % cpus));
        resource
    };
    let resources = (0..RESOURCES).map(resource).collect();
    System::new("stress".into(), cpus, None, resources, tasks.collect()).expect("a valid system")
}

#[test]
fn all_processors_share_resources() {
    let Some(_machine) = require_cpus(2) else { return };
    let cpus = std::thread::available_parallelism().map_or(2, usize::from).min(CPUS_MAX);
    // Switching threads takes longer on an emulated processor, so sections and periods are longer there.
    let scale = std::env::var("TEST_TIME_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !is_for_one(*protocol)) {
        let system = as_nested_as(protocol, &stressed(cpus, scale));
        let config = with_turns(protocol, 200 * scale);
        expect(protocol.name(), &system, &config, Duration::from_ms(20 * scale), |outcome| {
            assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
            let turns = turns(&system, outcome, protocol);
            for resource in (0..RESOURCES).map(ResourceId::new) {
                let seen = waits(&system, &turns, resource);
                println!("{protocol} {resource:?}: {seen:?}");
                if promise(protocol) == Promise::Fifo {
                    assert_eq!(seen.against(Promise::Fifo), 0, "{protocol} promises the order of requests: {seen:?}");
                }
            }
            // The most urgent tasks of the processors. Others may get no time where the machine is overloaded.
            let jobs: Vec<u64> = outcome.tasks.iter().take(cpus).map(|task| task.observation.jobs).collect();
            jobs.contains(&0).then(|| format!("jobs {jobs:?}"))
        });
    }
}
