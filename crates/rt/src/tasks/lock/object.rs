//! Non-blocking objects: `lock_free` and `wait_free`.
//!
//! The caller computes what a section does; this module only decides whether the section counts. Under `lock_free`, a
//! section is an attempt: it reads the version of the object at its beginning, and at its end replaces it by the next
//! one with a compare-and-swap. If another section did so meanwhile, the attempt has failed, and the caller executes it
//! again. Under `wait_free`, a section always counts.
//!
//! No operation here takes a lock or enters the kernel.

use super::error::Ending;
use lockwright_model::TaskId;
use lockwright_sys::clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The version of a lock-free object. One commit each nanosecond would wrap it after 500 years.
#[derive(Debug)]
pub(super) struct Version {
    current: AtomicU64,
    /// By task: the version that it read at the beginning of its attempt. Only the task itself uses its entry.
    begun: Box<[AtomicU64]>,
}

impl Version {
    pub(super) fn new(tasks: usize) -> Self {
        Self { current: AtomicU64::new(0), begun: (0..tasks).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Begins an attempt of the calling thread.
    pub(super) fn begin(&self, task: TaskId) {
        // ORDERING: pairs with the compare-and-swap of the commit of this version.
        let current = self.current.load(Ordering::Acquire);
        // ORDERING: only this thread reads it.
        self.begun[task.index()].store(current, Ordering::Relaxed);
    }

    /// Ends an attempt of the calling thread: commits, or begins the next attempt.
    pub(super) fn end(&self, task: TaskId) -> Ending {
        // ORDERING: only this thread wrote it.
        let begun = self.begun[task.index()].load(Ordering::Relaxed);
        // ORDERING: pairs with the load at the beginning of later attempts.
        let committed = self.current.compare_exchange(begun, begun + 1, Ordering::AcqRel, Ordering::Acquire);
        if let Err(current) = committed {
            // ORDERING: only this thread reads it.
            self.begun[task.index()].store(current, Ordering::Relaxed);
        }
        Ending { at_ns: clock::now_ns(), restarts: committed.is_err() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_fails_once_for_all_commits_during_it() {
        let (version, slow, fast) = (Version::new(2), TaskId(0), TaskId(1));
        version.begin(slow);
        for _ in 0..2 {
            version.begin(fast);
            assert!(!version.end(fast).restarts);
        }
        assert!(version.end(slow).restarts);
        assert!(!version.end(slow).restarts);
    }
}
