//! The overheads of the machine: interrupts, also between processors, context switches and caches.

use super::Simulation;
use crate::config::Taken;
use crate::run_ends::NEVER;
use crate::task::{Asked, Stage, State};
use crate::tracer::Tracer;
use lockwright_model::Duration;

impl<T: Tracer> Simulation<'_, T> {
    /// Draws the time of an interrupt that is due at `at`.
    pub(super) fn late(&mut self, at: u64) -> u64 {
        let latency = self.config.taken.as_ref().map_or(Duration::ZERO, |taken| taken.latency);
        self.drawn(at, latency)
    }

    /// Draws a time at most `most` after `at`.
    fn drawn(&mut self, at: u64, most: Duration) -> u64 {
        let most = most.as_ns();
        if most == 0 {
            return at;
        }
        at.saturating_add(match self.random.u8(0..3) {
            0 => most,
            1 => self.random.u64(0..=most),
            _ => 0,
        })
    }

    /// Executes the ticks of this instant, and begins its scripted stalls.
    pub(super) fn tick(&mut self) {
        while let Some(stall) = self.stalls.pop_if(|stall| stall.at.as_ns() == self.now) {
            self.stall(stall.cpu.index(), stall.length.as_ns());
        }
        let Some(&Taken { tick, tick_period, .. }) = self.config.taken.as_ref() else { return };
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].tick.1 == self.now {
                self.stall(cpu, tick.as_ns());
                let next = self.cpus[cpu].tick.0.saturating_add(tick_period.as_ns());
                self.cpus[cpu].tick = (next, self.late(next).max(self.now + 1));
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

    /// Executes the interrupt of a release if the job is released after it, and puts the release off. Returns whether
    /// it did.
    pub(super) fn put_off(&mut self, task: usize) -> bool {
        let Some(&Taken { release, dedicated, ipi, .. }) = self.config.taken.as_ref() else { return false };
        let own = self.tasks[task].own_cpu.index();
        let is_elsewhere = dedicated || self.clusters[own] != 1 << own && ipi > Duration::ZERO;
        if !is_elsewhere || self.aside[task].is_put_off {
            return false;
        }
        let mut ends = self.now;
        if dedicated {
            self.interrupts_until = self.interrupts_until.max(self.now).saturating_add(release.as_ns());
            ends = self.interrupts_until;
        } else {
            self.interrupt(task);
        }
        self.aside[task].is_put_off = true;
        let released = self.drawn(ends, ipi);
        self.releases.set(task, released);
        true
    }

    /// Executes the interrupt of a release, unless it was executed when the release was put off.
    pub(super) fn interrupt(&mut self, task: usize) {
        let Some(&Taken { release, .. }) = self.config.taken.as_ref() else { return };
        if std::mem::take(&mut self.aside[task].is_put_off) {
            return;
        }
        let mut members = self.clusters[self.tasks[task].own_cpu.index()];
        for _ in 0..self.random.u32(0..members.count_ones().max(1)) {
            members &= members - 1;
        }
        self.stall(members.trailing_zeros() as usize, release.as_ns());
    }

    /// Makes a task ready on its processor, which notices it later if another processor acts.
    pub(super) fn notify(&mut self, task: usize) {
        let is_here = self.clusters[self.tasks[task].cpu.index()] == 1 << self.acting;
        let ipi = self.config.taken.as_ref().map_or(Duration::ZERO, |taken| taken.ipi);
        let at = if is_here { self.now } else { self.drawn(self.now, ipi) };
        if at > self.now {
            self.tasks[task].state = State::Waiting;
            self.notices.push((at, task));
        } else {
            self.make_ready(task);
        }
    }

    /// Whether a task is to become ready when its processor notices it.
    pub(super) fn is_to_notice(&self, task: usize) -> bool {
        self.notices.iter().any(|&(_, other)| other == task)
    }

    /// Forgets that a task is to become ready. Returns whether it was.
    pub(super) fn forget(&mut self, task: usize) -> bool {
        let before = self.notices.len();
        self.notices.retain(|&(_, other)| other != task);
        self.notices.len() < before
    }

    /// Makes the tasks ready that their processors notice now.
    pub(super) fn notice(&mut self) {
        while let Some(place) = self.notices.iter().position(|&(at, _)| at == self.now) {
            let (_, task) = self.notices.remove(place);
            self.make_ready(task);
            if self.by_deadline && !self.is_global {
                self.order(self.tasks[task].own_cpu.index(), None);
            }
        }
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
        let Some(taken) = &self.config.taken else { return };
        let running = self.cpus[cpu].running;
        if self.cpus[cpu].given != running {
            let mut takes = taken.switch;
            if let Some(task) = running.filter(|&task| self.tasks[task].has_begun()) {
                takes = [takes, taken.refill].iter().chain(taken.refills.get(task)).copied().sum();
            }
            self.cpus[cpu].given = running;
            self.stall(cpu, takes.as_ns());
        }
    }

    /// Whether the task makes no decision when the overheads of its processor end: it runs, or spins.
    pub(super) fn goes_on(&self, task: usize) -> bool {
        let state = &self.tasks[task];
        matches!(state.next, Stage::Run(_) | Stage::Rest(_)) || matches!(state.asked, Asked::Spinning(_))
    }
}
