//! Releases of jobs, and changes of base priorities.

use super::Simulation;
use crate::config::Arrivals;
use crate::task::{Asked, Job, Stage, State};
use crate::tracer::Tracer;
use lockwright_model::{Event, Priority, ResourceId, TaskId};
use std::cmp::Reverse;

impl<T: Tracer> Simulation<'_, T> {
    /// Draws the next release of a task: its next arrival, and a delay of at most its jitter.
    pub(super) fn draw_release(&mut self, task: usize) -> u64 {
        let jitter = self.tasks[task].jitter;
        let delay = match jitter {
            0 => 0,
            _ => match self.random.u8(0..4) {
                0 => jitter,
                1 => self.random.u64(0..=jitter),
                _ => 0,
            },
        };
        // No job is released past the end of 64-bit time.
        let at = self.tasks[task].next_arrival.saturating_add(delay);
        self.late(at)
    }

    pub(super) fn release_jobs(&mut self) {
        let at = self.now;
        while self.releases.first() == at && at != u64::MAX {
            let task = self.releases.whose();
            if self.put_off(task) {
                continue;
            }
            let arrival = self.tasks[task].next_arrival;
            let period = self.tasks[task].period;
            let more = match self.config.arrivals {
                Arrivals::Sporadic if self.random.u8(0..4) == 0 => self.random.u64(0..=period),
                _ => 0,
            };
            self.tasks[task].next_arrival = arrival.saturating_add(period).saturating_add(more);
            // If its interrupt waited for others, the next one may be due before now.
            let next = self.draw_release(task).max(at);
            self.releases.set(task, next);
            self.released += 1;
            self.interrupt(task);
            self.acting = self.tasks[task].own_cpu.index();
            self.record(arrival, task, Event::Arrive);
            let (cpu, rank) = (self.tasks[task].own_cpu.index(), self.tasks[task].rank);
            self.account(cpu);
            self.account(self.tasks[task].cpu.index());
            let executed = self.cpus[cpu].executed_at_least(rank as usize);
            let job = Job { arrival, release: at, executed, away: self.tasks[task].away };
            if self.tasks[task].job.is_some() {
                self.aside[task].backlog.push_back(job);
            } else {
                self.make_ready(task);
                self.start_job(task, job);
            }
        }
    }

    pub(super) fn start_job(&mut self, task: usize, job: Job) {
        let state = &mut self.tasks[task];
        (state.job, state.asked) = (Some(job), Asked::Not);
        (state.stage, state.next) = (state.first_stage, self.stages[state.first_stage as usize]);
        (state.waited, state.spun) = (0, 0);
        self.aside[task].delayed = 0;
        if self.by_deadline && self.is_global {
            return self.order_globally();
        }
        if self.by_deadline {
            self.order(self.tasks[task].own_cpu.index(), Some(task));
        }
        self.tell(|machine, act| machine.arrive(TaskId::new(task), act));
        if self.by_deadline && self.tasks[task].state == State::Waiting {
            self.order(self.tasks[task].own_cpu.index(), Some(task));
        }
    }

    /// Gives the jobs of a processor priorities in the order of their deadlines.
    ///
    /// The stack resource policy starts the job with the earliest deadline, or none: while that job is held, no job
    /// with a later deadline starts, whatever its preemption level is. The job of `new` has not begun, even if its task
    /// is on the processor with the previous job.
    pub(super) fn order(&mut self, cpu: usize, new: Option<usize>) {
        let due = |task: usize| {
            let job = self.tasks[task].job.filter(|_| self.tasks[task].own_cpu.index() == cpu)?;
            Some((job.arrival.saturating_add(self.tasks[task].deadline), task))
        };
        let mut jobs: Vec<(u64, usize)> = (0..self.tasks.len()).filter_map(due).collect();
        if self.has_long {
            return self.order_above_ceilings(&jobs);
        }
        let is_held = |job: &&(u64, usize)| self.tasks[job.1].state == State::Waiting;
        let first_held = jobs.iter().filter(is_held).min().copied();
        let has_begun = |task: usize| {
            let state = &self.tasks[task];
            let is_on = state.state == State::Running && new != Some(task);
            state.has_begun() || is_on
        };
        jobs.sort_unstable_by_key(|&job| {
            let is_after = first_held.is_some_and(|held| job > held) && !has_begun(job.1);
            Reverse((is_after, job))
        });
        for (level, (_, task)) in jobs.into_iter().enumerate() {
            // At most EXECUTED_TASKS_MAX.
            self.set_view(task, 0, Priority::base(level as u32 + 1));
        }
    }

    /// As [`Simulation::order`], for jobs of one processor that may wait for long resources. A job in a section of its
    /// processor is before each job, even if that one waits, whose preemption level is not above the ceiling.
    fn order_above_ceilings(&mut self, jobs: &[(u64, usize)]) {
        let levels = &self.levels;
        let key = |&own: &(u64, usize)| {
            let ceiling = self.ceiling_of(own.1);
            let held = jobs.iter().filter(|other| other.1 != own.1 && Some(levels[other.1]) <= ceiling);
            let first = held.min().map_or(own, |&held| held.min(own));
            // Before the job itself; of several, the one with the highest ceiling.
            (Reverse(first), first != own, ceiling, own.1)
        };
        let mut keys: Vec<_> = jobs.iter().map(key).collect();
        keys.sort_unstable();
        for (level, (.., task)) in keys.into_iter().enumerate() {
            // At most EXECUTED_TASKS_MAX.
            self.set_view(task, 0, Priority::base(level as u32 + 1));
        }
    }

    /// Returns the highest ceiling of the resources under SRP that a job holds.
    fn ceiling_of(&self, task: usize) -> Option<Priority> {
        let state = &self.tasks[task];
        let mut held: Vec<ResourceId> = Vec::new();
        for stage in &self.stages[state.first_stage as usize..state.stage as usize] {
            match *stage {
                Stage::Lock(resource) | Stage::Read(resource) => held.push(resource),
                Stage::Unlock(resource) => held.retain(|&other| other != resource),
                _ => {}
            }
        }
        held.into_iter().filter_map(|resource| self.ceilings[resource.index()]).max()
    }

    /// Orders the jobs of the processor of a task anew if it has entered or left a section that counts in the order.
    pub(super) fn order_again(&mut self, task: usize) {
        if self.has_long {
            self.order(self.tasks[task].own_cpu.index(), None);
        }
    }

    pub(super) fn change_priorities(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at.as_ns() == self.now) {
            let index = change.task.index();
            self.set_view(index, 0, change.priority);
            for source in 0..self.machines.count() {
                self.call(source, |machine, act| machine.set_base(change.task, change.priority, act));
            }
        }
    }
}
