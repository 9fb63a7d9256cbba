//! The common part of all walks: the reachable states, the events given in each, and the comparison after each.

extern crate std;

use crate::{Action, Refusal};
use core::fmt::Debug;
use core::hash::Hash;
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::vec::Vec;

/// The number of states after which a walk stops: under Miri a walk only looks for undefined behaviour.
pub(crate) const STATES_MOST: usize = if cfg!(miri) { 2 } else { usize::MAX };

/// Visits each state that is reachable from `first` once. `visit` appends the successors of a state. Returns the
/// number of states.
pub(crate) fn reach<S: Eq + Hash>(first: S, visit: impl FnMut(&S, &mut Vec<S>)) -> usize {
    reach_at_most(STATES_MOST, first, visit)
}

/// As [`reach`], for at most `most` states.
pub(crate) fn reach_at_most<S: Eq + Hash>(most: usize, first: S, mut visit: impl FnMut(&S, &mut Vec<S>)) -> usize {
    let mut seen: HashSet<S, FixedState> = HashSet::default();
    let mut todo = std::vec![first];
    // BOUND: each round removes one state, and each state adds its successors once.
    while let Some(state) = todo.pop().filter(|_| seen.len() < most) {
        if !seen.contains(&state) {
            visit(&state, &mut todo);
            seen.insert(state);
        }
    }
    seen.len()
}

pub(super) type Actions = Vec<Action>;
/// The answer of a machine to one event.
pub(super) type Answer = Result<Actions, Refusal>;

/// The answer of a machine, as its methods give it.
pub(super) fn answer(event: impl FnOnce(&mut dyn FnMut(Action)) -> Result<(), Refusal>) -> Answer {
    let mut actions = Actions::new();
    event(&mut |action| actions.push(action))?;
    Ok(actions)
}

/// A machine beside its shadow. The shadow knows only the events and the actions, and decides by the rules of the
/// protocol what must follow.
pub(super) trait Walk<M> {
    type Shadow: Clone + Eq + Hash;
    type Event: Copy + Debug;

    /// All events, with and without a meaning in the current state.
    fn events(&self) -> Vec<Self::Event>;

    /// Gives the machine an event.
    fn apply(&self, machine: &mut M, shadow: &Self::Shadow, event: Self::Event) -> Answer;

    /// The reasons for which the event may be refused. If there is one, it must be refused.
    fn refusals(&self, shadow: &Self::Shadow, event: Self::Event) -> Vec<Refusal>;

    /// Whether an event with a meaning belongs to the walk.
    fn admits(&self, _: &Self::Shadow, _: Self::Event) -> bool {
        true
    }

    /// Compares what the machine tells about an event besides its answer, in the state before the event.
    fn compare(&self, _: &M, _: &Self::Shadow, _: Self::Event, _: Option<Refusal>) {}

    /// Carries an event and its actions out on the shadow, checks each, and compares the shadow with the machine.
    fn follow(&self, machine: &M, shadow: &mut Self::Shadow, event: Self::Event, actions: &Actions);

    /// Checks that every task can finish from this state.
    fn finish(&self, machine: &M, shadow: &Self::Shadow);

    /// Forgets what does not distinguish states, such as epochs.
    fn forget(&self, machine: &mut M, shadow: &mut Self::Shadow);
}

/// Gives at most `most` events, each chosen by `next`, until `next` has none.
pub(super) fn run<M, W: Walk<M>>(
    walk: &W,
    (machine, shadow): (&mut M, &mut W::Shadow),
    most: usize,
    next: impl Fn(&W::Shadow) -> Option<W::Event>,
) {
    for _ in 0..most {
        let Some(event) = next(shadow) else { break };
        let actions = walk.apply(machine, shadow, event).expect("an event with a meaning is accepted");
        walk.follow(machine, shadow, event, &actions);
    }
}

/// A mutation: given an event and the machine before it, it changes the machine after it, or the answer.
pub(super) type Mutation<W, M> = fn(<W as Walk<M>>::Event, &M, &mut M, &mut Answer);

/// Walks all reachable states, and returns their number.
pub(super) fn walk<M, W>(walk: &W, first: (M, W::Shadow), mutate: Mutation<W, M>) -> usize
where
    M: Clone + Eq + Hash,
    W: Walk<M>,
{
    let events = walk.events();
    reach(first, |(machine, shadow), successors| {
        walk.finish(machine, shadow);
        for &event in &events {
            let mut next = machine.clone();
            let mut answer = walk.apply(&mut next, shadow, event);
            mutate(event, machine, &mut next, &mut answer);
            let refusals = walk.refusals(shadow, event);
            if !refusals.is_empty() {
                let refused = answer.expect_err("an event without meaning was accepted");
                assert!(refusals.contains(&refused), "{event:?} refused as {refused:?}, not {refusals:?}");
                assert!(next == *machine, "a refused event changed something");
                walk.compare(machine, shadow, event, Some(refused));
            } else if walk.admits(shadow, event) {
                walk.compare(machine, shadow, event, None);
                let actions = answer.unwrap_or_else(|refused| panic!("{event:?} refused: {refused:?}"));
                let mut told = shadow.clone();
                walk.follow(&next, &mut told, event, &actions);
                walk.forget(&mut next, &mut told);
                successors.push((next, told));
            }
        }
    })
}

/// Fewer states than these would mean that a walk did not leave the start.
pub(crate) fn check_states(name: &str, states: usize, least: usize) {
    std::println!("{name}: {states} states");
    assert!(cfg!(miri) || states >= least, "{name} has {states} states only");
}

/// No mutation.
pub(super) fn unchanged<E, M>(_: E, _: &M, _: &mut M, _: &mut Answer) {}
