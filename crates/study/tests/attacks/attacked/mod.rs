//! Random systems whose bounds are attacked by simulation.

use fastrand::Rng;
use lockwright_analysis::{Mutant, analyse, analyse_mutant};
use lockwright_model::format::write_system;
use lockwright_model::{Protocol, System};
use lockwright_study::{Shape, attack, generate};
use std::ops::Range;

/// Whether LOCKWRIGHT_DEEP is set, as in CI.
pub fn is_deep() -> bool {
    std::env::var_os("LOCKWRIGHT_DEEP").is_some()
}

/// Returns the number of systems to attack: `full` if LOCKWRIGHT_DEEP is set, and a tenth of it otherwise.
pub fn sets(full: u64) -> u64 {
    if is_deep() { full } else { full / 10 }
}

/// Counts of the attacked systems.
#[derive(Default, Debug)]
pub struct Tally {
    sets: u64,
    /// Systems in which most tasks have bounds.
    bounded: u64,
    with_blocking: u64,
    /// Systems in which interruptible sections restart.
    with_again: u64,
    schedulable: u64,
}

/// Attacks a system of each seed. Panics with the first system that exceeds a bound.
pub fn hold_all(protocol: Protocol, shape: &Shape, seeds: Range<u64>, runs: usize, horizon: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let system = generate(&mut random, shape);
        let analysis = analyse(&system, protocol);
        let bounded = analysis.tasks.iter().filter(|task| task.response.is_some()).count();
        let mut blocked = analysis.tasks.iter().filter_map(|task| task.blocking?.total());
        tally.sets += 1;
        tally.bounded += u64::from(bounded * 2 > system.tasks().len());
        tally.with_blocking += u64::from(blocked.any(|blocking| blocking.as_ns() > 0));
        if protocol.is_interruptible() {
            let without = analyse_mutant(&system, protocol, Mutant::Again);
            tally.with_again += u64::from(without != analysis);
        }
        tally.schedulable += u64::from(analysis.schedulable());
        if let Some((excess, config)) = attack(&system, &analysis, protocol, &mut random, runs, horizon) {
            panic!("{}", report(&system, protocol, seed, &format!("{excess:?} under {config:?}\n{analysis:#?}")));
        }
    }
    tally
}

/// Returns a system and its fault as text.
pub fn report(system: &System, protocol: Protocol, seed: u64, what: &str) -> String {
    format!("{protocol}, seed {seed}: {what}\n{}", write_system(system))
}

/// Asserts that the attacked systems are worth attacking.
pub fn worth(tally: &Tally) {
    println!("{tally:?}");
    assert!(tally.bounded > tally.sets / 3, "too few bounded sets: {tally:?}");
    assert!(tally.with_blocking.max(tally.with_again) > tally.sets / 4, "too few sets with blocking: {tally:?}");
    assert!(tally.schedulable > tally.sets / 20, "too few schedulable sets: {tally:?}");
}
