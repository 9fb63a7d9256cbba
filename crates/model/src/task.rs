//! Tasks, the steps of their jobs, and the usual assignments of their priorities.

use crate::{CpuId, Duration, Priority, ResourceId};
use alloc::string::String;
use alloc::vec::Vec;

/// One step of a job. Locking and unlocking take no time of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Execute for at most this long.
    Run(Duration),
    /// Acquire a resource, waiting if necessary.
    Lock(ResourceId),
    /// Acquire a resource for reading. Under a reader-writer protocol, several jobs read at a time. Under every other
    /// protocol this is `Lock`.
    Read(ResourceId),
    /// Release the resource acquired last.
    Unlock(ResourceId),
}

impl Step {
    /// Returns the resource that the step acquires, for reading or writing.
    #[must_use]
    pub const fn acquired(self) -> Option<ResourceId> {
        match self {
            Self::Lock(resource) | Self::Read(resource) => Some(resource),
            Self::Run(_) | Self::Unlock(_) => None,
        }
    }
}

/// A recurring piece of work on one processor.
///
/// A job *arrives* once per `period` or later: the period is the minimum inter-arrival time. The job is *released* at
/// most `jitter` after its arrival, and must finish within `deadline` of its arrival.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    /// The name, unique in its system.
    pub name: String,
    /// The processor on which its jobs execute. In a cluster of several processors it is the first one: see
    /// [`System::cpus_of`](crate::System::cpus_of).
    pub cpu: CpuId,
    /// The base priority; a greater one is more urgent. Tasks of equal priority are served first come, first served.
    pub priority: Priority,
    /// The minimum time between two arrivals.
    pub period: Duration,
    /// The deadline relative to the arrival, at most the period.
    pub deadline: Duration,
    /// The longest time from arrival to release.
    pub jitter: Duration,
    /// The first arrival in simulation and execution. The analysis holds for every offset.
    pub offset: Duration,
    /// The worst-case execution time of one job, critical sections included. It is the sum of the runs in `body`.
    pub wcet: Duration,
    /// The steps of a job, in order.
    pub body: Vec<Step>,
}

/// Assigns rate-monotonic priorities: the shorter the period, the more urgent the task.
///
/// Among equal periods, the earlier task of the slice is more urgent. Every task gets a priority of its own. The
/// levels run from the number of tasks down to 1.
///
/// # Panics
/// Panics if there are more than 65 535 tasks.
pub fn assign_rate_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| task.period);
}

/// Assigns deadline-monotonic priorities: like [`assign_rate_monotonic`], by relative deadline instead of period.
///
/// # Panics
/// Panics if there are more than 65 535 tasks.
pub fn assign_deadline_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| task.deadline);
}

fn assign_by(tasks: &mut [Task], key: impl Fn(&Task) -> Duration) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| (key(&tasks[task]), task));
    for (rank, &task) in order.iter().enumerate() {
        tasks[task].priority = Priority::base((tasks.len() - rank) as u32);
    }
}
