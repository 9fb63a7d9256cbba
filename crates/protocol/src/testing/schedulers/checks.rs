//! The promises of all states.

extern crate std;

use super::setting::{Fault, Setting};
use super::threads::{Phase, State, Thread};
use crate::testing::effects::{Flag, Stepped, subject};
use crate::{Action, EdfLock};
use lockwright_model::TaskId;
use std::vec::Vec;

impl<M: Stepped> State<M> {
    pub(super) fn check(&self, setting: &Setting) {
        let pending = |is: &dyn Fn(&Action) -> bool| self.threads.iter().flat_map(|thread| &thread.todo).any(is);
        for (task, thread) in self.threads.iter().enumerate() {
            let wake = Action::Wake { task: TaskId::new(task) };
            let is_told = thread.is_asleep && thread.flag != Flag::Nothing;
            assert!(!is_told || pending(&|action| *action == wake), "task {task} was told something, and sleeps");
            let waits = matches!(thread.phase, Phase::Held | Phase::Waits(_) | Phase::Spins(_));
            assert!(waits || thread.flag == Flag::Nothing, "task {task} was told something, and does not wait");
            let is_settled =
                !pending(&|action| matches!(action, Action::SetPriority { .. }) && subject(action) == task);
            let told = self.told[task];
            assert!(!is_settled || thread.priority == told, "task {task} was told otherwise last");
            assert!(
                !self.is_above_jobs(task, setting) || self.level(task, setting) >= setting.arriving,
                "task {task} is not above the jobs"
            );
        }
        let is_not_preempted = |task: &usize| self.is_not_preempted(*task, setting);
        let not_preempted = (0..self.threads.len()).filter(is_not_preempted).count();
        assert!(not_preempted <= setting.processors, "more jobs are not preempted than there are processors");
        if self.is_quiet() {
            self.check_choice(setting);
        }
    }

    /// Whether the thread must be above all jobs: it decides on the begin or the end of its job, or its job is not
    /// preempted, or, on any processors, it changes other threads.
    fn is_above_jobs(&self, task: usize, setting: &Setting) -> bool {
        let thread = &self.threads[task];
        let is_between_jobs = matches!(thread.phase, Phase::Idle | Phase::Arrives | Phase::Begins | Phase::Ends);
        let acts = setting.is_global && thread.acts_on_others(task);
        is_between_jobs || acts || self.is_not_preempted(task, setting)
    }

    fn is_not_preempted(&self, task: usize, setting: &Setting) -> bool {
        match self.threads[task].phase {
            Phase::Spins(resource) | Phase::Holds(resource) => {
                setting.is_global && setting.locks[resource] == EdfLock::Short
            }
            _ => false,
        }
    }

    /// Whether nothing is left to carry out, and no thread is about to decide.
    pub(super) fn is_settled(&self) -> bool {
        self.threads.iter().all(Thread::is_settled)
    }

    /// Whether, in addition, all threads that wait are asleep.
    fn is_quiet(&self) -> bool {
        let waits = |thread: &Thread| matches!(thread.phase, Phase::Held | Phase::Waits(_));
        let is_quiet = |thread: &Thread| thread.flag == Flag::Nothing && thread.is_asleep == waits(thread);
        self.is_settled() && self.threads.iter().all(is_quiet)
    }

    /// The order of jobs: the owner of a resource on which jobs sleep inherits from them.
    fn key(&self, task: usize, setting: &Setting) -> (u64, usize) {
        let own = |task: usize| (self.threads[task].due, task);
        let inherits = |resource: &usize| {
            setting.is_global
                && setting.locks[*resource] == EdfLock::Long
                && self.queues[*resource].first() == Some(&task)
        };
        let resources = (0..self.queues.len()).filter(inherits);
        resources.flat_map(|on| &self.queues[on]).map(|&waiter| own(waiter)).fold(own(task), Ord::min)
    }

    /// Checks that the jobs that execute are those with the earliest deadlines, as far as the resources admit.
    fn check_choice(&self, setting: &Setting) {
        let sleeps_in_queue =
            |task: usize| matches!(self.threads[task].phase, Phase::Waits(on) if self.queues[on].contains(&task));
        let has_job = |task: &usize| self.has_job(*task) && !sleeps_in_queue(*task);
        let jobs: Vec<usize> = (0..self.threads.len()).filter(has_job).collect();
        let executing: Vec<usize> = jobs.iter().copied().filter(|&task| self.executes(task, setting)).collect();
        assert_eq!(executing.len(), jobs.len().min(setting.processors), "the wrong number of jobs executes");
        let mut first: Vec<usize> = jobs.iter().copied().filter(|&task| !self.is_held(task, &jobs, setting)).collect();
        first.sort_unstable_by_key(|&task| self.key(task, setting));
        first.truncate(setting.processors);
        for task in executing {
            let may = first.contains(&task) || self.is_not_preempted(task, setting);
            assert!(may, "task {task} executes in place of one of these: {first:?}");
        }
    }

    /// Whether the job waits to start, and a ceiling holds it, or one with an earlier deadline that waits to start.
    fn is_held(&self, task: usize, jobs: &[usize], setting: &Setting) -> bool {
        let waits = |other: &&usize| self.threads[**other].phase == Phase::Held;
        let earliest = jobs.iter().filter(waits).min_by_key(|&&other| self.key(other, setting));
        let Some(&earliest) = earliest.filter(|_| self.threads[task].phase == Phase::Held) else { return false };
        let is_below = |on: usize| setting.ceilings[on] >= setting.levels[earliest];
        jobs.iter().any(|&other| matches!(self.threads[other].phase, Phase::Holds(on) if is_below(on)))
    }

    /// Whether a thread that executes can take a step.
    pub(super) fn can_go_on(&self, setting: &Setting, fault: Fault) -> bool {
        let mut next = Vec::new();
        (0..self.threads.len()).filter(|&me| self.executes(me, setting)).any(|me| {
            self.steps(me, setting, fault, &mut next);
            !next.is_empty()
        })
    }

    /// Lets every job end as soon as it can, without further arrivals.
    pub(super) fn end_all(&self, setting: &Setting, fault: Fault) {
        let mut state = self.clone();
        let mut next = Vec::new();
        // BOUND: a job decides at most six times, and takes at most ten steps for each decision.
        for _ in 0..60 * self.threads.len() {
            let step = (0..state.threads.len()).filter(|&me| state.executes(me, setting)).find_map(|me| {
                next.clear();
                state.steps(me, setting, fault, &mut next);
                (!next.is_empty()).then(|| next.swap_remove(0))
            });
            let Some(after) = step else { break };
            state = after;
        }
        assert!(!(0..state.threads.len()).any(|task| state.has_job(task)), "a job never ends");
    }
}
