//! The handle on a run: stops it and reports its progress.
//!
//! ```text
//!   state         meaning                                   left by
//!   RUNS          jobs arrive and execute                   stop(), the watchdog, a failure
//!   INTERRUPTED   stop() was called: drain and end          -
//!   CUT           the watchdog stopped it: drain and end    -
//!   FAILED        a task failed: drain and end              -
//! ```

use lockwright_model::Duration;
use lockwright_sys::clock;
use lockwright_sys::futex::{self, Deadline, Scope};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) const RUNS: u32 = 0;
pub(crate) const INTERRUPTED: u32 = 1;
pub(crate) const CUT: u32 = 2;
pub(crate) const FAILED: u32 = 3;

/// Stops a run from another thread. Clones are the same handle. A handle serves one run: once stopped, it stays
/// stopped.
///
/// # Examples
/// ```
/// let control = lockwright_engine::Control::new();
/// let other = control.clone();
/// std::thread::spawn(move || other.stop()).join().unwrap();
/// assert!(control.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<State>);

#[derive(Debug, Default)]
struct State {
    state: AtomicU32,
    /// Changes whenever the watchdog must act; the watchdog waits on this word.
    bell: AtomicU32,
    /// The common start in nanoseconds of the monotonic clock; 0 before it is chosen.
    start_ns: AtomicU64,
}

impl Control {
    /// A handle for one run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the run: executing jobs are abandoned and their locks unlocked. May be called from a signal handler.
    pub fn stop(&self) {
        self.leave(INTERRUPTED);
    }

    /// Whether the run was stopped, by [`Control::stop`] or by itself.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed: the state publishes no other data; locks are unlocked in the usual way.
        self.0.state.load(Ordering::Relaxed) != RUNS
    }

    /// Time since the common start, or `None` before it.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        // ORDERING: Relaxed: the value publishes no other data.
        match self.0.start_ns.load(Ordering::Relaxed) {
            0 => None,
            start => clock::now_ns().checked_sub(start).map(Duration::from_ns),
        }
    }

    /// The common start in nanoseconds of the monotonic clock, once it is chosen.
    pub(crate) fn start(&self) -> Option<u64> {
        // ORDERING: Relaxed: see `elapsed`.
        Some(self.0.start_ns.load(Ordering::Relaxed)).filter(|&start| start > 0)
    }

    /// RUNS -> `state`; only the first call has an effect on the state.
    pub(crate) fn leave(&self, state: u32) {
        // ORDERING: Relaxed: the bell orders it for the watchdog; other threads need no order.
        let _ = self.0.state.compare_exchange(RUNS, state, Ordering::Relaxed, Ordering::Relaxed);
        self.ring();
    }

    pub(crate) fn state(&self) -> u32 {
        // ORDERING: Relaxed: see `is_stopped`.
        self.0.state.load(Ordering::Relaxed)
    }

    pub(crate) fn started(&self, start_ns: u64) {
        // ORDERING: Relaxed: see `elapsed`.
        self.0.start_ns.store(start_ns, Ordering::Relaxed);
    }

    /// Wakes the watchdog.
    pub(crate) fn ring(&self) {
        // ORDERING: Release pairs with the Acquire in `listen`: a thread that reads the bell sees the reason for
        // ringing.
        self.0.bell.fetch_add(1, Ordering::Release);
        futex::wake(Scope::Private, &self.0.bell, 1);
    }

    /// The value of the bell. Read it, then check every other condition, then call [`Control::wait_for_bell`].
    pub(crate) fn listen(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `ring`.
        self.0.bell.load(Ordering::Acquire)
    }

    /// Waits until the bell has another value than `heard`, or until the monotonic clock reads `until_ns`.
    pub(crate) fn wait_for_bell(&self, heard: u32, until_ns: u64) {
        futex::wait(Scope::Private, &self.0.bell, heard, Some(Deadline::monotonic(until_ns))).or_panic();
    }
}
