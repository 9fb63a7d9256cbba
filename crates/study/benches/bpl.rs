//! Requests per second of `lockwright study bpl`: each lock at each of
//! four rates, with 64 cores and a mean burst of 8, on one processor.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lockwright_study::bpl::{FreeLock, Lock, Model, Random, play};
use std::hint::black_box;

const REQUESTS: u64 = 100_000;

fn bpl(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bpl, 64 cores, burst 8");
    group.throughput(Throughput::Elements(REQUESTS));
    for rate in [0.001, 0.01, 0.1, 1.0] {
        let model = Model::new(64, 8, rate, FreeLock::Random).expect("within the limits");
        for lock in Lock::ALL {
            group.bench_function(format!("{lock}, rate {rate}"), |bencher| {
                bencher.iter(|| play(black_box(&model), lock, REQUESTS, Random::new(&model, 7), |_| true));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bpl);
criterion_main!(benches);
