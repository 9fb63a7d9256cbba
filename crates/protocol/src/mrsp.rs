//! `mrsp`: the multiprocessor resource sharing protocol. A job spins at the ceiling of its processor, and lends its
//! processor to a preempted owner meanwhile.
//!
//! ```text
//!   request   rise to the ceiling on the own processor; free: -> task, grant;  else: queue, spin
//!   grant     rise just above the ceiling
//!   release   first waiter w: -> w, grant w;  else: -> none;  back to the own processor, fall
//!   after any event, each owner is
//!             on its own processor, if nothing more urgent executes there;
//!             else where it is, if nothing more urgent executes there;
//!             else on the processor of the first waiter where nothing more urgent executes:
//!             just above the ceiling there, it preempts the waiter
//! ```
//!
//! Tasks are assumed not to suspend, so the jobs determine which task executes where. An owner returns to its own
//! processor as soon as possible. If it stayed away, less urgent jobs could begin sections on its own processor that
//! delay it when it returns.

use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CPUS_MAX, CpuId, Priority, ResourceId, TaskId};

/// Spinlocks at local ceilings, with help for preempted owners.
///
/// # Bound
/// A request waits for at most one section of each other processor, measured in time during which its own processor is
/// available to the waiting task. When a job arrives, it is also delayed by at most one section at a ceiling of at
/// least its priority on its own processor, including the wait for that section.
///
/// # Reference
/// A. Burns, A. Wellings, "A schedulability compatible multiprocessor resource sharing protocol - MrsP", ECRTS 2013.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mrsp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    /// By resource and processor.
    ceilings: [[Priority; CPUS_MAX]; RESOURCES],
    jobs: [bool; TASKS],
    /// The number of waiting tasks.
    waiting: usize,
}

impl<const TASKS: usize, const RESOURCES: usize> Mrsp<TASKS, RESOURCES> {
    /// There are no jobs, and all resources are free. `tasks[t]` is the base priority and the processor of task `t`,
    /// and `users[r]` are the users of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new<'a>(tasks: &[(Priority, CpuId)], users: impl Iterator<Item = &'a [TaskId]>) -> Self {
        let mut ceilings = [[Priority::MIN; CPUS_MAX]; RESOURCES];
        let mut count = 0;
        for (ceilings, users) in ceilings.iter_mut().zip(users) {
            count += 1;
            for &(base, cpu) in users.iter().filter_map(|user| tasks.get(user.index())) {
                let ceiling = &mut ceilings[cpu.index()];
                *ceiling = base.max(*ceiling);
            }
        }
        Self { single: Single::new(tasks, count), ceilings, jobs: [false; TASKS], waiting: 0 }
    }

    /// Returns the owner of a resource.
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

    /// Computes priorities and processors again, and reports those that have changed: first those of other tasks, by
    /// id, then `granted`, then those of `last`.
    ///
    /// Other tasks change only if they own `changed`, the resource of the event, or a resource with waiters: only these
    /// may be helped.
    ///
    /// BOUND: no loop if no task waits. Otherwise a step for each resource, and for each resource with waiters a step
    /// for each waiter, and for each task of the processors where its owner may execute.
    fn settle(
        &mut self,
        last: TaskId,
        changed: Option<ResourceId>,
        granted: Option<Action>,
        act: &mut dyn FnMut(Action),
    ) {
        let mut last_goal = self.goal(last);
        if self.waiting > 0 {
            let goals = self.help();
            let mut owners = [(TaskId(0), ResourceId(0)); RESOURCES];
            let mut count = 0;
            for resource in self.single.resources() {
                if let Some(owner) =
                    self.owner(resource).filter(|_| self.is_awaited(resource) || changed == Some(resource))
                {
                    owners[count] = (owner, resource);
                    count += 1;
                }
            }
            owners[..count].sort_unstable();
            for &(owner, resource) in &owners[..count] {
                let goal = if self.is_awaited(resource) { goals[resource.index()] } else { self.goal(owner) };
                if owner == last { last_goal = goal } else { self.tell(owner, goal, act) }
            }
        } else if let Some(owner) = changed.and_then(|resource| self.owner(resource)).filter(|&owner| owner != last) {
            self.tell(owner, self.goal(owner), act);
        }
        granted.into_iter().for_each(&mut *act);
        let (priority, cpu) = last_goal;
        self.single.send(last, cpu, act);
        self.single.tell(last, priority, act);
    }

    /// Reports the priority and the processor of a task other than the caller.
    fn tell(&mut self, task: TaskId, (priority, cpu): (Priority, CpuId), act: &mut dyn FnMut(Action)) {
        self.single.tell(task, priority, act);
        self.single.send(task, cpu, act);
    }

    fn is_awaited(&self, resource: ResourceId) -> bool {
        self.single.waiters(resource).next().is_some()
    }

    /// The priority and the processor of a task without further help.
    fn goal(&self, task: TaskId) -> (Priority, CpuId) {
        let cpu = self.single.own_cpu(task);
        match self.single.stand(task) {
            Stand::Waits(resource) => (self.ceiling(resource, cpu), cpu),
            Stand::Holds(resource) => {
                let cpu = self.single.own_cpu(self.stays(task, resource));
                (self.ceiling(resource, cpu).raised(), cpu)
            }
            Stand::Idle | Stand::Sent(_) => (self.single.base(task), cpu),
        }
    }

    /// The task on whose processor an owner executes without further help: where it was, if a waiter lends that
    /// processor, otherwise its own.
    fn stays(&self, owner: TaskId, resource: ResourceId) -> TaskId {
        let cpu = self.single.cpu(owner);
        let lender = self.single.waiters(resource).find(|&waiter| self.single.own_cpu(waiter) == cpu);
        lender.unwrap_or(owner)
    }

    /// The resources with waiters, and their owners.
    fn awaited(&self) -> impl Iterator<Item = (ResourceId, TaskId)> {
        let awaited = self.single.resources().filter(|&resource| self.is_awaited(resource));
        awaited.filter_map(|resource| Some((resource, self.owner(resource)?)))
    }

    /// The priority and the processor of the owner of each resource with waiters. One pass is enough: an owner that is
    /// helped preempts no task that its helper would not preempt, and an owner that returns to its own processor
    /// preempts no owner that executed there before.
    fn help(&self) -> [(Priority, CpuId); RESOURCES] {
        let mut goals = [(Priority::MIN, CpuId(0)); RESOURCES];
        for (resource, owner) in self.awaited() {
            goals[resource.index()] = self.goal(owner);
        }
        for (resource, owner) in self.awaited() {
            let goal = |host: TaskId| {
                let cpu = self.single.own_cpu(host);
                (self.ceiling(resource, cpu).raised(), cpu)
            };
            let first = [owner, self.stays(owner, resource)];
            let mut hosts = first.into_iter().chain(self.single.waiters(resource));
            if let Some(host) = hosts.find(|&host| self.executes(owner, goal(host), host, &goals)) {
                goals[resource.index()] = goal(host);
            }
        }
        goals
    }

    /// Whether no job that is more urgent than `owner` would be there executes on the processor of `host`.
    fn executes(
        &self,
        owner: TaskId,
        (priority, cpu): (Priority, CpuId),
        host: TaskId,
        goals: &[(Priority, CpuId); RESOURCES],
    ) -> bool {
        let has_goal = |task: TaskId| matches!(self.single.stand(task), Stand::Holds(held) if self.is_awaited(held));
        let is_in_the_way = |&task: &TaskId| {
            task != owner && self.jobs[task.index()] && !has_goal(task) && self.goal(task).0 > priority
        };
        let may_come = |(resource, other): (ResourceId, TaskId)| {
            let (urgency, place) = goals[resource.index()];
            other != owner && self.jobs[other.index()] && place == cpu && urgency > priority
        };
        !self.single.peers(host).iter().any(is_in_the_way) && !self.awaited().any(may_come)
    }

    /// The plain form of [`Mrsp::settle`], over all tasks and all resources, to which the tests compare it.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        let mut goals = [(Priority::MIN, CpuId(0)); TASKS];
        self.single.tasks().for_each(|task| goals[task.index()] = self.goal(task));
        for resource in self.single.resources() {
            let Some(owner) = self.single.owner(resource) else { continue };
            let goal = |host: TaskId| {
                let cpu = self.single.own_cpu(host);
                (self.ceiling(resource, cpu).raised(), cpu)
            };
            let executes = |&host: &TaskId| {
                !self.single.tasks().any(|task| {
                    let (other, place) = goals[task.index()];
                    task != owner && self.jobs[task.index()] && place == goal(host).1 && other > goal(host).0
                })
            };
            let first = [owner, self.stays(owner, resource)];
            if let Some(host) = first.into_iter().chain(self.single.waiters(resource)).find(executes) {
                goals[owner.index()] = goal(host);
            }
        }
        self.single.tasks().for_each(|task| self.tell(task, goals[task.index()], act));
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
        self.settle(task, None, None, act);
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, false)?;
        self.settle(task, None, None, act);
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
        self.waiting += usize::from(!owns);
        self.settle(task, Some(resource), None, act);
        act(if owns { Action::Grant { task, resource } } else { Action::Spin { task, resource } });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let next = self.single.exit(task, resource)?;
        self.waiting -= usize::from(next.is_some());
        self.settle(task, Some(resource), next.map(|task| Action::Grant { task, resource }), act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let Stand::Waits(resource) = self.single.stand_known(task)? else { return Err(Refusal::NotWaiting) };
        self.single.give_up(task)?;
        self.waiting -= 1;
        self.settle(task, Some(resource), None, act);
        Ok(())
    }

    /// While the task has a request, the change is deferred to its release.
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        self.settle(task, None, None, act);
        Ok(())
    }
}
