//! Under P-EDF with SRP for resources of one processor and MSRP for the others: no job of a random system that is proved schedulable is late, and a proof without the
//! blocking is refuted.

use fastrand::Rng;
use lockwright_analysis::scheduled;
use lockwright_model::format::write_system;
use lockwright_model::{Duration, Instant, Overheads, Scheduler, Step, System};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation};
use lockwright_study::{Shape, generate};

const SETS: u64 = 10_000;
const RUNS: usize = 6;

fn shape() -> Shape {
    Shape {
        cpus: (1, 3),
        nested: 0,
        jitter: 0,
        own_ceiling: 0,
        utilization: (40, 95),
        sections: (0, 3),
        ..Shape::small()
    }
}

/// How many jobs were late in the worst of several schedules.
fn misses(system: &System, random: &mut Rng) -> u64 {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
    let schedule = |run: usize| {
        let config = Config {
            offsets: match run % 3 {
                0 => Offsets::Synchronous,
                1 => Offsets::Fixed(system.task_ids().map(|_| Duration::from_ns(random.u64(0..30))).collect()),
                _ => Offsets::Random,
            },
            arrivals: if run % 4 == 3 { Arrivals::Sporadic } else { Arrivals::Periodic },
            execution: if run % 5 == 4 { Execution::Random } else { Execution::Worst },
            seed: random.u64(..),
            shuffle: run % 2 == 1,
            ..Config::default()
        };
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(Instant::from_ns(longest * 8));
        simulation.observations().iter().map(|seen| seen.misses).sum::<u64>()
    };
    (0..RUNS).map(schedule).max().unwrap_or(0)
}

fn is_proved(system: &System) -> bool {
    scheduled(system, &Overheads::default()).is_ok_and(|found| found.schedulable)
}

fn drawn(seed: u64) -> (System, Rng) {
    let mut random = Rng::with_seed(seed);
    (generate(&mut random, &shape()).under(Scheduler::PEdf), random)
}

#[test]
fn what_is_proved_is_not_late() {
    let (mut proved, mut sharing) = (0, 0);
    let mut seed = 0;
    // BOUND: every other set or so is proved.
    while proved < SETS {
        let (system, mut random) = drawn(seed);
        if is_proved(&system) {
            proved += 1;
            sharing += u64::from(system.resource_ids().any(|resource| system.users(resource).len() > 1));
            assert_eq!(misses(&system, &mut random), 0, "seed {seed}\n{}", write_system(&system));
        }
        seed += 1;
    }
    println!("{proved} of {seed} proved, {sharing} with a shared resource");
    assert!(sharing > SETS / 4, "{sharing}");
}

/// The twin: the same tasks without their locks are proved; with them some job is late.
#[test]
fn a_proof_without_blocking_is_refuted() {
    let refuted = (0..100_000).find(|&seed| {
        let (system, mut random) = drawn(seed);
        let mut tasks = system.tasks().to_vec();
        tasks.iter_mut().for_each(|task| task.body.retain(|step| matches!(step, Step::Run(_))));
        is_proved(&system.with_tasks(tasks).expect("as valid as before")) && misses(&system, &mut random) > 0
    });
    println!("refuted at set {refuted:?}");
    assert!(refuted.is_some());
}
