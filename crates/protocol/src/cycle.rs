//! Deadlock, found before a task waits.

use lockwright_model::{ResourceId, TaskId};

/// Whether the chain of owners from `resource`, each followed to what it waits for, leads back to `task`.
///
/// BOUND: one step a task: there was no cycle before, for every request that would close one is refused.
pub(crate) fn waits_for_itself(
    task: TaskId,
    resource: ResourceId,
    owner: impl Fn(ResourceId) -> Option<TaskId>,
    waits_for: impl Fn(TaskId) -> Option<ResourceId>,
) -> bool {
    let mut at = Some(resource);
    while let Some(holder) = at.and_then(&owner) {
        if holder == task {
            return true;
        }
        at = waits_for(holder);
    }
    false
}
