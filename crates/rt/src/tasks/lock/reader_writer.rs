//! `phase_fair` and `task_fair`: spinlocks that readers share, for tasks that are not preempted.
//!
//! ```text
//!   lock     rise above all tasks; wait as the algorithm of `lockwright_locks` does
//!   unlock   let the next ones in; fall
//! ```

use super::error::ResourceError;
use super::spin;
use crate::tasks::executor::{Executor, Patience, Turn, next_turn};
use lockwright_locks::{Relax, Shareable};
use lockwright_model::{Mode, TaskId};
use lockwright_protocol::Refusal;
use lockwright_sys::clock;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A task holds nothing.
const NOTHING: u64 = 0;
/// A task reads.
const READS: u64 = 1;
/// A task writes. The hold of the lock is in the lower half.
const WRITES: u64 = 1 << 32;

/// A lock that readers share, whose users rise above all tasks.
///
/// # Bound
/// That of the algorithm, with one core for each processor: at most one task of each waits or holds, and none is
/// preempted by another task.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct ReaderWriterLock<A> {
    algorithm: A,
    /// By task: what it holds. Only the task itself uses its entry.
    held: Box<[AtomicU64]>,
}

/// Whether the last request of a thread has waited.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// It has not. `true` if its events are counted.
    NotYet(bool),
    /// It has, and had been decided by this turn, or 0 if its events are not counted.
    Since(u64),
}

thread_local! {
    static WAIT: Cell<Wait> = const { Cell::new(Wait::NotYet(false)) };
}

/// The pause of a waiting task between two looks at the lock.
#[derive(Debug, Default)]
pub(super) struct Pause(Patience);

impl Relax for Pause {
    fn relax(&mut self) {
        if let Wait::NotYet(is_counted) = WAIT.get() {
            WAIT.set(Wait::Since(if is_counted { next_turn() } else { 0 }));
        }
        self.0.pause(|until| {
            // A refused sleep only adds one more round.
            let _ = clock::sleep_until(until);
        });
    }
}

impl<A: Shareable<Hold = u32>> ReaderWriterLock<A> {
    pub(super) fn new(tasks: usize) -> Self {
        Self { algorithm: A::FREE, held: (0..tasks).map(|_| AtomicU64::new(NOTHING)).collect() }
    }

    /// Locks for `task`, the caller. Returns whether it had to wait.
    pub(super) fn lock(&self, executor: &Executor, task: TaskId, mode: Mode) -> Result<bool, ResourceError> {
        spin::rise(executor, task)?;
        WAIT.set(Wait::NotYet(executor.counts_turns()));
        executor.mark(task, Turn::Asking);
        let held = match mode {
            Mode::Read => {
                self.algorithm.acquire_shared();
                READS
            }
            Mode::Write => WRITES | u64::from(self.algorithm.acquire(())),
        };
        // ORDERING: Relaxed: only this thread uses the entry.
        self.held[task.index()].store(held, Ordering::Relaxed);
        let waits = match WAIT.get() {
            Wait::NotYet(_) => {
                executor.mark(task, Turn::Asked);
                false
            }
            Wait::Since(turn) => {
                executor.set_turn(task, Turn::Asked, turn);
                true
            }
        };
        executor.mark(task, Turn::Owned);
        Ok(waits)
    }

    /// Unlocks for `task`, the caller and holder.
    #[allow(unsafe_code)] // The release of what the entry holds.
    pub(super) fn unlock(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        executor.mark(task, Turn::Left);
        // ORDERING: as in `lock`.
        match self.held[task.index()].swap(NOTHING, Ordering::Relaxed) {
            NOTHING => return Err(Refusal::NotHeld.into()),
            // SAFETY: `lock` stored the entry after a shared acquire, and the swap has removed it.
            READS => unsafe { self.algorithm.release_shared() },
            // SAFETY: `lock` stored the hold of an acquire in the lower half, and the swap has removed it.
            writes => unsafe { self.algorithm.release(writes as u32) },
        }
        executor.include(task).map_err(ResourceError::from)
    }
}
