//! The state that the threads of one run share.

use super::report::Report;
use super::reservation::Reservation;
use super::taken::Taken;
use crate::calibrate::Calibration;
use crate::control::Control;
use crate::team::{Ends, Gate, Muster};
use lockwright::raw::Locks;
use lockwright_model::{Duration, System, TaskId};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::{SysError, clock, sched};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The state that the threads of one run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) system: System,
    pub(super) locks: Locks,
    /// Under SCHED_DEADLINE: the reservation of each task.
    pub(super) reservations: Vec<Reservation>,
    pub(super) control: Control,
    pub(super) calibration: Calibration,
    pub(super) duration: Duration,
    /// When the watchdog ends the run, from the common start: `duration` plus the longest deadline.
    pub(super) cut: Duration,
    /// The common start in nanoseconds of the monotonic clock. Set before the start gate opens.
    pub(super) start_ns: AtomicU64,
    /// The threads that are still being set up.
    pub(super) muster: Arc<Muster>,
    /// Opens for the watchdog when all threads are ready. The watchdog chooses the start, so that no ordinary thread
    /// delays it.
    pub(super) ready: Gate,
    /// Opens for all other threads when the start is chosen.
    pub(super) start: Gate,
    /// Opens when the watchdog is done. Thread ids stay valid until then.
    pub(super) exit: Gate,
    pub(super) taken: Taken,
    /// One for each task, and the last one for the script.
    pub(super) naps: Box<[Nap]>,
    pub(super) ends: Ends<Report>,
}

impl Shared {
    pub(super) fn start_ns(&self) -> u64 {
        // ORDERING: Relaxed: the value is stored before the start gate opens, and the gate's word orders it.
        self.start_ns.load(Ordering::Relaxed)
    }

    /// Puts the thread of a task under the ordinary policy, permanently.
    pub(super) fn demote(&self, task: TaskId) -> Result<(), SysError> {
        let leave = if self.reservations.is_empty() { sched::set_other } else { sched::leave_deadline };
        self.locks.executor.demote(task, leave)
    }
}

/// A sleep until a time. Each thread has a word of its own, so that sleepers do not share a queue in the kernel.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Nap(AtomicU32);

impl Nap {
    /// Sleeps until the monotonic clock reads `at_ns`. Returns false if [`Nap::wake`] was called before that.
    ///
    /// BOUND: `at_ns`, or the end of the run.
    pub(super) fn until(&self, at_ns: u64) -> bool {
        // ORDERING: Relaxed: the word publishes no other data.
        while self.0.load(Ordering::Relaxed) == 0 {
            if clock::now_ns() >= at_ns {
                return true;
            }
            futex::wait(Scope::Private, &self.0, 0, Some(Deadline::monotonic(at_ns))).or_panic();
        }
        false
    }

    /// Ends this sleep and all later ones.
    pub(super) fn wake(&self) {
        // ORDERING: Relaxed: see `until`.
        self.0.store(1, Ordering::Relaxed);
        futex::wake(Scope::Private, &self.0, 1);
    }
}
