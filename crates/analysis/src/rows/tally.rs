//! Sums of requests and of their lengths, and the jobs of a task in an interval.

use crate::rows::divisor::Divisor;

/// The longest time. Three such times can be added without overflow.
pub(crate) const TIME_MAX: u64 = u64::MAX / 4;

/// Arithmetic on bounds. For numbers known to be small it has no checks; otherwise a sum that does not fit becomes
/// `u64::MAX`, and stays so.
pub(crate) trait Arithmetic: Copy {
    /// More requests than there are.
    const UNLIMITED: u64;
    fn add(a: u64, b: u64) -> u64;
    fn mul(a: u64, b: u64) -> u64;
    fn least(a: u64, b: u64) -> u64;
    /// Returns the number of jobs in an interval of length `t` at any place: `ceil((t + R) / T)`.
    fn jobs(arrivals: Arrivals, t: u64) -> u64;
}

/// All sums fit, and divisions are short: see [`RequestTables::fits`].
#[derive(Clone, Copy)]
pub(crate) struct Fits;

/// Some sums may not fit, and saturate.
#[derive(Clone, Copy)]
pub(crate) struct Saturates;

impl Arithmetic for Fits {
    const UNLIMITED: u64 = i64::MAX as u64;

    #[inline]
    fn add(a: u64, b: u64) -> u64 {
        debug_assert!(a.checked_add(b).is_some());
        a.wrapping_add(b)
    }

    #[inline]
    fn mul(a: u64, b: u64) -> u64 {
        debug_assert!(a.checked_mul(b).is_some());
        a.wrapping_mul(b)
    }

    #[inline]
    fn least(a: u64, b: u64) -> u64 {
        least(a, b)
    }

    #[inline]
    fn jobs(arrivals: Arrivals, t: u64) -> u64 {
        let jobs = arrivals.period.floor_short(t.wrapping_add(arrivals.carry));
        debug_assert_eq!(jobs, Saturates::jobs(arrivals, t));
        jobs
    }
}

impl Arithmetic for Saturates {
    const UNLIMITED: u64 = u64::MAX;

    #[inline]
    fn add(a: u64, b: u64) -> u64 {
        a.saturating_add(b)
    }

    #[inline]
    fn mul(a: u64, b: u64) -> u64 {
        a.saturating_mul(b)
    }

    #[inline]
    fn least(a: u64, b: u64) -> u64 {
        a.min(b)
    }

    #[inline]
    fn jobs(arrivals: Arrivals, t: u64) -> u64 {
        arrivals.period.floor(t.saturating_add(arrivals.carry))
    }
}

/// Returns the lesser of two numbers below 2^63 without a branch, as both outcomes are about equally likely in these
/// loops.
#[inline]
pub(crate) fn least(a: u64, b: u64) -> u64 {
    debug_assert!(a.max(b) < 1 << 63);
    let difference = a.wrapping_sub(b) as i64;
    b.wrapping_add((difference & (difference >> 63)) as u64)
}

/// Sections of others that delay a task: their total length and their number. A number that does not fit is `u64::MAX`,
/// and stays so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) length: u64,
    pub(crate) requests: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn count<A: Arithmetic>(&mut self, requests: u64, length: u64) {
        self.length = A::add(self.length, A::mul(requests, length));
        self.requests = A::add(self.requests, requests);
    }

    #[inline]
    pub(crate) fn add(&mut self, other: Self) {
        self.length = self.length.saturating_add(other.length);
        self.requests = self.requests.saturating_add(other.requests);
    }
}

/// The arrivals of a task: its period, and the time that it adds to an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    pub(crate) period: Divisor,
    /// R + T - 1.
    pub(crate) carry: u64,
}
