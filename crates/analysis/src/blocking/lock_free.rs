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
//! *On its own processor*, a less urgent task commits nothing during an attempt, as it does not execute while the job
//! is pending. (Sections under `icpp` contain no operations.) A more urgent job executes from its release to its end
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
use crate::rows::tally::TIME_MAX;
use lockwright_model::TaskId;
use std::mem::take;
use std::ops::Range;

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
    /// Its place, and the first place of its rivals, among those of all tasks.
    slot: usize,
    first: usize,
}

struct Row {
    cost: u64,
    period: Divisor,
    jitter: u64,
    operations: Vec<Operation>,
    /// The places of the rivals of all of these.
    rivals: Range<usize>,
    urgent: Vec<Urgent>,
    /// Those of equal priority, if the task has operations. Otherwise, nothing delays it.
    equals: Vec<usize>,
    /// The less urgent tasks of its processor with operations.
    interrupted: Vec<usize>,
}

/// The values that bounds depend on, and what was found for them.
#[derive(Clone)]
pub(crate) struct Known {
    costs: Vec<u64>,
    /// By slot.
    lengths: Vec<u64>,
    responses: Vec<u64>,
    /// The time of the failed attempts of one job.
    executed: Vec<u64>,
    /// By slot.
    windows: Vec<Window>,
    /// By task: its response time for the last bound, and the greatest one with the same bound if those of its rivals
    /// stay.
    own: Vec<(u64, u64)>,
    /// By rival: the greatest response time with the same bound if that of the task stays.
    rivals: Vec<u64>,
}

/// W for the last bounds, or a value below it, or 0. It is not above that for greater values.
#[derive(Clone, Copy, Default)]
struct Window {
    length: u64,
    /// The least number of steps that lead from the length of the operation to this window, or beyond it.
    steps: u32,
}

/// The bounds under `lock_free`.
pub(crate) struct LockFree {
    rows: Vec<Row>,
    /// The most urgent first.
    order: Vec<usize>,
    /// The task of each rival, by place.
    rivals: Vec<u32>,
    known: Known,
    /// By task: whether its bound may have changed with the last execution times.
    stale: Vec<bool>,
    without_preemption: bool,
    without_again: bool,
}

/// Numbers the operations of all tasks, and their rivals. Returns the number of operations, and the task of each rival.
fn number(rows: &mut [Row]) -> (usize, Vec<u32>) {
    let (mut slots, mut rivals) = (0, Vec::new());
    for row in rows {
        let first = rivals.len();
        for operation in &mut row.operations {
            (operation.slot, operation.first) = (slots, rivals.len());
            slots += 1;
            rivals.extend(operation.rivals.iter().map(|other| other.task as u32));
        }
        row.rivals = first..rivals.len();
    }
    (slots, rivals)
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
                    slot: 0,
                    first: 0,
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
                rivals: 0..0,
                equals: Vec::new(),
                interrupted: Vec::new(),
            };
            if !row.operations.is_empty() {
                row.equals = row.urgent.iter().filter(|h| h.equal).map(|h| h.task).collect();
            }
            row.set_again(without_again);
            Some(row)
        };
        let mut rows: Vec<Row> = (0..tasks.len()).filter_map(row).collect();
        for i in (0..rows.len()).filter(|&i| !tasks[i].requests.is_empty()) {
            let urgent: Vec<usize> = rows[i].urgent.iter().filter(|h| !h.equal).map(|h| h.task).collect();
            urgent.into_iter().for_each(|h| rows[h].interrupted.push(i));
        }
        let (slots, rivals) = number(&mut rows);
        let known = Known {
            costs: rows.iter().map(|row| row.cost).collect(),
            lengths: rows.iter().flat_map(|row| &row.operations).map(|operation| operation.length).collect(),
            responses: vec![0; tasks.len()],
            executed: vec![0; tasks.len()],
            windows: vec![Window::default(); slots],
            own: vec![(0, 0); tasks.len()],
            rivals: vec![0; rivals.len()],
        };
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&i| core::cmp::Reverse(tasks[i].priority));
        Self {
            rows,
            order,
            rivals,
            known,
            stale: vec![true; tasks.len()],
            without_preemption: tables.is_mutant(Mutant::Preempted),
            without_again,
        }
    }

    /// Takes over the execution times of these tasks from `sharing`, which differs in these alone.
    pub(crate) fn set_tasks(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        for task in tasks.iter().map(|task| task.index()) {
            let (row, sharer) = (&mut self.rows[task], &sharing.tasks[task]);
            row.cost = sharer.cost;
            self.known.costs[task] = sharer.cost;
            for (operation, demand) in row.operations.iter_mut().zip(&sharer.requests) {
                debug_assert_eq!(operation.resource, demand.resource);
                operation.length = demand.length;
                self.known.lengths[operation.slot] = demand.length;
            }
            row.set_again(self.without_again);
        }
        self.forget();
    }

    /// Returns what is known of these values.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Continues from what was known of a system that differs in execution times alone, and of the response times that
    /// it had. Does nothing if an execution time was longer then.
    pub(crate) fn recall(&mut self, known: &Known) {
        let is_below = |then: &[u64], now: &[u64]| then.iter().zip(now).all(|(then, now)| then <= now);
        if !is_below(&known.costs, &self.known.costs) || !is_below(&known.lengths, &self.known.lengths) {
            return;
        }
        let (costs, lengths) = (take(&mut self.known.costs), take(&mut self.known.lengths));
        self.known.clone_from(known);
        self.stale.fill(false);
        for (task, row) in self.rows.iter().enumerate() {
            if costs[task] != known.costs[task] {
                row.interrupted.iter().for_each(|&other| self.stale[other] = true);
            }
            let mut operations = row.operations.iter();
            self.stale[task] |= operations.any(|operation| lengths[operation.slot] != known.lengths[operation.slot]);
        }
        (self.known.costs, self.known.lengths) = (costs, lengths);
    }

    /// Lets the search for each window begin anew.
    fn forget(&mut self) {
        self.known.windows.fill(Window::default());
        self.stale.fill(true);
    }

    /// Returns the number of jobs of a task of which some part lies in an interval, if each lasts for at most
    /// `lasting`.
    fn jobs(&self, task: usize, t: u64, lasting: u64) -> Option<u64> {
        Some(self.rows[task].period.ceil(t.checked_add(lasting)?))
    }

    /// Returns the number of jobs of an urgent task that can execute during a job in an interval of its pendency.
    fn preempting(&self, h: &Urgent, t: u64) -> Option<u64> {
        self.jobs(h.task, t, if h.equal { self.known.responses[h.task] } else { self.rows[h.task].jitter })
    }

    fn commits(&self, operation: &Operation, t: u64) -> Option<u64> {
        operation.rivals.iter().try_fold(0_u64, |sum, other| {
            let jobs = self.jobs(other.task, t, self.known.responses[other.task])?;
            sum.checked_add(jobs.checked_mul(other.commits)?)
        })
    }

    /// Returns the longest time from the start of an operation to its commit, or `most` if that is less.
    fn longest(&mut self, i: usize, place: usize, most: u64) -> Option<u64> {
        let operation = &self.rows[i].operations[place];
        let (first, slot) = (Window { length: operation.length.max(1), steps: 0 }, operation.slot);
        let last = self.known.windows[slot];
        let from = if last.length > first.length { last } else { first };
        let mut found = self.settled(i, place, (from, most))?;
        if found.is_none() && from.steps > 0 {
            // From the length of the operation, it may take fewer steps.
            found = self.settled(i, place, (first, most))?;
        }
        self.known.windows[slot] = found.unwrap_or_default();
        Some(found.map_or(most, |found| found.length))
    }

    /// Returns the least window from `from` on, or `most` if that is less. The inner `None` means that it takes more
    /// than [`STEPS_MAX`] steps.
    fn settled(&self, i: usize, place: usize, (mut window, most): (Window, u64)) -> Option<Option<Window>> {
        let (row, operation) = (&self.rows[i], &self.rows[i].operations[place]);
        // BOUND: the number of steps.
        while window.steps < STEPS_MAX {
            if window.length >= most {
                return Some(Some(Window { length: most, ..window }));
            }
            let mut next = self.commits(operation, window.length)?.checked_add(1)?.checked_mul(operation.length)?;
            for h in row.urgent.iter().filter(|_| !self.without_preemption) {
                let execution = match h.equal {
                    true => self.known.responses[h.task],
                    false => self.rows[h.task].cost.checked_add(self.known.executed[h.task])?,
                };
                let each = execution.checked_add(h.again)?;
                next = next.checked_add(self.preempting(h, window.length)?.checked_mul(each)?)?;
            }
            if next <= window.length {
                return Some(Some(window));
            }
            window = Window { length: next, steps: window.steps + 1 };
        }
        Some(None)
    }

    /// Returns the time of the failed attempts of one job, and their number. The values of more urgent tasks are known.
    fn failed(&mut self, i: usize) -> Option<(u64, u64)> {
        let (row, response) = (&self.rows[i], self.known.responses[i]);
        let (mut time, mut failures, mut most) = (0_u64, 0_u64, u64::MAX);
        for h in row.urgent.iter().filter(|h| h.again > 0) {
            let jobs = self.preempting(h, response)?;
            time = time.checked_add(jobs.checked_mul(h.again)?)?;
            failures = failures.checked_add(jobs)?;
            if !h.equal {
                most = most.min(self.end(h.task, jobs).saturating_sub(self.rows[h.task].jitter));
            }
        }
        for place in 0..row.operations.len() {
            let in_job = self.commits(&self.rows[i].operations[place], response)?;
            let mut window = None;
            if in_job > 0 {
                let longest = self.longest(i, place, response)?;
                let mine = &self.rows[i].operations[place];
                let in_operations = self.commits(mine, longest)?.saturating_mul(mine.count);
                let failed = in_job.min(in_operations);
                time = time.checked_add(failed.checked_mul(mine.length)?)?;
                failures = failures.checked_add(failed)?;
                window = Some(longest);
            }
            self.keep(i, place, window)?;
        }
        self.known.own[i] = (response, most);
        Some((time, failures))
    }

    /// Returns the end of the last period of these jobs of a task. Where it does not fit, no interval reaches it.
    fn end(&self, task: usize, jobs: u64) -> u64 {
        jobs.saturating_mul(self.rows[task].period.get())
    }

    /// Keeps the greatest response times of rivals with as many commits during a job, and during the window of an
    /// operation. (A window that ends with the job grows with it, but has no more commits than the job.)
    fn keep(&mut self, i: usize, place: usize, window: Option<u64>) -> Option<()> {
        let operation = &self.rows[i].operations[place];
        for (index, other) in operation.rivals.iter().enumerate() {
            let its = self.known.responses[other.task];
            let most = |t: u64| Some(self.end(other.task, self.jobs(other.task, t, its)?).saturating_sub(t));
            let in_job = most(self.known.responses[i])?;
            let in_window = window.map_or(Some(u64::MAX), most)?;
            self.known.rivals[operation.first + index] = in_job.min(in_window);
        }
        Some(())
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
        if responses.iter().zip(&self.known.responses).any(|(now, before)| now < before) {
            self.forget();
        }
        if responses.iter().any(|&response| response > TIME_MAX) {
            return Err(Failure::Overflow);
        }
        self.known.responses.copy_from_slice(responses);
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        self.delays_again(&mut vec![true; delays.len()], delays)
    }

    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        let Known { responses, own, rivals, .. } = &self.known;
        for (i, row) in self.rows.iter().enumerate() {
            let (now, (then, most)) = (responses[i], own[i]);
            let meets_others = || {
                let its = self.rivals[row.rivals.clone()].iter().zip(&rivals[row.rivals.clone()]);
                its.fold(false, |meets, (&other, &most)| meets | (responses[other as usize] + (now - then) > most))
            };
            // Jobs of equal priority count with their response times.
            let meets_equals = |&h: &usize| before[h] != responses[h] || before[i] != now;
            marked[i] =
                marked[i] || self.stale[i] || now > most || meets_others() || row.equals.iter().any(meets_equals);
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        for place in 0..self.order.len() {
            let i = self.order[place];
            if !marked[i] {
                continue;
            }
            let (time, requests) = self.failed(i).ok_or(Failure::Overflow)?;
            if time != self.known.executed[i] {
                self.known.executed[i] = time;
                // They come later.
                self.rows[i].interrupted.iter().for_each(|&other| marked[other] = true);
            }
            delays[i] = Delay { remote: Some(time), requests, ..Delay::default() };
        }
        self.stale.fill(false);
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

#[cfg(test)]
mod tests;
