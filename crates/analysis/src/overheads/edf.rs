//! Overheads charged to a system under partitioned or global EDF, or global fixed priorities, with the charges of
//! [`jlfp`].
//!
//! Lock operations and the interrupts in sections are charged to the system as in `charge.rs`, as rows have no order of
//! sections and no protocols. Everything else is charged to rows.

use super::body::{lengthened, runs, sum};
use super::machine::{Machine, stretched};
use super::{CacheDelay, Costs, Curve, Task, jlfp};
use crate::rows::failure::Failure;
use crate::rows::sharing::{Sharer, Sharing, demands};
use lockwright_model::{Duration, Overhead, Overheads, Protocol, System, TaskId};

/// Returns the tasks of the system in nanoseconds, with overheads charged. The charge is centred on preemptions, as for
/// EDF; it also holds for fixed priorities, as a job keeps its priority there as well.
pub(crate) fn charged(system: &System, model: &Overheads) -> Result<Sharing, Failure> {
    let longer;
    let system = match model.charges_nothing() {
        true => system,
        false => {
            longer = with_operations(system, model)?;
            &longer
        }
    };
    let machine = Machine { system, overheads: model };
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
    if let Some(task) = machine.unmeasured() {
        let what = "its working set is beyond the last point of `cache_delay`";
        return Err(Failure::Unsupported { task: task.index(), what });
    }
    let mut tasks: Vec<Task> = system.task_ids().map(plain).collect();
    if !model.charges_nothing() {
        let mut costs = costs(model, tasks.len())?;
        if model.dedicated_interrupts {
            let queued = machine.queued_releases().ok_or(Failure::Overflow)?;
            costs.release = Curve::constant(queued.as_ns());
        }
        let interrupts = jlfp::Interrupts {
            processors: u16::try_from(system.cpus()).unwrap_or(u16::MAX),
            dedicated: model.dedicated_interrupts,
        };
        let lengthened = jlfp::charge(&costs, interrupts, &tasks)?;
        tasks = jlfp::quantise(&lengthened, &tasks)?;
        // Sections are longer by the interrupts that fall into them, as other tasks wait for these.
        let interrupts = machine.interrupts();
        for (id, task) in system.task_ids().zip(&mut tasks) {
            let all = interrupts.iter().map(|(_, interrupt)| interrupt);
            let own: Vec<_> = all.filter(|interrupt| interrupt.cpu == system.task(id).cpu).collect();
            for request in &mut task.requests {
                let length = Duration::from_ns(request.length);
                let stretched = stretched(length, &own, Duration::ZERO).ok_or(Failure::Overload)?;
                request.length = stretched.as_ns();
            }
        }
    }
    let sharer = |(id, task): (TaskId, Task)| Sharer {
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

/// Returns the system with the cost of all operations in its sections.
///
/// All costs of a request are in its section: neither `srp` nor `msrp` suspends a job, and jobs that arrive meanwhile
/// wait for the operations as well. There are two system calls, one for the lock and one for the unlock or for leaving
/// the section.
fn with_operations(system: &System, model: &Overheads) -> Result<System, Failure> {
    let machine = Machine { system, overheads: model };
    let section = |resource| {
        let protocol = if system.is_global(resource) { Protocol::Msrp } else { Protocol::Srp };
        let operations = [Overhead::Lock, Overhead::Unlock, Overhead::LeaveSection];
        let [lock, unlock, leave] = operations.map(|of| machine.cost_under(of, protocol));
        let system_call = machine.system_call(protocol)?;
        Some((Duration::ZERO, sum(&[lock, unlock, leave, system_call, system_call])?))
    };
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        task.body = lengthened(&task.body, Duration::ZERO, section).ok_or(Failure::Overflow)?;
        task.wcet = runs(&task.body).ok_or(Failure::Overflow)?;
    }
    system.with_tasks(tasks).map_err(|_| Failure::Overflow)
}

/// Returns the costs for a system of `tasks` tasks.
fn costs(model: &Overheads, tasks: usize) -> Result<Costs, Failure> {
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
    let cache = if rising.is_empty() { Curve::constant(refill) } else { Curve::through(&rising)? };
    let of = |overhead| Curve::constant(model.cost(overhead).with(tasks).as_ns());
    Ok(Costs {
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
        cache: CacheDelay { levels: vec![cache] },
        ..Costs::default()
    })
}
