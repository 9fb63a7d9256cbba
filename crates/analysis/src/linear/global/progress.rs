//! Constraints of the progress mechanisms.

use super::super::sum;
use super::super::view::{add_product, product};
use super::model::{Global, Model, sections_of_higher, signed};
use crate::Failure;

impl Model<'_> {
    fn lower(&self) -> std::ops::Range<usize> {
        self.i + 1..self.view.tasks()
    }

    /// Adds the constraints of priority inheritance.
    pub(super) fn inheritance(&mut self) {
        // 6: there is no co-boosting.
        self.none(self.lower().map(|x| self.co_boosting(x)).collect());
        // 7: only direct delay prevents the m most urgent tasks from executing.
        if (self.i as u64) < self.m {
            let others = self.entries.iter().filter_map(|entry| entry.other).flat_map(|(e, p)| [e, p]);
            self.none(self.interference.iter().flatten().copied().chain(others).collect());
        }
        // 11: no stalling. Ceilings may stall instead.
        if !matches!(self.protocol, Global::Ppcp { .. }) {
            self.no_stalling(0);
        }
    }

    /// 12, for PIP and PPCP: indirect delay and preemption for q by all tasks are limited by the requests of higher
    /// priorities for q.
    pub(super) fn inherited_per_resource(&mut self) -> Result<(), Failure> {
        for q in 0..self.view.resources {
            let times = self.asked_by_higher(q)?;
            let terms = self.entries.iter().filter(|entry| entry.resource == q).filter_map(|entry| entry.other);
            let terms = terms.flat_map(|(indirect, preempting)| [(indirect, 1), (preempting, 1)]).collect();
            self.program.at_most(terms, times);
        }
        Ok(())
    }

    /// 13, for FMLP: the same for each task alone.
    pub(super) fn inherited_per_request(&mut self) -> Result<(), Failure> {
        for entry in &self.entries {
            let Some((indirect, preempting)) = entry.other else { continue };
            let times = self.asked_by_higher(entry.resource)?;
            self.program.at_most(vec![(indirect, 1), (preempting, 1)], times);
        }
        Ok(())
    }

    fn asked_by_higher(&self, q: usize) -> Result<u64, Failure> {
        let higher = self.entries.iter().filter(|entry| entry.task < self.i && entry.resource == q);
        higher.into_iter().try_fold(0, |times, entry| sum(times, entry.issued))
    }

    /// Adds the constraints of protocols without a progress mechanism.
    pub(super) fn no_progress(&mut self) {
        // 14: no task is boosted.
        let boosted = self.entries.iter().filter_map(|entry| entry.other).flat_map(|(e, p)| [e, p]);
        self.none(self.lower().map(|x| self.co_boosting(x)).chain(boosted).collect());
        self.no_stalling_below_users();
    }

    /// 15 and 20: a task does not stall the job unless a task of lower priority than it uses a resource of the job.
    fn no_stalling_below_users(&mut self) {
        let uses = |x: &usize| self.view.requests(*x).iter().any(|request| self.own[request.resource] > 0);
        let lowest = self.lower().rev().find(uses).unwrap_or(self.i);
        self.no_stalling(lowest);
    }

    /// Adds the constraints of restricted segment boosting.
    pub(super) fn segment_boosting(&mut self) -> Result<(), Failure> {
        let most = sections_of_higher(self)?;
        let others = self.m.saturating_sub(1);
        // Sections of lower priority that delay indirectly or preempt, except those of x.
        let sections =
            |model: &Self, but: Option<usize>, from: usize, factor: u64| -> Result<Vec<(usize, i64)>, Failure> {
                let mut terms = Vec::new();
                for entry in model.entries.iter().filter(|entry| entry.task >= from && Some(entry.task) != but) {
                    if let Some((indirect, preempting)) = entry.other {
                        let length = -signed(product(factor, entry.length)?);
                        terms.extend([(indirect, length), (preempting, length)]);
                    }
                }
                Ok(terms)
            };
        let directly = |model: &Self, factor: u64| -> Result<Vec<(usize, i64)>, Failure> {
            let mut terms = Vec::new();
            for entry in model.entries.iter().filter(|entry| entry.task < model.i) {
                if let Some(direct) = entry.direct {
                    terms.push((direct, signed(product(factor, entry.length)?)));
                }
            }
            Ok(terms)
        };
        // 16: co-boosting and stalling by x occur only while a section of higher priority, or a boosted section of
        // another task, executes.
        for x in self.lower() {
            let mut terms = vec![(self.co_boosting(x), 1), (self.stalling(x), 1)];
            terms.extend(directly(self, 1)?);
            terms.extend(sections(self, Some(x), 0, 1)?);
            self.program.at_most(terms, most);
        }
        // 17: on at most m - 1 processors at a time.
        let mut terms: Vec<_> = self.lower().flat_map(|x| [(self.co_boosting(x), 1), (self.stalling(x), 1)]).collect();
        terms.extend(directly(self, others)?);
        terms.extend(sections(self, None, 0, others)?);
        self.program.at_most(terms, product(most, others)?);
        // 18: co-boosting by x occurs only while a section of a task of lower priority than x is boosted.
        for x in self.lower() {
            let mut terms = vec![(self.co_boosting(x), 1)];
            terms.extend(sections(self, None, x + 1, 1)?);
            self.program.at_most(terms, 0);
        }
        // 19: on at most m - 1 processors at a time.
        let mut terms: Vec<_> = self.lower().map(|x| (self.co_boosting(x), 1)).collect();
        terms.extend(sections(self, None, 0, others)?);
        self.program.at_most(terms, 0);
        self.no_stalling_below_users();
        // 21: the m most urgent tasks do not preempt each other.
        if (self.i as u64) < others {
            let urgent = self.entries.iter().filter(|entry| (entry.task as u64) < self.m);
            self.none(urgent.filter_map(|entry| Some(entry.other?.1)).collect());
        }
        // 22: indirect delay by x is limited by the requests of tasks other than x for the job's resources.
        for x in self.lower() {
            let mut times = 0;
            for request in self.view.requests(self.i) {
                times = sum(times, self.issued_by_others(request.resource, Some(x))?)?;
            }
            self.indirect_at_most(x, times);
        }
        Ok(())
    }

    /// Adds the constraints of FMLP+: every other task delays once per segment.
    pub(super) fn segments(&mut self) -> Result<(), Failure> {
        let mut segments = 1;
        for request in self.view.requests(self.i) {
            add_product(&mut segments, 2, request.count)?;
        }
        let waits = self.waits_without(None)?;
        let i = self.i;
        for x in (0..self.view.tasks()).filter(|&x| x != i) {
            let its = || self.entries.iter().filter(|entry| entry.task == x);
            let direct: Vec<_> = its().filter_map(|entry| Some((entry.direct?, 1))).collect();
            let indirect: Vec<_> = its().filter_map(|entry| Some((entry.other?.0, 1))).collect();
            let preempting: Vec<_> = its().filter_map(|entry| Some((entry.other?.1, 1))).collect();
            // Constraints 23 and 24.
            let both = [direct, indirect].concat();
            self.program.at_most([both.clone(), preempting].concat(), segments);
            self.program.at_most(both, waits);
            // Constraint 25.
            if x > self.i {
                let times = self.waits_without(Some(x))?;
                self.indirect_at_most(x, times);
            }
        }
        Ok(())
    }

    /// Returns how often the job may have to wait because of tasks other than `x`.
    fn waits_without(&self, x: Option<usize>) -> Result<u64, Failure> {
        let mut waits = 0;
        for request in self.view.requests(self.i) {
            waits = sum(waits, request.count.min(self.issued_by_others(request.resource, x)?))?;
        }
        Ok(waits)
    }
}
