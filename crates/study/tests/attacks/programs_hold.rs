//! The bounds of linear programs: no simulated response or blocking of a random system exceeds them, and a bound
//! without one of its terms is exceeded. The systems also have resources of one processor, release jitter and
//! constrained deadlines, which the programs themselves do not model. See also `protocols_hold.rs`.

use crate::spin_hold::sharing;
use fastrand::Rng;
use lockwright_analysis::blocking::mrsp::{Access, zhao};
use lockwright_analysis::{Mutant, Proof, Uncovered, analyse, tighten, tighten_mutant};
use lockwright_model::format::write_system;
use lockwright_model::{Duration, Protocol, Scheduler, System};
use lockwright_study::{Shape, attack, generate, generate_clusters};

/// The number of covered systems of each shape.
fn sets() -> u64 {
    crate::attacked::sets(5_000)
}
const RUNS: usize = 4;
/// The length of a schedule, in longest periods.
const HORIZON: u64 = 6;

/// Returns a system and its fault as text.
fn report(system: &System, protocol: Protocol, seed: u64, what: &str) -> String {
    format!("{protocol}, seed {seed}: {what}\n{}", write_system(system))
}

fn shapes(protocol: Protocol) -> [Shape; 2] {
    let shuffled = if protocol == Protocol::Mrsp { 0 } else { 30 };
    let several = Shape { cpus: (2, 3), nested: 0, utilization: (10, 60), own_ceiling: 0, shuffled, ..Shape::small() };
    let crowded =
        Shape { cpus: (2, 4), tasks: (4, 12), resources: (1, 3), period: (20, 400), section: 8, ..several.clone() };
    [several, crowded]
}

fn hold_all(protocol: Protocol) {
    let (mut tasks, mut bounded, mut lowered, mut alone) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut ratios: Vec<f64> = Vec::new();
    let mut mutants_caught = 0;
    for (which, shape) in shapes(protocol).iter().enumerate() {
        let (mut seed, mut covered) = ((which as u64) << 32, 0);
        // BOUND: at least every third system shares a resource across processors.
        while covered < sets() {
            seed += 1;
            let mut random = Rng::with_seed(seed);
            let system = generate(&mut random, shape);
            let classic = analyse(&system, protocol);
            let mut analysis = classic.clone();
            match tighten(&system, &mut analysis) {
                Ok(()) => covered += 1,
                Err(Uncovered::Alone) => continue,
                Err(why) => panic!("{}", report(&system, protocol, seed, &format!("{why:?}"))),
            }
            for (before, after) in classic.tasks.iter().zip(&analysis.tasks) {
                assert!(before.response.is_none_or(|before| after.response.is_some_and(|after| after <= before)));
                tasks += 1;
                bounded += u64::from(after.response.is_some());
                if after.proof == Proof::Program {
                    let after = after.response.expect("a proof is of a response");
                    lowered += 1;
                    alone += u64::from(before.response.is_none());
                    ratios.extend(before.response.map(|before| before.as_ns() as f64 / after.as_ns() as f64));
                }
            }
            if let Some((excess, config)) = attack(&system, &analysis, protocol, &mut random, RUNS, HORIZON) {
                panic!("{}", report(&system, protocol, seed, &format!("{excess:?} under {config:?}\n{analysis:#?}")));
            }
            // The mutant: bounds lower by a tenth are exceeded.
            if mutants_caught < 10 {
                for task in &mut analysis.tasks {
                    task.response = task.response.map(|response| Duration::from_ns(response.as_ns() * 9 / 10));
                }
                mutants_caught += u64::from(attack(&system, &analysis, protocol, &mut random, RUNS, HORIZON).is_some());
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
    println!(
        "{protocol}: {tasks} tasks, {bounded} bounded, {:.1} % of them by programs (median {median:.2} times), {:.1} % by them alone",
        percent(lowered, bounded),
        percent(alone, bounded)
    );
    assert!(lowered * 50 > bounded, "{protocol}: {lowered} of {bounded}");
    assert_eq!(mutants_caught, 10);
}

/// Zhao's analysis counts each remote request once, as the program
/// does, but takes each to be as long as the longest on the resource.
#[test]
fn programs_are_never_above_zhaos_analysis() {
    let [several, crowded] = shapes(Protocol::Mrsp);
    let (mut compared, mut lower) = (0, 0);
    for seed in 0..4_000 {
        let shape = Shape { jitter: 0, ..if seed % 2 == 0 { several.clone() } else { crowded.clone() } };
        let system = generate(&mut Rng::with_seed(seed), &shape);
        if system.resource_ids().any(|id| !system.is_global(id) && !system.users(id).is_empty()) {
            continue;
        }
        let sharing = sharing(&system);
        let Ok(zhao) = zhao(&sharing, Access::Helped) else { continue };
        let mut analysis = analyse(&system, Protocol::Mrsp);
        if tighten(&system, &mut analysis).is_err() {
            continue;
        }
        for (bound, &zhao) in analysis.tasks.iter().zip(&zhao.responses) {
            let response = bound.response.map(Duration::as_ns);
            assert!(
                response.is_some_and(|response| response <= zhao),
                "{}",
                report(&system, Protocol::Mrsp, seed, &format!("{response:?} {zhao}"))
            );
            compared += 1;
            lower += u64::from(response < Some(zhao));
        }
    }
    println!("{compared} tasks, {lower} with a lower bound than Zhao's");
    assert!(compared > 500 && lower > compared / 50, "{lower} of {compared}");
}

/// An uncovered system is reported as such, and its analysis is unchanged.
#[test]
fn uncovered_systems_are_reported() {
    let [shape, _] = shapes(Protocol::Mpcp);
    let mut random = Rng::with_seed(1);
    let system = generate(&mut random, &shape);
    let clusters = generate_clusters(&mut random, &shape, &[2, 2]);
    for (system, protocol, expected) in [
        (clusters, Protocol::Omlp, Uncovered::Clusters),
        (system.clone().under(Scheduler::PEdf), Protocol::Msrp, Uncovered::Scheduler(Scheduler::PEdf)),
        (system.under(Scheduler::GEdf), Protocol::Msrp, Uncovered::Scheduler(Scheduler::GEdf)),
    ] {
        let mut analysis = analyse(&system, protocol);
        let classic = analysis.clone();
        assert_eq!(tighten(&system, &mut analysis), Err(expected));
        assert_eq!(analysis, classic);
    }
}

macro_rules! programs {
    ($($name:ident: $protocol:ident, [$($mutant:ident),*];)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn bounds_hold() {
                hold_all(Protocol::$protocol);
            }

            #[test]
            fn bounds_without_a_term_do_not() {
                for mutant in [$(Mutant::$mutant),*] {
                    let [shape, _] = shapes(Protocol::$protocol);
                    let caught = (0..100_000_u64).find(|&seed| {
                        let mut random = Rng::with_seed(seed);
                        let system = generate(&mut random, &shape);
                        let mut broken = analyse(&system, Protocol::$protocol);
                        tighten_mutant(&system, &mut broken, mutant).is_ok()
                            && attack(&system, &broken, Protocol::$protocol, &mut random, RUNS, HORIZON).is_some()
                    });
                    println!("{mutant:?}: caught at set {caught:?}");
                    assert!(caught.is_some(), "{mutant:?} was omitted, and no schedule shows it");
                }
            }
        }
    )*};
}

programs! {
    mpcp: Mpcp, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    dpcp: Dpcp, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    dflp: Dflp, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    fmlp_plus: FmlpPlus, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    fmlp_short: FmlpShort, [Waiting, Boosted];
    msrp: Msrp, [Waiting, Boosted];
    mrsp: Mrsp, [Waiting, Boosted, LocalIcpp];
}
