//! `sensitivity` on whole systems of 200 and of 1,000 tasks on 16 CPUs that meet all deadlines, under each protocol,
//! and under `omlp` in clusters of 2, 4 and 8 CPUs. Under protocols without a bound across CPUs, each resource has the
//! users of one CPU. Ten searches of 1,000 tasks under `fmlp_long` take a minute or two.

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_analysis::{Growth, analyse, sensitivity};
use lockwright_model::{Duration, Overheads, Protocol, ResourceId, Step, System};
use lockwright_study::{Shape, generate, generate_clusters};
use std::hint::black_box;

/// The share of the largest execution times that meet all deadlines, in thousandths.
const SHARE: u64 = 700;

/// Returns the system with all execution times multiplied by `permille` / 1000.
fn scaled(system: &System, permille: u64) -> System {
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        for step in &mut task.body {
            if let Step::Run(time) = step {
                *time = Duration::from_ns((time.as_ns() * permille).div_ceil(1000));
            }
        }
        let runs = task.body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO });
        task.wcet = runs.sum();
    }
    system.with_tasks(tasks).expect("shorter execution times are valid")
}

/// Returns the system in which no CPU uses a resource of another.
fn local(system: &System) -> System {
    let each = system.resources().len() / system.cpus();
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        for step in &mut task.body {
            if let Step::Lock(resource) | Step::Unlock(resource) = step {
                *resource = ResourceId::new(task.cpu.index() * each + resource.index() % each);
            }
        }
    }
    system.with_tasks(tasks).expect("other resources are valid")
}

fn grow(system: &System, protocol: Protocol) -> Growth {
    sensitivity(system, &Overheads::default(), protocol, |_, _| true).expect("not interrupted").all
}

fn sensitivities(criterion: &mut Criterion) {
    for (tasks, resources) in [(200, 32), (1_000, 128)] {
        let shape = Shape::usual(16, tasks, resources);
        let drawn = generate(&mut Rng::with_seed(1), &shape);
        let mut group = criterion.benchmark_group(format!("sensitivity {tasks} tasks, 16 CPUs"));
        group.sample_size(10).sampling_mode(SamplingMode::Flat);
        // A system whose deadlines are all met: every factor and every room is searched for.
        let grown = |system: &System, protocol: Protocol| match grow(system, protocol) {
            Growth::Permille(most) => Some(scaled(system, most * SHARE / 1000)),
            Growth::Broken | Growth::Unlimited => None,
        };
        let mut systems: Vec<(String, Protocol, System)> = Vec::new();
        for protocol in Protocol::ALL {
            let system = grown(&drawn, protocol).or_else(|| grown(&local(&drawn), protocol));
            systems.extend(system.map(|system| (protocol.name().into(), protocol, system)));
        }
        for size in [2, 4, 8] {
            let drawn = generate_clusters(&mut Rng::with_seed(1), &shape, &vec![size; 16 / size]);
            let system = grown(&drawn, Protocol::Omlp).expect("a system in clusters can grow");
            systems.push((format!("clusters of {size}"), Protocol::Omlp, system));
        }
        for (name, protocol, system) in systems {
            assert!(analyse(&system, protocol).tasks.iter().all(|task| task.schedulable), "{name}");
            group.bench_function(name, |bencher| bencher.iter(|| grow(black_box(&system), protocol)));
        }
        group.finish();
    }
}

criterion_group!(benches, sensitivities);
criterion_main!(benches);
