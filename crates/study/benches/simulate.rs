//! Job releases per second of the simulator, over ten seconds of virtual time without a trace: every protocol with 20
//! tasks on 4 CPUs, 100 on 4 and 400 on 16; and tasks without locks, which `plain` also executes.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_model::{Instant, Protocol, System};
use lockwright_sim::plain::{self, Order, Periodic, PlainTask};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Shape, generate};
use std::hint::black_box;
use std::time::Duration;

const END_NS: u64 = 10_000_000_000;
/// The numbers of CPUs, tasks and resources.
const SIZES: [(usize, usize, usize); 3] = [(4, 20, 6), (4, 100, 16), (16, 400, 64)];

/// Returns the number of jobs released.
fn run(system: &System, protocol: Protocol) -> u64 {
    let config = Config::default().with_protocol(protocol);
    let mut simulation = Simulation::new(system, &config, ());
    simulation.run_until(Instant::from_ns(END_NS));
    simulation.released()
}

fn locks(criterion: &mut Criterion) {
    for (cpus, tasks, resources) in SIZES {
        let system = generate(&mut Rng::with_seed(1), &Shape::usual(cpus, tasks, resources));
        let mut group = criterion.benchmark_group(format!("simulate {tasks} tasks, {cpus} CPUs"));
        group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
        for protocol in Protocol::ALL {
            group.throughput(Throughput::Elements(run(&system, protocol)));
            group.bench_function(protocol.name(), |bencher| bencher.iter(|| run(black_box(&system), protocol)));
        }
        group.finish();
    }
}

fn no_locks(criterion: &mut Criterion) {
    for (cpus, tasks, _) in SIZES {
        let shape = Shape { sections: (0, 0), ..Shape::usual(cpus, tasks, 0) };
        let system = generate(&mut Rng::with_seed(1), &shape);
        let plain_tasks: Vec<PlainTask> = system.tasks().iter().map(plain_task).collect();
        let placement: Vec<u16> = system.tasks().iter().map(|task| task.cpu.0).collect();
        let mut group = criterion.benchmark_group(format!("simulate {tasks} tasks without locks, {cpus} CPUs"));
        group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
        group.throughput(Throughput::Elements(run(&system, Protocol::Mpcp)));
        group.bench_function("Simulation", |bencher| bencher.iter(|| run(black_box(&system), Protocol::Mpcp)));
        group.bench_function("plain", |bencher| {
            bencher.iter(|| {
                let tasks = black_box(&plain_tasks);
                plain::simulate_partitioned(tasks, &placement, Order::FixedPriority, END_NS, &mut Periodic)
            });
        });
        group.finish();
    }
}

fn plain_task(task: &lockwright_model::Task) -> PlainTask {
    PlainTask {
        cost: task.wcet.as_ns(),
        period: task.period.as_ns(),
        deadline: task.deadline.as_ns(),
        priority: task.priority.level(),
        ..PlainTask::default()
    }
}

criterion_group!(benches, locks, no_locks);
criterion_main!(benches);
