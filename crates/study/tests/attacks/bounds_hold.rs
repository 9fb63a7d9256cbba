//! Simulated schedules never exceed a bound, for every protocol. A bound without one of its terms is caught.

use fastrand::Rng;
use lockwright_analysis::{Mutant, analyse, analyse_mutant};
use lockwright_model::format::parse_system;
use lockwright_model::{Instant, Protocol};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Shape, attack, generate, hold};

use crate::attacked::{self, Tally, worth};

/// The number of task sets per protocol.
fn sets() -> u64 {
    attacked::sets(10_000)
}
/// The number of schedules of each.
const RUNS: usize = 4;
/// The length of each schedule, in longest periods.
const HORIZON: u64 = 12;

fn hold_all(protocol: Protocol, shape: &Shape, first_seed: u64, sets: u64) -> Tally {
    attacked::hold_all(protocol, shape, first_seed..first_seed + sets, RUNS, HORIZON)
}

#[test]
fn none() {
    // Bounds exist if no task can come between two users: one processor and few tasks.
    let shape = Shape { cpus: (1, 1), tasks: (2, 4), resources: (1, 3), nested: 0, sections: (1, 3), ..Shape::small() };
    worth(&hold_all(Protocol::None, &shape, 0, sets()));
}

#[test]
fn pip() {
    let one = Shape { cpus: (1, 1), ..Shape::small() };
    worth(&hold_all(Protocol::Pip, &one, 0, sets()));
    hold_all(Protocol::Pip, &Shape::small(), 1 << 32, sets() / 2);
    hold_all(Protocol::Pip, &Shape { nested: 60, ..one }, 1 << 33, sets() / 2);
}

#[test]
fn icpp() {
    let one = Shape { cpus: (1, 1), ..Shape::small() };
    worth(&hold_all(Protocol::Icpp, &one, 0, sets()));
    hold_all(Protocol::Icpp, &Shape::small(), 1 << 32, sets() / 2);
    hold_all(Protocol::Icpp, &Shape { nested: 60, ..one }, 1 << 33, sets() / 2);
}

#[test]
fn mpcp() {
    let shape = Shape { cpus: (1, 3), nested: 3, utilization: (10, 60), ..Shape::small() };
    worth(&hold_all(Protocol::Mpcp, &shape, 0, sets()));
    let more = Shape { cpus: (2, 4), tasks: (4, 12), resources: (1, 3), period: (20, 400), ..shape };
    hold_all(Protocol::Mpcp, &more, 1 << 32, sets() / 2);
}

#[test]
fn resources_of_several_protocols() {
    let own = (50, vec![Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp]);
    let shape = Shape { nested: 3, utilization: (10, 60), own_protocol: own, ..Shape::small() };
    for protocol in [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp] {
        hold_all(protocol, &shape, 1 << 34, sets() / 2);
    }
}

/// Returns the protocol and the shape of systems that should reveal an omitted term.
fn hunting_ground(mutant: Mutant) -> (Protocol, Shape) {
    let one = Shape { cpus: (1, 1), nested: 0, utilization: (20, 70), ..Shape::small() };
    let several = Shape { cpus: (2, 3), nested: 0, utilization: (10, 60), ..Shape::small() };
    match mutant {
        Mutant::LocalIcpp => (Protocol::Icpp, one),
        Mutant::LocalPip | Mutant::LocalPipRest => (Protocol::Pip, one),
        Mutant::ReleaseJitter => (Protocol::Icpp, Shape { jitter: 80, ..one }),
        Mutant::Equals => (Protocol::Icpp, Shape { shuffled: 100, ..one }),
        Mutant::RemoteEquals => (Protocol::Mpcp, Shape { shuffled: 100, ..several }),
        _ => (Protocol::Mpcp, several),
    }
}

#[test]
fn every_mutant_is_caught() {
    // `RemoteCarryIn` is tested below. The others up to `AgainOfBlocker` belong to other protocols:
    // `protocols_hold.rs`, and `clusters_hold.rs` for clusters.
    let elsewhere = [
        Mutant::RemoteCarryIn,
        Mutant::Waiting,
        // `own_owners.rs`.
        Mutant::OwnOwners,
        Mutant::OwnCluster,
        Mutant::CarryIn,
        Mutant::Again,
        Mutant::AgainRest,
        Mutant::AgainOfBlocker,
        // This one concerns interrupts in clusters: `overheads_hold.rs`.
        Mutant::Pinned,
        Mutant::RemoteCommits,
        Mutant::Preempted,
        Mutant::Reads,
        Mutant::Writes,
        // `long_resources_hold.rs`.
        Mutant::Resumption,
        // `edf_resources_hold.rs`.
        Mutant::Partners,
    ];
    for mutant in Mutant::ALL.into_iter().filter(|mutant| !elsewhere.contains(mutant)) {
        let (protocol, shape) = hunting_ground(mutant);
        let caught = (0..100_000_u64).find(|&seed| {
            let mut random = Rng::with_seed(seed);
            let system = generate(&mut random, &shape);
            let broken = analyse_mutant(&system, protocol, mutant);
            attack(&system, &broken, protocol, &mut random, RUNS, HORIZON).is_some()
        });
        println!("{mutant:?}: caught at set {caught:?}");
        assert!(caught.is_some(), "{mutant:?} was omitted, and no schedule shows it");
    }
}

/// Random schedules hardly find this schedule.
#[test]
fn jobs_without_carry_in_are_caught() {
    let system = parse_system(include_str!("counterexamples/remote-carry-in.toml")).unwrap();
    for protocol in [Protocol::Mpcp, Protocol::MpcpVs] {
        let config = Config::default().with_protocol(protocol);
        let mut simulation = Simulation::new(&system, &config, ());
        simulation.run_until(Instant::from_ns(990));
        let (seen, ages) = (simulation.observations(), simulation.ages());
        assert_eq!(hold(&analyse(&system, protocol), &seen, &ages), None);
        let broken = analyse_mutant(&system, protocol, Mutant::RemoteCarryIn);
        let excess = hold(&broken, &seen, &ages).expect("the broken bound is exceeded");
        let name = system.task(excess.task).name.as_str();
        assert_eq!((name, excess.bound.as_ns(), excess.observed.as_ns()), ("i", 35, 44), "{protocol}");
    }
}
