//! The kernel's trace of real runs beside the orders of the protocols.

use crate::judge::tell;
use crate::support::{Machine, for_each_protocol, require_cpus, run_us, scale, task};
use lockwright::raw::SCRIPT_LEVEL;
use lockwright_engine::{Audit, Control, Departed, Outcome, RunConfig, RunError, run};
use lockwright_model::{Duration, Protocol, Resource, ResourceId, Scheduler, Step, System};
use lockwright_sys::sched::{self, Tid};

/// Two tasks on each of two CPUs, which share a resource; the periods let them meet in many ways.
fn sharing() -> System {
    let body = |before: u64, inside: u64| {
        let r = ResourceId(0);
        let run = |us| run_us(us * scale());
        vec![run(before), Step::Lock(r), run(inside), Step::Unlock(r), run(100)]
    };
    let tasks = vec![
        task("audit-a", 0, 4, 3_000 * scale(), body(100, 300)),
        task("audit-b", 1, 3, 3_500 * scale(), body(200, 400)),
        task("audit-c", 0, 2, 5_000 * scale(), body(100, 600)),
        task("audit-d", 1, 1, 7_000 * scale(), body(300, 900)),
    ];
    System::new("audit".into(), 2, None, vec![Resource::new("r")], tasks).expect("a valid system")
}

/// A run with its audit, or `None` where the kernel's trace cannot be read.
fn audited(system: &System, protocol: Protocol, ms: u64, control: &Control) -> Option<Outcome> {
    let config = RunConfig { audit: true, ..RunConfig::new(protocol, Duration::from_ms(ms * (scale() + 1) / 2)) };
    match run(system, &config, control) {
        Ok(outcome) => Some(outcome),
        Err(RunError::NoTrace(why)) => {
            tell(&format!("skipped: {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn machine() -> Option<Machine> {
    require_cpus(2)
}

/// The audit of a run, whose trace is whole.
fn audit(system: &System, protocol: Protocol, ms: u64, beside: impl Fn(&Control) + Sync) -> Option<Audit> {
    let control = Control::new();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| beside(&control));
        audited(system, protocol, ms, &control)
    })?;
    let audit = outcome.audit.expect("it was requested");
    assert_eq!(audit.lost, 0, "{protocol}: the trace was cut short");
    Some(audit)
}

#[test]
fn the_kernel_does_what_every_protocol_orders() {
    let Some(_machine) = machine() else { return };
    let system = sharing();
    let (mut switches, mut wakes) = (0, 0);
    for protocol in
        Protocol::ALL.into_iter().filter(|&protocol| lockwright::raw::check_system(&system, protocol).is_ok())
    {
        let Some(audit) = audit(&system, protocol, for_each_protocol(120), |_| ()) else { return };
        assert_eq!(audit.departures, [], "{protocol}");
        // On emulated processors a run has few jobs.
        assert!(audit.switches > 20 && audit.orders > 0, "{protocol}: {audit:?}");
        switches += audit.switches;
        if protocol == Protocol::Pip {
            assert!(audit.boosts > 0, "nothing was inherited");
        }
        wakes += audit.wake_ups;
    }
    let by_deadline = system.under(Scheduler::GEdf);
    for protocol in [Protocol::FmlpShort, Protocol::FmlpLong] {
        let Some(audit) = audit(&by_deadline, protocol, for_each_protocol(120), |_| ()) else { return };
        assert_eq!(audit.departures, [], "{protocol} under g-edf");
        assert!(audit.switches > 20 && audit.orders > 20, "{protocol} under g-edf: {audit:?}");
    }
    println!("{switches} switches and {wakes} wake-ups were judged");
    assert!(switches > 2_000, "only {switches} switches were judged");
    assert!(wakes > 100, "only {wakes} wake-ups were judged");
}

/// The thread of a task while the system runs.
fn thread(name: &str) -> Option<Tid> {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads of this process").flatten();
    let is_named =
        |path: &std::path::Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|it| it.trim() == name);
    let found = threads.map(|entry| entry.path()).find(|path| is_named(path))?;
    found.file_name()?.to_str()?.parse().ok().map(Tid)
}

/// Does something to the thread of task `audit-d` in the middle of the run, from above its tasks.
fn in_the_middle(control: &Control, what: impl Fn(Tid)) {
    sched::set_fifo(sched::gettid(), SCRIPT_LEVEL).expect("permission was checked");
    // BOUND: the set-up of the run, and ten seconds if there is none.
    for _ in 0..1_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        if control.elapsed().is_some_and(|elapsed| elapsed > Duration::from_ms(50 + 50 * scale())) {
            return thread("audit-d").into_iter().for_each(what);
        }
    }
}

/// Two ordinary threads yield one CPU to each other while the system runs.
fn switch_often(control: &Control) {
    let first = sched::affinity().expect("a set of CPUs")[0];
    let began = std::time::Instant::now();
    let switch = || {
        sched::set_affinity(sched::gettid(), &[first]).expect("an allowed CPU");
        // BOUND: ten seconds, if there is no run.
        while control.elapsed().is_none_or(|elapsed| elapsed < Duration::from_ms(300)) && began.elapsed().as_secs() < 10
        {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(switch);
        switch();
    });
}

#[test]
fn other_threads_do_not_fill_the_trace() {
    let Some(_machine) = machine() else { return };
    let Some(audit) = audit(&sharing(), Protocol::Mpcp, 300, switch_often) else { return };
    assert_eq!(audit.departures, []);
}

#[test]
fn a_level_that_nobody_ordered_is_found() {
    let Some(_machine) = machine() else { return };
    let meddle = |control: &Control| in_the_middle(control, |thread| sched::set_level(thread, 42).expect("a level"));
    let Some(audit) = audit(&sharing(), Protocol::FmlpLong, 300, meddle) else { return };
    let is_found = |what: &Departed| matches!(what, Departed::Level { seen: Some(42), .. });
    assert!(audit.departures.iter().any(|departure| is_found(&departure.what)), "{audit:?}");
}

#[test]
fn a_place_that_nobody_ordered_is_found() {
    let Some(_machine) = machine() else { return };
    let first = sched::affinity().expect("a set of CPUs")[0];
    let meddle = |control: &Control| {
        in_the_middle(control, |thread| sched::set_affinity(thread, &[first]).expect("an allowed CPU"));
    };
    let Some(audit) = audit(&sharing(), Protocol::FmlpLong, 300, meddle) else { return };
    let is_found = |what: &Departed| matches!(what, Departed::Place { .. });
    assert!(audit.departures.iter().any(|departure| is_found(&departure.what)), "{audit:?}");
}
