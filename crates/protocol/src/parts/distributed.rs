//! The common part of `dpcp` and `dflp`: sections execute on the home processor of their resource, above all jobs
//! there.
//!
//! ```text
//!   task      request                       woken, at home                             release
//!   idle      boosted, sent home: on way    -                                          refused
//!   on way    refused                       ceiling; free: -> task, grant; else: wait  refused
//!   holds     refused                       refused                                    first waiter w: -> w, grant w,
//!                                                                                      wake w; sent back, falls
//! ```
//!
//! A task that is at home already locks the resource at once. Tasks of a home that do not suspend inside their sections
//! always find the resource free, because they execute one after the other there. If it is locked nevertheless, they
//! wait for it in order.
//!
//! Under `dflp`, the order is that of the requests, and not of the arrivals. "Free" means that no earlier request for
//! the resource remains. "First waiter" is the earliest request, if its task has arrived. So a task that is on its way
//! will find the resource free, and later tasks wait. The next owner does not depend on which task executes first.
//!
//! When the levels of requests run out, the requests of one home get new levels. The tasks get them in the order of
//! their requests: at each step an earlier request is above a later one, see [`RequestOrder`].

use crate::parts::request_order::RequestOrder;
use crate::parts::single::{Single, Stand};
use crate::{Action, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Distributed<const TASKS: usize, const RESOURCES: usize> {
    single: Single<TASKS, RESOURCES>,
    /// By resource: its home, and the priority to which its holder rises.
    homes: [(CpuId, Priority); RESOURCES],
    order: Order<TASKS>,
}

/// The order in which requests are served at a home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Order<const TASKS: usize> {
    /// The most urgent request first; its section executes at the ceiling.
    Priority,
    /// The earliest request first.
    Arrival(RequestOrder<TASKS>),
}

impl<const TASKS: usize, const RESOURCES: usize> Distributed<TASKS, RESOURCES> {
    pub(crate) fn new(
        tasks: &[(Priority, CpuId)],
        homes: impl Iterator<Item = (CpuId, Priority)>,
        order: Order<TASKS>,
    ) -> Self {
        let mut all = [(CpuId(0), Priority::MIN); RESOURCES];
        let mut count = 0;
        for (slot, home) in all.iter_mut().zip(homes) {
            *slot = home;
            count += 1;
        }
        Self { single: Single::new(tasks, count), homes: all, order }
    }

    pub(crate) fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    /// Reports the current priority of a task, if it has changed.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let base = self.single.base(task);
        let priority = match (&self.order, self.single.stand(task)) {
            (_, Stand::Idle) => base,
            (Order::Arrival(requests), _) => requests.priority(task).unwrap_or(base),
            (Order::Priority, Stand::Sent(_)) => base.boosted(),
            (Order::Priority, Stand::Waits(resource) | Stand::Holds(resource)) => {
                base.boosted().max(self.homes[resource.index()].1)
            }
        };
        self.single.tell(task, priority, act);
    }

    pub(crate) fn request(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        let home = self.homes[resource.index()].0;
        match &mut self.order {
            Order::Priority => self.single.send_off(task, resource),
            Order::Arrival(requests) => {
                let renumbered = requests.push(task, home);
                self.single.reserve(task, resource);
                if renumbered {
                    self.settle_before(task, home, act);
                }
            }
        }
        if self.single.cpu(task) == home {
            self.arrive(task, resource, act);
        } else {
            self.settle(task, act);
            self.single.send(task, home, act);
        }
        Ok(())
    }

    /// Reports the new levels of the earlier requests of a home, the earliest first.
    fn settle_before(&mut self, task: TaskId, home: CpuId, act: &mut dyn FnMut(Action)) {
        let mut place = 0;
        // BOUND: one round for each request.
        while let Order::Arrival(requests) = &self.order
            && let Some((other, cpu)) = requests.get(place)
        {
            if cpu == home && other != task {
                self.settle(other, act);
            }
            place += 1;
        }
    }

    pub(crate) fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.known(task)?;
        let Stand::Sent(resource) = self.single.stand(task) else { return Err(Refusal::NotWaiting) };
        self.arrive(task, resource, act);
        Ok(())
    }

    /// The task executes at home.
    fn arrive(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        let owns = match self.order {
            Order::Priority => self.single.enter(task, resource, self.single.base(task)),
            Order::Arrival(_) => self.single.arrive(task, resource),
        };
        self.settle(task, act);
        act(if owns { Action::Grant { task, resource } } else { Action::Block { task, resource } });
    }

    pub(crate) fn release(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.go_back(task, act);
        Ok(())
    }

    pub(crate) fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let stand = self.single.give_up(task)?;
        if let Stand::Sent(resource) = stand
            && let Some(next) = self.single.hand_over(resource)
        {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        if let Stand::Waits(_) = stand {
            act(Action::Wake { task });
        }
        self.go_back(task, act);
        Ok(())
    }

    /// Sends the task back before it lowers its priority: at its base priority, it might not execute at the home for
    /// long.
    fn go_back(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        if let Order::Arrival(requests) = &mut self.order {
            requests.remove(task);
        }
        self.single.send(task, self.single.own_cpu(task), act);
        self.settle(task, act);
    }

    pub(crate) fn set_base(
        &mut self,
        task: TaskId,
        base: Priority,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        if self.order == Order::Priority {
            self.single.reorder(task, base);
        }
        self.settle(task, act);
        Ok(())
    }

    /// For the walk of effects: epochs start at zero again, and levels stay.
    #[cfg(test)]
    pub(crate) fn zero_epochs(&mut self) {
        self.single.forget_epochs();
    }

    /// For the exhaustive walk: states that differ only in epochs and in gaps between levels are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        if let Order::Arrival(requests) = &mut self.order {
            requests.forget_gaps();
        }
        for task in self.single.tasks() {
            self.settle(task, &mut |_| ());
        }
        self.single.forget_epochs();
    }
}
