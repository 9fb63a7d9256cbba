//! `watch`: processes with and without statistics, tasks and mutexes of the moment.

use crate::realtime::require_realtime;
use crate::support::{Ended, end, json, lockwright};
use lockwright::statistics::MutexCounters;
use lockwright::tasks::{Protocol, TaskSet};
use lockwright_model::Duration;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::mpsc::channel;

fn watch(process: u32, arguments: &[&str]) -> Ended {
    end(lockwright().args(["watch", &process.to_string()]).args(arguments))
}

/// Two tasks of this process, both in a job; `low` holds the bus.
#[test]
fn tasks_are_watched_while_they_work() {
    let Some(_machine) = require_realtime() else { return };
    let mut builder = TaskSet::builder(Protocol::Pip);
    let bus = builder.resource("bus");
    let low = builder.task("low", 0, 10, &[bus]);
    let high = builder.task("high", 0, 20, &[bus]);
    builder.deadline(high, Duration::from_ms(4_000));
    let set = builder.build().expect("a task set");
    set.set_bound(high, Duration::from_ms(1_000)).expect("the task exists");
    let ((locked, is_locked), (looked, has_looked)) = (channel(), channel::<()>());
    let (requests, is_requested) = channel();
    let set = &set;
    let seen = std::thread::scope(|scope| {
        scope.spawn(move || {
            let me = set.join(low).expect("permission was checked");
            let job = me.begin().expect("no job has begun");
            let section = job.lock(bus).expect("the task is a user");
            locked.send(()).expect("the test waits");
            has_looked.recv().expect("the test has looked");
            section.end().expect("the section was held");
        });
        is_locked.recv().expect("the bus is locked");
        scope.spawn(move || {
            let me = set.join(high).expect("permission was checked");
            me.begin().expect("no job has begun").end().expect("the job had begun");
            let job = me.begin().expect("no job has begun");
            requests.send(()).expect("the test waits");
            drop(job.lock(bus).expect("the task is a user"));
        });
        is_requested.recv().expect("the other thread requests");
        // BOUND: the request is a few instructions away.
        let outputs = (0..200).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            watch(std::process::id(), &["--json"])
        });
        let is_it = |ended: &Ended| json(ended)["sets"][0]["tasks"][1]["request"].is_object();
        let found = outputs.take(200).find(is_it);
        let text = watch(std::process::id(), &[]);
        looked.send(()).expect("the other thread waits");
        (found.expect("the request is seen"), text)
    });
    let (object, text) = (json(&seen.0), seen.1);
    let task = |index: usize| &object["sets"][0]["tasks"][index];
    assert_eq!((&task(0)["name"], &task(0)["resources"][0]["name"]), (&json!("low"), &json!("bus")));
    assert!(task(0)["resources"][0]["held_ns"].as_u64().is_some_and(|ns| ns > 0), "{object:#}");
    assert_eq!(task(1)["request"]["resource"], "bus");
    assert_eq!(task(1)["request"]["holders"], json!(["low"]));
    assert_eq!((&task(1)["jobs"], &task(1)["bound_ns"]), (&json!(1), &json!(1_000_000_000)));
    assert_eq!(task(1)["histogram"].as_array().map(Vec::len), Some(1));
    is_valid(&object);
    assert_eq!(text.status, 0, "{}", text.err);
    for part in ["in a job for ", ", holds bus", "waits ", " for bus, held by low", "4 s"] {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
}

/// The object is valid under the schema, and without one of its keys it is not.
fn is_valid(object: &Value) {
    let schema = serde_json::to_value(lockwright_cli::json::schema()).expect("is JSON");
    let validator = jsonschema::validator_for(&schema).expect("is a schema");
    assert!(validator.is_valid(object), "{object:#}");
    for key in object.as_object().expect("an object").keys() {
        let mut without = object.clone();
        without.as_object_mut().expect("an object").remove(key);
        assert!(!validator.is_valid(&without), "the object without {key} must be refused");
    }
}

#[test]
fn mutexes_are_watched() {
    let counters = MutexCounters::new();
    let asked = counters.asks(0x5000, None);
    counters.locked(0x5000, u32::MAX, asked);
    let asked = counters.asks(0x5000, Some(u32::MAX));
    let ended = watch(std::process::id(), &["--json"]);
    let object = json(&ended);
    assert_eq!((&object["verb"], &object["mutexes"][0]["waiting"]), (&json!("watch"), &json!(1)));
    assert_eq!(object["mutexes"][0]["owner"], json!({ "id": u32::MAX, "name": "" }));
    is_valid(&object);
    let text = watch(std::process::id(), &["--once"]);
    assert!(text.out.contains("0x5000") && text.out.contains("1 waiting"), "{}", text.out);
    #[cfg(feature = "screen")]
    for (ends, status) in [("printf q", 0), ("printf '\\033'", 0), ("printf '\\003'", 130), ("kill -TERM $0", 130)] {
        screen::is_renewed_until(ends, status, || {
            let _ = counters.asks(0x5000, Some(u32::MAX));
        });
    }
    counters.unlocking(0x5000);
    counters.locked(0x5000, 1, asked);
}

/// The screen on a terminal, which `script` makes.
#[cfg(feature = "screen")]
mod screen {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    /// What the terminal gets at the beginning and at the end of the screen.
    const ENTERS: &str = "\x1b[?1049h";
    const LEAVES: &str = "\x1b[?1049l";

    /// Watches this process on a terminal. After the first screen, `change` waits once more for a mutex, which a later
    /// screen shows. Then a command ends it, by a key that it prints or by a signal to process `$0`. The terminal is as
    /// before.
    pub fn is_renewed_until(ends: &str, status: i32, change: impl FnOnce()) {
        let (watch, process) = (env!("CARGO_BIN_EXE_lockwright"), std::process::id());
        let line = format!(
            "stty rows 24 cols 120; before=$(stty -g); sh -c 'echo pid $$.; exec {watch} watch {process} --every 50ms'; \
             echo status $?; test \"$(stty -g)\" = \"$before\" && echo restored"
        );
        let mut script = Command::new("script");
        script.args(["-qfc", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm");
        let Ok(mut child) = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            return eprintln!("skipped: there is no `script` (Debian package bsdutils)");
        };
        let mut out = child.stdout.take().expect("a pipe");
        let (pieces, seen) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // BOUND: the end of the program.
            while let Ok(length @ 1..) = out.read(&mut piece) {
                let _ = pieces.send(String::from_utf8_lossy(&piece[..length]).into_owned());
            }
        });
        let mut all = String::new();
        until(&seen, &mut all, &["process ", "0x5000", "q leaves"]);
        assert!(all.contains(ENTERS), "{all}");
        let id = all.split_once("pid ").and_then(|(_, rest)| Some(rest.split_once('.')?.0.to_owned()));
        let id = id.expect("it was printed");
        all.clear();
        change();
        // A terminal gets only what has changed.
        until(&seen, &mut all, &["\x1b["]);
        assert!(!all.contains(LEAVES), "{all}");
        let key = Command::new("sh").args(["-c", ends, &id]).output().expect("a shell").stdout;
        child.stdin.take().expect("a pipe").write_all(&key).expect("it reads");
        until(&seen, &mut all, &[LEAVES, "0x5000", &format!("status {status}"), "restored"]);
        assert!(child.wait().is_ok_and(|status| status.success()));
    }

    /// Reads until all parts were shown.
    fn until(seen: &Receiver<String>, all: &mut String, parts: &[&str]) {
        while !parts.iter().all(|part| all.contains(part)) {
            let piece = seen.recv_timeout(Duration::from_secs(60));
            all.push_str(&piece.unwrap_or_else(|_| panic!("{parts:?} are missing: {all:?}")));
        }
    }
}

#[test]
fn a_process_without_statistics_is_told() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
    // A new process has the name of its parent at first.
    let comm = format!("/proc/{}/comm", child.id());
    // BOUND: the start of the process.
    while std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "sleep") {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let ended = watch(child.id(), &["--json"]);
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("(sleep) has no statistics"), "{}", ended.err);
    let help = json(&ended)["error"]["help"].as_str().map(str::to_owned).expect("help");
    let long = end(lockwright().args(["watch", "--help"])).out;
    for text in [help, long] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["LOCKWRIGHT_STATS=1", "lw_mutex_init", "Builder::counted"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // The child has ended, so its number is free.
    let ended = watch(child.id(), &[]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("there is no process"), "{}", ended.err);
    assert_eq!(end(lockwright().args(["watch", "0"])).status, 2);
    assert_eq!(end(lockwright().args(["watch", "control"])).status, 2);
}
