//! Overheads charged to a system under partitioned or global EDF, or global fixed priorities, with the charges of
//! [`jlfp`].
//!
//! Lock operations and the interrupts in sections are charged to the system as in `charge.rs`, as rows have no order of
//! sections and no protocols. Everything else is charged to rows.
//!
//! *Decisions under partitioned EDF.* The scheduler is in user space: each release executes the thread of its task
//! above all jobs of the processor, even if the job is then held back. With s = schedule + context_switch:
//! ```text
//!   release' = 2 release + 6 s + 6 (syscall_in + syscall_out)
//! ```
//! - The thread waits for the arrival, and executes instead of another: 2 s, one system call.
//! - The thread that it preempts may be in a decision. It then waits for that decision: 2 s, three system calls (it
//!   blocks, the other wakes it, and it leaves the decision).
//! - A job that is held back suspends, is woken, and decides once more: `release`, 2 s, two system calls.
//!
//! If a dedicated processor handles the releases, none of them delays a job, and this is not charged.
//!
//! *Spinning under partitioned EDF.* The tests add the spinning, X, to C', without interrupts, which cost nothing while
//! a job spins. So each request that can spin is charged with c_pre of `jlfp`:
//! ```text
//!   C' = C' of jlfp + n c_pre,    n = the number of requests of a job for resources under `msrp`
//! ```
//! Assume that a processor is busy in an interval of t, in which jobs are due with execution C and n requests in all,
//! and let S be the time for which these spin. S is at most the sum of X: a section on another processor is charged
//! with its interrupts, also if the lock was passed to it during one. The blocking B at the start is a wait and a
//! section, which contains its interrupts likewise. The rest consists of at most 1 + n stretches, as only the spinning
//! of these requests parts it. The interrupts take at most (1 - s) l + s c_pre of a stretch of length l; one that began
//! before the stretch leaves less time to others. The sum over all stretches is
//! ```text
//!   t - S - B <= C + (1 - s) (t - S - B) + (1 + n) s c_pre,    so    t <= B + S + C / s + (1 + n) c_pre
//! ```
//! Each of the due jobs is charged with 2 c_pre, so all of them with at least 1 + n. A linear program counts less
//! spinning, but the jobs have as many requests. Under global schedulers, sections contain the interrupts of all
//! processors, so X contains those of the processor that spins. A failed attempt contains its interrupts as well, and
//! no interrupt is without effect while it executes.

use super::body::{is_inner, lengthened, runs, sum};
use super::machine::{Machine, stretched};
use super::objects::Operations;
use super::{CacheDelay, Costs, Curve, Rising, Task, jlfp};
use crate::rows::failure::Failure;
use crate::rows::mutant::{ChargeMutant, Omission};
use crate::rows::sharing::{Demand, Sharer, Sharing, demands};
use lockwright_model::{
    self as model, Cost, Duration, Invalid, Overhead, Overheads, Protocol, Scheduler, Step, Subject, System, TaskId,
};
use std::borrow::Cow;

/// Returns the tasks of the system in nanoseconds, with overheads charged. The charge is centred on preemptions, as for
/// EDF; it also holds for fixed priorities, as a job keeps its priority there as well.
pub(crate) fn charged(
    system: &System,
    model: &Overheads,
    omission: Omission<ChargeMutant>,
) -> Result<Sharing, Failure> {
    let sharer = |id: TaskId, task: Task| Sharer {
        cost: task.cost,
        period: task.period,
        deadline: task.deadline,
        response: task.deadline,
        priority: system.task(id).priority.level(),
        cluster: system.task(id).cpu.0,
        requests: task.requests,
    };
    if model.charges_nothing() {
        let tasks = system.task_ids().zip(rows(Machine { system, overheads: model }));
        return Ok(Sharing { tasks: tasks.map(|(id, task)| sharer(id, task)).collect() });
    }
    let charges = Charges::new(system, model, omission)?;
    let latency = match omission.is(ChargeMutant::Lateness) {
        true => 0,
        false => charges.machine().cost(Overhead::ReleaseLatency).as_ns(),
    };
    let of = |(id, task): (TaskId, Task)| {
        let late = Failure::Task { task: id.index() };
        let (period, deadline) = (task.period.saturating_sub(latency), task.deadline.saturating_sub(latency));
        let cost = charges.cost(id, task.cost).filter(|&cost| cost <= period.min(deadline)).ok_or(late)?;
        // Sections are longer by the interrupts that fall into them, as other tasks wait for these.
        let requests = charges.requests(id, task.requests).ok_or(Failure::Overload)?;
        Ok(sharer(id, Task { cost, period, deadline, requests, ..Task::default() }))
    };
    let tasks = system.task_ids().zip(rows(charges.machine())).map(of);
    Ok(Sharing { tasks: tasks.collect::<Result<_, Failure>>()? })
}

/// The charges of [`charged`] to a task, whatever its body is. A method returns `None` if a time does not fit, or if
/// the interrupts leave no time.
pub(crate) struct Charges<'a> {
    /// The system with the cost of all operations in its sections.
    pub(crate) system: System,
    overheads: Cow<'a, Overheads>,
    objects: Operations,
    costs: Rising,
    /// By task: the charge for the interrupts between its spins, or `None` if it does not fit.
    between_spins: Vec<Option<u64>>,
    /// By CPU: the interrupts during the sections of its tasks.
    interrupts: Vec<Vec<model::Task>>,
    omission: Omission<ChargeMutant>,
}

impl<'a> Charges<'a> {
    /// Returns the charges to a system that can be charged.
    pub(crate) fn new(
        system: &System,
        overheads: &'a Overheads,
        omission: Omission<ChargeMutant>,
    ) -> Result<Self, Failure> {
        let objects =
            Operations::new(system, overheads, system.protocol_or_default()).map_err(|why| match why.subject {
                Subject::Resource(id) => Failure::Unsupported {
                    task: system.users(id).first().map_or(0, |user| user.index()),
                    what: UNCOVERED,
                },
                _ => Failure::Overflow,
            })?;
        let operated = objects.system(system).map_err(|_| Failure::Overflow)?;
        let overheads = with_decisions(&operated, overheads)?;
        let longer = with_operations(&operated, &overheads, omission)?;
        let machine = Machine { system: &longer, overheads: &overheads };
        if let Some(task) = machine.unmeasured() {
            return Err(Failure::Unsupported { task: task.index(), what: UNMEASURED });
        }
        let (costs, all) = costs(machine, longer.tasks().len(), omission)?;
        let (costs, preemption) = jlfp::costs(&costs, all, &rows(machine))?;
        let can_spin = |resource| longer.protocol_of(resource, longer.protocol_or_default()) == Protocol::Msrp;
        let spins = |id: TaskId| {
            let spinning = longer.requests(id).iter().filter(|request| can_spin(request.resource));
            spinning.map(|request| u64::from(request.count)).sum::<u64>()
        };
        let between_spins = match longer.scheduler() {
            Scheduler::PEdf if !omission.is(ChargeMutant::BetweenSpins) => {
                longer.task_ids().map(|id| spins(id).checked_mul(preemption)).collect()
            }
            _ => vec![Some(0); longer.tasks().len()],
        };
        let mut interrupts = vec![Vec::new(); longer.cpus()];
        let interrupting = machine.interrupts().into_iter().filter(|_| !omission.is(ChargeMutant::SectionInterrupts));
        for (_, interrupt) in interrupting {
            match longer.scheduler().is_global() {
                true => interrupts.iter_mut().for_each(|its| its.push(interrupt.clone())),
                false => interrupts[interrupt.cpu.index()].push(interrupt),
            }
        }
        Ok(Self { system: longer, overheads, objects, costs, between_spins, interrupts, omission })
    }

    /// Returns a body with the cost of all operations in its sections.
    pub(crate) fn body(&self, body: &[Step]) -> Option<Vec<Step>> {
        operated(self.machine(), &self.objects.body(body), self.omission)
    }

    fn machine(&self) -> Machine<'_> {
        Machine { system: &self.system, overheads: &self.overheads }
    }

    /// Returns the charged execution time of a task whose body takes this time, with the requests of the system.
    pub(crate) fn cost(&self, task: TaskId, time: u64) -> Option<u64> {
        self.costs.at(task.index(), time)?.checked_add(self.between_spins[task.index()]?)
    }

    /// Returns the charged requests of a task with these section lengths.
    pub(crate) fn requests(&self, task: TaskId, mut requests: Vec<Demand>) -> Option<Vec<Demand>> {
        let own: Vec<_> = self.interrupts[self.system.task(task).cpu.index()].iter().collect();
        for request in &mut requests {
            request.length = stretched(Duration::from_ns(request.length), &own, Duration::ZERO)?.as_ns();
        }
        Some(requests)
    }
}

/// An object that more tasks use than its cost was measured for.
const UNCOVERED: &str = "its object is used by more tasks than the costs of objects cover";

/// A working set for which no cache delay was measured.
const UNMEASURED: &str = "its working set is beyond the last point of `cache_delay`";

/// Returns the tasks of the system in nanoseconds.
fn rows(machine: Machine<'_>) -> Vec<Task> {
    let system = machine.system;
    // Jitter does not move the deadline of a job, which counts from its arrival.
    let deadline = |id: TaskId| system.task(id).deadline.as_ns().saturating_sub(system.task(id).jitter.as_ns());
    let plain = |id: TaskId| Task {
        cost: system.task(id).wcet.as_ns(),
        period: system.task(id).period.as_ns(),
        deadline: deadline(id),
        requests: demands(system, id),
        working_set: u64::from(machine.working_set(id)),
        ..Task::default()
    };
    system.task_ids().map(plain).collect()
}

/// Returns the system with the execution times for which [`scheduled()`](crate::scheduled()) tests it if these
/// overheads are charged.
///
/// The tasks are those of `system`, in its order, and there are no others: the execution times include the interrupts.
/// A section is longer by its operations. Everything else that a job is charged with is at its start. The release
/// latency is added to the release jitter. The result is meant for execution: deadlines and periods stay as they are,
/// while the tests shorten both by the release latency, so a system whose deadlines the tests prove meets them if it
/// executes in this way. Under `p-fp` and `c-fp`, [`charge()`](crate::charge()) charges the overheads.
///
/// # Errors
/// Returns an error if the interrupts leave no time, a time does not fit, or a working set is larger than all measured
/// ones.
///
/// # Examples
/// ```
/// use lockwright_analysis::charge_by_deadline;
/// use lockwright_model::format::{parse_overheads, parse_system};
/// use lockwright_model::Duration;
/// let system = parse_system(
///     r#"
///     [platform]
///     scheduler = "p-edf"
///
///     [[task]]
///     name = "control"
///     period = "10 ms"
///     wcet = "1 ms"
///     "#,
/// )
/// .expect("a valid task set");
/// let overheads = parse_overheads("schedule = \"100 us\"").expect("valid overheads");
/// let charged = charge_by_deadline(&system, &overheads).expect("the times fit");
/// // Two switches, and interrupts: another six for the decisions at each release.
/// assert!(charged.tasks()[0].wcet > Duration::from_us(1_200));
/// ```
pub fn charge_by_deadline(system: &System, overheads: &Overheads) -> Result<System, Invalid> {
    if overheads.charges_nothing() {
        return Ok(system.clone());
    }
    let refuse = |failure: Failure| {
        let (subject, message, help) = match failure {
            Failure::Unsupported { task, what } => {
                let message = format!("task `{}`: {what}", system.tasks()[task].name);
                let help = match what {
                    UNCOVERED => "measure the cost for as many tasks",
                    _ => "also measure the cache delay of the largest working set",
                };
                (Subject::Task(TaskId::new(task)), message, help)
            }
            Failure::Overload => (Subject::System, "the interrupts leave no time for jobs".into(), UNITS),
            _ => (Subject::System, "a time that the overheads lengthen does not fit".into(), UNITS),
        };
        Invalid::new(subject, None, message, help)
    };
    let charges = Charges::new(system, overheads, Omission::NOTHING).map_err(refuse)?;
    let latency = charges.machine().cost(Overhead::ReleaseLatency);
    charges.machine().refuse_late(latency)?;
    let charged_task = |(id, task): (TaskId, &model::Task)| {
        let cost = charges.cost(id, task.wcet.as_ns())?;
        let wcet = Duration::ZERO.checked_add(Duration::from_ns(cost))?;
        let body = lengthened(&task.body, wcet.saturating_sub(task.wcet), |_| Some((Duration::ZERO, Duration::ZERO)))?;
        Some(model::Task { wcet, body, jitter: task.jitter.checked_add(latency)?, ..task.clone() })
    };
    let charged = system.task_ids().zip(charges.system.tasks()).map(|task| charged_task(task).ok_or(Failure::Overflow));
    let charged = charged.collect::<Result<_, Failure>>().map_err(refuse)?;
    charges.system.with_tasks(charged)
}

/// The advice if times do not fit.
const UNITS: &str = "check the units of the overheads";

/// Returns the overheads with the decisions of partitioned EDF in the release.
fn with_decisions<'a>(system: &System, model: &'a Overheads) -> Result<Cow<'a, Overheads>, Failure> {
    if system.scheduler() != Scheduler::PEdf || model.dedicated_interrupts || model.charges_nothing() {
        return Ok(Cow::Borrowed(model));
    }
    let machine = Machine { system, overheads: model };
    let release = || {
        let [release, enter, leave] =
            [Overhead::Release, Overhead::SyscallIn, Overhead::SyscallOut].map(|cost| machine.cost(cost));
        sum(&[[release; 2].as_slice(), &[machine.switch()?; 6], &[enter; 6], &[leave; 6]].concat())
    };
    let mut model = model.clone();
    model.set(Overhead::Release, Cost::constant(release().ok_or(Failure::Overflow)?));
    Ok(Cow::Owned(model))
}

/// Returns the system with the cost of all operations in its sections.
///
/// All costs of a request are in its section: neither `srp` nor spinning suspends a job, and jobs that arrive meanwhile
/// wait for the operations as well. There are two system calls, one for the lock and one for the unlock or for leaving
/// the section. Non-blocking objects cost nothing beyond their length. Under other protocols a job may also suspend,
/// resume elsewhere, and preempt a job there: three switches, a third system call, an interprocessor interrupt and two
/// refills.
fn with_operations(system: &System, model: &Overheads, omission: Omission<ChargeMutant>) -> Result<System, Failure> {
    let machine = Machine { system, overheads: model };
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        task.body = operated(machine, &task.body, omission).ok_or(Failure::Overflow)?;
        task.wcet = runs(&task.body).ok_or(Failure::Overflow)?;
    }
    system.with_tasks(tasks).map_err(|_| Failure::Overflow)
}

/// Returns a body with the cost of all operations in its sections, or `None` if a time does not fit.
fn operated(machine: Machine<'_>, body: &[Step], omission: Omission<ChargeMutant>) -> Option<Vec<Step>> {
    let Machine { system, overheads } = machine;
    let largest = system.task_ids().map(|id| machine.working_set(id)).max().unwrap_or(0);
    let delay = omission.unless(ChargeMutant::CacheDelay, overheads.cache_delay.with(largest as usize));
    let refill = machine.cost(Overhead::CacheRefill).checked_add(delay);
    lengthened(body, Duration::ZERO, |resource| {
        let protocol = system.protocol_of(resource, system.protocol_or_default());
        let is_omitted = omission.is(ChargeMutant::InnerSections) && is_inner(body, resource);
        if protocol.is_object() || is_omitted {
            return Some((Duration::ZERO, Duration::ZERO));
        }
        let operations = [Overhead::Lock, Overhead::Unlock, Overhead::LeaveSection, Overhead::IpiLatency];
        let [lock, unlock, leave, ipi] = operations.map(|of| machine.cost_under(of, protocol));
        let ipi = omission.unless(ChargeMutant::SectionIpi, ipi);
        let (system_call, switch) = (machine.system_call(protocol)?, machine.switch()?);
        let all = omission.unless(ChargeMutant::Operations, sum(&[lock, unlock, leave, system_call, system_call])?);
        let suspends = !matches!(protocol, Protocol::Srp | Protocol::Msrp | Protocol::FmlpShort);
        let all = match suspends {
            true => {
                let switches =
                    omission.unless(ChargeMutant::SectionSwitches, sum(&[switch, switch, switch, system_call, ipi])?);
                let refills = omission.unless(ChargeMutant::SectionRefills, sum(&[refill?, refill?])?);
                sum(&[all, switches, refills])?
            }
            false => all,
        };
        Some((Duration::ZERO, all))
    })
}

/// Returns the costs for a system of `tasks` tasks, and the processors that handle interrupts.
fn costs(
    machine: Machine<'_>,
    tasks: usize,
    omission: Omission<ChargeMutant>,
) -> Result<(Costs, jlfp::Interrupts), Failure> {
    let model = machine.overheads;
    // The cost of refilling the caches as a function of the working set, constant before the first point.
    let refill = model.cost(Overhead::CacheRefill).with(tasks).as_ns();
    let points = model.cache_delay.points();
    let first = points.first().filter(|(kib, _)| *kib > 0).map(|&(_, delay)| (0, delay));
    let rising: Option<Vec<(u64, u64)>> = first
        .iter()
        .chain(points)
        .map(|&(kib, delay)| Some((u64::from(kib), delay.as_ns().checked_add(refill)?)))
        .collect();
    let rising = rising.ok_or(Failure::Overflow)?;
    let is_flat = rising.is_empty() || omission.is(ChargeMutant::CacheDelay);
    let cache = if is_flat { Curve::constant(refill) } else { Curve::through(&rising)? };
    let of = |overhead| Curve::constant(model.cost(overhead).with(tasks).as_ns());
    let release = match model.dedicated_interrupts {
        true => Curve::constant(machine.queued_releases(omission).ok_or(Failure::Overflow)?.as_ns()),
        false => of(Overhead::Release),
    };
    let costs = Costs {
        quantum: model.tick_period.as_ns(),
        tick: omission.unless(ChargeMutant::Ticks, of(Overhead::Tick)),
        release: omission.unless(ChargeMutant::Releases, release),
        release_latency: of(Overhead::ReleaseLatency),
        schedule: omission.unless(ChargeMutant::JobSwitches, of(Overhead::Schedule)),
        context_switch: omission.unless(ChargeMutant::JobSwitches, of(Overhead::ContextSwitch)),
        ipi_latency: omission.unless(ChargeMutant::ReleaseIpi, of(Overhead::IpiLatency)),
        lock: of(Overhead::Lock),
        unlock: of(Overhead::Unlock),
        syscall_in: of(Overhead::SyscallIn),
        syscall_out: of(Overhead::SyscallOut),
        cache: CacheDelay { levels: vec![omission.unless(ChargeMutant::JobRefill, cache)] },
        ..Costs::default()
    };
    let interrupts = jlfp::Interrupts {
        processors: u16::try_from(machine.system.cpus()).unwrap_or(u16::MAX),
        dedicated: model.dedicated_interrupts,
    };
    Ok((costs, interrupts))
}
