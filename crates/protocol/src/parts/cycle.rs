//! Chains of waiting: a task waits for a resource, whose owner waits for another resource, and so on.

use lockwright_model::{ResourceId, TaskId};

/// Returns the owners up the chain from `resource`, each with the resource that it waits for. The last owner waits for
/// nothing, or for a free resource.
///
/// BOUND: one step for each task. There is no cycle, because every request that would close one is refused.
pub(crate) fn chain(
    resource: ResourceId,
    owner: impl Fn(ResourceId) -> Option<TaskId>,
    waits_for: impl Fn(TaskId) -> Option<ResourceId>,
) -> impl Iterator<Item = (TaskId, Option<ResourceId>)> {
    let mut at = Some(resource);
    core::iter::from_fn(move || {
        let owner = owner(at?)?;
        at = waits_for(owner);
        Some((owner, at))
    })
}

/// Returns whether the chain from `resource` leads back to `task`.
pub(crate) fn waits_for_itself(
    task: TaskId,
    resource: ResourceId,
    owner: impl Fn(ResourceId) -> Option<TaskId>,
    waits_for: impl Fn(TaskId) -> Option<ResourceId>,
) -> bool {
    chain(resource, owner, waits_for).any(|(owner, _)| owner == task)
}
