//! Every order of events, for three tasks and two resources. A shadow decides from the rules of EDF and of the stack
//! resource policy alone which actions an event must have; each mutant must be noticed.
//!
//! A job executes if it is the top of its stack, and no woken job of its processor has yet to be told its priority.
//! Only such jobs request, release and finish. A job that arrives later than another one with a later deadline has the
//! higher preemption level, because its relative deadline is shorter.

extern crate std;

use super::{Edf, Job, TaskState};
use crate::testing::{Answer, Event, Mutation, check_states, give, reach};
use crate::{Action, Refusal};
use lockwright_model::{CpuId, Instant, Priority, ResourceId, TaskId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

const TASKS: usize = 3;
const RESOURCES: usize = 2;
const DUES: u64 = 3;
/// The first task has the highest level, and does not use the second resource.
const LEVELS: [u32; TASKS] = [3, 2, 1];
const CEILINGS: [u32; RESOURCES] = [3, 2];

type Walked = Edf<TASKS, RESOURCES>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Is {
    Without,
    Waiting,
    Woken,
    Started,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Shadow {
    cpus: [usize; TASKS],
    is: [Is; TASKS],
    due: [u64; TASKS],
    /// The jobs that have started, of all processors.
    stack: Vec<usize>,
    owners: [Option<usize>; RESOURCES],
}

impl Shadow {
    fn key(&self, task: usize) -> (u64, usize) {
        (self.due[task], task)
    }

    fn top(&self, cpu: usize) -> Option<usize> {
        self.stack.iter().copied().rfind(|&task| self.cpus[task] == cpu)
    }

    fn holds_any(&self, task: usize) -> bool {
        self.owners.contains(&Some(task))
    }

    fn executes(&self, task: usize) -> bool {
        let is_woken = |other: &usize| self.cpus[*other] == self.cpus[task] && self.is[*other] == Is::Woken;
        self.top(self.cpus[task]) == Some(task) && !(0..TASKS).any(|other| is_woken(&other))
    }

    /// Whether a ceiling keeps the job of `task` from starting.
    fn is_held(&self, task: usize) -> bool {
        let is_above = |(on, owner): (usize, &Option<usize>)| {
            let other = owner.filter(|&owner| owner != task && self.cpus[owner] == self.cpus[task]);
            other.is_some() && CEILINGS[on] >= LEVELS[task]
        };
        self.owners.iter().enumerate().any(is_above)
    }

    /// The waiting job of a processor with the earliest deadline.
    fn first(&self, cpu: usize) -> Option<usize> {
        let waits = |&task: &usize| self.cpus[task] == cpu && self.is[task] == Is::Waiting;
        (0..TASKS).filter(waits).min_by_key(|&task| self.key(task))
    }

    /// Starts the job that must start now, and returns its task.
    fn start(&mut self, cpu: usize) -> Option<usize> {
        let first = self.first(cpu).filter(|&first| !self.is_held(first))?;
        if self.top(cpu).is_some_and(|top| self.key(top) < self.key(first)) {
            return None;
        }
        self.stack.push(first);
        self.is[first] = Is::Woken;
        Some(first)
    }

    fn place(&self, task: usize) -> u16 {
        let below = self.stack.iter().take_while(|&&other| other != task);
        1 + below.filter(|&&other| self.cpus[other] == self.cpus[task]).count() as u16
    }

    fn refusals(&self, event: Event) -> Vec<Refusal> {
        let task = event.task();
        let unknown = event.refusals_of_unknown(TASKS, RESOURCES);
        if !unknown.is_empty() {
            return unknown;
        }
        let mut found = Vec::new();
        let mut check = |is_wrong: bool, refusal| found.extend(is_wrong.then_some(refusal));
        match event {
            Event::Arrive(..) => check(self.is[task] != Is::Without, Refusal::Job),
            Event::Finish(_) => {
                let is_on_stack = matches!(self.is[task], Is::Woken | Is::Started);
                check(!is_on_stack || self.holds_any(task), Refusal::Job);
            }
            Event::Request(_, on) => {
                check(self.is[task] != Is::Started, Refusal::Job);
                check(self.owners[on] == Some(task), Refusal::AlreadyHeld);
                check(LEVELS[task] > CEILINGS[on], Refusal::AboveCeiling);
            }
            Event::Release(_, on) => check(self.owners[on] != Some(task), Refusal::NotHeld),
            Event::Woken(_) => check(self.is[task] != Is::Woken, Refusal::NotWaiting),
            Event::Cancel(_) => check(self.is[task] != Is::Waiting, Refusal::NotWaiting),
        }
        found
    }

    /// Whether the event can happen here.
    fn admits(&self, event: Event) -> bool {
        let task = event.task();
        match event {
            Event::Arrive(_, due) => {
                let is_later = |other: usize| (due, task) < self.key(other) && self.is[other] != Is::Without;
                let mut peers = (0..TASKS).filter(|&other| self.cpus[other] == self.cpus[task] && is_later(other));
                peers.all(|other| LEVELS[task] > LEVELS[other])
            }
            // Resources are local, here to the first processor.
            Event::Request(..) => self.cpus[task] == 0 && self.executes(task),
            // Also of the top if its task could not take its priority.
            Event::Finish(_) => {
                self.executes(task) || self.is[task] == Is::Woken && self.top(self.cpus[task]) == Some(task)
            }
            Event::Release(..) => self.executes(task),
            Event::Woken(_) | Event::Cancel(_) => true,
        }
    }

    /// Carries the event out, and returns the actions that it must have; epochs are 0.
    fn follow(&mut self, event: Event) -> Vec<Action> {
        let (task, id) = (event.task(), TaskId::new(event.task()));
        let cpu = self.cpus[task];
        let tells = |priority| Action::SetPriority { task: id, priority, epoch: 0 };
        let wakes = |task: Option<usize>| task.map(|task| Action::Wake { task: TaskId::new(task) });
        match event {
            Event::Arrive(_, due) => {
                (self.is[task], self.due[task]) = (Is::Waiting, due);
                match self.start(cpu) {
                    Some(started) => {
                        assert_eq!(started, task, "only the new job can start");
                        self.is[task] = Is::Started;
                        Vec::from([tells(Walked::at_place(self.place(task)))])
                    }
                    None => Vec::from([Action::Hold { task: id }]),
                }
            }
            Event::Finish(_) => {
                self.is[task] = Is::Without;
                self.stack.retain(|&other| other != task);
                wakes(self.start(cpu)).into_iter().chain([tells(Walked::ARRIVING)]).collect()
            }
            Event::Request(_, on) => {
                assert_eq!(self.owners[on], None, "a job that executes finds its resources free");
                if !self.holds_any(task) {
                    let is_passed = self.first(cpu).is_some_and(|first| self.key(first) < self.key(task));
                    assert!(!is_passed, "a job is blocked by at most one section");
                }
                self.owners[on] = Some(task);
                Vec::from([Action::Grant { task: id, resource: ResourceId::new(on) }])
            }
            Event::Release(_, on) => {
                self.owners[on] = None;
                wakes(self.start(cpu)).into_iter().collect()
            }
            Event::Woken(_) => {
                self.is[task] = Is::Started;
                Vec::from([tells(Walked::at_place(self.place(task)))])
            }
            Event::Cancel(_) => {
                self.is[task] = Is::Without;
                wakes(self.start(cpu)).into_iter().chain([Action::Wake { task: id }]).collect()
            }
        }
    }

    /// An event that brings a job nearer to its end.
    fn next(&self) -> Option<Event> {
        if let Some(woken) = (0..TASKS).find(|&task| self.is[task] == Is::Woken) {
            return Some(Event::Woken(woken));
        }
        let top = self.stack.last().copied()?;
        let held = self.owners.iter().position(|&owner| owner == Some(top));
        Some(held.map_or(Event::Finish(top), |on| Event::Release(top, on)))
    }
}

fn check(machine: &Walked, shadow: &Shadow, event: Event, mutate: Mutation<Walked>) -> Option<(Walked, Shadow)> {
    let (mut next, answer) = give(machine, event, &shadow.refusals(event), mutate)?;
    if !shadow.admits(event) {
        return None;
    }
    let actions = answer.unwrap_or_else(|refused| panic!("{event:?} refused: {refused:?}"));
    let mut told = shadow.clone();
    assert_eq!(actions, told.follow(event), "{event:?} in {shadow:?}");
    let keys: Vec<_> = told.stack.iter().map(|&task| (told.cpus[task], told.key(task))).collect();
    let rises = |pair: &[(usize, (u64, usize))]| pair[0].0 != pair[1].0 || pair[0].1 > pair[1].1;
    assert!(told.cpus.contains(&1) || keys.windows(2).all(rises), "the stack is out of order: {told:?}");
    next.forget_epochs();
    Some((next, told))
}

/// Whether every job ends from here.
fn ends(machine: &Walked, shadow: &Shadow, mutate: Mutation<Walked>) {
    let mut state = (machine.clone(), shadow.clone());
    // BOUND: a job is woken and finishes once, and releases each resource once.
    for _ in 0..TASKS * 2 + RESOURCES {
        let Some(event) = state.1.next() else { break };
        state = check(&state.0, &state.1, event, mutate).expect("the event can happen");
    }
    assert!(state.1.is == [Is::Without; TASKS], "a job never ends: {:?}", state.1);
}

fn walk(cpus: [usize; TASKS], mutate: Mutation<Walked>) -> usize {
    let mut tasks = [(Priority::MIN, CpuId(0)); TASKS];
    for (index, task) in tasks.iter_mut().enumerate() {
        *task = (Priority::base(LEVELS[index]), CpuId::new(cpus[index]));
    }
    let machine = Walked::new(&tasks, &CEILINGS.map(Priority::base));
    let (is, due, owners) = ([Is::Without; TASKS], [0; TASKS], [None; RESOURCES]);
    let events = Event::all(TASKS, RESOURCES, DUES);
    reach((machine, Shadow { cpus, is, due, stack: Vec::new(), owners }), |(machine, shadow), successors| {
        ends(machine, shadow, mutate);
        successors.extend(events.iter().filter_map(|&event| check(machine, shadow, event, mutate)));
    })
}

#[test]
fn every_order_of_events_on_one_processor() {
    check_states("edf", walk([0; TASKS], |_, _, _, _| ()), 500);
}

#[test]
fn processors_are_separate() {
    let states = walk([0, 0, 1], |_, _, _, _| ());
    check_states("edf on two processors", states, 300);
}

/// The machine with another deadline for each arrival.
fn with_due(event: Event, before: &Walked, after: &mut Walked, answer: &mut Answer, due: fn(usize, u64) -> u64) {
    if let Event::Arrive(task, own) = event
        && answer.is_ok()
    {
        *after = before.clone();
        *answer = Event::Arrive(task, due(task, own)).give(after);
    }
}

/// Takes back that a job was woken.
fn forget(after: &mut Walked, answer: &mut Answer) {
    let Ok(actions) = answer else { return };
    actions.retain(|action| {
        let Action::Wake { task } = *action else { return true };
        let state = &mut after.tasks[task.index()];
        let was_woken = matches!(state.job, Job::Woken(_));
        if was_woken {
            state.job = Job::Waits { is_held: false };
        }
        !was_woken
    });
}

const MUTANTS: [(&str, Mutation<Walked>); 8] = [
    ("by fixed priorities", |event, before, after, answer| {
        with_due(event, before, after, answer, |task, _| task as u64);
    }),
    ("equal deadlines by the higher id", |event, before, after, answer| {
        with_due(event, before, after, answer, |task, due| due * 4 + 3 - task as u64);
    }),
    ("without preemption", |event, before, after, answer| {
        if let Event::Arrive(task, due) = event
            && answer.is_ok()
            && before.top(TaskId::new(task)).is_some()
            && matches!(after.tasks[task].job, Job::Started(_))
        {
            let job = Job::Waits { is_held: false };
            after.tasks[task] = TaskState { job, due: Instant::from_ns(due), epoch: 0 };
            *answer = Ok(Vec::from([Action::Hold { task: TaskId::new(task) }]));
        }
    }),
    ("without ceilings", |event, before, after, answer| {
        if let Event::Arrive(task, due) = event
            && after.tasks[task.min(TASKS - 1)].job == (Job::Waits { is_held: true })
            && answer.is_ok()
        {
            *after = before.clone();
            after.tasks[task] =
                TaskState { job: Job::Waits { is_held: false }, due: Instant::from_ns(due), ..before.tasks[task] };
            let mut actions = Vec::new();
            let id = TaskId::new(task);
            let place = after.top(id).map_or(1, |(place, _)| place + 1);
            if after.top(id).is_none_or(|(_, top)| after.key(id) < after.key(top)) {
                after.begin(id, place, &mut |action| actions.push(action));
            } else {
                actions.push(Action::Hold { task: id });
            }
            *answer = Ok(actions);
        }
    }),
    ("nobody continues after the end of a job", |event, _, after, answer| {
        if let Event::Finish(_) = event {
            forget(after, answer);
        }
    }),
    ("nobody continues after the end of a section", |event, _, after, answer| {
        if let Event::Release(..) = event {
            forget(after, answer);
        }
    }),
    ("one place for all", |_, _, _, answer| {
        for action in answer.iter_mut().flatten() {
            if let Action::SetPriority { priority, .. } = action
                && !priority.is_boosted()
            {
                *priority = Walked::at_place(1);
            }
        }
    }),
    ("a task stays at its place after its job", |event, _, _, answer| {
        if let (Event::Finish(_), Ok(actions)) = (event, answer) {
            actions.pop();
        }
    }),
];

#[test]
#[cfg_attr(miri, ignore = "walks all states")]
fn each_mutant_is_noticed() {
    for (name, mutate) in MUTANTS {
        let walked = catch_unwind(AssertUnwindSafe(|| walk([0; TASKS], mutate)));
        assert!(walked.is_err(), "not noticed: {name}");
    }
}

/// A job with a later deadline and a higher level does not pass one that a ceiling holds.
#[test]
fn no_job_passes_one_that_is_held() {
    let mut machine =
        Walked::new(&[0, 1, 2].map(|task| (Priority::base(LEVELS[task]), CpuId(0))), &[Priority::base(2)]);
    let mut give = |event: Event| event.give(&mut machine).expect("accepted");
    // The last task owns the resource, the second one is held, and the first one is above the ceiling.
    give(Event::Arrive(2, 3));
    give(Event::Request(2, 0));
    assert_eq!(give(Event::Arrive(1, 1)), [Action::Hold { task: TaskId(1) }]);
    assert_eq!(give(Event::Arrive(0, 2)), [Action::Hold { task: TaskId(0) }]);
    assert_eq!(give(Event::Release(2, 0)), [Action::Wake { task: TaskId(1) }]);
    give(Event::Woken(1));
    assert_eq!(give(Event::Finish(1))[0], Action::Wake { task: TaskId(0) });
}
