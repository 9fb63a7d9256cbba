//! The delay of a job by the sections of others, and bounds on it as a function of response times.

use crate::rows::failure::Failure;
use crate::rows::sharing::{Sharer, Sharing};
use crate::rows::tally::Tally;
use lockwright_model::{ResourceId, TaskId};

/// The greatest delay of one job of a task. Times are in the unit of the input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Delay {
    /// The waits of its requests for sections of others, suspended or spinning. `None` if there is no bound.
    pub remote: Option<u64>,
    /// The delay by sections of tasks that are no more urgent, on its own processor.
    pub local: u64,
    /// The delay by such sections that occurs only once per job, at its arrival.
    pub arrival: u64,
    /// The number of requests of others that these delays count; 0 if a bound does not consist of requests.
    pub requests: u64,
}

impl Delay {
    /// Returns the sum of the delays, or `None` if there is no bound or if it does not fit.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.remote?.checked_add(self.local)?.checked_add(self.arrival)
    }

    pub(crate) fn new(remote: Tally, local: Tally, arrival: Tally) -> Self {
        let mut all = remote;
        all.add(local);
        all.add(arrival);
        Self { remote: Some(remote.length), local: local.length, arrival: arrival.length, requests: all.requests }
    }

    /// Returns whether the sums fit. A saturated sum does not.
    fn fits(&self) -> bool {
        let sum = self.remote.unwrap_or(0).saturating_add(self.local).saturating_add(self.arrival);
        sum != u64::MAX && self.requests != u64::MAX
    }
}

/// Returns an error if a bound is saturated.
pub(crate) fn fitting(delays: &[Delay]) -> Result<(), Failure> {
    if delays.iter().all(Delay::fits) { Ok(()) } else { Err(Failure::Overflow) }
}

/// Returns the bounds of a protocol for the response times in its tables.
pub(crate) fn once(protocol: &mut impl DelayBounds, tasks: usize) -> Result<Vec<Delay>, Failure> {
    let mut delays = vec![Delay::default(); tasks];
    protocol.delays(&mut delays)?;
    Ok(delays)
}

/// The clusters and processors of a platform.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Platform {
    /// The number of clusters, which are numbered from 0.
    pub clusters: u16,
    /// The number of processors in each cluster.
    pub processors: u16,
    /// The cluster in which one processor handles interrupts only, if there is one.
    pub interrupts: Option<u16>,
}

impl Platform {
    /// Returns the platform whose clusters have one processor each.
    pub(crate) fn partitioned(sharing: &Sharing) -> Self {
        let clusters = sharing.tasks.iter().map(|task| task.cluster.saturating_add(1)).max().unwrap_or(0);
        Self { clusters, processors: 1, interrupts: None }
    }

    /// Returns the number of processors that execute jobs of a cluster.
    pub(crate) fn parallelism(&self, cluster: u16) -> u64 {
        u64::from(self.processors) - u64::from(self.processors > 0 && self.interrupts == Some(cluster))
    }

    /// Returns an error unless the cluster of every task exists and has a processor.
    pub(crate) fn holds(&self, tasks: &[Sharer]) -> Result<(), Failure> {
        match tasks.iter().position(|task| task.cluster >= self.clusters) {
            Some(task) => Err(Failure::Unsupported { task, what: "its cluster does not exist" }),
            None if self.processors == 0 && !tasks.is_empty() => Err(Failure::Overload),
            None => Ok(()),
        }
    }
}

/// The bounds of a protocol on the blocking of a task set, as a function of its response times. The function never
/// decreases as these grow.
pub trait DelayBounds {
    /// Sets the response times, in the order of the tasks.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if a number does not fit.
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure>;

    /// Computes the bounds, in the order of the tasks.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if a number does not fit, and other failures if the protocol does not cover the
    /// tasks.
    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure>;

    /// Like [`delays`](Self::delays), for the tasks of one cluster. The other bounds may stay as they are.
    ///
    /// # Errors
    /// Returns the errors of [`delays`](Self::delays).
    fn delays_in(&mut self, cluster: u16, delays: &mut [Delay]) -> Result<(), Failure> {
        let _ = cluster;
        self.delays(delays)
    }

    /// Marks the tasks whose bounds may differ between the response times `before` and the present ones, by index. All
    /// else is the same.
    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        let _ = before;
        marked.fill(true);
    }

    /// Like [`delays`](Self::delays), for the marked tasks. The other bounds are those of the present response times
    /// before the call. Tasks whose bounds depend on the computed ones are marked as well.
    ///
    /// # Errors
    /// Returns the errors of [`delays`](Self::delays).
    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        marked.fill(true);
        self.delays(delays)
    }

    /// Returns how a task's response time includes its bound, or `None` if there is no bound.
    fn charge(&self, delay: &Delay) -> Option<Charge>;
}

/// The parts of a response time that a delay causes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Charge {
    /// The time suspended, S.
    pub suspended: u64,
    /// The delay by less urgent tasks, B.
    pub blocked: u64,
    /// The additional execution, I. It also delays less urgent tasks.
    pub executed: u64,
}

impl Charge {
    /// Returns the charge of a task that is suspended while its requests wait, or `None` if there is no bound.
    pub(crate) fn of_suspensions(delay: &Delay) -> Option<Self> {
        Some(Self { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}

/// A section that may block: its task, its resource and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockingSection {
    pub(crate) task: TaskId,
    pub(crate) resource: ResourceId,
    pub(crate) length: u64,
}
