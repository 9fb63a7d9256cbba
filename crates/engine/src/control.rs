//! The handle on a run: stop it, see how far it is.
//!
//! ```text
//!   state         meaning                                   left by
//!   RUNS          jobs arrive and execute                   stop(), the watchdog, a failure
//!   INTERRUPTED   stop() was called: drain and end          -
//!   CUT           the watchdog ended it: drain and end      -
//!   FAILED        a task cannot go on: drain and end        -
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

/// Stops a run from elsewhere. Clones are the same handle. One handle serves one run: once stopped, it stays so.
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
    /// Changes whenever the watchdog should look; it waits on this.
    bell: AtomicU32,
    /// The common start by the monotonic clock; 0 before it is known.
    start_ns: AtomicU64,
}

impl Control {
    /// A handle for one run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run: executing jobs are abandoned, their locks released. May be called from a signal handler.
    pub fn stop(&self) {
        self.leave(INTERRUPTED);
    }

    /// Whether the run was stopped, by [`Control::stop`] or by itself.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed: nothing is published with it; locks are released in the usual way.
        self.0.state.load(Ordering::Relaxed) != RUNS
    }

    /// Time since the common start, or `None` before it.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        // ORDERING: Relaxed: the value is all that is meant.
        match self.0.start_ns.load(Ordering::Relaxed) {
            0 => None,
            start => clock::now_ns().checked_sub(start).map(Duration::from_ns),
        }
    }

    /// RUNS -> `state`; the first reason stands.
    pub(crate) fn leave(&self, state: u32) {
        // ORDERING: Relaxed: the bell orders it for the watchdog, and the others need no order.
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

    /// Calls the watchdog.
    pub(crate) fn ring(&self) {
        // ORDERING: Release pairs with the Acquire in `listen`: who hears the bell sees why it was rung.
        self.0.bell.fetch_add(1, Ordering::Release);
        futex::wake(Scope::Private, &self.0.bell, 1);
    }

    /// What the bell shows now. Look at everything else after it, then wait in [`Control::wait_for_bell`].
    pub(crate) fn listen(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `ring`.
        self.0.bell.load(Ordering::Acquire)
    }

    /// Waits until the bell shows something other than `heard`, or until the clock reads `until_ns`.
    pub(crate) fn wait_for_bell(&self, heard: u32, until_ns: u64) {
        futex::wait(Scope::Private, &self.0.bell, heard, Some(Deadline::monotonic(until_ns))).or_panic();
    }
}
