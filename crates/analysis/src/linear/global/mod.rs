//! Global fixed-priority scheduling with semaphores: bounds on how much longer than its execution a job is pending.
//!
//! Symbols: m is the number of processors. Ranks follow priorities, with 0 for the most urgent task. N(i,q) is the
//! number of requests of one job of task i for q, L(x,q) the longest section, and n(x,q) = N(x,q) * ceil((R_i + R_x) /
//! T_x) the number of requests of all jobs of x while one job of i is pending. W_x(t) is the most work of x in an
//! interval of length t: with s = t + R_x - C_x, it is floor(s / T_x) * C_x + min(C_x, s mod T_x).
//!
//! The variables for each other task x are d, the requests that delay directly; for x of lower priority e and p, the
//! requests that delay indirectly and by preemption; for x of higher priority I, the regular interference; and for x of
//! lower priority c and s, the co-boosting and the stalling interference. With B_x = sum of L d, and O_x = I or c + s +
//! sum of L (e + p), the program maximizes `sum of B_x + (sum of O_x) / m`, where
//! 1. B_x + O_x <= W_x(R_i);
//! 2. m O_x <= sum over y of O_y, as all processors are busy elsewhere;
//! 3. d + e + p <= n(x,q);
//! 4. s = 0 if i has no requests;
//! 5. d = 0 on resources that i does not use;
//!
//! and the constraints of the queue and of the progress mechanism of the protocol hold.
//!
//! # Reference
//! M. Yang, A. Wieder, B. Brandenburg, "Global real-time semaphore protocols: a survey, unified analysis, and
//! comparison", RTSS 2015. The numbers of constraints are those of the paper.

mod ceilings;
mod progress;
mod queue;
mod waits;

use super::program::Program;
use super::sum;
use super::view::{View, add_product, product};
use crate::{Failure, Sharing};
use waits::{Holds, Progress, workload};

/// A locking protocol under global fixed-priority scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Global {
    /// Priority inheritance, with queues by priority.
    Pip,
    /// Parallel priority ceilings, with priority inheritance and queues by priority.
    Ppcp {
        /// Whether priorities are reasonable: from rank m on, a task of greater rank never has a shorter deadline.
        reasonable: bool,
    },
    /// Priority inheritance, with FIFO queues.
    Fmlp,
    /// Restricted segment boosting, with FIFO queues.
    FmlpPlus,
    /// Restricted segment boosting, with queues by priority.
    Prsb,
    /// No progress mechanism, with FIFO queues.
    PlainFifo,
    /// No progress mechanism, with queues by priority.
    PlainPriority,
}

/// The order in which requests are granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Fifo,
    Priority,
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

/// Returns bounds on R - C of each task, that is, on its interference and blocking, under global fixed priorities on
/// `processors` processors.
///
/// The `response` of each task must bound how long its jobs are pending. These are response times if no result exceeds
/// R - C. Tasks of equal priority are ranked in the given order. Times are in the unit of the input. The source is
/// Yang, Wieder, Brandenburg, RTSS 2015.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn global(sharing: &Sharing, processors: u16, protocol: Global) -> Result<Vec<u64>, Failure> {
    let ranks = {
        let mut ranks: Vec<usize> = (0..sharing.tasks.len()).collect();
        ranks.sort_by_key(|&task| (std::cmp::Reverse(sharing.tasks[task].priority), task));
        ranks
    };
    // Tasks by rank: each task is more urgent than the next.
    let view = View::new(&Sharing { tasks: ranks.iter().map(|&task| sharing.tasks[task].clone()).collect() }, &[])?;
    let mut delays = vec![0; ranks.len()];
    for (i, &task) in ranks.iter().enumerate() {
        delays[task] = Model::new(&view, i, processors.into(), protocol)?.delay()?;
    }
    Ok(delays)
}

/// The variables for the requests of another task for one resource.
#[derive(Clone, Copy, Debug)]
struct Variables {
    task: usize,
    resource: usize,
    length: u64,
    /// N(x,q).
    count: u64,
    /// n(x,q).
    issued: u64,
    /// d; `None` if the task under analysis does not use the resource.
    direct: Option<usize>,
    /// e and p; `None` for tasks of higher priority.
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
            // Only segment boosting distinguishes e and p. Otherwise e stands for both.
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
            // Constraint 1.
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
        // Constraint 3.
        for entry in &self.entries {
            let Some((indirect, preempting)) = entry.other else { continue };
            let mut terms = vec![(indirect, 1), (preempting, 1)];
            terms.extend(entry.direct.map(|direct| (direct, 1)));
            self.program.at_most(terms, entry.issued);
        }
        // Constraint 4.
        if self.view.requests(i).is_empty() {
            self.no_stalling(i + 1);
        }
        Ok(())
    }

    /// Returns O_x, multiplied by `factor`.
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

    /// Sets all these variables to 0.
    fn none(&mut self, variables: Vec<usize>) {
        self.program.at_most(variables.into_iter().map(|variable| (variable, 1)).collect(), 0);
    }

    /// Excludes stalling interference by tasks of rank `from` and beyond.
    fn no_stalling(&mut self, from: usize) {
        let first = from.max(self.i + 1);
        self.none((first..self.view.tasks()).map(|x| self.stalling(x)).collect());
    }

    /// Returns c of a task of lower priority.
    fn co_boosting(&self, x: usize) -> usize {
        self.interference[x][0]
    }

    /// Returns s of a task of lower priority.
    fn stalling(&self, x: usize) -> usize {
        self.interference[x][1]
    }

    /// Returns the requests for q while the job is pending, except those of the job itself and of `x`.
    fn issued_by_others(&self, q: usize, x: Option<usize>) -> Result<u64, Failure> {
        let others = self.entries.iter().filter(|entry| entry.resource == q && Some(entry.task) != x);
        others.into_iter().try_fold(0, |all, entry| sum(all, entry.issued))
    }

    /// Returns how long one request for each resource may wait, or `None` if that is not known.
    fn longest_waits(&self) -> Result<Vec<Option<u64>>, Failure> {
        let holds = Holds::new(self.view, self.i, self.m, self.protocol.progress())?;
        (0..self.view.resources).map(|q| if self.own[q] == 0 { Ok(None) } else { holds.longest_wait(q) }).collect()
    }

    fn delay(self) -> Result<u64, Failure> {
        let bound = self.program.bound()?;
        let m = i128::from(self.m.max(1));
        let denominator = bound.denominator.checked_mul(m).ok_or(Failure::Overflow)?;
        // Times are integers, so the integer below a fraction is a bound as well.
        u64::try_from(bound.numerator / denominator).map_err(|_| Failure::Overflow)
    }
}

/// Converts a value to a factor of a constraint. A value that does not fit makes the bound overflow.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns the sum over the requests of tasks of higher priority of N * L * jobs.
fn sections_of_higher(model: &Model<'_>) -> Result<u64, Failure> {
    let mut all = 0;
    for entry in model.entries.iter().filter(|entry| entry.task < model.i) {
        add_product(&mut all, entry.issued, entry.length)?;
    }
    Ok(all)
}
