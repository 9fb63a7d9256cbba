//! Why no test covers a system under its scheduler.

use crate::rows::failure::Failure;
use lockwright_model::{Protocol, ResourceId, Scheduler, System, TaskId};
use std::fmt;

/// Why a system cannot be tested under its scheduler.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Untested {
    /// The system is under fixed priorities on partitioned or clustered processors: use [`analyse`](crate::analyse).
    FixedPriorities,
    /// The resources are locks and lock-free objects, or locks for which jobs wait in different ways.
    Mixed(ResourceId, ResourceId),
    /// A task holds two resources at a time, and one of them is shared across processors or an object.
    Nested(TaskId),
    /// A resource is under a protocol that no test covers.
    Protocol(ResourceId),
    /// There are overheads, and they cannot be charged to the waits for this resource under partitioned EDF.
    Uncharged(ResourceId),
    /// A task has release jitter.
    Jitter(TaskId),
    /// Two tasks have the same priority.
    EqualPriorities(TaskId, TaskId),
    /// A cost in the overheads cannot be charged.
    Overheads(Failure),
    /// The terms of a test cannot be listed.
    Terms(Failure),
}

impl Untested {
    /// Describes the reason in one sentence, with the names of the system.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let name = |task: &TaskId| &system.task(*task).name;
        let scheduler = system.scheduler();
        match self {
            Self::FixedPriorities => format!("`{scheduler}` has bounds of its own"),
            Self::Mixed(one, other) => {
                let of = |id: ResourceId| {
                    let protocol = system.protocol_of(id, system.protocol_or_default());
                    format!("`{}` is under `{protocol}`", system.resource(id).name)
                };
                format!("{} and {}, and no test here covers both in one system", of(*one), of(*other))
            }
            Self::Nested(task) => {
                format!("`{}` holds two resources at a time, one of them shared across CPUs", name(task))
            }
            Self::Protocol(resource) => {
                let (of, under) = (system.resource(*resource), Scheduler::PFp);
                let protocol = of.protocol.unwrap_or(system.protocol_or_default());
                let instead = match protocol {
                    Protocol::None => String::new(),
                    _ => format!("; `{under}` has bounds"),
                };
                format!("`{}` is under `{protocol}`, which no test here covers under `{scheduler}`{instead}", of.name)
            }
            Self::Uncharged(resource) => format!(
                "`{}` is under `fmlp_long`, and no test here charges overheads to its waits under `{scheduler}`",
                system.resource(*resource).name
            ),
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
            Self::Terms(why) => format!("the terms cannot be listed: {why}"),
        }
    }
}

impl fmt::Display for Untested {
    /// Writes the reason with the ids of the tasks and resources. [`Untested::describe`] has their names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FixedPriorities => write!(f, "fixed priorities on partitioned or clustered CPUs have bounds instead"),
            Self::Mixed(one, other) => {
                write!(
                    f,
                    "no test of the scheduler covers the protocols of resources {} and {} together",
                    one.0, other.0
                )
            }
            Self::Nested(task) => {
                write!(f, "task {} holds two resources at a time, one of them shared across CPUs", task.0)
            }
            Self::Protocol(resource) => {
                write!(f, "no test of the scheduler covers the protocol of resource {}", resource.0)
            }
            Self::Uncharged(resource) => {
                write!(f, "no test of the scheduler charges overheads to the waits for resource {}", resource.0)
            }
            Self::Jitter(task) => write!(f, "no test of the scheduler covers the release jitter of task {}", task.0),
            Self::EqualPriorities(one, other) => {
                write!(f, "no test of the scheduler covers the equal priorities of tasks {} and {}", one.0, other.0)
            }
            Self::Overheads(why) => write!(f, "the overheads cannot be charged: {why}"),
            Self::Terms(why) => write!(f, "the terms cannot be listed: {why}"),
        }
    }
}

impl std::error::Error for Untested {}
