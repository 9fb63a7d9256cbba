//! What the threads of one run share.

use super::RunError;
use super::control::Control;
use super::job::Report;
use crate::calibrate::Calibration;
use crate::lock::Locks;
use crate::sys::{SysError, clock, futex};
use lockwright_model::{Duration, System, TaskId};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the file.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) system: System,
    pub(super) locks: Locks,
    pub(super) control: Control,
    pub(super) calibration: Calibration,
    pub(super) duration: Duration,
    /// When the watchdog ends the run: after `duration`, by the longest deadline.
    pub(super) cut: Duration,
    /// The common start by the monotonic clock. Set before the start gate opens.
    pub(super) start_ns: AtomicU64,
    /// Who is still being set up.
    pub(super) muster: Muster,
    /// Opens for the watchdog when all threads are ready: it names the start, so that no ordinary thread delays it.
    pub(super) ready: Gate,
    /// Opens for all others when the start is named.
    pub(super) start: Gate,
    /// Opens when the watchdog is done: until then thread ids stay valid.
    pub(super) exit: Gate,
    /// One a task, and the last for the script.
    pub(super) naps: Box<[Nap]>,
    pub(super) ends: Ends,
}

impl Shared {
    pub(super) fn start_ns(&self) -> u64 {
        // ORDERING: Relaxed: stored before the start gate opened, whose word orders it.
        self.start_ns.load(Ordering::Relaxed)
    }
}

/// Where a thread sleeps until its next job: a word of its own, so that sleepers do not meet in the kernel.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Nap(AtomicU32);

impl Nap {
    /// Sleeps until the clock reads `at_ns`. False where it was woken for good before that.
    ///
    /// BOUND: `at_ns`, or the end of the run.
    pub(super) fn until(&self, at_ns: u64) -> bool {
        // ORDERING: Relaxed: the word only says that the run ends.
        while self.0.load(Ordering::Relaxed) == 0 {
            if clock::now_ns() >= at_ns {
                return true;
            }
            futex::wait(&self.0, 0, Some(at_ns));
        }
        false
    }

    /// Ends this sleep and all later ones.
    pub(super) fn wake(&self) {
        // ORDERING: Relaxed: see `until`.
        self.0.store(1, Ordering::Relaxed);
        futex::wake(&self.0, 1);
    }
}

/// Counts the threads that are being set up. A thread that ends without an answer counts as one that failed.
#[derive(Debug, Default)]
pub(super) struct Muster {
    missing: AtomicU32,
    /// What failed first.
    fault: Mutex<Option<RunError>>,
}

impl Muster {
    /// Waits for the answers of all who have a place.
    ///
    /// BOUND: set-up of each thread.
    pub(super) fn wait(&self) -> Result<(), RunError> {
        // BOUND: see above; the last place wakes.
        loop {
            // ORDERING: Acquire pairs with the Release in `Place::drop`.
            match self.missing.load(Ordering::Acquire) {
                0 => break,
                missing => futex::wait(&self.missing, missing, None),
            };
        }
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// A thread's place in the muster, given up with its answer, or when the thread ends.
pub(super) struct Place {
    shared: Arc<Shared>,
    answer: Option<Result<(), SysError>>,
}

impl Place {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        // ORDERING: Relaxed: counted before the thread starts.
        shared.muster.missing.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(shared), answer: None }
    }

    pub(super) fn answer(mut self, answer: Result<(), SysError>) {
        self.answer = Some(answer);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let muster = &self.shared.muster;
        let fault = match self.answer {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(error.into()),
            None => Some(RunError::SetUp),
        };
        if let Some(fault) = fault {
            muster.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        }
        // ORDERING: Release pairs with the Acquire in `Muster::wait`.
        if muster.missing.fetch_sub(1, Ordering::Release) == 1 {
            futex::wake(&muster.missing, 1);
        }
    }
}

/// Closed once, opened once.
#[derive(Debug, Default)]
pub(super) struct Gate(AtomicU32);

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const ABANDONED: u32 = 2;

impl Gate {
    /// Waits until the gate opens. False where it never will.
    ///
    /// BOUND: set-up, or the watchdog's grace.
    pub(super) fn pass(&self) -> bool {
        // BOUND: see above.
        loop {
            // ORDERING: Acquire pairs with the Release in `set`.
            match self.0.load(Ordering::Acquire) {
                CLOSED => {
                    futex::wait(&self.0, CLOSED, None);
                }
                state => return state == OPEN,
            }
        }
    }

    pub(super) fn open(&self) {
        self.set(OPEN);
    }

    pub(super) fn abandon(&self) {
        self.set(ABANDONED);
    }

    fn set(&self, state: u32) {
        // ORDERING: Release pairs with the Acquire in `pass`.
        self.0.store(state, Ordering::Release);
        futex::wake(&self.0, i32::MAX);
    }
}

/// Who has finished, with what.
#[derive(Debug)]
pub(super) struct Ends {
    left: AtomicU32,
    done: Box<[AtomicBool]>,
    reports: Box<[Mutex<Option<Report>>]>,
}

impl Ends {
    pub(super) fn new(tasks: usize) -> Self {
        Self {
            left: AtomicU32::new(tasks as u32),
            done: (0..tasks).map(|_| AtomicBool::new(false)).collect(),
            reports: (0..tasks).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// A task leaves its report; the last one calls the watchdog.
    pub(super) fn leave(&self, task: TaskId, report: Report, control: &Control) {
        *self.reports[task.index()].lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        // ORDERING: Release, here and below, pairs with the Acquire in `all` and `unfinished`.
        self.done[task.index()].store(true, Ordering::Release);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            control.ring();
        }
    }

    pub(super) fn all(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `leave`.
        self.left.load(Ordering::Acquire) == 0
    }

    pub(super) fn unfinished(&self) -> impl Iterator<Item = TaskId> + use<'_> {
        // ORDERING: Acquire pairs with the Release in `leave`.
        let unfinished = |&task: &usize| !self.done[task].load(Ordering::Acquire);
        (0..self.done.len()).filter(unfinished).map(TaskId::new)
    }

    /// The report of a task that has finished, once.
    pub(super) fn take(&self, task: TaskId) -> Option<Report> {
        self.reports[task.index()].lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
