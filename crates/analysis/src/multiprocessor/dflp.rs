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
use super::tables::{Arithmetic, Entry, Fits, Grouping, Jobs, Saturates, Tables, Tally};
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
    jobs: Jobs,
    found: Vec<Delay>,
    /// Each task's requests by home, the longest of each home first, with the home.
    requests: Vec<(u32, Entry)>,
}

impl Dflp {
    /// # Errors
    /// As [`dflp`].
    pub fn new(sharing: &Sharing, homes: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
        let (homes, of_requests) = Homes::new(sharing, &tables, homes)?;
        let mut requests = Vec::with_capacity(of_requests.len());
        for task in 0..tables.rows.len() {
            let begin = requests.len();
            for place in tables.asked_range(task) {
                let asked = tables.all_asked()[place];
                let entry = Entry { length: asked.length, task: task as u32, count: asked.count, ..Entry::default() };
                requests.push((of_requests[place], entry));
            }
            requests[begin..].sort_unstable_by_key(|(home, entry)| (*home, Reverse(entry.length)));
        }
        let (jobs, found) = (Jobs::new(tasks.len()), vec![Delay::default(); tasks.len()]);
        Ok(Self { tables, homes, requests, jobs, found })
    }

    fn all<A: Arithmetic>(&mut self, delays: &mut [Delay]) {
        for (task, delay) in delays.iter_mut().enumerate() {
            if self.tables.jobs(task, &mut self.jobs) {
                let jobs = self.jobs.of(task, self.tables.rows.len());
                let (remote, local) = (self.remote::<A>(jobs, task), self.homes.local::<A>(jobs, task));
                self.found[task] = Delay::new(remote, local, Tally::default());
            }
            *delay = self.found[task];
        }
    }

    fn remote<A: Arithmetic>(&self, jobs: &[u64], task: usize) -> Tally {
        let mut remote = Tally::default();
        let (begin, end) = self.homes.owns[task];
        for &(home, own) in &self.homes.own[begin as usize..end as usize] {
            if self.homes.local[task] == Some(home) {
                continue;
            }
            let issued = self.homes.agents[own as usize].count;
            for agent in self.homes.agents(home) {
                if agent.task as usize == task {
                    continue;
                }
                let jobs = jobs[agent.task as usize];
                let mut left = issued;
                let its = &self.requests[self.tables.asked_range(agent.task as usize)];
                for (_, entry) in its.iter().skip_while(|(of, _)| *of != home).take_while(|(of, _)| *of == home) {
                    let requests = A::mul(jobs, u64::from(entry.count)).min(left);
                    remote.count::<A>(requests, entry.length);
                    left -= requests;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        remote
    }
}

impl Protocol for Dflp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.jobs.begin(responses.len());
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
