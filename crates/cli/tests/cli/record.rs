//! `record`: exported programs are recorded, and their task sets compared with the systems that they execute.

use crate::export::{compiler, export, short_or};
use crate::realtime::require_realtime;
use crate::support::{Ended, File, NO_FAULTS, end, json, lockwright, refuses_files_in_sys};
use lockwright_model::format::parse_system;
use lockwright_model::{Duration, ResourceId, System, TaskId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const PATHFINDER: &str = include_str!("../../../../examples/pathfinder.toml");

/// Short tasks with nested and repeated sections, on two CPUs.
pub const NESTED: &str = r#"
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

/// An exported program, compiled.
pub struct Program {
    path: PathBuf,
    files: File,
}

/// A recorded program: what `record` printed, and the directory of its results.
pub struct Recorded {
    pub ended: Ended,
    pub folder: PathBuf,
}

impl Program {
    /// Exports the system, and compiles it.
    pub fn of(text: &str, protocol: &str) -> Option<Self> {
        let mut cc = compiler()?;
        let files = File::named("program.c", &export("c", text, protocol).out);
        let path = files.beside("program");
        let compiled = end(cc.arg("-o").arg(&path).arg(&files.path));
        assert_eq!(compiled.status, 0, "{}", compiled.err);
        Some(Self { path, files })
    }

    /// Records the program for this many seconds.
    pub fn record(&self, seconds: &str) -> Recorded {
        let folder = self.files.beside("recorded");
        let mut command = lockwright();
        command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(&folder).arg("--");
        let ended = end(command.arg(&self.path).arg(seconds));
        Recorded { ended, folder }
    }
}

/// The library that records; building the tests builds it.
fn library() -> PathBuf {
    let path = std::env::current_exe().expect("this program has a path").with_file_name("liblockwright_recorder.so");
    assert!(path.exists(), "{} is there", path.display());
    path
}

/// Why the recorded system is not the one that was executed, if it is not. Threads have the first 15 bytes of the
/// names of their tasks.
fn difference(system: &System, found: &System, report: &Value, nearest: &mut Nearest) -> Option<String> {
    structure(system, found, |id, other, name| {
        section_difference(system, id, found, other, nearest)
            .or_else(|| time_difference(system, id, name, report, nearest))
    })
}

/// The same without execution times and lengths, except those that `more` compares for each task.
fn structure(
    system: &System,
    found: &System,
    mut more: impl FnMut(TaskId, TaskId, &str) -> Option<String>,
) -> Option<String> {
    let mut why = (system.tasks().len() != found.tasks().len()).then(|| "there are other tasks".into());
    // Each resource is one of the recorded ones; these have the names of the program's variables.
    let mut pairs: BTreeMap<ResourceId, ResourceId> = BTreeMap::new();
    for id in system.task_ids() {
        let task = system.task(id);
        let name = &task.name[..task.name.len().min(15)];
        let other = found.task_ids().find(|&other| found.task(other).name == name);
        let of_task = match other {
            None => Some("is missing".into()),
            Some(other) => {
                let (sections, seen) = (system.sections(id), found.sections(other));
                let of_both = sections.iter().zip(seen).map(|(section, seen)| (section.resource, seen.resource));
                let differs =
                    of_both.into_iter().any(|(resource, seen)| *pairs.entry(resource).or_insert(seen) != seen);
                let of_task = task_difference(system, id, found, other).or_else(|| more(id, other, name));
                of_task.or_else(|| differs.then(|| "sections of other resources".into()))
            }
        };
        why = of_task.map(|of_task| format!("`{name}`: {of_task}")).or(why);
    }
    let different: BTreeSet<ResourceId> = pairs.values().copied().collect();
    why = why.or_else(|| (different.len() < pairs.len()).then(|| "one resource stands for two".into()));
    why
}

/// The nearest of the times of all attempts, in nanoseconds: for each task that of most jobs, and for each of its
/// sections the longest. Other work on the machine lengthens times, and never all of them in each attempt.
struct Nearest {
    kept: BTreeMap<(TaskId, Option<usize>), u64>,
    /// What a lock and its unlock take: under `icpp`, they change the priority of the thread by system calls.
    lock_ns: u64,
    /// What the switches of preemptions add to a section.
    preempted_ns: u64,
}

/// The most that it takes to record a lock and an unlock, on a machine with other work.
const RECORDING_NS: u64 = 1_000;
/// The most that a preemption adds to a section which is preempted in every recording.
const PREEMPTED_NS: u64 = 3_000;

impl Nearest {
    fn under(protocol: &str, preempted_ns: u64) -> Self {
        Self { kept: BTreeMap::new(), lock_ns: if protocol == "icpp" { 10_000 } else { 0 }, preempted_ns }
    }

    /// Keeps the nearer one of a time and the one that is kept.
    fn keep(&mut self, key: (TaskId, Option<usize>), seen: u64, expected: Duration) -> u64 {
        let kept = self.kept.entry(key).or_insert(seen);
        if seen.abs_diff(expected.as_ns()) < kept.abs_diff(expected.as_ns()) {
            *kept = seen;
        }
        *kept
    }

    /// Execution times are within 1 % and 5 us, and what two preemptions add.
    fn is_c(&self, system: &System, id: TaskId) -> bool {
        let (wcet, locks) = (system.task(id).wcet.as_ns(), system.sections(id).len() as u64);
        self.kept[&(id, None)].abs_diff(wcet) <= wcet / 100 + 5_000 + 2 * self.preempted_ns + self.lock_ns * locks
    }

    /// Lengths of sections are within 2 % and 0.3 us, and longer by what recording takes inside of them.
    fn is_length(&self, system: &System, id: TaskId, index: usize) -> bool {
        let sections = system.sections(id);
        let inner = sections.iter().filter(|inner| inner.parent == Some(index)).count() as u64;
        let length = sections[index].length.as_ns();
        let (seen, near) = (self.kept[&(id, Some(index))], length * 2 / 100 + 300);
        (length - near..=length + near + RECORDING_NS + self.preempted_ns + self.lock_ns * inner).contains(&seen)
    }
}

/// Half of the jobs at least are not lengthened by other work.
fn time_difference(system: &System, id: TaskId, name: &str, report: &Value, nearest: &mut Nearest) -> Option<String> {
    let threads = report["threads"].as_array().expect("threads");
    let thread = threads.iter().find(|thread| thread["task"]["name"] == name).expect("the task is in the report");
    let median = thread["task"]["cpu_quantiles_ns"][0].as_u64().expect("a time");
    let wcet = system.task(id).wcet;
    let kept = nearest.keep((id, None), median, wcet);
    (!nearest.is_c(system, id)).then(|| format!("C {kept} ns in most jobs and not {wcet}"))
}

fn task_difference(system: &System, id: TaskId, found: &System, other: TaskId) -> Option<String> {
    let (task, seen) = (system.task(id), found.task(other));
    let (period, seen_period) = (task.period.as_ns(), seen.period.as_ns());
    if period.abs_diff(seen_period) > period / 1_000_000 {
        return Some(format!("period {} and not {}", seen.period, task.period));
    }
    if seen.cpu != task.cpu {
        return Some(format!("CPU {} and not {}", seen.cpu.0, task.cpu.0));
    }
    let (sections, seen_sections) = (system.sections(id), found.sections(other));
    if sections.iter().map(|section| section.parent).ne(seen_sections.iter().map(|section| section.parent)) {
        return Some(format!("{} sections and not {}, or nested otherwise", seen_sections.len(), sections.len()));
    }
    let rank = |system: &System, priority| system.tasks().iter().filter(|task| task.priority < priority).count();
    if rank(system, task.priority) != rank(found, seen.priority) {
        return Some("another place in the order of priorities".into());
    }
    None
}

/// Whether a section or an execution time of the system is none of those that were recorded.
fn has_other_times(system: &System, nearest: &Nearest) -> bool {
    let is_other = |id: TaskId| {
        (0..system.sections(id).len()).any(|index| !nearest.is_length(system, id, index)) || !nearest.is_c(system, id)
    };
    system.task_ids().any(is_other)
}

fn section_difference(
    system: &System,
    id: TaskId,
    found: &System,
    other: TaskId,
    nearest: &mut Nearest,
) -> Option<String> {
    let (sections, seen_sections) = (system.sections(id), found.sections(other));
    let mut why = None;
    for (index, (section, seen)) in sections.iter().zip(seen_sections).enumerate() {
        let kept = nearest.keep((id, Some(index)), seen.length.as_ns(), section.length);
        if !nearest.is_length(system, id, index) {
            why = Some(format!("a section of {kept} ns, and not {}", section.length));
        }
    }
    why
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("report.json")).expect("there is a report");
    serde_json::from_str(&text).expect("the report is JSON")
}

/// Short attempts are repeated until each time was once not lengthened by other work. A few are enough on a quiet
/// machine.
const ATTEMPTS: usize = 200;

/// Records the program that executes a system until the recorded system is this one. It is none of the mutants, which
/// have other times.
fn is_recorded(text: &str, protocol: &str, preempted_ns: u64, mutants: &[String]) {
    let parse = |text: &str| parse_system(text).unwrap_or_else(|faults| panic!("{faults:?}: {text}"));
    let system = parse(text);
    let Some(program) = Program::of(text, protocol) else { return };
    let (mut last, mut nearest) = (None, Nearest::under(protocol, preempted_ns));
    for attempt in 1..=ATTEMPTS {
        let recorded = program.record("0.12");
        assert_eq!(recorded.ended.status, 0, "{}{}", recorded.ended.out, recorded.ended.err);
        let file = std::fs::read_to_string(recorded.folder.join("system.toml")).expect("there is a task set");
        let found = parse_system(&file).unwrap_or_else(|faults| panic!("{faults:?}: {file}"));
        assert_eq!(found.protocol().map(|protocol| protocol.to_string()).as_deref(), Some(protocol));
        let report = report(&recorded.folder);
        last = difference(&system, &found, &report, &mut nearest).map(|why| format!("{why}\n{text}\n{file}"));
        // On a busy machine, the thread that writes may come too late: root also gets the wake-ups of all programs.
        if report["lost"] != 0 {
            last = Some(format!("{} events were lost\n{text}", report["lost"]));
        }
        if last.is_none() {
            assert_eq!(report["inversions"].as_array().map(Vec::as_slice), Some(&[][..]), "{}", recorded.ended.out);
            let trace = std::fs::read(recorded.folder.join("trace.pftrace")).expect("there is a trace");
            assert!(trace.len() > 1_000);
            assert!(mutants.iter().all(|mutant| has_other_times(&parse(mutant), &nearest)));
            println!("recorded in attempt {attempt}");
            return;
        }
    }
    panic!("{}", last.unwrap_or_default());
}

#[test]
fn an_exported_system_is_recorded() {
    let Some(_machine) = require_realtime() else { return };
    // An inner section that is longer by a tenth, and an execution time that is longer by more than under `icpp`.
    let inner = NESTED.replacen("{ run = \"50 us\" }", "{ run = \"55 us\" }", 1);
    let mutants = [
        inner.replacen("{ run = \"50 us\" }", "{ run = \"45 us\" }", 1),
        NESTED.replace("wcet = \"1 ms\"", "wcet = \"1080 us\""),
    ];
    for protocol in ["pip", "icpp"] {
        is_recorded(NESTED, protocol, 0, &mutants);
    }
}

/// Returns a system of three to five tasks on two CPUs, whose sections nest in one order, and whose times are multiples
/// of this unit. Then each outermost section gets this much of the time that follows it.
fn random_system(random: &mut fastrand::Rng, unit_us: u32, moved_us: u32) -> String {
    let resources = random.usize(1..=4);
    let mut text = String::from("name = \"random\"\nprotocol = \"pip\"\n\n");
    text.push_str("[platform]\ncpus = 2\npriorities = \"explicit\"\n");
    for resource in 0..resources {
        let _ = write!(text, "\n[[resource]]\nname = \"r{resource}\"\n");
    }
    let tasks = random.u32(3..=5);
    for task in 0..tasks {
        let period = random.choice([6, 8, 10, 12, 15, 20]).expect("there are some");
        let mut steps = Vec::new();
        let mut wcet = 0;
        let mut run = |steps: &mut Vec<String>, random: &mut fastrand::Rng, more_us: u32, less_us: u32| {
            let length = random.u32(4..=16) * unit_us + more_us - less_us;
            wcet += length;
            steps.push(format!("{{ run = \"{length} us\" }}"));
        };
        run(&mut steps, random, 0, 0);
        for _ in 0..random.u32(1..=3) {
            // Resources are locked in the order of their numbers, so that no deadlock is possible.
            let mut inside: Vec<usize> = (0..resources).filter(|_| random.u32(0..3) == 0).collect();
            inside.truncate(2);
            for (depth, resource) in inside.iter().enumerate() {
                steps.push(format!("{{ lock = \"r{resource}\" }}"));
                run(&mut steps, random, if depth == 0 { moved_us } else { 0 }, 0);
            }
            for (depth, resource) in inside.iter().enumerate().rev() {
                steps.push(format!("{{ unlock = \"r{resource}\" }}"));
                run(&mut steps, random, 0, if depth == 0 { moved_us } else { 0 });
            }
        }
        let (cpu, priority, body) = (task % 2, tasks - task, steps.join(", "));
        let _ = write!(
            text,
            "\n[[task]]\nname = \"t{task}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} ms\"\n\
             wcet = \"{wcet} us\"\nbody = [{body}]\n"
        );
    }
    text
}

/// Two systems; fifty if LOCKWRIGHT_DEEP is set, as in CI.
#[test]
fn random_systems_are_recorded() {
    let Some(_machine) = require_realtime() else { return };
    let count = if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 50 } else { 2 };
    for seed in 0..count {
        let protocol = if seed % 2 == 0 { "pip" } else { "icpp" };
        println!("system {seed} under {protocol}");
        let random = |unit_us, moved_us| random_system(&mut fastrand::Rng::with_seed(seed), unit_us, moved_us);
        let (system, longer, moved) = (random(10, 0), random(11, 0), random(10, 16));
        // A system without sections is no mutant of itself.
        let mutants: Vec<String> = [longer, moved].into_iter().filter(|mutant| *mutant != system).collect();
        // All tasks begin together, so the same sections are preempted in each recording.
        is_recorded(&system, protocol, PREEMPTED_NS, &mutants);
    }
}

/// The same system as a workload of rt-app, which is not of this project. Its loops take other times on each machine,
/// so only periods, CPUs, priorities and sections are compared.
#[test]
fn a_workload_of_rt_app_is_recorded() {
    let Some(_machine) = require_realtime() else { return };
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("rt-app"))
        .find(|path| path.is_file());
    let Some(program) = found else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no rt-app (Debian's package has it)");
        return;
    };
    // Without a calibration, which takes seconds.
    let workload =
        export("rt-app", NESTED, "pip").out.replace("\"duration\": 10", "\"duration\": 1, \"calibration\": 20");
    assert!(workload.contains("calibration"), "{workload}");
    let files = File::named("workload.json", &workload);
    let folder = files.beside("recorded");
    let parse = |text: &str| parse_system(text).unwrap_or_else(|faults| panic!("{faults:?}: {text}"));
    let system = parse(NESTED);
    let attempt = |_| {
        let mut command = lockwright();
        command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(&folder).arg("--");
        // rt-app writes its logs where it is executed.
        command.current_dir(files.path.parent().expect("a folder"));
        let ended = end(command.arg(&program).arg(&files.path));
        assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
        std::fs::read_to_string(folder.join("system.toml")).expect("there is a task set")
    };
    // Where other work delays a thread beyond its next release, rt-app does not sleep, and two jobs are one.
    let mut attempts = (0..ATTEMPTS).map(attempt);
    let is_it = |file: &String| structure(&system, &parse(file), |_, _, _| None).is_none();
    let found = parse(&attempts.find(is_it).expect("the system is recorded once"));
    // The mutants: a system whose tasks have other periods, CPUs, priorities or resources.
    let mutants = [
        ("period = \"12 ms\"", "period = \"13 ms\""),
        ("cpu = 0\npriority = 2", "cpu = 1\npriority = 2"),
        ("cpu = 0\npriority = 2", "cpu = 0\npriority = 4"),
        ("count = 2", "count = 3"),
        ("resource = \"log\", length", "resource = \"bus\", length"),
    ];
    for (from, to) in mutants {
        let mutant = parse(&NESTED.replace(from, to));
        assert_ne!(structure(&mutant, &found, |_, _, _| None), None, "{to}");
    }
}

#[test]
fn the_inversion_of_pathfinder_is_told() {
    let Some(_machine) = require_realtime() else { return };
    let Some(program) = Program::of(PATHFINDER, "none") else { return };
    let is_known = |found: &Value| {
        let between = found["between"].as_array().expect("a list");
        found["waiter"] == "distribution_do"
            && (between.contains(&"tache_radio".into()) || between.contains(&"tache_camera".into()))
    };
    // All tasks begin together, and the inversion is in the first 100 ms unless something else has the CPU then.
    let is_told = |recorded: &Recorded| {
        println!("{}", recorded.ended.out);
        report(&recorded.folder)["inversions"].as_array().expect("a list").iter().any(is_known)
    };
    let recorded = (0..3).map(|_| program.record(short_or("4.5", "0.4"))).find(is_told).expect("the inversion is told");
    let report = report(&recorded.folder);
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

/// Records the program `true`.
fn record_true(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = lockwright();
    command.env("LOCKWRIGHT_RECORDER", library()).args(["record", "-o"]).arg(folder).args(arguments);
    end(command.args(["--", "true"]))
}

#[test]
fn a_program_without_jobs_gives_no_task_set() {
    let files = File::named("unused", "");
    let folder = files.beside("recorded");
    let ended = record_true(&folder, &[]);
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("no task set: "), "{}", ended.err);
    assert!(!folder.join("system.toml").exists());
    assert!(report(&folder)["reason"].is_string());
}

#[test]
fn threads_that_are_not_recorded_give_a_warning() {
    let files = File::named("unused", "");
    let folder = files.beside("recorded");
    record_true(&folder, &[]);
    assert_eq!(report(&folder)["unrecorded_threads"], 0);
    // The last chunk has their number.
    let path = folder.join("events.lwr");
    let mut bytes = std::fs::read(&path).expect("a recording");
    let last = bytes.len() - 24;
    bytes[last + 8] = 2;
    std::fs::write(&path, bytes).expect("a file");
    let ended = end(lockwright().args(["record", "--json", "--read"]).arg(&folder));
    let warning = "the locks and waits of 2 threads are missing: there was no memory for them, or too many threads";
    assert!(ended.err.lines().any(|line| line == format!("warning: {warning}")), "{}", ended.err);
    let output = json(&ended);
    assert_eq!((&output["unrecorded_threads"], &output["warnings"][0]), (&2.into(), &warning.into()));
}

#[test]
fn a_task_set_that_no_recording_wrote_stays() {
    let mine = File::named("system.toml", NESTED);
    let folder = mine.path.parent().expect("a folder");
    let ended = record_true(folder, &[]);
    assert!(ended.status == 2 && ended.err.contains("no recording wrote it"), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(&mine.path).expect("it is there"), NESTED);
}

/// Neither are other files of the user with the names of results, and the files of a recording are replaced.
#[test]
fn files_that_no_recording_wrote_stay() {
    for (name, text) in [
        ("report.json", "{\"verb\": \"check\"}"),
        ("report.json", "[]"),
        ("events.lwr", "mine"),
        ("events.lwr", "LWRECORE"),
        ("trace.pftrace", "mine"),
    ] {
        let mine = File::named(name, text);
        let folder = mine.path.parent().expect("a folder");
        let ended = record_true(folder, &[]);
        assert!(ended.status == 2 && ended.err.contains("no recording wrote it"), "{name}: {}", ended.err);
        assert_eq!(std::fs::read_to_string(&mine.path).expect("it is there"), text);
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 1, "{name}");
    }
    let files = File::named("notes.txt", "mine");
    let folder = files.path.parent().expect("a folder");
    for left in ["", "system.toml", "trace.pftrace", "report.json"] {
        let _ = std::fs::remove_file(folder.join(left));
        let ended = record_true(folder, &["--job-at", "nosuchsite"]);
        assert_eq!(ended.status, 1, "{left}: {}", ended.err);
        let note = "note: --job-at nosuchsite has no effect: no wait of this recording is there";
        assert!(ended.err.lines().any(|line| line == note), "{}", ended.err);
    }
    if !refuses_files_in_sys() {
        return;
    }
    let ended = record_true(Path::new("/sys/lockwright"), &[]);
    assert_eq!(ended.status, 3, "{}", ended.err);
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

#[test]
fn a_refused_recording_is_3() {
    let files = File::named("unused", "");
    let folder = files.beside("recorded");
    // A limit on the length of files refuses the first byte, as a full disk does.
    let mut command = Command::new("sh");
    command.env("LOCKWRIGHT_RECORDER", library()).args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    command.arg(lockwright().get_program()).args(["record", "-o"]).arg(&folder).args(["--", "true"]);
    let ended = end(&mut command);
    assert_eq!((ended.status, ended.out.as_str()), (3, ""), "{}", ended.err);
    assert!(ended.err.contains("the recording cannot be written"), "{}", ended.err);
    assert!(!ended.err.contains("this is not a recording"), "{}", ended.err);
    // It cannot be read later either.
    let again = end(lockwright().args(["record", "--read"]).arg(&folder));
    assert!(again.status == 2 && again.err.contains("the file ends within its header"), "{}", again.err);
}

#[test]
fn a_file_is_no_directory_of_results() {
    let file = File::named("README.md", "text");
    let path = file.path.to_str().expect("UTF-8");
    for (words, help) in [
        (&["-o", path, "--", "true"][..], "give -o a directory"),
        (&["-o", "/dev/full", "--", "true"], "give -o a directory"),
        (&["--read", path], "give --read a directory that `lockwright record` wrote"),
    ] {
        let ended = end(lockwright().env("LOCKWRIGHT_RECORDER", library()).arg("record").args(words));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{words:?}: {}", ended.err);
        assert!(ended.err.contains("is not a directory") && ended.err.contains(help), "{words:?}: {}", ended.err);
        assert!(!ended.err.contains("no recording wrote it"), "{}", ended.err);
    }
    assert_eq!(std::fs::read_to_string(&file.path).expect("it is there"), "text");
}

#[test]
fn a_directory_is_no_program() {
    let file = File::named("unused", "");
    let folder = file.path.parent().expect("a folder");
    std::fs::create_dir(file.beside("src")).expect("created");
    for (name, text) in
        [(".", "is a directory"), ("src", "is a directory"), ("./src", "is a directory"), ("no", "PATH")]
    {
        let ended = end(lockwright().current_dir(folder).args(["record", "-o", "results", "--", name]));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{name}: {}", ended.err);
        assert!(ended.err.contains(text), "{name}: {}", ended.err);
    }
}
