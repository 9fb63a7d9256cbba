//! docs/output.schema.json: it is what the types say, and what the verbs print is valid under it.

use crate::realtime::require_realtime;
use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, end, json, lockwright, on};
use serde_json::Value;
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.schema.json")
}

/// The keys every task has, whichever the verb.
const TASK_KEYS: [&str; 13] = [
    "name",
    "cpu",
    "priority",
    "cost_ns",
    "blocking_ns",
    "response_ns",
    "deadline_ns",
    "slack_ns",
    "schedulable",
    "observed_response_ns",
    "observed_blocking_ns",
    "jobs",
    "misses",
];

#[test]
fn the_committed_schema_is_up_to_date() {
    let generated = lockwright_cli::json::to_text(&lockwright_cli::json::schema());
    if std::env::var_os("LOCKWRIGHT_WRITE_SCHEMA").is_some() {
        std::fs::write(path(), &generated).expect("can be written");
    }
    let committed = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(committed == generated, "docs/output.schema.json is stale: `cargo xtask schema` writes it");
}

#[test]
fn outputs_are_valid_under_the_schema() {
    let schema = serde_json::to_value(lockwright_cli::json::schema()).expect("is JSON");
    let validator = jsonschema::validator_for(&schema).expect("is a schema");
    let frozen = crate::compat::schema();
    let valid = |value: &Value| {
        frozen.validate(value).and_then(|()| validator.validate(value)).map_err(|error| error.to_string())
    };
    let mut outputs = Vec::new();
    for text in [HOLDS, LATE, INVERSION, GLOBAL] {
        outputs.push(on(text, "check", &["--json", "--protocol", "all", "--sensitivity"]));
        outputs.push(on(text, "simulate", &["--json", "--protocol", "all", "--offsets", "random", "--runs", "2"]));
    }
    outputs.push(on(INVERSION, "check", &["--json", "--explain", "high"]));
    let file = File::named("overheads.toml", "release = \"3 us\"\n");
    let overheads = file.path.display().to_string();
    outputs.push(on(INVERSION, "check", &["--json", "--overheads", &overheads, "--explain", "high"]));
    outputs.push(on(INVERSION, "simulate", &["--json", "--overheads", &overheads]));
    let mut measured = vec!["measure", "ics", "--readings", "1", "--json"];
    let machine = require_realtime();
    if machine.is_some() {
        outputs.push(on(HOLDS, "run", &["--json", "--for", "200 ms"]));
        outputs.push(on(HOLDS, "run", &["--json", "--for", "200 ms", "--overheads", &overheads]));
        outputs.push(on(HOLDS, "verify", &["--json", "--for", "200 ms", "--overheads", &overheads]));
        measured.extend_from_slice(&["--tick", "100us", "--operations", "5"]);
    } else {
        measured.push("--alone");
    }
    let measured = end(lockwright().args(measured));
    // The checks only compute.
    drop(machine);
    for ended in &outputs {
        let value = json(ended);
        if let Err(error) = valid(&value) {
            panic!("{error}: {value}");
        }
        let results = value["results"].as_array().expect("results");
        let tasks: Vec<_> = results.iter().flat_map(|result| result["tasks"].as_array().expect("tasks")).collect();
        for key in TASK_KEYS {
            assert!(tasks.iter().all(|task| task.get(key).is_some()), "a task lacks {key}: {value}");
            let mut without = value.clone();
            without["results"][0]["tasks"][0].as_object_mut().expect("an object").remove(key);
            assert!(valid(&without).is_err(), "the object without {key} must be refused");
        }
    }
    let study = ["study", "bpl", "--cores", "1,4", "--requests", "100", "--json"];
    let value = json(&end(lockwright().args(study)));
    if let Err(error) = valid(&value) {
        panic!("{error}: {value}");
    }
    for key in value["results"][0].as_object().expect("an object").keys() {
        let mut without = value.clone();
        without["results"][0].as_object_mut().expect("an object").remove(key);
        assert!(valid(&without).is_err(), "the object without {key} must be refused");
    }
    let value = json(&end(lockwright().args(["measure", "locks", "--alone", "--readings", "10", "--json"])));
    if let Err(error) = valid(&value) {
        panic!("{error}: {value}");
    }
    for key in value["costs"][0].as_object().expect("an object").keys() {
        let mut without = value.clone();
        without["costs"][0].as_object_mut().expect("an object").remove(key);
        assert!(valid(&without).is_err(), "the object without {key} must be refused");
    }
    // Release 0.1.0 has no objects.
    let value = json(&end(lockwright().args(["measure", "objects", "--alone", "--operations", "100", "--json"])));
    if let Err(error) = validator.validate(&value) {
        panic!("{error}: {value}");
    }
    let value = json(&measured);
    if let Err(error) = valid(&value) {
        panic!("{error}: {value}");
    }
    for list in ["costs", "responses", "histogram"] {
        let Some(first) = value[list].as_array().and_then(|rows| rows.first()) else { continue };
        for key in first.as_object().expect("an object").keys() {
            let mut without = value.clone();
            without[list][0].as_object_mut().expect("an object").remove(key);
            assert!(valid(&without).is_err(), "the object without {key} must be refused");
        }
    }
    let mut worst = json(&end(lockwright().args(study)));
    worst["free_lock"] = "worst".into();
    assert!(valid(&worst).is_err(), "nobody is served last");
    let value = json(&end(lockwright().args(["doctor", "--json"])));
    if let Err(error) = valid(&value) {
        panic!("{error}: {value}");
    }
    for key in value["findings"][0].as_object().expect("an object").keys() {
        let mut without = value.clone();
        without["findings"][0].as_object_mut().expect("an object").remove(key);
        assert!(valid(&without).is_err(), "the object without {key} must be refused");
    }
    let value = json(&on("nonsense", "check", &["--json"]));
    if let Err(error) = valid(&value) {
        panic!("{error}: {value}");
    }
    for key in ["message", "help", "place"] {
        let mut without = value.clone();
        without["error"].as_object_mut().expect("an object").remove(key);
        assert!(valid(&without).is_err(), "the object without {key} must be refused");
    }
    assert!(valid(&serde_json::json!({ "verb": "guess", "system": "s", "results": [] })).is_err());
}
