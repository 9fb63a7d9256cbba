//! Systems of 40 tasks on 4 CPUs, drawn and judged under five protocols: the cells of docs/study.md.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::plan::parse_plan;

const PLAN: &str = r#"
    seed = 1
    samples = 1
    [generator]
    cpus = 4
    tasks = 40
    [sections]
    accesses = 2
    [vary]
    load = { from = 0.1, to = 0.9, step = 0.1 }
    [[method]]
    protocols = ["mpcp", "dpcp", "fmlp_plus", "omlp", "msrp"]
"#;

fn study(criterion: &mut Criterion) {
    let plan = parse_plan(PLAN, &mut |path| Err(format!("cannot read {path}"))).expect("a valid study");
    let mut judges: Vec<_> = (0..plan.cells()).map(|cell| plan.judge(cell)).collect();
    let mut samples = 0..;
    criterion.bench_function("study, one system of 40 tasks in each of 9 cells", |bencher| {
        let sample = || samples.next().unwrap_or_default();
        let judge_all = |sample| {
            let mut tallies = [Tally::default(); 5];
            judges.iter_mut().for_each(|judge| judge(sample, &mut tallies).expect("every system can be drawn"));
            tallies
        };
        bencher.iter_batched(sample, judge_all, BatchSize::SmallInput);
    });
}

criterion_group!(benches, study);
criterion_main!(benches);
