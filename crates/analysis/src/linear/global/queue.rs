//! Constraints of the queue order.

use super::super::sum;
use super::super::view::product;
use super::model::Model;
use crate::Failure;

impl Model<'_> {
    /// 8: each other task delays each request once.
    pub(super) fn fifo(&mut self) {
        for entry in &self.entries {
            if let Some(direct) = entry.direct {
                self.program.at_most(vec![(direct, 1)], self.own[entry.resource]);
            }
        }
    }

    /// Adds the constraints of queues by priority.
    pub(super) fn priority(&mut self) -> Result<(), Failure> {
        // 9: lower priorities delay each request once.
        for (q, &own) in self.own.iter().enumerate() {
            let lower = self.entries.iter().filter(|entry| entry.task > self.i && entry.resource == q);
            let terms = lower.filter_map(|entry| Some((entry.direct?, 1))).collect();
            self.program.at_most(terms, own);
        }
        // 10: higher priorities delay as often as they have requests while one request waits.
        let waits = self.longest_waits()?;
        for entry in self.entries.iter().filter(|entry| entry.task < self.i) {
            let (Some(direct), Some(wait)) = (entry.direct, waits[entry.resource]) else { continue };
            let each = product(entry.count, self.view.jobs(entry.task, wait)?)?;
            self.program.at_most(vec![(direct, 1)], product(each, self.own[entry.resource])?);
        }
        Ok(())
    }

    /// 26, for PRSB: indirect delay by x is limited by the number of direct delays by others.
    pub(super) fn indirect_per_wait(&mut self) -> Result<(), Failure> {
        let waits = self.longest_waits()?;
        let mut times = 0;
        for (q, &own) in self.own.iter().enumerate().filter(|&(_, &own)| own > 0) {
            let Some(wait) = waits[q] else { return Ok(()) };
            let users = || self.entries.iter().filter(|entry| entry.resource == q);
            let mut each = u64::from(users().any(|entry| entry.task > self.i));
            for entry in users().filter(|entry| entry.task < self.i) {
                each = sum(each, product(entry.count, self.view.jobs(entry.task, wait)?)?)?;
            }
            times = sum(times, product(each, own)?)?;
        }
        for x in self.i + 1..self.view.tasks() {
            self.indirect_at_most(x, times);
        }
        Ok(())
    }

    /// Limits indirect delay by requests of `x` to `times`.
    pub(super) fn indirect_at_most(&mut self, x: usize, times: u64) {
        let its = self.entries.iter().filter(|entry| entry.task == x);
        let terms = its.filter_map(|entry| Some((entry.other?.0, 1))).collect();
        self.program.at_most(terms, times);
    }
}
