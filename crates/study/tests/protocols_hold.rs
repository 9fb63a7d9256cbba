//! Under every protocol for several processors, and `pcp` and `srp` on one: no simulated response or blocking of a random system exceeds its bound, and a bound
//! without one of its terms is exceeded. As `bounds_hold.rs`.

use fastrand::Rng;
use lockwright_analysis::{Omit, analyse, analyse_omitting};
use lockwright_model::format::write_system;
use lockwright_model::{Protocol, System};
use lockwright_study::{Shape, attack, generate};

const SETS: u64 = 10_000;
/// Schedules of each set, and their length in longest periods.
const RUNS: usize = 4;
const HORIZON: u64 = 6;

#[derive(Default, Debug)]
struct Tally {
    sets: u64,
    bounded: u64,
    with_blocking: u64,
    schedulable: u64,
}

fn hold_all(protocol: Protocol, shape: &Shape, first_seed: u64, sets: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in first_seed..first_seed + sets {
        let mut random = Rng::with_seed(seed);
        let system = generate(&mut random, shape);
        let analysis = analyse(&system, protocol);
        tally.sets += 1;
        tally.bounded +=
            u64::from(analysis.tasks.iter().filter(|task| task.response.is_some()).count() * 2 > system.tasks().len());
        let blocked = |task: &lockwright_analysis::TaskBound| task.blocking.and_then(|blocking| blocking.total());
        tally.with_blocking +=
            u64::from(analysis.tasks.iter().filter_map(blocked).any(|blocking| blocking.as_ns() > 0));
        tally.schedulable += u64::from(analysis.schedulable());
        if let Some((excess, config)) = attack(&system, &analysis, protocol, &mut random, RUNS, HORIZON) {
            panic!("{}", report(&system, protocol, seed, &format!("{excess:?} under {config:?}\n{analysis:#?}")));
        }
    }
    tally
}

fn report(system: &System, protocol: Protocol, seed: u64, what: &str) -> String {
    format!("{protocol}, seed {seed}: {what}\n{}", write_system(system))
}

/// The sets must be worth attacking.
fn worth(tally: &Tally) {
    println!("{tally:?}");
    assert!(tally.bounded > tally.sets / 3, "too few bounded sets: {tally:?}");
    assert!(tally.with_blocking > tally.sets / 4, "too few sets with blocking: {tally:?}");
    assert!(tally.schedulable > tally.sets / 20, "too few schedulable sets: {tally:?}");
}

fn one() -> Shape {
    Shape { cpus: (1, 1), ..Shape::small() }
}

fn several() -> Shape {
    Shape { cpus: (2, 3), nested: 0, own_ceiling: 0, utilization: (10, 60), ..Shape::small() }
}

/// More tasks, longer periods, short sections: many requests of many tasks within one response.
fn crowded() -> Shape {
    Shape { cpus: (2, 4), tasks: (4, 12), resources: (1, 3), period: (20, 400), section: 8, ..several() }
}

fn shapes(protocol: Protocol) -> [Shape; 2] {
    match protocol {
        Protocol::Pcp | Protocol::Srp => [one(), Shape { nested: 60, ..one() }],
        // Each task of a processor has its own priority.
        Protocol::Mrsp => [several(), crowded()].map(|shape| Shape { shuffled: 0, ..shape }),
        _ => [several(), crowded()],
    }
}

macro_rules! protocols {
    ($($name:ident: $protocol:ident, [$($omit:ident),*];)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn bounds_hold() {
                let [first, second] = shapes(Protocol::$protocol);
                worth(&hold_all(Protocol::$protocol, &first, 0, SETS / 2));
                worth(&hold_all(Protocol::$protocol, &second, 1 << 32, SETS / 2));
            }

            #[test]
            fn bounds_without_a_term_do_not() {
                for omit in [$(Omit::$omit),*] {
                    let [shape, _] = shapes(Protocol::$protocol);
                    let caught = (0..100_000_u64).find(|&seed| {
                        let mut random = Rng::with_seed(seed);
                        let system = generate(&mut random, &shape);
                        let broken = analyse_omitting(&system, Protocol::$protocol, omit);
                        attack(&system, &broken, Protocol::$protocol, &mut random, RUNS, HORIZON).is_some()
                    });
                    println!("{omit:?}: caught at set {caught:?}");
                    assert!(caught.is_some(), "{omit:?} was left out, and no schedule noticed");
                }
            }
        }
    )*};
}

protocols! {
    pcp: Pcp, [LocalIcpp];
    srp: Srp, [LocalIcpp];
    mpcp_vs: MpcpVs, [Waiting, Boosted, LocalIcpp];
    dpcp: Dpcp, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    dflp: Dflp, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    fmlp_long: FmlpLong, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    fmlp_plus: FmlpPlus, [Waiting, Boosted, LocalIcpp, SuspensionJitter];
    fmlp_short: FmlpShort, [Waiting, Boosted];
    msrp: Msrp, [Waiting, Boosted];
    mrsp: Mrsp, [Waiting, Boosted, LocalIcpp];
    omlp: Omlp, [Waiting, Boosted, LocalIcpp];
}
