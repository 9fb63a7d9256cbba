//! Runs under `p-edf` by the kernel: threads under SCHED_DEADLINE, and a cpuset partition for each CPU.

use crate::global::passed;
use crate::judge::tell;
use crate::machine::{Machine, require_deadline};
use crate::support::{R, expect, run_ms, run_us, scale, system, task, unfinished};
use lockwright_engine::{Control, CpusetError, RunConfig, RunError, run};
use lockwright_model::{CpuId, Duration, Event, Protocol, Scheduler, Step, System, Task};
use lockwright_sys::sched;
use std::path::Path;
use std::time::Instant;

/// The machine, if the test may make partitions of two CPUs: they concern all programs of the machine.
fn require_partitions() -> Option<Machine> {
    if std::env::var_os("LOCKWRIGHT_TEST_CPUSETS").is_none() {
        tell("skipped: set LOCKWRIGHT_TEST_CPUSETS=1 to change the cpusets of this machine");
        return None;
    }
    let (machine, have) = require_deadline()?;
    let one = system(1, 0, vec![task("one", 0, 1, 10_000, vec![run_us(1_000)])]).under(Scheduler::PEdf);
    match run(&one, &by_kernel(50), &Control::new()) {
        Err(RunError::Cpusets(why)) => tell(&format!("skipped: {why}")),
        Err(why) => panic!("{why}"),
        Ok(_) if have < 2 => tell("skipped: the test is for 2 CPUs"),
        Ok(_) => return Some(machine),
    }
    None
}

/// How much longer jobs are on emulated processors, where the kernel takes longer. Deadlines beyond 4 s are refused.
fn slower() -> u64 {
    scale().min(50)
}

fn by_kernel(ms: u64) -> RunConfig {
    RunConfig { sched_deadline: true, ..RunConfig::new(Protocol::None, Duration::from_ms(ms)) }
}

/// Two tasks on one CPU, whose priorities are not in the order of their deadlines, beside another CPU.
fn two_cpus() -> System {
    let on = |cpu, task| Task { cpu: CpuId(cpu), ..task };
    let of = |name, priority, period_us, us| task(name, 0, priority, period_us * slower(), vec![run_us(us * slower())]);
    let (short, long) = (of("short", 1, 40_000, 11_000), of("long", 2, 60_000, 30_000));
    let other = on(1, of("other", 3, 20_000, 11_000));
    system(2, 0, vec![short, long, other])
}

#[test]
fn each_cpu_executes_its_earliest_deadline() {
    let Some(_machine) = require_partitions() else { return };
    let by_priority = two_cpus();
    let system = two_cpus().under(Scheduler::PEdf);
    // By fixed priorities, the order is another one, and that is noticed.
    let outcome = run_ms(&by_priority, Protocol::None, 240 * slower());
    assert!(passed(&system, &outcome.records).is_some(), "fixed priorities are noticed");
    let config = by_kernel(240 * slower());
    expect("partitions", &system, &config, Duration::from_ms(2 * slower()), |outcome| {
        assert!(!outcome.records.iter().any(|record| matches!(record.event, Event::Migrate(_))), "a job has migrated");
        let misses: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.misses).collect();
        let late = misses.iter().any(|&misses| misses > 0).then(|| format!("misses {misses:?}"));
        late.or_else(|| unfinished(&system, &config, outcome)).or_else(|| passed(&system, &outcome.records))
    });
}

/// Whatever ends a run, the next one gets the CPUs.
#[test]
fn partitions_end_with_their_run() {
    let Some(_machine) = require_partitions() else { return };
    let full = task("full", 0, 1, 10_000, vec![run_us(9_950)]);
    let rare = task("rare", 0, 1, 10_000_000, vec![run_us(1_000)]);
    for refused in [full, rare] {
        let refused = system(1, 0, vec![refused]).under(Scheduler::PEdf);
        let refusal = run(&refused, &by_kernel(50), &Control::new()).expect_err("the kernel refuses");
        assert!(matches!(refusal, RunError::NotAdmitted { .. }), "{refusal}");
    }
    let control = Control::new();
    control.stop();
    let stopped = run(&two_cpus().under(Scheduler::PEdf), &by_kernel(60_000), &control).expect("a run");
    assert_eq!(stopped.ended, lockwright_engine::Ended::Interrupted);
    let outcome = run(&two_cpus().under(Scheduler::PEdf), &by_kernel(100 * slower()), &Control::new());
    assert!(!matches!(outcome, Err(RunError::Cpusets(CpusetError::InUse { .. }))), "{outcome:?}");
    outcome.expect("a run");
}

#[test]
fn locks_are_refused_and_objects_are_not() {
    let Some(_machine) = require_partitions() else { return };
    let section = || vec![Step::Lock(R), run_us(300 * slower()), Step::Unlock(R)];
    let period_us = 5_000 * slower();
    let tasks = (0..2).map(|cpu| Task { cpu: CpuId(cpu), ..task(&format!("t{cpu}"), 0, 1, period_us, section()) });
    let system = system(2, 1, tasks.collect()).under(Scheduler::PEdf);
    let of = |protocol| RunConfig { protocol, ..by_kernel(100 * slower()) };
    for protocol in [Protocol::Srp, Protocol::FmlpShort] {
        let refusal = run(&system, &of(protocol), &Control::new()).expect_err("a refusal");
        assert!(matches!(refusal, RunError::NotByDeadlines { resource: R, .. }), "{refusal}");
    }
    for protocol in [Protocol::LockFree, Protocol::WaitFree] {
        let config = of(protocol);
        expect(&format!("{protocol} in partitions"), &system, &config, Duration::from_ms(2 * slower()), |outcome| {
            unfinished(&system, &config, outcome)
        });
    }
}

/// A run waits for 4.2 s before it makes its partitions, and again before it removes them, only if threads have
/// reservations.
#[test]
fn a_run_does_not_wait_where_nothing_is_reserved() {
    let Some(_machine) = require_partitions() else { return };
    // Without them, a run waits in any case.
    if sched::reserved().is_none() || !Path::new("/sys/kernel/debug/sched/fair_server").exists() {
        return tell("skipped: this kernel does not show all reservations");
    }
    let begin = Instant::now();
    run(&two_cpus().under(Scheduler::PEdf), &by_kernel(100), &Control::new()).expect("a run");
    assert!(begin.elapsed() < std::time::Duration::from_secs(4), "{:?}", begin.elapsed());
    // The account is right afterwards.
    assert!(sched::reserved() >= Some(0), "{:?}", sched::reserved());
}
