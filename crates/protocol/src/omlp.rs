//! `omlp`: the O(m) locking protocol under partitioned scheduling, with priority donation.
//!
//! ```text
//!   request   held back while its processor has another request, or a more urgent job;
//!             then boosted above all jobs; free: -> task, grant;  else: queue, first come, first served, wait
//!   release   first waiter w: -> w, grant w, wake w;  fall; the next of the processor goes on
//!   finish    the next of the processor goes on
//! ```
//!
//! A more urgent job that arrives while another of its processor has a request lends it its place: that one is above all jobs, and the
//! donor executes only while it waits, without requests of its own. With one processor a cluster that is all that donation comes to. Of the requests
//! held back on a processor only the most urgent goes on, the first among equals, and only where no job is more urgent: it would execute at that
//! moment.

use crate::queue::{Links, WaitQueue};
use crate::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MAX_CPUS, Priority, ResourceId, TaskId};

/// Mutexes whose queues are never longer than there are processors.
///
/// # Bound
/// A request waits for at most one section of each other processor. A job is delayed besides, once, by one request of a less urgent task of its
/// processor, from asking to giving back. Time suspended counts as execution.
///
/// # Reference
/// B. Brandenburg, J. Anderson, "Real-time resource-sharing under clustered scheduling: mutex, reader-writer, and k-exclusion locks", EMSOFT 2011.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Omlp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    jobs: [bool; TASKS],
    /// By processor: who is held back there.
    held_back: [WaitQueue; MAX_CPUS],
    links: Links<TaskId, TASKS>,
}

impl<const TASKS: usize, const RESOURCES: usize> Omlp<TASKS, RESOURCES> {
    /// No jobs, and all of so many resources free; `tasks[t]` is the base priority and the processor of task `t`. What lies beyond is refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], resources: usize) -> Self {
        Self {
            single: Single::new(tasks, resources),
            jobs: [false; TASKS],
            held_back: [WaitQueue::EMPTY; MAX_CPUS],
            links: Links::new(),
        }
    }

    /// The owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
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

    /// Whether its processor has no request, and no more urgent job.
    fn may_go_on(&self, task: TaskId) -> bool {
        let (cpu, base) = (self.single.own_cpu(task), self.single.base(task));
        !self.single.tasks().any(|other| {
            let asked = matches!(self.single.stand(other), Stand::Waits(_) | Stand::Holds(_));
            let goes_first = asked || self.jobs[other.index()] && self.single.base(other) > base;
            goes_first && other != task && self.single.own_cpu(other) == cpu
        })
    }

    /// Lets the first of those held back on a processor go on, if it may. The caller is not woken: it was not told to wait.
    fn admit(&mut self, cpu: CpuId, caller: Option<TaskId>, act: &mut dyn FnMut(Action)) {
        let held_back = &mut self.held_back[cpu.index()];
        let Some(task) = held_back.first().filter(|&task| self.may_go_on(task)) else { return };
        let Stand::Sent(resource) = self.single.stand(task) else { return };
        self.held_back[cpu.index()].pop(&mut self.links);
        let owns = self.single.enter(task, resource, Priority::MIN);
        self.settle(task, act);
        if owns {
            act(Action::Grant { task, resource });
            if caller != Some(task) {
                act(Action::Wake { task });
            }
        }
    }

    /// What counts for a task now.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let is_boosted = matches!(self.single.stand(task), Stand::Waits(_) | Stand::Holds(_));
        let base = self.single.base(task);
        self.single.tell(task, if is_boosted { Priority::BASE_MAX.boosted() } else { base }, act);
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Omlp<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, true)
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.set_job(task, false)?;
        self.admit(self.single.own_cpu(task), None, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if !self.jobs[task.index()] {
            return Err(Refusal::Job);
        }
        let cpu = self.single.own_cpu(task);
        self.single.send_off(task, resource);
        self.held_back[cpu.index()].insert(&mut self.links, task, self.single.base(task));
        self.admit(cpu, Some(task), act);
        if self.single.stand(task) != Stand::Holds(resource) {
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.admit(self.single.own_cpu(task), None, act);
        self.settle(task, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let cpu = self.single.own_cpu(task);
        if let Stand::Sent(_) = self.single.give_up(task)? {
            self.held_back[cpu.index()].remove(&mut self.links, task);
        }
        self.admit(cpu, None, act);
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        let cpu = self.single.own_cpu(task);
        if let Stand::Sent(_) = self.single.stand(task) {
            self.held_back[cpu.index()].reorder(&mut self.links, task, base);
        }
        self.admit(cpu, None, act);
        self.settle(task, act);
        Ok(())
    }
}
