//! Bounds under `mpcp` as strong as a linear program gives them, where that covers the system.

use crate::Failure;
use crate::bound::{Analysis, Blocking};
use crate::linear::{self, responses};
use crate::sharing::sharing_of;
use lockwright_model::{Duration, Protocol, ResourceId, Scheduler, System, TaskId};

/// Why a linear program says nothing of a system.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Uncovered {
    /// There are clusters of several processors.
    Clusters,
    /// A resource is under another protocol, or all its users are on one processor.
    Resource(ResourceId),
    /// The ceiling of a resource is fixed by hand.
    Ceiling(ResourceId),
    /// A task holds two resources at a time.
    Nested(TaskId),
    /// A task may be released late.
    Jitter(TaskId),
    /// By that program, too, a deadline can be missed, or it was given up.
    Failed(Failure),
}

impl Uncovered {
    /// One sentence for a person.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        match self {
            Self::Clusters => "there are clusters of several CPUs".into(),
            Self::Resource(id) => {
                format!(
                    "`{}` is not under mpcp across CPUs, the one protocol that has such a bound",
                    system.resource(*id).name
                )
            }
            Self::Ceiling(id) => format!("the ceiling of `{}` is fixed by hand", system.resource(*id).name),
            Self::Nested(task) => format!("`{}` holds two resources at a time", system.task(*task).name),
            Self::Jitter(task) => format!("`{}` has a release jitter", system.task(*task).name),
            Self::Failed(Failure::Late { task, .. }) => {
                format!(
                    "by it, too, the response time of `{}` is beyond its deadline",
                    system.task(TaskId::new(*task)).name
                )
            }
            Self::Failed(why) => why.to_string(),
        }
    }
}

/// Lowers the bounds of `analysis`, which is of this system, to those of the linear program where these are less. Both are bounds, so the lesser of
/// the two is.
///
/// # Errors
/// Where the program does not cover the system: then nothing has changed.
pub fn tighten(system: &System, analysis: &mut Analysis) -> Result<(), Uncovered> {
    if system.has_clusters() {
        return Err(Uncovered::Clusters);
    }
    // Only one that is shared across processors is.
    let covered = |&id: &ResourceId| system.protocol_of(id, analysis.protocol) == Protocol::Mpcp;
    if let Some(id) =
        system.resource_ids().find(|id| !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) || !covered(id))
    {
        return Err(Uncovered::Resource(id));
    }
    if let Some(id) = system.resource_ids().find(|&id| system.resource(id).ceiling.is_some()) {
        return Err(Uncovered::Ceiling(id));
    }
    if let Some(id) = system.task_ids().find(|&id| system.sections(id).iter().any(|section| section.parent.is_some())) {
        return Err(Uncovered::Nested(id));
    }
    if let Some(id) = system.task_ids().find(|&id| system.task(id).jitter != Duration::ZERO) {
        return Err(Uncovered::Jitter(id));
    }
    let mut sharing = sharing_of(system, |_| true);
    let found = responses(&sharing, linear::Protocol::Mpcp).map_err(Uncovered::Failed)?;
    for (task, &response) in sharing.tasks.iter_mut().zip(&found.responses) {
        task.response = response;
    }
    let blocked = linear::mpcp(&sharing).map_err(Uncovered::Failed)?;
    for ((id, bound), (&response, blocked)) in
        system.task_ids().zip(&mut analysis.tasks).zip(found.responses.iter().zip(blocked))
    {
        let response = Duration::from_ns(response);
        if bound.response.is_none_or(|before| response < before) {
            bound.response = Some(response);
            bound.schedulable = response <= system.task(id).deadline;
            bound.unbounded = None;
            bound.blocking = Some(Blocking {
                local: Duration::ZERO,
                boosted: Duration::from_ns(blocked.local),
                remote: Duration::from_ns(blocked.remote),
            });
        }
    }
    Ok(())
}
