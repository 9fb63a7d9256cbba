//! The machines of all protocols in use. Each resource belongs to one of them.

use lockwright_model::{EXECUTED_TASKS_MAX, Priority, Protocol, RESOURCES_MAX, ResourceId, System, TaskId};
use lockwright_protocol::fulock::{Class, Protection, Unlock};
use lockwright_protocol::{Action, Fulock, Machine, Refusal, boxed};

/// The index of the machine from which an action or a priority comes.
pub(crate) type Source = usize;

/// The machines that have a resource of the system.
pub(crate) struct Machines {
    /// The machines by index. The one that decides at the moment is taken out.
    list: Vec<Option<Box<dyn Machine + Send>>>,
    /// The machine of each resource.
    sources: Vec<Source>,
    /// The machines that count jobs.
    counting: Vec<Source>,
}

/// One machine for all resources under `none`, `pip` and `icpp`, instead of one for each protocol.
struct OneFulock<const TASKS: usize, const RESOURCES: usize> {
    unlock: Unlock,
    /// A chain of waiting tasks has each resource at most once, so its length is at most the number of resources.
    machine: Fulock<TASKS, RESOURCES, RESOURCES>,
}

const SMALL_TASKS: usize = 32;
const SMALL_RESOURCES: usize = 16;

impl Machines {
    /// Creates the machines for these `protocols`, which are given by resource.
    ///
    /// Small systems get small machines: creating large ones takes longer than simulating a small system.
    pub(crate) fn new(system: &System, protocols: &[Protocol], fulock: Option<Unlock>) -> Self {
        let is_small = system.tasks().len() <= SMALL_TASKS && system.resources().len() <= SMALL_RESOURCES;
        let mut list: Vec<Option<Box<dyn Machine + Send>>> = Vec::new();
        let mut known: Vec<Protocol> = Vec::new();
        let mut sources = Vec::with_capacity(protocols.len());
        for &protocol in protocols {
            let is_fulock = |protocol| matches!(protocol, Protocol::None | Protocol::Pip | Protocol::Icpp);
            let fulock = fulock.filter(|_| is_fulock(protocol));
            let same = |&other: &Protocol| other == protocol || fulock.is_some() && is_fulock(other);
            let source = known.iter().position(same).unwrap_or_else(|| {
                known.push(protocol);
                let machine: Box<dyn Machine + Send> = match fulock {
                    None if is_small => boxed::<SMALL_TASKS, SMALL_RESOURCES>(system, protocol),
                    None => boxed::<EXECUTED_TASKS_MAX, RESOURCES_MAX>(system, protocol),
                    Some(unlock) if is_small => one_fulock::<SMALL_TASKS, SMALL_RESOURCES>(system, protocols, unlock),
                    Some(unlock) => one_fulock::<EXECUTED_TASKS_MAX, RESOURCES_MAX>(system, protocols, unlock),
                };
                list.push(Some(machine));
                list.len() - 1
            });
            sources.push(source);
        }
        let counts_jobs =
            |machine: &Option<Box<dyn Machine + Send>>| machine.as_ref().is_some_and(|it| it.counts_jobs());
        let counting = (0..list.len()).filter(|&source| counts_jobs(&list[source])).collect();
        Self { list, sources, counting }
    }

    /// Replaces the only machine.
    ///
    /// # Panics
    /// Panics if there are several machines, or none.
    pub(crate) fn replace(&mut self, machine: Box<dyn Machine + Send>) {
        assert_eq!(self.list.len(), 1, "one machine rules all resources");
        self.counting = if machine.counts_jobs() { vec![0] } else { Vec::new() };
        self.list = vec![Some(machine)];
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(crate) fn counting(&self) -> &[Source] {
        &self.counting
    }

    /// Returns the machine of a resource.
    #[inline]
    pub(crate) fn source(&self, resource: ResourceId) -> Source {
        self.sources[resource.index()]
    }

    /// Takes a machine out while it handles an event, so that the caller can carry out its decisions with the others.
    ///
    /// # Panics
    /// Panics if the machine was not put back after the last event.
    #[inline]
    pub(crate) fn take_out(&mut self, source: Source) -> Box<dyn Machine + Send> {
        self.list[source].take().expect("a machine decides one event after the other")
    }

    /// Puts a machine back.
    #[inline]
    pub(crate) fn put_back(&mut self, source: Source, machine: Box<dyn Machine + Send>) {
        self.list[source] = Some(machine);
    }
}

fn one_fulock<const TASKS: usize, const RESOURCES: usize>(
    system: &System,
    protocols: &[Protocol],
    unlock: Unlock,
) -> Box<dyn Machine + Send> {
    let tasks: Vec<_> = system.tasks().iter().map(|task| (task.priority, Class::RealTime)).collect();
    let protection = |(resource, protocol): (ResourceId, &Protocol)| match protocol {
        Protocol::Pip => Protection::Inherit,
        Protocol::Icpp => Protection::Protect(system.ceiling(resource)),
        _ => Protection::None,
    };
    let protections: Vec<_> = system.resource_ids().zip(protocols).map(protection).collect();
    Box::new(OneFulock::<TASKS, RESOURCES> { unlock, machine: Fulock::new(&tasks, &protections) })
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for OneFulock<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, on: ResourceId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.machine.request(task, on, &mut act)
    }

    fn release(&mut self, task: TaskId, on: ResourceId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.machine.release(task, on, self.unlock, &mut act)
    }

    fn woken(&mut self, task: TaskId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.machine.woken(task, &mut act)
    }

    fn cancel(&mut self, task: TaskId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.machine.cancel(task, &mut act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.machine.set_base(task, base, &mut act)
    }
}
