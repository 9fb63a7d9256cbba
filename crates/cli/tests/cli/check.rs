//! `check`: bounds, verdicts and what explains them.

use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, json, lockwright, on};
use lockwright_model::Protocol;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn statuses_follow_the_deadlines() {
    for (text, protocol, status) in [
        (HOLDS, "pip", 0),
        (HOLDS, "icpp", 0),
        (LATE, "pip", 1),
        (INVERSION, "none", 1),
        (INVERSION, "icpp", 0),
        (GLOBAL, "file", 0),
        (GLOBAL, "pip", 1),
        (INVERSION, "all", 1),
    ] {
        let ended = on(text, "check", &["--protocol", protocol]);
        assert_eq!(ended.status, status, "{protocol}: {}{}", ended.out, ended.err);
        assert_eq!(ended.err, "", "a result is no reason to complain");
    }
}

#[test]
fn table_rows_are_sorted_by_priority() {
    let ended = on(INVERSION, "check", &["--protocol", "icpp"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("inversion under icpp: 3 tasks on 1 CPU, utilization 35.0 %"), "{}", ended.out);
    let header: Vec<&str> = lines[2].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(header, ["task", "verdict", "cpu", "prio", "C", "B local", "R", "D", "slack"]);
    let rows: Vec<Vec<&str>> = lines[4..7].iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["high", "ok", "0", "3", "1", "1", "2", "10", "8"]);
    assert_eq!(rows[1][0], "medium");
    assert_eq!(rows[2][0], "low");
}

#[test]
fn a_missing_bound_has_a_reason() {
    let ended = on(INVERSION, "check", &["--protocol", "none"]);
    assert!(ended.out.contains("no bound"), "{}", ended.out);
    let reasons = ended.out.split("Without a bound:").nth(1).expect("reasons below the table");
    for name in ["high: ", "`bus`", "`low`", "`medium`"] {
        assert!(reasons.contains(name), "{name} is missing in {reasons}");
    }
    let pointed = on(GLOBAL, "check", &["--protocol", "icpp"]);
    assert!(pointed.out.contains("mpcp"), "{}", pointed.out);
}

/// The first words of the rows of a comparison, and the second.
fn rows(text: &str) -> Vec<(&str, &str)> {
    let table = text.lines().skip_while(|line| !line.starts_with('─')).skip(1);
    let rows = table.take_while(|line| line.contains(" yes ") || line.contains(" no "));
    rows.filter_map(|line| line.split_whitespace().next().zip(line.split_whitespace().nth(1))).collect()
}

#[test]
fn protocols_are_compared() {
    let ended = on(INVERSION, "check", &["--protocol", "all"]);
    let rows = rows(&ended.out);
    let same = ended.out.lines().filter_map(|line| line.strip_prefix("= ")?.split_once(": "));
    let same: usize = same.map(|(_, others)| others.split(", ").count()).sum();
    assert!(same > 0 && rows.len() + same == Protocol::ALL.len(), "{}", ended.out);
    // On one CPU, only the plain mutex has no bounds.
    let (last, others) = rows.split_last().expect("rows");
    assert_eq!(*last, ("none", "no"), "{}", ended.out);
    assert!(others.iter().all(|row| row.1 == "yes"), "{}", ended.out);
    assert!(ended.out.contains("8 ms (high)") && ended.out.contains("Sorted best first"), "{}", ended.out);
}

#[test]
fn protocols_are_ranked_for_the_system() {
    let ended = on(GLOBAL, "check", &["--protocol", "all", "--json"]);
    let value = json(&ended);
    let results = value["results"].as_array().expect("results");
    let rank = |result: &serde_json::Value| {
        let held = result["schedulable"].as_bool().expect("a verdict");
        (!held, result["worst_slack_ns"].as_i64().map_or(i64::MAX, |slack| -slack))
    };
    assert!(results.is_sorted_by_key(rank), "{}", ended.out);
    // Of a resource shared across CPUs these say nothing, and why.
    let names: Vec<&str> = results.iter().filter_map(|result| result["protocol"].as_str()).collect();
    assert_eq!(names[names.len() - 7..], ["none", "pip", "icpp", "pcp", "srp", "ics", "ics_lock"]);
    let text = on(GLOBAL, "check", &["--protocol", "all"]).out;
    for protocol in ["none", "pip", "icpp", "pcp", "srp", "ics", "ics_lock"] {
        let reason = format!("where `{protocol}` gives no useful bound");
        assert!(text.contains(&reason), "{reason} is missing in {text}");
    }
    // Across CPUs `msrp` spins as `fmlp_short` does. So do locks with readers, as no section reads.
    assert!(text.lines().any(|line| line == "= fmlp_short: msrp, phase_fair, task_fair"), "{text}");
    let same = ["msrp", "phase_fair", "task_fair"];
    let shown: Vec<&str> = names.into_iter().filter(|name| !same.contains(name)).collect();
    assert_eq!(rows(&text).iter().map(|row| row.0).collect::<Vec<_>>(), shown);
}

/// The three tables of the source of interruptible sections: verdicts and response times, in tenths of a millisecond,
/// with what our own bound has less.
#[test]
fn published_tables_of_interruptible_sections_are_reproduced() {
    const TABLES: [&str; 3] = [
        include_str!("../../../../examples/ics-table-1.toml"),
        include_str!("../../../../examples/ics-table-2.toml"),
        include_str!("../../../../examples/ics-table-3.toml"),
    ];
    let cases: [(usize, &str, bool, &[u64]); 7] = [
        (0, "pcp", false, &[]),
        (0, "ics", true, &[25, 85, 265]),
        (1, "pcp", false, &[]),
        (1, "ics", true, &[25, 50, 110, 160, 290]),
        (2, "pcp", false, &[]),
        (2, "ics", false, &[30, 60, 100, 140, 180, 220, 490, 860]),
        (2, "ics_lock", true, &[30, 60, 110, 150, 180, 210, 240, 460]),
    ];
    for (table, protocol, holds, expected) in cases {
        let ended = on(TABLES[table], "check", &["--protocol", protocol, "--json"]);
        assert_eq!(ended.status, i32::from(!holds), "table {}, {protocol}: {}", table + 1, ended.out);
        let result = &json(&ended)["results"][0];
        let tasks = result["tasks"].as_array().expect("tasks").iter();
        let responses: Vec<u64> = tasks.filter_map(|task| Some(task["response_ns"].as_u64()? / 100_000)).collect();
        assert!(expected.is_empty() || responses == expected, "table {}, {protocol}: {responses:?}", table + 1);
        // What the file itself asks for is what comes out best; no schedule is worse than its bound.
        let simulated = on(TABLES[table], "simulate", &["--protocol", protocol, "--offsets", "sweep"]);
        assert!(!simulated.err.contains("above its bound"), "{}", simulated.err);
    }
    for table in TABLES {
        assert_eq!(on(table, "check", &[]).status, 0);
    }
}

#[test]
fn interruptible_sections_are_compared_with_the_best_lock() {
    const TABLE: &str = include_str!("../../../../examples/ics-table-1.toml");
    let value = json(&on(TABLE, "check", &["--protocol", "all", "--json"]));
    let results = value["results"].as_array().expect("results");
    assert_eq!(results[0]["protocol"], "ics");
    let beside = &results[0]["beside"];
    let better = &beside["better"][0];
    assert_eq!((&better["task"], better["response_ns"].as_u64()), (&"tau1".into(), Some(2_500_000)), "{beside}");
    assert_eq!(better["lock_response_ns"].as_u64(), Some(3_500_000), "{beside}");
    assert_eq!(better["sections"][0]["resource"], "z", "{beside}");
    let worse: Vec<_> = beside["worse"].as_array().expect("tasks").iter().map(|task| &task["task"]).collect();
    assert_eq!(worse, ["tau3"], "{beside}");
    let waits = |result: &&serde_json::Value| {
        let without = ["ics", "ics_lock", "lock_free", "wait_free"];
        !without.contains(&result["protocol"].as_str().expect("a name"))
    };
    let locks = results.iter().filter(waits);
    assert!(locks.clone().count() > 10 && locks.clone().all(|result| result.get("beside").is_none()));
    let text = on(TABLE, "check", &["--protocol", "all"]).out;
    assert!(text.contains("for tau1 (2.5 ms instead of 3.5 ms, no wait for the section of"), "{text}");
}

#[test]
fn every_protocol_can_be_checked() {
    for protocol in Protocol::ALL {
        let ended = on(HOLDS, "check", &["--protocol", protocol.name(), "--sensitivity"]);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{protocol}: {}", ended.out);
        assert!(ended.out.starts_with(&format!("holds under {protocol}: ")), "{}", ended.out);
        assert!(ended.out.contains("all execution times"), "{}", ended.out);
    }
}

#[test]
fn terms_sum_to_the_response() {
    let ended = on(INVERSION, "check", &["--protocol", "icpp", "--explain", "low", "--json"]);
    let result = &json(&ended)["results"][0];
    let terms = result["explain"]["terms"].as_array().expect("terms");
    let sum: u64 = terms.iter().map(|term| term["total_ns"].as_u64().expect("a time")).sum();
    let low = result["tasks"].as_array().expect("tasks").iter().find(|task| task["name"] == "low").expect("is there");
    assert_eq!(Some(sum), low["response_ns"].as_u64());
    assert!(terms.iter().any(|term| term["cause"] == "interference" && term["by"] == "high"), "{terms:?}");
    let text = on(INVERSION, "check", &["--protocol", "icpp", "--explain", "low"]).out;
    assert!(text.contains("low: every term of its response bound R = "), "{text}");
}

#[test]
fn sensitivity_names_the_largest_factors() {
    let ended = on(HOLDS, "check", &["--sensitivity"]);
    assert!(ended.out.contains("all execution times") && ended.out.contains('×'), "{}", ended.out);
    assert!(
        ended.out.contains("execution times of") && ended.out.contains("more blocking it tolerates"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains(OF_BOUNDS), "{}", ended.out);
    let tested = on(FREE, "check", &["--sensitivity"]);
    assert!(tested.out.contains("\nSensitivity of the tests above:\n"), "{}", tested.out);
    let value = json(&on(FREE, "check", &["--sensitivity", "--json"]));
    assert_eq!(value["results"][0]["sensitivity"].get("proof"), None);
    let late = on(LATE, "check", &["--sensitivity", "--json"]);
    let permille = json(&late)["results"][0]["sensitivity"]["all"]["permille"].as_u64().expect("a factor");
    assert!(permille < 1000, "they must shrink: {permille}");
}

/// Two heavy tasks and one long one on two CPUs: fits under g-edf and g-fp.
const FREE: &str = "[platform]\ncpus = 2\nscheduler = \"g-edf\"\n\
    [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"4 ms\"\n\
    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"9 ms\"\n\
    [[task]]\nname = \"c\"\nperiod = \"25 ms\"\nwcet = \"10 ms\"\n";

#[test]
fn schedulers_have_tests_of_their_own() {
    let ended = on(FREE, "check", &[]);
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    for part in [
        "under none and g-edf: 3 tasks on 2 CPUs, utilization 125.0 %",
        "GFB             yes",
        "BCL             no",
        "`a`",
        "All deadlines hold",
    ] {
        assert!(ended.out.contains(part), "{part} is missing in {}", ended.out);
    }
    let fixed = on(FREE, "check", &["--scheduler", "g-fp", "--json"]);
    let result = &json(&fixed)["results"][0];
    assert_eq!((result["scheduler"].as_str(), result["tests"][0]["test"].as_str()), (Some("g-fp"), Some("Guan")));
    assert_eq!(result["tasks"][2]["response_ns"], 18_000_000);
    // With one more task like the heaviest, no test accepts.
    let more = FREE.to_owned() + "[[task]]\nname = \"d\"\nperiod = \"10 ms\"\nwcet = \"9 ms\"\n";
    let full = on(&more, "check", &[]);
    assert_eq!(full.status, 1, "{}", full.out);
    assert!(!full.out.contains(" yes") && full.out.contains("none is shown to be missed"), "{}", full.out);
}

/// Three tasks of 6/10 on two CPUs: bounds on their tardiness exist, and no test shows a miss.
#[test]
fn sufficient_tests_call_no_task_late() {
    let task = |name| format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\n");
    let text = "[platform]\ncpus = 2\nscheduler = \"g-edf\"\n".to_owned() + &["a", "b", "c"].map(task).concat();
    let ended = on(&text, "check", &[]);
    assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("none is shown to be missed"), "{}", ended.out);
    assert!(!ended.out.contains("late") && ended.out.matches("not proved").count() == 3, "{}", ended.out);
    // An exact one shows it.
    let exact = on(&LATE.replace("[platform]", "[platform]\nscheduler = \"p-edf\""), "check", &[]);
    assert!(exact.out.contains("A deadline can be missed."), "{}", exact.out);
}

/// A bound beyond the deadline shows a miss only where the analysis is exact.
#[test]
fn late_is_said_where_a_miss_is_possible() {
    let words = |text: &str, arguments: &[&str]| {
        let ended = on(text, "check", &[arguments, &["--json"]].concat());
        assert_eq!(ended.status, 1, "{}{}", ended.out, ended.err);
        let tasks = json(&ended)["results"][0]["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| task["verdict"].as_str().expect("a word").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(words(LATE, &[]), ["ok", "late"]);
    // The overheads are bounds, and an offset may keep the two jobs apart.
    let overheads = File::named("overheads.toml", "schedule = \"1 us\"\n");
    assert_eq!(words(LATE, &["--overheads", overheads.path.to_str().expect("a path")]), ["ok", "not proved"]);
    let offset = LATE.to_owned() + "offset = \"50 ms\"\n";
    assert_eq!(words(&offset, &[]), ["ok", "not proved"]);
    // A section may never be there when it would delay.
    let lock = "requests = [{ resource = \"bus\", length = \"50 ms\" }]\n";
    let sharing = LATE.replace("wcet = \"60 ms\"\n", &format!("wcet = \"60 ms\"\n{lock}"));
    assert_eq!(words(&(sharing + "[[resource]]\nname = \"bus\"\n"), &[]), ["not proved", "not proved"]);
    // Under EDF, the first two miss deadlines, and the third one has time.
    let task = |name: &str, times: &str| format!("[[task]]\nname = \"{name}\"\n{times}\n");
    let edf = "[platform]\ncpus = 1\nscheduler = \"p-edf\"\n".to_owned()
        + &task("a", "period = \"100 ms\"\nwcet = \"40 ms\"\ndeadline = \"75 ms\"")
        + &task("b", "period = \"110 ms\"\nwcet = \"40 ms\"\ndeadline = \"70 ms\"")
        + &task("c", "period = \"1 s\"\nwcet = \"1 ms\"");
    let mut found = words(&edf, &[]);
    found.sort_unstable();
    assert_eq!(found, ["late", "late", "not proved"]);
}

/// The delays on the first CPU do not fit in a number, so no task has a bound. The one on the last CPU has time.
#[test]
fn a_number_that_does_not_fit_calls_no_other_cpu_late() {
    let task = |name: &str, cpu: u32, priority: u32, times: &str| {
        format!("[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\n{times}\n")
    };
    let section = |count: u32, length: &str| {
        format!("requests = [{{ resource = \"r\", count = {count}, length = \"{length}\" }}]")
    };
    let long = format!("period = \"200000 s\"\nwcet = \"100000 s\"\n{}", section(1, "100000 s"));
    let system = |last: &str| {
        let mut text = "[platform]\ncpus = 3\npriorities = \"explicit\"\n[[resource]]\nname = \"r\"\n".to_owned();
        text += &task("many", 0, 500, &format!("period = \"1 s\"\nwcet = \"2 ms\"\n{}", section(1_000, "1 us")));
        (1..=200).for_each(|n| text += &task(&format!("long{n}"), 0, n, &long));
        text += &task("user", 1, 1, &format!("period = \"1 s\"\nwcet = \"2 ms\"\n{}", section(1, "1 us")));
        text + &task("other", 2, 2, "period = \"10 ms\"\nwcet = \"6 ms\"") + &task("plain", 2, 1, last)
    };
    let last_of = |last: &str| {
        let ended = on(&system(last), "check", &["--protocol", "fmlp_long", "--json"]);
        assert_eq!(ended.status, 1, "{}", ended.err);
        let tasks = json(&ended)["results"][0]["tasks"].as_array().expect("tasks").clone();
        tasks.into_iter().find(|task| task["name"] == "plain").expect("is there")
    };
    let has_time = last_of("period = \"1 s\"\nwcet = \"1 ms\"");
    assert_eq!(
        (has_time["verdict"].as_str(), has_time["response_ns"].as_u64()),
        (Some("not proved"), None),
        "{has_time}"
    );
    let why = has_time["reason"].as_str().expect("a reason");
    assert_eq!(why, "a number of the analysis, maybe for another CPU, does not fit in 64 bits");
    // 4 ms are left in each 10 ms.
    assert_eq!(last_of("period = \"20 ms\"\nwcet = \"8 ms\"\ndeadline = \"20 ms\"")["verdict"], "not proved");
    assert_eq!(last_of("period = \"20 ms\"\nwcet = \"9 ms\"\ndeadline = \"20 ms\"")["verdict"], "late");
}

/// Objects keep their protocol under EDF; no note says that it has no effect.
#[test]
fn objects_under_edf_are_tested() {
    let text = HOLDS.replace("[platform]", "[platform]\nscheduler = \"p-edf\"");
    let text = text.replace("name = \"bus\"\n", "name = \"bus\"\nprotocol = \"lock_free\"\n");
    for verb in ["check", "simulate"] {
        let ended = on(&text, verb, &[]);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{}", ended.out);
    }
    let other = on(&text.replace("lock_free", "phase_fair"), "check", &[]);
    assert_eq!(other.status, 2, "{}", other.out);
    assert!(other.err.contains("which no test here covers"), "{}", other.err);
}

/// `cpu` is needed under `p-fp`, and ignored aloud where tasks are placed anew or execute anywhere.
#[test]
fn one_file_serves_every_scheduler() {
    let place = |text: &str| {
        let mut cpus = ["0", "1", "1"].iter();
        let line = |line: &str| match line.strip_prefix("name = ") {
            Some(_) => format!("{line}\ncpu = {}\n", cpus.next().expect("three tasks")),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect::<String>()
    };
    let ignored = "the CPUs that the file gives to 3 tasks are ignored";
    for scheduler in ["p-fp", "p-edf", "g-edf", "g-fp"] {
        let without = FREE.replace("g-edf", scheduler);
        let with = place(&without);
        let is_global = scheduler.starts_with("g-");
        for (arguments, says) in [
            (&["--scheduler", "g-edf"][..], "under `g-edf` jobs execute on any CPU: "),
            (&["--scheduler", "g-fp"], "under `g-fp` jobs execute on any CPU: "),
            (&["--scheduler", "p-edf", "--partition", "worst-fit"], "--partition assigns the tasks to CPUs: "),
            (&["--scheduler", "p-fp", "--partition", "worst-fit"], "--partition assigns the tasks to CPUs: "),
        ] {
            let bare = on(&without, "check", arguments);
            assert_eq!((bare.status, bare.err.as_str()), (0, ""), "{scheduler} {arguments:?}: {}", bare.out);
            let placed = on(&with, "check", arguments);
            assert_eq!(placed.status, 0, "{scheduler} {arguments:?}: {}{}", placed.out, placed.err);
            assert_eq!(placed.err, format!("note: {says}{ignored}\n"), "{scheduler} {arguments:?}");
            assert_eq!(placed.out, bare.out, "{scheduler} {arguments:?}: ignored is ignored");
        }
        // The CPUs in the file count without options.
        let own = on(&with, "check", &[]);
        assert_eq!(own.err.contains(ignored), is_global, "{scheduler}: {}", own.err);
        assert_eq!(on(&with, "check", &["--scheduler", "p-edf"]).err, "", "{scheduler}");
        assert_eq!(on(&without, "check", &[]).status == 2, !is_global, "{scheduler}");
        assert_eq!(on(&without, "check", &["--scheduler", "p-edf"]).status, 2, "{scheduler}");
    }
    // A CPU that does not exist is wrong whether it counts or not.
    let wrong = on(&place(FREE).replace("cpu = 1", "cpu = 2"), "check", &[]);
    assert_eq!((wrong.status, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("it must be from 0 to 1"), "{}", wrong.err);
}

#[test]
fn options_without_effect_get_a_note() {
    for (scheduler, reason) in [
        ("g-fp", "--bound has no effect here: `g-fp` has no linear programs"),
        ("g-edf", "--bound has no effect here: `g-edf` has no linear programs"),
        ("p-edf", "--protocol has no effect here: no task uses a resource"),
        ("g-edf", "--protocol has no effect here: no task uses a resource"),
    ] {
        let text = FREE.replace("cpus = 2", "cpus = 1").replace("g-edf", scheduler);
        let ended = on(&text, "check", &["--protocol", "mpcp", "--bound", "lp"]);
        assert!(ended.err.contains(reason), "{scheduler}: {}", ended.err);
    }
    let shared = on(INVERSION, "check", &["--scheduler", "p-edf", "--protocol", "pip"]);
    assert!(shared.err.contains("under `p-edf` resources use SRP on one CPU and MSRP across CPUs"), "{}", shared.err);
}

#[test]
fn only_icpp_explains_with_the_ceiling_priority() {
    for (protocol, says) in [
        ("icpp", "holds `bus` at its ceiling 3"),
        ("pcp", "holds `bus`, whose ceiling is 3, and inherits the priority of the job whose request waits"),
        ("srp", "holds `bus`, whose ceiling is 3: the job does not start before its end"),
    ] {
        let ended = on(INVERSION, "check", &["--protocol", protocol, "--explain", "high"]);
        assert!(ended.out.contains(says), "{protocol}: {}", ended.out);
        assert_eq!(ended.out.contains("at its ceiling"), protocol == "icpp", "{protocol}: {}", ended.out);
    }
}

#[test]
fn one_request_is_singular() {
    let text = GLOBAL.replace("cpu = 1\nperiod = \"20 ms\"", "cpu = 1\nperiod = \"5 ms\"");
    let ended = on(&text, "check", &["--protocol", "mpcp", "--explain", "here"]);
    assert!(ended.out.contains("is served first: 1 request in a wait of"), "{}{}", ended.out, ended.err);
    assert!(!ended.out.contains("1 requests"), "{}", ended.out);
}

#[test]
fn each_cpu_is_proved_alone() {
    let text = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n\
        [[task]]\nname = \"a\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"11 ms\"\n\
        [[task]]\nname = \"c\"\ncpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n";
    let ended = on(text, "check", &["--json"]);
    let tasks = &json(&ended)["results"][0]["tasks"];
    assert_eq!(
        (ended.status, tasks[0]["proved"].as_bool(), tasks[1]["proved"].as_bool()),
        (1, Some(false), Some(true))
    );
    assert!(on(text, "check", &[]).out.contains("A deadline can be missed."));
}

#[test]
fn tasks_are_placed_on_cpus() {
    let homeless = on(FREE, "check", &["--scheduler", "p-edf"]);
    assert_eq!(homeless.status, 2);
    assert!(homeless.err.contains("--partition"), "{}", homeless.err);
    for scheduler in ["p-edf", "p-fp"] {
        let placed = on(FREE, "check", &["--scheduler", scheduler, "--partition", "worst-fit"]);
        assert_eq!(placed.status, 0, "{}{}", placed.out, placed.err);
        assert!(placed.out.contains("utilization 45.0 %, 80.0 %"), "{}", placed.out);
    }
    // The order of the file is not that of priorities.
    let slow_first = "[[task]]\nname = \"slow\"\nperiod = \"50 ms\"\nwcet = \"1 ms\"\n\
        [[task]]\nname = \"fast\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n";
    assert_eq!(on(slow_first, "check", &["--partition", "first-fit"]).status, 0);
    let full = FREE.replace("\"9 ms\"", "\"19 ms\"");
    let nowhere = on(&full, "check", &["--scheduler", "p-edf", "--partition", "best-fit"]);
    assert_eq!(nowhere.status, 0, "{}{}", nowhere.out, nowhere.err);
    let nowhere =
        on(&full.replace("\"4 ms\"", "\"7 ms\""), "check", &["--scheduler", "p-edf", "--partition", "best-fit"]);
    assert_eq!((nowhere.status, nowhere.out.as_str()), (2, ""));
    assert!(nowhere.err.contains("does not fit on any of the 2 CPUs"), "{}", nowhere.err);
}

#[test]
fn uncovered_systems_are_refused_with_a_reason() {
    let shared = on(INVERSION, "check", &["--scheduler", "g-edf", "--protocol", "pip"]);
    assert_eq!((shared.status, shared.out.as_str()), (2, ""));
    assert!(shared.err.contains("is under `pip`, which no test here covers under `g-edf`"), "{}", shared.err);
    let demand = on(INVERSION, "check", &["--scheduler", "p-edf"]);
    assert!(demand.out.contains("processor demand, CPU 0   yes"), "{}", demand.out);
    for (scheduler, verb, supported) in [
        ("g-fp", "run", "only `check` and `simulate` support"),
        ("g-fp", "verify", "only `check` and `simulate` support"),
    ] {
        let ended = on(&FREE.replace("g-edf", scheduler).replace("cpus = 2", "cpus = 1"), verb, &[]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(supported), "{scheduler} {verb}: {}", ended.err);
    }
}

#[test]
fn a_linear_program_is_tighter() {
    let text = "protocol = \"mpcp\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"bus\"\n[[resource]]\nname = \"log\"\n\
        [[task]]\nname = \"a\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"2 ms\"\nrequests = [{ resource = \"bus\", count = 3, length = \"200 us\" }]\n\
        [[task]]\nname = \"b\"\ncpu = 1\nperiod = \"12 ms\"\nwcet = \"3 ms\"\nrequests = [{ resource = \"bus\", length = \"500 us\" }, { resource = \"log\", count = 2, length = \"300 us\" }]\n\
        [[task]]\nname = \"c\"\ncpu = 0\nperiod = \"30 ms\"\nwcet = \"5 ms\"\nrequests = [{ resource = \"log\", count = 2, length = \"900 us\" }]\n\
        [[task]]\nname = \"d\"\ncpu = 1\nperiod = \"50 ms\"\nwcet = \"8 ms\"\nrequests = [{ resource = \"bus\", length = \"1 ms\" }]\n";
    assert_eq!(on(text, "check", &["--bound", "classic"]).status, 1);
    let tighter = on(text, "check", &[]);
    assert_eq!((tighter.status, tighter.err.as_str()), (0, ""), "{}", tighter.out);
    assert!(tighter.out.contains("proof"), "{}", tighter.out);
    assert_eq!(on(text, "check", &["--bound", "lp"]).out, tighter.out);
    let tasks = json(&on(text, "check", &["--json"]))["results"][0]["tasks"].as_array().expect("tasks").clone();
    assert!(tasks.iter().any(|task| task["proof"] == "lp"), "{tasks:?}");
    for task in &tasks {
        let name = task["name"].as_str().expect("a name");
        let explained =
            json(&on(text, "check", &["--json", "--explain", name]))["results"][0]["explain"]["terms"].clone();
        let terms = explained.as_array().expect("terms").iter();
        let sum: u64 = terms.map(|term| term["total_ns"].as_u64().expect("a time")).sum();
        assert_eq!(Some(sum), task["response_ns"].as_u64(), "{explained:?}");
    }
    let classic = on(HOLDS, "check", &["--bound", "lp"]);
    assert!(classic.err.contains("linear programs give no bounds"), "{}", classic.err);
    // One note for all protocols.
    let all = on(HOLDS, "check", &["--bound", "lp", "-p", "all"]).err;
    assert_eq!(all.matches("linear programs give no bounds").count(), 1, "{all}");
    assert!(all.contains("under none, pip,") && all.contains("prints why"), "{all}");
    let clustered = on(CLUSTER, "check", &["--bound", "lp"]);
    assert!(clustered.err.contains("there are clusters of several CPUs"), "{}", clustered.err);
    assert_eq!(clustered.out, on(CLUSTER, "check", &["--bound", "classic"]).out);
    assert_eq!(on(text, "check", &["--bound", "lp", "--sensitivity"]).status, 2);
    // The factors are of other bounds than the table, and say so.
    let alone = "Sensitivity of the classic bounds (`--bound classic`";
    let grown = on(text, "check", &["--sensitivity"]);
    assert!(grown.out.contains(alone), "{}", grown.out);
    assert_eq!(grown.out.matches("Sensitivity of").count(), 1, "{}", grown.out);
    let compared = on(text, "check", &["--sensitivity", "--protocol", "all"]);
    assert!(compared.out.contains(alone) && compared.out.contains(OF_BOUNDS), "{}", compared.out);
    let classic = on(text, "check", &["--sensitivity", "--bound", "classic"]);
    assert!(classic.out.contains(OF_BOUNDS), "{}", classic.out);
    let value = json(&on(text, "check", &["--sensitivity", "--json"]));
    assert_eq!(value["results"][0]["sensitivity"]["proof"], "classic");
}

/// Above the factors, where no other bounds are in the table.
const OF_BOUNDS: &str = "\nSensitivity of the classic bounds:\n";

#[test]
fn overheads_are_charged() {
    let free = on(HOLDS, "check", &["--json"]);
    let file = File::named("overheads.toml", "release = \"3 us\"\nschedule = \"1 us\"\n");
    let charged = on(HOLDS, "check", &["--json", "--overheads", &file.path.display().to_string()]);
    let responses = |ended: &crate::support::Ended| {
        let tasks = json(ended)["results"][0]["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| task["response_ns"].as_u64().expect("a bound")).collect::<Vec<_>>()
    };
    let (before, after) = (responses(&free), responses(&charged));
    assert_eq!(before.len(), after.len(), "interrupts have no rows");
    assert!(before.iter().zip(&after).all(|(before, after)| before < after), "{before:?} {after:?}");
    assert!(on(HOLDS, "check", &["--overheads", &file.path.display().to_string()]).out.contains("are charged"));
    let wrong = File::named("overheads.toml", "relaese = \"3 us\"\n");
    let ended = on(HOLDS, "check", &["--overheads", &wrong.path.display().to_string()]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("did you mean `release`?"), "{}", ended.err);
    let endless = File::named("overheads.toml", "release = \"1 s\"\n");
    let ended = on(HOLDS, "check", &["--overheads", &endless.path.display().to_string()]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "jobs would be released after their deadlines");
    assert!(ended.err.contains("the overheads cannot be charged"), "{}", ended.err);
}

const CLUSTER: &str = "[platform]\ncpus = 2\nscheduler = \"c-fp\"\n[[resource]]\nname = \"r\"\n\
    [[task]]\nname = \"a\"\ncpus = [0, 1]\nperiod = \"50 ms\"\nbody = [{ run = \"1 ms\" }, { lock = \"r\" }, { run = \"2 ms\" }, { unlock = \"r\" }]\n\
    [[task]]\nname = \"b\"\ncpus = [0, 1]\nperiod = \"60 ms\"\nwcet = \"5 ms\"\n\
    [[task]]\nname = \"c\"\ncpus = [0, 1]\nperiod = \"90 ms\"\nbody = [{ lock = \"r\" }, { run = \"4 ms\" }, { unlock = \"r\" }, { run = \"1 ms\" }]\n";

#[test]
fn clusters_are_analysed_and_simulated() {
    let ended = on(CLUSTER, "check", &["--explain", "a"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{}", ended.out);
    // Its execution, one section of `c` at its request, and one of `c` with what that waits for when it arrives: 3 + 4
    // + (2 + 4) ms.
    let row = ended.out.lines().find(|line| line.starts_with("a ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["a", "ok", "0,1", "3", "3", "6", "4", "13", "50", "37"], "{}", ended.out);
    assert!(ended.out.contains("under omlp"), "{}", ended.out);
    let value = json(&on(CLUSTER, "check", &["--json", "--explain", "c", "--sensitivity"]));
    let result = &value["results"][0];
    assert_eq!(result["tasks"][0]["cpus"], serde_json::json!([0, 1]), "{result}");
    let terms = result["explain"]["terms"].as_array().expect("terms");
    let sum: u64 = terms.iter().filter_map(|term| term["total_ns"].as_u64()).sum();
    let task = result["tasks"].as_array().expect("tasks").iter().find(|task| task["name"] == "c").expect("a task");
    assert_eq!(Some(sum), task["response_ns"].as_u64(), "{result}");

    let seen = on(CLUSTER, "simulate", &["--protocol", "all"]);
    assert_eq!(seen.status, 0, "{}{}", seen.out, seen.err);
    assert!(seen.err.contains("do not support clusters"), "{}", seen.err);
    // Options without support for clusters are refused with help.
    for arguments in [
        &["check", "--scheduler", "p-fp"][..],
        &["check", "--partition", "worst-fit"],
        &["simulate", "--protocol", "mpcp"],
        &["run", "--protocol", "pip"],
    ] {
        let refused = on(CLUSTER, arguments[0], &arguments[1..]);
        assert_eq!(refused.status, 2, "{arguments:?}: {}{}", refused.out, refused.err);
        assert!(refused.err.contains("help") && refused.err.contains("cluster"), "{}", refused.err);
    }
    for protocol in ["dpcp", "pcp", "srp"] {
        let unbounded = on(CLUSTER, "check", &["--protocol", protocol]);
        let why = format!("which `{protocol}` does not support: use `omlp` for it");
        assert!(unbounded.status == 1 && unbounded.out.contains(&why), "{}", unbounded.out);
    }
    let overheads = File::named("overheads.toml", "tick = \"1 us\"\ntick_period = \"1 ms\"\n");
    let responses = |ended: &crate::support::Ended| {
        let tasks = json(ended)["results"][0]["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| task["response_ns"].as_u64().expect("a bound")).collect::<Vec<_>>()
    };
    let free = responses(&on(CLUSTER, "check", &["--json"]));
    let charged = responses(&on(CLUSTER, "check", &["--json", "--overheads", &overheads.path.display().to_string()]));
    assert_eq!(free.len(), charged.len(), "interrupts have no rows");
    assert!(free.iter().zip(&charged).all(|(free, charged)| free < charged), "{free:?} {charged:?}");
    let placed = on(CLUSTER, "check", &["--scheduler", "p-fp", "--partition", "worst-fit"]);
    assert_eq!((placed.status, placed.out.contains("under icpp")), (0, true), "{}{}", placed.out, placed.err);
}

/// Names cannot print lines of their own.
#[test]
fn names_stay_within_their_lines() {
    let forged = "a\\n\\nAll deadlines hold";
    let text = INVERSION.replace("\"high\"", &format!("\"{forged}\"")).replace("\"bus\"", "\"b\\nus\\u202e\"");
    let cases: [(&str, &[&str]); 7] = [
        ("check", &[]),
        ("check", &["--protocol", "all"]),
        ("check", &["--protocol", "none", "--explain", "medium"]),
        ("check", &["--explain", "a\n\nAll deadlines hold"]),
        ("check", &["--explain", "b\n\nAll deadlines hold"]),
        ("simulate", &["--gantt"]),
        ("simulate", &["--gantt", "--by", "cpu"]),
    ];
    for (verb, options) in cases {
        let ended = on(&text, verb, options);
        let all = ended.out + &ended.err;
        assert!(!all.lines().any(|line| line.starts_with("All deadlines hold")), "{verb} {options:?}: {all}");
        assert!(!all.lines().any(|line| line.starts_with("us")), "{verb} {options:?}: {all}");
        assert!(!all.contains('\u{202e}'), "{verb} {options:?}: {all}");
    }
}

/// Without `--sensitivity` as well, a signal ends it with the results so far.
#[test]
fn an_interrupted_check_prints_its_results() {
    let tasks: String = (0..2_000)
        .map(|task| {
            let (period, bus) = (100_000 + 37 * task, "[{ resource = \"bus\", length = \"1 ns\" }]");
            format!("[[task]]\nname = \"t{task}\"\nperiod = \"{period} us\"\nwcet = \"5 us\"\nrequests = {bus}\n")
        })
        .collect();
    let file =
        File::new(&format!("[platform]\npriorities = \"rate-monotonic\"\n[[resource]]\nname = \"bus\"\n{tasks}"));
    let mut command = lockwright();
    command.arg("check").arg(&file.path).args(["--protocol", "all", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let id = child.id().to_string();
    // BOUND: the command soon listens for SIGTERM, signal 15, or ends.
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_none_or(|caught| u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught >> 14 & 1 == 1))
    };
    let begun = Instant::now();
    while !listens() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill is there").success());
    let output = child.wait_with_output().expect("ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let results = value["results"].as_array().expect("a list").len();
    assert!((1..Protocol::ALL.len()).contains(&results) && value["interrupted"] == true, "{results}");
    assert!(err.contains("interrupted: the results are incomplete; not reached: "), "{err}");
}
