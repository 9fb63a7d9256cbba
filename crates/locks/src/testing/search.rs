//! The search of all interleavings of a few tasks, each of which is a machine of small steps.
//!
//! It goes breadth first over every state in sequentially consistent memory, and then backwards from the states in
//! which all tasks are done. A state that cannot reach one of these is stuck.
//! A search ends at the first wrong state: the guarantee is broken, and no other state changes that.
//! The search thus finds waits that no schedule ends. It does not find waits that an unfair schedule prolongs.

use indexmap::IndexSet;
use std::hash::Hash;
use std::string::String;
use std::vec::Vec;

/// Tasks and their shared words.
pub(crate) trait Model {
    type State: Clone + Eq + Hash;

    fn start(&self) -> Self::State;

    fn tasks(&self) -> usize;

    /// Passes each state to which a step of `task` can lead to `to`. There is none if the task has nothing to do.
    fn steps(&self, state: &Self::State, task: usize, to: &mut dyn FnMut(Self::State));

    /// Whether all tasks are done.
    fn is_done(&self, state: &Self::State) -> bool;

    /// Whether the state breaks a guarantee.
    fn is_wrong(&self, state: &Self::State) -> bool;

    /// Whether a step of `task` is counted.
    fn counts(&self, from: &Self::State, task: usize, to: &Self::State) -> bool;

    /// Describes the step in a few words.
    fn describe(&self, from: &Self::State, task: usize, to: &Self::State) -> String;
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) states: usize,
    /// A state breaks a guarantee. The search ended there.
    pub(crate) is_wrong: bool,
    /// The number of states that cannot reach the end. It is 0 if the search ended early.
    pub(crate) stuck: usize,
    /// The number of counted steps.
    pub(crate) counted: usize,
    /// A shortest way to a stuck state: the task of each step, and its description.
    pub(crate) way_to_stuck: Vec<(usize, String)>,
    /// A shortest way to a counted step, with that step.
    pub(crate) way_to_counted: Vec<(usize, String)>,
}

/// Searches all states, or those up to the first wrong one.
///
/// # Panics
/// If there are 2^32 states or more.
pub(crate) fn search<M: Model>(model: &M) -> Found {
    let mut states = IndexSet::with_hasher(foldhash::fast::FixedState::default());
    states.insert(model.start());
    let mut steps: Vec<(u32, u32)> = Vec::new();
    // The first step to each state: its former state and its task.
    let mut first: Vec<(u32, u8)> = std::vec![(0, 0)];
    let mut counted = 0;
    let mut first_counted = None;
    let mut at = 0;
    let mut is_wrong = model.is_wrong(&states[0]);
    while let Some(from) = states.get_index(at).filter(|_| !is_wrong).cloned() {
        for task in 0..model.tasks() {
            model.steps(&from, task, &mut |to: M::State| {
                if to == from || is_wrong {
                    return;
                }
                is_wrong = model.is_wrong(&to);
                if model.counts(&from, task, &to) {
                    counted += 1;
                    first_counted.get_or_insert_with(|| (at, task, to.clone()));
                }
                let (index, is_new) = states.insert_full(to);
                if is_new {
                    first.push((at as u32, task as u8));
                }
                steps.push((at as u32, u32::try_from(index).expect("fewer than 2^32 states")));
            });
        }
        at += 1;
    }

    let state = |index: usize| states.get_index(index).expect("a state that was found");
    let way_to = |mut index: usize| {
        let mut way = Vec::new();
        while index != 0 {
            let (from, task) = (first[index].0 as usize, usize::from(first[index].1));
            way.push((task, model.describe(state(from), task, state(index))));
            index = from;
        }
        way.reverse();
        way
    };
    let ends = match is_wrong {
        false => ends_of(states.len(), &steps, |index| model.is_done(state(index))),
        // The states that follow are unknown.
        true => Vec::new(),
    };
    Found {
        states: states.len(),
        is_wrong,
        stuck: ends.iter().filter(|ends| !**ends).count(),
        counted,
        way_to_stuck: ends.iter().position(|ends| !ends).map(way_to).unwrap_or_default(),
        way_to_counted: first_counted.map_or_else(Vec::new, |(from, task, to)| {
            let mut way = way_to(from);
            way.push((task, model.describe(state(from), task, &to)));
            way
        }),
    }
}

/// Returns whether each state can reach one that is done.
fn ends_of(states: usize, steps: &[(u32, u32)], is_done: impl Fn(usize) -> bool) -> Vec<bool> {
    // The start of the predecessors of each state, in one list of all.
    let mut begins = std::vec![0u32; states + 1];
    steps.iter().for_each(|&(_, to)| begins[to as usize + 1] += 1);
    (0..states).for_each(|index| begins[index + 1] += begins[index]);
    let mut filled = begins.clone();
    let mut before = std::vec![0u32; steps.len()];
    for &(from, to) in steps {
        before[filled[to as usize] as usize] = from;
        filled[to as usize] += 1;
    }
    let mut ends: Vec<bool> = (0..states).map(&is_done).collect();
    let mut found: Vec<usize> = (0..states).filter(|&index| ends[index]).collect();
    while let Some(index) = found.pop() {
        for &from in &before[begins[index] as usize..begins[index + 1] as usize] {
            if !std::mem::replace(&mut ends[from as usize], true) {
                found.push(from as usize);
            }
        }
    }
    ends
}

/// Formats a way with a column for each task.
pub(crate) fn columns(tasks: usize, way: &[(usize, String)]) -> String {
    let width = way.iter().map(|(_, step)| step.chars().count()).max().unwrap_or(0) + 2;
    let mut lines = String::new();
    for (task, step) in way {
        let indent = task * width;
        lines.extend(std::iter::repeat_n(' ', indent));
        lines.push_str(step);
        lines.push('\n');
    }
    let heads: String = (0..tasks).map(|task| std::format!("{:width$}", std::format!("task {task}"))).collect();
    std::format!("{}\n{lines}", heads.trim_end())
}

mod tests {
    use super::*;

    /// Two tasks lock two locks, in the same order or not.
    struct TwoLocks {
        same_order: bool,
        /// The state is wrong once both tasks have made this number of steps.
        wrong_after: u8,
    }

    impl TwoLocks {
        fn lock(&self, task: usize, step: u8) -> usize {
            usize::from(step) ^ usize::from(task == 1 && !self.same_order)
        }
    }

    impl Model for TwoLocks {
        /// The progress of each task, and the owner of each lock.
        type State = ([u8; 2], [Option<usize>; 2]);

        fn start(&self) -> Self::State {
            ([0; 2], [None; 2])
        }
        fn tasks(&self) -> usize {
            2
        }
        fn steps(&self, &(mut steps, mut locks): &Self::State, task: usize, to: &mut dyn FnMut(Self::State)) {
            match steps[task] {
                step @ (0 | 1) if locks[self.lock(task, step)].is_none() => locks[self.lock(task, step)] = Some(task),
                2 => locks.iter_mut().filter(|lock| **lock == Some(task)).for_each(|lock| *lock = None),
                _ => return,
            }
            steps[task] += 1;
            to((steps, locks));
        }
        fn is_done(&self, &(steps, _): &Self::State) -> bool {
            steps == [3; 2]
        }
        fn is_wrong(&self, &(steps, _): &Self::State) -> bool {
            steps == [self.wrong_after; 2]
        }
        fn counts(&self, _: &Self::State, task: usize, _: &Self::State) -> bool {
            task == 1
        }
        fn describe(&self, &(steps, _): &Self::State, _: usize, _: &Self::State) -> String {
            std::format!("step {}", steps[0])
        }
    }

    #[test]
    fn a_deadlock_is_found_and_nothing_else() {
        let found = search(&TwoLocks { same_order: true, wrong_after: 2 });
        assert_eq!((found.stuck, found.is_wrong), (0, false));
        let found = search(&TwoLocks { same_order: false, wrong_after: 2 });
        assert_eq!((found.stuck, found.is_wrong), (1, false));
        assert_eq!(found.way_to_stuck.len(), 2);
        assert_eq!(columns(2, &found.way_to_stuck).lines().count(), 3);
    }

    #[test]
    fn a_search_ends_at_the_first_wrong_state() {
        let all = search(&TwoLocks { same_order: false, wrong_after: 2 });
        let found = search(&TwoLocks { same_order: false, wrong_after: 1 });
        assert!(found.is_wrong && found.stuck == 0 && found.states < all.states);
    }
}
