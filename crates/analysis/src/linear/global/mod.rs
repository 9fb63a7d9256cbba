//! Global fixed-priority scheduling with locks that suspend: how much longer than its execution a job is pending.
//!
//! Letters: m processors; ranks by priority, 0 the most urgent; N(i,q) requests of one job of task i for q, n(x,q) =
//! N(x,q) * ceil((R_i + R_x) / T_x) those of all jobs of x while one of i is pending, L(x,q) the longest section;
//! W_x(t) most work of x in an interval of length t: with s = t + R_x - C_x, floor(s / T_x) * C_x + min(C_x, s mod
//! T_x). Variables, of each other task x: d requests that delay directly; of x of lower priority e requests that delay
//! indirectly and p by preemption; I regular interference of x of higher priority; co-boosting c and stalling s
//! interference of x of lower priority. With B_x = sum of L d and O_x = I, or c + s + sum of L (e + p), the program is:
//! the most of `sum of B_x + (sum of O_x) / m`, where
//! 1. B_x + O_x <= W_x(R_i);
//! 2. m O_x <= sum over y of O_y: all processors are busy elsewhere;
//! 3. d + e + p <= n(x,q);
//! 4. s = 0 where i asks for nothing;
//! 5. d = 0 on resources that i does not use;
//!
//! and what the queue and the progress mechanism of the protocol add.
//!
//! # Reference
//! M. Yang, A. Wieder, B. Brandenburg, "Global real-time semaphore protocols: a survey, unified analysis, and
//! comparison", RTSS 2015; numbers of constraints are those of the paper.

mod ceilings;
mod progress;
mod queue;
mod waits;

use super::program::Program;
use super::sum;
use super::view::{View, add_product, product};
use crate::{Failure, Sharing};
use waits::Holds;

/// A locking protocol under global fixed-priority scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Global {
    /// Priority inheritance, queues by priority.
    Pip,
    /// Parallel priority ceilings. `reasonable`: from rank m on, greater rank never has the shorter deadline.
    Ppcp {
        /// See there.
        reasonable: bool,
    },
    /// Priority inheritance, FIFO queues.
    Fmlp,
    /// Restricted segment boosting, FIFO queues.
    FmlpPlus,
    /// Restricted segment boosting, queues by priority.
    Prsb,
    /// No progress mechanism, FIFO queues.
    PlainFifo,
    /// No progress mechanism, queues by priority.
    PlainPriority,
}

/// In which order requests are granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Fifo,
    Priority,
}

/// What keeps an owner going.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Inheritance,
    SegmentBoosting,
    None,
}

impl Global {
    fn queue(self) -> Queue {
        match self {
            Self::Fmlp | Self::FmlpPlus | Self::PlainFifo => Queue::Fifo,
            Self::Pip | Self::Ppcp { .. } | Self::Prsb | Self::PlainPriority => Queue::Priority,
        }
    }

    fn progress(self) -> Progress {
        match self {
            Self::Pip | Self::Ppcp { .. } | Self::Fmlp => Progress::Inheritance,
            Self::FmlpPlus | Self::Prsb => Progress::SegmentBoosting,
            Self::PlainFifo | Self::PlainPriority => Progress::None,
        }
    }
}

/// Bounds on R - C of each task, interference and blocking, on `processors`, if `response` of the tasks bounds how long
/// their jobs are pending. Those are response times where no bound exceeds R - C. Tasks of equal priority rank in the
/// order given.
///
/// # Errors
/// [`Failure::Unsupported`] where a period is 0, [`Failure::Overflow`].
pub fn global(sharing: &Sharing, processors: u16, protocol: Global) -> Result<Vec<u64>, Failure> {
    let ranks = {
        let mut ranks: Vec<usize> = (0..sharing.tasks.len()).collect();
        ranks.sort_by_key(|&task| (std::cmp::Reverse(sharing.tasks[task].priority), task));
        ranks
    };
    // Tasks by rank: who is before another is more urgent.
    let view = View::new(&Sharing { tasks: ranks.iter().map(|&task| sharing.tasks[task].clone()).collect() }, &[])?;
    let mut delays = vec![0; ranks.len()];
    for (i, &task) in ranks.iter().enumerate() {
        delays[task] = Model::new(&view, i, processors.into(), protocol)?.delay()?;
    }
    Ok(delays)
}

/// W_x(t).
fn workload(view: &View, x: usize, interval: u64) -> Result<u64, Failure> {
    let row = &view.rows[x];
    let span = sum(interval, row.response)?.saturating_sub(row.cost);
    sum(product(span / row.period, row.cost)?, row.cost.min(span % row.period))
}

/// The variables of one request of another task.
#[derive(Clone, Copy, Debug)]
struct Variables {
    task: usize,
    resource: usize,
    length: u64,
    /// N(x,q).
    count: u64,
    /// n(x,q).
    issued: u64,
    /// d; none where the resource is not used by the task under analysis.
    direct: Option<usize>,
    /// e and p; none of tasks of higher priority.
    other: Option<(usize, usize)>,
}

/// The program for one task.
struct Model<'a> {
    view: &'a View,
    i: usize,
    m: u64,
    protocol: Global,
    program: Program,
    entries: Vec<Variables>,
    /// I, or c and s, by task.
    interference: Vec<Vec<usize>>,
    /// N(i,q).
    own: Vec<u64>,
    jobs: Vec<u64>,
}

impl<'a> Model<'a> {
    fn new(view: &'a View, i: usize, m: u64, protocol: Global) -> Result<Self, Failure> {
        let mut model = Self {
            view,
            i,
            m,
            protocol,
            program: Program::default(),
            entries: Vec::new(),
            interference: vec![Vec::new(); view.tasks()],
            own: Vec::new(),
            jobs: Vec::new(),
        };
        view.jobs_of_all(i, &mut model.jobs)?;
        view.own_counts(i, &mut model.own)?;
        model.variables()?;
        model.generic()?;
        match protocol.queue() {
            Queue::Fifo => model.fifo(),
            Queue::Priority => model.priority()?,
        }
        match protocol.progress() {
            Progress::Inheritance => model.inheritance(),
            Progress::SegmentBoosting => model.segment_boosting()?,
            Progress::None => model.no_progress(),
        }
        match protocol {
            Global::Pip => model.inherited_per_resource()?,
            Global::Ppcp { reasonable } => {
                model.inherited_per_resource()?;
                model.stalling_by_ceilings()?;
                if reasonable {
                    model.reasonable()?;
                }
            }
            Global::Fmlp => model.inherited_per_request()?,
            Global::FmlpPlus => model.segments()?,
            Global::Prsb => model.indirect_per_wait()?,
            Global::PlainFifo | Global::PlainPriority => {}
        }
        Ok(model)
    }

    fn variables(&mut self) -> Result<(), Failure> {
        let (i, m) = (self.i, self.m);
        for x in (0..self.view.tasks()).filter(|&x| x != i) {
            let work = workload(self.view, x, self.view.rows[i].response)?;
            for _ in 0..if x < i { 1 } else { 2 } {
                let variable = self.program.variable(1, work);
                self.interference[x].push(variable);
            }
        }
        for entry in self.view.entries.iter().filter(|entry| entry.task != i) {
            let issued = product(entry.count, self.jobs[entry.task])?;
            let uses = self.own[entry.resource] > 0;
            let weight = product(m, entry.length)?;
            let direct = uses.then(|| self.program.variable(weight, issued));
            // Only segment boosting tells e and p apart; else e stands for both.
            let apart = if self.protocol.progress() == Progress::SegmentBoosting { issued } else { 0 };
            let other = (entry.task > i)
                .then(|| (self.program.variable(entry.length, issued), self.program.variable(entry.length, apart)));
            let (task, resource, length, count) = (entry.task, entry.resource, entry.length, entry.count);
            self.entries.push(Variables { task, resource, length, count, issued, direct, other });
        }
        Ok(())
    }

    fn generic(&mut self) -> Result<(), Failure> {
        let (i, response) = (self.i, self.view.rows[self.i].response);
        let others: Vec<usize> = (0..self.view.tasks()).filter(|&x| x != i).collect();
        let mut total = 0;
        let mut busy = Vec::new();
        for &x in &others {
            let work = workload(self.view, x, response)?;
            total = sum(total, work)?;
            let other = self.other_work(x, 1)?;
            busy.extend(other.iter().map(|&(variable, factor)| (variable, -factor)));
            // 1.
            let mut terms = other;
            for entry in self.entries.iter().filter(|entry| entry.task == x) {
                terms.extend(entry.direct.map(|direct| (direct, signed(entry.length))).into_iter().collect::<Vec<_>>());
            }
            self.program.at_most(terms, work);
        }
        // 2, with the sum over y as a variable.
        let all = self.program.variable(0, total);
        busy.push((all, 1));
        self.program.at_most(busy, 0);
        for &x in &others {
            let mut terms = self.other_work(x, self.m)?;
            terms.push((all, -1));
            self.program.at_most(terms, 0);
        }
        // 3.
        for entry in &self.entries {
            let Some((indirect, preempting)) = entry.other else { continue };
            let mut terms = vec![(indirect, 1), (preempting, 1)];
            terms.extend(entry.direct.map(|direct| (direct, 1)));
            self.program.at_most(terms, entry.issued);
        }
        // 4.
        if self.view.requests(i).is_empty() {
            self.no_stalling(i + 1);
        }
        Ok(())
    }

    /// O_x, times `factor`.
    fn other_work(&self, x: usize, factor: u64) -> Result<Vec<(usize, i64)>, Failure> {
        let mut terms: Vec<(usize, i64)> =
            self.interference[x].iter().map(|&variable| (variable, signed(factor))).collect();
        for entry in self.entries.iter().filter(|entry| entry.task == x) {
            if let Some((indirect, preempting)) = entry.other {
                let length = signed(product(factor, entry.length)?);
                terms.extend([(indirect, length), (preempting, length)]);
            }
        }
        Ok(terms)
    }

    /// No variable of these is above 0.
    fn none(&mut self, variables: Vec<usize>) {
        self.program.at_most(variables.into_iter().map(|variable| (variable, 1)).collect(), 0);
    }

    /// No stalling interference by tasks of rank `from` and beyond.
    fn no_stalling(&mut self, from: usize) {
        let first = from.max(self.i + 1);
        self.none((first..self.view.tasks()).map(|x| self.stalling(x)).collect());
    }

    /// c of a task of lower priority.
    fn co_boosting(&self, x: usize) -> usize {
        self.interference[x][0]
    }

    /// s of a task of lower priority.
    fn stalling(&self, x: usize) -> usize {
        self.interference[x][1]
    }

    /// Requests of each task while the job is pending, but those of the job itself and of `x`: for own resource q.
    fn issued_by_others(&self, q: usize, x: Option<usize>) -> Result<u64, Failure> {
        let others = self.entries.iter().filter(|entry| entry.resource == q && Some(entry.task) != x);
        others.into_iter().try_fold(0, |all, entry| sum(all, entry.issued))
    }

    /// How long one own request for each resource may wait; none where that is not known.
    fn longest_waits(&self) -> Result<Vec<Option<u64>>, Failure> {
        let holds = Holds::new(self.view, self.i, self.m, self.protocol.progress())?;
        (0..self.view.resources).map(|q| if self.own[q] == 0 { Ok(None) } else { holds.longest_wait(q) }).collect()
    }

    fn delay(self) -> Result<u64, Failure> {
        let bound = self.program.bound()?;
        let m = i128::from(self.m.max(1));
        let denominator = bound.denominator.checked_mul(m).ok_or(Failure::Overflow)?;
        // Times are whole: what a fraction bounds, the whole number below it bounds.
        u64::try_from(bound.numerator / denominator).map_err(|_| Failure::Overflow)
    }
}

/// As a factor of a constraint; what does not fit makes the bound overflow.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Sum over the requests of tasks of higher priority of N * L * jobs.
fn sections_of_higher(model: &Model<'_>) -> Result<u64, Failure> {
    let mut all = 0;
    for entry in model.entries.iter().filter(|entry| entry.task < model.i) {
        add_product(&mut all, entry.issued, entry.length)?;
    }
    Ok(all)
}
