//! The files that one command line names: standard input is read once.

use crate::support::{Ended, File, HOLDS, end, json, lockwright, on};
use std::io::{Seek, Write};
use std::path::Path;

const COSTS: &str = "context_switch = \"20 us\"\n";

/// With the task set as standard input.
fn with_input(words: &[&str], folder: &Path) -> Ended {
    let mut input = tempfile::tempfile().expect("a temporary file");
    input.write_all(HOLDS.as_bytes()).and_then(|()| input.rewind()).expect("written");
    end(lockwright().args(words).current_dir(folder).stdin(input))
}

#[test]
fn standard_input_is_one_file() {
    let file = File::named("costs.toml", COSTS);
    let folder = file.path.parent().expect("a folder");
    for verb in ["check", "simulate", "run", "verify"] {
        let ended = with_input(&[verb, "-", "--overheads", "-"], folder);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{verb}: {}", ended.err);
        assert!(ended.err.contains("standard input has one file") && ended.err.contains("help: "), "{}", ended.err);
    }
    let ended = with_input(&["check", "-", "--json", "--overheads", "-"], folder);
    assert!(json(&ended)["error"]["message"].as_str().is_some_and(|text| text.contains("standard input")));
    let ended = with_input(&["check", "-", "--overheads", "costs.toml"], folder);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

#[test]
fn overheads_without_costs_get_a_note() {
    for (text, is_told) in [("", true), ("# none\n", true), (COSTS, false)] {
        let costs = File::named("costs.toml", text);
        let path = costs.path.to_str().expect("UTF-8");
        for verb in ["check", "simulate"] {
            let ended = on(HOLDS, verb, &["--overheads", path]);
            assert_eq!(ended.status, 0, "{}", ended.err);
            let note = format!("note: {path} has no costs, so nothing is charged\n");
            assert_eq!(ended.err, if is_told { note.as_str() } else { "" }, "{verb} {text}");
        }
    }
}
