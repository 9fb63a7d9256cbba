//! docs/output.schema.json: it is what the types say, and what the verbs print is valid under it.

use crate::realtime::require_realtime;
use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, end, json, lockwright, on};
use jsonschema::Validator;
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

/// The schema of today and that of release 0.1.0.
struct Schemas {
    today: Validator,
    released: Validator,
}

impl Schemas {
    fn new() -> Self {
        let schema = serde_json::to_value(lockwright_cli::json::schema()).expect("is JSON");
        Self { today: jsonschema::validator_for(&schema).expect("is a schema"), released: crate::compat::schema() }
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.released.is_valid(value) && self.today.is_valid(value)
    }

    /// Requires that the value is valid.
    fn accept(&self, value: &Value) {
        for schema in [&self.released, &self.today] {
            schema.validate(value).unwrap_or_else(|error| panic!("{error}: {value}"));
        }
    }

    /// Requires that the value is invalid without any of these keys of the object at `pointer`.
    fn need<'k>(&self, value: &Value, pointer: &str, keys: impl IntoIterator<Item = &'k str>) {
        for key in keys {
            let mut without = value.clone();
            let object = without.pointer_mut(pointer).and_then(Value::as_object_mut);
            assert!(object.expect("an object").remove(key).is_some(), "{pointer} has no {key}: {value}");
            assert!(!self.is_valid(&without), "the object without {key} must be refused");
        }
    }

    /// Requires that the value is valid, and invalid without any key of the object at `pointer`.
    fn need_all(&self, value: &Value, pointer: &str) {
        self.accept(value);
        let object = value.pointer(pointer).and_then(Value::as_object).expect("an object");
        self.need(value, pointer, object.keys().map(String::as_str));
    }
}

#[test]
fn outputs_are_valid_under_the_schema() {
    let schemas = Schemas::new();
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
        schemas.accept(&value);
        let results = value["results"].as_array().expect("results");
        let mut tasks = results.iter().flat_map(|result| result["tasks"].as_array().expect("tasks"));
        assert!(tasks.all(|task| TASK_KEYS.iter().all(|key| task.get(key).is_some())), "a task lacks a key: {value}");
        schemas.need(&value, "/results/0/tasks/0", TASK_KEYS);
    }
    let study = json(&end(lockwright().args(["study", "bpl", "--cores", "1,4", "--requests", "100", "--json"])));
    schemas.need_all(&study, "/results/0");
    let mut worst = study;
    worst["free_lock"] = "worst".into();
    assert!(!schemas.is_valid(&worst), "nobody is served last");
    let locks = json(&end(lockwright().args(["measure", "locks", "--alone", "--readings", "10", "--json"])));
    schemas.need_all(&locks, "/costs/0");
    // Release 0.1.0 has no objects.
    let objects = json(&end(lockwright().args(["measure", "objects", "--alone", "--operations", "100", "--json"])));
    schemas.today.validate(&objects).unwrap_or_else(|error| panic!("{error}: {objects}"));
    let measured = json(&measured);
    schemas.accept(&measured);
    for list in ["/costs/0", "/responses/0", "/histogram/0"] {
        if measured.pointer(list).is_some() {
            schemas.need_all(&measured, list);
        }
    }
    schemas.need_all(&json(&end(lockwright().args(["doctor", "--json"]))), "/findings/0");
    let faulty = json(&on("nonsense", "check", &["--json"]));
    schemas.accept(&faulty);
    schemas.need(&faulty, "/error", ["message", "help", "place"]);
    assert!(!schemas.is_valid(&serde_json::json!({ "verb": "guess", "system": "s", "results": [] })));
}
