//! The assignment of ready tasks to processors.

use super::Simulation;
use crate::run_ends::NEVER;
use crate::task::{Stage, State};
use crate::tracer::Tracer;
use lockwright_model::{CpuId, Event};

impl<T: Tracer> Simulation<'_, T> {
    /// Lets every processor take all steps that take no time.
    ///
    /// BOUND: each turn of a processor takes one of the finitely many steps before the next run of a ready job, or
    /// leaves the processor idle or with a run of at least a nanosecond. An interruptible section that restarts has
    /// such a run.
    pub(super) fn settle(&mut self) {
        while self.unsettled != 0 {
            let cpu = self.draw_unsettled();
            if self.is_plain {
                self.dispatch(cpu, cpu);
            } else if !self.dispatch_general(cpu) {
                continue;
            }
            if let Some(task) = self.cpus[cpu].running
                && self.run_ends.get(cpu) == NEVER
            {
                if self.cpus[cpu].stalled_until > self.now && !self.goes_on(task) {
                    self.cpus[cpu].deferred = true;
                } else {
                    self.acting = cpu;
                    self.step(cpu, task);
                }
            }
        }
    }

    /// Decides which task the processor executes, under every scheduler and with overheads. Returns `false` if the
    /// decision waits until the overheads have ended.
    #[inline(never)]
    fn dispatch_general(&mut self, cpu: usize) -> bool {
        if self.is_global {
            self.dispatch_globally();
        } else if self.has_clusters && self.clusters[cpu] != 1 << cpu {
            self.dispatch_cluster(cpu);
        } else if self.cpus[cpu].stalled_until > self.now {
            self.cpus[cpu].deferred = true;
            return false;
        } else {
            self.dispatch(cpu, cpu);
        }
        self.switch(cpu);
        true
    }

    /// Marks a processor that has a decision to make.
    #[inline]
    pub(super) fn unsettle(&mut self, cpu: usize) {
        // There are at most 64 processors.
        self.unsettled |= 1_u64.wrapping_shl(cpu as u32);
    }

    /// Chooses the next processor that has a decision to make, and removes its mark.
    #[inline]
    fn draw_unsettled(&mut self) -> usize {
        let mut left = self.unsettled;
        if self.config.shuffle {
            for _ in 0..self.random.u32(0..left.count_ones()) {
                left &= left - 1;
            }
        }
        // The lowest bit.
        self.unsettled ^= left & left.wrapping_neg();
        left.trailing_zeros() as usize
    }

    /// Assigns the processors of a cluster to its most urgent tasks, one after the other. Each task gets an idle
    /// processor, its last one if that is idle, or else the processor of the least urgent task.
    ///
    /// BOUND: after each turn except the last, one more of the most urgent tasks executes.
    fn dispatch_cluster(&mut self, cpu: usize) {
        let (own, members) = (self.first(cpu), self.clusters[cpu]);
        while let Some((priority, first)) = self.cpus[own].first() {
            let last = self.aside[first].last_cpu;
            let running = |cpu: usize| self.cpus[cpu].running.map(|task| self.tasks[task].priority);
            let members = (0..self.cpus.len()).filter(|&cpu| members >> cpu & 1 == 1);
            let least = members.min_by_key(|&cpu| (running(cpu), cpu != last));
            let Some(least) = least.filter(|&cpu| running(cpu) < Some(priority)) else { return };
            if least != last {
                self.aside[first].last_cpu = least;
                self.record(self.now, first, Event::Migrate(CpuId::new(least)));
            }
            self.dispatch(own, least);
            self.unsettle(least);
        }
    }

    /// Starts the most urgent ready task of `own` on the processor if it is more urgent than the running one.
    ///
    /// In most cases the running task stays. The function is inlined for them.
    #[inline(always)]
    fn dispatch(&mut self, own: usize, cpu: usize) {
        let Some((priority, first)) = self.cpus[own].first() else { return };
        if self.cpus[cpu].running.is_none_or(|task| self.tasks[task].priority < priority) {
            self.cpus[own].pop_first();
            self.put(own, cpu, first);
        }
    }

    /// Replaces the running task of the processor by a task of `own` that is no longer among its ready tasks.
    #[inline(never)]
    pub(super) fn put(&mut self, own: usize, cpu: usize, first: usize) {
        let preempted = self.cpus[cpu].running;
        match preempted {
            Some(task) => self.leave(cpu, task),
            None => self.account(cpu),
        }
        if let Some(task) = preempted {
            let state = &mut self.tasks[task];
            (state.state, state.cpu) = (State::Ready, CpuId::new(own));
            self.cpus[own].push_head(state.priority, task);
        }
        self.cpus[cpu].running = Some(first);
        let state = &mut self.tasks[first];
        (state.state, state.cpu) = (State::Running, CpuId::new(cpu));
        self.record(self.now, first, Event::Run);
    }

    #[inline]
    pub(super) fn make_ready(&mut self, task: usize) {
        let state = &mut self.tasks[task];
        state.state = State::Ready;
        let cpu = state.cpu.index();
        self.cpus[cpu].push_tail(state.priority, task);
        self.unsettle(cpu);
    }

    /// Removes the running task from its processor, and keeps the rest of its run.
    pub(super) fn leave(&mut self, cpu: usize, task: usize) {
        self.account(cpu);
        let here = &mut self.cpus[cpu];
        here.running = None;
        let ends = self.run_ends.get(cpu);
        if ends != NEVER {
            self.tasks[task].next = Stage::Rest(ends - self.now.max(here.stalled_until));
            self.run_ends.set(cpu, NEVER);
        }
        self.unsettle(cpu);
        self.record(self.now, task, Event::Stop);
    }

    /// Removes a task from its processor, whether it executes there or is ready.
    #[inline]
    pub(super) fn withdraw(&mut self, task: usize) {
        let cpu = self.tasks[task].cpu.index();
        match self.tasks[task].state {
            State::Running => {
                self.leave(cpu, task);
                self.tasks[task].cpu = CpuId::new(self.first(cpu));
            }
            State::Ready => self.cpus[cpu].remove(task),
            State::Idle | State::Waiting => {}
        }
    }

    /// Returns the first processor of the cluster of `cpu`.
    pub(super) fn first(&self, cpu: usize) -> usize {
        self.clusters[cpu].trailing_zeros() as usize
    }
}
