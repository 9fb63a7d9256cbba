//! `fmlp_short`, and the global resources of `msrp`: a ticket lock for tasks that are not preempted.
//!
//! ```text
//!   lock     rise above all tasks; draw a ticket; wait until it is served
//!   unlock   serve the next ticket; fall
//! ```

use super::error::ResourceError;
use crate::tasks::executor::{Executor, Turn, spin_until};
use lockwright_model::TaskId;
use lockwright_sys::clock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Raises `task`, the caller, above all tasks.
pub(super) fn rise(executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
    let raised = executor.exclude(task).or_else(|error| executor.include(task).and(Err(error)));
    raised.map_err(ResourceError::from)
}

/// A ticket lock whose users rise above all tasks.
///
/// # Bound
/// One section of each other processor: at most one task of each waits or holds, and none is preempted by another task.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct SpinLock {
    next: AtomicU32,
    served: AtomicU32,
}

impl SpinLock {
    pub(super) const fn new() -> Self {
        Self { next: AtomicU32::new(0), served: AtomicU32::new(0) }
    }

    /// Locks for `task`, the caller. Returns whether the lock was held.
    pub(super) fn lock(&self, executor: &Executor, task: TaskId) -> Result<bool, ResourceError> {
        rise(executor, task)?;
        executor.mark(task, Turn::Asking);
        // ORDERING: Relaxed: the ticket orders only tickets; `served` orders the sections.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        executor.mark(task, Turn::Asked);
        // ORDERING: Acquire pairs with the Release in `unlock`.
        let is_served = || self.served.load(Ordering::Acquire) == ticket;
        let waits = !is_served();
        if waits {
            // BOUND: one section of each other processor.
            spin_until(
                || is_served().then_some(()),
                |until| {
                    // A refused sleep only adds one more round.
                    let _ = clock::sleep_until(until);
                },
            );
        }
        executor.mark(task, Turn::Owned);
        Ok(waits)
    }

    /// Unlocks for `task`, the caller and owner.
    pub(super) fn unlock(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        executor.mark(task, Turn::Left);
        // ORDERING: Relaxed: only the owner writes. Release pairs with the Acquire in `lock`.
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served.wrapping_add(1), Ordering::Release);
        executor.include(task).map_err(ResourceError::from)
    }
}
