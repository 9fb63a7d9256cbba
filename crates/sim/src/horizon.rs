//! How long to simulate where nobody says.

use lockwright_model::{DURATION_MAX, Duration, System};

/// Job releases after which a simulation of default length ends, where the hyperperiod is longer.
pub const JOBS_DEFAULT: u64 = 1_000_000;

/// A length of simulation and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Horizon {
    /// From time zero.
    pub duration: Duration,
    /// Why so long.
    pub reason: HorizonReason,
}

/// Why a simulation is as long as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HorizonReason {
    /// The longest offset and two hyperperiods: periodic schedules repeat after that.
    Hyperperiods,
    /// About [`JOBS_DEFAULT`] job releases: two hyperperiods are longer.
    Jobs,
}

/// The longest offset and two hyperperiods, or about [`JOBS_DEFAULT`] job releases if that is less.
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
    // The longest time with no more than that many jobs, by bisection; at least one nanosecond.
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
