//! Job releases a second of the simulator: 20 tasks on 4 CPUs, a second of virtual time, without a trace.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_model::{Instant, Protocol};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Shape, generate};
use std::hint::black_box;

fn simulate(criterion: &mut Criterion) {
    let system = generate(&mut Rng::with_seed(1), &Shape::usual(4, 20, 6));
    let end = Instant::from_ns(10_000_000_000);
    let mut group = criterion.benchmark_group("simulate 20 tasks, 4 CPUs");
    for protocol in Protocol::ALL {
        let config = Config { protocol: Some(protocol), ..Config::default() };
        let run = || {
            let mut simulation = Simulation::new(black_box(&system), &config, ());
            simulation.run_until(end);
            simulation.released()
        };
        group.throughput(Throughput::Elements(run()));
        group.bench_function(protocol.name(), |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
