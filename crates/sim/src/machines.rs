//! The machines of all protocols in use, side by side: each resource is ruled by one of them.

use lockwright_model::{CpuId, MAX_RESOURCES, MAX_TASKS, Priority, Protocol, ResourceId, System, TaskId};
use lockwright_protocol::fulock::{Class, Protection, Unlock};
use lockwright_protocol::{Action, Fulock, Icpp, Mpcp, Pip, Plain, Refusal};

/// Which machine an action or a priority comes from.
pub(crate) type Source = usize;
pub(crate) const SOURCES: usize = 5;
const FULOCK: Source = 4;

const SMALL_TASKS: usize = 32;
const SMALL_RESOURCES: usize = 16;

/// The machines, in the size the system needs: creating the large ones costs more than simulating a small system.
pub(crate) enum Machines {
    Small(Set<SMALL_TASKS, SMALL_RESOURCES>),
    Large(Set<MAX_TASKS, MAX_RESOURCES>),
}

/// Only those that rule a resource of the system.
pub(crate) struct Set<const TASKS: usize, const RESOURCES: usize> {
    plain: Option<Box<Plain<TASKS, RESOURCES>>>,
    pip: Option<Box<Pip<TASKS, RESOURCES>>>,
    icpp: Option<Box<Icpp<TASKS, RESOURCES>>>,
    mpcp: Option<Box<Mpcp<TASKS, RESOURCES>>>,
    /// A chain of waiting has each resource at most once, so none is too long.
    fulock: Option<(Unlock, Box<Fulock<TASKS, RESOURCES, RESOURCES>>)>,
}

/// Something a task does to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Request,
    Release,
    /// The task was woken without a grant.
    Woken,
}

/// `fulock`: whether one machine has all resources that it knows a protection for.
pub(crate) const fn source_of(protocol: Protocol, fulock: bool) -> Source {
    match protocol {
        Protocol::Mpcp => 3,
        _ if fulock => FULOCK,
        Protocol::Pip => 1,
        Protocol::Icpp => 2,
        _ => 0,
    }
}

impl Machines {
    pub(crate) fn new(system: &System, protocols: &[Protocol], fulock: Option<Unlock>) -> Self {
        if system.tasks().len() <= SMALL_TASKS && system.resources().len() <= SMALL_RESOURCES {
            Self::Small(Set::new(system, protocols, fulock))
        } else {
            Self::Large(Set::new(system, protocols, fulock))
        }
    }

    pub(crate) fn call(
        &mut self,
        source: Source,
        call: Call,
        task: TaskId,
        resource: ResourceId,
        act: &mut impl FnMut(Action),
    ) -> Result<(), Refusal> {
        match self {
            Self::Small(set) => set.call(source, call, task, resource, act),
            Self::Large(set) => set.call(source, call, task, resource, act),
        }
    }

    /// `None` where no resource of the system is ruled by that machine.
    pub(crate) fn set_base(
        &mut self,
        source: Source,
        task: TaskId,
        base: Priority,
        act: &mut impl FnMut(Action),
    ) -> Option<Result<(), Refusal>> {
        match self {
            Self::Small(set) => set.set_base(source, task, base, act),
            Self::Large(set) => set.set_base(source, task, base, act),
        }
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Set<TASKS, RESOURCES> {
    fn new(system: &System, protocols: &[Protocol], fulock: Option<Unlock>) -> Self {
        let priorities: Vec<Priority> = system.tasks().iter().map(|task| task.priority).collect();
        let sources: Vec<Source> = protocols.iter().map(|&protocol| source_of(protocol, fulock.is_some())).collect();
        let has = |protocol| sources.contains(&source_of(protocol, false));
        Self {
            plain: has(Protocol::None).then(|| Box::new(Plain::new(&priorities))),
            pip: has(Protocol::Pip).then(|| Box::new(Pip::new(&priorities))),
            icpp: has(Protocol::Icpp).then(|| {
                let ceilings: Vec<Priority> = system.resource_ids().map(|resource| system.ceiling(resource)).collect();
                Box::new(Icpp::new(&priorities, &ceilings))
            }),
            mpcp: has(Protocol::Mpcp).then(|| {
                let tasks: Vec<(Priority, CpuId)> =
                    system.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
                let ceilings: Vec<_> = system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect();
                Box::new(Mpcp::new(&tasks, &ceilings))
            }),
            fulock: fulock.filter(|_| sources.contains(&FULOCK)).map(|unlock| {
                let tasks: Vec<_> = priorities.iter().map(|&priority| (priority, Class::RealTime)).collect();
                let protection = |(resource, protocol): (ResourceId, &Protocol)| match protocol {
                    Protocol::Pip => Protection::Inherit,
                    Protocol::Icpp => Protection::Protect(system.ceiling(resource)),
                    _ => Protection::None,
                };
                let protections: Vec<_> = system.resource_ids().zip(protocols).map(protection).collect();
                (unlock, Box::new(Fulock::new(&tasks, &protections)))
            }),
        }
    }

    fn call(
        &mut self,
        source: Source,
        call: Call,
        task: TaskId,
        resource: ResourceId,
        act: &mut impl FnMut(Action),
    ) -> Result<(), Refusal> {
        macro_rules! on {
            ($machine:expr) => {
                match (&mut $machine, call) {
                    (None, _) => Err(Refusal::UnknownResource),
                    (Some(machine), Call::Request) => machine.request(task, resource, act),
                    (Some(machine), Call::Release) => machine.release(task, resource, act),
                    // Handed-off resources are granted before the task is woken.
                    (Some(_), Call::Woken) => Err(Refusal::NotWaiting),
                }
            };
        }
        if source == FULOCK {
            let (unlock, machine) = self.fulock.as_mut().ok_or(Refusal::UnknownResource)?;
            return match call {
                Call::Request => machine.request(task, resource, act),
                Call::Release => machine.release(task, resource, *unlock, act),
                Call::Woken => machine.woken(task, act),
            };
        }
        match (source, call) {
            (0, Call::Woken) => self.plain.as_mut().ok_or(Refusal::NotWaiting)?.woken(task, act),
            (1, Call::Woken) => self.pip.as_mut().ok_or(Refusal::NotWaiting)?.woken(task, act),
            (0, _) => on!(self.plain),
            (1, _) => on!(self.pip),
            (2, _) => on!(self.icpp),
            _ => on!(self.mpcp),
        }
    }

    fn set_base(
        &mut self,
        source: Source,
        task: TaskId,
        base: Priority,
        act: &mut impl FnMut(Action),
    ) -> Option<Result<(), Refusal>> {
        match source {
            0 => Some(self.plain.as_mut()?.set_base(task, base, act)),
            1 => Some(self.pip.as_mut()?.set_base(task, base, act)),
            2 => Some(self.icpp.as_mut()?.set_base(task, base, act)),
            FULOCK => Some(self.fulock.as_mut()?.1.set_base(task, base, act)),
            _ => Some(self.mpcp.as_mut()?.set_base(task, base, act)),
        }
    }
}
