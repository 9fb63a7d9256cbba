//! Bounds count jobs from before a window: systems with late jobs exceed
//! a mutant without carry-in, and do not exceed the bounds themselves.

use fastrand::Rng;
use lockwright_analysis::{Analysis, Mutant, analyse, analyse_mutant, tighten, tighten_mutant};
use lockwright_model::format::write_system;
use lockwright_model::{Protocol, System};
use lockwright_study::{attack_late, generate_late};

/// The number of systems per protocol.
fn sets() -> u64 {
    crate::attacked::sets(3_000)
}
/// The number of schedules of each.
const RUNS: usize = 24;
/// The number of systems among which a mutant must be caught.
const CAUGHT_WITHIN: u64 = 100_000;

fn bounds_hold(protocol: Protocol) {
    let sets = sets();
    let mut bounded = 0;
    for seed in 0..sets {
        let mut random = Rng::with_seed(seed);
        let system = generate_late(&mut random);
        let mut analysis = analyse(&system, protocol);
        bounded += u64::from(analysis.tasks[0].response.is_some());
        for _ in 0..2 {
            if let Some((excess, config)) = attack_late(&system, &analysis, protocol, &mut random, RUNS) {
                let system = write_system(&system);
                panic!("{protocol}, seed {seed}: {excess:?} under {config:?}\n{analysis:#?}\n{system}");
            }
            if tighten(&system, &mut analysis).is_err() {
                break;
            }
        }
    }
    println!("{protocol}: {bounded} victims with bounds of {sets}");
    assert!(bounded > sets / 10, "{protocol}: {bounded}");
}

fn broken_ones_do_not(protocol: Protocol, broken: impl Fn(&System) -> Option<Analysis>) {
    let caught = (0..CAUGHT_WITHIN).find(|&seed| {
        let mut random = Rng::with_seed(seed);
        let system = generate_late(&mut random);
        broken(&system).is_some_and(|broken| attack_late(&system, &broken, protocol, &mut random, RUNS).is_some())
    });
    println!("{protocol}: caught at set {caught:?}");
    assert!(caught.is_some(), "{protocol}: jobs from before the window were omitted, and no schedule shows it");
}

macro_rules! protocols {
    ($($name:ident: $protocol:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn bounds_hold() {
                super::bounds_hold(Protocol::$protocol);
            }

            #[test]
            fn bounds_without_carry_in_do_not() {
                broken_ones_do_not(Protocol::$protocol, |system| {
                    Some(analyse_mutant(system, Protocol::$protocol, Mutant::RemoteCarryIn))
                });
            }
        }
    )*};
}

macro_rules! programs {
    ($($name:ident: $protocol:ident;)*) => {$(
        #[test]
        fn $name() {
            broken_ones_do_not(Protocol::$protocol, |system| {
                let mut broken = analyse(system, Protocol::$protocol);
                tighten_mutant(system, &mut broken, Mutant::RemoteCarryIn).ok()?;
                Some(broken)
            });
        }
    )*};
}

protocols! {
    mpcp: Mpcp;
    mpcp_vs: MpcpVs;
    dpcp: Dpcp;
    dflp: Dflp;
    fmlp_long: FmlpLong;
    fmlp_plus: FmlpPlus;
    fmlp_short: FmlpShort;
    msrp: Msrp;
    mrsp: Mrsp;
    omlp: Omlp;
    phase_fair: PhaseFair;
    task_fair: TaskFair;
}

/// Programs without carry-in do not hold.
mod programs {
    use super::*;

    programs! {
        mpcp: Mpcp;
        dpcp: Dpcp;
        dflp: Dflp;
        fmlp_plus: FmlpPlus;
        fmlp_short: FmlpShort;
        msrp: Msrp;
        mrsp: Mrsp;
    }
}
