//! The environment of a check: real threads, loom or shuttle.

use crate::{Relax, sync};
use std::string::String;

#[cfg(lockwright_loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::mpsc, thread};
#[cfg(lockwright_shuttle)]
pub(crate) use shuttle::{sync::mpsc, thread};
pub(crate) use std::sync::Arc;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) use std::{sync::mpsc, thread};

/// The unsuccessful checks of one wait whose continuations loom explores.
///
/// Loom may let two waiters alternate forever while the holder pauses. After this number, an execution therefore
/// continues in one way only, which is fair.
#[cfg(lockwright_loom)]
const CHECKS_EXPLORED: u32 = 3;

// A model runs all its threads on one thread of the system.
#[cfg(lockwright_loom)]
std::thread_local! {
    /// Checks while this is false do not count, because one too many would end the exploration of all that follows.
    static EXPLORES: core::cell::Cell<bool> = const { core::cell::Cell::new(true) };
}

/// A [`Relax`] that lets others run: tests have more threads than cores, and none of them is a real-time thread.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Patient {
    checks: u32,
}

impl Relax for Patient {
    fn relax(&mut self) {
        #[cfg(lockwright_loom)]
        if EXPLORES.get() {
            self.checks += 1;
            if self.checks > CHECKS_EXPLORED {
                loom::skip_branch();
            }
        }
        sync::spin_loop();
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        thread::yield_now();
    }
}

/// The effort of an exploration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The preemptions of a schedule, in loom.
    pub(crate) preemptions: usize,
    /// The schedules, in shuttle and on real threads.
    pub(crate) schedules: usize,
}

/// The branches of one execution. A wait that never ends makes more, and a check that ends makes some hundreds.
#[cfg(lockwright_loom)]
const BRANCHES_MAX: usize = 10_000;

#[cfg(lockwright_loom)]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    use core::sync::atomic::{AtomicUsize, Ordering};

    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.max_branches = BRANCHES_MAX;
    model.preemption_bound = Some(effort.preemptions);
    model.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        EXPLORES.set(true);
        check();
    });
    std::eprintln!("{effort:?}: {executions:?} executions");
}

#[cfg(lockwright_shuttle)]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    let check = Arc::new(check);
    let again = Arc::clone(&check);
    // Uniformly random schedules, and then schedules with few preemptions, which find bugs of small depth sooner.
    shuttle::check_random(move || check(), effort.schedules);
    shuttle::check_pct(move || again(), effort.schedules, 3);
}

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) fn explore(effort: Effort, check: impl Fn() + Send + Sync + 'static) {
    for _ in 0..effort.schedules {
        check();
    }
}

/// Executes `what` once, in one way, which loom does not explore.
pub(crate) fn unexplored<T>(what: impl FnOnce() -> T) -> T {
    #[cfg(lockwright_loom)]
    {
        EXPLORES.set(false);
        loom::stop_exploring();
    }
    let result = what();
    #[cfg(lockwright_loom)]
    {
        loom::explore();
        EXPLORES.set(true);
    }
    result
}

/// Whether a check fails with one of `words`, as a mutant must. A failure for another reason does not count.
pub(crate) fn caught(words: &[&str], check: impl FnOnce()) -> bool {
    let Err(said) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) else { return false };
    let said = said.downcast::<String>().map_or_else(
        |said| said.downcast::<&str>().map_or_else(|_| String::new(), |said| String::from(*said)),
        |said| *said,
    );
    std::eprintln!("caught: {said}");
    words.iter().any(|word| said.contains(word))
}

/// The messages if two threads are inside.
pub(crate) const TWO_INSIDE: &[&str] =
    if cfg!(lockwright_loom) { &["Causality violation: Concurrent"] } else { &["the count is off"] };

/// The messages if a thread waits forever.
pub(crate) const NEVER_ENDS: &[&str] = &["maximum number of branches", "max_steps", "deadlock"];

/// The messages if hand-offs follow another order.
pub(crate) const OUT_OF_ORDER: &[&str] = &["is not next of"];
