//! The limit of requests at once, for locks that count requests in a word.
//!
//! A guard that is leaked counts forever, and so does a waiter whose [`Relax`](crate::Relax) panics.
//! If the difference of two counts wrapped around, a writer would enter beside a reader.
//! One request of each [`STRIDE`] therefore checks the difference, and ends the program if it is too large. A panic
//! would not do: a program that catches it could continue.

use crate::sync::AtomicU32;
use core::sync::atomic::Ordering;

/// The requests at once from which the program is ended. The counts have 30 bits or more, so there is room for the
/// requests until the next check.
pub(crate) const REQUESTS_MAX: u32 = 1 << 29;

/// The requests from one check to the next. The first check comes late, so only long executions contain any.
pub(crate) const STRIDE: u32 = 1 << 20;

/// Checks the requests that `begun` counts and `ended` does not, if it is the turn of the request that drew `drawn`.
/// The counts are in multiples of `UNIT`; what `begun` has below it does not count.
#[inline]
pub(crate) fn check<const UNIT: u32>(drawn: u32, begun: &AtomicU32, ended: &AtomicU32) {
    if drawn / UNIT % STRIDE == STRIDE - 1 {
        check_now(UNIT, begun, ended);
    }
}

/// A thread that is preempted between its two loads may see too many requests, but not twice.
#[cold]
fn check_now(unit: u32, begun: &AtomicU32, ended: &AtomicU32) {
    let are_too_many = || {
        // ORDERING: Acquire pairs with the Release of the release of a request: `begun` counts all that have ended.
        let ended = ended.load(Ordering::Acquire);
        begun.load(Ordering::Relaxed).wrapping_sub(ended) / unit >= REQUESTS_MAX
    };
    if are_too_many() && are_too_many() {
        end();
    }
}

/// Ends the program, because a panic does not leave an `extern "C"` function.
extern "C" fn end() -> ! {
    panic!("a spinlock has 2^29 requests at once: guards were leaked, or waiters have panicked");
}
