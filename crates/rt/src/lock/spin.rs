//! `fmlp_short`, and the global resources of `msrp`: a ticket lock, by tasks that are not preempted.
//!
//! ```text
//!   lock     rise above all tasks; draw a ticket; wait until it is served
//!   unlock   serve the next ticket; fall
//! ```

use super::LockError;
use crate::executor::Executor;
use crate::sys::clock;
use lockwright_model::TaskId;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// # Bound
/// One section of each other processor: at most one task of each waits or holds, and none is preempted by another task.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct SpinLock {
    next: AtomicU32,
    served: AtomicU32,
}

/// Between two looks at the clock.
const SPINS: u32 = 1 << 12;
/// After so long, the owner has met something that no protocol knows of: a pause for each look, that lower threads of this processor may execute, too.
const SPIN_NS: u64 = 20_000_000;
const NAP_NS: u64 = 1_000_000;

impl SpinLock {
    pub(super) const fn new() -> Self {
        Self { next: AtomicU32::new(0), served: AtomicU32::new(0) }
    }

    /// `task`, the caller, takes the lock. Says whether it found it taken.
    pub(super) fn lock(&self, executor: &Executor, task: TaskId) -> Result<bool, LockError> {
        if let Err(error) = executor.exclude(task) {
            return executor.include(task).and(Err(error)).map_err(LockError::from);
        }
        // ORDERING: Relaxed: the ticket orders nothing but tickets; `served` orders the sections.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waited = false;
        let mut start = None;
        // BOUND: one section of each other processor. ORDERING: Acquire pairs with the Release in `unlock`.
        while self.served.load(Ordering::Acquire) != ticket {
            waited = true;
            for _ in 0..SPINS {
                if self.served.load(Ordering::Relaxed) == ticket {
                    break;
                }
                spin_loop();
            }
            let now = clock::now_ns();
            if now.saturating_sub(*start.get_or_insert(now)) > SPIN_NS {
                // A refusal is one more round.
                let _ = clock::sleep_until(now + NAP_NS);
            }
        }
        Ok(waited)
    }

    /// The owner, the caller, gives it back.
    pub(super) fn unlock(&self, executor: &Executor, task: TaskId) -> Result<(), LockError> {
        // ORDERING: Relaxed: only the owner writes. Release pairs with the Acquire in `lock`.
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served.wrapping_add(1), Ordering::Release);
        executor.include(task).map_err(LockError::from)
    }
}
