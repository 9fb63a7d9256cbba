//! Sets per second on one processor: 14 tasks with log-uniform periods of 10 to 100 ms or 1 to 1000 ms in nanoseconds,
//! and utilizations by `UUniFast`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lockwright_analysis::Sporadic;
use lockwright_analysis::uniprocessor::{Task, edf, fp};
use std::hint::black_box;

const SETS: usize = 1_000;
const TASKS: usize = 14;

/// Returns sets with deadlines from `tightness` of a period on, sorted by increasing deadline.
fn sets(utilization: f64, periods_ms: (f64, f64), tightness: f64) -> Vec<Vec<Sporadic>> {
    let mut random = fastrand::Rng::with_seed(14);
    let mut set = || {
        let mut left = utilization;
        let mut tasks: Vec<Sporadic> = (0..TASKS)
            .map(|index| {
                let behind = (TASKS - 1 - index) as f64;
                let next = if behind > 0.0 { left * random.f64().powf(1.0 / behind) } else { 0.0 };
                let share = left - next;
                left = next;
                let (low, high) = (periods_ms.0.ln(), periods_ms.1.ln());
                let period = (low + (high - low) * random.f64()).exp() * 1e6;
                let cost = (period * share).max(1.0);
                let deadline = cost + (period - cost) * (tightness + (1.0 - tightness) * random.f64());
                Sporadic { cost: cost as u64, period: period as u64, deadline: deadline as u64 }
            })
            .collect();
        tasks.sort_by_key(|task| task.deadline);
        tasks
    };
    (0..SETS).map(|_| set()).collect()
}

fn urgent(sets: &[Vec<Sporadic>]) -> Vec<Vec<Task>> {
    let one = |(index, &task): (usize, &Sporadic)| Task { priority: (TASKS - index) as u32, ..task.into() };
    sets.iter().map(|set| set.iter().enumerate().map(one).collect()).collect()
}

fn uniprocessor(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("uniprocessor");
    group.throughput(Throughput::Elements(SETS as u64));
    for periods in [(10.0, 100.0), (1.0, 1_000.0)] {
        for utilization in [0.5, 0.7, 0.9] {
            let label = format!("U {utilization}, periods {} to {} ms", periods.0, periods.1);
            let implicit = urgent(&sets(utilization, periods, 1.0));
            group.bench_with_input(BenchmarkId::new("P-FP response times", &label), &implicit, |bencher, sets| {
                bencher.iter(|| sets.iter().filter(|set| fp::response_times(black_box(set)).is_ok()).count());
            });
            let constrained = sets(utilization, periods, 0.5);
            group.bench_with_input(BenchmarkId::new("EDF demand, QPA", &label), &constrained, |bencher, sets| {
                bencher.iter(|| sets.iter().filter(|set| edf::schedulable(black_box(set), &[]).is_ok()).count());
            });
        }
    }
    let tasks = urgent(&sets(0.7, (10.0, 100.0), 0.5));
    group.bench_with_input(BenchmarkId::new("EDF response times", "U 0.7"), &tasks, |bencher, sets| {
        bencher.iter(|| sets.iter().filter(|set| edf::response_times(black_box(set)).is_ok()).count());
    });
    group.finish();
}

criterion_group!(benches, uniprocessor);
criterion_main!(benches);
