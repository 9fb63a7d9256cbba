//! `--overheads` of `check`, `simulate` and `run`, and `verify`, which measures them.

use crate::export::short_or;
use crate::realtime::require_realtime;
use crate::support::{Ended, File, GLOBAL, HOLDS, INVERSION, LATE, end, json, lockwright, on};
use lockwright_model::format::{parse_overheads, parse_system};
use lockwright_model::{Overhead, Overheads, Protocol};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One task whose bound is its execution time: with real threads, each job takes longer by at least a wake-up.
const ALONE: &str = r#"
name = "alone"

[platform]
cpus = 1
priorities = "rate-monotonic"

[[task]]
name = "one"
period = "100 ms"
wcet = "100 us"
"#;

/// Less than any machine takes.
const TINY: &str = "schedule = \"1 ns\"\nrelease = \"1 ns\"\n";
/// More than any machine takes, unless something else has its CPU.
const LARGE: &str = "schedule = \"1 ms\"\nrelease = \"1 ms\"\nrelease_latency = \"50 ms\"\n";

/// The verb on a system, with overheads of this text.
fn charged(system: &str, verb: &str, overheads: &str, arguments: &[&str]) -> Ended {
    let file = File::named("overheads.toml", overheads);
    on(system, verb, &[&["--overheads", &file.path.display().to_string()], arguments].concat())
}

fn tasks(ended: &Ended) -> Vec<Value> {
    json(ended)["results"][0]["tasks"].as_array().expect("tasks").clone()
}

/// The columns of the first table.
fn titles(ended: &Ended) -> Vec<String> {
    let header = ended.out.lines().find(|line| line.starts_with("task ")).expect("a table");
    header.split("  ").map(str::trim).filter(|title| !title.is_empty()).map(str::to_owned).collect()
}

#[test]
fn headers_count_the_tasks_of_the_file() {
    let overheads = "tick = \"1 us\"\ntick_period = \"1 ms\"\nrelease = \"3 us\"\nschedule = \"500 us\"\n";
    for verb in ["check", "simulate"] {
        let ended = charged(INVERSION, verb, overheads, &["--protocol", "icpp"]);
        // 1 / 10 + 4 / 20 + 2 / 40. Jobs take 1 ms more, requests 1.5 ms more; ticks 0.1 %; releases 3 / 10 + 3 / 20 +
        // 3 / 40 thousandths.
        let wanted = "inversion under icpp: 3 tasks on 1 CPU, utilization 35.0 %; with overheads 71.4 %\n";
        assert!(ended.out.starts_with(wanted), "{}", ended.out);
        let titles = titles(&ended);
        let place = titles.iter().position(|title| title == "C").expect("a column");
        assert_eq!(titles[place + 1], "C charged", "{}", ended.out);
        assert!(!ended.out.contains("the release of"), "{}", ended.out);
        let all = charged(INVERSION, "check", overheads, &["--protocol", "all"]);
        assert!(all.out.starts_with("inversion: 3 tasks on 1 CPU, utilization 35.0 %\n"), "{}", all.out);
    }
    let free = on(INVERSION, "check", &["--protocol", "icpp"]);
    assert!(!free.out.contains("charged") && !free.out.contains("with overheads"), "{}", free.out);
}

#[test]
fn costs_stay_those_of_the_file() {
    let overheads = "schedule = \"10 us\"\n";
    let free = tasks(&on(HOLDS, "check", &["--json"]));
    for verb in ["check", "simulate"] {
        let ended = charged(HOLDS, verb, overheads, &["--json"]);
        assert_eq!(json(&ended)["overheads"]["origin"], "given", "{}", ended.out);
        let tasks = tasks(&ended);
        assert_eq!(tasks.len(), free.len());
        for (task, free) in tasks.iter().zip(&free) {
            assert_eq!((&task["name"], &task["cost_ns"]), (&free["name"], &free["cost_ns"]));
            assert!(free.get("charged_cost_ns").is_none(), "{free}");
            // Two switches for the job, three for its request.
            let charged = free["cost_ns"].as_u64().expect("is given") + 50_000;
            assert_eq!(task["charged_cost_ns"].as_u64(), Some(charged), "{task}");
        }
    }
    let value = json(&on(HOLDS, "check", &["--json"]));
    assert!(value.get("overheads").is_none(), "{value}");
}

#[test]
fn terms_of_interrupts_have_names() {
    let overheads = "release = \"3 us\"\n";
    let text = charged(HOLDS, "check", overheads, &["--explain", "slow"]);
    assert!(text.out.contains("the release of fast"), "{}", text.out);
    let value = json(&charged(HOLDS, "check", overheads, &["--explain", "slow", "--json"]));
    assert!(value["results"][0]["explain"]["terms"].to_string().contains("the release of fast"), "{value}");
}

#[test]
fn simulation_and_analysis_charge_the_same() {
    let seen = |overheads: &str| {
        let ended = charged(ALONE, "simulate", overheads, &["--json"]);
        assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
        let tasks = tasks(&ended);
        let observed = tasks[0]["observed_response_ns"].as_u64().expect("was seen");
        assert_eq!((tasks.len(), tasks[0]["above_bound"].as_bool()), (1, Some(false)), "{}", ended.out);
        observed
    };
    assert_eq!(seen(""), 100_000);
    assert_eq!(seen("schedule = \"10 us\"\n"), 120_000, "the job has its overheads");
    assert_eq!(seen("tick = \"10 us\"\ntick_period = \"1 ms\"\n"), 110_000, "a tick comes between");
}

#[test]
fn simulated_responses_stay_below_charged_bounds() {
    let overheads = "tick = \"5 us\"\ntick_period = \"1 ms\"\nrelease = \"3 us\"\nrelease_latency = \"20 us\"\nschedule = \"2 us\"\n\
        context_switch = \"2 us\"\ncache_refill = \"5 us\"\nlock = \"1 us\"\nunlock = \"1 us\"\nipi_latency = \"4 us\"\nsyscall_in = \"1 us\"\n";
    for system in [HOLDS, INVERSION, GLOBAL] {
        for offsets in ["file", "random", "sweep"] {
            let more = ["--protocol", "all", "--offsets", offsets, "--for", "500 ms", "--seed", "7", "--json"];
            // A response above its bound would be called a bug.
            let ended = charged(system, "simulate", overheads, &more);
            let results = json(&ended)["results"].as_array().expect("results").clone();
            assert!(results.len() > 5, "{}", ended.out);
            let ended = charged(&by_deadline(system), "simulate", overheads, &more[2..]);
            assert_eq!((ended.status, ended.err.contains("this is a bug")), (0, false), "{}{}", ended.out, ended.err);
        }
    }
}

#[test]
fn a_charged_simulation_is_traced_with_its_interrupts() {
    let file = File::named("overheads.toml", "release = \"3 us\"\n");
    let system = file.beside("system.toml");
    std::fs::write(&system, ALONE).expect("a temporary file");
    let trace = file.beside("out.pftrace");
    let mut command = lockwright();
    command.arg("simulate").arg(&system).arg("--overheads").arg(&file.path).arg("--trace").arg(&trace);
    let ended = end(&mut command);
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    let written = std::fs::read(&trace).expect("is there");
    let name = b"the release of one";
    assert!(written.windows(name.len()).any(|part| part == name));
}

#[test]
fn overheads_that_cannot_be_charged_are_2() {
    let by_deadline = by_deadline(ALONE);
    let full = charged(&by_deadline, "simulate", "release = \"1 s\"\n", &[]);
    assert_eq!((full.status, full.out.as_str()), (2, ""), "{}", full.err);
    assert!(full.err.contains("the overheads cannot be charged: the interrupts leave no time"), "{}", full.err);
    let cases = [
        (ALONE, "relaese = \"3 us\"\n", "did you mean `release`?"),
        (ALONE, "release = \"1 s\"\n", "the overheads cannot be charged"),
        (&by_deadline, "relaese = \"3 us\"\n", "did you mean `release`?"),
    ];
    for (system, overheads, wanted) in cases {
        for verb in ["simulate", "run", "verify"] {
            let ended = charged(system, verb, overheads, &[]);
            assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{verb}: {}", ended.err);
            assert!(ended.err.contains(wanted), "{verb}: {}", ended.err);
        }
    }
}

/// The system under `p-edf`.
fn by_deadline(system: &str) -> String {
    system.replace("[platform]", "[platform]\nscheduler = \"p-edf\"")
}

#[test]
fn check_and_simulate_charge_the_same_under_edf() {
    let system = by_deadline(HOLDS);
    let overheads = "schedule = \"10 us\"\nrelease_latency = \"5 us\"\nlock = \"1 us\"\n";
    let checked = charged(&system, "check", overheads, &["--json"]);
    let simulated = charged(&system, "simulate", overheads, &["--json"]);
    let costs = |ended: &Ended| -> Vec<u64> {
        let cost = |task: &Value| task["charged_cost_ns"].as_u64().expect("is charged");
        tasks(ended).iter().map(cost).collect()
    };
    assert_eq!(costs(&checked), costs(&simulated));
    for (task, cost) in tasks(&checked).iter().zip(costs(&checked)) {
        // Two switches and the lock, and six switches for the decisions of each release in between.
        assert!(cost > task["cost_ns"].as_u64().expect("is given") + 81_000, "{task}");
    }
    let text = charged(&system, "check", overheads, &[]).out;
    assert!(text.contains("under msrp and p-edf: ") && text.contains("; with overheads "), "{text}");
    assert!(titles(&charged(&system, "check", overheads, &[])).contains(&"C charged".to_owned()), "{text}");
    let free = on(&system, "check", &[]).out;
    assert!(!free.contains("charged") && !free.contains("with overheads"), "{free}");
    assert!(tasks(&on(&system, "check", &["--json"]))[0].get("charged_cost_ns").is_none());
    // A system that does not fit with overheads: the verdict says so.
    let heavy = "schedule = \"60 ms\"\n";
    assert_eq!(charged(&system, "check", heavy, &[]).status, 1);
    let late = charged(&system, "simulate", heavy, &["--json"]);
    assert!(tasks(&late).iter().any(|task| task["proved"] == false), "{}", late.out);
    assert!(!late.err.contains("this is a bug"), "{}", late.err);
}

/// A proved deadline that leaves a microsecond, which no machine keeps, and nothing else: the resource leaves no bound
/// on the response.
#[test]
fn a_proved_deadline_that_is_missed_is_1_under_edf() {
    let Some(_machine) = require_realtime() else { return };
    let shares = "wcet = \"100 us\"\nrequests = [{ resource = \"r\", length = \"1 us\" }]\n[[resource]]\nname = \"r\"";
    let system = by_deadline(&ALONE.replace("wcet = \"100 us\"", shares));
    let tight = system.replace("period = \"100 ms\"", "period = \"100 ms\"\ndeadline = \"101 us\"");
    assert_eq!(charged(&tight, "check", TINY, &[]).status, 0);
    let run = ["--for", "200 ms"];
    let late = charged(&tight, "run", TINY, &run);
    assert_eq!(late.status, 1, "{}{}", late.out, late.err);
    for part in ["although their deadlines are proved", "in which the overheads of", "one: the job that arrived at"] {
        assert!(late.out.contains(part), "{part} is missing in {}", late.out);
    }
    for (system, overheads, status, wanted) in [
        (&tight, TINY, 1, "verdict: does not hold: proved deadlines were missed (`one`)"),
        (&system, LARGE, 0, "verdict: holds: every deadline is proved, and 2 jobs were seen"),
        (&system, "schedule = \"60 ms\"\n", 1, "verdict: does not hold: not every deadline is proved (`one`)"),
    ] {
        let ended = charged(system, "verify", overheads, &run);
        assert_eq!(ended.status, status, "{}{}", ended.out, ended.err);
        assert!(ended.out.lines().last().is_some_and(|last| last.starts_with(wanted)), "{}", ended.out);
    }
    // Without a resource there is a bound on the response.
    let above = charged(&by_deadline(ALONE), "run", TINY, &run);
    assert_eq!(above.status, 1, "{}{}", above.out, above.err);
    assert!(above.out.contains("above bound") && !above.out.contains("although"), "{}", above.out);
}

/// The measured file has all that is charged under `p-edf`: the costs of `srp` and `msrp`.
#[test]
fn verify_measures_under_edf() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(&by_deadline(HOLDS));
    let ended = end(verify(&file.beside("cache")).arg(&file.path).args(["--for", "100 ms", "--json"]));
    let value = json(&ended);
    let result = &value["results"][0];
    assert_eq!(ended.status, i32::from(result["schedulable"] != true), "{}{}", ended.out, ended.err);
    assert_eq!((&result["scheduler"], &value["overheads"]["origin"]), (&"p-edf".into(), &"measured".into()));
    // If the host takes so much that nothing can be charged, nothing is proved.
    for task in tasks(&ended).iter().filter(|task| task["proved"] == true) {
        assert!(task["charged_cost_ns"].as_u64() > task["cost_ns"].as_u64(), "{value}");
    }
    let stored = std::fs::read_to_string(value["overheads"]["file"].as_str().expect("is stored")).expect("is there");
    let overheads = parse_overheads(&stored).expect("valid");
    for protocol in [Protocol::Srp, Protocol::Msrp] {
        assert!(stored.contains(&format!("[lock.{protocol}]")), "{stored}");
        assert!(overheads.cost_under(Overhead::Lock, protocol).with(2) > lockwright_model::Duration::ZERO, "{stored}");
    }
}

#[test]
fn a_response_above_a_charged_bound_is_1() {
    let Some(_machine) = require_realtime() else { return };
    let run = ["--for", "200 ms"];
    let above = charged(ALONE, "run", TINY, &run);
    assert_eq!(above.status, 1, "{}{}", above.out, above.err);
    let parts = [
        "above bound",
        "in which the overheads of",
        "one: the job that arrived at",
        "it executed no task (",
        "with overheads",
    ];
    for part in parts {
        assert!(above.out.contains(part), "{part} is missing in {}", above.out);
    }
    assert!(!above.out.contains("charge no overhead"), "{}", above.out);
    let value = json(&charged(ALONE, "run", TINY, &["--for", "200 ms", "--json"]));
    let (result, task) = (&value["results"][0], &value["results"][0]["tasks"][0]);
    assert_eq!((&result["schedulable"], &task["schedulable"]), (&false.into(), &false.into()), "{value}");
    assert_eq!((&task["above_bound"], &task["misses"]), (&true.into(), &0.into()), "{value}");
    assert!(task["worst_job"].is_object(), "{value}");
    let below = charged(ALONE, "run", LARGE, &run);
    assert_eq!(below.status, 0, "{}{}", below.out, below.err);
}

#[test]
fn without_overheads_a_response_above_its_bound_is_1_only_if_strict() {
    let Some(_machine) = require_realtime() else { return };
    for (arguments, status) in [(&["--for", "200 ms"][..], 0), (&["--for", "200 ms", "--strict"], 1)] {
        let ended = on(ALONE, "run", arguments);
        assert_eq!(ended.status, status, "{}{}", ended.out, ended.err);
        assert!(ended.out.contains("charge no overhead"), "{}", ended.out);
    }
}

/// `verify`, with a cache folder of its own.
fn verify(cache: &Path) -> Command {
    let mut command = lockwright();
    command.arg("verify").env("XDG_CACHE_HOME", cache);
    command
}

#[test]
fn verify_ends_with_one_verdict() {
    let Some(_machine) = require_realtime() else { return };
    let cases = [
        (ALONE, LARGE, 0, "verdict: holds: every deadline is proved, and 2 jobs were seen"),
        (ALONE, TINY, 1, "verdict: does not hold: responses were above their bounds, by up to "),
        (
            LATE,
            TINY,
            1,
            "verdict: does not hold: not every deadline is proved (`second`); deadlines were missed (`second`)",
        ),
    ];
    for (system, overheads, status, wanted) in cases {
        let ended = charged(system, "verify", overheads, &["--for", "200 ms"]);
        assert_eq!(ended.status, status, "{}{}", ended.out, ended.err);
        let last = ended.out.lines().last().expect("a line");
        assert!(last.starts_with(wanted), "{}", ended.out);
        assert_eq!(ended.out.matches("verdict: ").count(), 1, "{}", ended.out);
        assert!(!ended.out.contains("charge no overhead"), "{}", ended.out);
    }
    // Nothing is late, but that is not proved.
    let lazy = LATE.replace("wcet = \"60 ms\"", "wcet = \"20 ms\"").replace("110 ms", "200 ms");
    let ended = charged(&lazy, "verify", "schedule = \"25 ms\"\n", &["--for", "200 ms"]);
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("not proved") && !ended.out.contains("missed"), "{}", ended.out);
}

#[test]
fn verify_stores_its_measurement() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(ALONE);
    let cache = file.beside("cache");
    let verified = |arguments: &[&str]| {
        let ended = end(verify(&cache).arg(&file.path).args(["--for", "100 ms", "--json"]).args(arguments));
        let value = json(&ended);
        let result = &value["results"][0];
        // The host may take more time than it took during the measurement.
        assert_eq!(ended.status, i32::from(result["schedulable"] != true), "{}{}", ended.out, ended.err);
        // How late releases were on a busy machine may be more than the deadline has room for.
        assert!(value["verb"] == "verify" && result["proved"].is_boolean(), "{value}");
        assert!(result["verdict"].is_string(), "{value}");
        (value["overheads"].clone(), ended.err)
    };
    let (measured, err) = verified(&[]);
    assert_eq!(measured["origin"], "measured", "{err}");
    for step in ["measuring the overheads of this machine", "computing bounds of alone", "running alone"] {
        assert!(err.contains(step), "{step} is missing in {err}");
    }
    let path = measured["file"].as_str().expect("it is kept").to_owned();
    let text = std::fs::read_to_string(&path).expect("is there");
    let (kept, err) = verified(&[]);
    assert_eq!((&kept["origin"], &kept["file"]), (&"kept".into(), &measured["file"]), "{err}");
    assert!(err.contains("measured less than a minute ago") && !err.contains("some seconds"), "{err}");
    std::fs::write(&path, &text[..text.len() / 2]).expect("is ours");
    let (anew, err) = verified(&[]);
    assert_eq!(anew["origin"], "measured", "{err}");
    assert!(err.contains("the file is incomplete; measuring them again"), "{err}");
    // A file in the place of the folder: nothing can be kept, and nothing needs to be.
    let blocked = file.beside("blocked");
    std::fs::write(&blocked, "").expect("a temporary file");
    let ended = end(verify(&blocked).arg(&file.path).args(["--for", "100 ms", "--json"]));
    assert!(ended.err.contains("the overheads cannot be stored"), "{}", ended.err);
    assert_eq!(json(&ended)["overheads"]["file"], Value::Null, "{}", ended.out);
}

/// How long an example is verified again while others take the CPUs.
const VERIFIED_WITHIN: Duration = Duration::from_secs(120);

/// The examples, the number of CPUs that each needs, and overheads with which it must be proved.
const EXAMPLES: [(&str, usize, &str); 3] = [("pathfinder", 1, USUAL), ("robot", 2, USUAL), ("waters2019", 6, QUIET)];

/// At least the overheads of most machines, also of virtual ones.
const USUAL: &str = r#"
tick_period = "8 ms"
tick = "400 us"
release = "80 us"
release_latency = "300 us"
schedule = "2 us"
context_switch = "5 us"
lock = "3 us"
unlock = "3 us"
ipi_latency = "60 us"
syscall_in = "1 us"
syscall_out = "1 us"
"#;

/// At least the overheads of a quiet machine: this example has no room for more.
const QUIET: &str = r#"
tick_period = "4 ms"
tick = "5 us"
release = "5 us"
release_latency = "50 us"
schedule = "1 us"
context_switch = "1 us"
lock = "1 us"
unlock = "1 us"
ipi_latency = "5 us"
"#;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(format!("{name}.toml"))
}

/// Whether no overhead of the first file is greater under this protocol than that of the second.
fn are_at_most(overheads: &str, most: &str, protocol: &str) -> bool {
    let protocol = Protocol::ALL.into_iter().find(|known| known.to_string() == protocol).expect("a protocol");
    let [overheads, most] = [overheads, most].map(|text| parse_overheads(text).expect("overheads"));
    let ns = |file: &Overheads, of| u128::from(file.cost_under(of, protocol).with(usize::MAX).as_ns());
    let part = |file: &Overheads, other: &Overheads| ns(file, Overhead::Tick) * u128::from(other.tick_period.as_ns());
    Overhead::ALL.into_iter().all(|of| ns(&overheads, of) <= ns(&most, of))
        && part(&overheads, &most) <= part(&most, &overheads)
        && overheads.cache_delay.points().is_empty()
}

#[test]
fn the_examples_are_proved_with_small_overheads() {
    for (name, _, overheads) in EXAMPLES {
        let text = std::fs::read_to_string(example(name)).expect("an example");
        let ended = charged(&text, "check", overheads, &[]);
        assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    }
}

#[test]
fn overheads_are_compared_one_by_one() {
    let at_most = |overheads: &str| are_at_most(overheads, QUIET, "mpcp");
    assert!(at_most(QUIET) && at_most("release = \"5 us\"\n") && !at_most("release = \"5001 ns\"\n"));
    assert!(!at_most("syscall_in = \"1 ns\"\n"), "the other one has none");
    assert!(!at_most("tick = \"5 us\"\ntick_period = \"3 ms\"\n"), "more ticks");
    assert!(!at_most("[lock.mpcp]\nlock = \"2 us\"\n") && at_most("[lock.pip]\nlock = \"2 us\"\n"));
}

/// The disturbance of a run that the watchdog ended, if nothing else is known.
const WATCHDOG: &str = "what kept the jobs that the watchdog ended";

/// Why `verify` was right to say that a system does not hold: what took the CPUs from each job that was above its bound
/// or late. The error is a fault that nothing explains. With small overheads, each deadline must be proved.
fn disturbed_by(result: &Value, is_small: bool) -> Result<String, String> {
    let mut by = Vec::new();
    match result["ended"].as_str() {
        Some("completed") => {}
        // The report says nothing of a job that did not finish.
        Some("watchdog") => by.push(WATCHDOG.to_owned()),
        _ => return Err(result["ended"].to_string()),
    }
    for task in result["tasks"].as_array().expect("tasks") {
        let ns = |value: &Value| value.as_u64();
        if task["proved"] != true {
            if is_small {
                return Err(format!("not proved with small overheads: {task}"));
            }
            by.push(format!("overheads so large that {} is not proved", task["name"]));
            continue;
        }
        let worst = &task["worst_job"];
        if worst.is_null() {
            continue;
        }
        let Some(taken) = worst["taken"].as_array() else {
            by.push("something that this kernel does not disclose".to_owned());
            continue;
        };
        let response = ns(&task["observed_response_ns"]).expect("was seen");
        let allowed = ns(&task["response_ns"]).min(ns(&task["deadline_ns"])).expect("is proved");
        // A host may wake an idle CPU late. If it takes longer, the job was not woken.
        let is_late = |taken: &&Value| taken["by"] != "idle" || ns(&taken["taken_ns"]) < Some(FORGOTTEN_NS);
        let by_others: u64 = taken.iter().filter(is_late).filter_map(|taken| ns(&taken["taken_ns"])).sum();
        if response.saturating_sub(allowed) > by_others {
            return Err(format!("{task}"));
        }
        by.push(worst["taken"].to_string());
    }
    if by.is_empty() { Err(result["verdict"].to_string()) } else { Ok(by.join("; ")) }
}

/// The longest time for which an idle CPU may leave a job waiting, as in the engine's tests of real threads.
const FORGOTTEN_NS: u64 = 100_000_000;

/// The overheads that are stored below a folder.
fn stored_in(cache: &Path) -> String {
    let files = std::fs::read_dir(cache.join("lockwright")).expect("a folder").flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let only = (files.next().expect("they are stored"), files.next());
    assert_eq!(only.1, None);
    std::fs::read_to_string(only.0).expect("is there")
}

/// The examples, with the overheads of this machine. The third has more CPUs than most machines.
#[test]
fn the_examples_are_verified() {
    let Some(_machine) = require_realtime() else { return };
    let cache = tempfile::tempdir().expect("a temporary folder");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    for (name, needed, most) in EXAMPLES {
        let began = Instant::now();
        let mut is_known = false;
        for attempt in 1.. {
            let again: &[&str] = if attempt > 1 { &["--remeasure"] } else { &[] };
            let run = ["--for", short_or("2 s", "500 ms"), "--json"];
            let ended = end(verify(cache.path()).arg(example(name)).args(run).args(again));
            if cpus < needed {
                assert_eq!(ended.status, 3, "{}{}", ended.out, ended.err);
                assert!(ended.err.contains(&format!("{needed} CPUs")), "{}", ended.err);
                break;
            }
            let value = json(&ended);
            let result = &value["results"][0];
            assert_eq!(ended.status == 0, result["schedulable"] == true, "{}", ended.out);
            if ended.status == 0 {
                let verdict = result["verdict"].as_str().expect("a verdict");
                assert!(verdict.starts_with("holds: every deadline is proved"), "{verdict}");
                assert_eq!(result["ended"], "completed", "{}", ended.out);
                break;
            }
            // Without a result, the protocol is that of the file.
            let system = parse_system(&std::fs::read_to_string(example(name)).expect("an example")).expect("is valid");
            let own = system.protocol().map(|protocol| protocol.to_string());
            let protocol = result["protocol"].as_str().or(own.as_deref()).expect("a protocol");
            let is_small = are_at_most(&stored_in(cache.path()), most, protocol);
            let by = if ended.status == 2 && ended.err.contains("the overheads cannot be charged") {
                assert!(!is_small, "{name}: small overheads are not charged: {}", ended.err);
                "overheads that exceed a deadline".to_owned()
            } else {
                assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
                disturbed_by(result, is_small).unwrap_or_else(|fault| panic!("{name}: {fault}\n{}", ended.out))
            };
            eprintln!("{name}, attempt {attempt}: not judged, disturbed by {by}");
            is_known |= by != WATCHDOG;
            if began.elapsed() > VERIFIED_WITHIN {
                assert!(is_known, "{name}: the watchdog ends each run");
                // The overheads are the machine's: a host that takes a twentieth of a CPU leaves no proof.
                let text = format!("{name} was not judged within {VERIFIED_WITHIN:?}: disturbed by {by}");
                assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{text}");
                let _ = writeln!(std::io::stderr(), "skipped: {text}");
                break;
            }
        }
    }
}

#[test]
fn a_fault_that_nothing_explains_is_not_a_disturbance() {
    let result = |ended: &str, proved: bool, taken: &str, response: u64| {
        let text = format!(
            r#"{{"verdict": "does not hold", "ended": "{ended}", "tasks": [{{"name": "a", "proved": {proved},
            "response_ns": 100, "deadline_ns": 200, "observed_response_ns": {response},
            "worst_job": {{"taken": {taken}}}}}]}}"#
        );
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let by = |taken: &str, response| disturbed_by(&result("completed", true, taken, response), true);
    let host = r#"[{"by": "host", "taken_ns": 50}]"#;
    assert!(by(host, 150).is_ok_and(|by| by.contains("host")));
    assert!(by(host, 151).is_err(), "more than was taken");
    let idle = |ns: u64| by(&format!(r#"[{{"by": "idle", "taken_ns": {ns}}}]"#), 100 + ns);
    assert!(idle(FORGOTTEN_NS - 1).is_ok_and(|by| by.contains("idle")), "the host woke it late");
    assert!(idle(FORGOTTEN_NS).is_err(), "the job was not woken");
    assert!(by("[]", 101).is_err(), "nothing was taken");
    assert!(by("null", 151).is_ok_and(|by| by.contains("not disclose")), "who took it is not known");
    let unproved = result("completed", false, "[]", 100);
    assert!(disturbed_by(&unproved, true).is_err(), "small overheads leave room");
    assert!(disturbed_by(&unproved, false).is_ok_and(|by| by.contains("is not proved")));
    assert!(disturbed_by(&result("watchdog", true, host, 151), true).is_err(), "a job that finished is judged");
    assert!(disturbed_by(&result("interrupted", true, host, 150), true).is_err());
    let nothing = |ended: &str| {
        let value = serde_json::json!({ "verdict": "does not hold", "ended": ended, "tasks": [{ "proved": true }] });
        disturbed_by(&value, true)
    };
    assert!(nothing("completed").is_err());
    assert_eq!(nothing("watchdog").as_deref(), Ok(WATCHDOG));
}

/// Objects whose cost was measured for fewer users: the other protocols have results.
#[test]
fn protocols_whose_overheads_are_unknown_are_left_out() {
    let system = HOLDS.replace("[[resource]]\n", "[[resource]]\nobject = \"queue\"\n");
    let overheads = "[object.queue]\nlock_free = [[1, \"1 us\"]]\n";
    for verb in ["check", "simulate"] {
        let ended = charged(&system, verb, overheads, &["--protocol", "all", "--json"]);
        assert!(ended.status < 2, "{verb}: {}", ended.err);
        let all = json(&ended);
        let names: Vec<_> = all["results"].as_array().expect("a list").iter().map(|one| &one["protocol"]).collect();
        assert!(names.len() > 5 && !names.contains(&&"lock_free".into()), "{verb}: {names:?}");
        assert!(
            ended.err.contains("note: left out under lock_free: the overheads cannot be charged: "),
            "{}",
            ended.err
        );
        let alone = charged(&system, verb, overheads, &["--protocol", "lock_free"]);
        assert_eq!((alone.status, alone.out.as_str()), (2, ""), "{verb}: {}", alone.err);
        assert!(alone.err.contains("error: the overheads cannot be charged: "), "{verb}: {}", alone.err);
    }
}

#[test]
fn late_releases_are_the_fault_of_the_overheads() {
    for system in [HOLDS.to_owned(), by_deadline(HOLDS)] {
        let ended = charged(&system, "simulate", "release_latency = \"900 s\"\n", &[]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(!ended.err.contains("lower the jitter"), "{}", ended.err);
        let parts = ["late releases (up to 900 s) use up the deadline", "`release_latency`", "in the overheads"];
        assert!(parts.iter().all(|part| ended.err.contains(part)), "{}", ended.err);
    }
}

/// A pipe is opened once: its reader ends when it is closed.
#[test]
fn verify_writes_into_a_pipe() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::named("overheads.toml", "schedule = \"1 us\"\n");
    let [system, pipe] = ["system.toml", "pipe"].map(|name| file.beside(name));
    std::fs::write(&system, HOLDS).expect("a temporary file");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let mut command = lockwright();
    command.arg("verify").arg(&system).args(["--for", "200 ms", "--trace"]).arg(&pipe).arg("--overheads");
    let mut child = command.arg(&file.path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let read = std::thread::spawn(move || std::fs::read(pipe).expect("is read"));
    // BOUND: a minute; the run takes less than a second.
    for _ in 0..600 {
        if child.try_wait().expect("is ours").is_some() {
            assert!(!read.join().expect("reads").is_empty());
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().expect("is ours");
    panic!("it waits for a second reader");
}
