//! Files of earlier releases stay valid, and programs that read the JSON of one can read that of the next.
//!
//! `tests/compat` has a folder for each release: task sets, an overheads file, the schema of the JSON, and outputs.

use crate::support::{Ended, NO_FAULTS, end, json, lockwright};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/compat/0.1.0")
}

fn read(path: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(path)).expect("is there");
    serde_json::from_str(&text).expect("is JSON")
}

/// In the folder of the release.
fn run(arguments: &[&str]) -> Ended {
    end(lockwright().args(arguments).current_dir(folder()))
}

/// The frozen schema. It allows further keys.
pub fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(&read("output.schema.json")).expect("is a schema")
}

/// Exit statuses of release 0.1.0, except that it could not simulate global schedulers.
const STATUSES: [(&str, [i32; 4]); 12] = [
    ("clustered", [0, 0, 0, 0]),
    ("global-edf", [0, 0, 0, 0]),
    ("global-fp", [1, 1, 1, 1]),
    ("ics-table-1", [0, 1, 1, 0]),
    ("ics-table-2", [0, 1, 1, 0]),
    ("ics-table-3", [0, 1, 0, 0]),
    ("interruptible", [0, 0, 0, 0]),
    ("partitioned", [0, 1, 0, 0]),
    ("partitioned-edf", [0, 0, 0, 0]),
    ("pathfinder", [0, 1, 0, 0]),
    ("robot", [0, 1, 0, 0]),
    ("waters2019", [0, 1, 1, 0]),
];

/// The commands whose statuses these are.
const COMMANDS: [&[&str]; 4] = [
    &["check"],
    &["check", "--protocol", "all"],
    &["check", "--overheads", "overheads.toml"],
    &["simulate", "--for", "200ms"],
];

#[test]
fn task_sets_of_earlier_releases_keep_their_statuses() {
    let schema = schema();
    let files = std::fs::read_dir(folder().join("tasks")).expect("is there");
    let toml =
        files.filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|e| e == "toml")));
    assert_eq!(toml.count(), STATUSES.len(), "every file has its line");
    for (name, statuses) in STATUSES {
        let file = format!("tasks/{name}.toml");
        for (command, status) in COMMANDS.into_iter().zip(statuses) {
            let ended = run(&[command, &[file.as_str(), "--json"]].concat());
            assert_eq!(ended.status, status, "{command:?} {name}: {}", ended.err);
            if let Err(error) = schema.validate(&json(&ended)) {
                panic!("{command:?} {name}: {error}");
            }
        }
    }
}

#[test]
fn workloads_of_earlier_releases_are_imported() {
    let imported = run(&["import", "rt-app", "tasks/audio-rt-app.json"]);
    assert_eq!(imported.status, 0, "{}", imported.err);
}

/// The path of each key, and again with the type of its value unless that is null.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(values) => {
            values.iter().for_each(|value| keys(value, &format!("{path}[]"), found));
            "array"
        }
        Value::Object(values) => {
            for (key, value) in values {
                let path = format!("{path}.{key}");
                keys(value, &path, found);
                found.insert(path);
            }
            "object"
        }
    };
    found.insert(format!("{path}: {kind}"));
}

/// Keys and types of `old` that `new` does not have.
fn lost(old: &Value, new: &Value) -> Vec<String> {
    let [old, new] = [old, new].map(|value| {
        let mut found = BTreeSet::new();
        keys(value, "", &mut found);
        found
    });
    old.difference(&new).cloned().collect()
}

#[test]
fn outputs_keep_the_keys_of_earlier_releases() {
    let commands: [(&str, &[&str]); 6] = [
        ("check", &["check", "tasks/pathfinder.toml", "--protocol", "all", "--explain", "ordo_bus", "--sensitivity"]),
        ("check-global", &["check", "tasks/global-fp.toml"]),
        ("check-edf", &["check", "tasks/partitioned-edf.toml", "--explain", "in"]),
        ("check-overheads", &["check", "tasks/clustered.toml", "--overheads", "overheads.toml"]),
        ("simulate", &["simulate", "tasks/partitioned.toml", "--protocol", "all", "--seed", "1", "--for", "200ms"]),
        ("error", &["check", "missing.toml"]),
    ];
    for (name, command) in commands {
        let old = read(&format!("outputs/{name}.json"));
        let new = json(&run(&[command, &["--json"]].concat()));
        assert_eq!(lost(&old, &new), NO_FAULTS, "{name}");
    }
}

#[test]
fn a_lost_key_is_found() {
    let old = read("outputs/check-edf.json");
    let mut new = old.clone();
    for task in new["results"][0]["tasks"].as_array_mut().expect("tasks") {
        let task = task.as_object_mut().expect("an object");
        task.remove("slack_ns");
        task.insert("name".into(), 7.into());
        task.insert("more".into(), 7.into());
    }
    let expected = [".results[].tasks[].name: string", ".results[].tasks[].slack_ns"];
    assert_eq!(lost(&old, &new), expected);
    assert!(!schema().is_valid(&new), "the frozen schema requires these keys");
    assert!(schema().is_valid(&old));
}
