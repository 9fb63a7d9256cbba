//! `simulate`.

use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, Started, end, json, lockwright, on};
use lockwright_model::Protocol;
use std::time::Duration;

#[test]
fn statuses_follow_the_observed_deadlines() {
    for (text, protocol, status) in [(HOLDS, "none", 0), (LATE, "pip", 1), (GLOBAL, "all", 0)] {
        let ended = on(text, "simulate", &["--protocol", protocol]);
        assert_eq!(ended.status, status, "{protocol}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn observations_are_next_to_bounds() {
    let ended = on(INVERSION, "simulate", &["--protocol", "icpp"]);
    let header: Vec<&str> = ended
        .out
        .lines()
        .nth(3)
        .expect("a header")
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    let common = ["task", "verdict", "cpu", "prio", "C", "B local"];
    assert_eq!(header[..6], common, "{}", ended.out);
    assert_eq!(header[6..11], ["B seen", "R bound", "R seen", "D", "slack"]);
    assert_eq!(header[header.len() - 2..], ["jobs", "misses"]);
    let value = json(&on(INVERSION, "simulate", &["--protocol", "icpp", "--json"]));
    for task in value["results"][0]["tasks"].as_array().expect("tasks") {
        let seen = task["observed_response_ns"].as_u64().expect("was seen");
        assert!(seen <= task["response_ns"].as_u64().expect("is bounded"), "{task}");
        assert_eq!(task["above_bound"], false);
    }
    assert_eq!(value["seed"], serde_json::Value::Null, "nothing in it is random");
}

/// Two tasks that fill a CPU under EDF, and miss under fixed priorities.
const FULL: &str = "[platform]\ncpus = 1\nscheduler = \"p-edf\"\npriorities = \"rate-monotonic\"\n\
    [[task]]\nname = \"short\"\nperiod = \"10 ms\"\nwcet = \"5 ms\"\n\
    [[task]]\nname = \"long\"\nperiod = \"14 ms\"\nwcet = \"7 ms\"\n";

#[test]
fn the_earliest_deadline_executes_first() {
    let [edf, fixed] = ["p-edf", "p-fp"].map(|name| on(&FULL.replace("p-edf", name), "simulate", &["--json"]));
    assert_eq!((edf.status, fixed.status), (0, 1), "{}{}", edf.out, fixed.out);
    let result = &json(&edf)["results"][0];
    assert_eq!((&result["protocol"], &result["scheduler"]), (&"none".into(), &"p-edf".into()));
    for task in result["tasks"].as_array().expect("tasks") {
        assert_eq!(task["above_bound"], false, "{task}");
    }
    assert_eq!(result["tasks"][1]["observed_response_ns"], result["tasks"][1]["response_ns"], "exact, and reached");
}

#[test]
fn resources_under_edf_use_msrp() {
    let text = INVERSION.replace("[platform]", "[platform]\nscheduler = \"p-edf\"");
    let ended = on(&text, "simulate", &["--protocol", "pip"]);
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("under msrp and p-edf"), "{}", ended.out);
    assert!(ended.err.contains("--protocol has no effect here"), "{}", ended.err);
}

#[test]
fn protocols_without_effect_under_edf_get_a_note() {
    let with = |scheduler: &str, protocol: &str| {
        let platform = format!("protocol = \"{protocol}\"\n[platform]\nscheduler = \"{scheduler}\"");
        INVERSION.replace("[platform]", &platform)
    };
    for verb in ["simulate", "check"] {
        let told = |scheduler: &str, protocol: &str| {
            let ended = on(&with(scheduler, protocol), verb, &[]);
            assert!(matches!(ended.status, 0 | 1), "{}{}", ended.out, ended.err);
            ended.err.contains(&format!("the file's protocol `{protocol}` has no effect"))
        };
        assert!(told("p-edf", "pip") && told("p-edf", "none"), "{verb}");
        assert!(!told("p-edf", "msrp") && !told("p-fp", "pip"), "{verb}");
    }
}

#[test]
fn uncovered_systems_are_simulated_without_bounds() {
    let late = "wcet = \"6 ms\"\njitter = \"1 ms\"\nrequests = [{ resource = \"bus\", length = \"1 ms\" }]\n[[resource]]\nname = \"bus\"";
    let ended = on(&FULL.replace("wcet = \"7 ms\"", late), "simulate", &["--json", "--seed", "1"]);
    assert!(ended.err.contains("there are no bounds"), "{}", ended.err);
    let task = &json(&ended)["results"][0]["tasks"][0];
    assert_eq!((&task["response_ns"], &task["above_bound"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert!(task["jobs"].as_u64() > Some(1), "{task}");
}

#[test]
fn equal_seeds_give_equal_simulations() {
    let arguments = ["--offsets", "random", "--runs", "5", "--json"];
    let drawn = on(GLOBAL, "simulate", &arguments);
    let seed = json(&drawn)["seed"].as_u64().expect("a seed was drawn").to_string();
    assert!(drawn.err.contains(&format!("--seed {seed}")), "{}", drawn.err);
    let again = on(GLOBAL, "simulate", &[&arguments[..], &["--seed", &seed]].concat());
    assert_eq!(drawn.out, again.out);
    assert_eq!(again.err, "", "a given seed is not printed");
    let other = on(GLOBAL, "simulate", &[&arguments[..], &["--seed", "1"]].concat());
    assert_ne!(json(&other)["results"], json(&again)["results"]);
}

#[test]
fn a_sweep_tries_every_task_at_every_step() {
    let value = json(&on(INVERSION, "simulate", &["--offsets", "sweep", "--runs", "10", "--json"]));
    assert_eq!(value["runs"], 1 + 3 * 9, "all together, then three tasks nine steps late each");
}

#[test]
fn the_inversion_is_found_by_a_sweep() {
    let response = |protocol: &str| {
        let ended =
            on(INVERSION, "simulate", &["--protocol", protocol, "--offsets", "sweep", "--runs", "40", "--json"]);
        json(&ended)["results"][0]["tasks"][0]["observed_response_ns"].as_u64().expect("was seen")
    };
    assert!(response("none") > 5_000_000, "the medium task comes between");
    assert!(response("pip") <= 2_000_000, "and does not under inheritance");
}

#[test]
fn a_trace_is_written_for_each_protocol() {
    let file = File::new(INVERSION);
    let trace = file.beside("out.pftrace");
    let ended = end(lockwright().arg("simulate").arg(&file.path).arg("--trace").arg(&trace));
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("ui.perfetto.dev"), "{}", ended.err);
    assert!(std::fs::metadata(&trace).expect("is there").len() > 1000);
    end(lockwright().arg("simulate").arg(&file.path).args(["--protocol", "all", "--trace"]).arg(&trace));
    // On one CPU nine protocols are `icpp`.
    let traced = |protocol: Protocol| file.beside(&format!("out-{protocol}.pftrace")).exists();
    for protocol in [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Pcp, Protocol::Srp, Protocol::FmlpShort] {
        assert!(traced(protocol), "{protocol}");
    }
    assert!(!traced(Protocol::Mpcp), "it has the trace of icpp");
    let nowhere = end(lockwright().arg("simulate").arg(&file.path).arg("--trace").arg(file.beside("no/out")));
    assert_eq!((nowhere.status, nowhere.out.as_str()), (2, ""));
}

#[test]
fn a_task_without_a_finished_job_is_named() {
    let ended = on(HOLDS, "simulate", &["--for", "250 us"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("nothing was seen of `slow`: no job of it finished"), "{}", ended.err);
    assert!(!ended.err.contains("`fast`"), "{}", ended.err);
    assert_eq!(on(HOLDS, "simulate", &[]).err, "");
}

#[test]
fn random_parts_are_named() {
    let useless = on(HOLDS, "simulate", &["--seed", "5"]);
    assert!(useless.err.contains("--seed has no effect here"), "{}", useless.err);
    let jitter = on(GLOBAL, "simulate", &["--seed", "5"]);
    assert!(jitter.out.contains("offsets file, release jitter is random, seed 5"), "{}", jitter.out);
    assert_eq!(jitter.err, "");
}

#[test]
fn unsupported_nested_requests_are_refused() {
    let task = |name: &str, cpu: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nbody = [{{ lock = \"a\" }}, {{ run = \"1 ms\" }}, {{ lock = \"b\" }}, \
             {{ run = \"1 ms\" }}, {{ unlock = \"b\" }}, {{ unlock = \"a\" }}]\n"
        )
    };
    let resources = "[[resource]]\nname = \"a\"\n[[resource]]\nname = \"b\"\n";
    let nested = format!("[platform]\ncpus = 2\n{resources}{}{}", task("one", 0), task("two", 1));
    // In one group, no request is nested.
    let grouped = nested.replace("[[resource]]\n", "[[resource]]\ngroup = \"g\"\n");
    for protocol in Protocol::ALL {
        let arguments = ["--protocol", protocol.name(), "--for", "50 ms"];
        let ended = on(&nested, "simulate", &arguments);
        if protocol.has_nesting() {
            assert_eq!(ended.status, 0, "{protocol}: {}", ended.err);
        } else {
            assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{protocol}: {}", ended.err);
            assert!(ended.err.contains("`one` requests `b` while it holds `a`"), "{}", ended.err);
            assert!(ended.err.contains("group"), "{}", ended.err);
        }
        assert_eq!(on(&grouped, "simulate", &arguments).status, 0, "{protocol}");
    }
    let all = on(&nested, "simulate", &["--protocol", "all", "--for", "50 ms", "--json"]);
    assert!(all.err.contains("left out") && all.err.contains("fmlp_plus"), "{}", all.err);
    let results = json(&all)["results"].as_array().map(Vec::len);
    assert_eq!(results, Some(Protocol::ALL.iter().filter(|protocol| protocol.has_nesting()).count()));
}

#[test]
fn too_many_tasks_are_checked_only() {
    let task = |index| format!("[[task]]\nname = \"t{index}\"\nperiod = \"10 s\"\nwcet = \"1 us\"\n");
    let text: String = (0..1025).map(task).collect();
    for verb in ["simulate", "run"] {
        let ended = on(&text, verb, &[]);
        assert_eq!(ended.status, 2, "{verb}: {}{}", ended.out, ended.err);
        assert!(
            ended.err.contains("has 1025 tasks; at most 1024 can be simulated or executed"),
            "{verb}: {}",
            ended.err
        );
        assert!(ended.err.contains("use `lockwright check`"), "{verb}: {}", ended.err);
    }
    assert_eq!(on(&text, "check", &["--protocol", "none"]).status, 0);
    let fewer: String = (0..1024).map(task).collect();
    let ended = on(&fewer, "simulate", &["--protocol", "none", "--for", "1 s"]);
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
}

/// A rare job delays one of the frequent ones.
pub const FREQUENT: &str = "[platform]\ncpus = 1\n\
    [[task]]\nname = \"rare\"\npriority = 2\nperiod = \"1 s\"\nwcet = \"500 us\"\n\
    [[task]]\nname = \"frequent\"\npriority = 1\nperiod = \"1 ms\"\nwcet = \"100 us\"\n";

#[test]
fn a_thousand_jobs_have_a_percentile() {
    for (length, jobs, is_shown) in [("999 ms", 999, false), ("1 s", 1_000, true)] {
        let out = on(FREQUENT, "simulate", &["--for", length]).out;
        assert_eq!(out.contains("p99.9"), is_shown, "{out}");
        let value = json(&on(FREQUENT, "simulate", &["--for", length, "--json"]));
        let [rare, frequent] = [0, 1].map(|task| &value["results"][0]["tasks"][task]);
        assert_eq!((&rare["jobs"], &rare["observed_p999_ns"]), (&1.into(), &serde_json::Value::Null), "{rare}");
        assert_eq!((&frequent["jobs"], &frequent["observed_response_ns"]), (&jobs.into(), &600_000.into()));
        match frequent["observed_p999_ns"].as_u64() {
            // All but one; the resolution is three digits.
            Some(ns) => assert!(is_shown && (100_000..100_100).contains(&ns), "{frequent}"),
            None => assert!(!is_shown, "{frequent}"),
        }
    }
    // Several schedules count together.
    let value = json(&on(FREQUENT, "simulate", &["--for", "20 ms", "--offsets", "random", "--runs", "60", "--json"]));
    let frequent = &value["results"][0]["tasks"][1];
    assert!(frequent["jobs"].as_u64() >= Some(1_000) && frequent["observed_p999_ns"].is_u64(), "{frequent}");
}

/// A signal in a series of schedules: the files show its worst schedule so far.
#[test]
fn an_interrupted_series_shows_its_worst_schedule() {
    let file = File::new(INVERSION);
    let [trace, svg] = ["trace", "picture.svg"].map(|name| file.beside(name));
    let mut command = lockwright();
    command.arg("simulate").arg(&file.path).args(["--offsets", "random", "--runs", "1000000", "--for", "1s", "--json"]);
    // The first word is the seed.
    let started = Started::new(command.args(["--job", "high:1"]).arg("--trace").arg(&trace).arg("--svg").arg(&svg));
    // Some of the schedules end meanwhile.
    std::thread::sleep(Duration::from_millis(500));
    started.signal("TERM");
    let ended = started.end();
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(json(&ended)["runs"].as_u64() > Some(1), "{}", ended.out);
    assert!(ended.err.contains("the schedule is still written"), "{}", ended.err);
    assert!(std::fs::metadata(&trace).expect("is written").len() > 5_000, "{}", ended.err);
    assert!(std::fs::read_to_string(&svg).expect("is written").contains("executes"), "{}", ended.err);
}

#[test]
fn a_picture_that_cannot_be_made_costs_no_result() {
    let file = File::new(LATE);
    let svg = file.beside("picture.svg");
    let arguments = ["--protocol", "all", "--job", "first:100000", "--json", "--svg"];
    let ended = end(lockwright().arg("simulate").arg(&file.path).args(arguments).arg(&svg));
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("there is no job 100000 of `first`"), "{}", ended.err);
    assert!(json(&ended)["results"].as_array().expect("a list").len() > 5, "{}", ended.out);
}

#[test]
fn the_reason_for_the_length_is_the_one_that_decided() {
    let text = "[platform]\npriorities = \"rate-monotonic\"\n\
                [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\noffset = \"7 ms\"\n";
    let ended = on(text, "simulate", &[]);
    assert!(ended.out.contains("simulated 27 ms (the longest offset and two hyperperiods),"), "{}", ended.out);
}
