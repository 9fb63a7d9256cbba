//! `lock_free` and `wait_free`: attempts that fail, and operations that do not.
//!
//! ```text
//!   I_i     = sum over urgent h of jobs(h, R_i) * again(i, h)  +  sum over q of L(i,q) * failures(i, q)
//!   failures(i, q) = the lesser of  commits(i, q, R_i)  and  N(i,q) * commits(i, q, W(i,q))
//!   commits(i, q, t) = sum over k on other processors of N(k,q) * ceil((t + R_k) / T_k)
//!   W(i,q)  = L(i,q) * (1 + commits(i, q, W)) + sum over urgent h of jobs(h, W) * (C_h + I_h + again(i, h))
//! ```
//! I_i is the time of all attempts of a job that fail, and counts as its execution. An attempt takes L(i,q), and fails
//! only if another operation on q is committed during it. W(i,q) is the time from the start of one operation to its
//! commit, at most R_i: the number of failures of a job is bounded by the commits during the job, and by those during
//! each of its operations.
//!
//! *On its own processor*, a less urgent task commits nothing during an attempt, as it does not execute while the job is
//! pending. (Sections under `icpp` contain no operations.) A more urgent job executes from its release to its end
//! without the job, so all its commits fall into one attempt, and it makes at most one fail: again(i, h) is the longest
//! L(i,q) of the objects that both use, and `jobs(h, t) = ceil((t + J_h) / T_h)`, since the job executes only while no
//! more urgent one is pending. A task of equal priority may alternate with the job, so each of its commits counts:
//! again(i, h) is then the sum of N(h,q) L(i,q), `jobs(h, t) = ceil((t + R_h) / T_h)`, and R_h stands for C_h + I_h.
//!
//! *On others*, each job that is pending at some time of the interval may commit all its operations in it.
//!
//! All this holds for a compare-and-swap that does not fail spuriously, and one commit per operation. The source of the
//! count for one interval is Anderson, Ramamurthy, Jeffay, *Real-Time Computing with Lock-Free Shared Objects*, ACM
//! TOCS 15(2), 1997. Under `wait_free`, the length of an operation contains everything, and there is no delay.

use super::delay::{Charge, Delay, DelayBounds};
use crate::rows::failure::Failure;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::{Demand, Sharing};
use crate::rows::tables::Tables;
use lockwright_model::TaskId;

/// The most steps of all fixed points of one call. Operations whose length is not computed then count as lasting as long
/// as their jobs, which they never exceed.
const STEPS_MAX: u64 = 1_000_000;

/// A task that commits on objects of another.
struct Rival {
    task: usize,
    /// By request of the other task: the commits of one job on its object.
    commits: Vec<u64>,
}

/// A task of the same processor that is at least as urgent.
struct Urgent {
    task: usize,
    equal: bool,
    /// The time of the attempts that one of its jobs makes fail.
    again: u64,
}

struct Row {
    cost: u64,
    period: u64,
    jitter: u64,
    requests: Vec<Demand>,
    urgent: Vec<Urgent>,
    remote: Vec<Rival>,
}

/// The bounds under `lock_free`.
pub(crate) struct LockFree {
    rows: Vec<Row>,
    /// The most urgent first.
    order: Vec<usize>,
    responses: Vec<u64>,
    without_preemption: bool,
}

impl LockFree {
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Self {
        let tasks = &sharing.tasks;
        let commits = |k: usize, mine: &Demand| {
            let theirs = tasks[k].requests.iter().filter(|request| request.resource == mine.resource);
            theirs.map(|request| u64::from(request.count)).sum::<u64>()
        };
        let row = |i: usize| {
            let task = &tasks[i];
            let (mut urgent, mut remote) = (Vec::new(), Vec::new());
            for (k, other) in tasks.iter().enumerate().filter(|&(k, _)| k != i) {
                let commits: Vec<u64> = task.requests.iter().map(|mine| commits(k, mine)).collect();
                if other.cluster != task.cluster {
                    if !tables.is_mutant(Mutant::RemoteCommits) && commits.iter().any(|&count| count > 0) {
                        remote.push(Rival { task: k, commits });
                    }
                } else if other.priority >= task.priority {
                    let equal = other.priority == task.priority;
                    if equal && tables.is_mutant(Mutant::Equals) {
                        continue;
                    }
                    let shared = commits.iter().zip(&task.requests).filter(|&(&count, _)| count > 0);
                    let again = match equal {
                        true => {
                            shared.fold(0, |sum: u64, (&n, mine)| sum.saturating_add(n.saturating_mul(mine.length)))
                        }
                        false => shared.map(|(_, mine)| mine.length).max().unwrap_or(0),
                    };
                    let again = if tables.is_mutant(Mutant::Again) { 0 } else { again };
                    urgent.push(Urgent { task: k, equal, again });
                }
            }
            let jitter = tables.system.task(TaskId::new(i)).jitter.as_ns();
            Row {
                cost: task.cost,
                period: task.period,
                jitter: if tables.is_mutant(Mutant::ReleaseJitter) { 0 } else { jitter },
                requests: task.requests.clone(),
                urgent,
                remote,
            }
        };
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&i| core::cmp::Reverse(tasks[i].priority));
        Self {
            rows: (0..tasks.len()).map(row).collect(),
            order,
            responses: vec![0; tasks.len()],
            without_preemption: tables.is_mutant(Mutant::Preempted),
        }
    }

    /// Returns the number of jobs of a task of which some part lies in an interval, if each lasts for at most `lasting`.
    fn jobs(&self, task: usize, t: u64, lasting: u64) -> Option<u64> {
        Some(t.checked_add(lasting)?.div_ceil(self.rows[task].period))
    }

    /// Returns the number of jobs of an urgent task that can execute during a job in an interval of its pendency.
    fn preempting(&self, h: &Urgent, t: u64) -> Option<u64> {
        self.jobs(h.task, t, if h.equal { self.responses[h.task] } else { self.rows[h.task].jitter })
    }

    fn commits(&self, row: &Row, request: usize, t: u64) -> Option<u64> {
        row.remote.iter().filter(|other| other.commits[request] > 0).try_fold(0_u64, |sum, other| {
            let jobs = self.jobs(other.task, t, self.responses[other.task])?;
            sum.checked_add(jobs.checked_mul(other.commits[request])?)
        })
    }

    /// Returns the longest time from the start of an operation to its commit, or `most` if that is less.
    fn longest(&self, row: &Row, request: usize, most: u64, executed: &[u64], steps: &mut u64) -> Option<u64> {
        let length = row.requests[request].length;
        let mut window = length.max(1);
        // BOUND: each round increases the window, up to `most`; also the number of steps.
        while window < most {
            let Some(rest) = steps.checked_sub(1 + (row.urgent.len() + row.remote.len()) as u64) else {
                return Some(most);
            };
            *steps = rest;
            let mut next = self.commits(row, request, window)?.checked_add(1)?.checked_mul(length)?;
            for h in row.urgent.iter().filter(|_| !self.without_preemption) {
                let execution = match h.equal {
                    true => self.responses[h.task],
                    false => self.rows[h.task].cost.checked_add(executed[h.task])?,
                };
                let each = execution.checked_add(h.again)?;
                next = next.checked_add(self.preempting(h, window)?.checked_mul(each)?)?;
            }
            if next <= window {
                return Some(window);
            }
            window = next;
        }
        Some(most)
    }

    /// Returns the time of the failed attempts of one job, and their number.
    fn failed(&self, i: usize, executed: &[u64], steps: &mut u64) -> Option<(u64, u64)> {
        let (row, response) = (&self.rows[i], self.responses[i]);
        let (mut time, mut failures) = (0_u64, 0_u64);
        for h in row.urgent.iter().filter(|h| h.again > 0) {
            let jobs = self.preempting(h, response)?;
            time = time.checked_add(jobs.checked_mul(h.again)?)?;
            failures = failures.checked_add(jobs)?;
        }
        for (request, mine) in row.requests.iter().enumerate() {
            let in_job = self.commits(row, request, response)?;
            if in_job == 0 {
                continue;
            }
            let window = self.longest(row, request, response, executed, steps)?;
            let in_operations = self.commits(row, request, window)?.saturating_mul(u64::from(mine.count));
            let failed = in_job.min(in_operations);
            time = time.checked_add(failed.checked_mul(mine.length)?)?;
            failures = failures.checked_add(failed)?;
        }
        Some((time, failures))
    }
}

impl DelayBounds for LockFree {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.responses.copy_from_slice(responses);
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let mut steps = STEPS_MAX;
        let mut executed = vec![0; self.rows.len()];
        for &i in &self.order {
            let (time, requests) = self.failed(i, &executed, &mut steps).ok_or(Failure::Overflow)?;
            executed[i] = time;
            delays[i] = Delay { remote: Some(time), requests, ..Delay::default() };
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { executed: delay.remote?, ..Charge::default() })
    }
}

/// The bounds under `wait_free`.
pub(crate) struct WaitFree;

impl DelayBounds for WaitFree {
    fn set_responses(&mut self, _: &[u64]) -> Result<(), Failure> {
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        delays.fill(Delay { remote: Some(0), ..Delay::default() });
        Ok(())
    }

    fn charge(&self, _: &Delay) -> Option<Charge> {
        Some(Charge::default())
    }
}
