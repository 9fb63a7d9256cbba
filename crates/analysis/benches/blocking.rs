//! Sets per second of the multiprocessor blocking bounds, for 40 tasks on 8 processors, and with response times for 80
//! tasks on 16.
//!
//! The sets are random. There are as many resources as processors. Each task uses each resource with probability 1/4,
//! with one to five requests of 1 to 100 us. Periods are 10 to 1,000 ms.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_analysis::blocking::{Delay, DelayBounds, Platform, dflp, dpcp, fmlp, joint, mpcp, msrp, omlp, spin};
use lockwright_analysis::{Demand, Failure, Sharer, Sharing};
use std::hint::black_box;

const SETS: usize = 64;

/// Returns a set with a utilization of `load` percent of each processor.
fn set(random: &mut Rng, processors: u16, tasks: usize, load: u64) -> Sharing {
    let each = tasks as u64 / u64::from(processors);
    let mut all: Vec<Sharer> = (0..tasks)
        .map(|index| {
            let period = random.u64(10_000..1_000_000);
            let cost = period * random.u64(load / 2..load * 3 / 2) / each / 100;
            let mut requests = Vec::new();
            for resource in 0..processors {
                if random.u8(..4) == 0 {
                    requests.push(Demand { resource, count: random.u32(1..=5), length: random.u64(1..=100) });
                }
            }
            let cluster = (index % usize::from(processors)) as u16;
            Sharer { cost, period, deadline: period, response: period / 2, priority: 0, cluster, requests }
        })
        .collect();
    // A shorter period is more urgent.
    let mut order: Vec<usize> = (0..tasks).collect();
    order.sort_by_key(|task| all[*task].period);
    for (rank, task) in order.into_iter().enumerate() {
        all[task].priority = u32::MAX - rank as u32;
    }
    Sharing { tasks: all }
}

fn blocking(criterion: &mut Criterion) {
    let mut random = Rng::with_seed(1);
    let sets: Vec<Sharing> = (0..SETS).map(|_| set(&mut random, 8, 40, 40)).collect();
    let homes: Vec<u16> = (0..8).collect();
    let platform = Platform { clusters: 8, processors: 1, interrupts: None };
    type Bound<'a> = Box<dyn Fn(&Sharing) -> Result<Vec<Delay>, Failure> + 'a>;
    let bounds: [(&str, Bound); 9] = [
        ("MPCP", Box::new(|set| mpcp::mpcp(set, mpcp::Waiting::Suspended, mpcp::CarryIn::OneJob))),
        ("DPCP", Box::new(|set| dpcp::dpcp(set, &homes))),
        ("DFLP", Box::new(|set| dflp::dflp(set, &homes))),
        ("FMLP+", Box::new(|set| fmlp::fmlp_plus(set, fmlp::Sections::Preemptive))),
        ("FMLP long", Box::new(fmlp::fmlp_long)),
        ("OMLP global", Box::new(|set| omlp::global(set, 8))),
        ("OMLP clustered", Box::new(|set| omlp::clustered(set, platform))),
        ("spin", Box::new(|set| spin::fifo(set, platform))),
        ("MSRP", Box::new(|set| msrp::holistic(set, None))),
    ];
    let mut group = criterion.benchmark_group("blocking, m=8 n=40");
    group.throughput(Throughput::Elements(SETS as u64));
    for (name, bound) in &bounds {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                for set in &sets {
                    let _ = black_box(bound(black_box(set)));
                }
            });
        });
    }
    group.finish();
}

fn with_responses<P: DelayBounds>(
    criterion: &mut Criterion,
    name: &str,
    protocol: impl Fn(&Sharing) -> Result<P, Failure>,
) {
    let mut random = Rng::with_seed(1);
    let of = |set: &Sharing| protocol(set).and_then(|mut protocol| joint(set, &mut protocol));
    // Only sets that have response times count, as the others end early.
    let sets: Vec<Sharing> =
        (0..20_000).map(|_| set(&mut random, 16, 80, 40)).filter(|set| of(set).is_ok()).take(SETS).collect();
    if sets.is_empty() {
        println!("{name}: no set has response times");
        return;
    }
    let mut group = criterion.benchmark_group("blocking and response times, m=16 n=80");
    group.throughput(Throughput::Elements(sets.len() as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for set in &sets {
                let _ = black_box(of(black_box(set)));
            }
        });
    });
    group.finish();
}

fn joint_responses(criterion: &mut Criterion) {
    let homes: Vec<u16> = (0..16).collect();
    let platform = Platform { clusters: 16, processors: 1, interrupts: None };
    with_responses(criterion, "MPCP", |set| mpcp::Mpcp::new(set, mpcp::Waiting::Suspended, mpcp::CarryIn::Response));
    with_responses(criterion, "DPCP", |set| dpcp::Dpcp::new(set, &homes));
    with_responses(criterion, "DFLP", |set| dflp::Dflp::new(set, &homes));
    with_responses(criterion, "FMLP+", |set| fmlp::FmlpPlus::new(set, fmlp::Sections::Preemptive));
    with_responses(criterion, "spin", |set| spin::Fifo::new(set, platform));
    with_responses(criterion, "MSRP", |set| msrp::protocol(set, None));
}

criterion_group!(benches, blocking, joint_responses);
criterion_main!(benches);
