//! `mrsp`: requests wait as for a FIFO spinlock, in time of their own processor, for a waiter's processor executes the owner whenever it is preempted. What delays
//! a job when it arrives is one request of a less urgent task of its processor, with its wait, if the ceiling there is at least the job's priority.
//!
//! ```text
//!   B = max over l less urgent, q with a local ceiling of at least i's priority, of L(l,q) + sum over other processors of the longest section for q
//! ```
//! Reference: Burns, Wellings, ECRTS 2013; the requests counted as for spinlocks, each once.

use crate::bound::Unbounded;
use crate::multiprocessor::spin::Fifo;
use crate::multiprocessor::{Charge, Delay, Protocol};
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::{ResourceId, TaskId};

struct Mrsp {
    requests: Fifo,
    /// By task.
    arrivals: Vec<u64>,
}

type Boxed = Result<Box<dyn Protocol>, Failure>;

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Boxed, Unbounded> {
    for tasks in &tables.cpus {
        let equal = |pair: &&[TaskId]| tables.system.task(pair[0]).priority == tables.system.task(pair[1]).priority;
        if let Some(pair) = tasks.windows(2).find(equal) {
            return Err(Unbounded::Equals { one: pair[0], other: pair[1] });
        }
    }
    let arrivals = (0..sharing.tasks.len()).map(|task| arrival(tables, sharing, task)).collect();
    let requests = Fifo::new(sharing, super::fmlp_short::platform(sharing));
    Ok(requests.map(|requests| Box::new(Mrsp { requests, arrivals }) as Box<dyn Protocol>))
}

fn arrival(tables: &Tables<'_>, sharing: &Sharing, task: usize) -> u64 {
    let own = &sharing.tasks[task];
    let lesser = tables.lesser(TaskId::new(task)).iter();
    let requests = lesser.flat_map(|&id| &sharing.tasks[id.index()].requests).filter(|request| {
        let here = |user: &&TaskId| sharing.tasks[user.index()].cluster == own.cluster;
        let users = tables.system.users(ResourceId(request.resource)).iter().filter(here);
        users.map(|user| sharing.tasks[user.index()].priority).max() >= Some(own.priority)
    });
    let span =
        |request: &crate::Demand| request.length.saturating_add(elsewhere(sharing, own.cluster, request.resource));
    requests.map(span).max().unwrap_or(0)
}

/// The longest section of each other processor.
fn elsewhere(sharing: &Sharing, cluster: u16, resource: u16) -> u64 {
    let mut longest: Vec<(u16, u64)> = Vec::new();
    for task in sharing.tasks.iter().filter(|task| task.cluster != cluster) {
        for request in task.requests.iter().filter(|request| request.resource == resource) {
            match longest.iter_mut().find(|(known, _)| *known == task.cluster) {
                Some((_, length)) => *length = request.length.max(*length),
                None => longest.push((task.cluster, request.length)),
            }
        }
    }
    longest.into_iter().fold(0, |sum, (_, length)| sum.saturating_add(length))
}

impl Protocol for Mrsp {
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
