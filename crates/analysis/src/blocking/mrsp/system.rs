//! MrsP as `analyse` bounds it for a system: requests wait as for a FIFO spinlock, in time of their own processor,
//! because a waiter's processor executes the owner whenever it is preempted. At its arrival a job is delayed by one
//! request of a less urgent task of its processor, with its wait, if the ceiling there is at least the job's priority.
//!
//! ```text
//!   B = max over l less urgent, q with a local ceiling of at least i's priority,
//!       of L(l,q) + sum over other processors of the longest section for q
//! ```
//! Reference: Burns, Wellings, ECRTS 2013. The requests are counted as for spinlocks, each once.

use crate::blocking::delay::{Charge, Delay, DelayBounds, Platform};
use crate::blocking::spin::Fifo;
use crate::rows::failure::Failure;
use crate::rows::sharing::Sharing;
use crate::rows::tables::Tables;

/// The bounds of a system as a function of response times. No two tasks of one processor may have the same priority.
pub(crate) struct Mrsp {
    requests: Fifo,
    /// The delay at the arrival, by task.
    arrivals: Vec<u64>,
}

impl Mrsp {
    /// Creates the bounds for a system.
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Result<Self, Failure> {
        let requests = Fifo::new(sharing, Platform::partitioned(sharing))?;
        Ok(Self { requests, arrivals: arrivals(tables, sharing) })
    }
}

/// Returns B of each task.
fn arrivals(tables: &Tables<'_>, sharing: &Sharing) -> Vec<u64> {
    // For each resource on each processor, the highest priority of its users and the longest section.
    let cpus = tables.cpus.len();
    let mut uses = vec![(None, 0_u64); tables.system.resources().len() * cpus];
    let place = |resource: u16, cluster: u16| usize::from(resource) * cpus + usize::from(cluster);
    for task in &sharing.tasks {
        for request in &task.requests {
            let (ceiling, longest) = &mut uses[place(request.resource, task.cluster)];
            *ceiling = Some(task.priority).max(*ceiling);
            *longest = request.length.max(*longest);
        }
    }
    let sum = |its: &[(Option<u32>, u64)]| its.iter().map(|&(_, longest)| u128::from(longest)).sum::<u128>();
    let sums: Vec<u128> = uses.chunks(cpus.max(1)).map(sum).collect();
    let mut arrivals = vec![0; sharing.tasks.len()];
    // The requests of the tasks seen so far, from the least urgent on: the local ceiling, and the delay by one request.
    let mut lesser: Vec<(u32, u64)> = Vec::new();
    for tasks in &tables.cpus {
        lesser.clear();
        for id in tasks.iter().rev() {
            let own = &sharing.tasks[id.index()];
            let delaying = lesser.iter().filter(|(ceiling, _)| *ceiling >= own.priority);
            arrivals[id.index()] = delaying.map(|&(_, delay)| delay).max().unwrap_or(0);
            for request in &own.requests {
                let (ceiling, longest) = uses[place(request.resource, own.cluster)];
                let elsewhere = sums[usize::from(request.resource)] - u128::from(longest);
                let elsewhere = u64::try_from(elsewhere).unwrap_or(u64::MAX);
                lesser.extend(ceiling.map(|ceiling| (ceiling, request.length.saturating_add(elsewhere))));
            }
        }
    }
    arrivals
}

impl DelayBounds for Mrsp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.requests.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        self.requests.delays(delays)?;
        delays.iter_mut().zip(&self.arrivals).for_each(|(delay, &arrival)| delay.arrival = arrival);
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        self.requests.charge(delay)
    }
}
