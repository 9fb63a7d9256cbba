//! Lock-free objects under partitioned EDF, with non-preemptive commit loops.
//!
//! A loop of local task i on q takes L(i,q), and the same again for each remote commit on q meanwhile. Its longest time
//! is the least `W = L(i,q) * (1 + k(W))`, where k(t) = sum over remote x of N(x,q) * ceil((t + D_x) / T_x). The
//! repetitions on q are at most k(t) in total, and those of i at most N(i,q) * jobs(i) * k(W), if W is at most D_i. At
//! the start, one loop of one local task counts with its repetitions.

use super::super::sum;
use super::super::view::{add, add_product, product};
use super::super::wait;
use super::processor::{Mode, Processor};
use crate::Failure;
use crate::rows::mutant::Mutant;

/// The loops of a local task on one object.
struct Loops {
    task: usize,
    length: u64,
    /// The most repetitions of those that are due.
    repeated: u64,
    /// The most repetitions of one loop.
    once: u64,
}

impl Processor<'_> {
    pub(super) fn lock_free(&self, t: u64, mode: Mode) -> Result<u64, Failure> {
        let mut delay = 0;
        let mut start = 0;
        for q in 0..self.view.resources {
            let remote = if self.is_mutant(Mutant::Again) { 0 } else { self.commits(q, t)? };
            let mut loops = Vec::new();
            for &i in &self.local {
                for request in self.view.requests(i).iter().filter(|request| request.resource == q) {
                    let longest = wait(request.length, self.view.rows[i].deadline, |time| {
                        product(request.length, sum(1, self.commits(q, time)?)?)
                    });
                    let due = product(request.count, self.jobs(i, t, mode)?)?;
                    let once = longest.map_or(Ok(u64::MAX), |time| self.commits(q, time))?;
                    let repeated = due.saturating_mul(once);
                    loops.push(Loops { task: i, length: request.length, repeated, once });
                }
            }
            loops.sort_by_key(|one| std::cmp::Reverse(one.length));
            let alone = repetitions(&loops, remote, None)?;
            for (chosen, one) in loops.iter().enumerate() {
                if self.delays_at_start(one.task, t, mode) && !self.is_mutant(Mutant::Boosted) {
                    let with = sum(one.length, repetitions(&loops, remote, Some(chosen))? - alone)?;
                    start = with.max(start);
                }
            }
            add(&mut delay, alone)?;
        }
        sum(delay, start)
    }

    /// Returns k(t).
    fn commits(&self, q: usize, t: u64) -> Result<u64, Failure> {
        let mut commits = 0;
        for &x in &self.remote {
            for request in self.view.requests(x).iter().filter(|request| request.resource == q) {
                add(&mut commits, self.issued(x, request.count, t)?)?;
            }
        }
        Ok(commits)
    }
}

/// Returns the greatest time that `commits` remote commits cost, with one additional loop of `start` if that is given.
fn repetitions(loops: &[Loops], commits: u64, start: Option<usize>) -> Result<u64, Failure> {
    let mut left = commits;
    let mut time = 0;
    for (place, one) in loops.iter().enumerate() {
        let most = if start == Some(place) { one.repeated.saturating_add(one.once) } else { one.repeated };
        let taken = most.min(left);
        left -= taken;
        add_product(&mut time, taken, one.length)?;
    }
    Ok(time)
}
