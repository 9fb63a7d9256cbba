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

    /// Priorities and places anew, and whatever is another than before is told: to others first, then `granted`, then to `last`.
    ///
    /// BOUND: a step for each resource, each of its waiters and places, and each task.
    fn settle(&mut self, last: TaskId, granted: Option<Action>, act: &mut dyn FnMut(Action)) {
        let mut goals = [(Priority::MIN, CpuId(0)); TASKS];
        for task in self.single.tasks() {
            let cpu = self.single.own_cpu(task);
            goals[task.index()] = match self.single.stand(task) {
                Stand::Waits(resource) => (self.ceiling(resource, cpu), cpu),
                Stand::Holds(resource) => {
                    let cpu = self.stays(task, resource);
                    (self.ceiling(resource, cpu).raised(), cpu)
                }
                Stand::Idle | Stand::Sent(_) => (self.single.base(task), cpu),
            };
        }
        self.help(&mut goals);
        for task in self.single.tasks().filter(|&task| task != last) {
            let (priority, cpu) = goals[task.index()];
            self.single.tell(task, priority, act);
            self.single.send(task, cpu, act);
        }
        granted.into_iter().for_each(&mut *act);
        let (priority, cpu) = goals[last.index()];
        self.single.send(last, cpu, act);
        self.single.tell(last, priority, act);
    }

    /// Where an owner is without further help: where it was, if that is its own processor or one that a waiter lends.
    fn stays(&self, owner: TaskId, resource: ResourceId) -> CpuId {
        let (own, cpu) = (self.single.own_cpu(owner), self.single.cpu(owner));
        let is_lent = self.single.waiters(resource).any(|waiter| self.single.own_cpu(waiter) == cpu);
        if is_lent { cpu } else { own }
    }

    /// Moves every owner to where it executes. Once for each is enough: who is helped is in nobody's way whom the helper is not, and who goes home is in
    /// nobody's way who executed there before.
    fn help(&self, goals: &mut [(Priority, CpuId); TASKS]) {
        for resource in self.single.resources() {
            let Some(owner) = self.single.owner(resource) else { continue };
            let executes = |&cpu: &CpuId| {
                let priority = self.ceiling(resource, cpu).raised();
                !self.single.tasks().any(|task| {
                    let (other, place) = goals[task.index()];
                    task != owner && self.jobs[task.index()] && place == cpu && other > priority
                })
            };
            let waiters = self.single.waiters(resource).map(|waiter| self.single.own_cpu(waiter));
            let first = [self.single.own_cpu(owner), self.stays(owner, resource)];
            if let Some(cpu) = first.into_iter().chain(waiters).find(executes) {
                goals[owner.index()] = (self.ceiling(resource, cpu).raised(), cpu);
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
        self.settle(task, None, act);
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, false)?;
        self.settle(task, None, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if !self.jobs[task.index()] {
            return Err(Refusal::Job);
        }
        if self.single.base(task) > self.ceiling(resource, self.single.own_cpu(task)) {
            return Err(Refusal::AboveCeiling);
        }
        let owns = self.single.enter(task, resource, Priority::MIN);
        self.settle(task, None, act);
        act(if owns { Action::Grant { task, resource } } else { Action::Spin { task, resource } });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let next = self.single.exit(task, resource)?;
        self.settle(task, next.map(|task| Action::Grant { task, resource }), act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.give_up(task)?;
        self.settle(task, None, act);
        Ok(())
    }

    /// While the task asks or holds, the change waits until it has given back.
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        self.settle(task, None, act);
        Ok(())
    }
}
