//! `fulock`: mutexes that mix protocols, survive the death of an owner, and are handed over or given free as the unlocker says.
//!
//! ```text
//!   owner       request             release, healthy                    release, dead        owner dies
//!   none        -> task, grant      refused                             refused              -
//!   some        queue, wait,        serial:   -> first waiter           -> not recoverable:  dead, -> first waiter, or none
//!               owner inherits      parallel: -> none, wake the first   all waiters wake
//!   none, waiters (after a parallel release; the first is awake)
//!               -> task, grant      refused                             refused              -
//!   not recoverable
//!               refused             refused                             refused              -
//! ```
//! A woken waiter tries again: it takes the lock if that is free, or waits on in its place. Without waiters every release leaves the lock free.
//!
//! ```text
//!   health      healthy --owner dies--> dead --make_consistent--> healthy
//!                                        | ^ owner dies again
//!                                        | '
//!                                        '-release--> not recoverable, for good
//! ```
//! Who is granted a lock that is dead is its heir, and is told so: `OwnerDied`. Each death has one heir, at once or, where nobody
//! waits, the next that asks. Health needs no action of its own: an owner reads [`Fulock::health`] of what it owns, which
//! changes by nobody else; a waiter that woke, owns nothing and waits for nothing reads `NotRecoverable`, which never changes.
//!
//! The effective priority of a task is the highest of its own, of the ceilings of what it holds ([`Protection::Protect`]) and of the first
//! waiters of what it holds ([`Protection::Inherit`]). Those are themselves effective priorities, so they pass along chains of
//! owners; a chain goes on through a lock that inherits, and ends at one that does not.
//!
//! [`Pip`](crate::Pip) stays a machine of its own: it decides as the kernel's PI futex does, which has neither of the two ways to unlock. There a freed
//! lock may be taken before its first waiter, but by a more urgent task only, and the bound of `pip` rests on that.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::Fuqueue;

use crate::parts::cycle::{chain, waits_for_itself};
use crate::parts::queue::{Links, PriorityList};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Locks along the longest chain of waiting, where no other limit is named. A request that would make a longer one is refused.
pub const CHAIN_MAX: usize = 64;

/// What one lock does against priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// The owner has at least the priority of the first waiter.
    Inherit,
    /// The owner has at least this ceiling. Tasks whose base priority is above it are refused.
    Protect(Priority),
}

/// To whom an unlocked lock goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unlock {
    /// To the first waiter: nobody can come between.
    Serial,
    /// To nobody: the first waiter is woken, and whoever asks first takes it. Saves a switch where the unlocker soon locks again.
    Parallel,
    /// Serial where the first waiter is [`Class::RealTime`], else parallel.
    #[default]
    Auto,
}

/// What [`Unlock::Auto`] asks about a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Class {
    /// It must not be overtaken by less urgent ones.
    RealTime,
    /// It may be.
    #[default]
    Ordinary,
}

/// Whether what a lock protects can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Health {
    /// It can.
    #[default]
    Healthy,
    /// An owner died in its section, and nobody has made it consistent since.
    Dead,
    /// It was unlocked while dead. Nobody gets it any more.
    NotRecoverable,
}

/// A deadlock that a request would make: each task waits for a resource that the next one owns, the last one for what the first owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycle<const CHAIN: usize = CHAIN_MAX> {
    asked: (TaskId, ResourceId),
    rest: [Option<(TaskId, ResourceId)>; CHAIN],
}

impl<const CHAIN: usize> Cycle<CHAIN> {
    /// Every task on the cycle with what it waits for, from the one whose request was refused.
    pub fn waits(&self) -> impl Iterator<Item = (TaskId, ResourceId)> {
        core::iter::once(self.asked).chain(self.rest.iter().map_while(|&wait| wait))
    }
}

/// Robust mutexes with a protection each; `CHAIN` limits the chains of waiting.
///
/// # Bound
/// A waiter is overtaken by more urgent ones, and under [`Unlock::Parallel`] by anybody. A release takes no loop over waiters, but the last one of a dead
/// lock; a request and a change of priority take one step for each lock up the chain, at most `CHAIN`. Only a request by a task whose own locks
/// have waiters looks at all who wait for it, to know that no chain gets too long.
///
/// How long a job is blocked has no bound here yet. Locks with ceilings are on one processor as those of [`Icpp`](crate::Icpp). Those that inherit have not that of
/// [`Pip`](crate::Pip): handed over strictly, a lock can block a job once for each less urgent task that waits for it.
///
/// # Reference
/// The fusyn paper: real-time and robust synchronization for Linux. Linux Symposium 2004. IEEE Std 1003.1, robust mutexes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fulock<
    const TASKS: usize = DEFAULT_TASKS,
    const RESOURCES: usize = DEFAULT_RESOURCES,
    const CHAIN: usize = CHAIN_MAX,
> {
    /// Knows the effective priorities too.
    queues: Fuqueue<TASKS, RESOURCES>,
    locks: [Lock; RESOURCES],
    /// Of the lists of owned locks.
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
    /// By what each of them asks its owner to have.
    owned: PriorityList<ResourceId>,
}

impl<const TASKS: usize, const RESOURCES: usize, const CHAIN: usize> Fulock<TASKS, RESOURCES, CHAIN> {
    /// All locks free and healthy; `tasks[t]` is the base priority and the class of task `t`, `protections[r]` the protection of
    /// lock `r`. Tasks beyond have the least priority and are ordinary, locks beyond have no protection.
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

    /// The owner of a lock.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.locks.get(resource.index())?.owner
    }

    /// Whether a lock can be trusted. Unknown locks are not recoverable.
    #[must_use]
    pub fn health(&self, resource: ResourceId) -> Health {
        self.locks.get(resource.index()).map_or(Health::NotRecoverable, |lock| lock.health)
    }

    /// What a task waits for.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> Option<ResourceId> {
        self.queues.waits_for(task)
    }

    /// What a task owns, what asks for the highest priority first.
    pub fn owned(&self, task: TaskId) -> impl Iterator<Item = ResourceId> {
        let list = self.tasks.get(task.index()).map_or(PriorityList::EMPTY, |task| task.owned);
        list.iter(&self.links)
    }

    /// The priority of a task, with what it inherits and the ceilings of what it owns. Unknown tasks have the least.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.queues.priority(task)
    }

    /// The cycle that `task` would close by waiting for `resource`: why a request was refused with [`Refusal::Deadlock`].
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

    /// `task` asks for `resource`, and waits if it is taken. Granted a dead lock, it is the heir of the last owner.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::Waiting`], [`Refusal::AlreadyHeld`], [`Refusal::NotRecoverable`], [`Refusal::AboveCeiling`],
    /// [`Refusal::Deadlock`] (see [`Fulock::cycle`]), [`Refusal::ChainTooLong`].
    pub fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        let Some(owner) = self.may_ask(task, resource)? else {
            self.take(task, resource, act);
            return Ok(());
        };
        if waits_for_itself(task, resource, |at| self.owner(at), |at| self.waits_for(at)) {
            return Err(Refusal::Deadlock);
        }
        // A free lock counts: whoever takes it may wait in turn.
        let above = 1 + self.chain(resource).filter(|(_, next)| next.is_some()).count();
        if self.below(task) + above > CHAIN {
            return Err(Refusal::ChainTooLong);
        }
        // Who waits is told last.
        self.queues.wait(task, resource, &mut |_| {})?;
        self.reweigh(resource);
        self.settle(owner, act);
        act(Action::Block { task, resource });
        Ok(())
    }

    /// `task` takes `resource` if that is free, and does not wait.
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

    /// `task` gives `resource` back. Dead, and not made consistent before, it is not recoverable from then on, and all who wait for it
    /// are woken.
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

    /// `task`, the heir of a dead owner, has repaired what `resource` protects.
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

    /// A woken task runs and tries to take what it waits for; it waits on if somebody else was faster.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`]; [`Refusal::NotWaiting`] where it owns the lock already, or waits no longer because it is not recoverable.
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

    /// A waiting task gives up. Priorities that its waiting gave to others are taken back at once.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`]; [`Refusal::NotWaiting`], as for [`Fulock::woken`]: a grant came before the timeout, say.
    pub fn cancel(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.waiting(task)?;
        self.leave(task, act);
        act(Action::Wake { task });
        Ok(())
    }

    /// `task` dies, wherever it is: it waits for nothing any more, and every lock it owned is dead and goes to its first waiter.
    /// Its id may be given to another task, at the base priority it has. Nothing is told of the dead.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn die(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        self.leave(task, act);
        // BOUND: one step a lock it owned.
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

    /// The class of `task` changes; releases from now on go by it.
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
        if lock.health == Health::NotRecoverable {
            return Err(Refusal::NotRecoverable);
        }
        match lock.protection {
            Protection::Protect(ceiling) if state.base > ceiling => Err(Refusal::AboveCeiling),
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

    /// The priority that a lock asks its owner to have.
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
