//! The invariants of all states, and the states that count as equal.

extern crate std;

use super::setting::{Rise, Setting};
use super::state::{Flag, Phase, State, Stepped, Thread, epoch, subject};
use crate::Action;
use lockwright_model::{Priority, TaskId};
use std::vec::Vec;

impl<M: Stepped> State<M> {
    pub(super) fn check(&self, setting: &Setting) {
        for (task, thread) in self.threads.iter().enumerate() {
            let is_told = thread.flag != Flag::Nothing;
            let wake = Action::Wake { task: TaskId::new(task) };
            let is_to_come = self.threads.iter().any(|other| other.todo.contains(&wake));
            assert!(!thread.is_asleep || !is_told || is_to_come, "task {task} was told something, and sleeps");
            if let Phase::Holds(resource) = thread.phase {
                assert!(self.owners[resource].contains(&task), "holds what it does not own");
            }
            if self.owners.iter().any(|owners| owners.contains(&task)) && self.executes(task) {
                assert!(thread.effective() >= setting.floor(task), "owner {task} executes below its ceiling");
            }
        }
        assert!((0..self.threads.len()).any(|me| self.can_go_on(me)), "nobody can go on");
        let slot = |&(task, resource): &(usize, usize)| {
            let cpu = setting.homes.map_or(setting.cpus[task], |homes| homes[resource]);
            let thread = &self.threads[task];
            let is_between = thread.asking == Priority::MIN && !thread.is_excluded;
            Some((cpu, thread.priority)).filter(|_| thread.cpu == cpu && is_between)
        };
        for (place, later) in self.requests.iter().enumerate().filter(|_| setting.is_ordered) {
            let Some((cpu, priority)) = slot(later) else { continue };
            for earlier in &self.requests[..place] {
                let Some((_, above)) = slot(earlier).filter(|slot| slot.0 == cpu) else { continue };
                assert!(above > priority, "a later request is above an earlier one: {earlier:?}, {later:?}");
            }
        }
        self.check_last_words();
        if setting.inherits {
            self.check_inheritance();
        }
        if setting.rise == Rise::Local {
            self.check_help();
        }
    }

    /// Whether no pending action sets the priority or the place of the task.
    fn is_settled(&self, task: usize) -> bool {
        let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
        let mut left = self.threads.iter().flat_map(|other| other.first.iter().chain(&other.todo));
        !left.any(|action| tells(action) && subject(action) == task)
    }

    fn check_last_words(&self) {
        for (task, (thread, &told)) in self.threads.iter().zip(&self.told).enumerate() {
            if self.is_settled(task) {
                assert_eq!((thread.priority, thread.cpu), told, "task {task} was told otherwise last");
            }
        }
    }

    /// Checks that each owner has at least the priorities of the tasks that wait for its resource.
    ///
    /// The machine sets them; it does not leave inheritance to the kernel.
    fn check_inheritance(&self) {
        for &(waiter, resource) in &self.requests {
            for &owner in self.owners[resource].iter().filter(|&&owner| owner != waiter) {
                if self.is_settled(owner) && self.is_settled(waiter) {
                    let (has, waits) = (self.threads[owner].priority, self.threads[waiter].priority);
                    assert!(has >= waits, "owner {owner} does not inherit from task {waiter}");
                }
            }
        }
    }

    /// Checks that waiters help their owners, while no thread is in the middle of a decision.
    fn check_help(&self) {
        let is_between = |thread: &Thread| {
            let is_done = thread.first.is_empty() && thread.todo.is_empty() && !thread.is_excluded;
            is_done && matches!(thread.phase, Phase::Idle | Phase::GoesOn | Phase::Spins(_) | Phase::Holds(_))
        };
        if !self.threads.iter().all(is_between) {
            return;
        }
        for (task, thread) in self.threads.iter().enumerate() {
            if let Phase::Spins(resource) = thread.phase
                && let Some(&owner) = self.owners[resource].first()
                && self.executes(task)
            {
                assert!(self.executes(owner), "task {task} spins for {owner}, which does not execute");
            }
        }
    }

    fn can_go_on(&self, me: usize) -> bool {
        let thread = &self.threads[me];
        let decides = thread.todo.is_empty() && thread.phase.decides();
        let spins = matches!(thread.phase, Phase::Spins(_)) && thread.flag != Flag::Granted;
        self.executes(me) && !spins && (self.guard.is_none_or(|other| other == me) || !decides)
    }

    /// Makes states equal that differ only in epochs, if the epochs have the same order.
    pub(super) fn forget(&mut self) {
        for task in 0..self.threads.len() {
            // The epochs of the pending actions that concern the task.
            let mut told: Vec<(bool, u32)> = Vec::new();
            for thread in &mut self.threads {
                for action in thread.first.iter_mut().chain(&mut thread.todo).filter(|action| subject(action) == task) {
                    let moves = matches!(action, Action::Migrate { .. });
                    told.extend(epoch(action).map(|epoch| (moves, *epoch)));
                }
            }
            let Thread { priority_epoch, place_epoch, .. } = self.threads[task];
            let mut epochs: Vec<u32> = told.iter().map(|&(_, epoch)| epoch).collect();
            epochs.extend([(false, priority_epoch), (true, place_epoch)].iter().filter_map(|&(moves, epoch)| {
                // Without a pending action of this kind, the epoch is compared only with later ones.
                told.iter().any(|other| other.0 == moves).then_some(epoch)
            }));
            epochs.sort_unstable_by(|&a, &b| (b.wrapping_sub(a) as i32).cmp(&0));
            epochs.dedup();
            // The latest gets 0, from which the machine continues.
            let ranked = |old: u32| {
                let place = epochs.iter().position(|&epoch| epoch == old).unwrap_or(0) as u32;
                0_u32.wrapping_sub(place)
            };
            let thread = &mut self.threads[task];
            (thread.priority_epoch, thread.place_epoch) = (ranked(priority_epoch), ranked(place_epoch));
            for thread in &mut self.threads {
                let actions = thread.first.iter_mut().chain(&mut thread.todo);
                let own = actions.filter(|action| subject(action) == task);
                own.filter_map(epoch).for_each(|epoch| *epoch = ranked(*epoch));
            }
        }
        self.machine.zero_epochs();
    }
}
