//! Faults that tests inject into a task, and the outcome of the run.

use super::{Ended, Outcome, RunConfig, run};
use crate::control::Control;
use crate::error::RunError;
use crate::machine::{require_deadline, require_realtime};
use lockwright_model::{
    CpuId, Duration, Event, Priority, Protocol, Resource, ResourceId, Scheduler, Step, System, Task, TaskId,
};
use lockwright_sys::{
    clock,
    sched::{self, ME},
};
use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u64 = 0;
const PANIC: u64 = 1;

/// The task may execute on all CPUs from then on, as if its own were unplugged.
const MOVED: u64 = 2;
/// MOVED, and then PANIC.
const MOVED_PANIC: u64 = 3;
/// The task gives its CPU away for 20 ms, and its scheduler does not know that.
const AWAY: u64 = 4;

/// One of these, or the nanoseconds for which a task does not react to the end of the run. The first task that acquires
/// a resource uses up the fault.
static FAULT: AtomicU64 = AtomicU64::new(NONE);

/// Commits the fault in a task that has just acquired a resource.
pub(super) fn strike() {
    match FAULT.swap(NONE, Ordering::Relaxed) {
        NONE => {}
        PANIC => panic!("a fault injected by a test"),
        fault @ (MOVED | MOVED_PANIC) => {
            sched::set_affinity(ME, &(0..64).collect::<Vec<usize>>()).expect("a CPU is there");
            assert_eq!(fault, MOVED, "a fault injected by a test");
        }
        AWAY => std::thread::sleep(std::time::Duration::from_millis(20)),
        deaf_ns => {
            let until = clock::now_ns() + deaf_ns;
            while clock::now_ns() < until {}
        }
    }
}

/// A system of two tasks that both request one resource within the first milliseconds.
fn system() -> System {
    system_on([0, 0])
}

/// The system, with each task on one of these CPUs.
fn system_on(cpus: [u16; 2]) -> System {
    let us = Duration::from_us;
    let r = ResourceId(0);
    let task = |index: u16, offset| Task {
        name: format!("t{index}"),
        cpu: CpuId(cpus[usize::from(index)]),
        priority: Priority::base(u32::from(index)),
        period: us(10_000),
        deadline: us(10_000),
        jitter: Duration::ZERO,
        offset: us(offset),
        wcet: us(200),
        body: vec![Step::Lock(r), Step::Run(us(200)), Step::Unlock(r)],
    };
    let resource = Resource::new("r");
    let count = usize::from(cpus[0].max(cpus[1])) + 1;
    System::new("s".into(), count, None, vec![resource], vec![task(0, 0), task(1, 2_000)]).expect("valid")
}

/// The outcome of a run, and how long it took.
type Ran = (Result<Outcome, RunError>, std::time::Duration);

/// The schedulers by deadlines with locks.
const BY_DEADLINE: [(Protocol, Scheduler); 4] = [
    (Protocol::FmlpShort, Scheduler::GEdf),
    (Protocol::FmlpLong, Scheduler::GEdf),
    (Protocol::Msrp, Scheduler::PEdf),
    (Protocol::FmlpLong, Scheduler::PEdf),
];

fn run_with(fault: u64, protocol: Protocol) -> Ran {
    run_under(fault, protocol, Scheduler::PFp)
}

/// Under `p-edf`, the tasks are on two CPUs, so that the resource is under the protocol; if there are two.
fn run_under(fault: u64, protocol: Protocol, scheduler: Scheduler) -> Ran {
    let is_apart = scheduler == Scheduler::PEdf && sched::affinity().expect("a set of CPUs").len() > 1;
    let system = system_on([0, u16::from(is_apart)]).under(scheduler);
    FAULT.store(fault, Ordering::Relaxed);
    let start = std::time::Instant::now();
    let result = run(&system, &RunConfig::new(protocol, Duration::from_ms(50)), &Control::new());
    (result, start.elapsed())
}

#[test]
fn a_panic_in_a_section_unlocks_everything() {
    let Some(_machine) = require_realtime() else { return };
    let by_priority = Protocol::ALL.map(|protocol| (protocol, Scheduler::PFp));
    for (protocol, scheduler) in by_priority.into_iter().chain(BY_DEADLINE) {
        let (result, took) = run_under(PANIC, protocol, scheduler);
        assert!(matches!(result, Err(RunError::Panicked(_))), "{protocol} and {scheduler}: {result:?}");
        assert!(took.as_millis() < 500, "{protocol} and {scheduler}: {took:?}");
    }
}

#[test]
fn a_task_that_loses_its_cpu_is_noticed_unless_it_failed() {
    let Some(_machine) = require_realtime() else { return };
    let cpus = sched::affinity().expect("a set of CPUs");
    if cpus.len() < 2 {
        return;
    }
    for protocol in [Protocol::Icpp, Protocol::Dpcp, Protocol::Mrsp] {
        let (result, _) = run_with(MOVED, protocol);
        assert!(matches!(result, Err(RunError::CpuTaken { cpu }) if cpu == cpus[0]), "{protocol}: {result:?}");
        let (result, _) = run_with(MOVED_PANIC, protocol);
        assert!(matches!(result, Err(RunError::Panicked(_))), "{protocol}: {result:?}");
    }
}

/// The run has its CPUs, wherever its caller is.
#[test]
fn a_run_does_not_depend_on_the_cpus_of_its_caller() {
    let Some(_machine) = require_realtime() else { return };
    let cpus = sched::affinity().expect("a set of CPUs");
    let [_, other, ..] = cpus[..] else { return };
    let (caller, control) = (sched::gettid(), Control::new());
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.start().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            sched::set_affinity(caller, &[other]).expect("the CPU is there");
        });
        run(&system(), &RunConfig::new(Protocol::Icpp, Duration::from_ms(50)), &control)
    });
    let moved = sched::affinity().expect("a set of CPUs");
    sched::set_affinity(ME, &cpus).expect("the CPUs are there");
    assert_eq!(moved, [other]);
    result.expect("no CPU was taken");
}

/// A job that executes for longer than its reservation is counted, and ends later.
#[test]
fn a_job_beyond_its_reservation_is_counted() {
    let Some((_machine, have)) = require_deadline() else { return };
    let one = system();
    let (resources, tasks) = (one.resources().to_vec(), one.tasks().to_vec());
    let system = System::new("s".into(), have, None, resources, tasks).expect("valid").under(Scheduler::GEdf);
    let config = RunConfig::new(Protocol::None, Duration::from_ms(100));
    // Interrupts can throttle other jobs as well, but not most of them.
    let throttled = |outcome: &Outcome| outcome.tasks.iter().map(|task| task.throttled).sum::<u64>();
    let harmless = run(&system, &config, &Control::new()).expect("a run");
    assert!(throttled(&harmless) < 10, "{:?}", harmless.tasks);
    FAULT.store(5_000_000, Ordering::Relaxed);
    let outcome = run(&system, &config, &Control::new()).expect("a run");
    assert!(outcome.tasks[0].throttled >= 1, "{:?}", outcome.tasks);
    let worst = outcome.tasks.iter().filter_map(|task| task.observation.response).max();
    assert!(worst > Some(Duration::from_ms(5)), "{worst:?}");
}

/// A job that requests while the other one has its place sleeps until the other one is done, and is then granted the
/// short resource.
#[test]
fn a_job_that_sleeps_until_it_has_a_place_is_not_recorded_as_spinning() {
    let Some(_machine) = require_realtime() else { return };
    let (long, short) = (ResourceId(0), ResourceId(1));
    let us = Duration::from_us;
    let task = |cpu: u16, offset, resources: &[ResourceId]| Task {
        name: format!("t{offset}"),
        cpu: CpuId(cpu),
        priority: Priority::base(1),
        period: us(100_000),
        deadline: us(100_000),
        jitter: Duration::ZERO,
        offset: us(offset),
        wcet: us(2_000 * resources.len() as u64),
        body: resources.iter().flat_map(|&on| [Step::Lock(on), Step::Run(us(2_000)), Step::Unlock(on)]).collect(),
    };
    let mut resources = vec![Resource::new("long"), Resource::new("short")];
    resources[0].protocol = Some(Protocol::FmlpLong);
    resources[1].protocol = Some(Protocol::FmlpShort);
    let tasks = [task(0, 0, &[long]), task(0, 3_000, &[short]), task(1, 40_000, &[long, short])];
    let have = sched::affinity().expect("a set of CPUs").len();
    // Under `p-edf`, the third task shares the resources from another CPU.
    for (scheduler, cpus) in [(Scheduler::GEdf, 1), (Scheduler::PEdf, 2)].into_iter().filter(|&(_, cpus)| cpus <= have)
    {
        let tasks = tasks[..cpus + 1].to_vec();
        let system = System::new("s".into(), cpus, None, resources.clone(), tasks).expect("valid").under(scheduler);
        FAULT.store(AWAY, Ordering::Relaxed);
        let config = RunConfig::new(Protocol::FmlpLong, Duration::from_ms(50));
        let records = run(&system, &config, &Control::new()).expect("a run").records;
        let at = |task, event| {
            let mut seen = records.iter().filter(|record| record.task == TaskId(task) && record.event == event);
            seen.next().expect("a record").at
        };
        let (asked, got) = (at(1, Event::Request(short)), at(1, Event::Acquire(short)));
        assert!(asked < at(0, Event::Acquire(long)), "{scheduler}: the other job is away: {records:?}");
        assert!(got > at(0, Event::Finish), "{scheduler}: the job waits: {records:?}");
        let own = records.iter().filter(|record| record.task == TaskId(1));
        let from_request = own.skip_while(|record| record.event != Event::Request(short));
        let moves = from_request.filter(|record| matches!(record.event, Event::Run | Event::Stop)).take(2);
        let moves: Vec<_> = moves.map(|record| (record.event, record.at)).collect();
        assert_eq!(moves, [(Event::Stop, asked), (Event::Run, got)], "{scheduler}: {records:?}");
    }
}

#[test]
fn an_unresponsive_task_is_demoted() {
    let Some(_machine) = require_realtime() else { return };
    for (protocol, scheduler) in [(Protocol::Mpcp, Scheduler::PFp)].into_iter().chain(BY_DEADLINE) {
        let (result, took) = run_under(1_500_000_000, protocol, scheduler);
        let outcome = result.expect("the run ends in the second grace period");
        assert_eq!(outcome.ended, Ended::Watchdog, "{protocol}");
        let held = |event: fn(&Event) -> bool| outcome.records.iter().filter(|record| event(&record.event)).count();
        assert_eq!(held(|e| matches!(e, Event::Acquire(_))), held(|e| matches!(e, Event::Release(_))), "{protocol}");
        assert!(took.as_millis() < 2_500, "{protocol}: {took:?}");
    }
}

#[test]
fn a_stuck_task_is_named() {
    let Some(_machine) = require_realtime() else { return };
    let (result, took) = run_with(3_000_000_000, Protocol::Pip);
    assert_eq!(result.err(), Some(RunError::Stuck { tasks: vec![TaskId(0), TaskId(1)] }));
    assert!(took.as_millis() < 2_800, "{took:?}");
    // Wait until the task reacts again, so that the next test has the machine to itself.
    std::thread::sleep(std::time::Duration::from_millis(1_200));
}
