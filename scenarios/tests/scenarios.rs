//! Every scenario, in virtual time and on real threads; and twins that must not fit.

#[path = "../../crates/rt/tests/realtime/machine.rs"]
mod machine;

use lockwright_model::{Event, Protocol};
use lockwright_scenarios::{Scenario, run, simulate};

const ALL: [&str; 6] = ["fusyn-figure-7", "icpp-ceiling", "mpcp-order", "none-inversion", "pip-chain", "pip-steal"];

fn expect_none(name: &str, who: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{name}, {who}:\n{}", faults.join("\n"));
}

#[test]
fn every_script_is_in_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let mut found: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, ALL);
}

#[test]
fn in_virtual_time() {
    for name in ALL {
        let scenario = Scenario::read(name);
        expect_none(name, "simulated", &scenario.faults(&simulate(&scenario)));
    }
}

/// How often a scenario may be disturbed by the machine (another real-time thread, the host) before that is a fault
/// of ours. A wrong decision is wrong every time.
const ATTEMPTS: usize = 4;

/// The faults of the best of several runs.
fn on_threads(name: &str, scenario: &Scenario) -> Vec<String> {
    let mut faults = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let seen = run(scenario).unwrap_or_else(|error| panic!("{name}: {error}"));
        faults = scenario.faults(&seen);
        if faults.is_empty() {
            break;
        }
        eprintln!("{name}, attempt {attempt} of {ATTEMPTS} on real threads: {faults:?}");
    }
    faults
}

#[test]
fn on_real_threads() {
    let Some(_machine) = machine::require_realtime() else { return };
    for name in ALL {
        expect_none(name, "on real threads", &on_threads(name, &Scenario::read(name)));
    }
}

/// The twin: inheritance expected, a plain mutex run. No attempt may fit.
#[test]
fn a_plain_mutex_does_not_pass_for_inheritance() {
    let Some(_machine) = machine::require_realtime() else { return };
    let faults = on_threads("pip-chain under none", &Scenario::read("pip-chain").under(Protocol::None));
    assert!(!faults.is_empty());
}

/// What a scenario of one protocol expects does not come under another.
#[test]
fn under_another_protocol_the_expectations_fail() {
    for (name, other) in [
        ("fusyn-figure-7", Protocol::None),
        ("icpp-ceiling", Protocol::None),
        ("mpcp-order", Protocol::Pip),
        ("none-inversion", Protocol::Pip),
        ("pip-chain", Protocol::None),
        ("pip-steal", Protocol::Mpcp),
    ] {
        let scenario = Scenario::read(name).under(other);
        let seen = simulate(&scenario);
        assert!(!scenario.faults(&seen).is_empty(), "{name} holds under {other} too");
    }
}

/// Without the change of priority nobody is deboosted.
#[test]
fn a_schedule_without_what_matters_does_not_fit() {
    let scenario = Scenario::read("fusyn-figure-7");
    let mut seen = simulate(&scenario);
    assert!(seen.records.iter().any(|record| matches!(record.event, Event::Priority(_))));
    seen.records.truncate(seen.records.len() / 2);
    assert!(!scenario.faults(&seen).is_empty());
}
