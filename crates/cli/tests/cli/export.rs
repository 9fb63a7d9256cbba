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

/// The time for which threads execute: the short one, and the long one if LOCKWRIGHT_DEEP is set, as in CI.
pub fn short_or<'a>(long: &'a str, short: &'a str) -> &'a str {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { long } else { short }
}

/// An exported program in a folder of its own.
struct Compiled {
    source: File,
}

impl Compiled {
    fn new(mut cc: Command, program: &str) -> Self {
        let source = File::named("program.c", program);
        let compiled = end(cc.arg("-o").arg(source.beside("program")).arg(&source.path));
        assert_eq!(compiled.status, 0, "{}\n{program}", compiled.err);
        Self { source }
    }

    fn execute(&self, seconds: &str) -> Ended {
        end(Command::new(self.source.beside("program")).arg(seconds))
    }
}

#[test]
fn a_program_in_c_keeps_deadlines_and_misses_impossible_ones() {
    let odd = HOLDS.replace("\"fast\"", r#""*/ \"??/ % \\ é""#);
    for (text, protocol, short, status, jobs, jobs_of_two_seconds) in [
        (odd.as_str(), "pip", "1.5", 0, [2, 1].as_slice(), [2, 1].as_slice()),
        (HOLDS, "icpp", "0.5", 0, &[1, 1], &[2, 1]),
        (LATE, "none", "0.5", 1, &[5, 5], &[20, 19]),
        (ROBOT, "pip", "0.5", 0, &[100, 50, 5, 20, 10, 5], &[400, 200, 20, 80, 40, 20]),
    ] {
        let seconds = short_or("2", short);
        let jobs = if seconds == short { jobs } else { jobs_of_two_seconds };
        let Some(cc) = compiler() else { return };
        let exported = export("c", text, protocol);
        assert_eq!(exported.status, 0, "{}", exported.err);
        let compiled = Compiled::new(cc, &exported.out);
        let Some(machine) = require_realtime() else { return };
        let ended = compiled.execute(seconds);
        drop(machine);
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

/// The mutant: without inheritance the exported Pathfinder misses deadlines, as the lander did. With it, the same
/// program keeps them: other work could make both late.
#[test]
fn an_exported_pathfinder_needs_inheritance() {
    let programs = ["none", "pip"].map(|protocol| {
        let cc = compiler()?;
        Some(Compiled::new(cc, &export("c", PATHFINDER, protocol).out))
    });
    let [Some(without), Some(with)] = programs else { return };
    let Some(_machine) = require_realtime() else { return };
    // All tasks begin together, and the first deadline of the task that waits is missed unless something else has the
    // CPU then.
    let mut told = String::new();
    let needs = (0..10).any(|_| {
        let [without, with] = [&without, &with].map(|program| program.execute(short_or("2.5", "0.12")));
        told += &format!("{}{}{}{}", without.out, without.err, with.out, with.err);
        let is_late = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.first() == Some(&"distribution_donnees") && words.get(2).is_some_and(|&misses| misses != "0")
        };
        without.status == 1 && without.out.lines().any(is_late) && with.status == 0
    });
    assert!(needs, "{told}");
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
