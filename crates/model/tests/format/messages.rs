//! The messages of the main faults of a file, and the places they point to.

use lockwright_model::format::{
    Diagnostic, Diagnostics, Placing, import_rt_app, parse_overheads, parse_placed_bytes, parse_system, write_system,
};

/// A system of two CPUs, one resource and two tasks. The lines of the second task follow it.
const FRAME: &str = "\
[platform]
cpus = 2
[[resource]]
name = \"bus\"
[[task]]
name = \"camera\"
cpu = 0
period = \"10 ms\"
wcet = \"1 ms\"
[[task]]
name = \"motor\"
";
const REST: &str = "cpu = 1\nperiod = \"10 ms\"\n";

/// Returns the faults as text: place, message and help.
fn faults(source: &str, read: Result<(), Diagnostics>) -> Vec<String> {
    let told = |fault: &Diagnostic| match fault.line_column(source) {
        Some((line, column)) => format!("{line}:{column}: {fault}"),
        None => fault.to_string(),
    };
    read.expect_err(source).iter().map(told).collect()
}

#[track_caller]
fn check(source: &str, wanted: &[&str]) {
    assert_eq!(faults(source, parse_system(source).map(drop)), wanted, "\n{source}");
}

/// Checks the faults of the second task, whose own lines begin at line 12.
#[track_caller]
fn check_task(lines: &str, wanted: &[&str]) {
    check(&format!("{FRAME}{lines}"), wanted);
}

#[test]
fn the_frame_is_valid() {
    assert!(parse_system(&format!("{FRAME}{REST}wcet = \"1 ms\"\n")).is_ok());
}

#[test]
fn files_without_tasks() {
    check("", &["the system has no tasks; add at least one [[task]]"]);
    check("task = []", &["1:8: the system has no tasks; add at least one [[task]]"]);
    check(
        "[task]\nname = \"x\"",
        &["1:2: `task` is one table, but there may be many; write [[task]], with two brackets"],
    );
}

#[test]
fn names_and_words() {
    check_task(
        "cpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\nrequests = [{ resource = \"buss\", length = \"1 us\" }]",
        &["15:26: task `motor` requests `buss`, which is not declared; did you mean `bus`?"],
    );
    check_task(
        &format!("{REST}body = [{{ lock = \"pump\" }}, {{ run = \"1 ms\" }}]"),
        &["14:18: task `motor` locks `pump`, which is not declared; declare it: [[resource]] with that name"],
    );
    check_task(
        &format!("{REST}wcet = \"1 ms\"\ndaedline = \"5 ms\"\nzebra = 1"),
        &[
            "15:1: unknown key `daedline` in task `motor`; did you mean `deadline`?",
            "16:1: unknown key `zebra` in task `motor`; the keys here are name, period, deadline, jitter, offset, wcet, \
             priority, cpu, cpus, working_set_kib, requests, body",
        ],
    );
    check_task(
        &format!("{REST}wcet = \"1 ms\"\nworking_set_kib = -1"),
        &["15:19: the working set of task `motor`, in KiB, is `-1`; it must be from 0 to 1073741824"],
    );
    check_task(
        &format!("{REST}wcet = \"1 ms\"\nworking_set_kib = \"1 MiB\""),
        &[
            "15:19: the working set of task `motor`, in KiB, is a string, but should be a whole number; write a number from 0 to 1073741824, without quotes",
        ],
    );
    check_task(&format!("{REST}wect = \"1 ms\""), &["14:1: unknown key `wect` in task `motor`; did you mean `wcet`?"]);
    check_task(
        &format!("{REST}wcet = \"1 ms\"\n[[task]]\nname = \"motor\"\n{REST}wcet = \"1 ms\""),
        &["16:8: two tasks have the name `motor`; names are unique"],
    );
    check(
        "protocol = \"mpcpp\"\ntask = 1",
        &[
            "1:12: there is no protocol `mpcpp`; did you mean `mpcp`?",
            "2:8: `task` is a whole number, but should be a list; write each as [[task]]",
        ],
    );
    check(
        &FRAME.replace("cpus = 2", "cpus = 2\nscheduler = \"gedf\"").replace("[[task]]\nname = \"motor\"\n", ""),
        &["3:13: there is no scheduler `gedf`; did you mean `g-edf`?"],
    );
    check_task(
        &format!("{REST}period = \"2 ms\"\nwcet = \"1 ms\""),
        &["14:1: the key `period` is given twice; keep one of them"],
    );
}

#[test]
fn numbers_and_durations() {
    for (line, fault) in [
        ("wcet = 10", "14:8: the wcet of task `motor` has no unit; write it with a unit, in quotes, such as \"10 us\""),
        (
            "wcet = 1.5",
            "14:8: the wcet of task `motor` has no unit; write it with a unit, in quotes, such as \"1.5 ms\"",
        ),
        (
            "wcet = \"10\"",
            "14:8: the wcet of task `motor`, `10`, is not a duration; a duration needs a unit: ns, us, ms, s, min or h",
        ),
        (
            "wcet = nan",
            "14:8: the wcet of task `motor`, `nan`, is not a duration; a duration is a finite number and a unit, such as \"15 us\"",
        ),
        (
            "wcet = \"1e3 ms\"",
            "14:8: the wcet of task `motor`, `1e3 ms`, is not a duration; write the number without an exponent, such as \"1000 ms\" for 1e3 ms",
        ),
        (
            "wcet = 1e3",
            "14:8: the wcet of task `motor`, `1e3`, is not a duration; write the number without an exponent, such as \"1000 ms\" for 1e3 ms",
        ),
        ("wcet = \"-1 ms\"", "14:8: the wcet of task `motor` is negative; a duration is at least 0"),
        (
            "wcet = \"99999999999 s\"",
            "14:8: the wcet of task `motor`, `99999999999 s`, is not a duration; a duration is at most 10^15 ns \
             (eleven and a half days)",
        ),
        ("wcet = \"0 ms\"", "14:8: the wcet of task `motor` is zero; it must be positive"),
        (
            "wcet = []",
            "14:8: the wcet of task `motor` is a list, but should be a duration; a duration is a string, for example \"10 ms\"",
        ),
        (
            "wcet = \"1 ms\"\npriority = 99999999999999999999999",
            "15:12: the priority of task `motor` is `99999999999999999999999`; it must be from 0 to 65535",
        ),
        (
            "wcet = \"1 ms\"\noffset = true",
            "15:10: the offset of task `motor` is true or false, but should be a duration; a duration is a string, for example \"10 ms\"",
        ),
        (
            "wcet = \"1 ms\"\ndeadline = \"11 ms\"",
            "15:12: the deadline of task `motor`, 11 ms, is beyond its period, 10 ms; deadlines beyond periods are not \
             supported: set the deadline to at most the period",
        ),
        (
            "wcet = \"1 ms\"\njitter = \"10 ms\"",
            "15:10: the jitter of task `motor`, 10 ms, uses up its deadline, 10 ms; a job released after its deadline \
             can never meet it: lower the jitter",
        ),
    ] {
        let all = faults_of_task(line);
        assert!(all.contains(&fault.to_string()), "{line}: {all:#?}");
    }
    check(
        "[platform]\ncpus = 0",
        &[
            "the system has no tasks; add at least one [[task]]",
            "2:8: the number of CPUs is `0`; it must be from 1 to 64",
        ],
    );
}

fn faults_of_task(line: &str) -> Vec<String> {
    let source = format!("{FRAME}{REST}{line}");
    faults(&source, parse_system(&source).map(drop))
}

#[test]
fn processors() {
    check_task(
        "period = \"10 ms\"\nwcet = \"1 ms\"",
        &["11:8: task `motor` has no cpu; the platform has 2 CPUs: add cpu = 0 to 1"],
    );
    check_task(
        "period = \"10 ms\"\nwcet = \"1 ms\"\ncpu = 2",
        &["14:7: the CPU of task `motor` is `2`; it must be from 0 to 1"],
    );
}

#[test]
fn bodies_and_requests() {
    for (lines, fault) in [
        ("", "11:8: task `motor` has no wcet; add a wcet, for example wcet = \"1 ms\", or a body"),
        (
            "wcet = \"1 ms\"\nrequests = []\nbody = [{ run = \"1 ms\" }]",
            "15:1: task `motor` has both a body and requests; the body contains the critical sections: remove the requests",
        ),
        (
            "wcet = \"2 ms\"\nbody = [{ run = \"1 ms\" }]",
            "14:8: the runs of task `motor` add up to 1 ms, but its wcet is 2 ms; make them equal, or leave the wcet out",
        ),
        (
            "wcet = \"1 ms\"\nrequests = [{ resource = \"bus\", length = \"2 ms\" }]",
            "15:13: a section of task `motor` takes 2 ms, longer than the whole job, 1 ms; sections are part of the wcet",
        ),
        (
            "wcet = \"1 ms\"\nrequests = [{ resource = \"bus\", count = 3, length = \"400 us\" }]",
            "15:12: the sections of task `motor` take 1.2 ms together, longer than the whole job, 1 ms; sections are part \
             of the wcet",
        ),
        (
            "wcet = \"1 ms\"\nrequests = [{ resource = \"bus\", count = 4096, length = \"1 ns\" }]",
            "15:12: task `motor` has too many sections; a body has at most 4096 steps, and a section takes four",
        ),
        (
            "wcet = \"1 ms\"\nrequests = [{ resource = \"bus\" }]",
            "15:13: a request of task `motor` has no length; a request is { resource = \"name\", count = 1, length = \"15 us\" }",
        ),
        (
            "body = [{ lock = \"bus\" }, { run = \"1 ms\" }]",
            "14:9: task `motor` never unlocks `bus`; unlock it before the job ends",
        ),
        (
            "body = [{ run = \"1 ms\" }, { lock = \"bus\" }, { unlock = \"bus\" }]",
            "14:45: the section of task `motor` on `bus` is empty; put a run between lock and unlock",
        ),
        ("body = []", "14:8: the body of task `motor` is empty; a job runs at least once: { run = \"1 ms\" }"),
        (
            "body = [{ run = \"1 ms\", lock = \"bus\" }]",
            "14:9: a step of task `motor` has several keys; write one step for each key",
        ),
    ] {
        assert_eq!(faults_of_task(lines), [fault], "{lines}");
    }
}

#[test]
fn nested_locks_in_a_cycle_are_named() {
    let nested = |name: &str, outer: &str, inner: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"9 ms\"\nbody = [{{ lock = \"{outer}\" }}, {{ lock = \"{inner}\" }}, \
             {{ run = \"1 ms\" }}, {{ unlock = \"{inner}\" }}, {{ unlock = \"{outer}\" }}]\n"
        )
    };
    let source = format!(
        "resource = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{}{}",
        nested("one", "a", "b"),
        nested("two", "b", "a")
    );
    check(
        &source,
        &[
            "5:25: these nested locks can deadlock: `one` locks `b` while holding `a`, `two` locks `a` while holding `b`; \
         take the resources in the same order everywhere",
        ],
    );
}

#[test]
fn priorities_are_all_given_or_all_derived() {
    let both = "wcet = \"1 ms\"\n";
    check_task(
        &format!("{REST}{both}priority = 3"),
        &["6:8: task `motor` gives a priority, but task `camera` does not; give every task a priority, or none"],
    );
    let platform = |policy: &str, lines: &str| {
        format!("{}{REST}{both}{lines}", FRAME.replace("cpus = 2", &format!("cpus = 2\npriorities = \"{policy}\"")))
    };
    check(
        &platform("explicit", ""),
        &["7:8: task `camera` has no priority; priorities = \"explicit\" needs a priority for every task"],
    );
    check(
        &platform("rate-monotonic", "priority = 3"),
        &["16:12: task `motor` gives a priority, but the platform assigns them all; remove the priority, or set \
         priorities = \"explicit\""],
    );
    check(
        &platform("rate-monotone", ""),
        &["3:14: there is no priority assignment `rate-monotone`; did you mean `rate-monotonic`?"],
    );
    assert!(parse_system(&platform("deadline-monotonic", "")).is_ok());
}

#[test]
fn clusters() {
    let file = |platform: &str, resource: &str, lines: [&str; 2]| {
        let [one, other] = lines.map(|line| format!("{line}\nperiod = \"1 ms\"\nwcet = \"1 us\"\n"));
        format!(
            "{platform}\n[[resource]]\nname = \"bus\"\n{resource}\n[[task]]\nname = \"camera\"\n{one}[[task]]\nname = \"motor\"\n{other}"
        )
    };
    let platform = "[platform]\ncpus = 4\nscheduler = \"c-fp\"";
    let system = parse_system(&file(platform, "", ["cpus = [2, 0]", "cpu = 1"])).unwrap();
    let cpus = |task: usize| system.cpus_of(lockwright_model::TaskId::new(task)).map(|cpu| cpu.0).collect::<Vec<_>>();
    assert_eq!((cpus(0), cpus(1), system.has_clusters()), (vec![0, 2], vec![1], true));
    assert_eq!(parse_system(&write_system(&system)).as_ref(), Ok(&system));
    // A cluster of one CPU is just a CPU.
    let alone = parse_system(&file(platform, "protocol = \"mpcp\"", ["cpus = [2]", "cpu = 1"])).unwrap();
    assert!(!alone.has_clusters());
    assert_eq!(parse_system(&write_system(&alone)).as_ref(), Ok(&alone));

    for (lines, fault) in [
        (["cpus = []", "cpu = 1"], "9:8: task `camera` has no CPU; write it as cpus = [0, 1]"),
        (["cpus = [0, 0]", "cpu = 1"], "9:12: task `camera` has CPU 0 twice; name each CPU once"),
        (["cpus = [0, 4]", "cpu = 1"], "9:12: a CPU of task `camera` is `4`; it must be from 0 to 3"),
        (
            ["cpus = 2", "cpu = 1"],
            "9:8: `cpus` of task `camera` is a whole number, but should be a list; write it as cpus = [0, 1]",
        ),
        (["cpu = 0\ncpus = [0, 1]", "cpu = 1"], "10:8: task `camera` has both `cpu` and `cpus`; remove one of them"),
        (
            ["cpus = [0, 1]", "cpus = [1, 2]"],
            "14:8: tasks `camera` and `motor` share some of their CPUs, but not all; clusters do not overlap: give both the same CPUs, or no common one",
        ),
    ] {
        check(&file(platform, "", lines), &[fault]);
    }
    for scheduler in ["p-fp", "p-edf", "g-edf"] {
        let platform = format!("[platform]\ncpus = 4\nscheduler = \"{scheduler}\"");
        let (mine, other) = ("cpus = [0, 1]", if scheduler == "g-edf" { "" } else { "cpu = 1" });
        let fault = format!(
            "9:8: task `camera` has a cluster of CPUs, but the scheduler is `{scheduler}`; set scheduler = \"c-fp\" in [platform], or give the task one CPU: cpu = 0"
        );
        check(&file(&platform, "", [mine, other]), &[&fault]);
    }
    let both = ["cpus = [0, 1]", "cpus = [0, 1]"];
    let fault = "`mpcp` does not support clusters of several CPUs; use `omlp`, or give each task one CPU";
    check(&file(platform, "protocol = \"mpcp\"", both), &[&format!("6:12: {fault}")]);
    check(&file(&format!("protocol = \"mpcp\"\n{platform}"), "", both), &[&format!("1:12: {fault}")]);
}

#[test]
fn under_a_global_scheduler_tasks_have_no_cpu() {
    let file = |scheduler: &str, line: &str| {
        format!(
            "[platform]\ncpus = 2\nscheduler = \"{scheduler}\"\n[[task]]\nname = \"motor\"\n{line}\nperiod = \"1 ms\"\nwcet = \"1 us\"\n"
        )
    };
    for scheduler in ["g-edf", "g-fp"] {
        let system = parse_system(&file(scheduler, "")).unwrap();
        assert_eq!(system.scheduler().name(), scheduler);
        assert_eq!(parse_system(&write_system(&system)), Ok(system));
    }
    // One file serves every scheduler. CPUs in it are read, and mean nothing under this one.
    for (placing, line, placed) in
        [(Placing::File, "cpu = 1", 1), (Placing::File, "", 0), (Placing::Caller, "cpu = 1", 1)]
    {
        let read = parse_placed_bytes(file("g-fp", line).as_bytes(), placing).unwrap();
        assert_eq!((read.placed, read.system.cpus()), (placed, 2), "{line}");
        assert_eq!(parse_system(&write_system(&read.system)), Ok(read.system));
    }
    check(&file("g-fp", "cpu = 2"), &["6:7: the CPU of task `motor` is `2`; it must be from 0 to 1"]);
    // If the caller places the tasks, they need no CPU. A CPU in the file is still read.
    let read = parse_placed_bytes(file("p-edf", "").as_bytes(), Placing::Caller).unwrap();
    assert_eq!((read.placed, read.system.tasks()[0].cpu.0), (0, 0));
    let read = parse_placed_bytes(file("p-edf", "cpu = 1").as_bytes(), Placing::Caller).unwrap();
    assert_eq!((read.placed, read.system.tasks()[0].cpu.0), (1, 1));
    assert!(parse_placed_bytes(file("p-edf", "cpu = 2").as_bytes(), Placing::Caller).is_err());
    check(&file("p-edf", ""), &["5:8: task `motor` has no cpu; the platform has 2 CPUs: add cpu = 0 to 1"]);
}

#[test]
fn overheads_files() {
    for (source, wanted) in [
        ("lok = \"1 us\"", "1:1: unknown key `lok` in an overheads file; did you mean `lock`?"),
        ("lock = 5", "1:8: `lock` has no unit; write it with a unit, in quotes, such as \"5 us\""),
        (
            "release = [[10]]",
            "1:12: a point of `release` has 1 parts; write [10, \"1 us\"]: the number of tasks and the duration",
        ),
        (
            "release = [[10, \"1 us\"], [4, \"2 us\"]]",
            "1:11: the points of `release` are not in order; give at least one point, in increasing order of the number of tasks",
        ),
        (
            "release = []",
            "1:11: the points of `release` are not in order; give at least one point, in increasing order of the number of tasks",
        ),
        ("[lock.spr]\nlock = \"1 us\"", "1:7: unknown key `spr` in `lock`; did you mean `srp`?"),
        ("unlock = \"1 us\"\n[lock.srp]\nlok = \"1 us\"", "3:1: unknown key `lok` in `lock.srp`; did you mean `lock`?"),
        (
            "[lock.srp]\nrelease = \"1 us\"",
            "2:1: unknown key `release` in `lock.srp`; the keys here are ipi_latency, lock, unlock, leave_section, syscall_in, syscall_out",
        ),
        (
            "[lock]\nsrp = \"1 us\"",
            "2:7: `lock.srp` is a string, but should be a table; write [lock.srp], and below it lock = \"1 us\"",
        ),
        ("[object.heep]\nlock_free = \"1 us\"", "1:9: unknown key `heep` in `object`; did you mean `heap`?"),
        (
            "[object.heap]\nlock_fre = \"1 us\"",
            "2:1: unknown key `lock_fre` in `object.heap`; did you mean `lock_free`?",
        ),
        (
            "[object]\nqueue = \"1 us\"",
            "2:9: `object.queue` is a string, but should be a table; write [object.queue], and below it lock_free = [[2, \"1 us\"]]",
        ),
        (
            "[object.buffer]\nwait_free = [[4, \"2 us\"], [2, \"1 us\"]]",
            "2:13: the points of `wait_free` are not in order; give at least one point, in increasing order of the number of tasks",
        ),
        (
            "[object.buffer]\nwait_free = [[\"2 us\"]]",
            "2:14: a point of `wait_free` has 1 parts; write [8, \"1 us\"]: the number of tasks that share the object and the duration",
        ),
        ("[lock.srp]\nunlock = 7", "2:10: `unlock` has no unit; write it with a unit, in quotes, such as \"7 us\""),
        (
            "dedicated_interrupts = 1",
            "1:24: `dedicated_interrupts` is a whole number, but should be true or false; write true or false, without quotes",
        ),
        (
            "tick = \"5 ms\"\ntick_period = \"4 ms\"",
            "1:8: `tick` takes 5 ms, and `tick_period` is only 4 ms; a tick is shorter than its period; check the units",
        ),
        (
            "tick_period = \"4 ms\"\ntick = [[2, \"4 ms\"], [4, \"5 ms\"]]",
            "2:8: `tick` takes 4 ms, and `tick_period` is only 4 ms; a tick is shorter than its period; check the units",
        ),
        ("tick = \"2 us\"", "1:8: tick has a cost and no period; add tick_period, for example tick_period = \"1 ms\""),
    ] {
        assert_eq!(faults(source, parse_overheads(source).map(drop)), [wanted]);
    }
    assert!(parse_overheads("").is_ok(), "nothing takes time");
    assert!(parse_overheads("tick = [[2, \"1 ms\"], [4, \"5 ms\"]]\ntick_period = \"4 ms\"").is_ok(), "for few tasks");
}

#[test]
fn unwise_files_are_accepted() {
    // The load is beyond the capacity of the CPU, and two tasks
    // have the same priority. The analysis has a verdict on both.
    let task =
        |name: &str| format!("[[task]]\nname = \"{name}\"\nperiod = \"1 ms\"\nwcet = \"900 us\"\npriority = 7\n");
    assert!(parse_system(&(task("a") + &task("b"))).is_ok());
    // A section may fill the whole execution time.
    assert!(
        parse_system(&format!(
            "{FRAME}{REST}wcet = \"1 ms\"\nrequests = [{{ resource = \"bus\", length = \"1 ms\" }}]"
        ))
        .is_ok()
    );
}

#[test]
fn every_task_reports_its_own_fault() {
    let task = |name: &str| format!("[[task]]\nname = \"{name}\"\nperiod = \"1 ms\"\nwcet = \"0 ms\"\n");
    let source = task("a") + &task("b");
    assert_eq!(faults(&source, parse_system(&source).map(drop)).len(), 2);
}

#[test]
fn rt_app_faults_name_the_event() {
    let thread = |events: &str| format!("{{ \"tasks\" : {{ \"t\" : {{ {events} }} }} }}");
    let timer = "\"timer\" : { \"period\" : 100 }";
    for (events, fault) in [
        ("\"run\" : 1", "1:15: thread `t` has no timer, and so no period; end its loop with \"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }".to_string()),
        ("\"run\" : 1, \"sleep\" : 9", "1:34: thread `t` has the event `sleep`; a job cannot sleep: give the thread a timer".into()),
        ("\"rum\" : 1", "1:23: unknown key `rum` in thread `t`; did you mean `run`?".into()),
        ("\"exec\" : 1", "1:23: unknown key `exec` in thread `t`; it cannot be imported: remove it".into()),
        (&format!("\"run\" : 1, {timer}, \"run\" : 1"), "1:34: the timer of thread `t` is between its events; put it at the end of the loop".into()),
        (&format!("\"cpus\" : [0, 1], \"run\" : 1, {timer}"), "1:32: thread `t` may run on 2 CPUs; tasks stay on one CPU: name it, [0]".into()),
        (&format!("\"run\" : \"1\", {timer}"), "1:31: `run` is not a whole number from 0 to 1000000000000".into()),
        (&format!("\"policy\" : \"SCHED_DEADLNE\", \"run\" : 1, {timer}"), "1:34: the policy `SCHED_DEADLNE` cannot be imported; did you mean `SCHED_DEADLINE`?".into()),
        (&format!("\"policy\" : \"SCHED_DEADLINE\", \"run\" : 1, {timer} }}, \"u\" : {{ \"run\" : 1, {timer}"), "1:95: thread `u` is not under SCHED_DEADLINE, unlike `t`; a task set has one scheduler: give all threads SCHED_DEADLINE, or none".into()),
        (&format!("\"policy\" : \"SCHED_DEADLINE\", \"cpus\" : [1], \"run\" : 1, {timer} }}, \"u\" : {{ \"policy\" : \"SCHED_DEADLINE\", \"run\" : 1, {timer}"), "1:109: thread `u` names no CPU, unlike `t`; under SCHED_DEADLINE give each thread a CPU (p-edf), or none (g-edf)".into()),
        (&format!("\"policy\" : \"SCHED_DEADLINE\", \"instance\" : 65, \"run\" : 100, {timer}"), "1:15: the threads have a utilization of 65 CPUs; at most 64 CPUs are supported: remove threads, or shorten their runs".into()),
        (&format!("\"lock\" : \"m\", \"run\" : 1, {timer}"), "1:32: task `t` never unlocks `m`; unlock it before the job ends".into()),
    ] {
        let source = thread(events);
        let all = faults(&source, import_rt_app(&source).map(drop));
        assert!(all.contains(&fault), "{source}: {all:#?}");
    }
}
