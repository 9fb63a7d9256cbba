//! Sets per second of the global tests: `cargo bench -p lockwright-analysis --bench global`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use lockwright_analysis::global;
use lockwright_analysis::{Failure, Sporadic};
use std::hint::black_box;

const SETS: usize = 500;
const PROCESSORS: u32 = 4;

/// Returns sets with a total utilization below `share` of m. Utilizations are uniform from `least` to 0.4, periods are
/// 10 to 100 ms in µs, and deadlines are the period, or at least three quarters of it.
fn sets(implicit: bool, share: f64, least: f64) -> Vec<Vec<Sporadic>> {
    let mut random = Rng::with_seed(2024);
    (0..SETS)
        .map(|_| {
            let (mut tasks, mut sum) = (Vec::new(), 0.0);
            loop {
                let utilization = least + (0.4 - least) * random.f64();
                sum += utilization;
                if sum > share * f64::from(PROCESSORS) {
                    return tasks;
                }
                let period = random.u64(10_000..=100_000);
                let deadline = if implicit { period } else { random.u64(period * 3 / 4..=period) };
                tasks.push(Sporadic { cost: (utilization * period as f64) as u64, period, deadline });
            }
        })
        .collect()
}

fn by_deadline(mut sets: Vec<Vec<Sporadic>>) -> Vec<Vec<Sporadic>> {
    for tasks in &mut sets {
        tasks.sort_by_key(|task| task.deadline);
    }
    sets
}

type Test = fn(&[Sporadic], u32) -> Result<(), Failure>;

fn benches(criterion: &mut Criterion) {
    let tests: [(&str, Test); 12] = [
        ("gfb", global::gfb),
        ("bak", global::bak),
        ("bcl", global::bcl),
        ("bcl_iterative", global::bcl_iterative),
        ("rta", |tasks, m| global::rta(tasks, m).map(drop)),
        ("ff_dbf", global::ff_dbf),
        ("bar", global::bar),
        ("devi_anderson", |tasks, m| global::devi_anderson(tasks, m).map(drop)),
        ("devi_anderson_sections", |tasks, m| {
            let sections = tasks.iter().map(|task| task.cost / 8).collect::<Vec<u64>>();
            global::devi_anderson_sections(tasks, &sections, m).map(drop)
        }),
        ("g_edf", |tasks, m| global::g_edf(tasks, m).map(drop)),
        ("bertogna_cirinei", |tasks, m| global::bertogna_cirinei(tasks, &[], m, global::CarryIn::Responses).map(drop)),
        ("guan", |tasks, m| global::guan(tasks, m).map(drop)),
    ];
    let kinds = [
        ("implicit, U ≤ 60 %", true, 0.6, 0.1),
        ("constrained, U ≤ 60 %", false, 0.6, 0.1),
        // Most are accepted, so that no test stops early.
        ("implicit, U ≤ 35 %", true, 0.35, 0.01),
    ];
    for (kind, implicit, share, least) in kinds {
        let sets = by_deadline(sets(implicit, share, least));
        let tasks = sets.iter().map(Vec::len).sum::<usize>();
        let mut group = criterion.benchmark_group(format!("m=4 {kind}, {:.1} tasks", tasks as f64 / SETS as f64));
        group.throughput(Throughput::Elements(SETS as u64)).sample_size(10);
        for (name, test) in tests {
            let accepted = sets.iter().filter(|tasks| test(tasks, PROCESSORS).is_ok()).count();
            if name.starts_with("devi") && !implicit {
                continue;
            }
            group.bench_function(format!("{name}, {accepted} of {SETS} accepted"), |bencher| {
                bencher.iter(|| sets.iter().filter(|tasks| test(black_box(tasks), PROCESSORS).is_ok()).count());
            });
        }
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
