//! Every run ends: overloaded, interrupted, or with scripted changes.

use crate::judge::{Attempt, Lost, require, scale};
use crate::support::{
    R, as_nested_as, expect, fault, for_each_protocol, require_cpus, require_realtime, run_us, run_with, stop_after,
    system, task, unfinished, us, violation,
};
use lockwright::tasks::MachineError;
use lockwright_engine::observe::{Gap, losses};
use lockwright_engine::{Control, Ended, PriorityChange, RunConfig, RunError};
use lockwright_model::{
    Duration, Event, Instant, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sys::sched;

/// A system that demands more than one CPU can execute, mostly inside sections.
fn overloaded() -> System {
    let tasks = (0..4).map(|index: usize| {
        let body = vec![
            Step::Lock(R),
            run_us(5_000),
            Step::Lock(ResourceId(1)),
            run_us(3_000),
            Step::Unlock(ResourceId(1)),
            Step::Unlock(R),
        ];
        task(&format!("t{index}"), index % 2, 4 - index as u32, 10_000 + index as u64 * 1_000, body)
    });
    system(2, 2, tasks.collect())
}

#[test]
fn an_overloaded_run_ends() {
    let Some(_machine) = require_cpus(2) else { return };
    let length = Duration::from_ms(for_each_protocol(90));
    for protocol in Protocol::ALL {
        let system = as_nested_as(protocol, &overloaded());
        // The longest deadline, and the time for draining. The watchdog is above all tasks and enforces it, but the
        // host may stop its CPU.
        let limit = length + Duration::from_ms(210 * scale());
        let attempt = || {
            let outcome = run_with(&system, &RunConfig::new(protocol, length));
            println!("{protocol}: {:?} after {}", outcome.ended, outcome.elapsed);
            outcome
        };
        let in_time = (0..3).map(|_| attempt()).find(|outcome| outcome.elapsed < limit);
        let outcome = in_time.unwrap_or_else(|| panic!("{protocol}: three runs took more than {limit}"));
        assert_eq!(outcome.ended, Ended::Watchdog, "{protocol}");
        assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
        assert!(outcome.tasks.iter().any(|task| task.observation.misses > 0), "{protocol}");
        let held = |event: fn(&Event) -> bool| outcome.records.iter().filter(|record| event(&record.event)).count();
        let (acquired, released) =
            (held(|event| matches!(event, Event::Acquire(_))), held(|event| matches!(event, Event::Release(_))));
        assert_eq!(acquired, released, "{protocol}: not every acquired resource was released");
        for task in outcome.records.iter().filter(|record| record.event == Event::Arrive) {
            assert!(task.at < Instant::ZERO + length, "a job arrived after the end");
        }
    }
}

/// The time within which a run ends after a stop, if its tasks have their CPUs.
const AT_ONCE: Duration = Duration::from_ms(100);

#[test]
fn stop_ends_a_run_at_once() {
    let Some(_machine) = require_cpus(2) else { return };
    let mut tasks = overloaded().tasks().to_vec();
    tasks.push({
        let mut sleeper = task("sleeper", 0, 9, 60_000_000, vec![run_us(10)]);
        sleeper.offset = us(30_000_000);
        sleeper
    });
    let system = system(2, 2, tasks);
    for protocol in Protocol::ALL {
        let system = as_nested_as(protocol, &system);
        require(protocol.name(), || {
            let control = Control::new();
            let stopper = stop_after(Duration::from_ms(60), &control);
            let config = RunConfig { watch: true, ..RunConfig::new(protocol, Duration::from_ms(60_000)) };
            let start = std::time::Instant::now();
            let outcome = lockwright_engine::run(&system, &config, &control).expect("a run");
            let (before, after) = stopper.join().expect("the stopper ends");
            let took = outcome.elapsed.saturating_sub(before);
            println!("{protocol}: ended after {}, {took} after the stop", outcome.elapsed);
            assert_eq!(outcome.ended, Ended::Interrupted, "{protocol}");
            assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
            assert!(start.elapsed().as_secs() < 30, "{protocol}: {:?}", start.elapsed());
            if took < AT_ONCE {
                return Attempt::Holds;
            }
            let fault = format!("the run ended {took} after the stop");
            // The kernel or the host may keep the stopper from a CPU.
            let stalled = after.saturating_sub(before);
            if stalled >= Duration::from_ms(1) {
                return Attempt::Disturbed { fault, by: format!("a stopper that got no CPU for {stalled}") };
            }
            // The kernel may throttle the tasks: they are ready after the stop, and their CPU executes none of them.
            let stop = Instant::ZERO + before;
            let after_stop = |gap: &Gap| gap.until.max(stop).since(gap.from.max(stop));
            let lost = losses(&system, &outcome.records).iter().map(after_stop).max().unwrap_or_default();
            match lost + AT_ONCE > took {
                true => Attempt::Disturbed { fault, by: Lost::of(&system, &outcome).by },
                false => Attempt::Fails(fault),
            }
        });
    }
}

#[test]
fn a_stopped_handle_runs_nothing() {
    let Some(_machine) = require_realtime() else { return };
    let system = system(1, 0, vec![task("t", 0, 1, 10_000, vec![run_us(1_000)])]);
    let control = Control::new();
    control.stop();
    let config = RunConfig::new(Protocol::None, Duration::from_ms(60_000));
    let outcome = lockwright_engine::run(&system, &config, &control).expect("a run");
    assert_eq!((outcome.ended, outcome.tasks[0].observation.jobs), (Ended::Interrupted, 0));
    // Otherwise a CPU was not free, and the run ended after its start.
    if outcome.elapsed == Duration::ZERO {
        assert_eq!(outcome.records, [], "a job arrived before the start");
    }
}

/// The names of the threads of runs, and whether they block SIGINT and SIGTERM.
fn threads_of_runs() -> Vec<(String, bool)> {
    const SIGNALS: u64 = 1 << (2 - 1) | 1 << (15 - 1);
    let of_entry = |entry: std::fs::DirEntry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
        let blocked = u64::from_str_radix(blocked.trim(), 16).ok()?;
        name.starts_with("lockwright-").then(|| (name.trim().to_owned(), blocked & SIGNALS == SIGNALS))
    };
    std::fs::read_dir("/proc/self/task").expect("proc").flatten().filter_map(of_entry).collect()
}

/// A handler of the program would execute above all tasks.
#[test]
fn threads_of_a_run_block_all_signals() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = system(1, 0, vec![task("t", 0, 1, 10_000, vec![run_us(100)])]);
    let config = RunConfig::new(Protocol::None, Duration::from_ms(20));
    let over = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = std::collections::BTreeMap::new();
            // BOUND: the runs below.
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                for (name, blocks) in threads_of_runs() {
                    *seen.entry(name).or_insert(true) &= blocks;
                }
            }
            seen
        });
        // The first thread of a run lives for some milliseconds.
        for _ in 0..10 {
            run_with(&system, &config);
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        watch.join().expect("it does not panic")
    });
    // The kernel keeps 15 bytes of a name.
    let expected = ["lockwright-cali", "lockwright-watc"].map(|name| (name.to_owned(), true));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

/// A thread of another program that keeps this CPU busy at this level. Returns when it does.
///
/// BOUND: `time`.
fn burner(cpu: usize, level: u8, time: std::time::Duration) -> std::thread::JoinHandle<()> {
    let (begins, begun) = std::sync::mpsc::channel();
    let burner = std::thread::spawn(move || {
        sched::set_fifo(sched::gettid(), level).expect("permission was checked");
        sched::set_affinity(sched::gettid(), &[cpu]).expect("the CPU exists");
        begins.send(()).expect("the test waits");
        let begin = std::time::Instant::now();
        while begin.elapsed() < time {}
    });
    begun.recv().expect("the thread begins");
    burner
}

/// The set-up has no watchdog yet. A thread of another program, above the lowest levels, keeps a CPU meanwhile.
#[test]
fn a_busy_cpu_does_not_delay_the_set_up() {
    let Some(_machine) = require_cpus(2) else { return };
    let first = sched::affinity().expect("the thread exists")[0];
    let burner = burner(first, 3, std::time::Duration::from_secs(3));
    let elsewhere = system(2, 0, vec![task("t", 1, 1, 10_000, vec![run_us(1_000)])]);
    let outcome = run_with(&elsewhere, &RunConfig::new(Protocol::None, Duration::from_ms(50)));
    let burns = !burner.is_finished();
    burner.join().expect("it does not panic");
    assert_eq!(outcome.ended, Ended::Completed);
    assert!(burns, "the run waited for the end of the other program");
}

/// A thread of another program is above all tasks, and keeps the CPU of one.
#[test]
fn a_run_below_another_program_ends() {
    let Some(_machine) = require_cpus(2) else { return };
    let system = system(1, 0, vec![task("t", 0, 1, 10_000, vec![run_us(1_000)])]);
    let first = sched::affinity().expect("the thread exists")[0];
    let burner = burner(first, 50, std::time::Duration::from_secs(6));
    let config = RunConfig::new(Protocol::None, Duration::from_ms(50));
    // The task does not end before it is demoted, and then only if the kernel gives ordinary threads their share.
    let result = lockwright_engine::run(&system, &config, &Control::new());
    let burns = !burner.is_finished();
    burner.join().expect("it does not panic");
    assert!(burns, "the run waited for the end of the other program");
    match result {
        Ok(outcome) => assert_eq!(outcome.ended, Ended::Watchdog),
        Err(error) => assert_eq!(error, RunError::Stuck { tasks: vec![TaskId(0)] }),
    }
}

/// A handler of the caller may stop the run while its threads get ready.
#[test]
fn the_caller_handles_signals_during_the_set_up() {
    let Some(_machine) = require_cpus(2) else { return };
    let second = sched::affinity().expect("the thread exists")[1];
    let system = system(2, 0, vec![task("t", 1, 1, 10_000, vec![run_us(1_000)])]);
    let burner = burner(second, 99, std::time::Duration::from_secs(4));
    let (control, (tell, told)) = (Control::new(), std::sync::mpsc::channel());
    let (is_blocked, result) = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            tell.send(sched::gettid()).expect("the test waits");
            lockwright_engine::run(&system, &RunConfig::new(Protocol::None, Duration::from_ms(50)), &control)
        });
        let caller_id = told.recv().expect("the caller begins");
        std::thread::sleep(std::time::Duration::from_millis(500));
        let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", caller_id.0)).expect("it waits");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
        control.stop();
        (u64::from_str_radix(blocked.trim(), 16).expect("a number") != 0, caller.join().expect("it does not panic"))
    });
    burner.join().expect("it does not panic");
    assert_eq!((result.err(), is_blocked), (Some(RunError::NotReady), false));
}

/// A thread of another program at the level of the watchdog keeps a CPU: the first one, where the costs are measured,
/// or that of a task.
#[test]
fn a_stop_ends_the_set_up() {
    let Some(_machine) = require_cpus(2) else { return };
    let cpus = sched::affinity().expect("the thread exists");
    let system = system(2, 0, vec![task("t", 1, 1, 10_000, vec![run_us(1_000)])]);
    for cpu in [cpus[0], cpus[1]] {
        let burner = burner(cpu, 99, std::time::Duration::from_secs(4));
        let control = Control::new();
        control.stop();
        let config = RunConfig::new(Protocol::None, Duration::from_ms(50));
        let result = lockwright_engine::run(&system, &config, &control);
        let burns = !burner.is_finished();
        burner.join().expect("it does not panic");
        assert_eq!((result.err(), burns), (Some(RunError::NotReady), true), "CPU {cpu}");
    }
}

/// A task that has preempted a holder is demoted below it: the holder continues and finishes first.
#[test]
fn a_scripted_change_takes_effect_at_once() {
    let Some(_machine) = require_realtime() else { return };
    let low = task("low", 0, 1, 200_000, vec![Step::Lock(R), run_us(10_000), Step::Unlock(R)]);
    let mut medium = task("medium", 0, 5, 200_000, vec![run_us(60_000)]);
    medium.offset = us(5_000);
    let system = system(1, 1, vec![low, medium]);
    for protocol in [Protocol::None, Protocol::Pip, Protocol::Mpcp] {
        for is_changed in [true, false] {
            let mut config = RunConfig::new(protocol, Duration::from_ms(100));
            let at = Instant::from_ns(15_000_000);
            let change = PriorityChange { at, task: TaskId(1), priority: Priority::base(0) };
            config.changes.extend(is_changed.then_some(change));
            // The change comes 5 ms after the holder would finish, and 45 ms before the other task would.
            expect(protocol.name(), &system, &config, us(4_000), |outcome| {
                let place = |wanted| outcome.records.iter().position(|r| (r.task.0, r.event) == wanted);
                let (low, medium) = (place((0, Event::Finish)), place((1, Event::Finish)));
                if place((1, Event::Priority(Priority::base(0)))).is_some() != is_changed {
                    return Some(format!("{:?}; changed: {is_changed}, but the records do not show it", outcome.ended));
                }
                ((low < medium) != is_changed)
                    .then(|| format!("changed: {is_changed}, but the finishes do not show it"))
            });
        }
    }
}

#[test]
fn a_refusal_names_its_reason() {
    let Some(_machine) = require_realtime() else { return };
    let section = || vec![Step::Lock(R), run_us(10), Step::Unlock(R)];
    let refused = |system: &System, changes: Vec<PriorityChange>| {
        let mut config = RunConfig::new(Protocol::Icpp, Duration::from_ms(10));
        config.changes = changes;
        lockwright_engine::run(system, &config, &Control::new()).expect_err("a refusal")
    };
    let wide = system(64, 1, vec![task("t", 0, 1, 10_000, section())]);
    assert!(matches!(refused(&wide, vec![]), RunError::Machine(MachineError::TooFewCpus { needed: 64, .. })));
    let many = system(1, 1, (0..98).map(|index| task(&format!("t{index}"), 0, index, 10_000, section())).collect());
    assert_eq!(refused(&many, vec![]), RunError::Machine(MachineError::TooManyPriorities { needed: 98 }));
    let one = system(1, 1, vec![task("t", 0, 1, 10_000, section())]);
    let change = |task, priority| PriorityChange { at: Instant::ZERO, task, priority: Priority::base(priority) };
    assert_eq!(refused(&one, vec![change(TaskId(0), 2)]), RunError::AboveCeiling { task: TaskId(0), resource: R });
    assert_eq!(refused(&one, vec![change(TaskId(1), 1)]), RunError::UnknownTask(TaskId(1)));
}

/// Several protocols in nested sections on two CPUs, while base priorities change.
#[test]
fn changes_under_contention_lose_nothing() {
    let Some(_machine) = require_cpus(2) else { return };
    let protocols = [Protocol::Pip, Protocol::Icpp, Protocol::Mpcp, Protocol::None];
    let resources: Vec<Resource> = protocols
        .iter()
        .map(|&protocol| {
            let mut resource = Resource::new(protocol.name());
            resource.protocol = Some(protocol);
            resource.ceiling = (protocol == Protocol::Icpp).then_some(Priority::base(20));
            resource
        })
        .collect();
    let tasks: Vec<Task> = (0..6)
        .map(|index: usize| {
            let outer = ResourceId::new(index % 3);
            let inner = ResourceId::new(index % 3 + 1);
            let body = vec![
                run_us(10),
                Step::Lock(outer),
                run_us(30),
                Step::Lock(inner),
                run_us(30),
                Step::Unlock(inner),
                run_us(10),
                Step::Unlock(outer),
            ];
            task(&format!("t{index}"), index % 2, 10 + index as u32, 1_600 + 180 * index as u64, body)
        })
        .collect();
    let system = System::new("mixed".into(), 2, None, resources, tasks).expect("valid");
    let mut config = RunConfig::new(Protocol::Mpcp, Duration::from_ms(300));
    config.changes = (0..600)
        .map(|index: u64| PriorityChange {
            at: Instant::from_ns(index * 480_000),
            task: TaskId::new(index as usize % 6),
            priority: Priority::base(1 + (index * 7 % 20) as u32),
        })
        .collect();
    expect("mixed", &system, &config, us(500), |outcome| {
        assert_eq!(violation(&outcome.records), None);
        unfinished(&system, &config, outcome)
    });
}

/// Each job takes one and a half periods: the next job starts at once, and each is late, finished or not.
#[test]
fn an_overrunning_task_catches_up_and_every_late_job_counts() {
    let Some(_machine) = require_realtime() else { return };
    let system = system(1, 0, vec![task("t", 0, 1, 10_000, vec![run_us(15_000)])]);
    let config = RunConfig::new(Protocol::None, Duration::from_ms(50));
    // Three jobs take 45 ms of the 60 ms of the run.
    expect("overrun", &system, &config, us(4_000), |outcome| {
        let seen = outcome.tasks[0].observation;
        assert_eq!((outcome.ended, seen.misses), (Ended::Watchdog, 5));
        let arrivals = outcome.records.iter().filter(|record| record.event == Event::Arrive);
        let arrivals: Vec<u64> = arrivals.map(|record| record.at.as_ns() / 1_000_000).collect();
        assert_eq!(arrivals, [0, 10, 20, 30, 40], "an arrival is not at its nominal time");
        let finish = outcome.records.iter().position(|record| record.event == Event::Finish);
        let next = finish.and_then(|at| {
            let next = outcome.records[at..].iter().find(|record| record.event == Event::Run)?;
            Some(next.at.since(outcome.records[at].at))
        });
        let is_so = (3..=4).contains(&seen.jobs) && next.is_some_and(|next| next < Duration::from_ms(5));
        (!is_so).then(|| format!("{seen:?}, and the next jobs begin after {next:?}"))
    });
}

#[test]
fn a_full_log_is_counted_and_changes_nothing_else() {
    let Some(_machine) = require_realtime() else { return };
    let system = system(1, 0, vec![task("t", 0, 1, 1_000, vec![run_us(10)])]);
    let mut config = RunConfig::new(Protocol::None, Duration::from_ms(100));
    config.log_capacity = 40;
    expect("full", &system, &config, us(500), |outcome| {
        assert_eq!(outcome.records.len(), 40);
        assert!(outcome.dropped >= outcome.tasks[0].observation.jobs * 4 - 40, "{}", outcome.dropped);
        unfinished(&system, &config, outcome)
    });
}

#[test]
fn all_task_levels_can_be_used() {
    let Some(_machine) = require_realtime() else { return };
    let body = || vec![run_us(5), Step::Lock(R), run_us(20), Step::Unlock(R)];
    let tasks = (0..97).map(|index| task(&format!("t{index}"), 0, index, 20_000, body())).collect();
    let system = system(1, 1, tasks);
    // These protocols need priorities besides those of the tasks.
    let own = [Protocol::Dflp, Protocol::FmlpPlus];
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !own.contains(protocol)) {
        let config = RunConfig::new(protocol, Duration::from_ms(for_each_protocol(40)));
        // The last jobs have 20 ms and take 3 ms.
        expect(protocol.name(), &system, &config, us(2_000), |outcome| {
            assert_eq!(fault(&system, protocol, &outcome.records), None, "{protocol}");
            unfinished(&system, &config, outcome)
        });
    }
}
