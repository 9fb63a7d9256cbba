//! `check` and `simulate` of resources under `g-edf` and `g-fp`, and of non-blocking objects under EDF.

use crate::support::{File, json, on};
use lockwright_model::Duration;

/// Three tasks on two CPUs, which share a queue.
const SHARED: &str = "[platform]\ncpus = 2\nscheduler = \"g-edf\"\npriorities = \"rate-monotonic\"\n\
    [[resource]]\nname = \"queue\"\nobject = \"queue\"\n\
    [[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"3 ms\"\nrequests = [{ resource = \"queue\", count = 2, length = \"100 us\" }]\n\
    [[task]]\nname = \"camera\"\nperiod = \"20 ms\"\nwcet = \"5 ms\"\nrequests = [{ resource = \"queue\", length = \"100 us\" }]\n\
    [[task]]\nname = \"log\"\nperiod = \"50 ms\"\nwcet = \"8 ms\"\nrequests = [{ resource = \"queue\", length = \"200 us\" }]\n";

#[test]
fn global_schedulers_are_simulated_within_bounds() {
    for scheduler in ["g-edf", "g-fp"] {
        let text = SHARED.replace("g-edf", scheduler);
        for protocol in ["none", "fmlp_short", "fmlp_long", "lock_free", "wait_free"] {
            let ended = on(&text, "simulate", &["--protocol", protocol, "--offsets", "sweep", "--json"]);
            assert_eq!(ended.status, 0, "{scheduler}, {protocol}: {}{}", ended.out, ended.err);
            let result = &json(&ended)["results"][0];
            assert_eq!((&result["scheduler"], &result["protocol"]), (&scheduler.into(), &protocol.into()));
            assert_eq!(result["proved"], protocol != "none", "{scheduler}, {protocol}: {}", ended.out);
            assert_eq!(ended.err.contains("there are no bounds"), protocol == "none", "{}", ended.err);
            for task in result["tasks"].as_array().expect("tasks") {
                assert!(task["jobs"].as_u64() > Some(30) && task["above_bound"] != true, "{task}");
                assert_eq!(task["observed_blocking_ns"].is_null(), scheduler == "g-edf", "{task}");
            }
        }
        let refused = on(&text, "simulate", &["--protocol", "mpcp"]);
        assert_eq!(refused.status, 2, "{}", refused.out);
        assert!(refused.err.contains("`queue` is under `mpcp`, which assigns tasks to CPUs"), "{}", refused.err);
    }
}

/// The scheduler of the option, and all that is drawn of a schedule.
#[test]
fn global_schedules_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let partitioned = SHARED.replace("scheduler = \"g-edf\"\n", "").replace("name = \"c", "cpu = 1\nname = \"c");
    let partitioned = partitioned.replace("name = \"log", "cpu = 0\nname = \"log");
    for protocol in ["fmlp_short", "fmlp_long"] {
        let (trace, svg, page) = (path("trace"), path("svg.svg"), path("page.html"));
        let files = ["--trace", &trace, "--svg", &svg, "--html", &page, "--gantt", "--by", "cpu"];
        let arguments = [["--scheduler", "g-edf", "--protocol", protocol].as_slice(), &files].concat();
        let ended = on(&partitioned, "simulate", &arguments);
        assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
        assert!(ended.err.contains("the CPUs that the file gives to 3 tasks are ignored"), "{}", ended.err);
        assert!(ended.out.contains(&format!("under {protocol} and g-edf")), "{}", ended.out);
        assert!(ended.out.contains("CPU 1"), "{}", ended.out);
        for file in [trace, svg, page] {
            assert!(std::fs::metadata(&file).is_ok_and(|file| file.len() > 500), "{file}");
        }
    }
}

/// The terms sum to the time that the tests count, and each delaying task is named.
#[test]
fn delays_under_global_schedulers_are_explained() {
    for (protocol, cause) in
        [("fmlp_short", "remote blocking"), ("fmlp_long", "remote blocking"), ("lock_free", "executed again")]
    {
        let ended = on(SHARED, "check", &["--protocol", protocol, "--explain", "control", "--json"]);
        assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
        let explain = &json(&ended)["results"][0]["explain"];
        let terms = explain["terms"].as_array().expect("terms");
        assert_eq!((terms[0]["cause"].as_str(), terms[0]["total_ns"].as_u64()), (Some("execution"), Some(3_000_000)));
        assert!(terms[1..].iter().any(|term| term["cause"] == cause && term["resource"] == "queue"), "{terms:?}");
        assert!(explain["interval_ns"].is_null(), "{explain}");
        let text = on(SHARED, "check", &["--protocol", protocol, "--explain", "control"]).out;
        assert!(text.contains("control: every term of the execution time that the tests count"), "{text}");
    }
}

/// Times in words have the units of the table.
#[test]
fn spinning_is_explained_in_units() {
    let ended = on(SHARED, "check", &["--protocol", "fmlp_short", "--explain", "control", "--wide"]);
    let spins: Vec<&str> = ended.out.split("it spins for ").skip(1).collect();
    assert!(!spins.is_empty(), "{}", ended.out);
    for spin in spins {
        let time = spin.split(',').next().expect("a time");
        let time = Duration::parse(time).map(|parsed| (parsed.to_string(), time));
        assert!(time.is_ok_and(|(written, time)| written == time), "{}", ended.out);
    }
}

/// Where another protocol is covered, the help names it.
#[test]
fn uncovered_protocols_have_a_way_out() {
    let uncovered = SHARED.replacen("[platform]", "protocol = \"mpcp\"\n[platform]", 1);
    let ended = on(&uncovered, "check", &[]);
    assert!(ended.status == 2 && ended.err.contains("is under `mpcp`"), "{}", ended.err);
    assert!(ended.err.contains("use `--protocol fmlp_short`"), "{}", ended.err);
    assert_eq!(on(&uncovered, "check", &["--protocol", "fmlp_short"]).status, 0);
    let named = uncovered.replacen("[[resource]]", "[[resource]]\nprotocol = \"mpcp\"", 1);
    let ended = on(&named, "check", &[]);
    assert!(ended.status == 2 && ended.err.contains("is under `mpcp`"), "{}", ended.err);
    assert!(!ended.err.contains("fmlp_short"), "the resource names its protocol itself: {}", ended.err);
}

#[test]
fn protocols_are_ranked_under_edf() {
    let ended = on(SHARED, "check", &["--protocol", "all"]);
    assert_eq!(ended.status, 0, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("none is left out: `queue` is under `none`"), "{}", ended.err);
    assert!(ended.out.contains("Sorted best first"), "{}", ended.out);
    let value = json(&on(SHARED, "check", &["--protocol", "all", "--json"]));
    let names = |value: &serde_json::Value| -> Vec<String> {
        let results = value["results"].as_array().expect("results");
        results.iter().map(|result| result["protocol"].as_str().expect("a name").to_owned()).collect()
    };
    let mut global = names(&value);
    global.sort_unstable();
    assert_eq!(global, ["fmlp_long", "fmlp_short", "lock_free", "wait_free"]);
    let partitioned = SHARED.replace("g-edf", "p-edf").replace("name = \"c", "cpu = 1\nname = \"c");
    let partitioned = partitioned.replace("name = \"log", "cpu = 0\nname = \"log");
    let mut local = names(&json(&on(&partitioned, "check", &["--protocol", "all", "--json"])));
    local.sort_unstable();
    assert_eq!(local, ["fmlp_long", "lock_free", "msrp", "wait_free"]);
    let simulated = on(&partitioned, "simulate", &["--protocol", "all"]);
    assert_eq!(simulated.status, 0, "{}{}", simulated.out, simulated.err);
}

/// An operation on an object takes as long as the overheads say, and not as long as the section.
#[test]
fn costs_of_objects_are_charged() {
    let costs = "[object.queue]\nlock_free = [[2, \"1 us\"], [4, \"3 us\"]]\nwait_free = [[2, \"20 us\"]]\n";
    let costs = File::new(costs);
    let path = costs.path.to_str().expect("a path in UTF-8");
    for scheduler in ["g-edf", "g-fp", "p-fp"] {
        let text = SHARED.replace("g-edf", scheduler).replace("wcet = \"8 ms\"", "wcet = \"8 ms\"\ncpu = 1");
        let text = text.replace("name = \"c", "cpu = 0\nname = \"c");
        let charged = on(&text, "check", &["--protocol", "lock_free", "--overheads", path, "--json"]);
        assert_eq!(charged.status, 0, "{scheduler}: {}{}", charged.out, charged.err);
        let costs: Vec<_> = json(&charged)["results"][0]["tasks"]
            .as_array()
            .expect("tasks")
            .iter()
            .map(|task| task["charged_cost_ns"].as_u64())
            .collect();
        // Three tasks share the queue: 2 us for each operation.
        assert_eq!(costs, [Some(2_804_000), Some(4_902_000), Some(7_802_000)], "{scheduler}: {}", charged.out);
        let beyond = on(&text, "check", &["--protocol", "wait_free", "--overheads", path]);
        assert_eq!(beyond.status, 2, "{scheduler}: {}", beyond.out);
        assert!(beyond.err.contains("more"), "{scheduler}: {}", beyond.err);
    }
}
