//! Response times in clusters of processors under the clustered OMLP, with fixed priorities. The c most urgent jobs of
//! a cluster execute, on any of its c processors.
//!
//! Waiting counts as execution (suspension-oblivious analysis). The execution of each job is increased by the time that
//! its requests wait, and by the time that it waits at its arrival while it lends its priority. Whenever a job is
//! pending and neither executes nor waits in one of these ways, c jobs at least as urgent are pending. The response
//! times of independent tasks with these execution times on c processors are therefore bounds:
//!
//! ```text
//!   E_i = C_i + I_i + B_i
//!   w = E_i + floor( sum over h at least as urgent in the cluster of min(W_h(w), w - E_i + 1) / c )
//!   W_h(w) = floor(x / T_h) E_h + min(E_h, x mod T_h),   x = w + R_h - E_h
//!   R_i = w + J_i
//! ```
//! E_i is the execution time with waits, and W_h(w) the work of task h in a window of length w. I_i is the wait at
//! requests: each request waits, for each cluster k, for the longest sections of c(k) tasks of k, one section of each
//! task; in the job's own cluster, for those of c - 1 tasks. B_i is the longest request of a task of the cluster that
//! is no more urgent, from the request to the unlock. See [`spin`](crate::blocking::spin), whose waits are the
//! same.
//!
//! W_h and w are from Bertogna, Cirinei, *Response-time analysis for globally scheduled symmetric multiprocessor
//! platforms*, RTSS 2007. R_h is measured from the arrival. A job of h that is released late or carried in therefore
//! counts as executing as late as it may, and the jobs after it count from their arrivals on, so the bound covers
//! jitter. The argument for counting waiting as execution is in Brandenburg, Anderson, *Optimality results for
//! multiprocessor real-time locking*, RTSS 2010.
//!
//! *Interrupts* execute on one processor each, so all of their work can be on the processor that executes job i. Their
//! work is not divided by c:
//! ```text
//!   w = E_i + floor( (sum over h … + c * sum over interrupts of the cluster of min(W(w), w - E_i + 1)) / c )
//! ```
//! Suppose that job i is unfinished in a window w, so that X = w - E_i + 1 of the window passes without progress of i.
//! In that time either an interrupt occupies the processor of i, or each of the c processors executes a job at least as
//! urgent, or an interrupt that delays such a job. An interrupt takes at most min(W, X) of the time in which i has a
//! processor. On one processor of c, it takes at most as much of the time in which i has none. Both together are at
//! most c min(W, X). An interrupt lends no priority, and waits for no request.
//!
//! All response times start at `C + J` and rise together. The least joint fixed point bounds every response: the first
//! response to exceed it would do so after all the responses on which its equation depends.

use crate::blocking::spin::Fifo;
use crate::blocking::{Delay, DelayBounds as _};
use crate::rows::bound::{Analysis, Blocking, Proof, TaskBound, Unbounded};
use crate::rows::mutant::Mutant;
use crate::rows::sharing::sharing_of;
use crate::rows::tables::Tables;
use crate::system::across::raise_each;
use lockwright_model::{CpuId, Duration, Protocol, System, TaskId};

/// The most rounds over all tasks. An iteration that takes more counts as divergent, which is safe: the tasks then have
/// no bound.
const ROUNDS_MAX: u32 = 10_000;

/// The parameters of one task's equation, in nanoseconds.
struct Row {
    cost: u64,
    period: u64,
    jitter: u64,
    /// The number of processors of the task's cluster, c.
    processors: u64,
    urgent: Vec<usize>,
    /// Whether the task is an interrupt: it executes on one processor, and its blocking does not count.
    is_interrupt: bool,
    asks: bool,
    /// The wait at requests in this round, I.
    waits: u64,
    /// The wait at the arrival while the job lends its priority, B.
    lends: u64,
}

impl Row {
    /// The execution time with waits, E.
    fn executed(&self) -> Option<u64> {
        self.cost.checked_add(self.waits)?.checked_add(self.lends)
    }

    /// How many times the work of this task counts in the sum for `row`.
    fn times(&self, row: &Row) -> u64 {
        if self.is_interrupt { row.processors } else { 1 }
    }
}

/// The parts of a response-time bound, besides execution and jitter, in nanoseconds.
pub(crate) struct Parts {
    /// The wait at requests, I.
    pub(crate) waits: u64,
    /// The wait at the arrival, B.
    pub(crate) lends: u64,
    /// The response time from the release on, w.
    pub(crate) window: u64,
    pub(crate) processors: u64,
    /// For each task at least as urgent, its work in the window and the share of that work in the bound. The shares are
    /// rounded so that they sum to the term in the bound.
    pub(crate) urgent: Vec<(TaskId, u64, u64)>,
}

/// Bounds the response times of a system with clusters under `protocol`.
pub(crate) fn solve(tables: &Tables<'_>, protocol: Protocol) -> Analysis {
    let (rows, responses, mut reasons) = solve_in_parts(tables, protocol);
    let bounds = tables.system.task_ids().map(|id| {
        let index = id.index();
        let unbounded = reasons[index].take();
        let response = unbounded.is_none().then(|| Duration::from_ns(responses[index]));
        let blocking = response.is_some().then(|| Blocking {
            local: Duration::ZERO,
            boosted: Duration::from_ns(rows[index].lends),
            remote: Duration::from_ns(rows[index].waits),
        });
        let schedulable = response.is_some_and(|response| response <= tables.system.task(id).deadline);
        TaskBound { blocking, response, schedulable, unbounded, proof: Proof::Classic }
    });
    Analysis { protocol, tasks: bounds.collect() }
}

/// Returns the parts of the bound of `task`, or `None` if it has no bound.
pub(crate) fn parts(tables: &Tables<'_>, protocol: Protocol, task: TaskId) -> Option<Parts> {
    let (rows, responses, reasons) = solve_in_parts(tables, protocol);
    let index = task.index();
    if reasons.get(index)?.is_some() {
        return None;
    }
    let row = &rows[index];
    let window = responses[index] - row.jitter;
    let (mut sum, mut shared) = (0_u64, 0);
    let mut urgent = Vec::new();
    for &h in &row.urgent {
        let (work, _) = interference(tables, &rows, index, h, window, &responses)?;
        sum = sum.checked_add(work.checked_mul(rows[h].times(row))?)?;
        let share = sum / row.processors - shared;
        shared += share;
        urgent.push((TaskId::new(h), work, share));
    }
    Some(Parts { waits: row.waits, lends: row.lends, window, processors: row.processors, urgent })
}

/// Returns the number of processors in the cluster of `cpu`.
pub(crate) fn size(system: &System, cpu: CpuId) -> u64 {
    u64::from(system.cluster(cpu).count_ones())
}

fn solve_in_parts(tables: &Tables<'_>, protocol: Protocol) -> (Vec<Row>, Vec<u64>, Vec<Option<Unbounded>>) {
    let system = tables.system;
    let mut reasons = vec![None; system.tasks().len()];
    let mut rows: Vec<Row> = system.task_ids().map(|id| row(tables, id)).collect();
    let mut responses: Vec<u64> = rows.iter().map(|row| row.cost.saturating_add(row.jitter)).collect();
    if let Some(resource) = system.refused_in_clusters(protocol) {
        reasons.fill(Some(Unbounded::Clusters { resource, protocol: system.protocol_of(resource, protocol) }));
    } else if let Some((task, outer, inner)) = system.refused_nesting(protocol) {
        reasons.fill(Some(Unbounded::Nested { task, outer, inner }));
    } else {
        let sizes = |cluster: u16| size(system, CpuId(cluster));
        match Fifo::in_clusters(&sharing_of(system, |_| true), sizes, !tables.is_mutant(Mutant::OwnCluster)) {
            Ok(mut fifo) => rise(tables, &mut fifo, &mut rows, &mut responses, &mut reasons),
            // The system is valid, but its numbers do not fit.
            Err(_) => reasons.fill(Some(Unbounded::BeyondPeriod)),
        }
    }
    (rows, responses, reasons)
}

fn row(tables: &Tables<'_>, id: TaskId) -> Row {
    let (system, task) = (tables.system, tables.system.task(id));
    let equals = |&h: &TaskId| !tables.is_mutant(Mutant::Equals) || system.task(h).priority != task.priority;
    Row {
        cost: task.wcet.as_ns(),
        period: task.period.as_ns(),
        jitter: task.jitter.as_ns(),
        processors: size(system, task.cpu),
        urgent: tables.urgent(id).filter(equals).map(TaskId::index).collect(),
        is_interrupt: system.is_interrupt(id) && !tables.is_mutant(Mutant::Pinned),
        asks: !system.requests(id).is_empty(),
        waits: 0,
        lends: 0,
    }
}

/// Raises all response times to their least joint fixed point.
///
/// BOUND: [`ROUNDS_MAX`] rounds, and the budget of all fixed points together.
fn rise(
    tables: &Tables<'_>,
    fifo: &mut Fifo,
    rows: &mut [Row],
    responses: &mut [u64],
    reasons: &mut [Option<Unbounded>],
) {
    let mut delays = vec![Delay::default(); rows.len()];
    for round in 0..=ROUNDS_MAX {
        let known = fifo.set_responses(responses).and_then(|()| fifo.delays(&mut delays));
        if known.is_err() || round == ROUNDS_MAX {
            let reason = if known.is_err() { Unbounded::BeyondPeriod } else { Unbounded::Unsettled };
            reasons.iter_mut().for_each(|known| *known = known.take().or_else(|| Some(reason.clone())));
            return;
        }
        for ((row, delay), reason) in rows.iter_mut().zip(&delays).zip(reasons.iter_mut()) {
            let Some(remote) = delay.remote else {
                reason.get_or_insert(Unbounded::BeyondPeriod);
                continue;
            };
            row.waits = if tables.is_mutant(Mutant::Waiting) { 0 } else { remote };
            row.lends = if tables.is_mutant(Mutant::Boosted) || row.is_interrupt { 0 } else { delay.arrival };
        }
        depend(rows, &delays, reasons);
        if !raise_each(tables, responses, reasons, |index, responses| respond(tables, rows, index, responses)) {
            return;
        }
    }
}

/// Removes the bound of each task that depends on a task without one.
fn depend(rows: &[Row], delays: &[Delay], reasons: &mut [Option<Unbounded>]) {
    // BOUND: each round except the last removes one bound.
    loop {
        let lost = (0..rows.len()).find(|&index| reasons[index].is_some() && rows[index].asks);
        let rests_on = |index: usize| {
            let urgent = rows[index].urgent.iter().copied().find(|&h| reasons[h].is_some());
            urgent.or_else(|| lost.filter(|_| delays[index] != Delay::default()))
        };
        let next = (0..rows.len()).filter(|&index| reasons[index].is_none());
        let Some((index, on)) = next.filter_map(|index| Some((index, rests_on(index)?))).next() else { return };
        reasons[index] = Some(Unbounded::DependsOn { task: TaskId::new(on) });
    }
}

/// Returns the work of `h` in a window of `task`, limited to the work that can keep `task` from executing, and the
/// window up to which that work rises as fast as the window.
fn interference(
    tables: &Tables<'_>,
    rows: &[Row],
    task: usize,
    h: usize,
    window: u64,
    responses: &[u64],
) -> Option<(u64, u64)> {
    let (own, row) = (rows[task].executed()?, &rows[h]);
    let executed = row.executed()?;
    let ahead = if tables.is_mutant(Mutant::CarryIn) { 0 } else { responses[h].saturating_sub(executed) };
    let x = window.checked_add(ahead)?;
    let whole = (x / row.period).checked_mul(executed)?;
    let done = whole.checked_add(executed)?;
    let work = whole + executed.min(x % row.period);
    let most = window.saturating_sub(own) + 1;
    // If the work reaches the limit, the result rises with the limit, until that reaches the work including the whole
    // job in progress. Otherwise it rises until that job is complete.
    let until = if work >= most { own.checked_add(done)? } else { window.checked_add(done - work)? };
    Some((work.min(most), until))
}

fn respond(tables: &Tables<'_>, rows: &[Row], index: usize, responses: &[u64]) -> Result<u64, Unbounded> {
    let row = &rows[index];
    let own = row.executed().ok_or(Unbounded::BeyondPeriod)?;
    let start = own.max(responses[index] - row.jitter);
    let terms = 1 + row.urgent.len() as u64;
    let mut rises: Vec<u64> = Vec::with_capacity(row.urgent.len());
    let window = tables.budget.least(start, row.period - row.jitter, terms, |window| {
        rises.clear();
        let sum = row.urgent.iter().try_fold(0_u64, |sum, &h| {
            let (work, until) = interference(tables, rows, index, h, window, responses)?;
            let times = rows[h].times(row);
            rises.extend((0..times).map(|_| until));
            sum.checked_add(work.checked_mul(times)?)
        });
        let next = own.checked_add(sum? / row.processors)?;
        let processors = usize::try_from(row.processors).ok()?;
        if next <= window || rises.len() < processors {
            return Some(next);
        }
        // While at least as many terms rise as there are processors, their sum divided by c grows as fast as the
        // window, so that no such window is a solution. This avoids steps of one nanosecond.
        let (_, &mut until, _) = rises.select_nth_unstable_by(processors - 1, |one, other| other.cmp(one));
        Some(next.max(until))
    });
    Ok(window? + row.jitter)
}
