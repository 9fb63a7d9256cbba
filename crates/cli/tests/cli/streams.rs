//! Standard input, output and error, and signals.

use crate::realtime::require_realtime;
use crate::study::{KEYS, holds, results};
use crate::support::{Ended, File, HOLDS, INVERSION, LATE, Started, end, json, lockwright, on};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

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
    let path = file.path.to_str().expect("is UTF-8");
    for arguments in [&["check", path][..], &["--help"], &["--version"], &["study", "--help"], &["completions", "bash"]]
    {
        let full = full.try_clone().expect("a copy");
        let ended = end(lockwright().args(arguments).stdout(full));
        assert_eq!(ended.status, 3, "{arguments:?}");
        assert!(ended.err.contains("cannot write the output"), "{arguments:?}: {}", ended.err);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = end(lockwright().args(arguments).stdout(writer));
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn closed_standard_error_keeps_the_status() {
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

/// Starts it, and ends it early after its first word, a note. By SIGTERM: a script that has the tests in the background
/// has them ignore SIGINT.
fn interrupted(command: &mut Command) -> Ended {
    let started = Started::new(command);
    if started.first.starts_with("note: ") {
        started.signal("TERM");
    }
    started.end()
}

#[test]
fn interrupted_simulation_prints_its_observations() {
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
    assert!(
        ended.err.contains("interrupted")
            && ended.err.contains("not reached: pip, icpp, pcp, srp, ics, ics_lock, fmlp_short"),
        "{}",
        ended.err
    );
    let value = json(&ended);
    assert_eq!((&value["interrupted"], value["results"].as_array().map(Vec::len)), (&true.into(), Some(1)));
    let (runs, asked) = (value["runs"].as_u64().expect("is given"), 270 * 60 * 1_000_000_000);
    assert!(runs < 1_000_000, "only what was begun");
    assert!(value["results"][0]["observed_ns"].as_u64().expect("is given") <= runs * asked);
}

#[test]
fn interrupted_simulation_reports_its_true_length() {
    let file = File::new(HOLDS);
    // A note as the first word: the seed.
    let ended =
        interrupted(lockwright().arg("simulate").arg(&file.path).args(["--random-execution", "--for", "1000000 s"]));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.out.contains(" of 1000000 s, offsets file"), "{}", ended.out);
}

#[test]
fn interrupted_study_prints_complete_results() {
    // One combination is quick; all together take long. The time of the first one depends on the machine.
    let rates: Vec<String> = (1..=1_000).map(|rate| rate.to_string()).collect();
    let study = |rates: &str| {
        let mut command = lockwright();
        command.args(["study", "bpl", "--cores", "1,64", "--burst", "8", "--requests", "50000", "--json"]);
        command.args(["--rate", rates]);
        command
    };
    for wait in [300, 3_000, 30_000] {
        let file = File::named("out.csv", "an earlier result, longer than what comes\n".repeat(100).as_str());
        let started = Started::new(study(&rates.join(",")).arg("--csv").arg(&file.path));
        std::thread::sleep(Duration::from_millis(wait));
        started.signal("TERM");
        let ended = started.end();
        let (value, found) = (json(&ended), results(&ended));
        assert_eq!((ended.status, &value["interrupted"]), (130, &true.into()), "{}", ended.err);
        assert!(found.len() < 3 * 2_000 && found.len() % 3 == 0, "{}", found.len());
        if found.is_empty() {
            continue;
        }
        let all = format!("of 2000 combinations of cores, burst and rate, {} are complete", found.len() / 3);
        assert!(ended.err.contains(&all), "{}", ended.err);
        holds(&file.path, &found);
        // What there is was simulated to its end.
        let alone = end(study(&found[0]["rate"].to_string()).args(["--seed", &value["seed"].to_string()]));
        let alone = results(&alone);
        assert!(found[..3].iter().all(|result| alone.contains(result)), "{:?}", &found[..3]);
        return;
    }
    panic!("nothing comes to its end within 30 s");
}

#[test]
fn interrupted_study_without_results_keeps_the_file() {
    let old = File::named("old.csv", "an earlier result\n");
    let new = old.beside("new.csv");
    for (csv, left) in [(&old.path, "an earlier result\n".to_owned()), (&new, KEYS.join(",") + "\n")] {
        let arguments = ["study", "bpl", "--cores", "64", "--burst", "8", "--requests", "1000000000", "--json"];
        let ended = interrupted(lockwright().args(arguments).arg("--csv").arg(csv).arg("--svg").arg(old.beside("svg")));
        assert_eq!(ended.status, 130, "{}", ended.err);
        assert!(ended.err.contains("of 10 combinations of cores, burst and rate, 0 are complete"), "{}", ended.err);
        assert!(!ended.err.contains("figures"), "{}", ended.err);
        let value = json(&ended);
        assert_eq!((&value["interrupted"], &value["results"]), (&true.into(), &serde_json::json!([])));
        assert_eq!(std::fs::read_to_string(csv).expect("is there"), left);
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    // As `nohup` starts it; as a script does in the background; and nothing but SIGTERM left.
    for (ignored, ask) in [("HUP", "INT"), ("HUP", "TERM"), ("INT", "TERM"), ("INT", "HUP"), ("HUP INT", "TERM")] {
        // What we ignore ourselves it does not hear either.
        let heard = Command::new("sh").args(["-c", &format!("kill -{ask} $$; exit 0")]).status().expect("sh is there");
        if heard.code() == Some(0) {
            eprintln!("SKIPPED: the tests ignore SIG{ask}");
            continue;
        }
        let started = Started::new(
            Command::new("sh")
                .args(["-c", &format!("trap '' {ignored}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_lockwright")])
                .args(["study", "bpl", "--cores", "64", "--burst", "8", "--requests", "1000000000", "--json"]),
        );
        for name in ignored.split(' ') {
            started.signal(name);
        }
        // If one of these signals was handled, the process ends now; the next signal would end it without output.
        std::thread::sleep(Duration::from_millis(200));
        started.signal(ask);
        let ended = started.end();
        assert_eq!(ended.status, 130, "{ignored} ignored, {ask}: {}", ended.err);
        assert_eq!(json(&ended)["interrupted"], true, "{ignored} ignored, {ask}");
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    // Far more than a pipe holds: it waits for its reader, which is us, and we do not read on.
    let rates: Vec<String> = (1..=200).map(|rate| rate.to_string()).collect();
    let arguments =
        ["study", "bpl", "--cores", "4,8,16,32", "--burst", "4", "--requests", "1", "--runs", "1", "--json"];
    let mut started = Started::new(lockwright().args(arguments).args(["--rate", &rates.join(",")]));
    started.child.stdout.as_mut().expect("is piped").read_exact(&mut [0]).expect("it prints");
    started.signal("TERM");
    std::thread::sleep(Duration::from_millis(100));
    assert!(started.child.try_wait().expect("is ours").is_none(), "one signal is a request");
    started.signal("TERM");
    // BOUND: as long as the test may take; without an end by the second signal nothing ends it.
    let status = started.child.wait().expect("ends");
    assert_eq!(status.code(), Some(130));
}

#[test]
fn interrupted_experiment_prints_its_observations() {
    let Some(_machine) = require_realtime() else { return };
    let arguments = ["measure", "ics", "--readings", "1", "--operations", "1000000", "--json"];
    let ended = interrupted(lockwright().args(arguments));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("left out"), "{}", ended.err);
    let value = json(&ended);
    let seen = value["responses"].as_array().expect("a list");
    assert_eq!(value["interrupted"], true);
    assert!(seen.len() < 10 && seen.iter().all(|seen| seen["enqueued"].as_u64() < Some(1_000_000)), "{value}");
}

#[test]
fn interrupted_run_prints_its_observations() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(HOLDS);
    let ended = interrupted(lockwright().arg("run").arg(&file.path).args(["--for", "10 min", "--json"]));
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert_eq!(json(&ended)["interrupted"], true);
    assert!(json(&ended)["duration_ns"].as_u64().expect("is given") < 60 * 1_000_000_000, "not the ten minutes");
}

#[test]
fn interrupted_verification_has_no_verdict() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::named("overheads.toml", "release_latency = \"50 ms\"\n");
    let (system, cache) = (file.beside("system.toml"), file.beside("cache"));
    std::fs::write(&system, HOLDS).expect("a temporary file");
    let verify = || {
        let mut command = lockwright();
        command.arg("verify").arg(&system).args(["--for", "10 min", "--json"]).env("XDG_CACHE_HOME", &cache);
        command
    };
    let measuring = interrupted(&mut verify());
    assert_eq!(measuring.status, 130, "{}", measuring.err);
    let value = json(&measuring);
    assert_eq!((&value["interrupted"], &value["results"]), (&true.into(), &serde_json::json!([])));
    assert!(value.get("overheads").is_none() && !cache.exists(), "half a measurement is none: {value}");
    let started = Started::new(verify().arg("--overheads").arg(&file.path));
    // It executes by then, or not yet: there is no verdict either way.
    std::thread::sleep(Duration::from_millis(500));
    started.signal("TERM");
    let running = started.end();
    assert_eq!(running.status, 130, "{}", running.err);
    for result in json(&running)["results"].as_array().expect("a list") {
        assert_eq!(result["verdict"], "none: the run was interrupted", "{}", running.out);
    }
}
