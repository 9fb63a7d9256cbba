//! Whole systems under schedulers other than partitioned fixed priorities: what each test says, and response times.
//!
//! | scheduler | tests | response times |
//! |---|---|---|
//! | `p-edf` | processor demand, for each processor; resources under SRP, spinning without preemption for those of other processors (MSRP) | exact, without resources and jitter |
//! | `g-edf` | all of [`global`]; no resources, no jitter | of the test that bounds them, else by the tardiness of deadlines that equal periods |
//! | `g-fp` | Guan's; no resources, no jitter, no equal priorities | that test's |

use crate::explain::{Cause, Term};
use crate::failure::Failure;
use crate::partition::{Fit, together_first};
use crate::sharing::{Sharer, Sharing, demands};
use crate::sporadic::Sporadic;
use crate::uniprocessor::{self, Effort, edf};
use crate::{charge, global, overheads};
use lockwright_model::{CpuId, Duration, Overhead, Overheads, Protocol, ResourceId, Scheduler, System, TaskId};
use std::fmt;

/// What is known of a system under its scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// In the order of growing effort.
    pub tests: Vec<Test>,
    /// Bounds on response times, from arrival, by task id; `None` where there is none.
    pub responses: Vec<Option<Duration>>,
    /// Why a response time was looked for and not found, by task id.
    pub unbounded: Vec<Option<Failure>>,
    /// Whether the task's deadlines are proved to hold, by task id.
    pub proved: Vec<bool>,
    /// Whether all are.
    pub schedulable: bool,
    /// Under partitioned EDF, the section that can keep a job of the task waiting longest when it arrives, by task id.
    pub blocked: Vec<Option<Blocker>>,
    /// Whether the tests say no only where a deadline can be missed.
    pub exact: bool,
}

impl Scheduled {
    /// Why no response time of the task was found, in words, where one was looked for.
    #[must_use]
    pub fn describe_unbounded(&self, task: TaskId) -> Option<String> {
        Some(match (*self.unbounded.get(task.index())?)? {
            Failure::Overload => "more work arrives on its CPU than that can do".into(),
            Failure::Diverged { limit, .. } => {
                format!("the response times of its CPU need more than {} {}", limit.most, limit.name)
            }
            other => other.to_string(),
        })
    }
}

/// One test, which accepts or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Test {
    /// Its usual name.
    pub name: &'static str,
    /// Which processor it is about, where it is about one.
    pub cpu: Option<CpuId>,
    /// Why it does not accept; tasks are those of `tasks`.
    pub failure: Option<Failure>,
    /// What the test numbers its tasks by.
    pub tasks: Vec<TaskId>,
    /// The interval in which more is due than fits, under partitioned EDF.
    pub point: Option<Point>,
}

/// A section that keeps jobs with earlier deadlines waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocker {
    /// Whose.
    pub task: TaskId,
    /// On which resource.
    pub resource: ResourceId,
    /// How long it is.
    pub length: Duration,
    /// How long it is waited for, spinning, before it begins: on a resource shared across processors.
    pub spin: Duration,
}

impl Blocker {
    /// How long it blocks.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_ns(self.length.as_ns().saturating_add(self.spin.as_ns()))
    }

    /// Whose section on what it is, in words.
    fn describe(&self, system: &System) -> String {
        let (task, resource) = (&system.task(self.task).name, &system.resource(self.resource).name);
        let spins = if self.spin > Duration::ZERO { ", with its spinning" } else { "" };
        format!("the section of `{task}` on `{resource}`{spins}")
    }

    fn of(held: &edf::Held) -> Self {
        Self {
            task: TaskId::new(held.task),
            resource: ResourceId(held.resource),
            length: Duration::from_ns(held.length),
            spin: Duration::from_ns(held.spin),
        }
    }
}

/// What a test of the processor demand looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The length of the interval, t.
    pub interval: Duration,
    /// The work that has its deadline in it, spinning included, h(t).
    pub due: Duration,
    /// What blocks it, B(t).
    pub blocker: Option<Blocker>,
}

/// Why nothing can be said of a system under its scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Untested {
    /// [`analyse`](crate::analyse) is for that.
    FixedPriorities,
    /// Jobs execute on any processor: there is no demand of one.
    Global,
    /// Its tasks share resources.
    Resources,
    /// A task holds two resources at a time, and one of them is shared across processors.
    Nested(TaskId),
    /// A task may be released late.
    Jitter(TaskId),
    /// Two tasks have the same priority.
    EqualPriorities(TaskId, TaskId),
    /// A number of its overheads does not fit.
    Overheads(Failure),
}

impl Untested {
    /// One sentence for a person.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let name = |task: &TaskId| &system.task(*task).name;
        let scheduler = system.scheduler();
        match self {
            Self::FixedPriorities => format!("`{scheduler}` has bounds of its own"),
            Self::Global => format!("there are no terms to explain under `{scheduler}`"),
            Self::Resources => format!("its tasks share resources, which no test here covers under `{scheduler}`"),
            Self::Nested(task) => {
                format!("`{}` holds two resources at a time, one of them shared across CPUs", name(task))
            }
            Self::Jitter(task) => {
                format!("`{}` has a release jitter, which no test here covers under `{scheduler}`", name(task))
            }
            Self::EqualPriorities(one, other) => {
                format!(
                    "`{}` and `{}` have one priority, which no test here covers under `{scheduler}`",
                    name(one),
                    name(other)
                )
            }
            Self::Overheads(why) => format!("the overheads cannot be charged: {why}"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cpu {
            Some(cpu) => write!(f, "{}, CPU {}", self.name, cpu.0),
            None => f.pad(self.name),
        }
    }
}

impl Test {
    /// Why it does not accept, in words: with the name of the task.
    #[must_use]
    pub fn describe(&self, system: &System) -> Option<String> {
        let failure = self.failure?;
        let task =
            |index: usize| self.tasks.get(index).map_or_else(String::new, |&id| format!("`{}`", system.task(id).name));
        let time = Duration::from_ns;
        Some(match failure {
            Failure::Task { task: index } => format!("the condition does not hold for {}", task(index)),
            Failure::Late { task: index, response } => {
                format!("the response time of {} is at least {}, beyond its deadline", task(index), time(response))
            }
            Failure::Demand { interval, demand } => {
                let due = format!("in {} work of {} is due", time(interval), time(demand));
                match self.point.and_then(|point| point.blocker) {
                    Some(blocker) => format!("{due}, {} of it {}", blocker.total(), blocker.describe(system)),
                    None => due,
                }
            }
            Failure::Diverged { task: index, limit } => {
                format!("no fixed point was found for {} within {} {}", task(index), limit.most, limit.name)
            }
            Failure::Unsupported { task: index, what } => format!("{}: {what}", task(index)),
            other => other.to_string(),
        })
    }
}

/// Tests a system under its scheduler, with what its machine takes charged to it.
///
/// # Errors
/// Where no test covers it.
pub fn scheduled(system: &System, overheads: &Overheads) -> Result<Scheduled, Untested> {
    if let Some(why) = uncovered(system) {
        return Err(why);
    }
    let sharing = match charged(system, overheads) {
        Ok(sharing) => sharing,
        Err(failure @ (Failure::Overload | Failure::Task { .. })) => return Ok(overwhelmed(system, failure)),
        Err(other) => return Err(Untested::Overheads(other)),
    };
    let mut result = match system.scheduler() {
        Scheduler::GEdf => global_edf(system, &sporadic(&sharing)),
        Scheduler::GFp => global_fp(system, &sporadic(&sharing))?,
        _ => partitioned_edf(system, &sharing),
    };
    for (id, response) in system.task_ids().zip(&mut result.responses) {
        // Overheads bring deadlines forward by how late a job's release is noticed.
        let deadline = system.task(id).deadline;
        let late = deadline.as_ns().saturating_sub(sharing.tasks[id.index()].deadline);
        *response = response.and_then(|response| response.checked_add(Duration::from_ns(late)));
        // Another test may say more than the one that bounds responses.
        if result.schedulable {
            *response = response.map(|response| response.min(deadline));
        }
    }
    Ok(result)
}

/// A deadline that a partitioned system under EDF cannot meet, or could not with greater execution times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refutation {
    cpu: u16,
    interval: u64,
}

/// As [`scheduled()`], the verdict alone, with limited effort; with what refutes the system, where that is known.
///
/// # Errors
/// It was interrupted.
pub(crate) fn verdict(
    system: &System,
    overheads: &Overheads,
    effort: Effort<'_>,
) -> Result<Result<(), Option<Refutation>>, Interrupted> {
    let go_on = effort.go_on;
    if uncovered(system).is_some() {
        return Ok(Err(None));
    }
    let Ok(sharing) = charged(system, overheads) else { return Ok(Err(None)) };
    let holds = match system.scheduler() {
        Scheduler::GEdf => {
            let (tasks, m) = (sporadic(&sharing), processors(system));
            EDF_TESTS.iter().any(|(_, test)| go_on() && test(&tasks, m).is_ok())
                || go_on() && global::rta(&tasks, m).is_ok()
                || m == 1 && edf::schedulable_within(&tasks, &[], effort).is_ok()
        }
        Scheduler::GFp => global_fp(system, &sporadic(&sharing)).is_ok_and(|result| result.schedulable),
        _ => {
            for cpu in processors_with_tasks(system) {
                let Ok((tasks, blocking)) = edf::msrp(&sharing, cpu) else { return Ok(Err(None)) };
                // The search from the longest interval down comes late to a short one.
                if let Some(interval) = edf::refuted_early(&tasks, &blocking) {
                    return Ok(Err(Some(Refutation { cpu, interval })));
                }
                match edf::schedulable_within(&tasks, &blocking, effort) {
                    Ok(()) => {}
                    Err(Failure::Interrupted) => return Err(Interrupted),
                    Err(Failure::Demand { interval, .. }) => return Ok(Err(Some(Refutation { cpu, interval }))),
                    Err(_) => return Ok(Err(None)),
                }
            }
            true
        }
    };
    // A test that was not asked has not said no.
    if holds {
        Ok(Ok(()))
    } else if go_on() {
        Ok(Err(None))
    } else {
        Err(Interrupted)
    }
}

/// Nobody waits for the answer any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interrupted;

/// Whether one of these, or a number that does not fit, refutes the system under partitioned EDF. With greater execution times it then is so, too.
pub(crate) fn is_refuted(system: &System, overheads: &Overheads, by: &[Refutation]) -> bool {
    let Ok(sharing) = charged(system, overheads) else { return true };
    processors_with_tasks(system).any(|cpu| match edf::msrp(&sharing, cpu) {
        Ok((tasks, blocking)) => {
            // In an interval of no length, but for an overload nothing refutes.
            let known = by.iter().filter(|known| known.cpu == cpu).map(|known| known.interval);
            edf::is_refuted_at(&tasks, &blocking, known.chain([0]))
        }
        Err(_) => true,
    })
}

pub(crate) fn processors_with_tasks(system: &System) -> impl Iterator<Item = u16> {
    let has_tasks = |&cpu: &u16| system.tasks().iter().any(|task| task.cpu == CpuId(cpu));
    (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()).filter(has_tasks)
}

/// Why [`scheduled()`] says nothing of the system, where it does not.
pub(crate) fn uncovered(system: &System) -> Option<Untested> {
    let jitter = || system.task_ids().find(|&id| system.task(id).jitter != Duration::ZERO);
    let shares = system.task_ids().any(|id| !system.requests(id).is_empty());
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => Some(Untested::FixedPriorities),
        Scheduler::PEdf if !shares => None,
        // Preemption levels are by deadlines from the release there.
        Scheduler::PEdf => jitter().map(Untested::Jitter).or_else(|| nested(system).map(Untested::Nested)),
        _ if shares => Some(Untested::Resources),
        _ => jitter().map(Untested::Jitter),
    }
}

/// A task that holds two resources at a time, one of them shared across processors.
fn nested(system: &System) -> Option<TaskId> {
    system.task_ids().find(|&id| {
        let sections = system.sections(id);
        sections.iter().any(|section| section.parent.is_some())
            && sections.iter().any(|section| system.is_global(section.resource))
    })
}

/// What the machine takes leaves no time.
fn overwhelmed(system: &System, failure: Failure) -> Scheduled {
    let count = system.tasks().len();
    let test =
        Test { name: "overheads", cpu: None, failure: Some(failure), tasks: system.task_ids().collect(), point: None };
    Scheduled {
        tests: vec![test],
        responses: vec![None; count],
        unbounded: vec![None; count],
        proved: vec![false; count],
        blocked: vec![None; count],
        schedulable: false,
        exact: false,
    }
}

fn processors(system: &System) -> u32 {
    u32::try_from(system.cpus()).unwrap_or(u32::MAX)
}

/// The system with its tasks on processors chosen by `fit`, the greatest utilization first; those that share a resource together, where they fit so. Whether tasks
/// fit on one processor is asked of the system's scheduler there, without blocking.
///
/// # Errors
/// Which task fits nowhere.
pub fn partitioned(system: &System, fit: Fit) -> Result<System, Failure> {
    let tasks: Vec<uniprocessor::Task> = system
        .tasks()
        .iter()
        .map(|task| uniprocessor::Task {
            cost: task.wcet.as_ns(),
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns().saturating_sub(task.jitter.as_ns()),
            jitter: task.jitter.as_ns(),
            priority: task.priority.level(),
            ..uniprocessor::Task::default()
        })
        .collect();
    let plain: Vec<Sporadic> =
        tasks.iter().map(|task| Sporadic { cost: task.cost, period: task.period, deadline: task.deadline }).collect();
    let groups: Vec<Vec<usize>> = system
        .resource_ids()
        .map(|resource| system.users(resource).iter().map(|task| task.index()).collect())
        .filter(|group: &Vec<usize>| group.len() > 1)
        .collect();
    let is_edf = system.scheduler() == Scheduler::PEdf;
    let fits = |members: &[usize]| {
        if is_edf {
            let members: Vec<Sporadic> = members.iter().map(|&index| plain[index]).collect();
            edf::schedulable(&members, &[]).is_ok()
        } else {
            let mut members: Vec<uniprocessor::Task> = members.iter().map(|&index| tasks[index]).collect();
            members.sort_by_key(|task| std::cmp::Reverse(task.priority));
            uniprocessor::fp::response_times(&members).is_ok()
        }
    };
    let homes = together_first(&plain, system.cpus(), fit, &groups, fits)?;
    let mut moved = system.tasks().to_vec();
    for (task, home) in moved.iter_mut().zip(homes) {
        task.cpu = CpuId(u16::try_from(home).map_err(|_| Failure::Overflow)?);
    }
    system.with_tasks(moved).map_err(|_| Failure::Overflow)
}

/// The system's tasks, in nanoseconds. Under EDF with overheads centred on preemptions, under fixed priorities too: a job keeps its priority there as well.
pub(crate) fn charged(system: &System, model: &Overheads) -> Result<Sharing, Failure> {
    let longer;
    let system = match *model == Overheads::default() {
        true => system,
        false => {
            longer = with_operations(system, model)?;
            &longer
        }
    };
    // The deadline of a job that is released late is as far from its arrival as ever.
    let deadline = |id: TaskId| system.task(id).deadline.as_ns().saturating_sub(system.task(id).jitter.as_ns());
    let plain = |id: TaskId| overheads::Task {
        cost: system.task(id).wcet.as_ns(),
        period: system.task(id).period.as_ns(),
        deadline: deadline(id),
        requests: demands(system, id),
        working_set: u64::from(charge::working_set(system, model, id)),
        ..overheads::Task::default()
    };
    if let Some(task) = charge::unmeasured(system, model) {
        let what = "its working set is beyond the last point of `cache_delay`";
        return Err(Failure::Unsupported { task: task.index(), what });
    }
    let mut tasks: Vec<overheads::Task> = system.task_ids().map(plain).collect();
    if *model != Overheads::default() {
        let mut costs = costs(model, tasks.len())?;
        if model.dedicated_interrupts {
            let queued = charge::queued_releases(system, model).ok_or(Failure::Overflow)?;
            costs.release = overheads::Curve::constant(queued.as_ns());
        }
        let interrupts = overheads::jlfp::Interrupts {
            processors: u16::try_from(system.cpus()).unwrap_or(u16::MAX),
            dedicated: model.dedicated_interrupts,
        };
        let lengthened = overheads::jlfp::charge(&costs, interrupts, &tasks)?;
        tasks = overheads::jlfp::quantise(&lengthened, &tasks)?;
        // Sections hold their interrupts, as other tasks wait for them.
        let interrupts = charge::interrupts(system, model);
        for (id, task) in system.task_ids().zip(&mut tasks) {
            let all = interrupts.iter().map(|(_, interrupt)| interrupt);
            let own: Vec<_> = all.filter(|interrupt| interrupt.cpu == system.task(id).cpu).collect();
            for request in &mut task.requests {
                let length = Duration::from_ns(request.length);
                let stretched = charge::stretched(length, &own, Duration::ZERO).ok_or(Failure::Overload)?;
                request.length = stretched.as_ns();
            }
        }
    }
    let sharer = |(id, task): (TaskId, overheads::Task)| Sharer {
        cost: task.cost,
        period: task.period,
        deadline: task.deadline,
        response: task.deadline,
        priority: system.task(id).priority.level(),
        cluster: system.task(id).cpu.0,
        requests: task.requests,
    };
    Ok(Sharing { tasks: system.task_ids().zip(tasks).map(sharer).collect() })
}

/// All that a request takes is in its section: neither `srp` nor `msrp` suspends a job, and jobs that arrive meanwhile wait for the operations too. Two system
/// calls, for the lock and for giving it back or leaving the section.
fn with_operations(system: &System, model: &Overheads) -> Result<System, Failure> {
    let section = |resource| {
        let protocol = if system.is_global(resource) { Protocol::Msrp } else { Protocol::Srp };
        let of = |of: Overhead| model.cost_under(of, protocol).with(system.tasks().len());
        let [lock, unlock, leave] = [Overhead::Lock, Overhead::Unlock, Overhead::LeaveSection].map(of);
        let [enter, exit] = [Overhead::SyscallIn, Overhead::SyscallOut].map(of);
        Some((Duration::ZERO, charge::sum(&[lock, unlock, leave, enter, exit, enter, exit])?))
    };
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        task.body = charge::lengthened(&task.body, Duration::ZERO, section).ok_or(Failure::Overflow)?;
        task.wcet = charge::runs(&task.body).ok_or(Failure::Overflow)?;
    }
    system.with_tasks(tasks).map_err(|_| Failure::Overflow)
}

/// With so many tasks.
fn costs(model: &Overheads, tasks: usize) -> Result<overheads::Overheads, Failure> {
    // Filling the caches again, over the working set: level before the first point.
    let refill = model.cost(Overhead::CacheRefill).with(tasks).as_ns();
    let points = model.cache_delay.points();
    let first = points.first().filter(|(kib, _)| *kib > 0).map(|&(_, delay)| (0, delay));
    let rising: Option<Vec<(u64, u64)>> = first
        .iter()
        .chain(points)
        .map(|&(kib, delay)| Some((u64::from(kib), delay.as_ns().checked_add(refill)?)))
        .collect();
    let rising = rising.ok_or(Failure::Overflow)?;
    let cache =
        if rising.is_empty() { overheads::Curve::constant(refill) } else { overheads::Curve::through(&rising)? };
    let of = |overhead| overheads::Curve::constant(model.cost(overhead).with(tasks).as_ns());
    Ok(overheads::Overheads {
        quantum: model.tick_period.as_ns(),
        tick: of(Overhead::Tick),
        release: of(Overhead::Release),
        release_latency: of(Overhead::ReleaseLatency),
        schedule: of(Overhead::Schedule),
        context_switch: of(Overhead::ContextSwitch),
        ipi_latency: of(Overhead::IpiLatency),
        lock: of(Overhead::Lock),
        unlock: of(Overhead::Unlock),
        syscall_in: of(Overhead::SyscallIn),
        syscall_out: of(Overhead::SyscallOut),
        cache: overheads::CacheDelay { levels: vec![cache] },
        ..overheads::Overheads::default()
    })
}

fn sporadic(sharing: &Sharing) -> Vec<Sporadic> {
    let one = |task: &Sharer| Sporadic { cost: task.cost, period: task.period, deadline: task.deadline };
    sharing.tasks.iter().map(one).collect()
}

/// A processor after the other.
fn partitioned_edf(system: &System, sharing: &Sharing) -> Scheduled {
    let count = sharing.tasks.len();
    let mut result = Scheduled {
        tests: Vec::new(),
        responses: vec![None; count],
        unbounded: vec![None; count],
        proved: vec![false; count],
        blocked: vec![None; count],
        schedulable: true,
        exact: system.task_ids().all(|id| system.requests(id).is_empty()),
    };
    for cpu in (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()).map(CpuId) {
        let tasks: Vec<TaskId> = system.task_ids().filter(|&id| system.task(id).cpu == cpu).collect();
        if tasks.is_empty() {
            continue;
        }
        let tested = edf::msrp(sharing, cpu.0);
        let failure =
            tested.as_ref().map_or_else(|&why| Some(why), |(tasks, blocking)| edf::schedulable(tasks, blocking).err());
        result.schedulable &= failure.is_none();
        result.exact &= matches!(failure, None | Some(Failure::Overload | Failure::Demand { .. }));
        tasks.iter().for_each(|id| result.proved[id.index()] = failure.is_none());
        let alone = tasks.iter().all(|&id| system.requests(id).is_empty() && system.task(id).jitter == Duration::ZERO);
        if let (true, Ok((inflated, _))) = (alone, &tested) {
            let on_cpu: Vec<uniprocessor::Task> = inflated.iter().map(|&task| task.into()).collect();
            match edf::response_bounds(&on_cpu, u64::MAX) {
                Ok(responses) => tasks
                    .iter()
                    .zip(responses)
                    .for_each(|(id, response)| result.responses[id.index()] = Some(Duration::from_ns(response))),
                Err(why) => tasks.iter().for_each(|id| result.unbounded[id.index()] = Some(why)),
            }
        }
        let held = edf::held(sharing, cpu.0).unwrap_or_default();
        for id in &tasks {
            let deadline = sharing.tasks[id.index()].deadline;
            result.blocked[id.index()] = edf::blocker(&held, deadline).map(Blocker::of);
        }
        let point = failure.and_then(|failure| point(failure, &held));
        result.tests.push(Test { name: "processor demand", cpu: Some(cpu), failure, tasks, point });
    }
    result
}

/// Where the demand of a processor with these sections was found too great.
fn point(failure: Failure, held: &[edf::Held]) -> Option<Point> {
    let Failure::Demand { interval, demand } = failure else { return None };
    let blocker = edf::blocker(held, interval).map(Blocker::of);
    let blocking = blocker.map_or(0, |blocker| blocker.total().as_ns());
    let due = Duration::from_ns(demand.saturating_sub(blocking));
    Some(Point { interval: Duration::from_ns(interval), due, blocker })
}

/// The processor demand of one interval, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demanded {
    /// Its length.
    pub interval: Duration,
    /// They sum to what is due in it and what blocks that.
    pub terms: Vec<Term>,
}

/// Every term of the demand on the processor of `task` under partitioned EDF: in the interval in which it is too great, or else in one as long as
/// the task's deadline.
///
/// # Errors
/// As [`scheduled()`]; [`Untested::FixedPriorities`] and [`Untested::Global`] under other schedulers.
pub fn explain_demand(system: &System, overheads: &Overheads, task: TaskId) -> Result<Demanded, Untested> {
    match system.scheduler() {
        Scheduler::PEdf => {}
        Scheduler::PFp | Scheduler::CFp => return Err(Untested::FixedPriorities),
        _ => return Err(Untested::Global),
    }
    if let Some(why) = uncovered(system) {
        return Err(why);
    }
    let sharing = charged(system, overheads).map_err(Untested::Overheads)?;
    let cpu = system.task(task).cpu.0;
    let (tasks, blocking) = edf::msrp(&sharing, cpu).map_err(Untested::Overheads)?;
    let held = edf::held(&sharing, cpu).map_err(Untested::Overheads)?;
    let interval = match edf::schedulable(&tasks, &blocking) {
        Err(Failure::Demand { interval, .. }) => interval,
        _ => sharing.tasks[task.index()].deadline,
    };
    let mut terms = Vec::new();
    let mut add = |cause, by, resource, count: u64, each: u64, why: String| {
        let total = Duration::from_ns(each.saturating_mul(count));
        terms.push(Term { cause, by, resource, count, each: Duration::from_ns(each), total, why });
    };
    let others = system.task_ids().filter(|&id| id != task && system.task(id).cpu.0 == cpu);
    for id in std::iter::once(task).chain(others) {
        let it = &sharing.tasks[id.index()];
        let Some(room) = interval.checked_sub(it.deadline) else { continue };
        let jobs = room / it.period + 1;
        let (cause, by) = if id == task { (Cause::Execution, None) } else { (Cause::Interference, Some(id)) };
        add(cause, by, None, jobs, it.cost, "jobs with a deadline in it".into());
        for one in held.iter().filter(|one| one.task == id.index() && one.spin > 0) {
            let resource = ResourceId(one.resource);
            let why = "spins for the longest section of each other CPU".into();
            add(Cause::Urgent, by, Some(resource), jobs.saturating_mul(u64::from(one.count)), one.spin, why);
        }
    }
    if let Some(one) = edf::blocker(&held, interval) {
        let why = if one.spin > 0 {
            format!(
                "has begun its section, or spins for it: {}, then {}",
                Duration::from_ns(one.spin),
                Duration::from_ns(one.length)
            )
        } else {
            "has begun its section, and has a later deadline".into()
        };
        add(Cause::Local, Some(TaskId::new(one.task)), Some(ResourceId(one.resource)), 1, one.span, why);
    }
    Ok(Demanded { interval: Duration::from_ns(interval), terms })
}

type Verdict = fn(&[Sporadic], u32) -> Result<(), Failure>;

/// Of global EDF, but for the one that gives response times; the cheap ones first.
const EDF_TESTS: [(&str, Verdict); 6] = [
    ("GFB", global::gfb),
    ("BAK", global::bak),
    ("BCL", global::bcl),
    ("iterative BCL", global::bcl_iterative),
    ("FF-DBF", global::ff_dbf),
    ("BAR", global::bar),
];

fn global_edf(system: &System, tasks: &[Sporadic]) -> Scheduled {
    let processors = processors(system);
    let rta = global::rta(tasks, processors);
    let ids: Vec<TaskId> = system.task_ids().collect();
    let test = |name, failure| Test { name, cpu: None, failure, tasks: ids.clone(), point: None };
    let mut tests: Vec<Test> =
        EDF_TESTS.iter().map(|(name, verdict)| test(*name, verdict(tasks, processors).err())).collect();
    tests.push(test("RTA", rta.as_ref().err().copied()));
    // One processor: exact.
    if processors == 1 {
        tests.push(test("processor demand", edf::schedulable(tasks, &[]).err()));
    }
    let schedulable = tests.iter().any(|test| test.failure.is_none());
    // Where no deadline is missed, there is no tardiness.
    let responses = rta.or_else(|why| if schedulable { Err(why) } else { global::g_edf(tasks, processors) });
    let responses = responses.map_or_else(
        |_| vec![None; tasks.len()],
        |responses| responses.into_iter().map(|response| Some(Duration::from_ns(response))).collect(),
    );
    let (proved, blocked) = (vec![schedulable; tasks.len()], vec![None; tasks.len()]);
    let unbounded = vec![None; tasks.len()];
    Scheduled { tests, responses, unbounded, proved, blocked, schedulable, exact: processors == 1 }
}

fn global_fp(system: &System, tasks: &[Sporadic]) -> Result<Scheduled, Untested> {
    let mut order: Vec<TaskId> = system.task_ids().collect();
    order.sort_by_key(|&id| std::cmp::Reverse(system.task(id).priority));
    if let Some(pair) = order.windows(2).find(|pair| system.task(pair[0]).priority == system.task(pair[1]).priority) {
        return Err(Untested::EqualPriorities(pair[0], pair[1]));
    }
    let sorted: Vec<Sporadic> = order.iter().map(|id| tasks[id.index()]).collect();
    let tested = global::guan(&sorted, processors(system));
    let mut responses = vec![None; tasks.len()];
    for (id, &response) in order.iter().zip(tested.iter().flatten()) {
        responses[id.index()] = Some(Duration::from_ns(response));
    }
    let failure = tested.err();
    let tests = vec![Test { name: "Guan", cpu: None, failure, tasks: order, point: None }];
    let schedulable = failure.is_none();
    let (proved, blocked) = (vec![schedulable; tasks.len()], vec![None; tasks.len()]);
    let unbounded = vec![None; tasks.len()];
    Ok(Scheduled { tests, responses, unbounded, proved, blocked, schedulable, exact: false })
}
