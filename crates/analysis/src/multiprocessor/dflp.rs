//! The distributed FIFO locking protocol (DFLP), a closed bound.
//!
//! As the DPCP, but sections on a home execute in the order of their requests, above all jobs. Brandenburg, Improved analysis and evaluation
//! of real-time semaphore protocols for P-FP scheduling, RTAS 2013, bounds it by a linear program; this is what one of its
//! constraints says alone, and never below the program.
//!
//! ```text
//! remote = sum over homes p other than i's processor, and other tasks x, of the a(i,p) longest requests of x on p
//! local  = all requests of other tasks for resources whose home is i's processor
//! ```
//! a(i,p) is how many requests of i go to p. Each waits for at most one of each other task: those are issued one after another, and a later one
//! goes behind.

use super::dpcp::Homes;
use super::lanes::Crowd;
use super::tables::{Arithmetic, Asked, Entry, Fits, Grouping, Saturates, Tables, Tally, longest_of_each};
use super::{Charge, Delay, Protocol, fitting, once};
use crate::{Failure, Sharing};
use std::cmp::Reverse;

/// The bounds on each task's blocking, in the order of the tasks. `homes` has each resource's processor.
///
/// # Errors
/// [`Failure::Unsupported`] where a resource has no home; [`Failure::Overflow`].
pub fn dflp(sharing: &Sharing, homes: &[u16]) -> Result<Vec<Delay>, Failure> {
    once(&mut Dflp::new(sharing, homes)?, sharing.tasks.len())
}

/// The same for [`joint`](super::joint).
#[derive(Debug)]
pub struct Dflp {
    tables: Tables,
    homes: Homes,
    /// By home, then by agent, the longest first.
    requests: Vec<Entry>,
    /// Where each home's begin; one more than there are homes.
    begins: Vec<u32>,
    crowd: Crowd,
    remote: Vec<Tally>,
}

impl Dflp {
    /// # Errors
    /// As [`dflp`].
    pub fn new(sharing: &Sharing, homes: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Apart)?;
        let (homes, of_requests) = Homes::new(sharing, &tables, homes)?;
        let mut requests: Vec<Entry> = Vec::with_capacity(of_requests.len());
        let mut begins = Vec::with_capacity(homes.ranges.len() + 1);
        for home in 0..homes.ranges.len() as u32 {
            begins.push(requests.len() as u32);
            for agent in homes.agents(home) {
                let begin = requests.len();
                for place in tables.asked_range(agent.task as usize) {
                    if of_requests[place] == home {
                        let Asked { length, count, .. } = tables.all_asked()[place];
                        requests.push(Entry { length, count, task: agent.task, ..Entry::default() });
                    }
                }
                let its = &mut requests[begin..];
                if its.len() > 1 {
                    its.sort_unstable_by_key(|entry| Reverse(entry.length));
                }
                its[0].leads = true;
            }
        }
        begins.push(requests.len() as u32);
        let (crowd, remote) = (Crowd::new(tasks.len()), vec![Tally::default(); tasks.len()]);
        Ok(Self { tables, homes, requests, begins, crowd, remote })
    }

    fn all<A: Arithmetic>(&mut self, delays: &mut [Delay]) {
        self.remote.fill(Tally::default());
        for (home, ends) in self.begins.windows(2).enumerate() {
            let home = home as u32;
            let its = &self.requests[ends[0] as usize..ends[1] as usize];
            let (tables, homes) = (&self.tables, &self.homes);
            let agents = homes.agents(home).iter().filter(|agent| homes.local[agent.task as usize] != Some(home));
            if tables.is_small() {
                let askers = agents.map(|agent| tables.asker(agent.task, agent.task, agent.count as i16));
                let steps = its.iter().map(|entry| tables.step(entry, entry.task));
                self.crowd.longest_of_each(steps, askers, |task, tally| self.remote[task as usize].add(tally));
            } else {
                for agent in agents {
                    let (window, task) = (tables.window(agent.task as usize), |entry: &Entry| entry.task);
                    let remote = longest_of_each::<A>(its, task, window, agent.task, agent.count);
                    self.remote[agent.task as usize].add(remote);
                }
            }
        }
        for (task, (delay, remote)) in delays.iter_mut().zip(&self.remote).enumerate() {
            let local = self.homes.local::<A>(self.tables.window(task), task);
            *delay = Delay::new(*remote, local, Tally::default());
        }
    }
}

impl Protocol for Dflp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        if self.tables.fits() {
            self.all::<Fits>(delays);
        } else {
            self.all::<Saturates>(delays);
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
