//! `fulock`: mutexes that mix protocols and survive the death of an owner. At each unlock, the caller chooses whether
//! the mutex is handed over or becomes free.
//!
//! ```text
//!   owner     request           release, healthy                    release, dead        owner dies
//!   none      -> task, grant    refused                             refused              -
//!   some      queue, wait,      serial:   -> first waiter           -> not recoverable:  dead, -> first waiter,
//!             owner inherits    parallel: -> none, wake the first   all waiters wake     or none
//!   none, waiters (after a parallel release; the first is awake)
//!             -> task, grant    refused                             refused              -
//!   not recoverable
//!             refused           refused                             refused              -
//! ```
//! A woken waiter tries again: it locks the mutex if that is free, or keeps its place in the queue. Without waiters,
//! every release leaves the lock free.
//!
//! ```text
//!   health      healthy --owner dies--> dead --make_consistent--> healthy
//!                                        | ^ owner dies again
//!                                        | '
//!                                        '-release--> not recoverable, for good
//! ```
//! A task that is granted a dead lock is its heir (POSIX: `EOWNERDEAD`). Each death has one heir: the first waiter, or
//! the next task that requests the lock if there are no waiters. Health needs no action of its own. An owner reads
//! [`Fulock::health`] of a lock that it owns, which no other task changes. A waiter that was woken, owns nothing and
//! waits for nothing reads [`Health::NotRecoverable`], which never changes.
//!
//! The effective priority of a task is the highest of its base priority, of the ceilings of the locks that it holds
//! ([`Protection::Protect`]), and of the first waiters of the locks that it holds ([`Protection::Inherit`]). The
//! priorities of waiters are effective priorities themselves, so they propagate along chains of owners. A chain
//! continues through a lock that inherits, and ends at one that does not.
//!
//! [`Pip`](crate::Pip) remains a machine of its own. It decides as the PI futex of the kernel does, which has neither
//! of the two kinds of unlock: only a more urgent task may lock a free mutex before its first waiter, and the bound of
//! `pip` depends on that.
//!
//! It is the reference for the mutexes of the crate `lockwright`, whose tests execute random scripts on both.
//!
//! # Example
//! ```
//! use lockwright_model::{Priority, ResourceId, TaskId};
//! use lockwright_protocol::fulock::{Class, Fulock, Health, Protection};
//!
//! let tasks = [(Priority::base(1), Class::RealTime), (Priority::base(2), Class::RealTime)];
//! let mut locks = Fulock::<2, 1>::new(&tasks, &[Protection::Inherit]);
//! let (low, high, lock) = (TaskId(0), TaskId(1), ResourceId(0));
//! locks.request(low, lock, &mut |_| ())?;
//! locks.request(high, lock, &mut |_| ())?;
//! assert_eq!(locks.effective(low), Priority::base(2));
//!
//! // The owner dies. The waiter is its heir, and repairs the data.
//! locks.die(low, &mut |_| ())?;
//! assert_eq!((locks.owner(lock), locks.health(lock)), (Some(high), Health::Dead));
//! locks.make_consistent(high, lock)?;
//! assert_eq!(locks.health(lock), Health::Healthy);
//! # Ok::<(), lockwright_protocol::Refusal>(())
//! ```

mod queue;
#[cfg(test)]
mod tests;

pub use queue::Fuqueue;

use crate::parts::cycle::{chain, waits_for_itself};
use crate::parts::queue::{Links, PriorityList};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// The default limit on the length of a chain of waiting. A request that would make a longer chain is refused.
pub const CHAIN_MAX: usize = 64;

/// The protection of one lock against priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Protection {
    /// No protection.
    #[default]
    None,
    /// The owner has at least the priority of the first waiter.
    Inherit,
    /// The owner has at least this ceiling. Tasks whose base priority is above it are refused.
    Protect(Priority),
}

/// The kind of unlock: what becomes of the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unlock {
    /// The lock is handed to the first waiter. No other task can lock it in between.
    Serial,
    /// The lock becomes free, and the first waiter is woken. The first task to request the lock gets it. This saves a
    /// context switch if the caller locks it again soon.
    Parallel,
    /// [`Unlock::Serial`] if the first waiter is [`Class::RealTime`], and [`Unlock::Parallel`] otherwise.
    #[default]
    Auto,
}

/// The class of a task, which decides what [`Unlock::Auto`] does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Class {
    /// Less urgent tasks must not overtake the task.
    RealTime,
    /// Less urgent tasks may overtake the task.
    #[default]
    Ordinary,
}

/// Whether the data that a lock protects can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Health {
    /// The data can be trusted.
    #[default]
    Healthy,
    /// An owner died in its section, and the data has not been made consistent since.
    Dead,
    /// The lock was unlocked while dead. No task can lock it any more.
    NotRecoverable,
}

/// A deadlock that a request would cause: each task waits for a lock that the next one owns, and the last one waits for
/// a lock that the first one owns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cycle<const CHAIN: usize = CHAIN_MAX> {
    asked: (TaskId, ResourceId),
    rest: [Option<(TaskId, ResourceId)>; CHAIN],
}

impl<const CHAIN: usize> Cycle<CHAIN> {
    /// Returns every task on the cycle with the lock that it waits for, starting with the task whose request was
    /// refused.
    pub fn waits(&self) -> impl Iterator<Item = (TaskId, ResourceId)> {
        core::iter::once(self.asked).chain(self.rest.iter().map_while(|&wait| wait))
    }
}

/// Robust mutexes, each with its own protection. `CHAIN` limits the chains of waiting.
///
/// # Bound
/// A waiter is overtaken by more urgent tasks only, except under [`Unlock::Parallel`], where any task may overtake it.
/// A release has no loop over waiters, except the last release of a dead lock. A request and a change of priority take
/// one step for each lock up the chain, at most `CHAIN`. Only a request by a task whose own locks have waiters visits
/// all tasks that wait for it, to limit the length of the chains.
///
/// There is no bound on blocking here yet. On one processor, locks with ceilings block as those of
/// [`Icpp`](crate::Icpp). Locks that inherit do not have the bound of [`Pip`](crate::Pip): with strict hand-offs, a
/// lock can block a job once for each less urgent task that waits for it.
///
/// # Reference
/// The fusyn paper: real-time and robust synchronization for Linux. Linux Symposium 2004; IEEE
/// Std 1003.1, robust mutexes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fulock<
    const TASKS: usize = DEFAULT_TASKS,
    const RESOURCES: usize = DEFAULT_RESOURCES,
    const CHAIN: usize = CHAIN_MAX,
> {
    /// The queues, which also store the effective priorities.
    queues: Fuqueue<TASKS, RESOURCES>,
    locks: [Lock; RESOURCES],
    /// The links of the lists of owned locks.
    links: Links<ResourceId, RESOURCES>,
    tasks: [TaskState; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Lock {
    owner: Option<TaskId>,
    health: Health,
    protection: Protection,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    base: Priority,
    class: Class,
    epoch: u32,
    /// The locks that the task owns, in the order of the priorities that they require of it.
    owned: PriorityList<ResourceId>,
}

impl<const TASKS: usize, const RESOURCES: usize, const CHAIN: usize> Fulock<TASKS, RESOURCES, CHAIN> {
    /// All locks are free and healthy. `tasks[t]` is the base priority and the class of task `t`, and `protections[r]`
    /// is the protection of lock `r`. Other tasks have the least priority and are ordinary; other locks have no
    /// protection.
    #[must_use]
    pub fn new(tasks: &[(Priority, Class)], protections: &[Protection]) -> Self {
        let mut priorities = [Priority::MIN; TASKS];
        let idle = TaskState { base: Priority::MIN, class: Class::Ordinary, epoch: 0, owned: PriorityList::EMPTY };
        let mut states = [idle; TASKS];
        for ((state, priority), &(base, class)) in states.iter_mut().zip(&mut priorities).zip(tasks) {
            (state.base, state.class, *priority) = (base, class, base);
        }
        let mut locks = [Lock { owner: None, health: Health::Healthy, protection: Protection::None }; RESOURCES];
        for (lock, &protection) in locks.iter_mut().zip(protections) {
            lock.protection = protection;
        }
        Self { queues: Fuqueue::new(&priorities), locks, links: Links::new(), tasks: states }
    }

    /// Returns the owner of a lock.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.locks.get(resource.index())?.owner
    }

    /// Returns whether the data of a lock can be trusted. An unknown lock is not recoverable.
    #[must_use]
    pub fn health(&self, resource: ResourceId) -> Health {
        self.locks.get(resource.index()).map_or(Health::NotRecoverable, |lock| lock.health)
    }

    /// Returns the lock that a task waits for.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> Option<ResourceId> {
        self.queues.waits_for(task)
    }

    /// Returns the locks that a task owns, starting with the one that requires the highest priority.
    pub fn owned(&self, task: TaskId) -> impl Iterator<Item = ResourceId> {
        let list = self.tasks.get(task.index()).map_or(PriorityList::EMPTY, |task| task.owned);
        list.iter(&self.links)
    }

    /// Returns the effective priority of a task, with inheritance and ceilings. An unknown task has the least priority.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.queues.priority(task)
    }

    /// Returns the cycle that `task` would close by waiting for `resource`. It is the reason for [`Refusal::Deadlock`].
    #[must_use]
    pub fn cycle(&self, task: TaskId, resource: ResourceId) -> Option<Cycle<CHAIN>> {
        let mut cycle = Cycle { asked: (task, resource), rest: [None; CHAIN] };
        let mut rest = cycle.rest.iter_mut();
        for (owner, next) in self.chain(resource) {
            if owner == task {
                return Some(cycle);
            }
            *rest.next()? = Some((owner, next?));
        }
        None
    }

    /// `task` requests `resource`, and waits if another task owns it. A task that is granted a dead lock is its heir.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::Waiting`], [`Refusal::AlreadyHeld`], [`Refusal::NotRecoverable`],
    /// [`Refusal::AboveCeiling`], [`Refusal::Deadlock`] (see [`Fulock::cycle`]), [`Refusal::ChainTooLong`].
    pub fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        let Some(owner) = self.may_ask(task, resource)? else {
            self.take(task, resource, act);
            return Ok(());
        };
        if waits_for_itself(task, resource, |at| self.owner(at), |at| self.waits_for(at)) {
            return Err(Refusal::Deadlock);
        }
        // A free lock counts, because the task that locks it may wait in turn.
        let above = 1 + self.chain(resource).filter(|(_, next)| next.is_some()).count();
        if self.below(task) + above > CHAIN {
            return Err(Refusal::ChainTooLong);
        }
        // The action of the waiting task comes last.
        self.queues.wait(task, resource, &mut |_| {})?;
        self.reweigh(resource);
        self.settle(owner, act);
        act(Action::Block { task, resource });
        Ok(())
    }

    /// `task` locks `resource` if that is free, and does not wait.
    ///
    /// # Errors
    /// As [`Fulock::request`], but instead of the last two [`Refusal::Taken`].
    pub fn try_request(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        act: &mut impl FnMut(Action),
    ) -> Result<(), Refusal> {
        if self.may_ask(task, resource)?.is_some() {
            return Err(Refusal::Taken);
        }
        self.take(task, resource, act);
        Ok(())
    }

    /// `task` releases `resource`. A lock that is still dead becomes not recoverable, and all its waiters are woken.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::NotHeld`], [`Refusal::Waiting`].
    pub fn release(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        unlock: Unlock,
        act: &mut impl FnMut(Action),
    ) -> Result<(), Refusal> {
        self.owns(task, resource)?;
        let lock = &mut self.locks[resource.index()];
        lock.owner = None;
        self.tasks[task.index()].owned.remove(&mut self.links, resource);
        let first = self.queues.first(resource).map(|first| self.tasks[first.index()].class);
        match (lock.health, unlock) {
            (Health::Healthy, Unlock::Serial) => self.hand_over(resource, act),
            (Health::Healthy, Unlock::Auto) if first == Some(Class::RealTime) => self.hand_over(resource, act),
            (Health::Healthy, _) => self.wake_first(resource, act),
            _ => {
                lock.health = Health::NotRecoverable;
                self.queues.wake(resource, TASKS, act)?;
            }
        }
        self.settle(task, act);
        Ok(())
    }

    /// `task`, the heir of a dead owner, has repaired the data that `resource` protects.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::NotHeld`], [`Refusal::Waiting`], [`Refusal::Healthy`].
    pub fn make_consistent(&mut self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        self.owns(task, resource)?;
        let health = &mut self.locks[resource.index()].health;
        if *health == Health::Healthy {
            return Err(Refusal::Healthy);
        }
        *health = Health::Healthy;
        Ok(())
    }

    /// A woken task runs and tries to lock the resource that it waits for. It keeps waiting if another task was faster.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`]; [`Refusal::NotWaiting`] if it owns the lock already, or if the lock is not
    /// recoverable.
    pub fn woken(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        let resource = self.waiting(task)?;
        if self.owner(resource).is_none() {
            self.queues.leave(task);
            self.take(task, resource, act);
        } else {
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    /// A waiting task gives up. Owners that inherited its priority lose it at once.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`]; [`Refusal::NotWaiting`] as for [`Fulock::woken`], for example if a grant came before
    /// the timeout.
    pub fn cancel(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.waiting(task)?;
        self.leave(task, act);
        act(Action::Wake { task });
        Ok(())
    }

    /// `task` dies in any state. It no longer waits, and every lock that it owned is dead and goes to its first waiter.
    /// Its id may be reused for another task with the same base priority. No action concerns the dead task.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn die(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        self.leave(task, act);
        // BOUND: one step for each lock that the task owned.
        while let Some(resource) = self.tasks[task.index()].owned.pop(&mut self.links) {
            let lock = &mut self.locks[resource.index()];
            (lock.owner, lock.health) = (None, Health::Dead);
            self.hand_over(resource, act);
        }
        self.queues.set_priority(task, self.tasks[task.index()].base)
    }

    /// The base priority of `task` changes, while it runs, owns or waits.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn set_base(&mut self, task: TaskId, base: Priority, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?.base = base;
        self.settle(task, act);
        Ok(())
    }

    /// The class of `task` changes; later releases use the new one.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn set_class(&mut self, task: TaskId, class: Class) -> Result<(), Refusal> {
        self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?.class = class;
        Ok(())
    }

    /// Whether a request has a meaning; the owner it meets.
    fn may_ask(&self, task: TaskId, resource: ResourceId) -> Result<Option<TaskId>, Refusal> {
        let state = self.tasks.get(task.index()).ok_or(Refusal::UnknownTask)?;
        let lock = self.locks.get(resource.index()).ok_or(Refusal::UnknownResource)?;
        if self.waits_for(task).is_some() {
            return Err(Refusal::Waiting);
        }
        if lock.owner == Some(task) {
            return Err(Refusal::AlreadyHeld);
        }
        match lock.protection {
            Protection::Protect(ceiling) if state.base > ceiling => Err(Refusal::AboveCeiling),
            _ if lock.health == Health::NotRecoverable => Err(Refusal::NotRecoverable),
            _ => Ok(lock.owner),
        }
    }

    /// Whether `task` runs and owns `resource`.
    fn owns(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        if self.locks.get(resource.index()).ok_or(Refusal::UnknownResource)?.owner != Some(task) {
            return Err(Refusal::NotHeld);
        }
        if self.waits_for(task).is_some() { Err(Refusal::Waiting) } else { Ok(()) }
    }

    fn waiting(&self, task: TaskId) -> Result<ResourceId, Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        self.waits_for(task).ok_or(Refusal::NotWaiting)
    }

    fn take(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) {
        self.locks[resource.index()].owner = Some(task);
        let weight = self.weight(resource);
        self.tasks[task.index()].owned.insert(&mut self.links, resource, weight);
        self.settle(task, act);
        act(Action::Grant { task, resource });
    }

    /// A free lock goes to its first waiter, which rises before it wakes.
    fn hand_over(&mut self, resource: ResourceId, act: &mut impl FnMut(Action)) {
        if let Some(next) = self.queues.take_first(resource) {
            self.take(next, resource, act);
            act(Action::Wake { task: next });
        }
    }

    fn wake_first(&self, resource: ResourceId, act: &mut impl FnMut(Action)) {
        if let Some(task) = self.queues.first(resource) {
            act(Action::Wake { task });
        }
    }

    /// `task` waits no longer, if it did.
    fn leave(&mut self, task: TaskId, act: &mut impl FnMut(Action)) {
        let Some(resource) = self.waits_for(task) else { return };
        let was_first = self.queues.first(resource) == Some(task);
        self.queues.leave(task);
        match self.owner(resource) {
            Some(owner) => {
                self.reweigh(resource);
                self.settle(owner, act);
            }
            // It had been woken for a lock it will not take: the next one is.
            None if was_first => self.wake_first(resource, act),
            None => {}
        }
    }

    /// The priority that a lock requires of its owner.
    fn weight(&self, resource: ResourceId) -> Priority {
        match self.locks[resource.index()].protection {
            Protection::None => Priority::MIN,
            Protection::Inherit => self.queues.first(resource).map_or(Priority::MIN, |first| self.effective(first)),
            Protection::Protect(ceiling) => ceiling,
        }
    }

    /// The waiters of a lock that is owned have changed: it goes to its new place among those of its owner.
    fn reweigh(&mut self, resource: ResourceId) {
        if let Some(owner) = self.owner(resource) {
            let weight = self.weight(resource);
            self.tasks[owner.index()].owned.reorder(&mut self.links, resource, weight);
        }
    }

    /// Recomputes the effective priority of `task` and of every owner up the chain of waiting.
    ///
    /// BOUND: `CHAIN` steps, and one.
    fn settle(&mut self, task: TaskId, act: &mut impl FnMut(Action)) {
        let mut at = Some(task);
        while let Some(task) = at.take() {
            let state = &mut self.tasks[task.index()];
            let asked = state.owned.first().map_or(Priority::MIN, |first| self.links.key(first));
            let priority = state.base.max(asked);
            if priority == self.queues.priority(task) {
                return;
            }
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority, epoch: state.epoch });
            let first = |machine: &Self| machine.waits_for(task).and_then(|resource| machine.queues.first(resource));
            let before = first(self);
            self.queues.set_priority(task, priority).expect("it has a base priority");
            if let Some(resource) = self.waits_for(task) {
                self.reweigh(resource);
                at = self.owner(resource);
                if at.is_none() && first(self) != before {
                    self.wake_first(resource, act);
                }
            }
        }
    }

    fn chain(&self, resource: ResourceId) -> impl Iterator<Item = (TaskId, Option<ResourceId>)> {
        chain(resource, |resource| self.owner(resource), |task| self.waits_for(task))
    }

    /// How many tasks, one behind the other, wait for `task`.
    ///
    /// BOUND: one step for each task that waits for it along whatever chain; calls itself `CHAIN` deep.
    fn below(&self, task: TaskId) -> usize {
        let waiters = self.owned(task).flat_map(|resource| self.queues.waiters(resource));
        waiters.map(|waiter| 1 + self.below(waiter)).max().unwrap_or(0)
    }

    /// The waiters of a lock, in order.
    #[cfg(test)]
    pub(crate) fn waiters(&self, resource: ResourceId) -> impl Iterator<Item = TaskId> {
        self.queues.waiters(resource)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}
