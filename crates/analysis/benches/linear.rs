//! Sets per second of the bounds of linear programs: 40 tasks on 8 processors with 12 resources. Each task uses a
//! quarter of them, with up to five requests per job.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lockwright_analysis::linear::{self, Edf, Global, Locking};
use lockwright_analysis::{Demand, Sharer, Sharing};
use std::hint::black_box;

const SETS: usize = 50;
const PROCESSORS: u16 = 8;
const TASKS: u32 = 40;
const RESOURCES: u16 = 12;

/// Returns a set with times in microseconds, a utilization of about one half, and response times of half the periods.
fn set(seed: u64) -> Sharing {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut periods: Vec<u64> = (0..TASKS).map(|_| rng.u64(10_000..=100_000)).collect();
    periods.sort_unstable();
    let task = |(place, &period): (usize, &u64)| {
        let used: Vec<u16> = (0..RESOURCES).filter(|_| rng.u8(0..4) == 0).collect();
        let demand = |&resource: &u16| Demand { resource, count: rng.u32(1..=5), length: rng.u64(1..=50) };
        let requests: Vec<Demand> = used.iter().map(demand).collect();
        let cost = period / 10;
        let (priority, cluster) = (TASKS - place as u32, place as u16 % PROCESSORS);
        Sharer { cost, period, deadline: period, response: period / 2, priority, cluster, requests }
    };
    Sharing { tasks: periods.iter().enumerate().map(task).collect() }
}

fn all(c: &mut Criterion) {
    let sets: Vec<Sharing> = (0..SETS as u64).map(set).collect();
    let sites: Vec<u16> = (0..RESOURCES).map(|resource| resource % PROCESSORS).collect();
    let mut group = c.benchmark_group("linear");
    group.throughput(Throughput::Elements(SETS as u64)).sample_size(10);
    macro_rules! bench {
        ($name:literal, $analysis:expr) => {
            group.bench_function($name, |b| {
                b.iter(|| {
                    sets.iter().for_each(|set| {
                        let _ = black_box($analysis(black_box(set)));
                    })
                });
            });
        };
    }
    bench!("mpcp", linear::mpcp);
    bench!("dpcp", |set| linear::dpcp(set, &sites));
    bench!("dflp", |set| linear::dflp(set, &sites));
    bench!("fmlp+", linear::fmlp_plus);
    bench!("spin fifo", linear::spin_fifo);
    bench!("spin fifo preemptable", linear::spin_fifo_preemptable);
    bench!("spin unordered", linear::spin_unordered);
    bench!("omip", |set| linear::omip(set, PROCESSORS, 1));
    bench!("p-edf msrp", |set| linear::p_edf(set, Edf::Msrp));
    bench!("responses, mpcp", |set| linear::responses(set, Locking::Mpcp));
    bench!("responses, dpcp", |set| linear::responses(set, Locking::Dpcp(&sites)));
    bench!("responses, fmlp+", |set| linear::responses(set, Locking::FmlpPlus));
    bench!("responses, spin fifo", |set| linear::responses(set, Locking::SpinFifo));
    let sets = &sets[..1];
    group.throughput(Throughput::Elements(1));
    macro_rules! bench {
        ($name:literal, $analysis:expr) => {
            group.bench_function($name, |b| {
                b.iter(|| {
                    sets.iter().for_each(|set| {
                        let _ = black_box($analysis(black_box(set)));
                    })
                });
            });
        };
    }
    bench!("global pip", |set| linear::global(set, PROCESSORS, Global::Pip));
    bench!("global fmlp+", |set| linear::global(set, PROCESSORS, Global::FmlpPlus));
}

criterion_group!(benches, all);
criterion_main!(benches);
