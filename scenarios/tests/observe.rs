//! The runtime derives the same observations from records as the simulator counts during its run. Both define response
//! time, deadline miss, blocking and waiting in the same way.

use fastrand::Rng;
use lockwright_engine::observe::observe;
use lockwright_model::{Event, Instant, Observation, Protocol, Record, System};
use lockwright_sim::{Config, Offsets, Simulation};
use lockwright_study::{Shape, generate, generate_clusters};

/// Long enough for many jobs of each task, whose periods are at most 120 ns.
const END: Instant = Instant::from_ns(2_000);

fn simulate(system: &System, protocol: Protocol, seed: u64) -> (Vec<Observation>, Vec<Record>) {
    let offsets = Offsets::Random;
    let config = Config::default().with_protocol(protocol).with_offsets(offsets).with_seed(seed);
    let mut simulation = Simulation::new(system, &config, Vec::new());
    simulation.run_until(END);
    (simulation.observations(), simulation.into_tracer())
}

/// Removes the misses. Records end with the last event and a simulation ends with its time, so jobs that become late
/// in between are not compared.
fn comparable(mut observations: Vec<Observation>) -> Vec<Observation> {
    observations.iter_mut().for_each(|seen| seen.misses = 0);
    observations
}

#[test]
fn records_yield_the_counts_of_the_simulator() {
    // A job with release jitter is blocked from its release on, which records do not show.
    let shape = Shape { jitter: 0, ..Shape::small() };
    let mut blocked = 0;
    for seed in 0..2_000 {
        let system = generate(&mut Rng::with_seed(seed), &shape);
        for protocol in Protocol::ALL.into_iter().filter(|&protocol| system.refused_nesting(protocol).is_none()) {
            let (mut counted, records) = simulate(&system, protocol, seed);
            let mut read = observe(&system, &records);
            if protocol == Protocol::Mrsp {
                // Under MrsP, a task may execute on behalf of another one. Records do not show of which.
                counted.iter_mut().chain(&mut read).for_each(|seen| seen.blocking = None);
            }
            blocked += counted.iter().filter(|seen| seen.blocking.is_some_and(|b| b.as_ns() > 0)).count();
            assert_eq!(comparable(read), comparable(counted), "seed {seed} under {protocol}");
        }
    }
    assert!(blocked > 1_000, "only {blocked} tasks were blocked");
}

/// The same in clusters, where blocking has another definition.
#[test]
fn records_of_clusters_yield_the_same() {
    let shape = Shape { jitter: 0, nested: 0, tasks: (3, 8), ..Shape::small() };
    let mut blocked = 0;
    for seed in 0..2_000 {
        let sizes: &[usize] = if seed % 2 == 0 { &[2] } else { &[2, 1] };
        let system = generate_clusters(&mut Rng::with_seed(seed), &shape, sizes);
        let (counted, records) = simulate(&system, Protocol::Omlp, seed);
        blocked += counted.iter().filter(|seen| seen.blocking.is_some_and(|b| b.as_ns() > 0)).count();
        assert_eq!(comparable(observe(&system, &records)), comparable(counted), "seed {seed}");
    }
    assert!(blocked > 1_000, "only {blocked} tasks were blocked");
}

#[test]
fn a_missing_record_is_noticed() {
    let shape = Shape { jitter: 0, ..Shape::small() };
    let system = generate(&mut Rng::with_seed(1), &shape);
    let (counted, mut records) = simulate(&system, Protocol::Pip, 1);
    let finish = records.iter().position(|record| record.event == Event::Finish);
    records.remove(finish.expect("some job finishes"));
    assert_ne!(comparable(observe(&system, &records)), comparable(counted));
}
