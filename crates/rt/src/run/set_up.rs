//! Everything before the common start and after the end, on the caller's thread.

use super::control::{CUT, FAILED, INTERRUPTED};
use super::job::{Report, TaskThread};
use super::shared::{Ends, Gate, Nap, Shared};
use super::{
    Control, Ended, Failure, Outcome, PriorityChange, RunConfig, RunError, TaskOutcome, Throttling, script, watchdog,
};
use crate::calibrate::{Calibration, calibrate};
use crate::executor::Executor;
use crate::lock::Locks;
use crate::log::Log;
use crate::observe::observe;
use crate::priorities::{Levels, SCRIPT_LEVEL, WATCHDOG_LEVEL};
use crate::sys::{SysError, clock, memory, sched};
use lockwright_model::{Duration, Protocol, Record, Step, System, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// From naming the start to the start: time for all threads to get from the gate to their sleep.
const START_DELAY_NS: u64 = 50_000_000;
/// Stack of a task's thread.
const STACK_BYTES: usize = 256 << 10;
/// As much of it is touched before the start.
const STACK_TOUCHED: usize = 64 << 10;

/// Executes `system` as threads under SCHED_FIFO, one a task, until all jobs that arrive within
/// `config.duration` have finished.
///
/// CPU k of the system is the k-th CPU of the set the process may use. The calling thread only waits.
/// A run ends in bounded time: by itself, by [`Control::stop`], or, when the last deadline has passed,
/// by a watchdog above all tasks.
///
/// # Errors
/// See [`RunError`]. Nothing is left running, but for [`RunError::Stuck`].
///
/// # Examples
/// ```no_run
/// # fn example(system: &lockwright_model::System) -> Result<(), lockwright::RunError> {
/// use lockwright_model::{Duration, Protocol};
/// let config = lockwright::RunConfig::new(Protocol::Icpp, Duration::from_ms(500));
/// let outcome = lockwright::run(system, &config, &lockwright::Control::new())?;
/// for (task, seen) in system.tasks().iter().zip(&outcome.tasks) {
///     println!("{}: {:?}", task.name, seen.observation.response);
/// }
/// # Ok(())
/// # }
/// ```
pub fn run(system: &System, config: &RunConfig, control: &Control) -> Result<Outcome, RunError> {
    check_changes(system, config)?;
    let allowed = sched::affinity()?;
    if allowed.len() < system.cpus() {
        return Err(RunError::TooFewCpus { needed: system.cpus(), have: allowed.len() });
    }
    let cpus = &allowed[..system.cpus()];
    let levels = Levels::of(system, config.protocol, &config.changes)
        .map_err(|too_many| RunError::TooManyPriorities { needed: too_many.0 })?;
    let deadline = system.tasks().iter().map(|task| task.deadline).max().unwrap_or_default();
    let cut = config.duration.checked_add(deadline).filter(|cut| cut.as_ns() < u64::MAX / 4);
    let cut = cut.ok_or(RunError::TooLong)?;
    let calibration = calibrate_on(cpus[0])?;

    let executor = Executor::new(system.tasks().iter().map(|task| task.priority), levels);
    let shared = Arc::new(Shared {
        system: system.clone(),
        locks: Locks::new(system, config.protocol, executor),
        control: control.clone(),
        calibration,
        duration: config.duration,
        cut,
        start_ns: AtomicU64::new(0),
        start: Gate::default(),
        exit: Gate::default(),
        naps: (0..=system.tasks().len()).map(|_| Nap::default()).collect(),
        ends: Ends::new(system.tasks().len()),
    });
    let mut crew = Crew::new(&shared);
    if let Err(error) = crew.assemble(config, &allowed, cpus) {
        crew.dismiss();
        return Err(error);
    }
    let memory_locked = memory::lock_all().is_ok();
    let start_ns = clock::now_ns() + START_DELAY_NS;
    // ORDERING: Relaxed: the gate's word orders it.
    shared.start_ns.store(start_ns, Ordering::Relaxed);
    control.started(start_ns);
    shared.start.open();
    let (end_ns, changed) = crew.wait_for_end()?;
    let elapsed = Duration::from_ns(end_ns.saturating_sub(start_ns));
    let cpus = cpus.to_vec();
    gather(&shared, changed, Setting { calibration, elapsed, cpus, memory_locked })
}

/// What the outcome says of the machine.
struct Setting {
    calibration: Calibration,
    elapsed: Duration,
    cpus: Vec<usize>,
    memory_locked: bool,
}

fn gather(shared: &Shared, changed: Vec<Record>, setting: Setting) -> Result<Outcome, RunError> {
    let Setting { calibration, elapsed, cpus, memory_locked } = setting;
    let (system, start_ns) = (&shared.system, shared.start_ns());
    let mut tasks: Vec<TaskOutcome> = Vec::new();
    let (mut records, mut dropped) = (changed, 0);
    for task in system.task_ids() {
        let Some(Report { outcome, log, failure }) = shared.ends.take(task) else {
            return Err(RunError::Stuck { tasks: vec![task] });
        };
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        records.extend(log.records(task, start_ns));
        dropped += log.dropped();
        tasks.push(outcome);
    }
    records.sort_by_key(|record| record.at);
    for (task, seen) in tasks.iter_mut().zip(observe(system, &records)) {
        task.observation.blocking = seen.blocking;
    }
    let ended = match shared.control.state() {
        INTERRUPTED => Ended::Interrupted,
        CUT | FAILED => Ended::Watchdog,
        _ => Ended::Completed,
    };
    let throttling = throttling();
    Ok(Outcome { tasks, records, dropped, ended, calibration, elapsed, cpus, memory_locked, throttling })
}

fn check_changes(system: &System, config: &RunConfig) -> Result<(), RunError> {
    for change in &config.changes {
        if change.task.index() >= system.tasks().len() {
            return Err(RunError::UnknownTask(change.task));
        }
        for request in system.requests(change.task) {
            let resource = request.resource;
            let is_icpp = system.protocol_of(resource, config.protocol) == Protocol::Icpp;
            if is_icpp && change.priority > system.ceiling(resource) {
                return Err(RunError::AboveCeiling { task: change.task, resource });
            }
        }
    }
    Ok(())
}

/// Tries the highest level on a thread of its own, which then measures on `cpu`.
fn calibrate_on(cpu: usize) -> Result<Calibration, RunError> {
    let probe = move || {
        let me = sched::gettid();
        sched::set_affinity(me, &[cpu])?;
        sched::set_fifo(me, WATCHDOG_LEVEL)?;
        calibrate()
    };
    let thread = spawn("lockwright-calibrate", probe)?;
    match thread.join() {
        Ok(result) => Ok(result?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn spawn<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, RunError> {
    let builder = std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    builder.spawn(body).map_err(|error| {
        RunError::Sys(SysError { call: "starting a thread", errno: error.raw_os_error().unwrap_or(libc::EAGAIN) })
    })
}

type ScriptEnd = (Vec<Record>, Option<Failure>);

/// What a thread says when it has set itself up.
type Ready = Result<(), SysError>;

/// The threads of one run.
struct Crew<'a> {
    shared: &'a Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    script: Option<JoinHandle<ScriptEnd>>,
    watchdog: Option<JoinHandle<u64>>,
    ready: (mpsc::Sender<Ready>, mpsc::Receiver<Ready>),
}

impl<'a> Crew<'a> {
    fn new(shared: &'a Arc<Shared>) -> Self {
        Self { shared, tasks: Vec::new(), script: None, watchdog: None, ready: mpsc::channel() }
    }

    /// Starts all threads and waits until each is ready at the gate.
    fn assemble(&mut self, config: &RunConfig, allowed: &[usize], cpus: &[usize]) -> Result<(), RunError> {
        let capacities = log_capacities(&self.shared.system, config);
        for (task, capacity) in self.shared.system.task_ids().zip(capacities) {
            self.start_task(task, capacity, cpus)?;
        }
        let spare = &allowed[cpus.len()..];
        let control_cpus = if spare.is_empty() { allowed } else { spare }.to_vec();
        if !config.changes.is_empty() {
            let mut changes = config.changes.clone();
            changes.sort_by_key(|change| change.at);
            self.start_script(changes, control_cpus.clone())?;
        }
        self.start_watchdog(control_cpus)?;
        let started = self.tasks.len() + usize::from(self.script.is_some()) + 1;
        for _ in 0..started {
            match self.ready.1.recv() {
                Ok(ready) => ready?,
                Err(_) => unreachable!("this side keeps a sender"),
            }
        }
        Ok(())
    }

    fn start_task(&mut self, task: TaskId, log_capacity: usize, cpus: &[usize]) -> Result<(), RunError> {
        let (shared, ready) = (Arc::clone(self.shared), self.ready.0.clone());
        let cpu = cpus[shared.system.task(task).cpu.index()];
        let name: String = shared.system.task(task).name.chars().filter(|&c| c != '\0').collect();
        let body = move || {
            let executor = &shared.locks.executor;
            executor.seat(task).sit();
            let thread = TaskThread::new(&shared, task, Log::new(log_capacity));
            let level = executor.level(shared.system.task(task).priority);
            let set_up = become_realtime(level, &[cpu]);
            let failed = set_up.is_err();
            let _ = ready.send(set_up);
            if !shared.start.pass() || failed {
                return;
            }
            let report = thread.execute();
            shared.ends.leave(task, report, &shared.control);
            // Nothing real-time is left to do; a refusal leaves a thread that waits.
            let _ = sched::set_other(sched::gettid());
            shared.exit.pass();
        };
        self.tasks.push(spawn(&name, body)?);
        Ok(())
    }

    fn start_script(&mut self, changes: Vec<PriorityChange>, cpus: Vec<usize>) -> Result<(), RunError> {
        let (shared, ready) = (Arc::clone(self.shared), self.ready.0.clone());
        let body = move || {
            let mut log = Vec::with_capacity(changes.len());
            let _ = ready.send(become_realtime(SCRIPT_LEVEL, &cpus));
            if !shared.start.pass() {
                return (log, None);
            }
            let nap = &shared.naps[shared.system.tasks().len()];
            let failure = script::play(&shared, nap, &changes, &mut log);
            if failure.is_some() {
                shared.control.leave(FAILED);
            }
            (log, failure)
        };
        self.script = Some(spawn("lockwright-script", body)?);
        Ok(())
    }

    fn start_watchdog(&mut self, cpus: Vec<usize>) -> Result<(), RunError> {
        let (shared, ready) = (Arc::clone(self.shared), self.ready.0.clone());
        let body = move || {
            let _ = ready.send(become_realtime(WATCHDOG_LEVEL, &cpus));
            if shared.start.pass() { watchdog::watch(&shared) } else { 0 }
        };
        self.watchdog = Some(spawn("lockwright-watchdog", body)?);
        Ok(())
    }

    /// Set-up failed: everybody goes home.
    fn dismiss(self) {
        self.shared.start.abandon();
        self.tasks.into_iter().for_each(|thread| drop(thread.join()));
        drop(self.watchdog.map(JoinHandle::join));
        drop(self.script.map(JoinHandle::join));
    }

    /// Returns when the run was over, and what the script changed.
    ///
    /// BOUND: the watchdog's. Threads that are stuck are not waited for.
    fn wait_for_end(self) -> Result<(u64, Vec<Record>), RunError> {
        let Some(Ok(end_ns)) = self.watchdog.map(JoinHandle::join) else {
            panic!("the watchdog watches to the end");
        };
        self.shared.naps.iter().for_each(Nap::wake);
        self.shared.exit.open();
        let stuck = self.shared.ends.unfinished();
        if !stuck.is_empty() {
            return Err(RunError::Stuck { tasks: stuck });
        }
        self.tasks.into_iter().for_each(|thread| drop(thread.join()));
        match self.script.map(JoinHandle::join) {
            None => Ok((end_ns, Vec::new())),
            Some(Ok((log, None))) => Ok((end_ns, log)),
            Some(Ok((_, Some(failure)))) => Err(failure.into()),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

fn become_realtime(level: u8, cpus: &[usize]) -> Result<(), SysError> {
    let me = sched::gettid();
    memory::prefault_stack::<STACK_TOUCHED>();
    sched::exact_timers();
    sched::set_affinity(me, cpus)?;
    sched::set_fifo(me, level)
}

/// Entries for the log of each task: what its jobs write, a gap for every job that may preempt them and for
/// every tick of the kernel; less in proportion where all would be too much.
fn log_capacities(system: &System, config: &RunConfig) -> Vec<usize> {
    const A_JOB: u64 = 8;
    const A_LOCK: u64 = 12;
    const A_GAP: u64 = 2;
    const TICKS_PER_MS: u64 = 4;
    const SPARE: u64 = 256;
    let duration = config.duration.as_ns();
    let jobs: Vec<u64> = system.tasks().iter().map(|task| duration / task.period.as_ns() + 1).collect();
    let wanted = |task: TaskId| {
        let this = system.task(task);
        let locks = this.body.iter().filter(|step| matches!(step, Step::Lock(_))).count() as u64;
        let mut others = system.tasks().iter().zip(&jobs).filter(|(other, _)| other.cpu == this.cpu);
        let others = others.try_fold(0_u64, |sum, (_, jobs)| sum.checked_add(*jobs))?;
        let own = jobs[task.index()].checked_mul(A_JOB + A_LOCK * locks)?;
        let ticks = duration / 1_000_000 * TICKS_PER_MS;
        own.checked_add(A_GAP.checked_mul(others.checked_add(ticks)?)?)?.checked_add(SPARE)
    };
    let wanted: Vec<u64> = system.task_ids().map(|task| wanted(task).unwrap_or(u64::MAX)).collect();
    let all: u128 = wanted.iter().map(|&wanted| u128::from(wanted)).sum();
    let given = u128::min(all, config.log_capacity as u128);
    wanted.iter().map(|&wanted| (u128::from(wanted) * given / all.max(1)) as usize).collect()
}

/// What the kernel leaves to real-time threads, where that is not everything.
pub(crate) fn throttling() -> Option<Throttling> {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse::<i64>().ok();
    let (runtime, period) = (read("sched_rt_runtime_us")?, read("sched_rt_period_us")?);
    let us = |value| Some(Duration::from_us(u64::try_from(value).ok()?));
    if runtime < period { Some(Throttling { runtime: us(runtime)?, period: us(period)? }) } else { None }
}
