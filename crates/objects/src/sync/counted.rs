//! Atomics whose accesses are counted as steps.

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
use core::sync::atomic;
#[cfg(lockwright_loom)]
use loom::sync::atomic;
#[cfg(lockwright_shuttle)]
use shuttle::sync::atomic;

use crate::sync::constructor;
use core::sync::atomic::Ordering;

pub fn fence(order: Ordering) {
    atomic::fence(order);
}

#[derive(Debug)]
pub struct AtomicU64(atomic::AtomicU64);

impl AtomicU64 {
    constructor! {
        pub fn new(value: u64) -> Self {
            Self(atomic::AtomicU64::new(value))
        }
    }
    pub fn load(&self, order: Ordering) -> u64 {
        steps::take();
        self.0.load(order)
    }
    pub fn store(&self, value: u64, order: Ordering) {
        steps::take();
        self.0.store(value, order);
    }
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        steps::take();
        self.0.swap(value, order)
    }
    pub fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        steps::take();
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// The steps of the operations of a thread.
#[allow(clippy::missing_const_for_thread_local)] // Loom's `thread_local` takes no constants.
pub mod steps {
    use core::cell::{Cell, RefCell};
    #[cfg(lockwright_loom)]
    use loom::thread_local;
    #[cfg(lockwright_shuttle)]
    use shuttle::thread_local;
    use std::boxed::Box;
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    use std::thread_local;
    use std::vec::Vec;

    /// In tests, an operation with more steps would never end.
    const STEPS_MAX: u64 = if cfg!(lockwright_steps) { u64::MAX } else { 20_000 };

    /// An event before a step: the number of the step, counted from zero, and what happens.
    pub(crate) type Event = (u64, Box<dyn FnOnce()>);

    thread_local! {
        static TAKEN: Cell<u64> = Cell::new(0);
        /// The first one is the last element.
        static EVENTS: RefCell<Vec<Event>> = RefCell::new(Vec::new());
    }

    /// Takes a step.
    pub(super) fn take() {
        let taken = TAKEN.with(|taken| taken.replace(taken.get() + 1));
        assert!(taken < STEPS_MAX, "an operation never ends");
        let event = EVENTS.with(|events| events.borrow_mut().pop_if(|(step, _)| *step == taken));
        if let Some((_, work)) = event {
            work();
        }
    }

    /// Executes an operation and returns its result and its steps. Operations may be nested.
    pub fn count<R>(operation: impl FnOnce() -> R) -> (R, u64) {
        let (outer, outer_events) = (TAKEN.with(|taken| taken.replace(0)), EVENTS.with(|events| events.take()));
        let result = operation();
        EVENTS.with(|events| events.replace(outer_events));
        (result, TAKEN.with(|taken| taken.replace(outer)))
    }

    /// Executes an operation, and before some of its steps other work. Returns the result, the steps and whether all
    /// of the work was done.
    pub(crate) fn interrupted<R>(mut events: Vec<Event>, operation: impl FnOnce() -> R) -> (R, u64, bool) {
        events.sort_by_key(|(step, _)| core::cmp::Reverse(*step));
        let ((result, done), steps) = count(|| {
            EVENTS.with(|pending| pending.replace(events));
            let result = operation();
            (result, EVENTS.with(|pending| pending.take()).is_empty())
        });
        (result, steps, done)
    }

    /// Executes an operation of a participant that is killed before a step. Returns its result and its steps
    /// unless it was killed.
    pub(crate) fn killed<R>(step: u64, operation: impl FnOnce() -> R) -> Option<(R, u64)> {
        struct Kill;
        let outer = TAKEN.with(|taken| taken.get());
        let work: Event = (step, Box::new(|| std::panic::resume_unwind(Box::new(Kill))));
        let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| interrupted([work].into(), operation)));
        match result {
            Ok((result, steps, _)) => Some((result, steps)),
            Err(why) if why.is::<Kill>() => {
                TAKEN.with(|taken| taken.set(outer));
                None
            }
            Err(why) => std::panic::resume_unwind(why),
        }
    }
}
