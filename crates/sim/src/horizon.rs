//! The default length of a simulation.

use lockwright_model::{DURATION_MAX, Duration, System};

/// The number of job releases after which a simulation of default length ends if the hyperperiod is longer.
pub const JOBS_DEFAULT: u64 = 1_000_000;

/// The length of a simulation, and the reason for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Horizon {
    /// The length, from time zero.
    pub duration: Duration,
    /// The reason.
    pub reason: HorizonReason,
}

/// The reason for the length of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HorizonReason {
    /// The simulation takes the longest offset and two hyperperiods. Periodic schedules repeat after that.
    Hyperperiods,
    /// The simulation has about [`JOBS_DEFAULT`] job releases, as two hyperperiods are longer.
    Jobs,
}

/// Returns the longest offset and two hyperperiods, or the time of about [`JOBS_DEFAULT`] job releases if that is less.
#[must_use]
pub fn default_horizon(system: &System) -> Horizon {
    let periods = || system.tasks().iter().map(|task| task.period.as_ns());
    let offset = system.tasks().iter().map(|task| task.offset).max().unwrap_or_default();
    let jobs_in = |ns: u64| periods().map(|period| ns / period + 1).sum::<u64>();
    let hyperperiod = periods().try_fold(1_u64, |all, period| {
        (all / gcd(all, period)).checked_mul(period).filter(|all| *all <= DURATION_MAX.as_ns())
    });
    let two = hyperperiod.and_then(|ns| ns.checked_mul(2)?.checked_add(offset.as_ns()));
    if let Some(two) = two.filter(|&two| two <= DURATION_MAX.as_ns() && jobs_in(two) <= JOBS_DEFAULT) {
        return Horizon { duration: Duration::from_ns(two), reason: HorizonReason::Hyperperiods };
    }
    // Bisection finds the longest time with at most that number of jobs. It is at least one nanosecond.
    let (mut within, mut beyond) = (1, DURATION_MAX.as_ns());
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if jobs_in(middle) <= JOBS_DEFAULT { within = middle } else { beyond = middle }
    }
    let duration = within.saturating_add(offset.as_ns()).min(DURATION_MAX.as_ns());
    Horizon { duration: Duration::from_ns(duration), reason: HorizonReason::Jobs }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
