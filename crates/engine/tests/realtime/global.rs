//! Runs under `g-edf` without locks: threads under SCHED_DEADLINE on two CPUs.

use crate::judge::tell;
use crate::machine::{Machine, require_deadline};
use crate::support::{R, expect, fault as violated, run_ms, run_until, run_us, scale, system, task, unfinished, us};
use lockwright_engine::{Control, RunConfig, RunError, run};
use lockwright_model::{Duration, Event, Instant, Protocol, Record, Scheduler, Step, System, Task};
use lockwright_sys::sched;

/// The time after which a job must have been preempted.
fn latency() -> Duration {
    ms(scale())
}

/// The machine, if it has exactly two CPUs: the kernel's EDF executes on all of them.
fn require_two() -> Option<Machine> {
    match require_deadline()? {
        (machine, 2) => Some(machine),
        (_, have) => {
            tell(&format!("skipped: the test is for 2 CPUs; there are {have}"));
            None
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

/// A message if a job waited for more than [`latency`] while one with a later deadline executed, under `p-edf` on its
/// CPU. Without resources.
pub fn passed(system: &System, records: &[Record]) -> Option<String> {
    let count = system.tasks().len();
    let mut runs = vec![false; count];
    // The arrivals of the unfinished jobs of each task.
    let mut pending: Vec<Vec<Instant>> = vec![Vec::new(); count];
    let mut passed = vec![Duration::ZERO; count];
    for pair in records.windows(2) {
        let (record, elapsed) = (pair[0], pair[1].at.since(pair[0].at));
        let own = record.task.index();
        match record.event {
            Event::Arrive => pending[own].push(record.at),
            Event::Run => runs[own] = true,
            Event::Stop => runs[own] = false,
            Event::Finish => {
                pending[own].remove(0);
                passed[own] = Duration::ZERO;
            }
            _ => {}
        }
        let due = |task: usize| pending[task].first().map(|&at| at + system.tasks()[task].deadline);
        for waiting in (0..count).filter(|&task| !runs[task]) {
            let Some(own) = due(waiting) else { continue };
            let competes = |other: usize| {
                system.scheduler() != Scheduler::PEdf || system.tasks()[other].cpu == system.tasks()[waiting].cpu
            };
            let is_later = |other| runs[other] && competes(other) && due(other).is_some_and(|other| other > own);
            if (0..count).any(is_later) {
                passed[waiting] += elapsed;
                if passed[waiting] > latency() {
                    return Some(format!("`{}` due at {own} was passed", system.tasks()[waiting].name));
                }
            }
        }
    }
    None
}

/// Three tasks of more than half a CPU each, so that no two fit on one. Each job of `long` executes beside those of the
/// others.
fn no_partition() -> System {
    let one = task("one", 0, 2, 20_000, vec![run_us(10_500)]);
    let other = Task { offset: ms(10), ..task("other", 0, 1, 20_000, vec![run_us(10_500)]) };
    let long = task("long", 0, 3, 60_000, vec![run_us(31_000)]);
    system(2, 0, vec![one, other, long])
}

#[test]
fn a_system_that_fits_no_partition_meets_every_deadline() {
    let Some(_machine) = require_two() else { return };
    let system = no_partition().under(Scheduler::GEdf);
    let share = |task: &Task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64;
    assert!(system.tasks().iter().all(|task| share(task) > 0.5));
    let config = RunConfig::new(Protocol::None, ms(240));
    expect("no partition", &system, &config, ms(2), |outcome| {
        let misses: Vec<u64> = outcome.tasks.iter().map(|task| task.observation.misses).collect();
        assert!(outcome.tasks.iter().all(|task| task.observation.blocking.is_none()));
        let late = misses.iter().any(|&misses| misses > 0).then(|| format!("misses {misses:?}"));
        let migrated = outcome.records.iter().any(|record| matches!(record.event, Event::Migrate(_)));
        let stayed = (!migrated).then(|| "no job executed on two CPUs".to_owned());
        let order = || passed(&system, &outcome.records);
        late.or_else(|| unfinished(&system, &config, outcome)).or(stayed).or_else(order)
    });
}

/// Two jobs with late deadlines and high priorities occupy both CPUs when a job with an early deadline arrives.
#[test]
fn the_earliest_deadline_executes_whatever_the_priorities_are() {
    let Some(_machine) = require_two() else { return };
    let late = |name: &str, priority| task(name, 0, priority, 100_000, vec![run_us(30_000)]);
    let early = Task { offset: ms(5), deadline: ms(20), ..task("early", 0, 1, 100_000, vec![run_us(4_000)]) };
    let tasks = system(2, 0, vec![late("first", 3), late("second", 2), early]);
    // By fixed priorities `early` waits, and that is noticed.
    let outcome = run_ms(&tasks.clone().in_clusters(&[0b11; 3]).expect("one cluster"), Protocol::Omlp, 90);
    assert!(passed(&tasks, &outcome.records).is_some(), "fixed priorities are noticed");
    assert!(outcome.tasks[2].observation.misses > 0);
    let by_deadline = tasks.under(Scheduler::GEdf);
    let config = RunConfig::new(Protocol::None, ms(90));
    expect("early", &by_deadline, &config, ms(2), |outcome| {
        let misses = outcome.tasks[2].observation.misses;
        let late = (misses > 0).then(|| format!("`early` took {:?}", outcome.tasks[2].observation.response));
        late.or_else(|| passed(&by_deadline, &outcome.records))
    });
}

/// Two sections of each of six tasks, on both CPUs.
#[test]
fn objects_and_plain_mutexes_are_executed() {
    let Some(_machine) = require_two() else { return };
    let section = |time| [Step::Lock(R), run_us(time), Step::Unlock(R)];
    let body = |own| [vec![run_us(own)], section(300).to_vec(), vec![run_us(own)], section(200).to_vec()].concat();
    let tasks = (0..6).map(|index| {
        let period = 8_000 + 1_000 * index;
        Task { offset: us(100 * index), ..task(&format!("t{index}"), 0, 1 + index as u32, period, body(300)) }
    });
    let system = system(2, 1, tasks.collect()).under(Scheduler::GEdf);
    let refused = RunError::NotByDeadlines { resource: R, protocol: Protocol::Mpcp };
    assert_eq!(refusal(&system, Protocol::Mpcp), refused);
    for protocol in [Protocol::None, Protocol::LockFree, Protocol::WaitFree] {
        let config = RunConfig::new(protocol, ms(400));
        expect(&format!("sections under {protocol}"), &system, &config, ms(2), |outcome| {
            assert!(protocol.is_object() || violated(&system, protocol, &outcome.records).is_none());
            unfinished(&system, &config, outcome)
        });
    }
}

fn refusal(system: &System, protocol: Protocol) -> RunError {
    run(system, &RunConfig::new(protocol, ms(50)), &Control::new()).expect_err("a refusal")
}

#[test]
fn what_the_kernel_or_the_protocol_does_not_allow_is_refused() {
    let Some((_machine, have)) = require_deadline() else { return };
    let of = |cpus, tasks| system(cpus, 0, tasks).under(Scheduler::GEdf);
    let one = || task("one", 0, 1, 10_000, vec![run_us(1_000)]);
    assert_eq!(refusal(&of(have + 1, vec![one()]), Protocol::None), RunError::NotAllCpus { needed: have + 1, have });
    let full = (0..have).map(|index| task(&format!("t{index}"), 0, 1, 10_000, vec![run_us(9_950)])).collect();
    let full = refusal(&of(have, full), Protocol::None);
    assert!(full.to_string().contains("need more than the kernel has left"), "{full}");
    let rare = refusal(&of(have, vec![task("rare", 0, 1, 10_000_000, vec![run_us(1_000)])]), Protocol::None);
    assert!(rare.to_string().contains("sched_deadline_period_max_us"), "{rare}");
    // Nothing of them is left: the kernel admits the next run.
    let outcome = run(&of(have, vec![one()]), &RunConfig::new(Protocol::None, ms(50)), &Control::new());
    assert!(outcome.expect("admitted").tasks[0].observation.jobs > 0);
}

#[test]
fn a_stop_ends_the_run() {
    let Some((_machine, have)) = require_deadline() else { return };
    let tasks = (0..have).map(|index| task(&format!("t{index}"), 0, 1, 1_000_000, vec![run_us(500_000)])).collect();
    let system = system(have, 0, tasks).under(Scheduler::GEdf);
    let start = std::time::Instant::now();
    let outcome = run_until(&system, ms(20));
    assert_eq!(outcome.ended, lockwright_engine::Ended::Interrupted);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

/// Returns what the kernel has reserved, or `None` if it does not show it. It keeps the reservation of a thread that
/// has ended for a while, so this waits until nothing changes any more.
///
/// BOUND: 40 times half a second.
fn reserved_at_rest() -> Option<i64> {
    let mut last = sched::reserved()?;
    for _ in 0..40 {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = sched::reserved()?;
        if now == last {
            break;
        }
        last = now;
    }
    Some(last)
}

/// Linux 6.18 takes back twice what it keeps of a thread that has ended, if somebody reads the limit of real-time
/// threads meanwhile. Each job uses most of its reservation, which the kernel would keep for the rest of its period.
#[test]
fn a_run_gives_its_reservations_back_at_its_end() {
    let Some((_machine, have)) = require_deadline() else { return };
    let Some(before) = reserved_at_rest() else { return tell("skipped: this kernel does not show reservations") };
    let tasks = (0..have).map(|index| task(&format!("t{index}"), 0, 1, 400_000, vec![run_us(180_000)])).collect();
    let system = system(have, 0, tasks).under(Scheduler::GEdf);
    run_until(&system, ms(20));
    let after = sched::reserved().expect("it was shown before");
    assert!(after <= before, "{after} and {before} before");
    std::fs::read("/proc/sys/kernel/sched_rt_runtime_us").expect("the limit of real-time threads");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let after = sched::reserved().expect("it was shown before");
    assert!(after >= before, "{after} and {before} before");
}

/// A run of another kind, too, leaves the kernel's account as it is, although a thread of somebody has just left a
/// reservation of half a CPU, most of which it has used.
#[test]
fn a_run_does_not_spoil_the_account_of_others() {
    let Some((_machine, _)) = require_deadline() else { return };
    let Some(before) = reserved_at_rest() else { return tell("skipped: this kernel does not show reservations") };
    let leaves = std::thread::spawn(|| {
        sched::set_deadline(sched::gettid(), 500_000_000, 1_000_000_000).expect("nothing else is reserved");
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 400 {}
        sched::set_other(sched::gettid()).expect("every thread may leave");
    });
    leaves.join().expect("it does not panic");
    let kept = sched::reserved().expect("it was shown before");
    let ordinary = system(1, 0, vec![task("t", 0, 1, 10_000, vec![run_us(1_000)])]);
    run_ms(&ordinary, Protocol::None, 50);
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let after = sched::reserved().expect("it was shown before");
    // Whatever is found, the tests that follow need a right account.
    sched::recount_deadlines();
    assert!(after >= before, "{after}, {kept} before the run, and {before} before the thread");
    sched::try_deadline().expect("the kernel admits threads");
}
