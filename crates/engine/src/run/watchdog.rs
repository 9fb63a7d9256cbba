//! The watchdog: a thread above all tasks that ends every run in bounded time.
//!
//! ```text
//!   RUN     until all tasks are done                            -> over
//!           until stop() or a failure, or start + cut: CUT      -> DRAIN
//!   DRAIN   wakes all sleepers; until all tasks are done        -> over
//!           DRAIN_GRACE                                         -> DEMOTE
//!   DEMOTE  puts unfinished tasks under the ordinary policy;
//!           until all tasks are done, or DEMOTE_GRACE           -> over
//! ```

use super::shared::{Nap, Shared};
use crate::control::CUT;
use lockwright_sys::clock;

/// How long tasks may take to release their locks and end, in nanoseconds. They burn no more execution time.
const DRAIN_GRACE_NS: u64 = 1_000_000_000;
/// How long tasks may take under the ordinary policy, in nanoseconds.
const DEMOTE_GRACE_NS: u64 = 1_000_000_000;

/// Watches the run. Returns its end in nanoseconds of the monotonic clock.
///
/// BOUND: start + cut + DRAIN_GRACE + DEMOTE_GRACE.
pub(super) fn watch(shared: &Shared) -> u64 {
    watch_to_end(shared);
    clock::now_ns()
}

fn watch_to_end(shared: &Shared) {
    let wait = |until_ns| shared.ends.wait(&shared.control, until_ns, || false);
    let cut_ns = shared.start_ns() + shared.cut.as_ns();
    if shared.ends.wait(&shared.control, cut_ns, || shared.control.is_stopped()) {
        return;
    }
    shared.control.leave(CUT);
    shared.naps.iter().for_each(Nap::wake);
    if wait(clock::now_ns() + DRAIN_GRACE_NS) {
        return;
    }
    for task in shared.ends.unfinished() {
        // A thread that cannot be demoted is reported as stuck below.
        let _ = shared.demote(task);
    }
    wait(clock::now_ns() + DEMOTE_GRACE_NS);
}
