//! `check` and `simulate` under `p-edf`: what the tests count, the linear programs, and charged jobs.

use crate::support::{json, on};
use lockwright_analysis::{best_scheduled, charge_by_deadline};
use lockwright_model::{Cost, Duration, Instant, Overhead, Overheads, Protocol, Scheduler};
use lockwright_sim::{Config, Offsets, Simulation};
use lockwright_study::{Shape, generate};

#[test]
fn demand_is_explained_under_edf() {
    let text = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n[[resource]]\nname = \"g\"\n\
        [[task]]\nname = \"i\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"4 ms\"\nrequests = [{ resource = \"r\", length = \"1 us\" }, { resource = \"g\", count = 2, length = \"10 us\" }]\n\
        [[task]]\nname = \"j\"\ncpu = 0\nperiod = \"100 ms\"\nwcet = \"10 ms\"\nrequests = [{ resource = \"r\", length = \"7 ms\" }]\n\
        [[task]]\nname = \"k\"\ncpu = 1\nperiod = \"100 ms\"\nwcet = \"10 ms\"\nrequests = [{ resource = \"g\", length = \"1 ms\" }]\n";
    let ended = on(text, "check", &["--explain", "i", "--json"]);
    let result = &json(&ended)["results"][0];
    assert_eq!(ended.status, 1);
    let point = &result["tests"][0]["point"];
    assert_eq!((&point["interval_ns"], &point["due_ns"]), (&10_000_000.into(), &6_000_000.into()));
    assert_eq!((&point["blocking_ns"], &point["blocked_by"]["task"]), (&7_000_000.into(), &"j".into()));
    let tests = result["tests"].as_array().expect("tests");
    let names: Vec<_> = tests.iter().map(|test| (test["test"].as_str(), test["cpu"].as_u64())).collect();
    let (demand, program) = (Some("processor demand"), Some("linear program"));
    assert_eq!(names, [(demand, Some(0)), (program, Some(0)), (demand, Some(1))]);
    assert!(tests[2]["point"].is_null(), "the other CPU's demand fits");
    let blocked = &result["tasks"][0]["blocked_by"];
    assert_eq!((&blocked["task"], &blocked["resource"]), (&"j".into(), &"r".into()));
    assert_eq!((&blocked["length_ns"], &blocked["spin_ns"]), (&7_000_000.into(), &0.into()));
    assert!(result["tasks"][1].get("blocked_by").is_none(), "nobody has a later deadline than j");
    let terms = result["explain"]["terms"].as_array().expect("terms");
    let sum: u64 = terms.iter().map(|term| term["total_ns"].as_u64().expect("a time")).sum();
    assert_eq!((sum, &result["explain"]["interval_ns"]), (13_000_000, &10_000_000.into()));
    let text_of = on(text, "check", &["--explain", "i"]).out;
    assert!(text_of.contains("work of 13 ms is due, 7 ms of it the section of `j` on `r`"), "{text_of}");
    assert!(text_of.contains("every term of what is due on its CPU in 10 ms, which does not fit"), "{text_of}");
}

/// The classic test lets `i` wait for the section of `k` at each request; the program counts it once.
#[test]
fn linear_programs_prove_deadlines_under_edf() {
    let text = "[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"g\"\n\
        [[task]]\nname = \"i\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"4 ms\"\nrequests = [{ resource = \"g\", count = 4, length = \"1 ms\" }]\n\
        [[task]]\nname = \"k\"\ncpu = 1\nperiod = \"50 ms\"\nwcet = \"10 ms\"\nrequests = [{ resource = \"g\", length = \"2 ms\" }]\n";
    assert_eq!(on(text, "check", &["--bound", "classic"]).status, 1);
    let proved = on(text, "check", &["--explain", "i"]);
    assert_eq!((proved.status, proved.err.as_str()), (0, ""), "{}", proved.out);
    for part in ["proof", "linear program, CPU 0", "one test that accepts", "is spun for once", "10 ms, which fits"] {
        assert!(proved.out.contains(part), "{part}: {}", proved.out);
    }
    assert_eq!(on(text, "check", &["--bound", "lp", "--explain", "i"]).out, proved.out);
    let value = json(&on(text, "check", &["--json", "--explain", "i", "--sensitivity"]));
    let result = &value["results"][0];
    let proofs: Vec<_> = result["tasks"].as_array().expect("tasks").iter().map(|task| task["proof"].as_str()).collect();
    assert_eq!(proofs, [Some("lp"), Some("classic")]);
    let terms = result["explain"]["terms"].as_array().expect("terms");
    let sum: u64 = terms.iter().map(|term| term["total_ns"].as_u64().expect("a time")).sum();
    // 4 ms, and the sections of the two jobs of `k` that may execute within 10 ms.
    assert_eq!(sum, 8_000_000, "{terms:?}");
    assert_eq!(result["sensitivity"]["proof"], "classic");
    let grown = on(text, "check", &["--sensitivity"]);
    assert!(grown.out.contains("Sensitivity of the processor demand (`--bound classic`"), "{}", grown.out);
    assert_eq!(on(text, "check", &["--bound", "lp", "--sensitivity"]).status, 2);
    // A simulation has the same guarantee.
    let simulated = json(&on(text, "simulate", &["--json"]));
    assert!(simulated["results"][0]["tasks"].as_array().expect("tasks").iter().all(|task| task["proved"] == true));
    // Without a shared resource there is no program, and beside a late task none that proves anything.
    let alone = on(&text.replace("cpu = 1", "cpu = 0"), "check", &["--bound", "lp"]);
    assert!(alone.err.contains("no resource is shared across CPUs"), "{}", alone.err);
    let late = text.replace("period = \"50 ms\"", "period = \"50 ms\"\ndeadline = \"10 ms\"");
    let late = on(&late, "check", &[]);
    assert_eq!(late.status, 1);
    assert!(late.out.contains("it counts on the deadlines of `k`, which are not proved"), "{}", late.out);
}

/// Waits for a long resource count as execution, and what is not covered is said.
#[test]
fn long_resources_are_checked_under_edf() {
    let text = "protocol = \"fmlp_long\"\n[platform]\ncpus = 2\nscheduler = \"p-edf\"\n[[resource]]\nname = \"g\"\n[[resource]]\nname = \"h\"\n\
        [[task]]\nname = \"i\"\ncpu = 0\nperiod = \"20 ms\"\nwcet = \"4 ms\"\nrequests = [{ resource = \"g\", count = 2, length = \"1 ms\" }]\n\
        [[task]]\nname = \"j\"\ncpu = 0\nperiod = \"90 ms\"\nwcet = \"5 ms\"\nrequests = [{ resource = \"g\", length = \"3 ms\" }]\n\
        [[task]]\nname = \"k\"\ncpu = 1\nperiod = \"50 ms\"\nwcet = \"10 ms\"\nrequests = [{ resource = \"g\", length = \"2 ms\" }]\n";
    let value = json(&on(text, "check", &["--explain", "i", "--json", "--sensitivity"]));
    let result = &value["results"][0];
    assert_eq!((&result["protocol"], &result["schedulable"]), (&"fmlp_long".into(), &true.into()), "{value}");
    let terms = result["explain"]["terms"].as_array().expect("terms");
    let times: Vec<u64> = terms.iter().map(|term| term["total_ns"].as_u64().expect("a time")).collect();
    // Two sections of `k`, as two of its jobs may be pending, and of `j` in each of its two jobs; one more of `j`.
    assert_eq!(times, [4_000_000, 4_000_000, 6_000_000, 3_000_000], "{terms:?}");
    let simulated = json(&on(text, "simulate", &["--json"]));
    assert!(simulated["results"][0]["tasks"].as_array().expect("tasks").iter().all(|task| task["proved"] == true));
    let costs = crate::support::File::new("release_latency = \"1 us\"\n");
    let path = costs.path.to_str().expect("a path in UTF-8");
    for verb in ["check", "simulate", "run"] {
        let refused = on(text, verb, &["--overheads", path]);
        assert_eq!(refused.status, 2, "{verb}: {}{}", refused.out, refused.err);
        assert!(refused.err.contains("charges overheads to"), "{verb}: {}", refused.err);
    }
    // What is refused at once is not measured before.
    let refused = on(text, "verify", &["--remeasure"]);
    assert!(refused.status == 2 && refused.err.contains("charges overheads to"), "{}", refused.err);
    let others = on(text, "simulate", &["--overheads", path, "--protocol", "all"]);
    assert!(others.status == 0 && others.err.contains("left out: fmlp_long"), "{}", others.err);
    let ranked = json(&on(text, "check", &["--protocol", "all", "--json"]));
    assert!(ranked["results"].as_array().expect("results").iter().any(|one| one["protocol"] == "fmlp_long"));
    let alone = text.replacen("protocol = \"fmlp_long\"", "", 1);
    let named = alone.replace("name = \"g\"", "name = \"g\"\nprotocol = \"fmlp_long\"");
    assert_eq!(json(&on(&named, "check", &["--json"]))["results"][0]["protocol"], "fmlp_long");
    // A section of `j` blocks a job of `i`.
    let late = on(&text.replace("\"20 ms\"", "\"20 ms\"\ndeadline = \"15 ms\""), "check", &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&late.out).expect("JSON");
    let point = &value["results"][0]["tests"][0]["point"];
    assert_eq!(
        (late.status, &point["blocking_ns"], &point["blocked_by"]),
        (1, &3_000_000.into(), &().into()),
        "{value}"
    );
    assert!(value.to_string().contains("3 ms of it in sections of jobs with later deadlines"), "{value}");
    // Another resource across CPUs, under MSRP.
    let mixed = text.replace("name = \"h\"", "name = \"h\"\nprotocol = \"msrp\"");
    let mixed = mixed.replace("\"2 ms\" }]", "\"2 ms\" }, { resource = \"h\", length = \"1 ms\" }]");
    let mixed = mixed.replace("\"3 ms\" }]", "\"3 ms\" }, { resource = \"h\", length = \"1 ms\" }]");
    let refused = on(&mixed, "check", &[]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("no test here covers both in one system"), "{}", refused.err);
    assert_eq!(on(&mixed, "simulate", &[]).status, 0);
    // Another reason against a proof does not hide that nothing is charged.
    for other in [&mixed, &text.replace("period = \"90 ms\"", "period = \"90 ms\"\njitter = \"1 us\"")] {
        let refused = on(other, "simulate", &["--overheads", path]);
        assert!(refused.status == 2 && refused.err.contains("charges overheads to"), "{}", refused.err);
    }
    let nested = on(text, "run", &["--sched-deadline"]);
    assert!(nested.err.contains("the kernel's EDF does not support"), "{}", nested.err);
}

/// If the tests prove deadlines with overheads charged, the jobs with these overheads meet them in a simulation. Jobs
/// with twice the overheads do not always.
#[test]
fn charged_jobs_meet_proved_deadlines() {
    let (mut proved, mut refuted) = (0, 0);
    for seed in 0..1_500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let shape =
            Shape { cpus: (1, 3), tasks: (2, 5), jitter: 0, nested: 0, utilization: (30, 90), ..Shape::small() };
        let system = generate(&mut random, &shape).under(Scheduler::PEdf);
        let mut overheads = Overheads::default();
        overheads.tick_period = Duration::from_ns(random.u64(20..200));
        for of in Overhead::ALL.into_iter().filter(|_| random.bool()).collect::<Vec<_>>() {
            overheads.set(of, Cost::constant(Duration::from_ns(random.u64(0..3))));
        }
        let mut twice = overheads.clone();
        Overhead::ALL.into_iter().for_each(|of| {
            let cost = overheads.cost(of).with(1);
            twice.set(of, Cost::constant(cost + cost));
        });
        if !best_scheduled(&system, &overheads).is_ok_and(|(found, _)| found.schedulable) {
            continue;
        }
        proved += 1;
        let misses = |overheads: &Overheads| -> Option<u64> {
            let charged = charge_by_deadline(&system, overheads).ok()?;
            let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
            let run = |(run, offsets): (u64, Offsets)| {
                let config = Config::default().with_offsets(offsets).with_seed(seed + run);
                let mut simulation = Simulation::new(&charged, &config.with_protocol(Protocol::Msrp), ());
                simulation.run_until(Instant::from_ns(longest * 10));
                simulation.observations().iter().map(|seen| seen.misses).sum::<u64>()
            };
            Some([(0, Offsets::Synchronous), (1, Offsets::Random), (2, Offsets::Random)].into_iter().map(run).sum())
        };
        assert_eq!(misses(&overheads), Some(0), "seed {seed}");
        // Twice the overheads may leave no time at all.
        refuted += u64::from(misses(&twice).unwrap_or(0) > 0);
    }
    println!("{proved} proved; with twice the overheads, {refuted} of them miss a deadline");
    assert!(proved > 50 && refuted * 8 > proved, "{proved} {refuted}");
}
