//! The caller's part of a run: everything before the common start and after the end.

use super::config::{PriorityChange, RunConfig};
use super::failure::{Failure, explain, lacks_cpu};
use super::job::TaskThread;
use super::outcome::{Ended, Outcome, TaskOutcome};
use super::report::Report;
use super::reservation;
use super::shared::{Nap, Shared};
use super::taken::Taken;
use super::{script, watchdog};
use crate::audit::{self, Audit, Tracer};
use crate::calibrate::{Calibration, calibrate};
use crate::control::{CUT, Control, FAILED, INTERRUPTED};
use crate::cpusets::{Entry, Partitions};
use crate::error::RunError;
use crate::log::Log;
use crate::observe::observe;
use crate::occupancy::{Occupancy, Recorder};
use crate::team::{Ends, Gate, Place, become_realtime, spawn, wait_for_ends, wait_until};
use crate::throttling::{Throttling, limits};
use lockwright::raw::Locks;
use lockwright::raw::{Levels, SCRIPT_LEVEL, WATCHDOG_LEVEL};
use lockwright::raw::{check_isolation, check_scheduler, check_system};
use lockwright::tasks::MachineError;
use lockwright_model::{Duration, Event, Priority, Protocol, Record, Scheduler, Step, System, TaskId};
use lockwright_sys::{clock, memory, sched, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The time from choosing the start to the start itself, in which all threads get from the gate to their sleep.
const START_DELAY_NS: u64 = 50_000_000;

/// Executes `system` as SCHED_FIFO threads, one per task, until all jobs that arrive within `config.duration` have
/// finished.
///
/// Under `g-edf`, no blocking is observed.
///
/// - With resources under `fmlp_short` or `fmlp_long`, the tasks decide among themselves which jobs execute: on m CPUs,
///   the m with the earliest deadlines. Other resources are then under these protocols, `lock_free` or `wait_free`.
/// - Otherwise the threads are under SCHED_DEADLINE, and the kernel schedules them by deadlines on all CPUs that the
///   process may use. A task may execute for C + C/10 + 200 us within its deadline, where C is its execution time; the
///   kernel may throttle a job that takes longer ([`TaskOutcome::throttled`]). Resources are under `lock_free`,
///   `wait_free` or `none`.
///
/// Under `p-edf`, the tasks of each CPU decide among themselves which job executes: the one with the earliest deadline,
/// and among equal deadlines that of the task with the lower id. Resources are under `srp` and `msrp`, or across CPUs
/// under `fmlp_long` if that is named; then the tasks of all CPUs decide together, and an owner is before all jobs of
/// its CPU. No blocking is observed. With [`RunConfig::sched_deadline`], the kernel schedules the tasks of each CPU
/// under SCHED_DEADLINE, in a cpuset partition that exists during the run.
///
/// CPU k of the system is the k-th CPU that the calling thread may use. The calling thread only waits. Threads of a run
/// block all signals. The run locks all memory that is mapped at the start, which undoes an earlier
/// `mlockall(MCL_FUTURE)`. Two runs at the same time would share levels and CPUs, and disturb each other.
///
/// A run ends in bounded time: by itself, by [`Control::stop`], or by a watchdog above all tasks when the last deadline
/// has passed. Before that, its threads have at most one minute to get ready, and 2 s after a stop. Under
/// SCHED_DEADLINE the tasks are above the watchdog, which executes in the share of the CPUs that they do not reserve.
///
/// These waits do not look for a stop: 10 s for threads without work to end; for each reservation, up to 5 s until the
/// kernel admits it; and with partitions, the longest deadline that the kernel admits (4.2 s by default) up to twice
/// before the run and once after it, and 1 s for each partition that a thread is still in. A run that is stopped while
/// it waits for an admission may therefore fail with [`RunError::NotReady`].
///
/// # Errors
/// See [`RunError`]. No thread is left running, except after [`RunError::Stuck`] and [`RunError::NotReady`], and after
/// a set-up that failed while other programs kept threads from their CPUs: these end as soon as they execute.
///
/// # Examples
/// ```no_run
/// # fn example(system: &lockwright_model::System) -> Result<(), lockwright_engine::RunError> {
/// use lockwright_model::{Duration, Protocol};
/// let config = lockwright_engine::RunConfig::new(Protocol::Icpp, Duration::from_ms(500));
/// let outcome = lockwright_engine::run(system, &config, &lockwright_engine::Control::new())?;
/// for (task, seen) in system.tasks().iter().zip(&outcome.tasks) {
///     println!("{}: {:?}", task.name, seen.observation.response);
/// }
/// # Ok(())
/// # }
/// ```
pub fn run(system: &System, config: &RunConfig, control: &Control) -> Result<Outcome, RunError> {
    check_changes(system, config)?;
    check_system(system, config.protocol)?;
    let allowed = sched::affinity()?;
    let is_partitioned = config.sched_deadline && system.scheduler() == Scheduler::PEdf;
    let is_global = system.scheduler() == Scheduler::GEdf;
    if let Some(resource) = system.refused_by_deadlines(config.protocol).filter(|_| is_partitioned || is_global) {
        let protocol = system.protocol_of(resource, config.protocol);
        return Err(RunError::NotByDeadlines { resource, protocol });
    }
    // Before the threads: once they leave, the kernel keeps a little of each reservation.
    let throttling = limits();
    let in_user_space = system.has_global_locks(config.protocol);
    let reservations = if is_partitioned || is_global && !in_user_space {
        reservation::of_all(system, allowed.len(), &throttling)?
    } else {
        if !in_user_space {
            check_scheduler(system)?;
        }
        Vec::new()
    };
    if config.audit && !reservations.is_empty() {
        let why = "under SCHED_DEADLINE the kernel decides, and the protocols order nothing";
        return Err(RunError::NoTrace(why.into()));
    }
    if allowed.len() < system.cpus() {
        return Err(MachineError::TooFewCpus { needed: system.cpus(), have: allowed.len() }.into());
    }
    check_isolation(system, &allowed, sched::isolated)?;
    // In partitions, too, the kernel decides which job executes, and no machine of ours.
    let executed = if is_partitioned { system.clone().under(Scheduler::GEdf) } else { system.clone() };
    let system = &executed;
    let cpus = &allowed[..system.cpus()];
    let changed: Vec<Priority> = config.changes.iter().map(|change| change.priority).collect();
    let levels = Levels::of(system, config.protocol, &changed);
    let levels = levels.map_err(|too_many| MachineError::TooManyPriorities { needed: too_many.0 })?;
    let deadline = system.tasks().iter().map(|task| task.deadline).max().unwrap_or_default();
    let cut = config.duration.checked_add(deadline).filter(|cut| cut.as_ns() < u64::MAX / 4);
    let cut = cut.ok_or(RunError::TooLong)?;
    let calibration = calibrate_on(cpus[0], control)?;

    let mut locks = Locks::new(system, config.protocol, levels, cpus);
    if config.audit {
        locks.executor.keep_journal(journal_capacity(system, config));
    }
    if config.turns {
        locks.executor.count_turns();
    }
    let shared = Arc::new(Shared {
        system: system.clone(),
        locks,
        reservations,
        control: control.clone(),
        calibration,
        duration: config.duration,
        cut,
        start_ns: AtomicU64::new(0),
        muster: Arc::default(),
        ready: Gate::default(),
        start: Gate::default(),
        exit: Gate::default(),
        taken: Taken::new(cpus, config.audit || moves_tasks(system, config.protocol)),
        naps: (0..=system.tasks().len()).map(|_| Nap::default()).collect(),
        ends: Ends::new(system.tasks().len()),
    });
    // Removed after the threads have ended.
    let partitions = is_partitioned.then(|| Partitions::make(cpus)).transpose()?;
    let mut crew = Crew::new(&shared);
    // Signals are delivered to the caller's threads: a handler must not execute in a section or above all tasks.
    let assembled = signal::with_all_blocked(|| crew.assemble(config, &allowed, cpus, partitions.as_ref()));
    // The caller handles signals while it waits: one of them may stop the run.
    if let Err(error) = assembled.and_then(|()| shared.muster.wait(control)) {
        return Err(crew.dismiss(error));
    }
    let tasks = || system.task_ids().map(|task| shared.locks.executor.seat(task).tid()).collect::<Vec<_>>();
    let tracer = match config.audit.then(|| Tracer::start(&tasks())).transpose() {
        Ok(tracer) => tracer,
        Err(why) => return Err(crew.dismiss(RunError::NoTrace(why))),
    };
    let recorder = config.watch.then(|| Recorder::start(cpus, &tasks())).flatten();
    let memory_locked = memory::lock_all().is_ok();
    shared.ready.open();
    let ended = crew.wait_for_end();
    let occupancy = recorder.and_then(|recorder| recorder.stop(shared.start_ns()));
    let trace = tracer.map(Tracer::stop);
    let taken = shared.taken.cpu();
    let reason = || taken.or_else(|| shared.taken.refusing());
    let (end_ns, changed) = ended.map_err(|error| explain(error, reason))?;
    let trace = trace.filter(|_| taken.is_none());
    let audit = trace.map(|trace| audit::judge(system, &shared.locks.executor, trace, shared.start_ns()));
    let elapsed = Duration::from_ns(end_ns.saturating_sub(shared.start_ns()));
    let cpus = cpus.to_vec();
    let setting = Setting { calibration, occupancy, audit, elapsed, cpus, memory_locked, throttling };
    let outcome = gather(&shared, changed, setting);
    // A failure of a task is told first.
    let outcome = outcome.map_err(|error| explain(error, reason))?;
    taken.map_or(Ok(outcome), |cpu| Err(RunError::CpuTaken { cpu }))
}

/// Whether tasks execute on CPUs of other tasks under these protocols.
fn moves_tasks(system: &System, protocol: Protocol) -> bool {
    let moves = |protocol: Protocol| protocol.has_homes() || protocol == Protocol::Mrsp;
    system.resource_ids().any(|resource| moves(system.protocol_of(resource, protocol)))
}

/// The parts of the outcome that describe the machine.
struct Setting {
    calibration: Calibration,
    occupancy: Option<Occupancy>,
    audit: Option<Audit>,
    elapsed: Duration,
    cpus: Vec<usize>,
    memory_locked: bool,
    throttling: Vec<Throttling>,
}

fn gather(shared: &Shared, changed: Vec<Record>, setting: Setting) -> Result<Outcome, RunError> {
    let Setting { calibration, occupancy, audit, elapsed, cpus, memory_locked, throttling } = setting;
    let (system, start_ns) = (&shared.system, shared.start_ns());
    let mut tasks: Vec<TaskOutcome> = Vec::new();
    let (mut records, mut turns, mut dropped) = (changed, Vec::new(), 0);
    let mut failures: Vec<RunError> = Vec::new();
    for task in system.task_ids() {
        let Some(Report { outcome, log, turns: decided, failure }) = shared.ends.take(task) else {
            return Err(RunError::Stuck { tasks: vec![task] });
        };
        failures.extend(failure.map(RunError::from));
        records.extend(log.records(task, start_ns));
        turns.extend(decided.records(task, 0));
        dropped += log.dropped() + decided.dropped();
        tasks.push(outcome);
    }
    // A CPU that is missing explains least.
    failures.sort_by_key(lacks_cpu);
    if let Some(error) = failures.into_iter().next() {
        return Err(error);
    }
    records.sort_by_key(|record| record.at);
    // A decision has one number for all that it does: it may end a request, admit others, and grant to one of them.
    let place = |event| match event {
        Event::Release(_) => 0,
        Event::Acquire(_) => 2,
        _ => 1,
    };
    turns.sort_by_key(|turn| (turn.at, place(turn.event)));
    for (task, seen) in tasks.iter_mut().zip(observe(system, &records)) {
        task.observation.blocking = seen.blocking;
    }
    let ended = match shared.control.state() {
        INTERRUPTED => Ended::Interrupted,
        CUT | FAILED => Ended::Watchdog,
        _ => Ended::Completed,
    };
    Ok(Outcome {
        tasks,
        records,
        turns,
        dropped,
        ended,
        occupancy,
        audit,
        calibration,
        elapsed,
        cpus,
        memory_locked,
        throttling,
    })
}

fn check_changes(system: &System, config: &RunConfig) -> Result<(), RunError> {
    for change in &config.changes {
        if system.scheduler().is_by_deadline() {
            return Err(RunError::NoPriorities(change.task));
        }
        if change.task.index() >= system.tasks().len() {
            return Err(RunError::UnknownTask(change.task));
        }
        for request in system.requests(change.task) {
            let resource = request.resource;
            let has_ceiling = match system.protocol_of(resource, config.protocol) {
                Protocol::Icpp | Protocol::Pcp | Protocol::Srp => change.priority > system.ceiling(resource),
                Protocol::IcsLock => {
                    let ceiling = system.locked_ceiling(resource).unwrap_or(Priority::MIN);
                    change.priority < system.cutoff(resource) && change.priority > ceiling
                }
                Protocol::Mrsp => change.priority > system.local_ceiling(resource, system.task(change.task).cpu),
                _ => false,
            };
            if has_ceiling {
                return Err(RunError::AboveCeiling { task: change.task, resource });
            }
        }
    }
    Ok(())
}

/// Tries the highest level on a new thread, which then measures on `cpu`.
///
/// BOUND: that of [`Muster::wait`]. The thread is above all tasks when it answers, and has nothing left to do. If it is
/// left behind, it measures nothing.
fn calibrate_on(cpu: usize, control: &Control) -> Result<Calibration, RunError> {
    let (muster, is_left) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let (place, gives_up) = (Place::new(&muster), Arc::clone(&is_left));
    let probe = move || {
        let set_up = become_realtime(WATCHDOG_LEVEL, &[cpu]).map_err(RunError::from);
        // ORDERING: Relaxed, here and below: it publishes nothing.
        let measured = set_up.and_then(|()| match gives_up.load(Ordering::Relaxed) {
            true => Err(RunError::NotReady),
            false => Ok(calibrate()?),
        });
        place.answer(measured.as_ref().map(drop).map_err(Clone::clone));
        measured
    };
    let thread = signal::with_all_blocked(|| spawn("lockwright-calibrate", probe))?;
    muster.wait(control).inspect_err(|_| is_left.store(true, Ordering::Relaxed))?;
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

type ScriptEnd = (Vec<Record>, Option<Failure>);

/// The threads of one run.
struct Crew<'a> {
    shared: &'a Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    script: Option<JoinHandle<ScriptEnd>>,
    watchdog: Option<JoinHandle<u64>>,
}

impl<'a> Crew<'a> {
    fn new(shared: &'a Arc<Shared>) -> Self {
        Self { shared, tasks: Vec::new(), script: None, watchdog: None }
    }

    /// Starts all threads. Each answers the muster when it is ready at its gate.
    fn assemble(
        &mut self,
        config: &RunConfig,
        allowed: &[usize],
        cpus: &[usize],
        partitions: Option<&Partitions>,
    ) -> Result<(), RunError> {
        let capacities = log_capacities(&self.shared.system, config);
        for (task, capacity) in self.shared.system.task_ids().zip(capacities) {
            self.start_task(task, (capacity, config.turns), cpus, partitions)?;
        }
        let control_cpus = match (&allowed[cpus.len()..], partitions) {
            ([], None) => allowed.to_vec(),
            // Threads outside a partition cannot execute on its CPU.
            ([], Some(partitions)) => {
                let root = partitions.root_cpus();
                let both: Vec<usize> = root.iter().copied().filter(|cpu| allowed.contains(cpu)).collect();
                if both.is_empty() { root.to_vec() } else { both }
            }
            (spare, _) => spare.to_vec(),
        };
        if !config.changes.is_empty() {
            let mut changes = config.changes.clone();
            changes.sort_by_key(|change| change.at);
            self.start_script(changes, control_cpus.clone())?;
        }
        self.start_watchdog(control_cpus)
    }

    fn start_task(
        &mut self,
        task: TaskId,
        (log_capacity, keeps_turns): (usize, bool),
        cpus: &[usize],
        partitions: Option<&Partitions>,
    ) -> Result<(), RunError> {
        let (shared, place) = (Arc::clone(self.shared), Place::new(&self.shared.muster));
        let own_cpu = cpus[shared.system.task(task).cpu.index()];
        let entry = partitions.map(|partitions| partitions.entry(own_cpu));
        let cpus: Vec<usize> = match partitions {
            Some(_) => vec![own_cpu],
            None => shared.system.cpus_of(task).map(|cpu| cpus[cpu.index()]).collect(),
        };
        let name: String = shared.system.task(task).name.chars().filter(|&c| c != '\0').collect();
        let body = move || {
            let executor = &shared.locks.executor;
            executor.seat(task).sit();
            executor.prepare();
            let turns = keeps_turns.then(|| Log::new(log_capacity));
            let thread = TaskThread::new(&shared, task, Log::new(log_capacity), turns);
            let reservation = shared.reservations.get(task.index());
            let set_up = match reservation {
                Some(reservation) => {
                    let entered = entry.map_or(Ok(()), |entry| go_to(own_cpu, entry.as_ref()));
                    let admitted = || reservation.begin().map_err(|error| RunError::NotAdmitted { task, error });
                    entered.and_then(|()| admitted())
                }
                None => become_realtime(WATCHDOG_LEVEL, &cpus).map_err(RunError::from),
            };
            let failed = set_up.is_err();
            place.answer(set_up);
            // Only now: a busy thread of another program may keep a thread of this level from executing, and the set-up
            // has no watchdog yet. The kernel always lets a thread lower itself; one that was put under the ordinary
            // policy meanwhile has no level.
            if reservation.is_none() && !failed {
                let _ = executor.take_level(task);
            }
            let begins = shared.start.pass();
            if failed {
                return;
            }
            if !begins {
                let _ = shared.demote(task);
                return;
            }
            let report = thread.execute();
            // The kernel moves the threads of a CPU that is unplugged, and then lets them execute everywhere.
            if let Ok(now) = sched::affinity() {
                shared.taken.ends(&cpus, &now);
            }
            shared.ends.leave(task, report, &shared.control);
            // The thread has no real-time work left. It sleeps before it leaves its policy: the kernel gives the CPU of
            // a thread that leaves SCHED_FIFO to the next one there, even if a more urgent one is ready elsewhere.
            shared.exit.pass();
            let _ = shared.demote(task);
        };
        self.tasks.push(spawn(&name, body)?);
        Ok(())
    }

    fn start_script(&mut self, changes: Vec<PriorityChange>, cpus: Vec<usize>) -> Result<(), RunError> {
        let (shared, place) = (Arc::clone(self.shared), Place::new(&self.shared.muster));
        let body = move || {
            let mut log = Vec::with_capacity(changes.len());
            shared.locks.executor.prepare();
            place.answer(become_realtime(SCRIPT_LEVEL, &cpus).map_err(RunError::from));
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
        let (shared, place) = (Arc::clone(self.shared), Place::new(&self.shared.muster));
        let body = move || {
            place.answer(become_realtime(WATCHDOG_LEVEL, &cpus).map_err(RunError::from));
            if !shared.ready.pass() {
                return 0;
            }
            let start_ns = clock::now_ns() + start_delay(&shared);
            // ORDERING: Relaxed: the start gate's word orders it.
            shared.start_ns.store(start_ns, Ordering::Relaxed);
            shared.control.started(start_ns);
            shared.start.open();
            watchdog::watch(&shared)
        };
        self.watchdog = Some(spawn("lockwright-watchdog", body)?);
        Ok(())
    }

    /// Ends all threads after a failed set-up. Returns `error`, which is the cause, also if some have not ended.
    ///
    /// BOUND: that of [`wait_until`].
    fn dismiss(self, error: RunError) -> RunError {
        self.shared.ready.abandon();
        self.shared.start.abandon();
        // Otherwise some of them do not execute, and end when they do.
        if error != RunError::NotReady {
            wait_until(|| {
                self.tasks.iter().all(JoinHandle::is_finished)
                    && self.script.as_ref().is_none_or(JoinHandle::is_finished)
                    && self.watchdog.as_ref().is_none_or(JoinHandle::is_finished)
            });
        }
        error
    }

    /// Waits for the end of the run. Returns its time and the changes that the script made.
    ///
    /// BOUND: the watchdog's bound and that of [`wait_for_ends`]. The watchdog and the script are above all tasks.
    /// Stuck threads are not waited for.
    fn wait_for_end(self) -> Result<(u64, Vec<Record>), RunError> {
        let watched = self.watchdog.map(JoinHandle::join);
        if !matches!(watched, Some(Ok(_))) {
            // Without a watchdog, the tasks are still told to end, and those that do not end are not waited for.
            self.shared.control.leave(CUT);
        }
        self.shared.naps.iter().for_each(Nap::wake);
        // The script names threads by their ids, which stay valid until the exit gate opens.
        let script = self.script.map(JoinHandle::join);
        self.shared.exit.open();
        let end_ns = match watched {
            Some(Ok(end_ns)) => end_ns,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("an assembled crew has a watchdog"),
        };
        let stuck: Vec<TaskId> = self.shared.ends.unfinished().collect();
        if !stuck.is_empty() {
            return Err(RunError::Stuck { tasks: stuck });
        }
        let stuck = wait_for_ends(&self.tasks);
        if !stuck.is_empty() {
            return Err(RunError::Stuck { tasks: stuck.into_iter().map(TaskId::new).collect() });
        }
        match script {
            None => Ok((end_ns, Vec::new())),
            Some(Ok((log, None))) => Ok((end_ns, log)),
            Some(Ok((_, Some(failure)))) => Err(failure.into()),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

/// Moves the calling thread to a CPU whose partition has this entry, or to the CPU that the root alone has.
fn go_to(cpu: usize, entry: Option<&Entry>) -> Result<(), RunError> {
    match entry {
        Some(entry) => Ok(entry.enter()?),
        None => Ok(sched::set_affinity(sched::gettid(), &[cpu])?),
    }
}

/// The time from choosing the start to the start itself. Under SCHED_DEADLINE, the deadlines that the threads got by
/// passing the gate must be over by then: the kernel would give the first job the rest of an old reservation.
fn start_delay(shared: &Shared) -> u64 {
    let longest = shared.system.tasks().iter().map(|task| task.deadline.as_ns()).max().unwrap_or(0);
    START_DELAY_NS + if shared.reservations.is_empty() { 0 } else { longest }
}

/// The capacity of the journal: an entry of a log comes with at most a few orders.
fn journal_capacity(system: &System, config: &RunConfig) -> usize {
    let entries: usize = log_capacities(system, config).iter().sum();
    entries.saturating_mul(2).min(config.log_capacity)
}

/// The number of entries in the log of each task: the entries of its jobs, a gap for each job that may preempt them, a
/// gap for each tick of the kernel, and another execution of a section for each commit of other tasks. If the sum
/// exceeds the capacity, all are reduced in proportion.
fn log_capacities(system: &System, config: &RunConfig) -> Vec<usize> {
    const A_JOB: u64 = 8;
    const A_LOCK: u64 = 12;
    const A_GAP: u64 = 2;
    const A_RESTART: u64 = 6;
    const TICKS_PER_MS: u64 = 8;
    const SPARE: u64 = 256;
    let duration = config.duration.as_ns();
    let jobs: Vec<u64> = system.tasks().iter().map(|task| duration / task.period.as_ns() + 1).collect();
    // The most commits of each resource. Each commit invalidates at most one section of a task.
    let mut commits = vec![0_u64; system.resources().len()];
    let ruled = |resource| system.protocol_of(resource, config.protocol).is_interruptible();
    for resource in system.resource_ids().filter(|&resource| ruled(resource)) {
        for &user in system.users(resource) {
            let ends = |step: &&Step| **step == Step::Unlock(resource);
            let sections = system.task(user).body.iter().filter(ends).count() as u64;
            let all = &mut commits[resource.index()];
            *all = all.saturating_add(jobs[user.index()].saturating_mul(sections));
        }
    }
    let wanted = |task: TaskId| {
        let this = system.task(task);
        let locks = this.body.iter().filter(|step| step.acquired().is_some()).count() as u64;
        let mut others = system.tasks().iter().zip(&jobs).filter(|(other, _)| other.cpu == this.cpu);
        let others = others.try_fold(0_u64, |sum, (_, jobs)| sum.checked_add(*jobs))?;
        let own = jobs[task.index()].checked_mul(A_JOB + A_LOCK * locks)?;
        let ticks = duration / 1_000_000 * TICKS_PER_MS;
        let mut used = system.resource_ids().filter(|&resource| system.users(resource).contains(&task));
        let commits = used.try_fold(0_u64, |sum, resource| sum.checked_add(commits[resource.index()]))?;
        let own = own.checked_add(A_RESTART.checked_mul(commits)?)?;
        own.checked_add(A_GAP.checked_mul(others.checked_add(ticks)?)?)?.checked_add(SPARE)
    };
    let wanted: Vec<u64> = system.task_ids().map(|task| wanted(task).unwrap_or(u64::MAX)).collect();
    let all: u128 = wanted.iter().map(|&wanted| u128::from(wanted)).sum();
    let given = u128::min(all, config.log_capacity as u128);
    wanted.iter().map(|&wanted| (u128::from(wanted) * given / all.max(1)) as usize).collect()
}
