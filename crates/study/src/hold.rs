//! What was observed, held against what was promised.

use fastrand::Rng;
use lockwright_analysis::Analysis;
use lockwright_model::{Duration, Instant, Observation, Protocol, System, TaskId};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation};

/// What exceeded its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// The response time.
    Response,
    /// The blocking, summed over its causes.
    Blocking,
}

/// A bound that an observation exceeds: one of the two is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excess {
    /// Whose.
    pub task: TaskId,
    /// Of what.
    pub quantity: Quantity,
    /// What was promised.
    pub bound: Duration,
    /// What was seen.
    pub observed: Duration,
}

/// The first task that was seen to exceed a bound it has. `ages` are those of unfinished jobs, which count as responses:
/// else a job that never finishes would exceed nothing.
#[must_use]
pub fn hold(analysis: &Analysis, observations: &[Observation], ages: &[Duration]) -> Option<Excess> {
    for (index, ((bound, seen), &age)) in analysis.tasks.iter().zip(observations).zip(ages).enumerate() {
        let blocking = bound.blocking.and_then(lockwright_analysis::Blocking::total);
        for (quantity, bound, observed) in [
            (Quantity::Response, bound.response, seen.response.max(Some(age))),
            (Quantity::Blocking, blocking, seen.blocking),
        ] {
            if let (Some(bound), Some(observed)) = (bound, observed)
                && observed > bound
            {
                return Some(Excess { task: TaskId::new(index), quantity, bound, observed });
            }
        }
    }
    None
}

/// Simulates a system several times, from quiet to wild, and returns the first excess with the schedule that shows it.
///
/// `horizon` is in longest periods.
#[must_use]
pub fn attack(
    system: &System,
    analysis: &Analysis,
    protocol: Protocol,
    random: &mut Rng,
    runs: usize,
    horizon: u64,
) -> Option<(Excess, Config)> {
    let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
    let end = Instant::from_ns(longest.saturating_mul(horizon));
    (0..runs).find_map(|run| {
        let config = Config {
            protocol: Some(protocol),
            offsets: match run % 4 {
                0 => Offsets::Synchronous,
                // Close together: what happens while something else does.
                1 => Offsets::Fixed(system.task_ids().map(|_| Duration::from_ns(random.u64(0..40))).collect()),
                _ => Offsets::Random,
            },
            arrivals: if run % 3 == 2 { Arrivals::Sporadic } else { Arrivals::Periodic },
            execution: if run % 4 == 3 { Execution::Random } else { Execution::Worst },
            seed: random.u64(..),
            shuffle: run % 2 == 1,
            ..Config::default()
        };
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(end);
        hold(analysis, &simulation.observations(), &simulation.ages()).map(|excess| (excess, config))
    })
}
