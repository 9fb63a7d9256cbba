//! Constraints of parallel priority ceilings.

use super::super::sum;
use super::super::view::{add_product, product};
use super::model::Model;
use super::waits::most_urgent;
use crate::Failure;

impl Model<'_> {
    /// 27 to 29: sections of at most m tasks of lower priority stall a request.
    pub(super) fn stalling_by_ceilings(&mut self) -> Result<(), Failure> {
        let lower = self.i + 1..self.view.tasks();
        let deadline = self.view.rows[self.i].deadline;
        if (self.i as u64) >= self.m {
            let ceilings = most_urgent(self.view);
            let (mut each, mut all) = (0, 0);
            for request in self.view.requests(self.i) {
                let q = request.resource;
                if ceilings[q] >= self.i {
                    continue;
                }
                let mut longest: Vec<u64> = lower
                    .clone()
                    .map(|x| {
                        let others = self.view.requests(x).iter().filter(|other| other.resource != q);
                        others.map(|other| other.length).max().unwrap_or(0)
                    })
                    .collect();
                longest.sort_unstable_by(|a, b| b.cmp(a));
                let (mut one, mut together) = (0, 0);
                for (place, &length) in (0..self.m).zip(&longest) {
                    if place + 1 < self.m {
                        one = sum(one, length)?;
                    }
                    add_product(&mut together, self.m - place, length)?;
                }
                add_product(&mut each, one, request.count)?;
                add_product(&mut all, together, request.count)?;
            }
            for x in lower.clone() {
                self.program.at_most(vec![(self.stalling(x), 1)], each.min(deadline));
            }
            let terms = lower.clone().map(|x| (self.stalling(x), 1)).collect();
            self.program.at_most(terms, all.min(deadline));
        }
        let lowest = lower.rev().find(|&x| !self.view.requests(x).is_empty());
        self.no_stalling(lowest.map_or(0, |x| x + 1));
        Ok(())
    }

    /// 31, for reasonable priorities: all except m tasks of lower priority delay within a shorter interval.
    pub(super) fn reasonable(&mut self) -> Result<(), Failure> {
        let ceilings = most_urgent(self.view);
        let response = self.view.rows[self.i].response;
        // (beta, rank) of each task of lower priority; and the least total of the sections of such a task under a
        // ceiling above i.
        let mut betas = Vec::new();
        let mut shortest = None;
        for x in self.i + 1..self.view.tasks() {
            let mut sections = 0;
            for request in self.view.requests(x).iter().filter(|request| ceilings[request.resource] < self.i) {
                add_product(&mut sections, request.count, request.length)?;
            }
            shortest = Some(shortest.map_or(sections, |shortest: u64| shortest.min(sections)));
            let row = &self.view.rows[x];
            let rest = row.period.saturating_sub(row.response);
            let beta = if response > sum(rest, product(2, sections)?)? {
                response - rest - 2 * sections
            } else if response > sections && response <= sum(rest, sections)? {
                response - sections
            } else {
                0
            };
            betas.push((beta, x));
        }
        betas.sort_unstable();
        let interval = response.saturating_sub(shortest.unwrap_or(0));
        for &(_, x) in betas.iter().skip(usize::try_from(self.m).unwrap_or(usize::MAX)) {
            for entry in self.entries.iter().filter(|entry| entry.task == x && ceilings[entry.resource] < self.i) {
                if let Some((indirect, preempting)) = entry.other {
                    let times = product(entry.count, self.view.jobs(x, interval)?)?;
                    self.program.at_most(vec![(indirect, 1), (preempting, 1)], times);
                }
            }
        }
        Ok(())
    }
}
