//! Runs every scenario in virtual time and on real threads, and mutants that must fail.

#[path = "../../crates/engine/tests/realtime/judge.rs"]
mod judge;
#[path = "../../crates/sys/tests/support/machine.rs"]
mod machine;

use judge::{Attempt, Judgement, Lost, judge, require, tell};
use lockwright_engine::Control;
use lockwright_engine::observe::{Gap, losses};
use lockwright_model::{CpuId, Duration, Event, Instant, Protocol, Scheduler};
use lockwright_scenarios::{Scenario, Seen, run_config, simulate, simulate_stalled};
use lockwright_sim::Unlock;

/// Scenarios about the ways to unlock a `fulock`. No real thread of a task set executes these.
const SIMULATED: [&str; 2] = ["fulock-parallel", "fulock-serial"];
const ALL: [&str; 30] = [
    "dflp-home",
    "dpcp-home",
    "fmlp_long-edf",
    "fmlp_long-order",
    "fmlp_long-pedf",
    "fmlp_plus-boost",
    "fmlp_short-edf",
    "fmlp_short-spin",
    "fusyn-figure-7",
    "icpp-ceiling",
    "ics-continue",
    "ics-restart",
    "ics_lock-cutoff",
    "lock_free-edf",
    "lock_free-retry",
    "mpcp-order",
    "mpcp_vs-admission",
    "mrsp-help",
    "msrp-edf",
    "msrp-spin",
    "none-inversion",
    "omlp-donation",
    "omlp-held",
    "pcp-ceiling",
    "phase_fair-phases",
    "pip-chain",
    "pip-steal",
    "srp-start",
    "task_fair-order",
    "wait_free-once",
];

fn expect_none(name: &str, who: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{name}, {who}:\n{}", faults.join("\n"));
}

#[test]
fn every_script_is_in_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let mut found: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    let mut listed = [&SIMULATED[..], &ALL].concat();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn in_virtual_time() {
    for name in SIMULATED.into_iter().chain(ALL) {
        for factor in [1, 7] {
            let scenario = Scenario::read(name).stretched(factor);
            expect_none(name, "simulated", &scenario.faults(&simulate(&scenario)));
        }
    }
}

/// Makes one run on real threads.
fn attempt(scenario: &Scenario) -> Attempt {
    let outcome = match lockwright_engine::run(&scenario.system, &run_config(scenario), &Control::new()) {
        Ok(outcome) => outcome,
        Err(error) => return Attempt::Fails(error.to_string()),
    };
    let seen = Seen::from(&outcome);
    let faults = scenario.faults(&seen);
    if faults.is_empty() {
        return Attempt::Holds;
    }
    let lost = Lost::of(&scenario.system, &outcome);
    if let Some(forgotten) = lost.forgotten() {
        return Attempt::Fails(format!("{}\n  {forgotten}", faults.join("\n  ")));
    }
    // A simulated job that is kept from starting also leaves its CPU idle.
    let kept: Duration = losses(&scenario.system, &simulate(scenario).records).iter().map(Gap::length).sum();
    let gaps = if kept == Duration::ZERO { lost.gaps } else { Vec::new() };
    let unexplained = scenario.unexplained(&seen, &gaps, lost.total.saturating_sub(kept));
    if unexplained.is_empty() {
        return Attempt::Disturbed { fault: faults.join("\n  "), by: lost.by };
    }
    let faults = unexplained.join("\n  ");
    Attempt::Fails(format!("{faults}\n  though only {} was lost, {} in stalls", lost.total, lost.stalls))
}

#[test]
fn on_real_threads() {
    let Some(_machine) = machine::require_realtime() else { return };
    let have = std::thread::available_parallelism().map_or(1, usize::from);
    for name in ALL {
        let scenario = Scenario::read(name);
        // Two readers and two writers that spin need three CPUs.
        if scenario.system.cpus() > have.max(2) {
            tell(&format!("{name}: simulated only, because it needs {} CPUs", scenario.system.cpus()));
            continue;
        }
        // Emulated processors lose most of their time.
        let scenario = match judge::scale() {
            1 => scenario,
            slower => scenario.stretched(slower).by_order_alone(),
        };
        require(name, || attempt(&scenario));
    }
}

/// A disturbance explains a schedule of the protocol itself, however much time is lost. It explains a schedule of
/// another protocol only if much time is lost.
#[test]
fn a_disturbance_explains_only_lost_time() {
    let scenario = Scenario::read("pip-chain");
    let (little, much) = (Duration::from_ms(1), Duration::from_ms(40));
    let wrong = simulate(&scenario.clone().under(Protocol::None));
    assert!(!scenario.unexplained(&wrong, &[], little).is_empty());
    assert!(scenario.unexplained(&wrong, &[], much).len() < scenario.unexplained(&wrong, &[], little).len());
    for name in ALL {
        let scenario = Scenario::read(name);
        let seen = simulate(&scenario);
        assert!(scenario.unexplained(&seen, &[], Duration::ZERO).is_empty(), "{name}");
    }
}

/// A CPU that stands still delays all its tasks at once, and can change the order in which they get a resource.
#[test]
fn a_stall_explains_what_it_does() {
    let scenario = Scenario::read("dpcp-home");
    let gap = |from, until| Gap {
        cpu: CpuId::new(0),
        from: Instant::ZERO + Duration::from_ms(from),
        until: Instant::ZERO + Duration::from_ms(until),
    };
    let stalled = gap(2, 13);
    let seen = simulate_stalled(&scenario, &[stalled]);
    assert!(!scenario.faults(&seen).is_empty());
    let explained = |by: &[Gap]| scenario.unexplained(&seen, by, stalled.length()).is_empty();
    assert!(explained(&[stalled]));
    assert!(!explained(&[gap(40, 51)]));
}

/// The mutant: a plain mutex runs where inheritance is expected. The run must be found wrong, not merely disturbed.
#[test]
fn a_plain_mutex_does_not_pass_for_inheritance() {
    let Some(_machine) = machine::require_realtime() else { return };
    if judge::scale() > 1 {
        return tell("not judged: emulated processors lose too much time");
    }
    let scenario = Scenario::read("pip-chain").under(Protocol::None);
    let judgement = judge("pip-chain under none", || attempt(&scenario));
    assert!(matches!(judgement, Judgement::Fails(_)), "{judgement:?}");
}

/// The expectations of a scenario for one protocol fail under another protocol.
#[test]
fn expectations_fail_under_another_protocol() {
    use Protocol::{
        Dflp, Dpcp, FmlpLong, FmlpPlus, FmlpShort, Icpp, Ics, IcsLock, LockFree, Mpcp, MpcpVs, Mrsp, Msrp, None, Omlp,
        Pcp, PhaseFair, Pip, Srp, TaskFair, WaitFree,
    };
    let local: &[Protocol] = &[None, Pip, Icpp, Pcp, Srp, Ics, IcsLock];
    let across: &[Protocol] = &[
        PhaseFair, TaskFair, Mpcp, MpcpVs, Dpcp, Dflp, FmlpLong, FmlpPlus, FmlpShort, Msrp, Mrsp, Omlp, LockFree,
        WaitFree,
    ];
    // If no task reads, `phase_fair` and `task_fair` have the rules of `fmlp_short`.
    let without_readers = &across[2..];
    for (name, others) in [
        ("fusyn-figure-7", &[None][..]),
        ("icpp-ceiling", &[None, Pip, Pcp]),
        ("mpcp-order", &[None, Pip, FmlpLong, FmlpPlus, FmlpShort, Msrp, Mrsp, Dpcp, Dflp]),
        ("none-inversion", &[Pip]),
        ("pip-chain", &[None]),
        ("pip-steal", &[Mpcp]),
        ("pcp-ceiling", local),
        ("srp-start", local),
        // Without a conflict it differs from the others only in that no priority changes.
        ("ics-continue", &[Icpp]),
        ("ics-restart", &[None, Pip, Icpp, Pcp, Srp]),
        ("ics_lock-cutoff", local),
        ("dflp-home", across),
        ("dpcp-home", across),
        ("fmlp_long-order", across),
        ("fmlp_plus-boost", across),
        ("fmlp_short-spin", without_readers),
        ("mpcp_vs-admission", across),
        ("mrsp-help", across),
        ("msrp-spin", across),
        ("omlp-held", across),
        ("lock_free-retry", across),
        ("wait_free-once", across),
        ("phase_fair-phases", across),
        ("task_fair-order", across),
        ("fmlp_short-edf", &[None, FmlpLong, LockFree, WaitFree]),
        ("fmlp_long-edf", &[None, FmlpShort, LockFree, WaitFree]),
        ("fmlp_long-pedf", &[Msrp, LockFree, WaitFree]),
        ("msrp-edf", &[FmlpLong, LockFree, WaitFree]),
        ("lock_free-edf", &[Msrp, WaitFree]),
    ] {
        let own = Scenario::read(name).protocol();
        for &other in others.iter().filter(|&&other| other != own) {
            let scenario = Scenario::read(name).under(other);
            let seen = simulate(&scenario);
            assert!(!scenario.faults(&seen).is_empty(), "{name} also holds under {other}");
        }
    }
}

/// The expectations of a scenario under earliest deadlines fail under fixed priorities, which are against them.
#[test]
fn deadlines_do_not_pass_for_priorities() {
    for (name, fixed) in
        [("msrp-edf", Scheduler::PFp), ("fmlp_short-edf", Scheduler::GFp), ("fmlp_long-edf", Scheduler::GFp)]
    {
        let mut scenario = Scenario::read(name);
        scenario.system = scenario.system.under(fixed);
        assert!(!scenario.faults(&simulate(&scenario)).is_empty(), "{name} also holds under {fixed}");
    }
}

/// The mutants: sections without preemption where inheritance is expected, and the other way round.
#[test]
fn one_lock_of_the_fmlp_does_not_pass_for_the_other() {
    let Some(_machine) = machine::require_realtime() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return tell("skipped: 2 CPUs are needed");
    }
    if judge::scale() > 1 {
        return tell("not judged: emulated processors lose too much time");
    }
    for (name, other) in [("fmlp_long-edf", Protocol::FmlpShort), ("fmlp_short-edf", Protocol::FmlpLong)] {
        let scenario = Scenario::read(name).under(other);
        let judgement = judge(&format!("{name} under {other}"), || attempt(&scenario));
        assert!(matches!(judgement, Judgement::Fails(_)), "{judgement:?}");
    }
}

/// Only OMLP supports clusters. However the tasks are spread over single processors, the schedule differs.
#[test]
fn donation_needs_a_cluster() {
    let clustered = Scenario::read("omlp-donation");
    for protocol in Protocol::ALL {
        assert_eq!(clustered.system.refused_in_clusters(protocol).is_some(), protocol != Protocol::Omlp, "{protocol}");
    }
    for spread in 0..8_usize {
        let mut scenario = Scenario::read("omlp-donation");
        let mut tasks = scenario.system.tasks().to_vec();
        for (place, task) in tasks.iter_mut().enumerate() {
            task.cpu = CpuId::new(spread >> place & 1);
        }
        let alone = scenario.system.under(Scheduler::PFp);
        scenario.system = alone.with_tasks(tasks).unwrap();
        for protocol in Protocol::ALL {
            let faults = scenario.faults(&simulate(&scenario));
            assert!(!faults.is_empty(), "also holds under {protocol} on the CPUs {spread:b}");
            scenario = scenario.under(protocol);
        }
    }
}

/// One `fulock` with three protections behaves like three machines, except for the choice of the task that gets an
/// unlocked lock: only `pip` has a rule for it.
#[test]
fn a_fulock_matches_the_protocols_and_each_unlock() {
    let faults = |name: &str, unlock| {
        let scenario = Scenario::read(name).by_fulock(unlock);
        scenario.faults(&simulate(&scenario))
    };
    for unlock in [Unlock::Serial, Unlock::Parallel, Unlock::Auto] {
        for name in ["fusyn-figure-7", "icpp-ceiling", "none-inversion", "pip-chain"] {
            expect_none(name, "simulated by a fulock", &faults(name, unlock));
        }
        // Under `pip`, a more urgent task may acquire the lock in between, and a less urgent one may not. With a serial
        // unlock, neither may; with a parallel one, both may.
        assert!(!faults("pip-steal", unlock).is_empty());
        let serial = unlock != Unlock::Parallel;
        assert_eq!(faults("fulock-serial", unlock).is_empty(), serial);
        assert_eq!(faults("fulock-parallel", unlock).is_empty(), !serial);
    }
}

/// Without the records of migrations, no section executes on another CPU.
#[test]
fn the_cpu_of_a_section_is_checked() {
    for name in ["dpcp-home", "dflp-home", "mrsp-help"] {
        let scenario = Scenario::read(name);
        let mut seen = simulate(&scenario);
        seen.records.retain(|record| !matches!(record.event, Event::Migrate(_)));
        let faults = scenario.faults(&seen);
        assert!(faults.iter().any(|fault| fault.contains("cpu: Some")), "{name}: {faults:?}");
    }
}

/// Without the second half of its records, the scenario fails.
#[test]
fn a_truncated_schedule_does_not_fit() {
    let scenario = Scenario::read("fusyn-figure-7");
    let mut seen = simulate(&scenario);
    assert!(seen.records.iter().any(|record| matches!(record.event, Event::Priority(_))));
    seen.records.truncate(seen.records.len() / 2);
    assert!(!scenario.faults(&seen).is_empty());
}
