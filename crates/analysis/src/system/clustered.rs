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
//! The response times are the least joint fixed point (`solve.rs`). It bounds every response: the first response to
//! exceed it would do so after all the responses on which its equation depends.

use crate::blocking::spin::Fifo;
use crate::blocking::{Delay, DelayBounds as _};
use crate::rows::bound::{Analysis, Blocking, Unbounded};
use crate::rows::mutant::Mutant;
use crate::rows::sharing::sharing_of;
use crate::rows::tables::Tables;
use crate::system::solve::{Equations, Rising, raise};
use lockwright_model::{CpuId, Duration, Protocol, System, TaskId};

/// The parameters of one task's equation, in nanoseconds.
struct Row {
    cost: u64,
    period: u64,
    jitter: u64,
    /// The number of processors of the task's cluster, c.
    processors: u64,
    /// The other tasks of the cluster that are at least as urgent.
    urgent: Vec<usize>,
    /// Whether the task is an interrupt: it executes on one processor, and its blocking does not count.
    is_interrupt: bool,
    /// Whether the task has requests.
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

/// Bounds the response times of a system with clusters under `protocol`. If `judged` is given, only the verdict on the
/// first `judged` tasks is meaningful.
pub(crate) fn solve(tables: &Tables<'_>, protocol: Protocol, judged: Option<usize>) -> Analysis {
    let (rows, rising) = solve_in_parts(tables, protocol, judged);
    rising.into_analysis(tables, protocol, |task, _| Blocking {
        local: Duration::ZERO,
        boosted: Duration::from_ns(rows[task].lends),
        remote: Duration::from_ns(rows[task].waits),
    })
}

/// Returns the parts of the bound of `task`, or `None` if it has no bound.
pub(crate) fn parts(tables: &Tables<'_>, protocol: Protocol, task: TaskId) -> Option<Parts> {
    let (rows, rising) = solve_in_parts(tables, protocol, None);
    let index = task.index();
    let (row, responses) = (&rows[index], &rising.responses);
    let window = rising.get(task)? - row.jitter;
    let (mut sum, mut shared) = (0_u64, 0);
    let mut urgent = Vec::new();
    for &h in &row.urgent {
        let (work, _) = interference(tables, &rows, index, h, window, responses)?;
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

fn solve_in_parts(tables: &Tables<'_>, protocol: Protocol, judged: Option<usize>) -> (Vec<Row>, Rising) {
    let system = tables.system;
    let mut rising = Rising::new(system, vec![None; system.tasks().len()]);
    let rows: Vec<Row> = system.task_ids().map(|id| row(tables, id)).collect();
    if let Some(resource) = system.refused_in_clusters(protocol) {
        rising.give_up_all(&Unbounded::Clusters { resource, protocol: system.protocol_of(resource, protocol) });
        return (rows, rising);
    }
    if let Some((task, outer, inner)) = system.refused_nesting(protocol) {
        rising.give_up_all(&Unbounded::Nested { task, outer, inner });
        return (rows, rising);
    }
    let sizes = |cluster: u16| size(system, CpuId(cluster));
    let Ok(waits) = Fifo::in_clusters(&sharing_of(system, |_| true), sizes, !tables.is_mutant(Mutant::OwnCluster))
    else {
        // The system is valid, but its numbers do not fit.
        rising.overflow_all();
        return (rows, rising);
    };
    let delays = vec![Delay::default(); rows.len()];
    let mut equations = Clustered { tables, waits, rows, delays };
    raise(tables, &mut equations, &mut rising, judged);
    (equations.rows, rising)
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

/// The equations of all tasks.
struct Clustered<'a> {
    tables: &'a Tables<'a>,
    waits: Fifo,
    rows: Vec<Row>,
    /// The delays in this round, by task.
    delays: Vec<Delay>,
}

impl Equations for Clustered<'_> {
    fn prepare(&mut self, rising: &mut Rising) {
        let known = self.waits.set_responses(&rising.responses).and_then(|()| self.waits.delays(&mut self.delays));
        if known.is_err() {
            rising.overflow_all();
            return;
        }
        for (task, (row, delay)) in self.rows.iter_mut().zip(&self.delays).enumerate() {
            let Some(remote) = delay.remote else {
                rising.give_up(task, &Unbounded::BeyondPeriod);
                continue;
            };
            row.waits = if self.tables.is_mutant(Mutant::Waiting) { 0 } else { remote };
            row.lends = if self.tables.is_mutant(Mutant::Boosted) || row.is_interrupt { 0 } else { delay.arrival };
        }
    }

    fn respond(&mut self, task: usize, rising: &Rising) -> Result<u64, Unbounded> {
        respond(self.tables, &self.rows, task, &rising.responses)
    }

    fn asks(&self, task: usize) -> bool {
        self.rows[task].asks
    }

    fn depends_on(&self, task: usize, asking: Option<usize>, rising: &Rising) -> Option<usize> {
        let urgent = self.rows[task].urgent.iter().copied().find(|&h| rising.reasons[h].is_some());
        urgent.or(asking.filter(|_| self.delays[task] != Delay::default()))
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
