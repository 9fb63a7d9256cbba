//! docs/tutorial.md: its sentences about the systems in `examples/tutorial` are true. Its charts are sample sessions,
//! which the tests of the documents repeat.

use crate::support::{end, json, lockwright};
use serde_json::Value;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The report of `simulate` on a system, under its own protocol or another one.
struct Seen(Value);

impl Seen {
    fn of(name: &str, options: &[&str]) -> Self {
        let file = root().join("examples/tutorial").join(name);
        let ended = end(lockwright().args(["simulate", "--json"]).arg(file).args(options));
        Self(json(&ended)["results"][0].clone())
    }

    fn task(&self, name: &str) -> &Value {
        let tasks = self.0["tasks"].as_array().expect("tasks");
        tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no task {name}"))
    }

    /// A time of a task in milliseconds.
    fn ms(&self, task: &str, key: &str) -> f64 {
        self.task(task)[key].as_f64().unwrap_or_else(|| panic!("{task} has no {key}")) / 1e6
    }

    fn is_late(&self, task: &str) -> bool {
        self.task(task)["misses"].as_u64() != Some(0)
    }
}

/// A system, the sentence about it, and whether the sentence is true of a simulation.
type Claim = (&'static str, &'static str, fn(&Seen) -> bool);

const RESPONSE: &str = "observed_response_ns";
const BLOCKING: &str = "observed_blocking_ns";
const WAIT: &str = "lock_wait_ns";

const CLAIMS: [Claim; 12] = [
    ("01-mutex.toml", "`high` waits only for the section of `low`.", |seen| {
        !seen.is_late("high") && seen.ms("high", WAIT) > 0.0 && seen.ms("high", WAIT) <= 4.0
    }),
    ("02-inversion.toml", "`high` misses its deadline because `medium` preempts the holder of the buffer.", |seen| {
        seen.is_late("high") && seen.ms("high", WAIT) >= 8.0 && seen.ms("medium", BLOCKING) == 0.0
    }),
    (
        "03-inheritance.toml",
        "`high` meets its deadline, and `medium` waits while `low` has the priority of `high`.",
        |seen| !seen.is_late("high") && seen.ms("medium", BLOCKING) > 0.0,
    ),
    ("04-chain.toml", "`high` is delayed by two sections, one after the other.", |seen| {
        // Neither section alone is as long.
        seen.ms("high", BLOCKING) > 4.0
    }),
    ("05-ceiling.toml", "`high` is delayed by one section only.", |seen| {
        seen.ms("high", BLOCKING) <= 4.0 && seen.ms("high", WAIT) == 0.0
    }),
    ("06-on-demand.toml", "`medium` starts at once although `low` holds the buffer.", |seen| {
        seen.ms("medium", RESPONSE) == 8.0
            && Seen::of("06-on-demand.toml", &["-p", "icpp"]).ms("medium", RESPONSE) > 8.0
    }),
    (
        "07-two-cpus.toml",
        "`control` misses its deadline, because the priority that `logger` inherits is below that of `driver`.",
        |seen| seen.is_late("control") && seen.ms("driver", RESPONSE) == 6.0,
    ),
    ("08-boosting.toml", "`control` waits for the section of `logger` and for nothing else.", |seen| {
        !seen.is_late("control") && seen.ms("control", WAIT) <= 3.0 && seen.ms("driver", RESPONSE) > 6.0
    }),
    ("09-agents.toml", "`driver` is no longer delayed, because the sections are executed on CPU 0.", |seen| {
        seen.ms("driver", RESPONSE) == 6.0 && seen.ms("control", BLOCKING) > 0.0
    }),
    ("10-suspending.toml", "`d` executes while `a` waits for the bus.", |seen| {
        // Less than all of the response of `a` delays `d`.
        seen.ms("a", WAIT) > 0.0 && seen.ms("d", RESPONSE) < 6.0 + seen.ms("a", RESPONSE)
    }),
    ("11-spinning.toml", "`d` finishes later than under `fmlp_plus`, because `a` spins.", |seen| {
        seen.ms("d", RESPONSE) > Seen::of("11-spinning.toml", &["-p", "fmlp_plus"]).ms("d", RESPONSE)
    }),
    ("12-interruptible.toml", "`high` never waits, and `low` executes its section twice.", |seen| {
        let low = seen.task("low");
        seen.ms("high", RESPONSE) == 2.0 && !low["restarts"].is_null() && low["restarts"] == low["jobs"]
    }),
];

#[test]
fn the_sentences_of_the_tutorial_are_true() {
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).expect("is there");
    for (file, sentence, holds) in CLAIMS {
        assert!(page.contains(&format!("**{sentence}**")), "the tutorial does not say: {sentence}");
        assert!(
            page.contains(&format!("$ lockwright simulate examples/tutorial/{file} --gantt")),
            "{file} has no chart"
        );
        assert!(holds(&Seen::of(file, &[])), "{file}: {sentence}");
    }
    let files = std::fs::read_dir(root().join("examples/tutorial")).expect("is there");
    assert_eq!(files.count(), CLAIMS.len(), "every system has its sentence");
}

/// The sentences are about the protocols: under another one they are false.
#[test]
fn the_sentences_need_their_protocols() {
    let others = ["pip", "pip", "none", "icpp", "pip", "icpp", "mpcp", "pip", "mpcp", "msrp", "fmlp_plus", "icpp"];
    for ((file, sentence, holds), other) in CLAIMS.into_iter().zip(others).skip(1) {
        assert!(!holds(&Seen::of(file, &["-p", other])), "{file} under {other}: {sentence}");
    }
}
