//! The costs of protocols: lock and unlock without contention and under the workload of a published measurement on
//! RTEMS.
//!
//! *The workload.* Each of three application processors has five tasks with distinct priorities. There are three
//! resources, and each job has one request. A fourth processor is for synchronisation. A machine with fewer processors
//! has up to three application processors, and the last of them is also the one for synchronisation.

use super::harness::{Readings, measuring};
use super::pace::LEVEL;
use super::works::{BATCH, Interruptions, Pick, TURN, Work, Works};
use lockwright::mutex::{Limit, Mutex, Protocol as MutexProtocol};
use lockwright::raw::{Levels, Locks, check_system};
use lockwright::section::{Lazy, SectionError};
use lockwright::tasks::{MachineError, ResourceError, TaskError, TaskSet};
use lockwright_engine::raw::{Recorder, Ring, become_realtime, spawn};
use lockwright_engine::{Control, RunError};
use lockwright_locks::{SpinLock, Ticket};
use lockwright_model::{
    Cost, CpuId, Duration, Overhead, Overheads, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sys::sched::{self, ME};
use lockwright_sys::{clock, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration as Wait;

/// The costs of one protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolCost {
    /// The name of the protocol, and of the variant if there are two.
    pub name: &'static str,
    /// The protocol, if its operations are those of a task set.
    pub protocol: Option<Protocol>,
    /// Lock and unlock together, without contention, in nanoseconds.
    pub alone: Readings,
    /// Lock, and unlock, without contention.
    pub alone_each: Option<(Readings, Readings)>,
    /// The work of the protocol at the begin and at the end of a job, together.
    pub job: Option<Readings>,
    /// The value that the median of `alone` should not exceed, in nanoseconds, computed from the machine's costs in the
    /// same run.
    pub target_ns: Option<u64>,
    /// Lock, and unlock, under the workload; `None` if they were not measured.
    pub contended: Option<(Readings, Readings)>,
}

/// The results of the measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocols {
    /// The costs of the machine and its kernel. Operations that cannot be measured on this machine are missing.
    pub machine: Vec<(Work, Readings)>,
    /// The interruptions of a thread above all others: by ticks, by other interrupts, and by the host.
    pub interruptions: Interruptions,
    /// The costs of each protocol.
    pub costs: Vec<ProtocolCost>,
    /// The number of application processors of the workload.
    pub applications: usize,
    /// Whether synchronisation has a processor of its own.
    pub has_synchronisation: bool,
    /// Whether the measurement was ended early.
    pub interrupted: bool,
}

impl Protocols {
    /// Returns the readings of one operation of the machine.
    #[must_use]
    pub fn work(&self, work: Work) -> Option<&Readings> {
        self.machine.iter().find(|(known, _)| *known == work).map(|(_, readings)| readings)
    }
}

/// A protocol and its variant: with tasks on one processor each, or in a cluster of two processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    protocol: Protocol,
    clustered: bool,
}

impl Kind {
    /// Returns the variants of the protocols on a machine with this number of processors.
    fn of(protocols: &[Protocol], cpus: usize) -> Vec<Self> {
        let plain = protocols.iter().map(|&protocol| Self { protocol, clustered: false });
        let clustered = protocols.iter().filter(|&&protocol| protocol == Protocol::Omlp && cpus > 1);
        plain.chain(clustered.map(|&protocol| Self { protocol, clustered: true })).collect()
    }

    fn name(self) -> &'static str {
        if self.clustered { "omlp, in a cluster" } else { self.protocol.name() }
    }

    /// Whether it is executed under the workload. The workload has no interruptible sections, as its threads cannot
    /// undo their writes.
    fn has_workload(self) -> bool {
        !self.clustered && !self.protocol.is_interruptible()
    }
}

/// The resource of each task, by priority and application processor. Every processor uses every resource.
const TABLE: [[usize; 3]; 5] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 2, 0], [2, 0, 1]];
/// The period of the first task. The periods of the others are slightly longer, so that the tasks are not in phase.
const PERIOD_NS: u64 = 2_000_000;
const STAGGER_NS: u64 = 37_000;
/// The time for which a job holds its resource.
const HELD_NS: u64 = 10_000;
/// The time by which the workload may exceed its planned end.
const PATIENCE: Wait = Wait::from_secs(20);

type Tell<'a> = &'a mut dyn FnMut(usize, usize);

/// Takes `readings` readings (at least 100) of each operation without contention, and then at least `pairs` readings of
/// lock and unlock with each protocol under the workload. If `pairs` is 0, the workload is not executed. If `control`
/// is stopped, incomplete protocols are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started or do not return.
pub fn protocols(readings: usize, pairs: usize, control: &Control, progress: Tell<'_>) -> Result<Protocols, RunError> {
    let cpus = sched::affinity()?;
    let kinds = Kind::of(&Protocol::ALL, cpus.len());
    let loaded = kinds.iter().filter(|kind| kind.has_workload()).count();
    let parts = 2 + if pairs > 0 { loaded } else { 0 };
    let mut seen = measured_alone(readings, kinds, control, false)?;
    progress(2, parts);
    let mut done = 2;
    for cost in seen.costs.iter_mut().filter(|_| pairs > 0) {
        let Some(protocol) = cost.protocol.filter(|&protocol| Kind { protocol, clustered: false }.has_workload())
        else {
            continue;
        };
        if cost.name != protocol.name() {
            continue;
        }
        if control.is_stopped() {
            break;
        }
        cost.contended = workload(protocol, seen.applications, seen.has_synchronisation, pairs, control)?;
        done += 1;
        progress(done, parts);
    }
    seen.interrupted = control.is_stopped();
    Ok(seen)
}

/// Measures the overheads under these protocols: [`Pick::Latest`] of `readings` readings of each operation without
/// contention. With several protocols, there is a table for each. Cache delays are not measured.
///
/// A thousand readings take about a second and a half. Meanwhile, switches are recorded as in a run with
/// [`RunConfig::watch`](lockwright_engine::RunConfig::watch), so that the overheads include the recording.
///
/// # Errors
/// Fails as [`protocols()`] does.
pub fn overheads(protocols: &[Protocol], readings: usize, control: &Control) -> Result<Overheads, RunError> {
    let cpus = sched::affinity()?;
    let kinds = Kind::of(protocols, cpus.len());
    let recorder = Recorder::start(&cpus, &[]);
    let measured = measured_alone(readings, kinds, control, recorder.is_none());
    if let Some(recorder) = recorder {
        recorder.stop(0);
    }
    Ok(measured?.overheads(Pick::Latest, protocols))
}

/// Takes the readings without contention. With `records_itself`, the measuring thread records its own switches.
fn measured_alone(
    readings: usize,
    kinds: Vec<Kind>,
    control: &Control,
    records_itself: bool,
) -> Result<Protocols, RunError> {
    let cpus = sched::affinity()?;
    let (own, on) = (control.clone(), cpus.clone());
    let (machine, costs, interruptions) = measuring(move || {
        let _ring = records_itself.then(|| Ring::of_thread(sched::gettid()));
        alone(readings.max(100), &kinds, &on, &own)
    })?;
    let applications = cpus.len().min(3);
    Ok(Protocols {
        machine,
        interruptions,
        costs,
        applications,
        has_synchronisation: cpus.len() > applications,
        interrupted: control.is_stopped(),
    })
}

impl Pick {
    fn of(self, readings: &Readings) -> u64 {
        match self {
            Self::Average => readings.usual().0,
            Self::Worst | Self::Latest => readings.usual().1,
        }
    }

    pub(super) fn lateness(self, readings: &Readings) -> u64 {
        if self == Self::Latest { readings.quantile(1.0) } else { self.of(readings) }
    }
}

impl Protocols {
    /// Returns the overheads to be charged: common values, and a table for each of `protocols` that was measured. For a
    /// single protocol, all values are common.
    ///
    /// A cost that is part of another reading is subtracted from it, so that it is not charged twice.
    #[must_use]
    pub fn overheads(&self, pick: Pick, protocols: &[Protocol]) -> Overheads {
        let of = |work| self.work(work).map_or(0, |readings| pick.of(readings));
        let call = of(Work::SystemCall);
        let schedule = of(Work::Yield).saturating_sub(call);
        let switch = of(Work::ContextSwitch).saturating_sub(call + schedule);
        let wake = of(Work::WakeThere).saturating_sub(call + schedule + switch);
        let late = self.work(Work::ReleaseLatency).map_or(0, |readings| pick.lateness(readings));
        let lateness = late.saturating_sub(schedule + switch);
        let leave = of(Work::LeaveSection).saturating_sub(of(Work::PriorityChange) + schedule + switch);
        let costs = |protocol| self.costs.iter().filter(move |cost| cost.protocol == Some(protocol));
        let most = |protocol, part: fn(&ProtocolCost) -> Option<&Readings>| {
            costs(protocol).filter_map(part).map(|readings| pick.of(readings)).max()
        };
        // The work of protocols at the begin and end of jobs is part of a release.
        let jobs = protocols.iter().filter_map(|&protocol| most(protocol, |cost| cost.job.as_ref())).max();
        let ns = |ns: u64| Cost::constant(Duration::from_ns(ns));
        let mut overheads = Overheads::default();
        if let Some((period, taken)) = self.interruptions.charged(pick) {
            overheads.tick_period = Duration::from_ns(period);
            overheads.set(Overhead::Tick, ns(taken));
        }
        for (overhead, time) in [
            (Overhead::Release, of(Work::Release) + jobs.unwrap_or(0)),
            (Overhead::ReleaseLatency, lateness),
            (Overhead::Schedule, schedule),
            (Overhead::ContextSwitch, switch),
            (Overhead::IpiLatency, wake),
            (Overhead::LeaveSection, leave),
            (Overhead::SyscallIn, call.div_ceil(2)),
            (Overhead::SyscallOut, call.div_ceil(2)),
        ] {
            overheads.set(overhead, ns(time));
        }
        for &protocol in protocols {
            let lock = most(protocol, |cost| cost.alone_each.as_ref().map(|each| &each.0));
            let unlock = most(protocol, |cost| cost.alone_each.as_ref().map(|each| &each.1));
            let (Some(lock), Some(unlock)) = (lock, unlock) else { continue };
            let mut rows = vec![(Overhead::Lock, lock), (Overhead::Unlock, unlock)];
            // No priority is raised in a section, so no preemption is delayed to its end.
            if matches!(protocol, Protocol::None | Protocol::Ics) {
                rows.push((Overhead::LeaveSection, 0));
            }
            for (overhead, time) in rows {
                match protocols {
                    [_] => overheads.set(overhead, ns(time)),
                    _ => overheads.set_under(overhead, protocol, ns(time)),
                }
            }
        }
        overheads
    }
}

fn run_error(error: TaskError) -> RunError {
    match error {
        TaskError::Machine(error) => error.into(),
        TaskError::Lock(ResourceError::Sys(error)) => error.into(),
        _ => RunError::SetUp,
    }
}

fn section_error(error: SectionError) -> RunError {
    match error {
        SectionError::Sys(error) | SectionError::NoCpu { error, .. } | SectionError::NoPermission { error, .. } => {
            error.into()
        }
        _ => RunError::SetUp,
    }
}

type Alone = (Vec<(Work, Readings)>, Vec<ProtocolCost>, Interruptions);

/// The readings of one protocol without contention.
#[derive(Default)]
struct Pairs {
    lock: Vec<u64>,
    unlock: Vec<u64>,
    job: Vec<u64>,
}

/// The calling thread as one of two tasks that share a resource. The other task has no thread, so there is no
/// contention. Under a protocol for several processors, the other task and the home of the resource are on another
/// processor, if there is one.
struct Lonely {
    system: System,
    locks: Locks,
    is_interruptible: bool,
    pairs: Pairs,
}

const ME_AS_TASK: TaskId = TaskId(0);

impl Lonely {
    fn new(kind: Kind, cpus: &[usize]) -> Result<Self, TaskError> {
        let Kind { protocol, clustered } = kind;
        let is_local = matches!(
            protocol,
            Protocol::None
                | Protocol::Pip
                | Protocol::Icpp
                | Protocol::Pcp
                | Protocol::Srp
                | Protocol::Ics
                | Protocol::IcsLock
        );
        let there = CpuId(u16::from(!is_local && !clustered && cpus.len() > 1));
        let resource = Resource { name: "r".into(), home: (!clustered).then_some(there), ..Resource::default() };
        let time = Duration::from_ms(1);
        let task = |name: &str, cpu: CpuId, priority: u32| Task {
            name: name.into(),
            cpu,
            priority: Priority::base(priority),
            period: time,
            deadline: time,
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_ns(1),
            body: vec![Step::Lock(R), Step::Run(Duration::from_ns(1)), Step::Unlock(R)],
        };
        let tasks = vec![task("me", CpuId(0), 10), task("other", there, 20)];
        let count = if clustered { 2 } else { there.index() + 1 };
        let mut system = System::new("alone".into(), count, Some(protocol), vec![resource], tasks)?;
        if clustered {
            system = system.in_clusters(&[0b11, 0b11])?;
        }
        check_system(&system, protocol)?;
        let levels = Levels::of(&system, protocol, &[]);
        let levels = levels.map_err(|too_many| MachineError::TooManyPriorities { needed: too_many.0 })?;
        let locks = Locks::new(&system, protocol, levels, &cpus[..count]);
        let is_interruptible = system.interruptible(protocol).is_some();
        Ok(Self { system, locks, is_interruptible, pairs: Pairs::default() })
    }

    /// Takes [`TURN`] readings. Afterwards the thread is on the task's processors, at the task's level.
    fn turn(&mut self, cpus: &[usize], clock_ns: u64) -> Result<(), TaskError> {
        let executor = &self.locks.executor;
        executor.seat(ME_AS_TASK).sit();
        executor.prepare();
        sched::set_fifo(ME, executor.level(self.system.task(ME_AS_TASK).priority))?;
        let own: Vec<usize> = self.system.cpus_of(ME_AS_TASK).map(|cpu| cpus[cpu.index()]).collect();
        sched::set_affinity(ME, &own)?;
        // The first round is not recorded, as it finds cold caches.
        for round in 0..=TURN {
            let arrived = clock::now_ns();
            self.locks.arrive(ME_AS_TASK)?;
            let before = clock::now_ns();
            self.locks.lock(ME_AS_TASK, R)?;
            let locked = clock::now_ns();
            match self.is_interruptible {
                // No other section commits, so this one is never invalidated.
                true => drop(self.locks.end_interruptible(ME_AS_TASK, R).transpose()?),
                false => self.locks.unlock(ME_AS_TASK, R)?,
            }
            let unlocked = clock::now_ns();
            self.locks.finish(ME_AS_TASK)?;
            let after = clock::now_ns();
            if round > 0 {
                self.pairs.lock.push((locked - before).saturating_sub(clock_ns));
                self.pairs.unlock.push((unlocked - locked).saturating_sub(clock_ns));
                self.pairs.job.push((before - arrived + after - unlocked).saturating_sub(2 * clock_ns));
            }
        }
        Ok(())
    }
}

fn alone(readings: usize, kinds: &[Kind], cpus: &[usize], control: &Control) -> Result<Alone, RunError> {
    become_realtime(LEVEL, cpus)?;
    let mut works = Works::new(cpus);
    let lonely = kinds.iter().map(|&kind| Lonely::new(kind, cpus));
    let mut lonely: Vec<Lonely> = lonely.collect::<Result<_, _>>().map_err(run_error)?;
    let mut lazy: [Vec<u64>; 2] = Default::default();
    let clock_ns = clock_cost();
    for _ in 0..readings.div_ceil(TURN) {
        if control.is_stopped() {
            break;
        }
        works.turn(clock_ns)?;
        for one in &mut lonely {
            one.turn(cpus, clock_ns).map_err(run_error)?;
        }
        sched::set_fifo(ME, LEVEL)?;
        sched::set_affinity(ME, &[cpus[0]])?;
        read_lazy(cpus[0], &mut lazy)?;
        // The rest of the machine has its share.
        let _ = clock::sleep_until(clock::now_ns() + 3_000_000);
    }
    sched::set_affinity(ME, cpus)?;
    let (machine, interruptions) = works.end();
    let median = |work| {
        let found = machine.iter().find(|(known, _)| *known == work);
        found.map(|(_, readings): &(Work, Readings)| readings.quantile(0.5))
    };
    let changes = median(Work::PriorityChange).map(|ns| 2 * ns);
    let moves = median(Work::MigrationTo).zip(median(Work::MigrationBack)).map(|(to, back)| to + back);
    let target = |kind: Kind| match kind.protocol {
        Protocol::None | Protocol::Pip | Protocol::Icpp | Protocol::Pcp | Protocol::Srp => None,
        Protocol::Ics | Protocol::IcsLock => None,
        Protocol::Omlp if kind.clustered => None,
        Protocol::FmlpShort | Protocol::Msrp => changes.map(|changes| changes + 500),
        Protocol::Dpcp | Protocol::Dflp => moves.map(|moves| moves + 2_000),
        _ => changes.map(|changes| changes + 1_000),
    };
    let mut costs = Vec::new();
    for (&kind, Lonely { pairs, .. }) in kinds.iter().zip(lonely) {
        let Pairs { lock, unlock, job } = pairs;
        let both: Vec<u64> = lock.iter().zip(&unlock).map(|(lock, unlock)| lock + unlock).collect();
        if let Some(alone) = Readings::new(both) {
            costs.push(ProtocolCost {
                name: kind.name(),
                protocol: Some(kind.protocol),
                alone,
                alone_each: Readings::new(lock).zip(Readings::new(unlock)),
                job: Readings::new(job),
                target_ns: target(kind),
                contended: None,
            });
        }
    }
    for (name, target_ns, ns) in [("fmlp_short, msrp: lazy section", 100, 0), ("srp, icpp: lazy ceiling", 30, 1)] {
        if let Some(alone) = Readings::new(std::mem::take(&mut lazy[ns])) {
            let target_ns = Some(target_ns);
            costs.push(ProtocolCost {
                name,
                protocol: None,
                alone,
                alone_each: None,
                job: None,
                target_ns,
                contended: None,
            });
        }
    }
    Ok((machine, costs, interruptions))
}

/// Returns the median cost of a reading of the clock.
fn clock_cost() -> u64 {
    let mut reads = [0; 1_001];
    let mut last = clock::now_ns();
    for read in &mut reads {
        let now = clock::now_ns();
        *read = now - last;
        last = now;
    }
    reads.sort_unstable();
    reads[reads.len() / 2]
}

const R: ResourceId = ResourceId(0);

/// Reads a ticket lock in a lazy section, and a mutex with a lazy ceiling. Each reading is the mean of a batch.
fn read_lazy(cpu: usize, [section, ceiling]: &mut [Vec<u64>; 2]) -> Result<(), RunError> {
    let managed = Lazy::manage(cpu).map_err(section_error)?;
    let spinlock = SpinLock::<Ticket, ()>::new(());
    let mutex = Mutex::<()>::builder().protocol(MutexProtocol::Protect(LEVEL + 5)).build_raw();
    for _ in 0..4 {
        let before = clock::now_ns();
        for _ in 0..BATCH {
            let _section = managed.enter().map_err(section_error)?;
            let _guard = spinlock.lock();
        }
        let between = clock::now_ns();
        for _ in 0..BATCH {
            if mutex.lock(Limit::Never).is_ok() {
                let _ = mutex.unlock();
            }
        }
        let after = clock::now_ns();
        section.push((between - before) / BATCH);
        ceiling.push((after - between) / BATCH);
    }
    Ok(())
}

/// Measures lock and unlock under the workload. Returns `None` if `control` was stopped or there are no readings.
fn workload(
    protocol: Protocol,
    applications: usize,
    has_synchronisation: bool,
    pairs: usize,
    control: &Control,
) -> Result<Option<(Readings, Readings)>, RunError> {
    let mut builder = TaskSet::builder(protocol);
    let home = applications - usize::from(!has_synchronisation);
    let cpu = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
    let resources = ["r1", "r2", "r3"].map(|name| builder.resource_at(name, cpu(home)));
    let mut jobs = Vec::new();
    for (level, row) in TABLE.iter().enumerate() {
        for (application, &resource) in row.iter().enumerate().take(applications) {
            let name = format!("{level}-{application}");
            let task = builder.task(&name, cpu(application), 10 + 10 * level as u16, &[resources[resource]]);
            jobs.push((task, resources[resource]));
        }
    }
    let set = builder.build().map_err(run_error)?;
    let rounds = pairs.div_ceil(jobs.len());
    let stop = Arc::new(AtomicBool::new(false));
    let begin = clock::now_ns() + 20_000_000;
    let (sender, receiver) = mpsc::channel();
    let mut threads = Vec::new();
    for (index, &(task, resource)) in jobs.iter().enumerate() {
        let (set, stop, sender) = (set.clone(), Arc::clone(&stop), sender.clone());
        let body = move || {
            let seen = work(&set, task, resource, rounds, begin + index as u64 * STAGGER_NS, &stop);
            let _ = sender.send(seen);
        };
        threads.push(signal::with_all_blocked(|| spawn("measure-task", body))?);
    }
    drop(sender);
    let planned = Wait::from_nanos(rounds as u64 * (PERIOD_NS + jobs.len() as u64 * 1_000));
    let mut left = jobs.len();
    let (mut locks, mut unlocks) = (Vec::new(), Vec::new());
    let mut failure = None;
    let started = std::time::Instant::now();
    // BOUND: the planned time and PATIENCE.
    while left > 0 {
        match receiver.recv_timeout(Wait::from_millis(100)) {
            Ok(Ok((lock, unlock))) => {
                locks.extend(lock);
                unlocks.extend(unlock);
                left -= 1;
            }
            Ok(Err(error)) => {
                // ORDERING: Relaxed, here and where it is read: it publishes nothing.
                stop.store(true, Ordering::Relaxed);
                failure = failure.or(Some(run_error(error)));
                left -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {
                if control.is_stopped() {
                    stop.store(true, Ordering::Relaxed);
                }
                if started.elapsed() > planned + PATIENCE {
                    stop.store(true, Ordering::Relaxed);
                    return Err(RunError::Stuck { tasks: jobs.iter().map(|job| job.0).collect() });
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(RunError::SetUp),
        }
    }
    for thread in threads {
        thread.join().map_err(|_| RunError::SetUp)?;
    }
    match failure {
        Some(failure) => Err(failure),
        None if control.is_stopped() => Ok(None),
        None => Ok(Readings::new(locks).zip(Readings::new(unlocks))),
    }
}

/// Executes the jobs of one task. Returns the times of their locks and unlocks.
fn work(
    set: &TaskSet,
    task: TaskId,
    resource: ResourceId,
    rounds: usize,
    begin: u64,
    stop: &AtomicBool,
) -> Result<(Vec<u64>, Vec<u64>), TaskError> {
    let (mut locks, mut unlocks) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    let me = set.join(task)?;
    let period = PERIOD_NS + u64::from(task.0) * 1_000;
    for round in 0..rounds as u64 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        clock::sleep_until(begin + round * period)?;
        let job = me.begin()?;
        let before = clock::now_ns();
        let section = job.lock(resource)?;
        let locked = clock::now_ns();
        // BOUND: HELD_NS.
        while clock::now_ns() - locked < HELD_NS {}
        let held = clock::now_ns();
        section.end()?;
        let after = clock::now_ns();
        job.end()?;
        locks.push(locked - before);
        unlocks.push(after - held);
    }
    Ok((locks, unlocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;

    #[test]
    fn every_processor_uses_every_resource() {
        for cpu in 0..3 {
            let mut used: Vec<usize> = TABLE.iter().map(|row| row[cpu]).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, [0, 1, 2]);
        }
    }

    #[test]
    fn everything_is_measured() {
        let Some(_machine) = require_realtime() else { return };
        let mut parts = Vec::new();
        let seen = protocols(100, 60, &Control::new(), &mut |done, whole| parts.push((done, whole)));
        let seen = seen.expect("permission was checked");
        assert_eq!(parts.last(), Some(&(17, 17)));
        let kinds = Kind::of(&Protocol::ALL, sched::affinity().expect("a CPU set").len());
        assert_eq!(seen.costs.len(), kinds.len() + 2);
        for cost in &seen.costs {
            let contended = cost.contended.as_ref().map(|(lock, unlock)| (lock.count() >= 60, unlock.count() >= 60));
            let is_loaded = kinds.iter().any(|kind| kind.name() == cost.name && kind.has_workload());
            assert_eq!(contended, is_loaded.then_some((true, true)), "{}", cost.name);
            assert!(cost.alone.count() >= 8, "{}", cost.name);
        }
        for protocol in Protocol::ALL {
            let overheads = seen.overheads(Pick::Worst, &[protocol]);
            let of = |of| overheads.cost(of).with(1).as_ns();
            assert!(of(Overhead::Lock) > 0 && of(Overhead::Unlock) > 0, "{protocol}: {overheads:?}");
            assert!(overheads.protocols().next().is_none());
        }
        let all = seen.overheads(Pick::Worst, &Protocol::ALL);
        assert_eq!(all.protocols().collect::<Vec<_>>(), Protocol::ALL);
        // Without contention, a lock has no system call under `none`, and a change of priority under `mpcp`.
        let lock = |protocol| all.cost_under(Overhead::Lock, protocol).with(1);
        assert!(lock(Protocol::None) < lock(Protocol::Mpcp), "{all:?}");
        assert!(seen.work(Work::SystemCall).is_some_and(|readings| readings.quantile(0.5) > 0));
    }

    #[test]
    fn a_stopped_measurement_has_no_costs() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        control.stop();
        let seen = protocols(100, 60, &control, &mut |_, _| ()).expect("permission was checked");
        assert!(seen.interrupted && seen.machine.is_empty() && seen.costs.is_empty());
    }
}
