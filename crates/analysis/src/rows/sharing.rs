//! Tasks that share resources, for the blocking bounds of multiprocessor protocols.

use lockwright_model::{Mode, Request, System, TaskId};

/// Tasks on clusters of processors, with their requests for resources. Times are integers in one unit, which is the
/// same for all tasks.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
///
/// # Examples
/// ```
/// use lockwright_analysis::blocking::dflp::dflp;
/// use lockwright_analysis::{Demand, Sharer, Sharing};
/// let task = |cluster, priority, length| Sharer {
///     cost: 10,
///     period: 100,
///     deadline: 100,
///     response: 20,
///     priority,
///     cluster,
///     requests: vec![Demand { resource: 0, count: 1, length }],
/// };
/// let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
/// assert_eq!(dflp(&sharing, &[0])?[1].remote, Some(3));
/// # Ok::<(), lockwright_analysis::Failure>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sharing {
    /// The tasks, in any order.
    pub tasks: Vec<Sharer>,
}

/// A sporadic task, with the requests of one of its jobs. Sections are not nested.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sharer {
    /// The worst-case execution time with sections and without waiting, C.
    pub cost: u64,
    /// The minimum time between two arrivals, T; above 0.
    pub period: u64,
    /// The deadline relative to the arrival, D.
    pub deadline: u64,
    /// A bound on the response time, R. It limits how long jobs overlap an interval.
    pub response: u64,
    /// The priority. A greater number is more urgent.
    pub priority: u32,
    /// The processor, or the cluster of processors, where the task executes.
    pub cluster: u16,
    /// The requests of one job, with at most one entry per resource.
    pub requests: Vec<Demand>,
}

/// The requests of one job for one resource.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Demand {
    /// The resource.
    pub resource: u16,
    /// The greatest number of requests, N.
    pub count: u32,
    /// The length of the longest section, L.
    pub length: u64,
}

/// Returns the tasks of a system in nanoseconds, with the requests for which `counts` holds.
pub(crate) fn sharing_of(system: &System, counts: impl Fn(&Demand) -> bool) -> Sharing {
    let sharer = |id: TaskId| {
        let task = system.task(id);
        Sharer {
            cost: task.wcet.as_ns(),
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns(),
            response: task.deadline.as_ns(),
            priority: task.priority.level(),
            cluster: task.cpu.0,
            requests: demands(system, id).into_iter().filter(&counts).collect(),
        }
    };
    Sharing { tasks: system.task_ids().map(sharer).collect() }
}

/// Returns the requests of one job of a task, in nanoseconds.
pub(crate) fn demands(system: &System, task: TaskId) -> Vec<Demand> {
    system.requests(task).iter().map(demand).collect()
}

/// Returns those requests that read, or those that write.
pub(crate) fn demands_in(system: &System, task: TaskId, mode: Mode) -> Vec<Demand> {
    system.requests_in(task, mode).iter().map(demand).collect()
}

fn demand(request: &Request) -> Demand {
    Demand { resource: request.resource.0, count: request.count, length: request.length.as_ns() }
}
