//! `run` and `doctor`: what depends on the machine.

use crate::realtime::{require_deadline, require_realtime};
use crate::simulate::FREQUENT;
use crate::support::{File, GLOBAL, HOLDS, LATE, at, end, json, lockwright, on};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// The user that may do nothing.
const NOBODY: u32 = 65534;

/// The first published table, under `ics` and `ics_lock`. Tasks with invalidated sections meet their deadlines like the
/// others.
#[test]
fn real_threads_execute_interruptible_sections() {
    const TABLE: &str = include_str!("../../../../examples/ics-table-1.toml");
    let Some(_machine) = require_realtime() else { return };
    for protocol in ["ics", "ics_lock"] {
        let ended = on(TABLE, "run", &["--for", "300 ms", "--protocol", protocol, "--json"]);
        assert!([0, 1].contains(&ended.status), "{}{}", ended.out, ended.err);
        let result = &json(&ended)["results"][0];
        assert_eq!((&result["protocol"], &result["ended"]), (&protocol.into(), &"completed".into()), "{}", ended.out);
        for (task, jobs) in result["tasks"].as_array().expect("tasks").iter().zip([30, 20, 10]) {
            assert_eq!(task["jobs"].as_u64(), Some(jobs), "{task}");
        }
    }
    // `tau1` arrives in the section of `tau3`, every time.
    let disturbed = TABLE.replace("priority = 3\n", "priority = 3\noffset = \"1 ms\"\n").replace(
        "wcet = \"4 ms\"\nrequests = [{ resource = \"z\", count = 1, length = \"1 ms\" }]",
        "body = [{ lock = \"z\" }, { run = \"2 ms\" }, { unlock = \"z\" }]",
    );
    let disturbed = disturbed.replace("priority = 2\n", "priority = 2\noffset = \"5 ms\"\n");
    let ended = on(&disturbed, "run", &["--for", "300 ms", "--json"]);
    let tasks = &json(&ended)["results"][0]["tasks"];
    assert!(tasks[2]["restarts"].as_u64() >= Some(5), "{}{}", ended.out, ended.err);
    assert!(tasks[0].get("restarts").is_none(), "{}", ended.out);
    let text = on(&disturbed, "run", &["--for", "300 ms"]).out;
    assert!(text.contains("again"), "{text}");
}

#[test]
fn real_threads_meet_light_deadlines_and_miss_impossible_ones() {
    let Some(_machine) = require_realtime() else { return };
    for (text, status) in [(HOLDS, 0), (LATE, 1)] {
        let ended = on(text, "run", &["--for", "1 s", "--json"]);
        assert_eq!(ended.status, status, "{}{}", ended.out, ended.err);
        let result = &json(&ended)["results"][0];
        assert_eq!(result["schedulable"], status == 0);
        for task in result["tasks"].as_array().expect("tasks") {
            assert!(task["jobs"].as_u64().expect("was counted") > 0, "{task}");
            let response = task["observed_response_ns"].as_u64().expect("was seen");
            assert!(response >= task["cost_ns"].as_u64().expect("is given"), "it burns what it says: {task}");
            assert!(task["observed_p999_ns"].is_null(), "too few jobs: {task}");
            let is_late = response > task["deadline_ns"].as_u64().expect("is given");
            let worst = &task["worst_job"];
            assert_eq!(
                task["above_bound"] == true || is_late,
                worst.is_object(),
                "what is above its bound or late is explained: {task}"
            );
            if let Some(taken) = worst["taken"].as_array() {
                let sum: u64 = taken.iter().map(|taken| taken["taken_ns"].as_u64().expect("a time")).sum();
                assert_eq!(sum, worst["unaccounted_ns"], "{worst}");
            }
        }
    }
}

/// With root, the kernel's trace is held against the orders; without, the command says what it needs.
#[test]
fn a_run_is_audited() {
    let Some(_machine) = require_realtime() else { return };
    let audited = ["--for", "300 ms", "--audit"];
    let ended = on(HOLDS, "run", &[&audited[..], &["--json"]].concat());
    if ended.status == 3 {
        assert!(ended.err.contains("no audit: ") && ended.err.contains("run it as root"), "{}", ended.err);
        return println!("skipped: {}", ended.err);
    }
    let audit = &json(&ended)["results"][0]["audit"];
    assert!(audit["switches"].as_u64() > Some(10) && audit["orders"].as_u64() > Some(2), "{audit}");
    assert_eq!((&audit["departed"], &audit["departures"]), (&0.into(), &serde_json::json!([])), "{audit}");
    let text = on(HOLDS, "run", &audited).out;
    assert!(text.contains("\nAudit: ") && text.contains(": all were ordered."), "{text}");
    assert!(json(&on(HOLDS, "run", &["--for", "100 ms", "--json"]))["results"][0].get("audit").is_none());
    let by_kernel = BY_DEADLINE.replace("p-edf", "g-edf");
    let refused = on(&by_kernel, "run", &audited);
    assert_eq!((refused.status, refused.out.as_str()), (2, ""), "{}", refused.err);
    assert!(refused.err.contains("remove --audit, or choose `fmlp_short`"), "{}", refused.err);
}

/// Two tasks with utilization 0.92, one of which misses by fixed priorities.
const BY_DEADLINE: &str = "[platform]\ncpus = 1\nscheduler = \"p-edf\"\npriorities = \"rate-monotonic\"\n\
    [[task]]\nname = \"short\"\nperiod = \"50 ms\"\nwcet = \"20 ms\"\n\
    [[task]]\nname = \"long\"\nperiod = \"75 ms\"\nwcet = \"39 ms\"\n";

#[test]
fn real_threads_execute_by_deadlines() {
    let Some(_machine) = require_realtime() else { return };
    let fixed = on(&BY_DEADLINE.replace("p-edf", "p-fp"), "run", &["--for", "450 ms", "--json"]);
    assert_eq!(fixed.status, 1, "{}{}", fixed.out, fixed.err);
    let ended = on(BY_DEADLINE, "run", &["--for", "450 ms", "--protocol", "pip", "--json"]);
    // A job can be late on a busy machine.
    assert!([0, 1].contains(&ended.status), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("--protocol has no effect here"), "{}", ended.err);
    let result = &json(&ended)["results"][0];
    assert_eq!((&result["scheduler"], &result["ended"]), (&"p-edf".into(), &"completed".into()), "{}", ended.out);
    assert_eq!(result["proved"], true, "the guarantees of the tests: {}", ended.out);
    for (task, (jobs, bound)) in result["tasks"].as_array().expect("tasks").iter().zip([(9, 38), (6, 63)]) {
        let bound = Some(bound * 1_000_000);
        assert_eq!((task["jobs"].as_u64(), task["response_ns"].as_u64()), (Some(jobs), bound), "{task}");
        assert!(task["observed_blocking_ns"].is_null(), "blocking is defined by fixed priorities: {task}");
    }
    let resources = HOLDS.replace("[platform]", "[platform]\nscheduler = \"p-edf\"");
    let ended = on(&resources, "run", &["--for", "300 ms"]);
    assert!(ended.out.contains("under msrp and p-edf"), "{}{}", ended.out, ended.err);
}

/// The only resource is an object, so nothing is under MSRP.
#[test]
fn objects_alone_are_not_under_msrp() {
    let text = HOLDS.replace("[platform]", "[platform]\nscheduler = \"p-edf\"");
    let text = text.replace("name = \"bus\"", "name = \"bus\"\nprotocol = \"lock_free\"");
    let object = "\n[[resource]]\nname = \"idle\"\n[platform]";
    let unused = text.replace("\n[platform]", object);
    for text in [&text, &unused] {
        for verb in ["check", "simulate"] {
            let ended = on(text, verb, &[]);
            assert!(ended.out.starts_with("holds under lock_free and p-edf"), "{verb}: {}{}", ended.out, ended.err);
        }
    }
    let lock = "\n[[resource]]\nname = \"lock\"\n[platform]";
    let both = text.replace("\n[platform]", lock);
    let both = both.replace("requests = [", "requests = [{ resource = \"lock\", length = \"10 us\" }, ");
    let ended = on(&both, "check", &[]);
    assert!(ended.out.starts_with("holds under msrp and p-edf"), "{}{}", ended.out, ended.err);
}

/// The length of a run is known only afterwards: a window beyond it is empty, and a note says so.
#[test]
fn windows_beyond_a_run_are_empty() {
    let Some(_machine) = require_realtime() else { return };
    let ended = on(LATE, "run", &["--for", "200 ms", "--gantt", "--window", "100h..101h"]);
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("--window begins when the schedule has ended, at "), "{}", ended.err);
    assert!(!ended.out.contains("##"), "{}", ended.out);
}

#[test]
fn a_thousand_executed_jobs_have_a_percentile() {
    let Some(_machine) = require_realtime() else { return };
    let overheads = File::named("overheads.toml", "schedule = \"1 us\"\n");
    let overheads = overheads.path.to_str().expect("a path in UTF-8");
    let frequent = FREQUENT.replace("period = \"1 ms\"", "period = \"500 us\"");
    for (verb, options) in [("run", &[][..]), ("verify", &["--overheads", overheads])] {
        for (length, is_shown) in [("250 ms", false), ("500 ms", true)] {
            let ended = on(&frequent, verb, &[&["--for", length][..], options].concat());
            assert_eq!(ended.out.contains("p99.9"), is_shown, "{verb}: {}{}", ended.out, ended.err);
        }
        let value = json(&on(&frequent, verb, &[&["--for", "500 ms", "--json"][..], options].concat()));
        let task = &value["results"][0]["tasks"][1];
        let seen = task["observed_p999_ns"].as_u64();
        assert!(seen >= Some(100_000) && seen <= task["observed_response_ns"].as_u64(), "{task}");
    }
}

#[test]
fn a_run_is_traced() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(HOLDS);
    let trace = file.beside("out.pftrace");
    let ended = end(lockwright().arg("run").arg(&file.path).args(["--for", "500 ms", "--trace"]).arg(&trace));
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    assert!(std::fs::metadata(&trace).expect("is there").len() > 500);
    assert!(!ended.out.contains("p99.9") && ended.out.contains("executed for 500 ms"), "{}", ended.out);
}

/// Figure 2 with real threads. How much work a busy machine leaves is not judged.
#[test]
fn sets_of_a_figure_are_executed_beside_ordinary_work() {
    let file = File::new(HOLDS);
    let folder = |name: &str| file.beside(name);
    let study = |name: &str, arguments: &[&str]| {
        let figure = ["study", "rtas2008", "--samples", "1", "-o"];
        end(lockwright().args(figure).arg(folder(name)).args(arguments))
    };
    let refused = study("none", &["--figure", "1", "--real", "50 ms"]);
    assert!(refused.status == 2 && refused.err.contains("--figure 2"), "{}", refused.err);
    let Some(machine) = require_realtime() else { return };
    let real = study("real", &["--figure", "2", "--real", "50 ms"]);
    drop(machine);
    assert_eq!(real.status, 0, "{}", real.err);
    assert!(real.err.contains("under `p-fp`"), "{}", real.err);
    let read = |name: &str| std::fs::read_to_string(folder(name)).expect("is there");
    let csv = read("real/figure-2-real.csv");
    assert!(csv.starts_with("curve,x,cpus,simulated,executed,misses\n"), "{csv}");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.rsplitn(6, ',').collect()).collect();
    assert_eq!(rows.len(), 11 * 6, "{csv}");
    let shares = rows.iter().map(|row| row[1].parse::<f64>().expect("a number"));
    assert!(shares.clone().all(|share| share >= 0.0) && shares.sum::<f64>() > 0.0, "{csv}");
    assert!(read("real/plots/figure-2-real.svg").contains("(b) real threads, P-FP"));
    // Real threads change nothing in the results.
    assert_eq!(study("plain", &["--figure", "2"]).status, 0);
    assert!(read("plain/results.csv") == read("real/results.csv"));
}

#[test]
fn too_many_cpus_are_3() {
    let text = GLOBAL.replace("cpus = 2", "cpus = 64");
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 64) {
        eprintln!("SKIPPED: this machine has 64 CPUs");
        return;
    }
    let ended = on(&text, "run", &[]);
    assert_eq!((ended.status, ended.out.as_str()), (3, ""), "{}", ended.err);
    assert!(ended.err.contains("cannot run") && ended.err.contains("lockwright doctor"), "{}", ended.err);
}

#[test]
fn missing_permission_is_3_and_named() {
    let file = File::new(HOLDS);
    let folder = file.path.parent().expect("has a folder");
    if std::fs::metadata(folder).expect("is there").uid() != 0 {
        eprintln!("SKIPPED: only root can become nobody");
        return;
    }
    let readable =
        |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("is ours");
    let binary = file.beside("lockwright");
    std::fs::copy(env!("CARGO_BIN_EXE_lockwright"), &binary).expect("can be copied");
    readable(folder, 0o755);
    readable(&binary, 0o755);
    readable(&file.path, 0o644);
    let as_nobody = |arguments: &[&str]| {
        let mut command = at(&binary);
        command.args(arguments).uid(NOBODY).gid(NOBODY);
        command
    };
    let path = file.path.display().to_string();
    let ended = end(&mut as_nobody(&["run", &path, "--for", "200 ms"]));
    assert_eq!((ended.status, ended.out.as_str()), (3, ""), "{}", ended.err);
    for part in ["permission", "CAP_SYS_NICE", "lockwright doctor"] {
        assert!(ended.err.contains(part), "{part} is missing in {}", ended.err);
    }
    assert_eq!(end(&mut as_nobody(&["check", &path])).status, 0, "`check` needs no permission");
    // What works without is proposed where it exists, and where it was not asked for.
    for (subject, works_alone) in [("locks", true), ("mutex", true), ("ics", true), ("protocols", false)] {
        let whole = end(&mut as_nobody(&["measure", subject, "--readings", "1"]));
        assert_eq!(whole.status, 3, "{subject}: {}", whole.err);
        assert_eq!(whole.err.contains("`--alone`"), works_alone, "{subject}: {}", whole.err);
        let alone = end(&mut as_nobody(&["measure", subject, "--readings", "1", "--alone"]));
        assert_eq!(alone.status == 0, works_alone, "{subject}: {}", alone.err);
        assert!(!alone.err.contains("`--alone`"), "{subject}: {}", alone.err);
    }
    let results = file.beside("results");
    std::fs::create_dir(&results).expect("can be created");
    readable(&results, 0o777);
    let results = results.display().to_string();
    let beside = ["study", "rtas2008", "--figure", "2", "--samples", "1", "--real", "50 ms", "-o", &results];
    let study = end(&mut as_nobody(&beside));
    assert_eq!((study.status, study.out.as_str()), (3, ""), "{}", study.err);
    assert!(study.err.contains("CAP_SYS_NICE") && study.err.contains("lockwright doctor"), "{}", study.err);
    let doctor = end(&mut as_nobody(&["doctor"]));
    assert_eq!(doctor.status, 3, "{}", doctor.out);
    assert!(doctor.out.contains("missing"), "{}", doctor.out);
}

#[test]
fn doctor_has_one_line_each_with_its_fix() {
    let ended = end(lockwright().arg("doctor"));
    assert!([0, 3].contains(&ended.status), "{}", ended.err);
    for line in ended.out.lines() {
        let state = line.split_whitespace().next().expect("no line is empty");
        assert!(["ok", "warn", "missing"].contains(&state), "{line}");
        assert_eq!(state == "ok", !line.contains("; fix: "), "{line}");
    }
    let value = json(&end(lockwright().args(["doctor", "--json"])));
    assert_eq!(value["verb"], "doctor");
    assert_eq!(value["findings"].as_array().map(Vec::len), Some(ended.out.lines().count()));
}

/// Under `g-edf`, what the kernel's EDF cannot execute is refused before anything runs.
#[test]
fn global_deadlines_are_executed_or_refused() {
    let Some((_machine, cpus)) = require_deadline() else { return };
    let of = |cpus: usize, rest: &str| {
        let head = format!("[platform]\ncpus = {cpus}\nscheduler = \"g-edf\"\n");
        format!("{head}[[task]]\nname = \"a\"\npriority = 1\nperiod = \"20 ms\"\n{rest}\n")
    };
    let ended = on(&of(cpus, "wcet = \"2 ms\""), "run", &["--for", "200 ms", "--json"]);
    assert!([0, 1].contains(&ended.status), "{}{}", ended.out, ended.err);
    let task = &json(&ended)["results"][0]["tasks"][0];
    // The watchdog may have ended the run on a busy machine.
    assert!(task["jobs"].as_u64().is_some_and(|jobs| (1..=10).contains(&jobs)), "{task}");
    assert_eq!(task["response_ns"].as_u64(), Some(2_000_000), "{task}");
    assert!(task["cpu"].is_null() && task["cpus"].is_null() && task["observed_blocking_ns"].is_null(), "{task}");
    let shares = "wcet = \"2 ms\"\nrequests = [{ resource = \"r\", count = 1, length = \"1 ms\" }]\n\
                  [[resource]]\nname = \"r\"";
    let ended = on(&of(cpus, shares), "run", &["--for", "100 ms", "--protocol", "none"]);
    assert!(ended.err.contains("there are no bounds: "), "{}", ended.err);
    let ended = on(&of(cpus, shares), "run", &["--for", "100 ms", "--protocol", "lock_free"]);
    assert!(ended.out.contains("under lock_free and g-edf") && !ended.err.contains("no bounds"), "{}", ended.err);
    // The tasks schedule themselves where they lock, also on fewer CPUs than there are.
    for protocol in ["fmlp_short", "fmlp_long"] {
        let ended = on(&of(1, shares), "run", &["--for", "100 ms", "--protocol", protocol]);
        assert!([0, 1].contains(&ended.status), "{}{}", ended.out, ended.err);
        assert!(ended.out.contains(&format!("under {protocol} and g-edf")), "{}", ended.out);
        assert!(ended.err.contains("among themselves (SCHED_FIFO)"), "{}", ended.err);
    }
    let ended = on(&of(cpus, shares), "run", &["--for", "100 ms", "--protocol", "all"]);
    assert!(
        ended.err.contains("all protocols except none, fmlp_long, fmlp_short, lock_free, wait_free are"),
        "{}",
        ended.err
    );
    let mixed = "wcet = \"2 ms\"\nrequests = [{ resource = \"r\", length = \"1 ms\" }, { resource = \"s\", \
                 length = \"500 us\" }]\n[[resource]]\nname = \"r\"\nprotocol = \"none\"\n[[resource]]\nname = \"s\"";
    let ended = on(&of(cpus, mixed), "run", &["--for", "100 ms", "--protocol", "all"]);
    assert!(ended.err.contains("all protocols except none, lock_free, wait_free are left out"), "{}", ended.err);
    let beside = "`r` is under `none`, which is not executed beside locks of the FMLP";
    for (text, arguments, status, said) in [
        (of(cpus, mixed), &["--protocol", "fmlp_long"][..], 2, beside),
        (of(cpus, shares), &["--protocol", "mpcp"][..], 2, "`r` is under `mpcp`, which is not executed under `g-edf`"),
        (of(cpus + 1, "wcet = \"2 ms\""), &[], 3, "under SCHED_DEADLINE jobs execute on every CPU"),
        (
            of(cpus, "wcet = \"2 ms\""),
            &["--overheads", "x"],
            2,
            "a run under `g-edf` does not support overheads: those of its execution are not measured",
        ),
    ] {
        let ended = on(&text, "run", &[&["--for", "100 ms"], arguments].concat());
        assert_eq!(ended.status, status, "{}", ended.err);
        assert!(ended.err.contains(said), "{}", ended.err);
    }
}

#[test]
fn global_deadlines_are_not_verified() {
    let text = "[platform]\nscheduler = \"g-edf\"\n[[task]]\nname = \"a\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\n";
    let ended = on(text, "verify", &[]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{}", ended.err);
    assert!(ended.err.contains("verify under `g-edf` does not support overheads"), "{}", ended.err);
}

/// Two CPUs by deadlines.
const PARTITIONED: &str = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n\
    [[task]]\nname = \"a\"\ncpu = 0\nperiod = \"20 ms\"\nwcet = \"2 ms\"\n\
    [[task]]\nname = \"b\"\ncpu = 1\nperiod = \"30 ms\"\nwcet = \"3 ms\"\n";

/// A run that is killed leaves its partitions, and `doctor` removes them.
#[test]
fn doctor_removes_the_partitions_of_a_killed_run() {
    if std::env::var_os("LOCKWRIGHT_TEST_CPUSETS").is_none() {
        return println!("skipped: set LOCKWRIGHT_TEST_CPUSETS=1 to change the cpusets of this machine");
    }
    let Some((_machine, have)) = require_deadline() else { return };
    let first = on(PARTITIONED, "run", &["--sched-deadline", "--for", "100 ms"]);
    if have < 2 || first.status == 3 {
        println!("skipped: {}", first.err);
        return;
    }
    // A job can be late on a busy machine.
    assert!([0, 1].contains(&first.status), "{}{}", first.out, first.err);
    let file = File::new(PARTITIONED);
    let state = || {
        let all = json(&end(lockwright().args(["doctor", "--json"])));
        let findings = all["findings"].as_array().expect("findings").clone();
        let finding = findings.into_iter().find(|finding| finding["name"] == "cpuset partitions").expect("is examined");
        finding["found"].as_str().expect("a text").to_owned()
    };
    assert_eq!(state(), "none is left of a run");
    let mut child = lockwright();
    child.arg("run").arg(&file.path).args(["--sched-deadline", "--for", "60 s"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let executes = format!("in use by process {}", child.id());
    let begun = Instant::now();
    while state() != executes {
        assert!(child.try_wait().expect("is ours").is_none() && begun.elapsed().as_secs() < 60, "it has not begun");
    }
    let second = on(PARTITIONED, "run", &["--sched-deadline", "--for", "100 ms"]);
    assert_eq!(second.status, 3, "{}{}", second.out, second.err);
    assert!(second.err.contains("wait for its end"), "{}", second.err);
    child.kill().expect("is ours");
    child.wait().expect("is ours");
    let found = state();
    assert!(found.contains("groups that a killed run left"), "{found}");
    assert_eq!(state(), "none is left of a run");
}

/// The tasks leave nothing for the kernel's other work; a period is longer than the kernel allows.
#[test]
fn a_run_that_the_kernel_does_not_admit_is_3() {
    let Some((_machine, have)) = require_deadline() else { return };
    for (task, fix) in [
        ("period = \"10 ms\"\nwcet = \"9.9 ms\"", "/proc/sys/kernel/sched_rt_runtime_us"),
        ("period = \"10 s\"\nwcet = \"1 ms\"", "sched_deadline_period_max_us"),
    ] {
        let tasks: Vec<String> = (0..have).map(|cpu| format!("[[task]]\nname = \"t{cpu}\"\n{task}\n")).collect();
        let text = format!("[platform]\ncpus = {have}\nscheduler = \"g-edf\"\n{}", tasks.concat());
        let ended = on(&text, "run", &["--for", "100 ms"]);
        assert_eq!(ended.status, 3, "{}{}", ended.out, ended.err);
        assert!(ended.out.is_empty() && ended.err.contains(fix), "{}", ended.err);
    }
}

#[test]
fn partitions_are_only_for_p_edf_without_locks() {
    for (scheduler, help) in [("p-fp", "write `scheduler = "), ("g-edf", "`g-edf` uses SCHED_DEADLINE where")] {
        let ended = on(&PARTITIONED.replace("p-edf", scheduler), "run", &["--sched-deadline"]);
        assert_eq!(ended.status, 2, "{}{}", ended.out, ended.err);
        assert!(ended.err.contains(help), "{}", ended.err);
    }
    let locked = PARTITIONED.replace("[[task]]\nname = \"a\"", "[[resource]]\nname = \"r\"\n[[task]]\nname = \"a\"");
    let request = "wcet = \"3 ms\"\nrequests = [{ resource = \"r\", length = \"1 ms\" }]";
    let ended = on(&locked.replace("wcet = \"3 ms\"", request), "run", &["--sched-deadline"]);
    assert_eq!(ended.status, 2, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("`r` is under `srp`") && ended.err.contains("remove --sched-deadline"), "{}", ended.err);
}

/// A picture that cannot be made costs no run.
#[test]
fn a_run_without_its_picture_has_results() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(HOLDS);
    let svg = file.beside("picture.svg");
    let arguments = ["--for", "200 ms", "--job", "fast:100000", "--json", "--svg"];
    let ended = end(lockwright().arg("run").arg(&file.path).args(arguments).arg(&svg));
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("there is no job 100000 of"), "{}", ended.err);
    assert_eq!(json(&ended)["results"].as_array().map(Vec::len), Some(1), "{}", ended.out);
}
