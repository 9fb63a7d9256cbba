//! Response times in clusters of processors under the clustered OMLP: fixed priorities, the most urgent jobs of a cluster on any of its c processors.
//!
//! Waiting counts as execution (suspension-oblivious): to its execution each job gets what its requests wait for, and what it waits when it arrives and lends its
//! priority. Whenever it is pending and neither executes nor waits so, c jobs at least as urgent are pending; so the response times of independent tasks with such execution
//! times on c processors are bounds:
//!
//! ```text
//!   E_i = C_i + b_i + d_i
//!   w = E_i + floor( sum over h at least as urgent in the cluster of min(W_h(w), w - E_i + 1) / c )
//!   W_h(w) = floor(x / T_h) E_h + min(E_h, x mod T_h),   x = w + R_h - E_h
//!   R_i = w + J_i
//! ```
//! b: at each request, for each cluster k the longest c_k sections of its tasks, one of each task, c - 1 of the own cluster. d: the longest request of a task of the cluster no
//! more urgent, from asking to giving back. See [`spin`](crate::multiprocessor::spin), whose waits are the same.
//!
//! W and w: Bertogna, Cirinei, *Response-time analysis for globally scheduled symmetric multiprocessor platforms*, RTSS 2007. R_h is from the arrival, so that a job of h
//! that is released late or carried in is counted as late as it may execute, and those after it from their arrivals on; jitter is covered. That waiting may be counted as
//! execution: Brandenburg, Anderson, *Optimality results for multiprocessor real-time locking*, RTSS 2010.
//!
//! *Interrupts* execute on one processor each, so all of their work can be on the one that executes job i. It is not divided by c:
//! ```text
//!   w = E_i + floor( (sum over h … + c * sum over interrupts of the cluster of min(W(w), w - E_i + 1)) / c )
//! ```
//! Let job i be unfinished in a window w, so that X = w - E_i + 1 of it passes without progress of i. In that time either an interrupt has the processor of i, or each of
//! the c processors executes a job at least as urgent, or has an interrupt that delays such a job. An interrupt takes at most min(W, X) of the time of i, and at most as
//! much of that in which i does not have a processor, on one processor of c: both together are at most c min(W, X). An interrupt lends nothing, and waits for none.
//!
//! All start at `C + J` and rise together. The least joint fixed point bounds every response: the first that exceeded it would do so after all that its equation rests on.

use crate::across::raise_each;
use crate::bound::{Analysis, Blocking, Proof, TaskBound, Unbounded};
use crate::multiprocessor::spin::Fifo;
use crate::multiprocessor::{Delay, Protocol as _};
use crate::omit::Omit;
use crate::sharing::sharing_of;
use crate::tables::Tables;
use lockwright_model::{CpuId, Duration, Protocol, System, TaskId};

/// Most rounds over all tasks; more is taken for divergence, which is safe: it only loses bounds.
const ROUNDS_MAX: u32 = 10_000;

/// What one task's equation needs, in nanoseconds.
struct Row {
    cost: u64,
    period: u64,
    jitter: u64,
    /// c.
    processors: u64,
    urgent: Vec<usize>,
    /// On one processor, and no more than its execution.
    is_interrupt: bool,
    asks: bool,
    /// b, of this round.
    waits: u64,
    /// d.
    lends: u64,
}

impl Row {
    /// E.
    fn executed(&self) -> Option<u64> {
        self.cost.checked_add(self.waits)?.checked_add(self.lends)
    }

    /// How often its work counts among that of the processors of `row`.
    fn times(&self, row: &Row) -> u64 {
        if self.is_interrupt { row.processors } else { 1 }
    }
}

/// What the response time of a task with a bound is made of, besides its execution and its jitter.
pub(crate) struct Parts {
    /// At its requests.
    pub(crate) waits: u64,
    /// When it arrives.
    pub(crate) lends: u64,
    /// From its release on, w.
    pub(crate) window: u64,
    pub(crate) processors: u64,
    /// Of each task at least as urgent: its work in the window, and the share of that on each processor; the shares are rounded so that they sum to what is
    /// in the bound.
    pub(crate) urgent: Vec<(TaskId, u64, u64)>,
}

/// Bounds for a system with clusters.
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

/// The parts of the bound of `task`; `None` where it has none.
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

/// How many processors the cluster of a processor has.
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
        match Fifo::in_clusters(&sharing_of(system, |_| true), sizes, !tables.omits(Omit::OwnCluster)) {
            Ok(mut fifo) => rise(tables, &mut fifo, &mut rows, &mut responses, &mut reasons),
            // Rows of a valid system, whose numbers may not fit.
            Err(_) => reasons.fill(Some(Unbounded::BeyondPeriod)),
        }
    }
    (rows, responses, reasons)
}

fn row(tables: &Tables<'_>, id: TaskId) -> Row {
    let (system, task) = (tables.system, tables.system.task(id));
    let equals = |&h: &TaskId| !tables.omits(Omit::Equals) || system.task(h).priority != task.priority;
    Row {
        cost: task.wcet.as_ns(),
        period: task.period.as_ns(),
        jitter: task.jitter.as_ns(),
        processors: size(system, task.cpu),
        urgent: tables.urgent(id).filter(equals).map(TaskId::index).collect(),
        is_interrupt: system.is_interrupt(id) && !tables.omits(Omit::Pinned),
        asks: !system.requests(id).is_empty(),
        waits: 0,
        lends: 0,
    }
}

/// Raises all response times to their joint least fixed point.
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
            row.waits = if tables.omits(Omit::Waiting) { 0 } else { remote };
            row.lends = if tables.omits(Omit::Boosted) || row.is_interrupt { 0 } else { delay.arrival };
        }
        depend(rows, &delays, reasons);
        if !raise_each(tables, responses, reasons, |index, responses| respond(tables, rows, index, responses)) {
            return;
        }
    }
}

/// Takes the bounds of those that rest on one that is not there.
fn depend(rows: &[Row], delays: &[Delay], reasons: &mut [Option<Unbounded>]) {
    // BOUND: each round but the last takes one.
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

/// The work of `h` in a window of `task`, and no more of it than can keep `task` from executing; and until which window that rises with the window.
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
    let ahead = if tables.omits(Omit::CarryIn) { 0 } else { responses[h].saturating_sub(executed) };
    let x = window.checked_add(ahead)?;
    let whole = (x / row.period).checked_mul(executed)?;
    let done = whole.checked_add(executed)?;
    let work = whole + executed.min(x % row.period);
    let most = window.saturating_sub(own) + 1;
    // Until the job under way fills the window no more; else until it is done.
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
        // While as many rise as there are processors the sum outgrows every window: no steps by nanoseconds.
        let (_, &mut until, _) = rises.select_nth_unstable_by(processors - 1, |one, other| other.cmp(one));
        Some(next.max(until))
    });
    Ok(window? + row.jitter)
}
