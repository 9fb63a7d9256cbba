//! The overheads of the machine: interrupts, context switches and caches.

use super::Simulation;
use crate::config::Taken;
use crate::run_ends::NEVER;
use crate::task::{Asked, Stage};
use crate::tracer::Tracer;

impl<T: Tracer> Simulation<'_, T> {
    /// Draws the time of an interrupt that is due at `at`.
    pub(super) fn late(&mut self, at: u64, taken: Taken) -> u64 {
        let most = taken.latency.as_ns();
        at.saturating_add(match self.random.u8(0..3) {
            _ if most == 0 => 0,
            0 => most,
            1 => self.random.u64(0..=most),
            _ => 0,
        })
    }

    /// Executes the ticks of this instant.
    pub(super) fn tick(&mut self) {
        let Some(taken) = self.config.taken else { return };
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].tick.1 == self.now {
                self.stall(cpu, taken.tick.as_ns());
                let next = self.cpus[cpu].tick.0.saturating_add(taken.tick_period.as_ns());
                self.cpus[cpu].tick = (next, self.late(next, taken).max(self.now + 1));
            }
        }
    }

    /// Makes the deferred decisions of processors whose overheads have ended.
    pub(super) fn go_on(&mut self) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].deferred && self.cpus[cpu].stalled_until <= self.now {
                self.cpus[cpu].deferred = false;
                self.unsettle(cpu);
            }
        }
    }

    /// Executes the interrupt of a release.
    pub(super) fn interrupt(&mut self, task: usize) {
        let Some(taken) = self.config.taken else { return };
        let own = self.tasks[task].own_cpu.index();
        let mut members = self.clusters[own];
        for _ in 0..self.random.u32(0..members.count_ones().max(1)) {
            members &= members - 1;
        }
        self.stall(members.trailing_zeros() as usize, taken.release.as_ns());
    }

    /// Occupies a processor with overheads for `ns`.
    fn stall(&mut self, cpu: usize, ns: u64) {
        let until = &mut self.cpus[cpu].stalled_until;
        *until = (*until).max(self.now).saturating_add(ns);
        let ends = self.run_ends.get(cpu);
        if ends != NEVER {
            self.run_ends.set(cpu, ends.saturating_add(ns));
        }
    }

    /// Charges a context switch if the processor executes another task than before.
    pub(super) fn switch(&mut self, cpu: usize) {
        let Some(taken) = self.config.taken else { return };
        let running = self.cpus[cpu].running;
        if self.cpus[cpu].given != running {
            self.cpus[cpu].given = running;
            self.stall(cpu, taken.switch.as_ns());
            if running.is_some_and(|task| self.tasks[task].has_begun()) {
                self.stall(cpu, taken.refill.as_ns());
            }
        }
    }

    /// Whether the task makes no decision when the overheads of its processor end: it runs, or spins.
    pub(super) fn goes_on(&self, task: usize) -> bool {
        let state = &self.tasks[task];
        matches!(state.next, Stage::Run(_) | Stage::Rest(_)) || matches!(state.asked, Asked::Spinning(_))
    }
}
