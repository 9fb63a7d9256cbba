//! Global scheduling: the jobs of all tasks on all processors.
//!
//! With m processors, the m most urgent jobs that do not wait are linked to one processor each. A linked job executes
//! on its processor, unless another job there is not preempted: then it waits for that job. A job that arrives is
//! linked to the processor of the least urgent linked job, and a processor that becomes free to the most urgent job
//! that is not linked. So a job waits at most once for a job that is not preempted: when it arrives, or resumes. The
//! rule is that of Block, Leontyev, Brandenburg, Anderson, RTCSA 2007.

use super::Simulation;
use crate::task::State;
use crate::tracer::Tracer;
use lockwright_model::{CpuId, Event, Priority, TaskId};
use std::cmp::Reverse;

impl<T: Tracer> Simulation<'_, T> {
    /// Gives all jobs priorities in the order of their deadlines. The machines learn them as base priorities, so
    /// waiters have the same order, and an owner inherits the deadlines of its waiters.
    pub(super) fn order_globally(&mut self) {
        let due = |task: usize| {
            let job = self.tasks[task].job?;
            Some((job.arrival.saturating_add(self.tasks[task].deadline), task))
        };
        let mut jobs: Vec<(u64, usize)> = (0..self.tasks.len()).filter_map(due).collect();
        jobs.sort_unstable_by_key(|&job| Reverse(job));
        for (level, (_, task)) in jobs.into_iter().enumerate() {
            // At most EXECUTED_TASKS_MAX.
            let base = Priority::base(level as u32 + 1);
            if self.base(task) != base {
                self.set_view(task, 0, base);
                for source in 0..self.machines.count() {
                    self.call(source, |machine, act| machine.set_base(TaskId::new(task), base, act));
                }
            }
        }
    }

    /// Links processors to the most urgent jobs, and lets each linked job execute if its processor can be preempted.
    pub(super) fn dispatch_globally(&mut self) {
        for cpu in 0..self.links.len() {
            let is_pending = |task: usize| matches!(self.tasks[task].state, State::Ready | State::Running);
            self.links[cpu] = self.links[cpu].filter(|&task| is_pending(task));
        }
        // BOUND: each link is to a more urgent job than the one before, or to a processor without one.
        while let Some(task) = self.first_unlinked() {
            let Some(cpu) = self.processor_for(task) else { break };
            self.link(task, cpu);
        }
        for cpu in 0..self.links.len() {
            let running = self.cpus[cpu].running;
            if let Some(task) = self.links[cpu].filter(|&task| running != Some(task))
                && running.is_none_or(|other| self.tasks[other].priority < Priority::NON_PREEMPTIVE)
            {
                if self.cpus[cpu].stalled_until > self.now {
                    // The decision waits until the overheads have ended.
                    self.cpus[cpu].deferred = true;
                } else {
                    self.execute(task, cpu);
                }
            }
        }
    }

    /// Returns the most urgent job that no processor is linked to. Of equally urgent ones, it is one that executes, or
    /// else the first to come.
    fn first_unlinked(&self) -> Option<usize> {
        let is_unlinked = |task: &usize| !self.links.contains(&Some(*task));
        let executing = self.cpus.iter().filter_map(|cpu| cpu.running).filter(is_unlinked);
        let executing = executing.max_by_key(|&task| self.urgency(task));
        let ready = self.cpus[0].ready().find(is_unlinked);
        match (executing, ready) {
            (Some(one), Some(other)) if self.urgency(one) < self.urgency(other) => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// Returns the processor to which a job is linked next: one without a link, or the one with the least urgent job if
    /// that is less urgent.
    fn processor_for(&self, task: usize) -> Option<usize> {
        let last = self.aside[task].last_cpu;
        let free = (0..self.links.len()).filter(|&cpu| self.links[cpu].is_none());
        let free = free.min_by_key(|&cpu| (self.cpus[cpu].running.is_some(), cpu != last, cpu));
        let least = || {
            let linked = (0..self.links.len()).filter_map(|cpu| Some((self.urgency(self.links[cpu]?), cpu)));
            linked.min().filter(|&(least, _)| least < self.urgency(task)).map(|(_, cpu)| cpu)
        };
        free.or_else(least)
    }

    /// Links a job to a processor. A job that executes on another one, because it is not preempted, is linked to that
    /// one, and the job that was linked there changes to `cpu`.
    fn link(&mut self, task: usize, cpu: usize) {
        let executes = (0..self.links.len()).find(|&other| self.cpus[other].running == Some(task));
        if let Some(other) = executes.filter(|&other| other != cpu) {
            self.links[cpu] = self.links[other];
            self.links[other] = Some(task);
        } else {
            self.links[cpu] = Some(task);
        }
    }

    /// Lets a ready job execute on the processor.
    fn execute(&mut self, task: usize, cpu: usize) {
        if self.aside[task].last_cpu != cpu {
            self.aside[task].last_cpu = cpu;
            self.record(self.now, task, Event::Migrate(CpuId::new(cpu)));
        }
        self.cpus[0].remove(task);
        self.put(0, cpu, task);
        self.unsettle(cpu);
    }

    /// Returns the priority by which processors are linked to a job. A job that is not preempted keeps its own.
    fn urgency(&self, task: usize) -> Priority {
        let priority = self.tasks[task].priority;
        if priority < Priority::NON_PREEMPTIVE { priority } else { self.base(task) }
    }

    fn base(&self, task: usize) -> Priority {
        self.views[task * (1 + self.machines.count())]
    }
}
