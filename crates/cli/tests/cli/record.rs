//! `record`: exported programs are recorded, and their task sets compared with the systems that they execute.

use crate::export::{compiler, export};
use crate::realtime::require_realtime;
use crate::support::{Ended, File, NO_FAULTS, end, json, lockwright};
use lockwright_model::format::parse_system;
use lockwright_model::{Step, System, TaskId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PATHFINDER: &str = include_str!("../../../../examples/pathfinder.toml");

/// Short tasks with nested and repeated sections, on two CPUs.
const NESTED: &str = r#"
name = "nested"
protocol = "pip"

[platform]
cpus = 2
priorities = "explicit"

[[resource]]
name = "bus"

[[resource]]
name = "log"

[[task]]
name = "control"
cpu = 0
priority = 3
period = "5 ms"
wcet = "600 us"
body = [
    { run = "100 us" },
    { lock = "bus" },
    { run = "100 us" },
    { lock = "log" },
    { run = "50 us" },
    { unlock = "log" },
    { run = "50 us" },
    { unlock = "bus" },
    { run = "100 us" },
    { lock = "log" },
    { run = "100 us" },
    { unlock = "log" },
    { run = "100 us" },
]

[[task]]
name = "camera"
cpu = 0
priority = 2
period = "12 ms"
wcet = "1 ms"
requests = [{ resource = "bus", length = "200 us", count = 2 }]

[[task]]
name = "map"
cpu = 1
priority = 1
period = "20 ms"
wcet = "2 ms"
requests = [{ resource = "log", length = "300 us" }]
"#;

/// A recorded program: what `record` printed, and the directory of its results.
struct Recorded {
    ended: Ended,
    folder: PathBuf,
    _files: File,
}

/// Exports the system as a program, compiles it, and records it for this many seconds.
fn recorded(text: &str, protocol: &str, seconds: &str) -> Option<Recorded> {
    let mut cc = compiler()?;
    let source = File::named("program.c", &export("c", text, protocol).out);
    let (program, folder) = (source.beside("program"), source.beside("recorded"));
    let compiled = end(cc.arg("-o").arg(&program).arg(&source.path));
    assert_eq!(compiled.status, 0, "{}", compiled.err);
    let mut command = lockwright();
    command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(&folder).arg("--");
    let ended = end(command.arg(&program).arg(seconds));
    Some(Recorded { ended, folder, _files: source })
}

/// The library that records; building the tests builds it.
fn library() -> PathBuf {
    let path = std::env::current_exe().expect("this program has a path").with_file_name("liblockwright_recorder.so");
    assert!(path.exists(), "{} is there", path.display());
    path
}

/// An exported program ends each run with a look at the processor time of its thread, which takes up to this long.
const RUN_NS: u64 = 2_000;

/// Why the recorded system is not the one that was executed, if it is not. Threads have the first 15 bytes of the
/// names of their tasks.
fn difference(system: &System, found: &System, least: &mut Least) -> Option<String> {
    let mut why = (system.tasks().len() != found.tasks().len()).then(|| "there are other tasks".into());
    for id in system.task_ids() {
        let task = system.task(id);
        let name = &task.name[..task.name.len().min(15)];
        let other = found.task_ids().find(|&other| found.task(other).name == name);
        let of_task = match other {
            None => Some("is missing".into()),
            Some(other) => task_difference(system, id, found, other, least),
        };
        why = of_task.map(|of_task| format!("`{name}`: {of_task}")).or(why);
    }
    why
}

/// How much longer times may be because other work shares the caches and the host. On a quiet machine 0 is enough.
const BUSY_PERCENT: u64 = 25;

/// The least of the longest times of all attempts, in nanoseconds: of jobs, and of their sections by number. Other work
/// on the machine lengthens times, and never all of them in each attempt.
type Least = BTreeMap<(TaskId, Option<usize>), u64>;

fn task_difference(system: &System, id: TaskId, found: &System, other: TaskId, least: &mut Least) -> Option<String> {
    let (task, seen) = (system.task(id), found.task(other));
    let (period, seen_period) = (task.period.as_ns(), seen.period.as_ns());
    if period.abs_diff(seen_period) > period / 1_000_000 {
        return Some(format!("period {} and not {}", seen.period, task.period));
    }
    if seen.cpu != task.cpu {
        return Some(format!("CPU {} and not {}", seen.cpu.0, task.cpu.0));
    }
    let mut within = |section: Option<usize>, seen: u64, length: u64, percent: u64, ns: u64| {
        let least = least.entry((id, section)).or_insert(seen);
        *least = seen.min(*least);
        (length..=length + length * (percent + BUSY_PERCENT) / 100 + ns).contains(least)
    };
    let runs = task.body.iter().filter(|step| matches!(step, Step::Run(_))).count() as u64;
    let is_long = !within(None, seen.wcet.as_ns(), task.wcet.as_ns(), 1, 5_000 + RUN_NS * runs);
    let (sections, seen_sections) = (system.sections(id), found.sections(other));
    if sections.iter().map(|section| section.parent).ne(seen_sections.iter().map(|section| section.parent)) {
        return Some(format!("{} sections and not {}, or nested otherwise", seen_sections.len(), sections.len()));
    }
    let mut why = is_long.then(|| format!("C {} and not {}", seen.wcet, task.wcet));
    for (index, (section, seen)) in (0..).zip(sections.iter().zip(seen_sections)) {
        let inner = sections.iter().filter(|inner| inner.parent == Some(index)).count() as u64;
        let more = 300 + RUN_NS * (1 + 2 * inner);
        if !within(Some(index), seen.length.as_ns(), section.length.as_ns(), 2, more) {
            why = Some(format!("a section of {} and not {}", seen.length, section.length));
        }
    }
    why
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("report.json")).expect("there is a report");
    serde_json::from_str(&text).expect("the report is JSON")
}

/// Short attempts are repeated until each time was once not lengthened by other work.
const ATTEMPTS: usize = 40;

#[test]
fn an_exported_system_is_recorded() {
    let Some(_machine) = require_realtime() else { return };
    for (text, protocol, seconds) in [(NESTED, "pip", "0.12"), (NESTED, "icpp", "0.12")] {
        let system = parse_system(text).expect("is valid");
        let (mut last, mut least) = (None, Least::new());
        for _ in 0..ATTEMPTS {
            let Some(recorded) = recorded(text, protocol, seconds) else { return };
            assert_eq!(recorded.ended.status, 0, "{}{}", recorded.ended.out, recorded.ended.err);
            let file = std::fs::read_to_string(recorded.folder.join("system.toml")).expect("there is a task set");
            let found = parse_system(&file).unwrap_or_else(|faults| panic!("{faults:?}: {file}"));
            assert_eq!(found.protocol().map(|protocol| protocol.to_string()).as_deref(), Some(protocol));
            last = difference(&system, &found, &mut least).map(|why| format!("{why}\n{file}"));
            let report = report(&recorded.folder);
            assert_eq!(report["lost"], 0);
            if last.is_none() {
                assert_eq!(report["inversions"].as_array().map(Vec::as_slice), Some(&[][..]), "{}", recorded.ended.out);
                let trace = std::fs::read(recorded.folder.join("trace.pftrace")).expect("there is a trace");
                assert!(trace.len() > 1_000);
                break;
            }
        }
        assert_eq!(last, None);
    }
}

#[test]
fn the_inversion_of_pathfinder_is_told() {
    let Some(_machine) = require_realtime() else { return };
    let Some(recorded) = recorded(PATHFINDER, "none", "4.5") else { return };
    let report = report(&recorded.folder);
    let inversions = report["inversions"].as_array().expect("a list");
    let is_known = |found: &Value| {
        let between = found["between"].as_array().expect("a list");
        found["waiter"] == "distribution_do"
            && (between.contains(&"tache_radio".into()) || between.contains(&"tache_camera".into()))
    };
    assert!(inversions.iter().any(is_known), "{}", recorded.ended.out);
    assert!(recorded.ended.out.contains("inversion: "), "{}", recorded.ended.out);
    // The same recording, read again.
    let again = end(lockwright().args(["record", "--json", "--read"]).arg(&recorded.folder));
    let again = json(&again);
    assert_eq!(again["inversions"], report["inversions"]);
    let schema = serde_json::to_value(lockwright_cli::json::schema()).expect("is JSON");
    let validator = jsonschema::validator_for(&schema).expect("is a schema");
    assert!(validator.is_valid(&again), "{again}");
    for key in again.as_object().expect("an object").keys() {
        let mut without = again.clone();
        without.as_object_mut().expect("an object").remove(key);
        assert!(!validator.is_valid(&without), "the object without {key} must be refused");
    }
}

#[test]
fn a_program_without_jobs_gives_no_task_set() {
    let files = File::named("unused", "");
    let folder = files.beside("recorded");
    let mut command = lockwright();
    command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(&folder).args(["--", "true"]);
    let ended = end(&mut command);
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("no task set: "), "{}", ended.err);
    assert!(!folder.join("system.toml").exists());
    assert!(report(&folder)["reason"].is_string());
}

#[test]
fn a_task_set_that_no_recording_wrote_stays() {
    let mine = File::named("system.toml", NESTED);
    let folder = mine.path.parent().expect("a folder");
    let mut command = lockwright();
    command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(folder).args(["--", "true"]);
    let ended = end(&mut command);
    assert!(ended.status == 2 && ended.err.contains("no recording wrote it"), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(&mine.path).expect("it is there"), NESTED);
}

#[test]
fn a_directory_without_a_recording_is_refused() {
    let file = File::named("empty", "");
    let ended = end(lockwright().args(["record", "--read"]).arg(file.path.parent().expect("a folder")));
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{}", ended.err);
    let ended = end(lockwright().arg("record"));
    assert_eq!(ended.status, 2);
    let ended = end(lockwright().args(["record", "--json", "--", "/no/such/program"]));
    assert_eq!(ended.status, 2);
    assert_ne!(json(&ended)["error"]["message"], serde_json::json!(NO_FAULTS));
}
