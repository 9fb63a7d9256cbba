//! Every protocol for several processors, and `pcp` and `srp` on one: no simulated response or blocking of a random
//! system exceeds its bound, and a bound without one of its terms is exceeded. See also `bounds_hold.rs`.

use fastrand::Rng;
use lockwright_analysis::{Mutant, analyse, analyse_mutant};
use lockwright_model::format::parse_system;
use lockwright_model::{Duration, Instant, Protocol, System};
use lockwright_sim::{Config, Simulation};
use lockwright_study::{Excess, Shape, attack, generate, hold};

use crate::attacked::{self, Tally, worth};

fn sets() -> u64 {
    attacked::sets(10_000)
}
/// The number of schedules of each set, and their length in longest periods.
const RUNS: usize = 4;
const HORIZON: u64 = 6;

fn hold_all(protocol: Protocol, shape: &Shape, first_seed: u64, sets: u64) -> Tally {
    attacked::hold_all(protocol, shape, first_seed..first_seed + sets, RUNS, HORIZON)
}

fn one() -> Shape {
    Shape { cpus: (1, 1), ..Shape::small() }
}

fn several() -> Shape {
    Shape { cpus: (2, 3), nested: 0, utilization: (10, 60), ..Shape::small() }
}

/// More tasks, longer periods and shorter sections: many requests of many tasks within one response.
fn crowded() -> Shape {
    Shape { cpus: (2, 4), tasks: (4, 12), resources: (1, 3), period: (20, 400), section: 8, ..several() }
}

fn shapes(protocol: Protocol) -> [Shape; 2] {
    match protocol {
        Protocol::Pcp | Protocol::Srp => [one(), Shape { nested: 60, ..one() }],
        Protocol::Ics | Protocol::IcsLock => {
            let flat = Shape { nested: 0, cutoff: 50, ..one() };
            // Most execution is in sections, in which more urgent tasks commit again and again.
            let busy =
                Shape { tasks: (3, 9), sections: (1, 5), period: (10, 200), utilization: (20, 60), ..flat.clone() };
            [flat, busy]
        }
        // Each task of a processor has its own priority.
        Protocol::Mrsp => [several(), crowded()].map(|shape| Shape { shuffled: 0, ..shape }),
        Protocol::PhaseFair | Protocol::TaskFair => [several(), crowded()].map(|shape| Shape { reads: 50, ..shape }),
        _ => [several(), crowded()],
    }
}

/// Returns the response of the task `name` under `protocol` in the schedule of the file, and the first observation
/// that exceeds a bound of `analysis`.
fn seen(
    system: &System,
    protocol: Protocol,
    name: &str,
    analysis: &lockwright_analysis::Analysis,
) -> (Duration, Option<Excess>) {
    let config = Config::default().with_protocol(protocol);
    let mut simulation = Simulation::new(system, &config, ());
    simulation.run_until(Instant::from_ns(990_000_000));
    let task = system.task_ids().find(|&id| system.task(id).name == name).expect("a task of that name");
    let observations = simulation.observations();
    let response = observations[task.index()].response.expect("it finishes");
    (response, hold(analysis, &observations, &simulation.ages()))
}

/// Returns the head of a file with two processors and these resources.
fn head(resources: &[&str]) -> String {
    let resources: String = resources.iter().map(|name| format!("[[resource]]\nname = \"{name}\"\n")).collect();
    format!("[platform]\ncpus = 2\npriorities = \"explicit\"\n{resources}")
}

fn section(resource: &str, run: &str) -> String {
    format!("{{ lock = \"{resource}\" }}, {{ run = \"{run}\" }}, {{ unlock = \"{resource}\" }}, ")
}

fn task(name: &str, cpu: u8, priority: u8, offset: &str, body: &str) -> String {
    let who = format!("[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 s\"\n");
    format!("{who}offset = \"{offset}\"\nbody = [{body}]\n")
}

/// Whenever the victim waits, a less urgent task of its processor begins a section under `icpp`. The bound counts
/// everything that others of the owner's processor execute in each wait, so random schedules do not find this case.
#[test]
fn sections_delay_a_job_at_each_wait_under_fmlp_long() {
    let run = "{ run = \"100 us\" }, ";
    let text = head(&["q", "r"])
        + &task("top", 0, 9, "900 ms", &section("r", "100 us"))
        + &task("victim", 0, 8, "50 us", &(section("q", "100 us") + run).repeat(4))
        + &task("low", 0, 1, "0 ms", &(run.to_owned() + &section("r", "6 ms").repeat(5)))
        + &task("far", 1, 5, "0 ms", &section("q", "300 us").repeat(6));
    let system = parse_system(&text).expect("a valid system");
    let analysis = analyse(&system, Protocol::FmlpLong);
    let (response, excess) = seen(&system, Protocol::FmlpLong, "victim", &analysis);
    assert_eq!(excess, None, "{analysis:#?}");
    assert!(analysis.tasks[1].response.is_some_and(|bound| bound >= response), "it has a bound");
    let broken = analyse_mutant(&system, Protocol::FmlpLong, Mutant::Repeats);
    assert!(seen(&system, Protocol::FmlpLong, "victim", &broken).1.is_some(), "the term is needed");
}

/// A task that is held back waits for a more urgent task, which local
/// sections delay again and again. Random schedules do not find this case.
#[test]
fn sections_delay_the_task_a_held_back_job_waits_for() {
    let run = "{ run = \"1 ms\" }, ";
    let text = head(&["q", "r", "s"])
        + &task("top", 0, 9, "900 ms", &section("r", "1 ms"))
        + &task("high", 0, 8, "1 ms", &(section("q", "1 ms") + run).repeat(4))
        + &task("victim", 0, 7, "1 ms", &(section("s", "1 ms") + run))
        + &task("low", 0, 1, "0 ms", &(run.to_owned() + &section("r", "30 ms").repeat(5)))
        + &task("far", 1, 5, "0 ms", &section("q", "3 ms").repeat(100))
        + &task("far2", 1, 4, "950 ms", &section("s", "1 ms"));
    let system = parse_system(&text).expect("a valid system");
    for protocol in [Protocol::Omlp, Protocol::MpcpVs] {
        let analysis = analyse(&system, protocol);
        let (response, excess) = seen(&system, protocol, "victim", &analysis);
        assert_eq!(excess, None, "{protocol}: {analysis:#?}");
        assert!(response >= Duration::from_ms(150), "{protocol}: {response}");
        assert!(analysis.tasks[2].response.is_some(), "{protocol}: it has a bound");
        let broken = analyse_mutant(&system, protocol, Mutant::Repeats);
        assert!(seen(&system, protocol, "victim", &broken).1.is_some(), "{protocol}: the term is needed");
    }
}

#[test]
fn systems_that_once_broke_a_bound_no_longer_do() {
    for (text, protocol, name, at_most) in [
        // The owner's base priority once counted on its helper's processor.
        (include_str!("counterexamples/mrsp-helped-with-base.toml"), Protocol::Mrsp, "victim", 6),
        (include_str!("counterexamples/msrp-fixed-ceiling.toml"), Protocol::Msrp, "urgent", 30),
        (include_str!("counterexamples/srp-global.toml"), Protocol::Srp, "urgent", 60),
        (include_str!("counterexamples/pcp-fixed-ceiling.toml"), Protocol::Pcp, "urgent", 20),
    ] {
        let system = parse_system(text).expect("a counterexample is valid");
        let analysis = analyse(&system, protocol);
        let (response, excess) = seen(&system, protocol, name, &analysis);
        assert_eq!(excess, None, "{protocol}: {analysis:#?}");
        assert!(response <= Duration::from_ms(at_most), "{protocol}: {response}");
        // Only under MrsP do all tasks have bounds. Under the others the schedule shows why some have none.
        let bounded = analysis.tasks.iter().all(|task| task.response.is_some());
        assert_eq!(bounded, protocol == Protocol::Mrsp, "{protocol}");
    }
}

/// The bound has a term that the published equation lacks.
#[test]
fn a_job_that_commits_two_resources() {
    let system = parse_system(include_str!("counterexamples/ics-two-resources.toml")).expect("a valid system");
    let analysis = analyse(&system, Protocol::Ics);
    let (response, excess) = seen(&system, Protocol::Ics, "low", &analysis);
    assert_eq!((response, excess), (Duration::from_ns(32), None), "{analysis:#?}");
    assert_eq!(analysis.tasks[2].response, Some(response), "the bound is reached");
    let broken = analyse_mutant(&system, Protocol::Ics, Mutant::AgainRest);
    assert_eq!(broken.tasks[2].response, Some(Duration::from_ns(27)));
    assert!(seen(&system, Protocol::Ics, "low", &broken).1.is_some(), "the term is needed");
}

/// Operations that nobody delays: the bound is that of tasks without resources.
#[test]
fn wait_free() {
    let tally = hold_all(Protocol::WaitFree, &several(), 0, sets() / 2);
    println!("{tally:?}");
    let broken = |mutant| {
        let shape = Shape { jitter: 80, shuffled: 100, ..several() };
        let caught = (0..100_000_u64).find(|&seed| {
            let mut random = Rng::with_seed(seed);
            let system = generate(&mut random, &shape);
            let broken = analyse_mutant(&system, Protocol::WaitFree, mutant);
            attack(&system, &broken, Protocol::WaitFree, &mut random, RUNS, HORIZON).is_some()
        });
        println!("wait_free {mutant:?}: caught at set {caught:?}");
        caught.is_some()
    };
    assert!(broken(Mutant::Equals) && broken(Mutant::ReleaseJitter));
}

/// Both protocols with `icpp` side by side.
#[test]
fn interruptible_sections_beside_ceilings() {
    let own = (70, vec![Protocol::Ics, Protocol::IcsLock, Protocol::Icpp]);
    let [flat, busy] = shapes(Protocol::IcsLock);
    let own_protocol = own.clone();
    worth(&hold_all(Protocol::IcsLock, &Shape { own_protocol, ..flat }, 1 << 33, sets() / 4));
    worth(&hold_all(Protocol::Icpp, &Shape { own_protocol: own, ..busy }, 1 << 34, sets() / 4));
}

/// Returns the shape of systems that should reveal an omitted term.
fn hunting_ground(protocol: Protocol, mutant: Mutant) -> Shape {
    let [shape, _] = shapes(protocol);
    match mutant {
        // Jobs that wait often, beside others of their processor with many sections.
        Mutant::Repeats => {
            Shape { cpus: (2, 2), tasks: (3, 5), resources: (2, 3), sections: (2, 5), period: (40, 300), ..shape }
        }
        _ => shape,
    }
}

/// Returns the terms whose omission under the protocol is tested elsewhere than in [`protocols!`].
fn left_out_elsewhere(protocol: Protocol) -> Vec<Mutant> {
    match protocol {
        Protocol::Pcp | Protocol::Srp | Protocol::Ics | Protocol::IcsLock => vec![],
        // `sections_delay_a_job_at_each_wait_under_fmlp_long`, and `late_jobs.rs`.
        Protocol::FmlpLong => vec![Mutant::Repeats, Mutant::RemoteCarryIn],
        _ => vec![Mutant::RemoteCarryIn],
    }
}

/// Returns whether the omission of the term changes some bound of a random system under the protocol. Systems of
/// several processors without a shared resource do not count, because other protocols rule them.
fn has_effect(protocol: Protocol, mutant: Mutant) -> bool {
    let [first, second] = shapes(protocol);
    (0..2_000).any(|seed| {
        let shape = if seed % 2 == 0 { &first } else { &second };
        let system = generate(&mut Rng::with_seed(seed), shape);
        let is_ruled = system.cpus() == 1 || system.resource_ids().any(|id| system.is_global(id));
        is_ruled && analyse_mutant(&system, protocol, mutant) != analyse(&system, protocol)
    })
}

macro_rules! protocols {
    ($($name:ident: $protocol:ident, [$($mutant:ident),*];)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn bounds_hold() {
                let [first, second] = shapes(Protocol::$protocol);
                worth(&hold_all(Protocol::$protocol, &first, 0, sets() / 2));
                worth(&hold_all(Protocol::$protocol, &second, 1 << 32, sets() / 2));
            }

            #[test]
            fn bounds_without_a_term_do_not() {
                for mutant in [$(Mutant::$mutant),*] {
                    let shape = hunting_ground(Protocol::$protocol, mutant);
                    let caught = (0..100_000_u64).find(|&seed| {
                        let mut random = Rng::with_seed(seed);
                        let system = generate(&mut random, &shape);
                        let broken = analyse_mutant(&system, Protocol::$protocol, mutant);
                        attack(&system, &broken, Protocol::$protocol, &mut random, RUNS, HORIZON).is_some()
                    });
                    println!("{} {mutant:?}: caught at set {caught:?}", Protocol::$protocol);

                    assert!(caught.is_some(), "{mutant:?} was omitted, and no schedule shows it");
                }
            }

            #[test]
            fn every_term_with_an_effect_is_omitted_once() {
                let mut listed = vec![$(Mutant::$mutant),*];
                listed.extend(left_out_elsewhere(Protocol::$protocol));
                for mutant in Mutant::ALL {
                    let has_effect = has_effect(Protocol::$protocol, mutant);
                    assert_eq!(listed.contains(&mutant), has_effect, "{} {mutant:?}", Protocol::$protocol);
                }
            }
        }
    )*};
}

protocols! {
    pcp: Pcp, [LocalIcpp, ReleaseJitter, Equals];
    srp: Srp, [LocalIcpp, ReleaseJitter, Equals];
    ics: Ics, [Again, AgainRest, ReleaseJitter, Equals];
    ics_lock: IcsLock, [Again, AgainRest, AgainOfBlocker, LocalIcpp, ReleaseJitter, Equals];
    mpcp_vs: MpcpVs, [Waiting, Boosted, LocalIcpp, Repeats, ReleaseJitter, Equals];
    dpcp: Dpcp, [Waiting, Boosted, LocalIcpp, SuspensionJitter, Repeats, ReleaseJitter, Equals];
    dflp: Dflp, [Waiting, Boosted, LocalIcpp, SuspensionJitter, Repeats, ReleaseJitter, Equals];
    fmlp_long: FmlpLong, [Waiting, Boosted, LocalIcpp, SuspensionJitter, ReleaseJitter, Equals];
    fmlp_plus: FmlpPlus, [Waiting, Boosted, LocalIcpp, SuspensionJitter, Repeats, ReleaseJitter, Equals];
    fmlp_short: FmlpShort, [Waiting, Boosted, ReleaseJitter, Equals];
    msrp: Msrp, [Waiting, Boosted, ReleaseJitter, Equals];
    mrsp: Mrsp, [Waiting, Boosted, LocalIcpp, ReleaseJitter];
    omlp: Omlp, [Waiting, Boosted, LocalIcpp, Repeats, ReleaseJitter, Equals];
    phase_fair: PhaseFair, [Waiting, Boosted, Reads, Writes, ReleaseJitter, Equals];
    task_fair: TaskFair, [Waiting, Boosted, Reads, Writes, ReleaseJitter, Equals];
    lock_free: LockFree, [Waiting, Again, RemoteCommits, Preempted, ReleaseJitter, Equals];
}
