//! Comparison of observations with bounds.

use fastrand::Rng;
use lockwright_analysis::Analysis;
use lockwright_model::{Duration, Instant, Observation, Protocol, System, TaskId};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation};

/// The quantity that exceeded its bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// The response time.
    Response,
    /// The blocking, summed over its causes.
    Blocking,
}

/// An observation that exceeds its bound. Either the bound or the simulation is wrong.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Excess {
    /// The task that was observed.
    pub task: TaskId,
    /// The quantity that was observed.
    pub quantity: Quantity,
    /// The bound.
    pub bound: Duration,
    /// The observed value.
    pub observed: Duration,
}

/// Returns the first observation that exceeds a bound of its task, or `None` if all bounds hold.
///
/// `ages` are the ages of the unfinished jobs. They count as responses, because a job that never finishes would
/// otherwise exceed nothing.
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

/// Simulates a system `runs` times, with varying offsets, arrivals and execution times, and returns the first excess
/// with the configuration that shows it.
///
/// `horizon` is the length of each run, in longest periods.
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
        let config = Config::default()
            .with_protocol(protocol)
            .with_offsets(match run % 4 {
                0 => Offsets::Synchronous,
                // Close together, so that jobs arrive while others are in their sections.
                1 => Offsets::Fixed(system.task_ids().map(|_| Duration::from_ns(random.u64(0..40))).collect()),
                _ => Offsets::Random,
            })
            .with_arrivals(if run % 3 == 2 { Arrivals::Sporadic } else { Arrivals::Periodic })
            .with_execution(if run % 4 == 3 { Execution::Random } else { Execution::Worst })
            .with_seed(random.u64(..))
            .with_shuffle(run % 2 == 1);
        let mut simulation = Simulation::new(system, &config, ());
        simulation.run_until(end);
        hold(analysis, &simulation.observations(), &simulation.ages()).map(|excess| (excess, config))
    })
}
