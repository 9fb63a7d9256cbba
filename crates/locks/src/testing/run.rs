//! Where a check executes: real threads, loom or shuttle.

use crate::{Relax, sync};

#[cfg(lockwright_loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::Arc, thread};
#[cfg(lockwright_shuttle)]
pub(crate) use shuttle::thread;
#[cfg(not(lockwright_loom))]
pub(crate) use std::sync::Arc;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) use std::thread;

/// Lets others run between two looks: tests have more threads than cores, and none of them is a real-time one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Patient;

impl Relax for Patient {
    fn relax(&mut self) {
        sync::spin_loop();
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        thread::yield_now();
    }
}

/// How a model explores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Preemptions a schedule may have, in loom.
    pub(crate) preemptions: usize,
    /// Schedules, in shuttle and on real threads.
    pub(crate) schedules: usize,
}

#[cfg(lockwright_loom)]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(effort.preemptions);
    model.check(check);
}

#[cfg(lockwright_shuttle)]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    let check = Arc::new(check);
    let again = Arc::clone(&check);
    // Uniformly random schedules, then such with few preemptions, which find bugs of small depth sooner.
    shuttle::check_random(move || check(), effort.schedules);
    shuttle::check_pct(move || again(), effort.schedules, 3);
}

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    for _ in 0..effort.schedules {
        check();
    }
}

/// Whether a check fails, as a twin must.
pub(crate) fn caught(check: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err()
}
