//! Events of the machines, and their actions, which are carried out as they are issued.

use super::Simulation;
use crate::machines::Source;
use crate::task::{Asked, Stage, State};
use crate::tracer::Tracer;
use lockwright_model::{CpuId, Event, Priority, ResourceId};
use lockwright_protocol::{Action, Machine, Refusal};

impl<T: Tracer> Simulation<'_, T> {
    /// Passes an event to the machines that count jobs.
    pub(super) fn tell(&mut self, event: impl Fn(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>) {
        for place in 0..self.machines.counting().len() {
            let source = self.machines.counting()[place];
            self.call(source, &event);
        }
    }

    /// Passes an event to a machine, and carries out each of its actions at once.
    pub(super) fn call(
        &mut self,
        source: Source,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) {
        self.call_and(source, event, |simulation, action| simulation.carry_out(source, action));
    }

    /// As [`Simulation::call`], with a function that carries out the actions. That function must not use the machine,
    /// which is taken out of its place.
    #[inline]
    pub(super) fn call_and(
        &mut self,
        source: Source,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
        mut carry_out: impl FnMut(&mut Self, Action),
    ) {
        let mut machine = self.machines.take_out(source);
        event(&mut *machine, &mut |action| carry_out(self, action))
            .expect("a machine refuses no event of a valid system");
        self.machines.put_back(source, machine);
    }

    /// Carries out an action. The function is inlined, so that the compiler sees which action it is.
    #[inline(always)]
    pub(super) fn carry_out(&mut self, source: Source, action: Action) {
        match action {
            Action::Grant { task, .. } => {
                let cpu = self.tasks[task.index()].cpu.index();
                // If no job has spun, the time until now is accounted later in the same way.
                if self.has_spun {
                    self.account(cpu);
                }
                let asked = &mut self.tasks[task.index()].asked;
                if let Asked::Since(since) | Asked::Spinning(since) = *asked {
                    *asked = Asked::Granted(since);
                    self.unsettle(cpu);
                }
            }
            Action::Spin { task, .. } => {
                self.has_spun = true;
                self.account(self.tasks[task.index()].cpu.index());
                let asked = &mut self.tasks[task.index()].asked;
                if let Asked::Since(since) = *asked {
                    *asked = Asked::Spinning(since);
                }
            }
            Action::Block { task, .. } | Action::Hold { task } => {
                self.withdraw(task.index());
                self.forget(task.index());
                self.tasks[task.index()].state = State::Waiting;
            }
            Action::Restart { task, resource } => self.restart(task.index(), resource),
            Action::Migrate { task, cpu, .. } => self.migrate(source, task.index(), cpu),
            Action::Wake { task } => {
                let task = task.index();
                if self.tasks[task].state == State::Waiting && !self.is_to_notice(task) {
                    self.notify(task);
                    if self.by_deadline && !self.is_global {
                        self.order(self.tasks[task].own_cpu.index(), None);
                    }
                }
            }
            Action::SetPriority { task, priority, .. } => self.set_view(task.index(), 1 + source, priority),
        }
    }

    /// Restarts the section that the task has just executed to its end.
    fn restart(&mut self, task: usize, resource: ResourceId) {
        self.record(self.now, task, Event::Restart(resource));
        let state = &mut self.tasks[task];
        let so_far = &self.stages[state.first_stage as usize..state.stage as usize];
        let is_request = |stage: &Stage| [Stage::Lock(resource), Stage::Read(resource)].contains(stage);
        let again = so_far.iter().rev().take_while(|stage| !is_request(stage)).count();
        // At most STEPS_MAX: the lock is a step of the same body.
        state.stage -= again as u32;
        state.next = self.stages[state.stage as usize];
        self.aside[task].seen.restarts += 1;
    }

    fn migrate(&mut self, source: Source, task: usize, cpu: CpuId) {
        if self.tasks[task].cpu == cpu {
            return;
        }
        let is_to_continue = matches!(self.tasks[task].state, State::Running | State::Ready) || self.forget(task);
        self.withdraw(task);
        self.tasks[task].cpu = cpu;
        // There are at most RESOURCES_MAX machines.
        self.tasks[task].sent_by = Some(source as u16).filter(|_| cpu != self.tasks[task].own_cpu);
        self.tasks[task].priority = self.effective(task);
        self.record(self.now, task, Event::Migrate(cpu));
        if is_to_continue {
            self.notify(task);
        }
    }

    /// Returns the base priority of a task, and its priority from each machine.
    #[inline(always)]
    fn views_of(&self, task: usize) -> &[Priority] {
        let width = 1 + self.machines.count();
        &self.views[task * width..][..width]
    }

    /// Returns the highest of the base priority and the priorities from the machines. On a processor to which a machine
    /// moved the task, only the priority from that machine counts, as the others do not consider that processor's
    /// tasks.
    #[inline(always)]
    fn effective(&self, task: usize) -> Priority {
        let views = self.views_of(task);
        match self.tasks[task].sent_by {
            Some(source) => views[1 + source as usize],
            // The machines work with preemption levels, not deadlines. Only priorities above all levels count.
            None if self.by_deadline && !self.is_global => {
                let above = views[1..].iter().copied().filter(|&view| view > Priority::BASE_MAX.raised());
                above.fold(views[0], Priority::max)
            }
            None => match *views {
                // Most systems have one or two machines.
                [base, told] => base.max(told),
                [base, one, other] => base.max(one).max(other),
                _ => views.iter().copied().fold(Priority::MIN, Priority::max),
            },
        }
    }

    /// Sets the base priority (view 0) or the priority from a machine (the next views) of a task.
    pub(super) fn set_view(&mut self, task: usize, view: usize, priority: Priority) {
        self.views[task * (1 + self.machines.count()) + view] = priority;
        let effective = self.effective(task);
        let state = &mut self.tasks[task];
        let before = std::mem::replace(&mut state.priority, effective);
        if effective == before {
            return;
        }
        let (cpu, state) = (state.cpu.index(), state.state);
        self.unsettle(cpu);
        if state == State::Ready {
            self.cpus[cpu].reorder(effective, task);
        }
        self.record(self.now, task, Event::Priority(effective));
    }
}
