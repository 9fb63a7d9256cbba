//! The limit of requests at once, for locks that count requests in a word.
//!
//! A guard that is leaked counts forever, and so does a waiter whose [`Relax`](crate::Relax) panics.
//! If the difference of two counts wrapped around, a writer would enter beside a reader.
//! One request of each [`STRIDE`] therefore checks the difference, and ends the program if it is too large. A panic
//! would not do: a program that catches it could continue.

/// The requests at once from which the program is ended. The counts have 30 bits or more, so there is room for the
/// requests until the next check.
pub(crate) const REQUESTS_MAX: u32 = 1 << 29;

/// The requests from one check to the next. The first check comes late, so only long executions contain any.
pub(crate) const STRIDE: u32 = 1 << 20;

/// Ends the program if the request that drew the number `drawn` is to check, and `requests` are too many at once.
#[inline]
pub(crate) fn check(drawn: u32, requests: impl Fn() -> u32) {
    if drawn % STRIDE == STRIDE - 1 {
        check_now(&requests);
    }
}

/// A thread that is preempted between its two loads may see too many requests, but not twice.
#[cold]
fn check_now(requests: &dyn Fn() -> u32) {
    if requests() >= REQUESTS_MAX && requests() >= REQUESTS_MAX {
        end();
    }
}

/// Ends the program, because a panic does not leave an `extern "C"` function.
extern "C" fn end() -> ! {
    panic!("a spinlock has 2^29 requests at once: guards were leaked, or waiters have panicked");
}
