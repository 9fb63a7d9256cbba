//! `measure`.

use crate::realtime::{require_realtime, shared};
use crate::support::{end, json, lockwright};
use serde_json::Value;
use std::path::Path;

const COST_KEYS: [&str; 9] =
    ["lock", "cold", "min_cycles", "median_cycles", "p999_cycles", "max_cycles", "pairs", "median_ns", "half_width_ns"];
const LOCKS: usize = 9;

fn rows(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// The lines of a CSV file, by field.
fn csv(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn every_lock_has_sorted_costs() {
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "locks", "--alone", "--readings", "200", "--json"];
    let ended =
        end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path().join("new")));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["verb"], &value["subject"]), (&"measure".into(), &"locks".into()));
    assert!(value["cycles_per_ns"].as_f64().expect("is given") > 0.0);
    assert_eq!(rows(&value["contention"]).len(), 0);
    let costs = rows(&value["costs"]);
    let warm: Vec<&Value> = costs.iter().filter(|cost| cost["cold"] == false).collect();
    assert_eq!(warm.len(), LOCKS);
    assert!(costs.len() == LOCKS || costs.len() == 2 * LOCKS, "each warm, and each cold where caches can be emptied");
    for cost in costs {
        let cycles = ["min_cycles", "median_cycles", "p999_cycles", "max_cycles"].map(|key| cost[key].as_u64());
        assert!(cycles.iter().all(Option::is_some) && cycles.is_sorted(), "{cost}");
        assert!(cycles[0] > Some(0), "no lock takes no time: {cost}");
        let [median, half_width] = ["median_ns", "half_width_ns"].map(|key| cost[key].as_f64().expect("a number"));
        assert!(median > 0.0 && half_width > 0.0 && cost["pairs"].as_u64() > Some(1), "{cost}");
    }
    let lines = csv(&folder.path().join("cost.csv"));
    assert_eq!((&lines[0], lines.len()), (&COST_KEYS.map(str::to_owned).to_vec(), 1 + costs.len()));
    for (line, cost) in lines[1..].iter().zip(costs) {
        let same = COST_KEYS.map(|key| cost[key].as_str().map_or_else(|| cost[key].to_string(), str::to_owned));
        assert_eq!(line, &same);
    }
    assert!(!folder.path().join("contention.csv").exists(), "there was none");
    let svg = std::fs::read_to_string(folder.path().join("new").join("cost-warm.svg")).expect("is there");
    for part in warm.iter().map(|cost| cost["lock"].as_str().expect("a name")).chain(["median", "p99.9"]) {
        assert!(svg.contains(part), "{part} is missing in the figure");
    }
}

#[test]
fn contended_locks_are_compared_with_fifo() {
    let Some(_machine) = require_realtime() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "locks", "--readings", "1", "--requests", "40", "--rate", "2", "--seed", "7", "--json"];
    let ended = end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    let results = rows(&value["contention"]);
    assert_eq!((results.len(), &value["interrupted"]), (2 * LOCKS, &false.into()));
    for result in results {
        assert_eq!(result["requests"], 40, "each is served once: {result}");
        let (mean, max) = (result["mean_sections_waited"].as_f64(), result["max_sections_waited"].as_u64());
        assert!(mean <= max.map(|max| max as f64), "{result}");
        let fifo = result["lock"] == "ticket";
        assert!(!fifo || result["weighted_delay_over_fifo"] == 1.0 || result["weighted_delay_ns"] == 0.0, "{result}");
    }
    assert_eq!(csv(&folder.path().join("contention.csv")).len(), 1 + results.len());
    for name in ["cost-warm.svg", "delay-equal.svg", "delay-rising.svg", "top-equal.svg", "top-rising.svg"] {
        let svg = std::fs::read_to_string(folder.path().join(name)).expect(name);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
    let printed = end(lockwright().args(&arguments[..arguments.len() - 1]));
    for part in ["max", "±", "rising", "over fifo", "seed 7"] {
        assert!(printed.out.contains(part), "{part}: {}", printed.out);
    }
}

#[test]
fn unwritable_files_lose_no_other_result() {
    let _machine = shared();
    for option in ["--csv", "--svg"] {
        let arguments = ["measure", "locks", "--alone", "--readings", "1", "--json", option, "/proc"];
        let ended = end(lockwright().args(arguments));
        assert_eq!(ended.status, 3, "{}", ended.err);
        assert!(ended.err.contains("cannot write /proc/"), "{}", ended.err);
        assert!(rows(&json(&ended)["costs"]).len() >= LOCKS, "{}", ended.out);
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, part) in [
        (&["--readings", "0"][..], "1..=10000000"),
        (&["--requests", "0"], "1..=1000000"),
        (&["--section", "11ms"], "it must be from 1 ns to 10 ms"),
        (&["--section", "70"], "unit"),
        (&["--rate", "0"], "it must be from 0.01 to 100"),
        (&["--rate", "NaN"], "it must be from 0.01 to 100"),
        (&["--rate", "often"], "it must be a number"),
        (&["--alone", "--section", "1us"], "--section"),
        (&["--alone", "--requests", "3"], "--requests"),
        (&["--rate", "5", "--alone"], "--rate"),
        (&["--csv", "/dev/null/results"], "--csv"),
        (&["--svg", "/dev/null/figures"], "--svg"),
    ] {
        let ended = end(lockwright().args(["measure", "locks"]).args(arguments));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
}

#[test]
fn mutexes_are_compared_with_the_c_library() {
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "mutex", "--alone", "--readings", "100", "--json"];
    let ended = end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["subject"], rows(&value["hand_over"]).len()), (&"mutex".into(), 0));
    let names: Vec<&str> = rows(&value["costs"]).iter().filter_map(|cost| cost["lock"].as_str()).collect();
    for name in ["lockwright plain", "glibc plain", "lockwright inherit robust", "glibc inherit robust"] {
        assert!(names.contains(&name), "{name} is missing");
    }
    assert_eq!(csv(&folder.path().join("cost.csv")).len(), 1 + names.len());
    assert!(folder.path().join("cost-warm.svg").exists() && !folder.path().join("hand-over-warm.svg").exists());
}

#[test]
fn mutexes_are_handed_over() {
    let Some(_machine) = require_realtime() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "mutex", "--readings", "1", "--waiters", "1,7", "--rounds", "3", "--json"];
    let ended = end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    let seen = rows(&value["hand_over"]);
    assert_eq!(seen.len(), 2 * 3 * 2, "two numbers of waiters, three mutexes, warm and cold caches");
    assert_eq!(seen.iter().filter(|seen| seen["cold"] == true).count(), 2 * 3);
    for seen in seen {
        let ns = ["min_ns", "median_ns", "p90_ns", "max_ns"].map(|key| seen[key].as_u64());
        assert!(ns[0] > Some(0) && ns.is_sorted() && seen["rounds"] == 3, "{seen}");
    }
    assert_eq!(csv(&folder.path().join("hand-over.csv")).len(), 1 + seen.len());
    for name in ["hand-over-warm.svg", "hand-over-cold.svg"] {
        let svg = std::fs::read_to_string(folder.path().join(name)).expect("is there");
        assert!(svg.contains("lockwright serial") && svg.contains("glibc inherit"), "{name}");
    }
}

/// The cost of a section, by its operation and its commit.
fn median(costs: &Value, what: &str, strategy: &Value) -> f64 {
    let cost = rows(costs).iter().find(|cost| cost["what"] == what && &cost["strategy"] == strategy);
    cost.and_then(|cost| cost["median_ns"].as_f64()).unwrap_or_else(|| panic!("no {what} by {strategy}: {costs}"))
}

#[test]
fn sections_are_compared_with_the_c_library() {
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "ics", "--alone", "--readings", "5", "--json"];
    let ended = end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["subject"], rows(&value["responses"]).len()), (&"ics".into(), 0));
    for name in ["glibc mutex", "glibc PI mutex", "glibc semaphore"] {
        assert!(median(&value["costs"], name, &Value::Null) > 0.0);
    }
    for strategy in [&"locked".into(), &value["strategy"]] {
        for what in [
            "one word alone",
            "empty section",
            "section of a word",
            "section of ten words by name",
            "section of a variable of ten words",
        ] {
            assert!(median(&value["costs"], what, strategy) > 0.0);
        }
    }
    for cost in rows(&value["costs"]) {
        let ns = ["min_ns", "median_ns", "p99_ns", "max_ns"].map(|key| cost[key].as_f64());
        assert!(ns.iter().all(Option::is_some) && ns.is_sorted(), "{cost}");
        assert_eq!(cost["over_pi_mutex"] == 1.0, cost["what"] == "glibc PI mutex", "{cost}");
    }
    assert_eq!(csv(&folder.path().join("cost.csv")).len(), 1 + rows(&value["costs"]).len());
    let svg = std::fs::read_to_string(folder.path().join("cost.svg")).expect("is there");
    assert!(svg.contains("section of ten words by name, locked") && svg.contains("glibc semaphore"));
    assert!(!folder.path().join("response.csv").exists(), "there was none");
}

#[test]
fn the_experiment_has_a_histogram_for_each_mechanism_and_setting() {
    let Some(_machine) = require_realtime() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "ics", "--readings", "1", "--tick", "100us", "--operations", "30", "--json"];
    let ended = end(lockwright().args(arguments).arg("--csv").arg(folder.path()).arg("--svg").arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    let (seen, bins) = (rows(&value["responses"]), rows(&value["histogram"]));
    assert_eq!((seen.len(), &value["tick_ns"], &value["interrupted"]), (2 * 5, &100_000.into(), &false.into()));
    for seen in seen {
        let of = |key: &str| seen[key].as_u64();
        assert!(of("enqueued") >= Some(30) && of("alone_ns") >= Some(100_000), "{seen}");
        let waits = ["ICS", "interruptible lock"].iter().all(|&name| seen["mechanism"] != name);
        assert!(!waits || seen["repeated"] == 0, "a section without contention is not restarted: {seen}");
        for (operation, times) in [("enqueue", "enqueued"), ("dequeue", "dequeued")] {
            let ns = ["median", "p99", "max"].map(|part| of(&format!("{operation}_{part}_ns")));
            assert!(ns.is_sorted() && (ns[0].is_some() == (of(times) > Some(0))), "{seen}");
            let same = ["mechanism", "outside_ticks", "inside_ticks"];
            let own = bins.iter().filter(|bin| same.iter().all(|&key| bin[key] == seen[key]));
            let own = own.filter(|bin| bin["operation"] == operation);
            let sum: u64 = own.map(|bin| bin["times"].as_u64().expect("a number")).sum();
            assert_eq!(Some(sum), of(times), "each response is in the histogram once: {seen}");
        }
    }
    let lines = csv(&folder.path().join("response.csv"));
    assert_eq!(lines.len(), 1 + seen.len());
    assert_eq!(lines[0][..3], ["mechanism", "outside_ticks", "inside_ticks"]);
    assert_eq!(csv(&folder.path().join("histogram.csv")).len(), 1 + bins.len());
    for setting in ["7-1", "2-4"] {
        for mechanism in ["fifo-semaphore", "priority-semaphore", "pi-mutex", "ics", "interruptible-lock"] {
            let name = format!("histogram-{mechanism}-{setting}.svg");
            let svg = std::fs::read_to_string(folder.path().join(&name)).expect(&name);
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
            assert!(svg.contains("enqueue (left)") && svg.contains("dequeue (right)"), "{name}");
        }
    }
    let printed = end(lockwright().args(&arguments[..arguments.len() - 1]));
    for part in ["commit by", "ticks of 100 us", "interruptible lock", "p99", "again"] {
        assert!(printed.out.contains(part), "{part}: {}", printed.out);
    }
}

#[test]
fn wrong_arguments_of_the_experiment_are_refused() {
    for (arguments, part) in [
        (&["--tick", "49us"][..], "'--tick <DURATION>': it must be from 50 us to 20 ms"),
        (&["--tick", "21ms"], "it must be from 50 us to 20 ms"),
        (&["--tick", "1"], "unit"),
        (&["--operations", "0"], "1..=1000000"),
        (&["--readings", "0"], "1..=100000"),
        (&["--alone", "--tick", "1ms"], "--tick"),
        (&["--operations", "3", "--alone"], "--operations"),
        (&["--csv", "/dev/null/results"], "give --csv a directory with write permission"),
        (&["--svg", "/dev/null/figures"], "give --svg a directory with write permission"),
    ] {
        let ended = end(lockwright().args(["measure", "ics"]).args(arguments));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
}

/// The names of an object and its sharing, in the order of the results.
fn objects(rows: &[Value]) -> Vec<(&str, &str)> {
    rows.iter().filter_map(|row| Some((row["object"].as_str()?, row["sharing"].as_str()?))).collect()
}

#[test]
fn objects_are_compared_with_locks_alone() {
    let _machine = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["measure", "objects", "--alone", "--operations", "500", "--json"];
    let mut command = lockwright();
    command.args(arguments);
    for option in ["--csv", "--svg", "--overheads"] {
        command.arg(option).arg(folder.path());
    }
    let ended = end(&mut command);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    assert_eq!((&value["subject"], rows(&value["contention"]).len()), (&"objects".into(), 0));
    let lines = rows(&value["lines"]);
    let of = |kind| ["short", "lock-free", "wait-free", "ticket lock", "PI mutex"].map(|sharing| (kind, sharing));
    assert_eq!(objects(lines), [of("buffer"), of("queue"), of("heap")].concat());
    // Six numbers of tasks for the lock-free and the wait-free ones.
    assert_eq!(rows(&value["alone"]).len(), 3 * (3 + 2 * 6));
    for cost in rows(&value["alone"]) {
        let ns = ["mean_ns", "worst_ns", "max_ns"].map(|key| cost[key].as_f64());
        assert!(ns.is_sorted() && ns[2] > Some(0.0), "{cost}");
    }
    for (name, count) in [("alone.csv", rows(&value["alone"]).len()), ("lines.csv", lines.len())] {
        assert_eq!(csv(&folder.path().join(name)).len(), 1 + count, "{name}");
    }
    assert!(!folder.path().join("contention.csv").exists(), "there was none");
    for kind in ["buffer", "queue", "heap"] {
        let svg = std::fs::read_to_string(folder.path().join(format!("{kind}.svg"))).expect("is there");
        assert!(svg.contains("wait-free, worst"), "{kind}");
    }
    for name in ["worst-objects.toml", "average-objects.toml"] {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("is there");
        assert!(text.contains("[object.heap]") && text.contains("wait_free = [[2, "), "{text}");
    }
}

#[test]
fn contended_objects_keep_their_bounds() {
    let Some(_machine) = require_realtime() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ended =
        end(lockwright().args(["measure", "objects", "--operations", "2000", "--json", "--csv"]).arg(folder.path()));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let value = json(&ended);
    let seen = rows(&value["contention"]);
    assert_eq!(seen.len(), 3 * 4);
    for seen in seen {
        let is_locked = seen["sharing"] == "ticket lock" || seen["sharing"] == "PI mutex";
        assert_eq!(seen["steps"].is_null(), is_locked, "{seen}");
        let (steps, bound) = (seen["steps"].as_u64(), seen["steps_bound"].as_u64());
        assert!(is_locked || (steps > Some(0) && steps <= bound && seen["exceeded"] == 0), "{seen}");
    }
    assert_eq!(csv(&folder.path().join("contention.csv")).len(), 1 + seen.len());
}
