//! Threads that are set up together, start together, and leave reports.

use crate::control::Control;
use crate::error::RunError;
use lockwright::tasks::MachineError;
use lockwright_model::TaskId;
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::{SysError, clock, memory, sched};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The stack size of a thread.
const STACK_BYTES: usize = 256 << 10;
/// The part of the stack that is touched before the start.
pub(crate) const STACK_TOUCHED: usize = 64 << 10;

/// How long the set-up of all threads may take, in nanoseconds. An ordinary thread may have to wait for a CPU.
const SET_UP_NS: u64 = 30_000_000_000;
/// How long the set-up may take after a stop, in nanoseconds.
const STOPPED_NS: u64 = 1_000_000_000;
/// The time between two looks for a stop during the set-up, in nanoseconds.
const STOP_LOOK_NS: u64 = 20_000_000;
/// How long threads without work may take to end, in nanoseconds. A thread that leaves SCHED_DEADLINE may take 4.2 s.
pub const END_NS: u64 = 10_000_000_000;
/// The time between two looks for the end of a thread, in nanoseconds.
const END_LOOK_NS: u64 = 1_000_000;

/// Starts a thread with a name.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    let builder = std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    builder.spawn(body).map_err(|error| {
        MachineError::Sys(SysError { call: "starting a thread", errno: error.raw_os_error().unwrap_or(libc::EAGAIN) })
            .into()
    })
}

/// Puts the calling thread under SCHED_FIFO on these processors.
pub fn become_realtime(level: u8, cpus: &[usize]) -> Result<(), SysError> {
    let me = sched::gettid();
    memory::prefault_stack::<STACK_TOUCHED>();
    sched::exact_timers();
    // The order matters: an ordinary thread on a busy processor might never reach the second call.
    sched::set_fifo(me, level)?;
    sched::set_affinity(me, cpus)
}

/// Waits until threads that have no work left have ended: a join has no limit, and other programs may keep them from
/// executing. `have_ended` says whether they have.
///
/// BOUND: END_NS.
pub(crate) fn wait_until(have_ended: impl Fn() -> bool) {
    let until_ns = clock::now_ns() + END_NS;
    // BOUND: see above.
    while !have_ended() && clock::now_ns() < until_ns {
        let _ = clock::sleep_until(clock::now_ns() + END_LOOK_NS);
    }
}

/// Waits for the ends of threads that have no work left. Returns the places of those that have not ended in time.
///
/// BOUND: END_NS.
pub fn wait_for_ends<T>(threads: &[JoinHandle<T>]) -> Vec<usize> {
    wait_until(|| threads.iter().all(JoinHandle::is_finished));
    (0..threads.len()).filter(|&place| !threads[place].is_finished()).collect()
}

/// Counts the threads that are being set up. A thread that ends without an answer counts as a failure.
#[derive(Debug, Default)]
pub struct Muster {
    missing: AtomicU32,
    /// The first failure.
    fault: Mutex<Option<RunError>>,
}

impl Muster {
    /// Waits for the answers of all places, or for the first failure, which it returns. Returns [`RunError::NotReady`]
    /// if answers are missing at the end of the time for the set-up.
    ///
    /// BOUND: SET_UP_NS; after a stop, STOPPED_NS and STOP_LOOK_NS.
    pub fn wait(&self, control: &Control) -> Result<(), RunError> {
        let mut until_ns = clock::now_ns() + SET_UP_NS;
        // BOUND: see above; a failure and the last place wake this thread.
        loop {
            // ORDERING: Acquire pairs with the Release in `Place::drop`.
            let missing = self.missing.load(Ordering::Acquire);
            if let Some(fault) = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(fault);
            }
            if missing == 0 {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            if control.is_stopped() {
                until_ns = until_ns.min(now_ns + STOPPED_NS);
            }
            if now_ns >= until_ns {
                return Err(RunError::NotReady);
            }
            let look = Deadline::monotonic(until_ns.min(now_ns + STOP_LOOK_NS));
            futex::wait(Scope::Private, &self.missing, missing, Some(look)).or_panic();
        }
    }
}

/// A thread's place in the muster. It is released with the thread's answer, or when the thread ends.
pub struct Place {
    muster: Arc<Muster>,
    answer: Option<Result<(), RunError>>,
}

impl Place {
    /// Adds a place to `muster`, which waits for it from now on.
    pub fn new(muster: &Arc<Muster>) -> Self {
        // ORDERING: Relaxed: the place is counted before the thread starts.
        muster.missing.fetch_add(1, Ordering::Relaxed);
        Self { muster: Arc::clone(muster), answer: None }
    }

    /// Answers and releases the place: the thread is ready, or its set-up failed.
    pub fn answer(mut self, answer: Result<(), RunError>) {
        self.answer = Some(answer);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let muster = &self.muster;
        let answer = self.answer.take().unwrap_or(Err(RunError::SetUp));
        let failed = answer.is_err();
        if let Err(fault) = answer {
            muster.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        }
        // ORDERING: Release pairs with the Acquire in `Muster::wait`.
        if muster.missing.fetch_sub(1, Ordering::Release) == 1 || failed {
            futex::wake(Scope::Private, &muster.missing, 1);
        }
    }
}

/// A gate that threads wait at. It is opened or abandoned once.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const ABANDONED: u32 = 2;

impl Gate {
    /// Waits until the gate opens. Returns false if it was abandoned.
    ///
    /// BOUND: the set-up, or the watchdog's grace periods.
    pub fn pass(&self) -> bool {
        // BOUND: see above.
        loop {
            // ORDERING: Acquire pairs with the Release in `set`.
            match self.0.load(Ordering::Acquire) {
                CLOSED => {
                    futex::wait(Scope::Private, &self.0, CLOSED, None).or_panic();
                }
                state => return state == OPEN,
            }
        }
    }

    /// Opens the gate for all threads.
    pub fn open(&self) {
        self.set(OPEN);
    }

    /// Abandons the gate: all threads return false from [`Gate::pass`].
    pub fn abandon(&self) {
        self.set(ABANDONED);
    }

    fn set(&self, state: u32) {
        // ORDERING: Release pairs with the Acquire in `pass`.
        self.0.store(state, Ordering::Release);
        futex::wake(Scope::Private, &self.0, i32::MAX);
    }
}

/// The tasks that have finished, and their reports.
#[derive(Debug)]
pub struct Ends<T> {
    left: AtomicU32,
    done: Box<[AtomicBool]>,
    reports: Box<[Mutex<Option<T>>]>,
}

impl<T> Ends<T> {
    /// Creates the record for this number of tasks, none of which has finished.
    pub fn new(tasks: usize) -> Self {
        Self {
            left: AtomicU32::new(tasks as u32),
            done: (0..tasks).map(|_| AtomicBool::new(false)).collect(),
            reports: (0..tasks).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// Leaves the report of a finished task. The last task wakes the watchdog.
    pub fn leave(&self, task: TaskId, report: T, control: &Control) {
        *self.reports[task.index()].lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        // ORDERING: Release, here and below, pairs with the Acquire in `all` and `unfinished`.
        self.done[task.index()].store(true, Ordering::Release);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            control.ring();
        }
    }

    fn all(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `leave`.
        self.left.load(Ordering::Acquire) == 0
    }

    /// The tasks that have not finished.
    pub fn unfinished(&self) -> impl Iterator<Item = TaskId> + use<'_, T> {
        // ORDERING: Acquire pairs with the Release in `leave`.
        let unfinished = |&task: &usize| !self.done[task].load(Ordering::Acquire);
        (0..self.done.len()).filter(unfinished).map(TaskId::new)
    }

    /// Waits until all tasks have finished, until `enough`, or until the monotonic clock reads `until_ns`. Returns
    /// whether all tasks have finished.
    pub fn wait(&self, control: &Control, until_ns: u64, enough: impl Fn() -> bool) -> bool {
        // BOUND: `until_ns`; the bell rings once for each stop and once when all tasks are done.
        loop {
            let heard = control.listen();
            if self.all() {
                return true;
            }
            if enough() || clock::now_ns() >= until_ns {
                return false;
            }
            control.wait_for_bell(heard, until_ns);
        }
    }

    /// Takes the report of a finished task. Later calls return `None`.
    pub fn take(&self, task: TaskId) -> Option<T> {
        self.reports[task.index()].lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_before_all_have_answered() {
        let muster = Arc::default();
        let (late, failed) = (Place::new(&muster), Place::new(&muster));
        failed.answer(Err(RunError::NoSlot));
        let control = Control::new();
        control.stop();
        let begin_ns = clock::now_ns();
        assert_eq!(muster.wait(&control), Err(RunError::NoSlot));
        assert!(clock::now_ns() - begin_ns < STOPPED_NS / 2, "it waited for the other one");
        late.answer(Ok(()));
    }
}
