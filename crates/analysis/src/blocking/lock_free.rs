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
use crate::rows::divisor::Divisor;
use crate::rows::failure::Failure;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::{Demand, Sharing};
use crate::rows::tables::Tables;
use lockwright_model::TaskId;

/// The most steps of one fixed point. An operation whose length is not found then counts as lasting as long as its job,
/// which it never exceeds.
const STEPS_MAX: u32 = 1_000;

/// A task of another processor that commits on an object.
struct Rival {
    task: usize,
    /// The commits of one of its jobs.
    commits: u64,
}

/// A task of the same processor that is at least as urgent.
struct Urgent {
    task: usize,
    equal: bool,
    /// The commits of one job of it on objects of the other, by request of the other.
    commits: Vec<(usize, u64)>,
    /// The time of the attempts that one of its jobs makes fail.
    again: u64,
}

/// The operations of a task on one object.
struct Operation {
    resource: u16,
    count: u64,
    length: u64,
    rivals: Vec<Rival>,
    /// W for the last bounds, or 0 if it was not needed.
    window: u64,
}

struct Row {
    cost: u64,
    period: Divisor,
    jitter: u64,
    operations: Vec<Operation>,
    urgent: Vec<Urgent>,
    /// The less urgent tasks of its processor with operations.
    interrupted: Vec<usize>,
}

/// The bounds under `lock_free`.
pub(crate) struct LockFree {
    rows: Vec<Row>,
    /// The most urgent first.
    order: Vec<usize>,
    responses: Vec<u64>,
    /// The time of the failed attempts of one job, for the last bounds.
    executed: Vec<u64>,
    without_preemption: bool,
    without_again: bool,
}

impl LockFree {
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Self {
        let tasks = &sharing.tasks;
        let without_again = tables.is_mutant(Mutant::Again);
        let resources = tables.system.resources().len();
        let mut users: Vec<Vec<(usize, u64)>> = vec![Vec::new(); resources];
        for (task, sharer) in tasks.iter().enumerate() {
            for request in &sharer.requests {
                users[usize::from(request.resource)].push((task, u64::from(request.count)));
            }
        }
        let row = |i: usize| {
            let task = &tasks[i];
            let operation = |mine: &Demand| {
                let remote = |&&(k, _): &&(usize, u64)| {
                    tasks[k].cluster != task.cluster && !tables.is_mutant(Mutant::RemoteCommits)
                };
                let rivals = users[usize::from(mine.resource)].iter().filter(remote);
                Operation {
                    resource: mine.resource,
                    count: u64::from(mine.count),
                    length: mine.length,
                    rivals: rivals.map(|&(task, commits)| Rival { task, commits }).collect(),
                    window: 0,
                }
            };
            let is_equal = |h: usize| tasks[h].priority == task.priority;
            let urgent = tables.urgent(TaskId::new(i)).map(TaskId::index);
            let urgent = urgent.filter(|&h| !is_equal(h) || !tables.is_mutant(Mutant::Equals)).map(|h| {
                let mut commits = Vec::new();
                for request in &tasks[h].requests {
                    let place = task.requests.iter().position(|mine| mine.resource == request.resource);
                    commits.extend(place.map(|place| (place, u64::from(request.count))));
                }
                Urgent { task: h, equal: is_equal(h), commits, again: 0 }
            });
            let jitter = tables.system.task(TaskId::new(i)).jitter.as_ns();
            let mut row = Row {
                cost: task.cost,
                // A valid system has periods.
                period: Divisor::new(task.period.max(1))?,
                jitter: if tables.is_mutant(Mutant::ReleaseJitter) { 0 } else { jitter },
                operations: task.requests.iter().map(operation).collect(),
                urgent: urgent.collect(),
                interrupted: Vec::new(),
            };
            row.set_again(without_again);
            Some(row)
        };
        let mut rows: Vec<Row> = (0..tasks.len()).filter_map(row).collect();
        for i in (0..rows.len()).filter(|&i| !tasks[i].requests.is_empty()) {
            let urgent: Vec<usize> = rows[i].urgent.iter().filter(|h| !h.equal).map(|h| h.task).collect();
            urgent.into_iter().for_each(|h| rows[h].interrupted.push(i));
        }
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&i| core::cmp::Reverse(tasks[i].priority));
        Self {
            rows,
            order,
            responses: vec![0; tasks.len()],
            executed: vec![0; tasks.len()],
            without_preemption: tables.is_mutant(Mutant::Preempted),
            without_again,
        }
    }

    /// Takes over the execution times of these tasks from `sharing`, which differs in these alone.
    pub(crate) fn set_tasks(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        for task in tasks.iter().map(|task| task.index()) {
            let (row, sharer) = (&mut self.rows[task], &sharing.tasks[task]);
            row.cost = sharer.cost;
            for (operation, demand) in row.operations.iter_mut().zip(&sharer.requests) {
                debug_assert_eq!(operation.resource, demand.resource);
                operation.length = demand.length;
            }
            row.set_again(self.without_again);
        }
    }

    /// Returns the number of jobs of a task of which some part lies in an interval, if each lasts for at most `lasting`.
    fn jobs(&self, task: usize, t: u64, lasting: u64) -> Option<u64> {
        Some(self.rows[task].period.ceil(t.checked_add(lasting)?))
    }

    /// Returns the number of jobs of an urgent task that can execute during a job in an interval of its pendency.
    fn preempting(&self, h: &Urgent, t: u64) -> Option<u64> {
        self.jobs(h.task, t, if h.equal { self.responses[h.task] } else { self.rows[h.task].jitter })
    }

    fn commits(&self, operation: &Operation, t: u64) -> Option<u64> {
        operation.rivals.iter().try_fold(0_u64, |sum, other| {
            let jobs = self.jobs(other.task, t, self.responses[other.task])?;
            sum.checked_add(jobs.checked_mul(other.commits)?)
        })
    }

    /// Returns the longest time from the start of an operation to its commit, or `most` if that is less.
    fn longest(&self, row: &Row, operation: &Operation, most: u64) -> Option<u64> {
        let mut window = operation.length.max(1);
        // BOUND: the number of steps.
        for _ in 0..STEPS_MAX {
            if window >= most {
                break;
            }
            let mut next = self.commits(operation, window)?.checked_add(1)?.checked_mul(operation.length)?;
            for h in row.urgent.iter().filter(|_| !self.without_preemption) {
                let execution = match h.equal {
                    true => self.responses[h.task],
                    false => self.rows[h.task].cost.checked_add(self.executed[h.task])?,
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

    /// Returns the time of the failed attempts of one job, and their number. The values of more urgent tasks are known.
    fn failed(&mut self, i: usize) -> Option<(u64, u64)> {
        let (row, response) = (&self.rows[i], self.responses[i]);
        let (mut time, mut failures) = (0_u64, 0_u64);
        for h in row.urgent.iter().filter(|h| h.again > 0) {
            let jobs = self.preempting(h, response)?;
            time = time.checked_add(jobs.checked_mul(h.again)?)?;
            failures = failures.checked_add(jobs)?;
        }
        for place in 0..row.operations.len() {
            let (row, mine) = (&self.rows[i], &self.rows[i].operations[place]);
            let in_job = self.commits(mine, response)?;
            let mut window = 0;
            if in_job > 0 {
                window = self.longest(row, mine, response)?;
                let in_operations = self.commits(mine, window)?.saturating_mul(mine.count);
                let failed = in_job.min(in_operations);
                time = time.checked_add(failed.checked_mul(mine.length)?)?;
                failures = failures.checked_add(failed)?;
            }
            self.rows[i].operations[place].window = window;
        }
        Some((time, failures))
    }

    fn meets_other_jobs(&self, task: usize, t: u64, before: u64) -> bool {
        self.jobs(task, t, before) != self.jobs(task, t, self.responses[task])
    }
}

impl Row {
    fn set_again(&mut self, without: bool) {
        let Self { urgent, operations, .. } = self;
        for h in urgent {
            let shared = h.commits.iter().map(|&(place, commits)| (operations[place].length, commits));
            h.again = match h.equal {
                _ if without => 0,
                true => {
                    shared.fold(0, |sum: u64, (length, commits)| sum.saturating_add(commits.saturating_mul(length)))
                }
                false => shared.map(|(length, _)| length).max().unwrap_or(0),
            };
        }
    }
}

impl DelayBounds for LockFree {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.responses.copy_from_slice(responses);
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        self.delays_again(&mut vec![true; delays.len()], delays)
    }

    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        for (i, row) in self.rows.iter().enumerate() {
            let response = self.responses[i];
            let meets_others = |operation: &Operation| {
                operation.rivals.iter().any(|other| {
                    let before = before[other.task];
                    before != self.responses[other.task]
                        && (self.meets_other_jobs(other.task, response, before)
                            || self.meets_other_jobs(other.task, operation.window, before))
                })
            };
            // Jobs of equal priority count with their response times.
            let is_equal_changed = |h: &Urgent| h.equal && before[h.task] != self.responses[h.task];
            marked[i] = marked[i]
                || before[i] != response
                || row.operations.iter().any(meets_others)
                || row.urgent.iter().any(is_equal_changed);
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        for place in 0..self.order.len() {
            let i = self.order[place];
            if !marked[i] {
                continue;
            }
            let (time, requests) = self.failed(i).ok_or(Failure::Overflow)?;
            if time != self.executed[i] {
                self.executed[i] = time;
                // They come later.
                self.rows[i].interrupted.iter().for_each(|&other| marked[other] = true);
            }
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
