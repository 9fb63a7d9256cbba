//! `mrsp`: the multiprocessor resource sharing protocol: spinning at the ceiling of one's processor, and whoever waits lends its place to an owner
//! that was preempted.
//!
//! ```text
//!   request   rise to the ceiling on one's processor; free: -> task, grant;  else: queue, spin
//!   grant     rise just above the ceiling
//!   release   first waiter w: -> w, grant w;  else: -> none;  back to one's processor, fall
//!   after any event, each owner is
//!             on its own processor, if nothing more urgent executes there; else stays, if nothing more urgent executes where it is;
//!             else goes to the processor of the first waiter where nothing more urgent executes: just above the ceiling there, it goes before the waiter
//! ```
//!
//! Who executes where follows from who has a job: tasks are taken not to suspend. An owner goes back as soon as it can: were it to stay away, less urgent jobs
//! could begin sections on its own processor that delay it when it comes back.

use crate::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MAX_CPUS, Priority, ResourceId, TaskId};

/// Spinlocks at local ceilings, whose owners are helped.
///
/// # Bound
/// A request waits for at most one section of each other processor, in time that the waiting task's own processor is given to it. On its own processor a job
/// is delayed, when it arrives, by at most one section at a ceiling of at least its priority, with its waiting.
///
/// # Reference
/// A. Burns, A. Wellings, "A schedulability compatible multiprocessor resource sharing protocol - MrsP", ECRTS 2013.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mrsp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    /// By resource and processor.
    ceilings: [[Priority; MAX_CPUS]; RESOURCES],
    jobs: [bool; TASKS],
}

impl<const TASKS: usize, const RESOURCES: usize> Mrsp<TASKS, RESOURCES> {
    /// No jobs, and all resources free; `tasks[t]` is the base priority and the processor of task `t`, `users[r]` are the users of resource `r`. What
    /// lies beyond is refused.
    #[must_use]
    pub fn new<'a>(tasks: &[(Priority, CpuId)], users: impl Iterator<Item = &'a [TaskId]>) -> Self {
        let mut ceilings = [[Priority::MIN; MAX_CPUS]; RESOURCES];
        let mut count = 0;
        for (ceilings, users) in ceilings.iter_mut().zip(users) {
            count += 1;
            for &(base, cpu) in users.iter().filter_map(|user| tasks.get(user.index())) {
                let ceiling = &mut ceilings[cpu.index()];
                *ceiling = base.max(*ceiling);
            }
        }
        Self { single: Single::new(tasks, count), ceilings, jobs: [false; TASKS] }
    }

    /// The owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    fn ceiling(&self, resource: ResourceId, cpu: CpuId) -> Priority {
        self.ceilings[resource.index()][cpu.index()]
    }

    fn set_job(&mut self, task: TaskId, has_job: bool) -> Result<(), Refusal> {
        self.single.known(task)?;
        let job = &mut self.jobs[task.index()];
        if *job == has_job || self.single.stand(task) != Stand::Idle {
            return Err(Refusal::Job);
        }
        *job = has_job;
        Ok(())
    }

    /// Whether no job on a processor but its own would go before the owner of a resource.
    fn executes(&self, owner: TaskId, resource: ResourceId, cpu: CpuId) -> bool {
        let priority = self.ceiling(resource, cpu).raised();
        !self.single.tasks().any(|task| {
            let is_here = task != owner && self.jobs[task.index()] && self.single.cpu(task) == cpu;
            is_here && self.single.effective(task) > priority
        })
    }

    /// Where the owner of a resource executes: on its own processor if it may be, else where it is, else in the place of a waiter.
    fn place(&self, owner: TaskId, resource: ResourceId) -> Option<CpuId> {
        let waiters = self.single.waiters(resource).map(|waiter| self.single.own_cpu(waiter));
        let mut places = [self.single.own_cpu(owner), self.single.cpu(owner)].into_iter().chain(waiters);
        places.find(|&cpu| self.executes(owner, resource, cpu))
    }

    /// Moves every owner to where it executes.
    ///
    /// BOUND: a step for each resource, and each of its waiters, and each task.
    fn help(&mut self, act: &mut dyn FnMut(Action)) {
        for resource in self.single.resources() {
            let Some(owner) = self.single.owner(resource) else { continue };
            if let Some(cpu) = self.place(owner, resource) {
                self.single.tell(owner, self.ceiling(resource, cpu).raised(), act);
                self.single.send(owner, cpu, act);
            }
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Mrsp<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, true)?;
        self.help(act);
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, false)?;
        self.help(act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if !self.jobs[task.index()] {
            return Err(Refusal::Job);
        }
        let ceiling = self.ceiling(resource, self.single.own_cpu(task));
        if self.single.base(task) > ceiling {
            return Err(Refusal::AboveCeiling);
        }
        let owns = self.single.enter(task, resource, Priority::MIN);
        self.single.tell(task, if owns { ceiling.raised() } else { ceiling }, act);
        act(if owns { Action::Grant { task, resource } } else { Action::Spin { task, resource } });
        self.help(act);
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            self.single.tell(next, self.ceiling(resource, self.single.own_cpu(next)).raised(), act);
            act(Action::Grant { task: next, resource });
        }
        self.single.send(task, self.single.own_cpu(task), act);
        self.single.tell(task, self.single.base(task), act);
        self.help(act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let Stand::Waits(resource) = self.single.stand_known(task)? else { return Err(Refusal::NotWaiting) };
        self.single.give_up(task)?;
        if let Some(owner) = self.single.owner(resource)
            && self.single.cpu(owner) == self.single.own_cpu(task)
        {
            // It may have been there in this one's place.
            let own = self.single.own_cpu(owner);
            self.single.tell(owner, self.ceiling(resource, own).raised(), act);
            self.single.send(owner, own, act);
        }
        self.single.tell(task, self.single.base(task), act);
        self.help(act);
        Ok(())
    }

    /// While the task asks or holds, the change waits until it has given back.
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        if self.single.stand(task) == Stand::Idle {
            self.single.tell(task, base, act);
        }
        self.help(act);
        Ok(())
    }
}
