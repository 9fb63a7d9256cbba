//! Tasks that share resources, as the blocking bounds of multiprocessor protocols know them.

use lockwright_model::{Request, System, TaskId};

/// Tasks on clusters of processors, and what they ask of resources. Times are integers in one unit, the same for all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sharing {
    /// In any order.
    pub tasks: Vec<Sharer>,
}

/// A sporadic task, and what one of its jobs asks of resources. Sections are not nested.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sharer {
    /// Worst-case execution time, its sections included, no blocking, C.
    pub cost: u64,
    /// T; above 0.
    pub period: u64,
    /// D.
    pub deadline: u64,
    /// A bound on its response time, R: how long its jobs may overlap an interval.
    pub response: u64,
    /// Greater is more urgent.
    pub priority: u32,
    /// The processor, or cluster of processors, where it executes.
    pub cluster: u16,
    /// At most one entry a resource.
    pub requests: Vec<Demand>,
}

/// What one job asks of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// Which resource.
    pub resource: u16,
    /// At most so often, N.
    pub count: u32,
    /// At most so long each time, L.
    pub length: u64,
}

/// A system's tasks, in nanoseconds, with those of their requests that count.
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

/// What one job of a system's task asks for, in nanoseconds.
pub(crate) fn demands(system: &System, task: TaskId) -> Vec<Demand> {
    let demand = |request: &Request| Demand {
        resource: request.resource.0,
        count: request.count,
        length: request.length.as_ns(),
    };
    system.requests(task).iter().map(demand).collect()
}
