//! The events of a scheduler by deadlines.

extern crate std;

use crate::{Action, Machine, Refusal};
use lockwright_model::{Instant, ResourceId, TaskId};
use std::vec::Vec;

pub(crate) type Answer = Result<Vec<Action>, Refusal>;

/// An event, with its task, and with a deadline or a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Arrive(usize, u64),
    Finish(usize),
    Request(usize, usize),
    Release(usize, usize),
    Woken(usize),
    Cancel(usize),
}

impl Event {
    /// All events of so many tasks, resources and deadlines, and of one task and one resource more than there are.
    pub(crate) fn all(tasks: usize, resources: usize, dues: u64) -> Vec<Self> {
        let mut all = Vec::new();
        for task in 0..=tasks {
            all.extend((0..dues).map(|due| Self::Arrive(task, due)));
            all.extend([Self::Finish(task), Self::Woken(task), Self::Cancel(task)]);
            all.extend((0..=resources).flat_map(|on| [Self::Request(task, on), Self::Release(task, on)]));
        }
        all
    }

    pub(crate) fn task(self) -> usize {
        let (Self::Arrive(task, _)
        | Self::Finish(task)
        | Self::Request(task, _)
        | Self::Release(task, _)
        | Self::Woken(task)
        | Self::Cancel(task)) = self;
        task
    }

    /// The refusals of an event whose task or resource does not exist.
    pub(crate) fn refusals_of_unknown(self, tasks: usize, resources: usize) -> Vec<Refusal> {
        let on = if let Self::Request(_, on) | Self::Release(_, on) = self { on } else { 0 };
        [(self.task() >= tasks, Refusal::UnknownTask), (on >= resources, Refusal::UnknownResource)]
            .into_iter()
            .filter_map(|(applies, refusal)| applies.then_some(refusal))
            .collect()
    }

    pub(crate) fn give(self, machine: &mut impl Machine) -> Answer {
        let (mut actions, task) = (Vec::new(), TaskId::new(self.task()));
        let act = &mut |action| actions.push(action);
        match self {
            Self::Arrive(_, due) => machine.arrive_due(task, Instant::from_ns(due), act),
            Self::Finish(_) => machine.finish(task, act),
            Self::Request(_, on) => machine.request(task, ResourceId::new(on), act),
            Self::Release(_, on) => machine.release(task, ResourceId::new(on), act),
            Self::Woken(_) => machine.woken(task, act),
            Self::Cancel(_) => machine.cancel(task, act),
        }?;
        Ok(actions)
    }
}

/// A mutation: given an event and the machine before it, it changes the machine after it, or the answer.
pub(crate) type Mutation<M> = fn(Event, &M, &mut M, &mut Answer);

/// Gives an event to a machine, with a mutation. Checks that it is refused as one of `refusals` and changes nothing, if
/// there are any; the result is then `None`. Otherwise returns the machine after it and the answer, with epochs of 0.
pub(crate) fn give<M: Machine + Clone + PartialEq>(
    machine: &M,
    event: Event,
    refusals: &[Refusal],
    mutate: Mutation<M>,
) -> Option<(M, Answer)> {
    let mut next = machine.clone();
    let mut answer = event.give(&mut next);
    mutate(event, machine, &mut next, &mut answer);
    if !refusals.is_empty() {
        let refused = answer.expect_err("an event without meaning was accepted");
        assert!(refusals.contains(&refused), "{event:?} refused as {refused:?}, not {refusals:?}");
        assert!(next == *machine, "a refused event changed something");
        return None;
    }
    for action in answer.iter_mut().flatten() {
        if let Action::SetPriority { epoch, .. } = action {
            assert_eq!(*epoch, 1, "epochs were 0 before");
            *epoch = 0;
        }
    }
    Some((next, answer))
}
