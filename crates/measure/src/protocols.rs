//! Protocols for several processors: what locking and unlocking takes, alone and under the workload of a published measurement on RTEMS, and what of it is this
//! machine's and its kernel's.
//!
//! *The workload.* Five tasks of five priorities on each of three application processors, three resources, one request a job, a fourth processor for
//! synchronisation. Where the machine has fewer, there are as many application processors as it has, up to three, and the last of them is that of
//! synchronisation, too.

use super::pace::LEVEL;
use lockwright::mutex::{Limit, Mutex, Protocol as MutexProtocol};
use lockwright::raw::Levels;
use lockwright::raw::Locks;
use lockwright::raw::check_system;
use lockwright::section::{Lazy, SectionError};
use lockwright::tasks::ResourceError;
use lockwright::tasks::{MachineError, TaskError, TaskSet};
use lockwright_engine::raw::Recorder;
use lockwright_engine::raw::Ring;
use lockwright_engine::raw::{become_realtime, spawn};
use lockwright_engine::{Control, RunError};
use lockwright_locks::{SpinLock, Ticket};
use lockwright_model::{
    Cost, CpuId, Duration, Overhead, Overheads, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId,
};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::sched::{self, ME};
use lockwright_sys::{SysError, clock, signal};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::time::Duration as Wait;

/// Readings in nanoseconds, ascending, not empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Readings(Vec<u64>);

impl Readings {
    /// Of readings in any order; `None` where there is none.
    #[must_use]
    pub fn new(mut ns: Vec<u64>) -> Option<Self> {
        ns.sort_unstable();
        (!ns.is_empty()).then_some(Self(ns))
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The reading that a share of all does not exceed: 0 is the least, 1 the greatest.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let last = self.0.len() - 1;
        self.0[((share * last as f64).round() as usize).min(last)]
    }

    /// The mean, rounded up.
    #[must_use]
    pub fn mean(&self) -> u64 {
        mean(&self.0)
    }

    /// Mean and greatest of all but the top 1 %, which interrupts and the host have come into.
    #[must_use]
    pub fn usual(&self) -> (u64, u64) {
        let kept = &self.0[..(self.0.len() * 99).div_ceil(100).max(1)];
        (mean(kept), kept[kept.len() - 1])
    }
}

/// Of a list that is not empty; rounded up.
fn mean(ns: &[u64]) -> u64 {
    let sum: u128 = ns.iter().map(|&ns| u128::from(ns)).sum();
    u64::try_from(sum.div_ceil(ns.len() as u128)).unwrap_or(u64::MAX)
}

/// Something the machine and its kernel do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Work {
    /// A system call that does nothing, there and back.
    SystemCall,
    /// A change of one's own priority.
    PriorityChange,
    /// Giving the processor away, with nobody to take it.
    Yield,
    /// Giving the processor to another thread of the same level.
    ContextSwitch,
    /// From waking a more urgent thread of the same processor until it executes.
    WakeHere,
    /// From waking a thread of another, idle processor until it executes.
    WakeThere,
    /// From the instant a thread wanted to sleep until, to its execution.
    ReleaseLatency,
    /// What the release of a more urgent thread takes from the one that executes, beside two switches; with what that thread does to sleep again.
    Release,
    /// What the kernel takes from a thread now and then, a tick of its timer among others.
    Tick,
    /// To another processor.
    MigrationTo,
    /// And back.
    MigrationBack,
    /// A non-preemptive section by two priority changes, in and out.
    EagerSection,
    /// One by the lazy word, in and out.
    LazySection,
    /// From the end of a section by priority changes until a more urgent thread executes that became ready in it.
    LeaveSection,
}

impl Work {
    /// Each of them.
    pub const ALL: [Self; 14] = [
        Self::SystemCall,
        Self::PriorityChange,
        Self::Yield,
        Self::ContextSwitch,
        Self::WakeHere,
        Self::WakeThere,
        Self::ReleaseLatency,
        Self::Release,
        Self::Tick,
        Self::MigrationTo,
        Self::MigrationBack,
        Self::EagerSection,
        Self::LazySection,
        Self::LeaveSection,
    ];

    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SystemCall => "system call",
            Self::PriorityChange => "priority change",
            Self::Yield => "yield to nobody",
            Self::ContextSwitch => "yield to another",
            Self::WakeHere => "wake, same CPU",
            Self::WakeThere => "wake, other CPU",
            Self::ReleaseLatency => "release, lateness",
            Self::Release => "release, of another",
            Self::Tick => "tick",
            Self::MigrationTo => "migrate to",
            Self::MigrationBack => "migrate back",
            Self::EagerSection => "section, eager",
            Self::LazySection => "section, lazy",
            Self::LeaveSection => "leave, preempted",
        }
    }
}

/// One protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolCost {
    /// Its name, and how it was implemented where it has two ways.
    pub name: &'static str,
    /// Which it is, where its operations are those of a task set.
    pub protocol: Option<Protocol>,
    /// Lock and unlock that nobody else wants, together.
    pub alone: Readings,
    /// The same of each.
    pub alone_each: Option<(Readings, Readings)>,
    /// What the protocol does when a job begins and when it ends, together.
    pub job: Option<Readings>,
    /// What that should not exceed, in nanoseconds, from what was measured of the machine in the same run.
    pub target_ns: Option<u64>,
    /// Lock and unlock under the workload; none of those that are measured alone.
    pub contended: Option<(Readings, Readings)>,
}

/// When something took a processor from a thread that nothing else should take it from, in one or more looks at the clock.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Interruptions {
    looks: Vec<Look>,
}

/// One look: how long it was, and each interruption, by when it began since then and how long it was.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Look {
    length_ns: u64,
    taken: Vec<(u64, u64)>,
}

impl Interruptions {
    /// From the beginning of one interruption to that of the next, half of the time.
    #[must_use]
    pub fn period_ns(&self) -> Option<u64> {
        let pairs = self.looks.iter().flat_map(|look| look.taken.windows(2));
        Some(Readings::new(pairs.map(|pair| pair[1].0 - pair[0].0).collect())?.quantile(0.5))
    }

    /// How much was taken in windows of this length: one from each interruption on, or the last of a look.
    fn within(&self, window_ns: u64) -> Option<Readings> {
        let windows = self.looks.iter().flat_map(|look| {
            let last = look.length_ns.checked_sub(window_ns);
            let from = look.taken.iter().filter_map(move |&(at, _)| Some(at.min(last?)));
            from.map(move |from| {
                let until = from + window_ns;
                let first = look.taken.partition_point(|&(at, took)| at + took <= from);
                let inside = look.taken[first..].iter().take_while(|&&(at, _)| at < until);
                inside.map(|&(at, took)| (at + took).min(until) - at.max(from)).sum()
            })
        });
        Readings::new(windows.collect())
    }

    /// A period and what is charged in each, in nanoseconds. No window of that length lost more, as far as `pick` looks: so no longer one lost more than
    /// that in each period it touches.
    fn charged(&self, pick: Pick) -> Option<(u64, u64)> {
        if pick == Pick::Average {
            let period = self.period_ns()?;
            let taken: u128 = self.looks.iter().flat_map(|look| &look.taken).map(|&(_, took)| u128::from(took)).sum();
            let looked: u128 = self.looks.iter().map(|look| u128::from(look.length_ns)).sum();
            let share = (taken * u128::from(period)).div_ceil(looked.max(1));
            return Some((period, u64::try_from(share).ok()?));
        }
        let windows = WINDOWS_NS.into_iter().filter_map(|window| Some((window, pick.lateness(&self.within(window)?))));
        // The least share of a processor; of two that are alike, the shorter window, which says more of short times.
        windows.min_by_key(|&(window, taken)| u128::from(taken) * u128::from(WINDOWS_NS[WINDOWS_NS.len() - 1] / window))
    }
}

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocols {
    /// The machine and its kernel; what cannot be measured here is not there.
    pub machine: Vec<(Work, Readings)>,
    /// What took a processor from a thread above all others: ticks, other interrupts, and the host.
    pub interruptions: Interruptions,
    /// Every protocol.
    pub costs: Vec<ProtocolCost>,
    /// Application processors of the workload.
    pub applications: usize,
    /// Whether synchronisation has a processor of its own.
    pub has_synchronisation: bool,
    /// Whether it was ended early.
    pub interrupted: bool,
}

impl Protocols {
    /// Of the machine.
    #[must_use]
    pub fn work(&self, work: Work) -> Option<&Readings> {
        self.machine.iter().find(|(known, _)| *known == work).map(|(_, readings)| readings)
    }
}

/// A protocol, and whether its tasks execute in a cluster of two processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    protocol: Protocol,
    clustered: bool,
}

impl Kind {
    /// Each protocol, and those of clusters where there are processors for one.
    fn of(protocols: &[Protocol], cpus: usize) -> Vec<Self> {
        let plain = protocols.iter().map(|&protocol| Self { protocol, clustered: false });
        let clustered = protocols.iter().filter(|&&protocol| protocol == Protocol::Omlp && cpus > 1);
        plain.chain(clustered.map(|&protocol| Self { protocol, clustered: true })).collect()
    }

    fn name(self) -> &'static str {
        if self.clustered { "omlp, in a cluster" } else { self.protocol.name() }
    }

    /// Whether it is executed under the workload: threads of a program cannot undo what they wrote.
    fn has_workload(self) -> bool {
        !self.clustered && !self.protocol.is_interruptible()
    }
}

/// Readings a turn: protocols take turns, so that what happens to the machine happens to all.
const TURN: usize = 50;
/// Lazy sections are too short for one reading.
const BATCH: u64 = 100;
/// The resource of each task, by priority and application processor: every processor uses every resource.
const TABLE: [[usize; 3]; 5] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 2, 0], [2, 0, 1]];
/// A job every so often, and a little more for each task, so that they do not keep step.
const PERIOD_NS: u64 = 2_000_000;
const STAGGER_NS: u64 = 37_000;
/// How long a job holds its resource.
const HELD_NS: u64 = 10_000;
/// How much later than planned the workload may end.
const PATIENCE: Wait = Wait::from_secs(20);

type Tell<'a> = &'a mut dyn FnMut(usize, usize);

/// Takes `readings` readings (at least 100) of everything alone, and then locks and unlocks at least `pairs` times under the workload with each protocol; not at all if it
/// is 0. Where `control` is stopped, what was not measured to its end is left out.
///
/// # Errors
/// Without the right to real-time priorities; where threads cannot be started, or do not come back.
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

/// What the machine takes under these protocols, to be charged: [`Pick::Latest`] of `readings` readings of each thing alone. A file of several protocols has a table of each. Caches
/// are not measured.
///
/// A thousand readings take about a second and a half. Switches are recorded meanwhile as in a run with
/// [`RunConfig::watch`](lockwright_engine::RunConfig::watch), for that takes time, too.
///
/// # Errors
/// As [`protocols()`].
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

/// `records_itself`: the measuring thread has its own switches recorded.
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

/// Which of many readings counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The mean of all but the top 1 %.
    Average,
    /// The greatest of all but the top 1 %.
    Worst,
    /// As `Worst`, and the greatest of all for how late releases are, and how much ticks and other interrupts take in a time. What else takes a processor stays without the top 1 %: an interrupt that came into
    /// such a reading is charged by itself.
    Latest,
}

impl Pick {
    fn of(self, readings: &Readings) -> u64 {
        match self {
            Self::Average => readings.usual().0,
            Self::Worst | Self::Latest => readings.usual().1,
        }
    }

    fn lateness(self, readings: &Readings) -> u64 {
        if self == Self::Latest { readings.quantile(1.0) } else { self.of(readings) }
    }
}

impl Protocols {
    /// What was measured, to be charged: what is common, and a table of each of `protocols`, as far as they were measured. One alone has no table: what it takes is common then.
    ///
    /// What is a part of another reading is taken from it, so that nothing is charged twice.
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
        // What protocols do as jobs begin and end is part of a release.
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
            // Nobody's priority is raised in a section: no preemption is delayed to its end.
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

/// On a thread of its own, which no signal disturbs.
fn measuring<T: Send + 'static>(body: impl FnOnce() -> Result<T, RunError> + Send + 'static) -> Result<T, RunError> {
    let thread = signal::with_all_blocked(|| spawn("measure", body))?;
    thread.join().map_err(|_| RunError::SetUp)?
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

/// Readings of one protocol, alone.
#[derive(Default)]
struct Pairs {
    lock: Vec<u64>,
    unlock: Vec<u64>,
    job: Vec<u64>,
}

/// The calling thread as one of two tasks that share a resource, which nobody else wants: the other task is nowhere. Where the protocol is for several processors, and there
/// are such, the other task and the home are on another.
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

    /// Takes [`TURN`] readings. The thread is on the task's processors afterwards, at the task's level.
    fn turn(&mut self, cpus: &[usize], clock_ns: u64) -> Result<(), TaskError> {
        let executor = &self.locks.executor;
        executor.seat(ME_AS_TASK).sit();
        executor.prepare();
        sched::set_fifo(ME, executor.level(self.system.task(ME_AS_TASK).priority))?;
        let own: Vec<usize> = self.system.cpus_of(ME_AS_TASK).map(|cpu| cpus[cpu.index()]).collect();
        sched::set_affinity(ME, &own)?;
        // The first finds cold caches.
        for round in 0..=TURN {
            let arrived = clock::now_ns();
            self.locks.arrive(ME_AS_TASK)?;
            let before = clock::now_ns();
            self.locks.lock(ME_AS_TASK, R)?;
            let locked = clock::now_ns();
            match self.is_interruptible {
                // Nobody commits beside it: it is never in vain.
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
        // The rest of the machine has its turn.
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

/// Of one reading of the clock, the median.
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

/// A ticket lock in a lazy section, and a mutex with a lazy ceiling: each reading is the mean of a batch.
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

/// What the machine and its kernel do, measured from one thread and a helper on its own or another processor.
struct Works {
    cpus: Vec<usize>,
    readings: Vec<Vec<u64>>,
    /// Between what the kernel took: when it was seen last.
    interruptions: Interruptions,
    turns: usize,
}

/// Gaps shorter than this are the clock's own.
const GAP_NS: u64 = 1_000;
/// How long the thread sleeps in a turn, to see how late it is woken.
const SLEEPS_NS: [u64; 10] =
    [50_000, 50_000, 100_000, 100_000, 200_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000];
/// How long the thread looks for ticks in a turn.
const LOOK_NS: u64 = 16_000_000;
/// Most interruptions of a look: one in two microseconds.
const LOOK_INTERRUPTIONS: usize = 1 << 13;
/// In windows of these lengths it is added up what was taken, the longest last; each divides it.
const WINDOWS_NS: [u64; 5] = [500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000];

impl Works {
    fn new(cpus: &[usize]) -> Self {
        Self {
            cpus: cpus.to_vec(),
            readings: vec![Vec::new(); Work::ALL.len()],
            interruptions: Interruptions::default(),
            turns: 0,
        }
    }

    fn note(&mut self, work: Work, ns: u64) {
        self.readings[work as usize].push(ns);
    }

    /// Takes TURN readings of each thing. The thread is on the first processor afterwards.
    fn turn(&mut self, clock_ns: u64) -> Result<(), SysError> {
        sched::set_affinity(ME, &[self.cpus[0]])?;
        for index in 0..TURN {
            let mut last = clock::now_ns();
            let mut since = |clock_ns: u64| {
                let now = clock::now_ns();
                let took = (now - last).saturating_sub(clock_ns);
                last = now;
                took
            };
            sched::null_call();
            self.note(Work::SystemCall, since(clock_ns));
            sched::set_level(ME, LEVEL + (index % 2) as u8)?;
            self.note(Work::PriorityChange, since(clock_ns));
            sched::yield_now();
            self.note(Work::Yield, since(clock_ns));
        }
        sched::set_level(ME, LEVEL)?;
        if let [first, second, ..] = self.cpus[..] {
            for _ in 0..TURN / 5 {
                let before = clock::now_ns();
                sched::set_affinity(ME, &[second])?;
                let there = clock::now_ns();
                sched::set_affinity(ME, &[first])?;
                let back = clock::now_ns();
                self.note(Work::MigrationTo, (there - before).saturating_sub(clock_ns));
                self.note(Work::MigrationBack, (back - there).saturating_sub(clock_ns));
            }
        }
        self.releases()?;
        self.sections(clock_ns);
        self.ticks(clock_ns);
        self.helped(clock_ns)
    }

    /// As a task of a run sleeps until its next job; on each processor, and for long enough that the processor, and its host, go to sleep too.
    fn releases(&mut self) -> Result<(), SysError> {
        let cpu = self.cpus[self.turns % self.cpus.len()];
        self.turns += 1;
        sched::set_affinity(ME, &[cpu])?;
        let word = AtomicU32::new(0);
        for sleep_ns in SLEEPS_NS {
            let at = clock::now_ns() + sleep_ns;
            // BOUND: `at`.
            while clock::now_ns() < at {
                futex::wait(Scope::Private, &word, 0, Some(Deadline::monotonic(at))).or_panic();
            }
            self.note(Work::ReleaseLatency, clock::now_ns().saturating_sub(at));
        }
        sched::set_affinity(ME, &[self.cpus[0]])
    }

    fn sections(&mut self, clock_ns: u64) {
        if let Ok(eager) = lockwright::section::Eager::new() {
            for _ in 0..TURN {
                let before = clock::now_ns();
                drop(eager.enter());
                let after = clock::now_ns();
                self.note(Work::EagerSection, (after - before).saturating_sub(clock_ns));
            }
        }
        if let Ok(lazy) = Lazy::manage(self.cpus[0]) {
            for _ in 0..4 {
                let before = clock::now_ns();
                for _ in 0..BATCH {
                    drop(lazy.enter());
                }
                let after = clock::now_ns();
                self.note(Work::LazySection, (after - before) / BATCH);
            }
        }
    }

    fn ticks(&mut self, clock_ns: u64) {
        let start = clock::now_ns();
        let (mut last, mut taken) = (start, Vec::with_capacity(LOOK_INTERRUPTIONS));
        // BOUND: LOOK_NS, and one interruption.
        while last - start < LOOK_NS {
            let now = clock::now_ns();
            let took = (now - last).saturating_sub(clock_ns);
            if took > GAP_NS && taken.len() < LOOK_INTERRUPTIONS {
                taken.push((last - start, took));
            }
            last = now;
        }
        taken.shrink_to_fit();
        taken.iter().for_each(|&(_, took)| self.note(Work::Tick, took));
        self.interruptions.looks.push(Look { length_ns: last - start, taken });
    }

    /// What takes another thread.
    fn helped(&mut self, clock_ns: u64) -> Result<(), SysError> {
        let here = self.cpus[0];
        let switches = self.against(Partner::Yields, here, LEVEL)?;
        self.readings[Work::ContextSwitch as usize].extend(switches.iter().map(|ns| ns.saturating_sub(clock_ns)));
        let wakes = self.against(Partner::Sleeps, here, LEVEL + 1)?;
        self.readings[Work::WakeHere as usize].extend(wakes.iter().map(|ns| ns.saturating_sub(clock_ns)));
        if let Some(&there) = self.cpus.get(1) {
            let wakes = self.against(Partner::Sleeps, there, LEVEL + 1)?;
            self.readings[Work::WakeThere as usize].extend(wakes.iter().map(|ns| ns.saturating_sub(clock_ns)));
        }
        let left = self.against(Partner::Delayed, here, LEVEL + 1)?;
        self.readings[Work::LeaveSection as usize].extend(left.iter().map(|ns| ns.saturating_sub(clock_ns)));
        let switch = self.readings[Work::ContextSwitch as usize].clone();
        let switch = Readings::new(switch).map_or(0, |readings| readings.quantile(0.5));
        let taken = self.against(Partner::Released, here, LEVEL + 1)?;
        // Two switches are charged apart.
        self.readings[Work::Release as usize].extend(taken.iter().map(|ns| ns.saturating_sub(2 * switch)));
        Ok(())
    }

    /// A thread of this level on that processor, and what it and the caller see of each other.
    fn against(&self, partner: Partner, cpu: usize, level: u8) -> Result<Vec<u64>, SysError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let body = move || {
            let ready = become_realtime(level, &[cpu]);
            theirs.begin.wait();
            if ready.is_ok() { partner.serve(&theirs) } else { Vec::new() }
        };
        let Ok(thread) = spawn("measure-partner", body) else {
            return Err(SysError { call: "starting a thread", errno: libc::EAGAIN });
        };
        shared.begin.wait();
        let own = partner.meet(&shared);
        let theirs = thread.join().unwrap_or_default();
        Ok(if own.is_empty() { theirs } else { own })
    }

    fn end(self) -> (Vec<(Work, Readings)>, Interruptions) {
        let readings = Work::ALL.into_iter().zip(self.readings);
        let readings = readings.filter_map(|(work, ns)| Some((work, Readings::new(ns)?))).collect();
        (readings, self.interruptions)
    }
}

/// What a helper does.
#[derive(Clone, Copy)]
enum Partner {
    /// Takes turns with the caller.
    Yields,
    /// Sleeps until the caller wakes it.
    Sleeps,
    /// Sleeps until times of its own, and preempts the caller.
    Released,
    /// Becomes ready while the caller is in a section, and executes after it.
    Delayed,
}

struct Shared {
    begin: Barrier,
    /// What the caller did last, and when.
    at_ns: AtomicU64,
    /// Until when the helper sleeps in this round.
    due_ns: AtomicU64,
    round: AtomicU32,
    answered: AtomicU32,
    done: AtomicBool,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            begin: Barrier::new(2),
            at_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
            round: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            done: AtomicBool::new(false),
        }
    }
}

/// Rounds against a helper in a turn.
const ROUNDS: u32 = 10;
/// From the beginning of a section until the helper is ready, and from there to its end.
const SECTION_NS: u64 = 60_000;
/// A helper does not wait longer than this.
const ROUND_NS: u64 = 100_000_000;

impl Partner {
    /// ORDERING: SeqCst throughout: the two take turns, and nothing here is on anybody's way.
    fn serve(self, shared: &Shared) -> Vec<u64> {
        let mut seen = Vec::with_capacity(ROUNDS as usize);
        for round in 1..=ROUNDS {
            match self {
                Self::Yields => {
                    // BOUND: the caller's rounds, or its end.
                    while shared.round.load(Ordering::SeqCst) < round && !shared.done.load(Ordering::SeqCst) {
                        sched::yield_now();
                    }
                    seen.push(clock::now_ns().saturating_sub(shared.at_ns.load(Ordering::SeqCst)));
                }
                Self::Sleeps => {
                    let until = clock::now_ns() + ROUND_NS;
                    while shared.round.load(Ordering::SeqCst) < round && clock::now_ns() < until {
                        futex::wait(Scope::Private, &shared.round, round - 1, Some(Deadline::monotonic(until)))
                            .or_panic();
                    }
                    seen.push(clock::now_ns().saturating_sub(shared.at_ns.load(Ordering::SeqCst)));
                }
                Self::Released => {
                    let _ = clock::sleep_until(clock::now_ns() + 200_000);
                }
                Self::Delayed => {
                    let until = clock::now_ns() + ROUND_NS;
                    while shared.round.load(Ordering::SeqCst) < round && clock::now_ns() < until {
                        futex::wait(Scope::Private, &shared.round, round - 1, Some(Deadline::monotonic(until)))
                            .or_panic();
                    }
                    let _ = clock::sleep_until(shared.due_ns.load(Ordering::SeqCst));
                    // Where it woke before the section had begun, there is nothing to see.
                    let left = shared.at_ns.swap(0, Ordering::SeqCst);
                    seen.extend((left > 0).then(|| clock::now_ns().saturating_sub(left)));
                }
            }
            shared.answered.store(round, Ordering::SeqCst);
        }
        shared.done.store(true, Ordering::SeqCst);
        if matches!(self, Self::Released) { Vec::new() } else { seen }
    }

    fn meet(self, shared: &Shared) -> Vec<u64> {
        let end = clock::now_ns() + ROUND_NS;
        let mut gaps = Vec::new();
        match self {
            Self::Released => {
                let mut last = clock::now_ns();
                // BOUND: `end`.
                while !shared.done.load(Ordering::SeqCst) && last < end {
                    let now = clock::now_ns();
                    if now - last > GAP_NS {
                        gaps.push(now - last);
                    }
                    last = now;
                }
            }
            Self::Delayed => {
                let section = lockwright::section::Eager::new();
                for round in 1..=ROUNDS {
                    let due = clock::now_ns() + SECTION_NS;
                    shared.due_ns.store(due, Ordering::SeqCst);
                    shared.round.store(round, Ordering::SeqCst);
                    futex::wake(Scope::Private, &shared.round, 1);
                    let inside = section.as_ref().map(|section| section.enter());
                    // BOUND: twice the time of a section.
                    while clock::now_ns() < due + SECTION_NS {}
                    if inside.is_ok() {
                        shared.at_ns.store(clock::now_ns(), Ordering::SeqCst);
                    }
                    drop(inside);
                    // BOUND: `end`.
                    while shared.answered.load(Ordering::SeqCst) < round && clock::now_ns() < end {
                        sched::yield_now();
                    }
                }
                shared.done.store(true, Ordering::SeqCst);
            }
            Self::Yields | Self::Sleeps => {
                for round in 1..=ROUNDS {
                    // A sleeper on another processor has to be asleep.
                    let _ = clock::sleep_until(clock::now_ns() + if matches!(self, Self::Sleeps) { 30_000 } else { 0 });
                    shared.at_ns.store(clock::now_ns(), Ordering::SeqCst);
                    shared.round.store(round, Ordering::SeqCst);
                    match self {
                        Self::Yields => sched::yield_now(),
                        _ => _ = futex::wake(Scope::Private, &shared.round, 1),
                    }
                    // BOUND: `end`.
                    while shared.answered.load(Ordering::SeqCst) < round && clock::now_ns() < end {
                        sched::yield_now();
                    }
                }
                shared.done.store(true, Ordering::SeqCst);
            }
        }
        gaps
    }
}

/// Lock and unlock under the workload. `None` where it was stopped before anything was seen.
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
    // BOUND: the plan and the patience.
    while left > 0 {
        match receiver.recv_timeout(Wait::from_millis(100)) {
            Ok(Ok((lock, unlock))) => {
                locks.extend(lock);
                unlocks.extend(unlock);
                left -= 1;
            }
            Ok(Err(error)) => {
                // The others end with it.
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

/// The jobs of one task: how long each lock and unlock took.
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
    fn the_top_percent_is_left_out() {
        let readings = Readings::new((1..=200).rev().collect()).expect("not empty");
        assert_eq!(
            (readings.count(), readings.quantile(0.0), readings.quantile(1.0), readings.mean()),
            (200, 1, 200, 101)
        );
        assert_eq!(readings.usual(), (100, 198));
        assert_eq!(Readings::new(vec![7]).map(|one| one.usual()), Some((7, 7)));
        assert_eq!(Readings::new(Vec::new()), None);
    }

    #[test]
    fn what_is_taken_is_added_up_in_windows() {
        let us = |us: u64| us * 1_000;
        // A tick of 5 us each 4 ms, and once a burst: 100 us three times within a millisecond.
        let ticks = || (0..4).map(|tick| (us(100 + tick * 4_000), us(5)));
        let burst = [(us(5_000), us(100)), (us(5_300), us(100)), (us(5_900), us(100))];
        let look = |taken: Vec<(u64, u64)>| Look { length_ns: us(16_000), taken };
        let mut all: Vec<(u64, u64)> = ticks().chain(burst).collect();
        all.sort_unstable();
        let quiet = Interruptions { looks: vec![look(ticks().collect())] };
        assert_eq!(quiet.period_ns(), Some(us(4_000)));
        // Two in 8 ms take no greater share than one in 4.
        assert_eq!(quiet.charged(Pick::Latest), Some((us(4_000), us(5))));
        assert_eq!(quiet.charged(Pick::Average), Some((us(4_000), us(5))));
        let bursts = Interruptions { looks: vec![look(all.clone()), look(ticks().collect())] };
        let most = |window| bursts.within(us(window)).map(|readings| readings.quantile(1.0));
        assert_eq!([500, 1_000, 4_000, 8_000].map(most), [200, 300, 305, 310].map(|taken| Some(us(taken))));
        assert_eq!(bursts.charged(Pick::Latest), Some((us(8_000), us(310))));
        // The last window of a look counts, and a look that is shorter than a window says nothing.
        let late = [(us(12_500), us(100)), (us(12_800), us(100)), (us(13_400), us(100))];
        let late = Interruptions { looks: vec![look(late.to_vec()), look(ticks().collect())] };
        assert_eq!(late.charged(Pick::Latest), Some((us(8_000), us(300))));
        assert_eq!(late.within(us(16_001)), None);
        assert_eq!(Interruptions::default().charged(Pick::Latest), None);
        assert_eq!(Interruptions::default().period_ns(), None);
        // No window of any length loses more than what is charged in the periods it touches.
        let (period, charged) = bursts.charged(Pick::Latest).expect("something was taken");
        for from in 0..160 {
            for length in 1..(160 - from) {
                let (from, until) = (us(from * 100), us((from + length) * 100));
                let inside = all.iter().filter(|(at, _)| (from..until).contains(at));
                let lost: u64 = inside.map(|&(at, took)| took.min(until - at)).sum();
                assert!(lost <= (until - from).div_ceil(period) * charged, "{from} {until}");
            }
        }
    }

    #[test]
    fn every_processor_uses_every_resource_and_every_priority_one_of_each() {
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
        // A lock that nobody wants takes no call under `none`, and a change of priority under `mpcp`.
        let lock = |protocol| all.cost_under(Overhead::Lock, protocol).with(1);
        assert!(lock(Protocol::None) < lock(Protocol::Mpcp), "{all:?}");
        assert!(seen.work(Work::SystemCall).is_some_and(|readings| readings.quantile(0.5) > 0));
    }

    #[test]
    fn what_was_stopped_is_left_out() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        control.stop();
        let seen = protocols(100, 60, &control, &mut |_, _| ()).expect("permission was checked");
        assert!(seen.interrupted && seen.machine.is_empty() && seen.costs.is_empty());
    }
}
