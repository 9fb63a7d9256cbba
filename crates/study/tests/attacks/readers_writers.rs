//! The effect of sections that read: none under a protocol without readers, and shorter waits under the others. The
//! attacks on the bounds of these are in `protocols_hold.rs`.

use fastrand::Rng;
use lockwright_analysis::analyse;
use lockwright_model::{Duration, Instant, Protocol, Step, System};
use lockwright_sim::{Config, Offsets, Simulation};
use lockwright_study::{Shape, attack, generate};

use crate::attacked;

/// Draws a system in which about half of the sections read.
fn draw(random: &mut Rng) -> System {
    let shape = Shape { cpus: (2, 4), nested: 0, jitter: 0, utilization: (10, 60), reads: 50, ..Shape::small() };
    generate(random, &shape)
}

/// Returns the system with sections that write in place of those that read.
fn exclusive(system: &System) -> System {
    let mut tasks = system.tasks().to_vec();
    for step in tasks.iter_mut().flat_map(|task| &mut task.body) {
        if let Step::Read(resource) = *step {
            *step = Step::Lock(resource);
        }
    }
    system.with_tasks(tasks).expect("valid with any mode")
}

#[test]
fn reading_changes_no_other_protocol() {
    for protocol in Protocol::ALL {
        let (mut waits, mut changed) = (0, 0);
        for seed in 0..attacked::sets(500) {
            let system = draw(&mut Rng::with_seed(seed));
            let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().expect("a task");
            let observe = |system: &System| {
                let config = Config::default().with_protocol(protocol).with_offsets(Offsets::Random).with_seed(seed);
                let mut simulation = Simulation::new(system, &config, ());
                simulation.run_until(Instant::from_ns(longest * 6));
                simulation.observations()
            };
            let (seen, alike) = (observe(&system), exclusive(&system));
            let same = seen == observe(&alike) && analyse(&system, protocol) == analyse(&alike, protocol);
            changed += u64::from(!same);
            waits += seen.iter().filter(|seen| seen.lock_wait > Some(Duration::ZERO) || seen.restarts > 0).count();
        }
        assert_eq!(changed > 0, protocol.has_readers(), "{protocol}: {changed} systems");
        assert!(waits > 0 || protocol == Protocol::WaitFree, "{protocol}: nobody asked for what another had");
    }
}

/// Under `task_fair` no bound is greater than under `fmlp_short`. Without readers, the three protocols have one bound.
#[test]
fn bounds_are_those_of_exclusive_spinlocks_or_less() {
    let mut less = 0;
    for seed in 0..attacked::sets(2_000) {
        let system = draw(&mut Rng::with_seed(seed));
        let responses = |system: &System, protocol| -> Vec<Duration> {
            let bounds = analyse(system, protocol).tasks;
            bounds.iter().map(|task| task.response.unwrap_or(Duration::from_ns(u64::MAX))).collect()
        };
        let spinning = responses(&system, Protocol::FmlpShort);
        let shared = responses(&system, Protocol::TaskFair);
        assert!(shared.iter().zip(&spinning).all(|(shared, alone)| shared <= alone), "set {seed}");
        less += u64::from(shared != spinning);
        let alike = exclusive(&system);
        for protocol in [Protocol::PhaseFair, Protocol::TaskFair] {
            assert_eq!(responses(&alike, protocol), spinning, "{protocol}: set {seed}");
        }
    }
    assert!(less > 0, "reading together lowers no bound");
}

/// A lock that excludes readers from each other does not keep the bounds of one that they share.
#[test]
fn readers_that_exclude_each_other_exceed_the_bounds() {
    for protocol in [Protocol::PhaseFair, Protocol::TaskFair] {
        let exceeded = (0..100_000).find(|&seed| {
            let mut random = Rng::with_seed(seed);
            let system = draw(&mut random);
            attack(&exclusive(&system), &analyse(&system, protocol), protocol, &mut random, 4, 6).is_some()
        });
        println!("{protocol}: exceeded at set {exceeded:?}");
        assert!(exceeded.is_some(), "{protocol}: reading together shortens no response");
    }
}
