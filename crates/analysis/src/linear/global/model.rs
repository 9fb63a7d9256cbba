//! The variables of the program for one task, and the constraints that all protocols have.

use super::super::program::Program;
use super::super::sum;
use super::super::view::{View, add_product, product};
use super::waits::{Holds, Progress, workload};
use crate::Failure;

/// A locking protocol under global fixed-priority scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
pub(super) enum Queue {
    Fifo,
    Priority,
}

impl Global {
    pub(super) fn queue(self) -> Queue {
        match self {
            Self::Fmlp | Self::FmlpPlus | Self::PlainFifo => Queue::Fifo,
            Self::Pip | Self::Ppcp { .. } | Self::Prsb | Self::PlainPriority => Queue::Priority,
        }
    }

    pub(super) fn progress(self) -> Progress {
        match self {
            Self::Pip | Self::Ppcp { .. } | Self::Fmlp => Progress::Inheritance,
            Self::FmlpPlus | Self::Prsb => Progress::SegmentBoosting,
            Self::PlainFifo | Self::PlainPriority => Progress::None,
        }
    }
}

/// The variables for the requests of another task for one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub(super) task: usize,
    pub(super) resource: usize,
    pub(super) length: u64,
    /// N(x,q).
    pub(super) count: u64,
    /// n(x,q).
    pub(super) issued: u64,
    /// d; `None` if the task under analysis does not use the resource.
    pub(super) direct: Option<usize>,
    /// e and p; `None` for tasks of higher priority.
    pub(super) other: Option<(usize, usize)>,
}

/// The program for one task.
pub(super) struct Model<'a> {
    pub(super) view: &'a View,
    pub(super) i: usize,
    pub(super) m: u64,
    pub(super) protocol: Global,
    pub(super) program: Program,
    pub(super) entries: Vec<Variables>,
    /// I, or c and s, by task.
    pub(super) interference: Vec<Vec<usize>>,
    /// N(i,q).
    pub(super) own: Vec<u64>,
    pub(super) jobs: Vec<u64>,
}

impl<'a> Model<'a> {
    pub(super) fn new(view: &'a View, i: usize, m: u64, protocol: Global) -> Result<Self, Failure> {
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
    pub(super) fn none(&mut self, variables: Vec<usize>) {
        self.program.at_most(variables.into_iter().map(|variable| (variable, 1)).collect(), 0);
    }

    /// Excludes stalling interference by tasks of rank `from` and beyond.
    pub(super) fn no_stalling(&mut self, from: usize) {
        let first = from.max(self.i + 1);
        self.none((first..self.view.tasks()).map(|x| self.stalling(x)).collect());
    }

    /// Returns c of a task of lower priority.
    pub(super) fn co_boosting(&self, x: usize) -> usize {
        self.interference[x][0]
    }

    /// Returns s of a task of lower priority.
    pub(super) fn stalling(&self, x: usize) -> usize {
        self.interference[x][1]
    }

    /// Returns the requests for q while the job is pending, except those of the job itself and of `x`.
    pub(super) fn issued_by_others(&self, q: usize, x: Option<usize>) -> Result<u64, Failure> {
        let others = self.entries.iter().filter(|entry| entry.resource == q && Some(entry.task) != x);
        others.into_iter().try_fold(0, |all, entry| sum(all, entry.issued))
    }

    /// Returns how long one request for each resource may wait, or `None` if that is not known.
    pub(super) fn longest_waits(&self) -> Result<Vec<Option<u64>>, Failure> {
        let holds = Holds::new(self.view, self.i, self.m, self.protocol.progress())?;
        (0..self.view.resources).map(|q| if self.own[q] == 0 { Ok(None) } else { holds.longest_wait(q) }).collect()
    }

    pub(super) fn delay(self) -> Result<u64, Failure> {
        let bound = self.program.bound()?;
        let m = i128::from(self.m.max(1));
        let denominator = bound.denominator.checked_mul(m).ok_or(Failure::Overflow)?;
        // Times are integers, so the integer below a fraction is a bound as well.
        u64::try_from(bound.numerator / denominator).map_err(|_| Failure::Overflow)
    }
}

/// Converts a value to a factor of a constraint. A value that does not fit makes the bound overflow.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns the sum over the requests of tasks of higher priority of N * L * jobs.
pub(super) fn sections_of_higher(model: &Model<'_>) -> Result<u64, Failure> {
    let mut all = 0;
    for entry in model.entries.iter().filter(|entry| entry.task < model.i) {
        add_product(&mut all, entry.issued, entry.length)?;
    }
    Ok(all)
}
