//! The steps of the running tasks: runs, requests, releases of locks and the ends of jobs.

use super::Simulation;
use crate::config::Execution;
use crate::run_ends::NEVER;
use crate::task::{Asked, Stage, State};
use crate::tracer::Tracer;
use lockwright_model::{CpuId, Duration, Event, Mode, ResourceId, TaskId};
use lockwright_protocol::{Action, Machine};

impl<T: Tracer> Simulation<'_, T> {
    /// Ends the runs that end at this instant. The next step of each is due.
    pub(super) fn end_runs(&mut self) {
        // A run past the end of 64-bit time never ends.
        let mut ending = if self.now == NEVER { 0 } else { self.run_ends.ending(self.now) };
        while ending != 0 {
            let cpu = ending.trailing_zeros() as usize;
            ending &= ending - 1;
            self.run_ends.set(cpu, NEVER);
            if let Some(task) = self.cpus[cpu].running {
                self.advance(task);
                self.unsettle(cpu);
            }
        }
    }

    /// Turns to the next stage of the job.
    #[inline]
    fn advance(&mut self, task: usize) {
        let state = &mut self.tasks[task];
        state.stage += 1;
        state.next = self.stages[state.stage as usize];
    }

    /// Begins or continues a run that lasts for `left`.
    #[inline]
    fn run(&mut self, cpu: usize, left: u64) {
        // A run past the end of 64-bit time never ends.
        self.run_ends.set(cpu, self.now.max(self.cpus[cpu].stalled_until).saturating_add(left));
    }

    /// Takes one step of the running task. Most steps are runs; the function is inlined for them.
    #[inline(always)]
    pub(super) fn step(&mut self, cpu: usize, task: usize) {
        let state = &self.tasks[task];
        match state.next {
            Stage::End => self.finish(cpu, task),
            Stage::Rest(left) => self.run(cpu, left),
            Stage::Run(worst) => {
                let length = match self.config.execution {
                    Execution::Worst => worst,
                    Execution::Random => match self.random.u8(0..4) {
                        0 => 1,
                        1 => self.random.u64(1..=worst),
                        _ => worst,
                    },
                };
                self.run(cpu, length);
            }
            Stage::Lock(_) | Stage::Read(_) if matches!(state.asked, Asked::Spinning(_)) => {}
            Stage::Lock(resource) => {
                self.unsettle(cpu);
                self.lock(task, resource, Mode::Write);
            }
            Stage::Read(resource) => {
                self.unsettle(cpu);
                self.lock(task, resource, Mode::Read);
            }
            Stage::Unlock(resource) => {
                self.unsettle(cpu);
                self.unlock(task, resource);
            }
        }
    }

    #[inline(never)]
    fn lock(&mut self, task: usize, resource: ResourceId, mode: Mode) {
        let (id, source) = (TaskId::new(task), self.machines.source(resource));
        match self.tasks[task].asked {
            Asked::Not => {
                self.record(self.now, task, Event::Request(resource));
                self.tasks[task].asked = Asked::Since(self.now);
                self.call(source, |machine, act| match mode {
                    Mode::Write => machine.request(id, resource, act),
                    Mode::Read => machine.request_read(id, resource, act),
                });
            }
            Asked::Since(_) => self.call(source, |machine, act| machine.woken(id, act)),
            Asked::Spinning(_) | Asked::Granted(_) => {}
        }
        if let Asked::Granted(since) = self.tasks[task].asked
            && self.tasks[task].state == State::Running
        {
            let state = &mut self.tasks[task];
            state.asked = Asked::Not;
            state.waited += self.now - since;
            self.advance(task);
            self.record(self.now, task, Event::Acquire(resource));
            self.order_again(task);
        }
    }

    /// Ends a section, unless the machine restarts it. In that case the machine has no other action.
    #[inline(never)]
    fn unlock(&mut self, task: usize, resource: ResourceId) {
        let (id, source) = (TaskId::new(task), self.machines.source(resource));
        let end_section = |simulation: &mut Self| {
            simulation.record(simulation.now, task, Event::Release(resource));
            simulation.advance(task);
        };
        let mut is_first = true;
        let release = |machine: &mut dyn Machine, act: &mut dyn FnMut(Action)| machine.release(id, resource, act);
        self.call_and(source, release, |simulation, action| {
            if std::mem::take(&mut is_first) && !matches!(action, Action::Restart { .. }) {
                end_section(simulation);
            }
            simulation.carry_out(source, action);
        });
        if is_first {
            end_section(self);
        }
        self.order_again(task);
    }

    #[inline(never)]
    fn finish(&mut self, cpu: usize, task: usize) {
        self.record(self.now, task, Event::Finish);
        self.account(cpu);
        debug_assert_eq!(self.first(cpu), self.tasks[task].own_cpu.index(), "a job ends where it belongs");
        let executed = self.cpus[self.tasks[task].own_cpu.index()].executed_at_least(self.tasks[task].rank as usize);
        let state = &mut self.tasks[task];
        if let Some(job) = state.job.take() {
            let response = self.now - job.arrival;
            // For other jobs, spinning counts as execution; for the job itself, it counts as blocking.
            let delayed = (self.now - job.release + state.spun).saturating_sub(executed - job.executed);
            let blocking = match self.has_clusters {
                true => self.aside[task].delayed,
                false => delayed.saturating_sub(state.away - job.away),
            };
            let seen = &mut self.aside[task].seen;
            seen.jobs += 1;
            seen.misses += u64::from(response > state.deadline);
            seen.response = seen.response.max(Some(Duration::from_ns(response)));
            // Blocking is defined by fixed priorities.
            if !self.by_deadline {
                seen.blocking = seen.blocking.max(Some(Duration::from_ns(blocking)));
            }
            seen.lock_wait = seen.lock_wait.max(Some(Duration::from_ns(state.waited)));
        }
        self.tell(|machine, act| machine.finish(TaskId::new(task), act));
        match self.aside[task].backlog.pop_front() {
            Some(job) => {
                self.unsettle(cpu);
                self.start_job(task, job);
            }
            None => {
                self.leave(cpu, task);
                (self.tasks[task].state, self.tasks[task].cpu) = (State::Idle, CpuId::new(self.first(cpu)));
            }
        }
    }
}
