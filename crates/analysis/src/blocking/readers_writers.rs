//! `phase_fair` and `task_fair`: the bounds of [`spin`](super::spin) for readers and writers, for a whole system.
//!
//! The rules are those of `fmlp_short`, except for the order of requests: from its request to its release, a job is not
//! preempted. So on each processor at most one job waits or holds, a job spins as execution, and it is delayed once, at
//! its arrival, by the longest request of a task that is no more urgent.

use super::delay::{Charge, Delay, DelayBounds, Platform};
use super::spin::{self, ReadersWriters};
use crate::rows::failure::Failure;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::{Demand, Sharer, Sharing, demands_in};
use crate::rows::tables::Tables;
use lockwright_model::{Mode, Protocol, TaskId};

/// The bounds of one of the two protocols.
pub(crate) struct Spinning {
    system: ReadersWriters,
    platform: Platform,
    delays: fn(&ReadersWriters, Platform) -> Result<Vec<Delay>, Failure>,
    /// The sections of others that do not count. Only a mutant has one.
    without: Option<Mode>,
}

impl Spinning {
    /// Creates the bounds. `sharing` contains the requests that count, in either mode.
    pub(crate) fn new(tables: &Tables<'_>, protocol: Protocol, sharing: &Sharing) -> Self {
        let demands = |mode| {
            let tasks = sharing.tasks.iter().enumerate();
            let of = |(task, sharer): (usize, &Sharer)| {
                let is_counted = |demand: &Demand| sharer.requests.iter().any(|any| any.resource == demand.resource);
                demands_in(tables.system, TaskId::new(task), mode).into_iter().filter(is_counted).collect()
            };
            tasks.map(of).collect::<Vec<Vec<Demand>>>()
        };
        let mut tasks = sharing.tasks.clone();
        for (task, writes) in tasks.iter_mut().zip(demands(Mode::Write)) {
            task.requests = writes;
        }
        let without = match () {
            () if tables.is_mutant(Mutant::Reads) => Some(Mode::Read),
            () if tables.is_mutant(Mutant::Writes) => Some(Mode::Write),
            () => None,
        };
        Self {
            system: ReadersWriters { tasks, reads: demands(Mode::Read) },
            platform: Platform::partitioned(sharing),
            delays: if protocol == Protocol::PhaseFair { spin::phase_fair } else { spin::task_fair },
            without,
        }
    }
}

impl DelayBounds for Spinning {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        for (task, &response) in self.system.tasks.iter_mut().zip(responses) {
            task.response = response;
        }
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let Some(without) = self.without else {
            delays.copy_from_slice(&(self.delays)(&self.system, self.platform)?);
            return Ok(());
        };
        for (task, delay) in delays.iter_mut().enumerate() {
            let mut system = self.system.clone();
            for other in (0..system.reads.len()).filter(|&other| other != task) {
                match without {
                    Mode::Read => system.reads[other].clear(),
                    Mode::Write => system.tasks[other].requests.clear(),
                }
            }
            *delay = (self.delays)(&system, self.platform)?[task];
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: 0, blocked: delay.arrival, executed: delay.remote? })
    }
}
