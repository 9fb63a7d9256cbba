//! `export`: programs in C that compile and keep their deadlines, and workloads of rt-app that are read back.

use crate::realtime::require_realtime;
use crate::support::{Ended, File, GLOBAL, HOLDS, LATE, end, json, lockwright, on};
use std::io::Write;
use std::process::Command;

const PATHFINDER: &str = include_str!("../../../../examples/pathfinder.toml");
const ROBOT: &str = include_str!("../../../../examples/robot.toml");

pub fn export(form: &str, text: &str, protocol: &str) -> Ended {
    let file = File::named("system.toml", text);
    end(lockwright().args(["export", form]).arg(&file.path).args(["--protocol", protocol]))
}

/// The compiler, with all warnings as errors. Returns `None` with a message if there is none; with
/// LOCKWRIGHT_REQUIRE_CC=1, that is a failure.
pub fn compiler() -> Option<Command> {
    let mut cc = Command::new("cc");
    if let Err(error) = Command::new("cc").arg("--version").output() {
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_none(), "no C compiler: {error}");
        let _ = writeln!(std::io::stderr(), "skipped: no C compiler: {error}");
        return None;
    }
    cc.args(["-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    Some(cc)
}

/// Compiles an exported program, and executes it for this time.
fn execute(mut cc: Command, program: &str, seconds: &str) -> Ended {
    let source = File::named("program.c", program);
    let binary = source.beside("program");
    let compiled = end(cc.arg("-o").arg(&binary).arg(&source.path));
    assert_eq!(compiled.status, 0, "{}\n{program}", compiled.err);
    end(Command::new(&binary).arg(seconds))
}

#[test]
fn a_program_in_c_keeps_deadlines_and_misses_impossible_ones() {
    let Some(_machine) = require_realtime() else { return };
    let odd = HOLDS.replace("\"fast\"", r#""*/ \"??/ % \\ é""#);
    for (text, protocol, status, jobs) in [
        (odd.as_str(), "pip", 0, [2, 1].as_slice()),
        (HOLDS, "icpp", 0, &[2, 1]),
        (LATE, "none", 1, &[20, 19]),
        (ROBOT, "pip", 0, &[400, 200, 20, 80, 40, 20]),
    ] {
        let Some(cc) = compiler() else { return };
        let exported = export("c", text, protocol);
        assert_eq!(exported.status, 0, "{}", exported.err);
        let ended = execute(cc, &exported.out, "2");
        // Other work on the machine can make a job late.
        assert!(ended.status == status || status == 0 && ended.status == 1, "{}{}", ended.out, ended.err);
        let column = |line: &str, from_end| line.split_whitespace().rev().nth(from_end).map(str::to_owned);
        let seen: Vec<_> = ended.out.lines().skip(1).filter_map(|line| column(line, 3)?.parse::<u64>().ok()).collect();
        assert_eq!(seen, jobs, "{}", ended.out);
        let responses = ended.out.lines().skip(1).filter_map(|line| column(line, 1)?.parse::<f64>().ok());
        let costs = json(&on(text, "check", &["--json", "--protocol", protocol]));
        let tasks = costs["results"][0]["tasks"].as_array().expect("tasks").clone();
        for (index, response) in responses.enumerate() {
            // The program has the order of the file, and `check` that of the priorities.
            let least = tasks.iter().filter_map(|task| task["cost_ns"].as_f64()).fold(f64::MAX, f64::min);
            assert!(response * 1e3 >= least, "task {index} executes: {}", ended.out);
        }
    }
}

/// The mutant: without inheritance the exported Pathfinder misses deadlines, as the lander did.
#[test]
fn an_exported_pathfinder_needs_inheritance() {
    let Some(_machine) = require_realtime() else { return };
    let Some(cc) = compiler() else { return };
    let ended = execute(cc, &export("c", PATHFINDER, "none").out, "2.5");
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
}

#[test]
fn a_workload_of_rt_app_is_read_back() {
    for (text, protocol) in [(PATHFINDER, "pip"), (PATHFINDER, "none"), (LATE, "pip"), (HOLDS, "none")] {
        let exported = export("rt-app", text, protocol);
        assert_eq!(exported.status, 0, "{}", exported.err);
        let workload = File::named("workload.json", &exported.out);
        let imported = end(lockwright().args(["import", "rt-app"]).arg(&workload.path));
        assert_eq!(imported.status, 0, "{}\n{}", imported.err, exported.out);
        let [before, after] = [(text, protocol), (&imported.out, "file")].map(|(text, protocol)| {
            let mut result = json(&on(text, "check", &["--json", "--protocol", protocol]))["results"][0].clone();
            for task in result["tasks"].as_array_mut().expect("tasks") {
                // Priorities keep their order.
                task["priority"] = 0.into();
            }
            result
        });
        assert_eq!(before, after, "{}", imported.out);
        // The mutant: a shorter run has other bounds.
        let other = exported.out.replacen("\"run0\": ", "\"run0\": 9", 1);
        let workload = File::named("workload.json", &other);
        let imported = end(lockwright().args(["import", "rt-app"]).arg(&workload.path)).out;
        assert_ne!(json(&on(&imported, "check", &["--json"]))["results"][0]["tasks"], before["tasks"]);
    }
}

#[test]
fn what_a_form_cannot_express_is_refused() {
    let exact = HOLDS.replace("\"100 us\"", "\"100_500 ns\"");
    for (form, text, protocol, word) in [
        ("c", GLOBAL, "file", "mpcp"),
        ("rt-app", HOLDS, "icpp", "icpp"),
        ("rt-app", ROBOT, "pip", "`battery`: rt-app has whole microseconds"),
        ("rt-app", exact.as_str(), "pip", "`fast`: rt-app has whole microseconds"),
        ("c", &HOLDS.replace("cpus = 1", "cpus = 1\nscheduler = \"p-edf\""), "pip", "p-edf"),
    ] {
        let refused = export(form, text, protocol);
        assert_eq!(refused.status, 2, "{}", refused.out);
        assert!(refused.err.contains(word) && refused.err.contains("help: "), "{}", refused.err);
        assert!(refused.out.is_empty());
    }
    assert_eq!(export("c", HOLDS, "mpcp").status, 2, "only protocols of mutexes");
    assert_eq!(export("pascal", HOLDS, "pip").status, 2);
}
