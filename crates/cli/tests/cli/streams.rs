//! Standard input, output and error, and signals.

use crate::realtime::require_realtime;
use crate::support::{Ended, File, HOLDS, INVERSION, LATE, end, json, lockwright, on};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

#[test]
fn a_file_may_come_from_standard_input() {
    let mut child = lockwright()
        .args(["check", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("is piped").write_all(HOLDS.as_bytes()).expect("is read");
    let ended: Ended = child.wait_with_output().expect("ends").into();
    assert_eq!((ended.status, &json(&ended)["system"]), (0, &"holds".into()));
    let mut unnamed = lockwright();
    let file = File::named("nameless.toml", &HOLDS.replacen("name = \"holds\"", "", 1));
    assert_eq!(json(&end(unnamed.arg("check").arg(&file.path).arg("--json")))["system"], "nameless");
}

#[test]
fn a_closed_pipe_is_quiet_and_keeps_the_status() {
    for (text, status) in [(HOLDS, 0), (LATE, 1)] {
        for arguments in [&["--json"][..], &[]] {
            let file = File::new(text);
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let ended = end(lockwright().arg("check").arg(&file.path).args(arguments).stdout(writer));
            assert_eq!((ended.status, ended.err.as_str()), (status, ""));
        }
    }
}

#[test]
fn a_full_disk_is_not_quiet() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: no /dev/full here");
        return;
    };
    let file = File::new(HOLDS);
    let ended = end(lockwright().arg("check").arg(&file.path).stdout(full));
    assert_eq!(ended.status, 3);
    assert!(ended.err.contains("cannot write the output"), "{}", ended.err);
}

#[test]
fn closed_standard_error_harms_nobody() {
    let file = File::new("nonsense");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = end(lockwright().arg("check").arg(&file.path).stderr(writer));
    assert_eq!(ended.status, 2);
}

#[test]
fn colours_are_for_terminals_and_on_demand() {
    let file = File::new(INVERSION);
    let check = || {
        let mut command = lockwright();
        command.arg("check").arg(&file.path);
        command
    };
    assert!(!end(&mut check()).out.contains('\x1b'), "a pipe is no terminal");
    assert!(end(check().arg("--color=always")).out.contains("\x1b[32mok\x1b[0m"));
    assert!(!end(check().arg("--color=never")).out.contains('\x1b'));
    let plain = end(&mut check()).out;
    let colored = end(check().arg("--color=always")).out;
    assert_eq!(
        colored.replace("\x1b[32m", "").replace("\x1b[31m", "").replace("\x1b[33m", "").replace("\x1b[0m", ""),
        plain
    );
    let bad = on("nonsense", "check", &["--color=always"]);
    assert!(bad.err.contains('\x1b'), "{}", bad.err);
}

/// Starts it, waits for its first word on standard error (by then it listens), interrupts it.
fn interrupted(command: &mut Command) -> Ended {
    let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut err = BufReader::new(child.stderr.take().expect("is piped"));
    let mut first = String::new();
    err.read_line(&mut first).expect("it says something");
    if first.starts_with("note: ") {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
    }
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        err.read_to_string(&mut rest).expect("is UTF-8");
        rest
    });
    let output = child.wait_with_output().expect("ends");
    let mut ended: Ended = output.into();
    ended.err = first + &rest.join().expect("reads to the end");
    ended
}

#[test]
fn an_interrupted_simulation_prints_what_it_saw() {
    let file = File::new(HOLDS);
    let ended = interrupted(lockwright().arg("simulate").arg(&file.path).args([
        "--offsets",
        "random",
        "--for",
        "270 min",
        "--runs",
        "1000000",
        "--protocol",
        "all",
        "--json",
    ]));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("interrupted") && ended.err.contains("not reached: pip, icpp, mpcp"), "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["interrupted"], value["results"].as_array().map(Vec::len)), (&true.into(), Some(1)));
    let (runs, asked) = (value["runs"].as_u64().expect("is given"), 270 * 60 * 1_000_000_000);
    assert!(runs < 1_000_000, "only what was begun");
    assert!(value["results"][0]["observed_ns"].as_u64().expect("is given") <= runs * asked);
}

#[test]
fn an_interrupted_simulation_claims_no_more_than_it_did() {
    let file = File::new(HOLDS);
    // A note as the first word: the seed.
    let ended =
        interrupted(lockwright().arg("simulate").arg(&file.path).args(["--random-execution", "--for", "1000000 s"]));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.out.contains(" of 1000000 s, offsets file"), "{}", ended.out);
}

#[test]
fn an_interrupted_study_prints_what_came_to_its_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("out.csv");
    // A note as the first word: the seed.
    let arguments = ["study", "bpl", "--cores", "64", "--burst", "8", "--requests", "1000000000", "--json", "--csv"];
    let ended = interrupted(lockwright().args(arguments).arg(&csv));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("of 10 combinations of cores, burst and rate, 0 were"), "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["interrupted"], &value["results"]), (&true.into(), &serde_json::json!([])));
    assert!(csv.exists());
}

#[test]
fn an_interrupted_run_prints_what_it_saw() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(HOLDS);
    let ended = interrupted(lockwright().arg("run").arg(&file.path).args(["--for", "10 min", "--json"]));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert_eq!(json(&ended)["interrupted"], true);
    assert!(json(&ended)["duration_ns"].as_u64().expect("is given") < 60 * 1_000_000_000, "not the ten minutes");
}
