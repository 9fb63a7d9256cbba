//! Systems for the tests, and checks of their records.

pub use crate::judge::scale;
use crate::judge::{Attempt, Lost, require, tell};
pub use crate::machine::{Machine, require_realtime};
use lockwright::raw::SCRIPT_LEVEL;
use lockwright_engine::{Control, Ended, LOG_CAPACITY, Outcome, RunConfig, RunError};
use lockwright_model::{
    CpuId, Duration, Event, Instant, Priority, Protocol, Record, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sys::sched;
use std::collections::HashMap;

/// As [`require_realtime`], for a system of `cpus` processors.
pub fn require_cpus(cpus: usize) -> Option<Machine> {
    let guard = require_realtime()?;
    let have = std::thread::available_parallelism().map_or(1, usize::from);
    if have < cpus {
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{cpus} CPUs are needed; there are {have}");
        tell(&format!("skipped: {cpus} CPUs are needed; there are {have}"));
        return None;
    }
    Some(guard)
}

pub const R: ResourceId = ResourceId(0);

/// The CPUs of this thread, which gets them back when this is dropped.
pub struct OwnCpus(pub Vec<usize>);

impl Drop for OwnCpus {
    fn drop(&mut self) {
        let given = sched::set_affinity(sched::gettid(), &self.0);
        // A second panic would end the process.
        if !std::thread::panicking() {
            given.expect("the CPUs are there");
        }
    }
}

pub fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// The length of a run that is executed once for each protocol: `ms`, and three times as long if LOCKWRIGHT_DEEP is
/// set, as in CI. Tasks meet some hundred times in the shorter one.
pub fn for_each_protocol(ms: u64) -> u64 {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 3 * ms } else { ms }
}

pub fn run_us(time: u64) -> Step {
    Step::Run(us(time))
}

/// A task whose deadline is its period.
pub fn task(name: &str, cpu: usize, priority: u32, period_us: u64, body: Vec<Step>) -> Task {
    let runs = body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO });
    Task {
        name: name.into(),
        cpu: CpuId::new(cpu),
        priority: Priority::base(priority),
        period: us(period_us),
        deadline: us(period_us),
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: runs.sum(),
        body,
    }
}

pub fn system(cpus: usize, resources: usize, tasks: Vec<Task>) -> System {
    let resource = |index: usize| Resource::new(format!("r{index}"));
    System::new("test".into(), cpus, None, (0..resources).map(resource).collect(), tasks).expect("a valid system")
}

/// Makes nested sections sequential if the protocol does not support nesting: each inner section precedes the outer
/// one.
pub fn as_nested_as(protocol: Protocol, system: &System) -> System {
    if protocol.has_nesting() {
        return system.clone();
    }
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        let (mut flat, mut inner, mut depth) = (Vec::new(), Vec::new(), 0);
        for &step in &task.body {
            let is_inner = depth > 1 || depth == 1 && matches!(step, Step::Lock(_));
            depth += i32::from(matches!(step, Step::Lock(_))) - i32::from(matches!(step, Step::Unlock(_)));
            if is_inner {
                inner.push(step);
            } else {
                flat.push(step);
            }
        }
        inner.extend(flat);
        task.body = inner;
    }
    system.with_tasks(tasks).expect("a valid system")
}

/// A run with complete records. A log fills up early if interrupts are much more frequent than ticks; such a run shows
/// nothing, and is repeated.
pub fn run_ms(system: &System, protocol: Protocol, ms: u64) -> Outcome {
    run_with(system, &RunConfig::new(protocol, Duration::from_ms(ms)))
}

/// Waits until this time after the start of a run. Returns false if it does not come: a refused run never starts.
///
/// BOUND: 10 s.
pub fn comes(time: Duration, control: &Control) -> bool {
    let has_come = || control.elapsed().is_some_and(|elapsed| elapsed >= time);
    let began = std::time::Instant::now();
    while !has_come() && began.elapsed() < std::time::Duration::from_secs(10) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    has_come()
}

/// Stops a run this time after its start. The thread is above all tasks: where the kernel does not limit their time, an
/// ordinary thread gets no CPU before their end. Returns the times before and after the stop.
pub fn stop_after(time: Duration, control: &Control) -> std::thread::JoinHandle<(Duration, Duration)> {
    let control = control.clone();
    std::thread::spawn(move || {
        sched::set_fifo(sched::gettid(), SCRIPT_LEVEL).expect("permission was checked");
        comes(time, &control);
        let elapsed = || control.elapsed().unwrap_or_default();
        let before = elapsed();
        control.stop();
        (before, elapsed())
    })
}

/// Runs without a protocol until another thread stops the run, this time after its start.
pub fn run_until(system: &System, stop: Duration) -> Outcome {
    run_until_under(system, Protocol::None, stop)
}

/// As [`run_until`], under a protocol.
pub fn run_until_under(system: &System, protocol: Protocol, stop: Duration) -> Outcome {
    let control = Control::new();
    let stopper = stop_after(stop, &control);
    let config = RunConfig::new(protocol, Duration::from_ms(60_000));
    let outcome = lockwright_engine::run(system, &config, &control).expect("a run");
    stopper.join().expect("the stopper ends");
    outcome
}

/// As [`run_ms`], with this configuration.
pub fn run_with(system: &System, config: &RunConfig) -> Outcome {
    let protocol = config.protocol;
    for _attempt in 0..10 {
        let outcome = lockwright_engine::run(system, config, &Control::new());
        let outcome = outcome.unwrap_or_else(|error: RunError| panic!("{error}"));
        if outcome.dropped == 0 {
            return outcome;
        }
        eprintln!("{protocol}: not judged, {} records did not fit into a log", outcome.dropped);
    }
    panic!("{protocol}: a log was full ten times");
}

/// Repeats the run until `fault` returns `None`.
///
/// A fault is a failure if the tasks lost at most `harmless` of their time in stalls, or if a job was not woken for
/// long. Otherwise the run is not judged. `fault` asserts what must hold however much time is lost. An emulated
/// processor loses time without a trace, so there only a job that was not woken is a failure.
pub fn expect(
    name: &str,
    system: &System,
    config: &RunConfig,
    harmless: Duration,
    fault: impl Fn(&Outcome) -> Option<String>,
) {
    let config = RunConfig { watch: true, ..config.clone() };
    require(name, || {
        let outcome = match lockwright_engine::run(system, &config, &Control::new()) {
            Ok(outcome) => outcome,
            Err(error) => return Attempt::Fails(error.to_string()),
        };
        if outcome.dropped > 0 && config.log_capacity == LOG_CAPACITY {
            let fault = format!("{} records did not fit into a log", outcome.dropped);
            return Attempt::Disturbed { fault, by: Lost::of(system, &outcome).by };
        }
        let Some(fault) = fault(&outcome) else { return Attempt::Holds };
        let lost = Lost::of(system, &outcome);
        if let Some(forgotten) = lost.forgotten() {
            return Attempt::Fails(format!("{fault}; {forgotten}"));
        }
        if lost.stalls > harmless || scale() > 1 {
            return Attempt::Disturbed { fault, by: lost.by };
        }
        Attempt::Fails(format!("{fault}, though stalls took only {} of {} lost", lost.stalls, lost.total))
    });
}

/// Returns a message if a task has not finished all of its jobs, or if the run did not complete.
pub fn unfinished(system: &System, config: &RunConfig, outcome: &Outcome) -> Option<String> {
    let tasks = system.tasks().iter().zip(&outcome.tasks);
    let missing = tasks.filter_map(|(task, seen)| {
        let arrivals = config.duration.saturating_sub(task.offset).as_ns().div_ceil(task.period.as_ns());
        let jobs = seen.observation.jobs;
        (jobs != arrivals).then(|| format!("`{}` finished {jobs} of {arrivals} jobs", task.name))
    });
    let missing: Vec<String> = missing.collect();
    let is_whole = missing.is_empty() && outcome.ended == Ended::Completed;
    (!is_whole).then(|| format!("{:?}; {}", outcome.ended, missing.join(", ")))
}

/// A record of a task, this many microseconds after the start.
pub fn at(us: u64, task: u16, event: Event) -> Record {
    Record { at: Instant::from_ns(us * 1_000), task: TaskId(task), event }
}

/// The first record at which two tasks hold a resource, or a task releases a resource that it does not hold.
pub fn violation(records: &[Record]) -> Option<Record> {
    let mut owners: HashMap<ResourceId, TaskId> = HashMap::new();
    records.iter().copied().find(|record| match record.event {
        Event::Acquire(resource) => owners.insert(resource, record.task).is_some(),
        Event::Release(resource) => owners.remove(&resource) != Some(record.task),
        _ => false,
    })
}

/// The state of a task in an interruptible section.
#[derive(Clone, Copy)]
struct Section {
    /// The number of commits on the resource at the request or the last restart.
    asked: u64,
    /// The number of commits at the entry or the last restart, when the task was certainly inside.
    inside: u64,
}

/// The first record at which an invalidated interruptible section is committed, or a section restarts that was not
/// invalidated.
pub fn unsound(records: &[Record]) -> Option<Record> {
    let mut commits: HashMap<ResourceId, u64> = HashMap::new();
    let mut sections: HashMap<(TaskId, ResourceId), Section> = HashMap::new();
    records.iter().copied().find(|record| {
        let task = record.task;
        match record.event {
            Event::Request(resource) => {
                let now = commits.get(&resource).copied().unwrap_or(0);
                sections.insert((task, resource), Section { asked: now, inside: now }).is_some()
            }
            Event::Acquire(resource) => {
                let now = commits.get(&resource).copied().unwrap_or(0);
                let section = sections.get_mut(&(task, resource));
                section.map(|section| section.inside = now).is_none()
            }
            Event::Restart(resource) => {
                let now = commits.get(&resource).copied().unwrap_or(0);
                sections.get_mut(&(task, resource)).is_none_or(|section| {
                    let before = section.asked;
                    (section.asked, section.inside) = (now, now);
                    before == now
                })
            }
            Event::Release(resource) => {
                let now = commits.entry(resource).or_default();
                let before = *now;
                *now += 1;
                sections.remove(&(task, resource)).is_none_or(|section| section.inside != before)
            }
            _ => false,
        }
    })
}

/// The first attempt that failed although others committed less often on the object in the whole run. (A record is
/// made after the commit, so the order of records of two processors tells nothing.) No attempt fails under `wait_free`.
fn failed_alone(protocol: Protocol, records: &[Record]) -> Option<Record> {
    let mut failed: HashMap<(TaskId, ResourceId), usize> = HashMap::new();
    records.iter().copied().find(|record| {
        let Event::Restart(resource) = record.event else { return false };
        let commits = |other: &&Record| other.event == Event::Release(resource) && other.task != record.task;
        let failed = failed.entry((record.task, resource)).or_default();
        *failed += 1;
        protocol == Protocol::WaitFree || *failed > records.iter().filter(commits).count()
    })
}

/// The first record that violates `protocol`, which governs all resources.
pub fn fault(system: &System, protocol: Protocol, records: &[Record]) -> Option<Record> {
    if protocol.is_object() {
        return failed_alone(protocol, records);
    }
    if !protocol.is_interruptible() {
        return violation(records);
    }
    // Tasks that lock exclude each other.
    let locks = |record: &&Record| match record.event {
        Event::Acquire(resource) | Event::Release(resource) => {
            protocol == Protocol::IcsLock && system.task(record.task).priority < system.cutoff(resource)
        }
        _ => false,
    };
    let locking: Vec<Record> = records.iter().filter(locks).copied().collect();
    unsound(records).or_else(|| violation(&locking))
}

/// The times at which `task` acquired `resource`, in order.
pub fn acquisitions(records: &[Record], task: TaskId, resource: ResourceId) -> Vec<Instant> {
    let acquires = |record: &&Record| record.task == task && record.event == Event::Acquire(resource);
    records.iter().filter(acquires).map(|record| record.at).collect()
}
