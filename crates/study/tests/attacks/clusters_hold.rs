//! Clusters of processors under `omlp`: no simulated response or blocking of a
//! random system exceeds its bound, a bound without one of its terms is exceeded,
//! and the terms of an explanation sum to the bound. See also `protocols_hold.rs`.

use fastrand::Rng;
use lockwright_analysis::{Mutant, analyse, analyse_mutant, explain};
use lockwright_model::format::{parse_system, write_system};
use lockwright_model::{Duration, Instant, Protocol, Scheduler, System, TaskId};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Shape, attack, generate, generate_clusters};

fn sets() -> u64 {
    crate::attacked::sets(10_000)
}
/// The number of schedules of each set, and their length in longest periods.
const RUNS: usize = 4;
const HORIZON: u64 = 6;

/// One cluster, two of equal size, or two of different size.
const SIZES: [&[usize]; 5] = [&[2], &[3], &[2, 2], &[2, 1], &[1, 3]];

fn shape(seed: u64) -> Shape {
    let few = Shape { tasks: (3, 8), nested: 0, own_ceiling: 0, utilization: (10, 80), ..Shape::small() };
    match seed % 3 {
        0 => few,
        // Short sections, and many requests of many tasks.
        1 => Shape { tasks: (5, 12), resources: (1, 3), period: (20, 300), section: 8, ..few },
        // Sections back to back on one resource.
        _ => Shape { tasks: (4, 10), resources: (1, 1), sections: (1, 4), section: 12, period: (30, 200), ..few },
    }
}

fn draw(seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    let sizes = SIZES[random.usize(0..SIZES.len())];
    (generate_clusters(&mut random, &shape(seed), sizes), random)
}

#[test]
fn bounds_hold() {
    let sets = sets();
    let (mut bounded, mut blocked, mut schedulable, mut interfered) = (0, 0, 0, 0);
    for seed in 0..sets {
        let (system, mut random) = draw(seed);
        let analysis = analyse(&system, Protocol::Omlp);
        let found = analysis.tasks.iter().filter(|task| task.response.is_some()).count();
        bounded += u64::from(2 * found > system.tasks().len());
        schedulable += u64::from(analysis.schedulable());
        blocked +=
            u64::from(analysis.tasks.iter().any(|task| task.blocking.is_some_and(|b| b.boosted > Duration::ZERO)));
        for id in system.task_ids() {
            let Some(response) = analysis.task(id).response else { continue };
            let terms = explain(&system, &analysis, id);
            assert_eq!(
                terms.iter().map(|term| term.total).sum::<Duration>(),
                response,
                "{terms:#?}\n{}",
                write_system(&system)
            );
            interfered += u64::from(terms.iter().any(|term| term.cause == lockwright_analysis::Cause::Interference));
        }
        if let Some((excess, config)) = attack(&system, &analysis, Protocol::Omlp, &mut random, RUNS, HORIZON) {
            panic!("seed {seed}: {excess:?} under {config:?}\n{analysis:#?}\n{}", write_system(&system));
        }
    }
    println!(
        "{bounded} bounded, {blocked} with donation, {schedulable} schedulable of {sets}; {interfered} tasks with interference"
    );
    assert!(bounded > sets / 3 && blocked > sets / 4 && schedulable > sets / 20 && interfered > sets);
}

#[test]
fn bounds_without_a_term_do_not() {
    for mutant in [Mutant::Waiting, Mutant::Boosted, Mutant::OwnCluster, Mutant::CarryIn, Mutant::Equals] {
        let caught = (0..100_000_u64).find(|&seed| {
            let (system, mut random) = draw(seed);
            let broken = analyse_mutant(&system, Protocol::Omlp, mutant);
            attack(&system, &broken, Protocol::Omlp, &mut random, RUNS, HORIZON).is_some()
        });
        println!("{mutant:?}: caught at set {caught:?}");
        assert!(caught.is_some(), "{mutant:?} was omitted, and no schedule shows it");
    }
}

/// If every cluster has one processor, the result is the same as for partitioned scheduling.
#[test]
fn clusters_of_one_are_processors() {
    for seed in 0..500 {
        let shape = Shape { cpus: (2, 3), nested: 0, utilization: (10, 60), ..Shape::small() };
        let system = generate(&mut Rng::with_seed(seed), &shape);
        let alone: Vec<u64> = system.tasks().iter().map(|task| 1 << task.cpu.index()).collect();
        let clustered = system.clone().in_clusters(&alone).expect("clusters of one");
        assert_eq!(clustered.scheduler(), Scheduler::CFp);
        assert_eq!(analyse(&clustered, Protocol::Omlp), analyse(&system, Protocol::Omlp));
        let schedule = |system: &System| {
            let config = Config::default().with_protocol(Protocol::Omlp).with_seed(seed);
            let mut simulation = Simulation::new(system, &config, Vec::new());
            simulation.run_until(Instant::from_ns(1_000));
            simulation.into_tracer()
        };
        assert_eq!(schedule(&clustered), schedule(&system));
    }
}

/// Three jobs on two processors. The most urgent job, which comes last, donates its priority to the least urgent one,
/// which holds the resource. The job between them executes all the time.
#[test]
fn a_donor_waits_and_others_are_not_delayed() {
    let text = r#"
        [platform]
        cpus = 2
        scheduler = "c-fp"
        priorities = "explicit"
        [[resource]]
        name = "r"
        [[task]]
        name = "low"
        cpus = [0, 1]
        priority = 1
        period = "100 ms"
        body = [{ lock = "r" }, { run = "20 ms" }, { unlock = "r" }, { run = "10 ms" }]
        [[task]]
        name = "middle"
        cpus = [0, 1]
        priority = 2
        period = "100 ms"
        offset = "1 ms"
        wcet = "30 ms"
        [[task]]
        name = "high"
        cpus = [0, 1]
        priority = 3
        period = "100 ms"
        offset = "5 ms"
        wcet = "10 ms"
    "#;
    let system = parse_system(text).expect("a valid system");
    let mut simulation = Simulation::new(&system, &Config::default(), ());
    simulation.run_until(Instant::from_ns(99_000_000));
    let seen = simulation.observations();
    let of = |task: usize| (seen[task].response.map(Duration::as_ns), seen[task].blocking.map(Duration::as_ns));
    let ms = |ms: u64| Some(ms * 1_000_000);
    // `high` waits from 5 to 20 and then executes on the CPU of `low`, which continues at 30.
    assert_eq!([0, 1, 2].map(of), [(ms(40), ms(0)), (ms(30), ms(0)), (ms(25), ms(15))]);
    let analysis = analyse(&system, Protocol::Omlp);
    let bound = |task| analysis.task(TaskId::new(task)).response.expect("a bound").as_ns();
    assert_eq!(bound(2), 30_000_000, "its execution and one request");
}
