//! `analyse` on a whole system, of 20 tasks on 4 CPUs and of
//! 1,000 tasks on 16 CPUs; and the same from the text of a file.

use criterion::{Criterion, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_analysis::analyse;
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Protocol, System};
use lockwright_study::{Shape, generate};
use std::hint::black_box;

/// Returns the first generated system whose tasks all have a bound, so that every fixed point is computed to its end.
fn bounded(shape: &Shape) -> System {
    (0..1_000)
        .map(|seed| generate(&mut Rng::with_seed(seed), shape))
        .find(|system| analyse(system, Protocol::Mpcp).tasks.iter().all(|task| task.response.is_some()))
        .expect("one of a thousand systems has all its bounds")
}

fn check(criterion: &mut Criterion) {
    for (name, shape) in
        [("20 tasks, 4 CPUs", Shape::usual(4, 20, 6)), ("1000 tasks, 16 CPUs", Shape::usual(16, 1_000, 128))]
    {
        let system = bounded(&shape);
        let mut group = criterion.benchmark_group(format!("check {name}"));
        for protocol in Protocol::ALL {
            group.bench_function(protocol.name(), |bencher| bencher.iter(|| analyse(black_box(&system), protocol)));
        }
        let text = write_system(&system);
        group.bench_function("mpcp, from the file's text", |bencher| {
            bencher.iter(|| parse_system(black_box(&text)).map(|system| analyse(&system, Protocol::Mpcp)));
        });
        group.finish();
    }
}

criterion_group!(benches, check);
criterion_main!(benches);
