//! Every order of events, for three and four tasks on two processors, with a short and a long resource. A shadow
//! decides from the published rules alone which actions an event must have; each mutant must be noticed.
//!
//! Jobs make requests, release and finish whether they execute or not: a preempted thread may execute for a moment
//! while another one waits for the guard.

extern crate std;

use super::{EdfLock, GlobalEdf};
use crate::testing::{Answer, Event, Mutation, check_states, give, reach};
use crate::{Action, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

const PROCESSORS: usize = 2;
const RESOURCES: usize = 2;
const SHORT: usize = 0;

type Walked<const TASKS: usize> = GlobalEdf<TASKS, RESOURCES>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Asks {
    Nothing,
    /// The job is blocked until it has a processor.
    Blocked(usize),
    /// The job was woken to make its request.
    Woken(usize),
    /// The job is in the queue, as the owner if it is the first.
    Queued(usize),
}

/// The processor that a job gets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Gets {
    Free,
    /// The processor of a job that is not preempted.
    After(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Shadow<const TASKS: usize> {
    /// The deadline of the job of each task.
    due: [Option<u64>; TASKS],
    asks: [Asks; TASKS],
    /// The owner comes first.
    queues: [Vec<usize>; RESOURCES],
    linked: [bool; TASKS],
    executes: [bool; TASKS],
    /// The job that is not preempted and for which the linked job waits.
    after: [Option<usize>; TASKS],
}

impl<const TASKS: usize> Shadow<TASKS> {
    fn new() -> Self {
        Self {
            due: [None; TASKS],
            asks: [Asks::Nothing; TASKS],
            queues: Default::default(),
            linked: [false; TASKS],
            executes: [false; TASKS],
            after: [None; TASKS],
        }
    }

    fn owns(&self, task: usize) -> Option<usize> {
        (0..RESOURCES).find(|&on| self.queues[on].first() == Some(&task))
    }

    fn is_queued(&self, task: usize, is_short: bool) -> Option<usize> {
        (0..RESOURCES).find(|&on| (on == SHORT) == is_short && self.queues[on].contains(&task))
    }

    fn is_not_preempted(&self, task: usize) -> bool {
        self.is_queued(task, true).is_some()
    }

    /// Whether the job waits for the long resource.
    fn waits_blocked(&self, task: usize) -> bool {
        self.is_queued(task, false).is_some() && self.owns(task).is_none()
    }

    fn is_pending(&self, task: usize) -> bool {
        self.due[task].is_some() && !self.waits_blocked(task)
    }

    fn key(&self, task: usize) -> (u64, usize) {
        let own = |task: usize| (self.due[task].expect("a job"), task);
        let inherits = self.owns(task).filter(|&on| on != SHORT);
        inherits.map_or(own(task), |on| self.queues[on].iter().map(|&other| own(other)).min().expect("the owner"))
    }

    fn least_linked(&self) -> Option<usize> {
        (0..TASKS).filter(|&task| self.linked[task]).max_by_key(|&task| self.key(task))
    }

    fn first_unlinked(&self) -> Option<usize> {
        (0..TASKS).filter(|&task| self.is_pending(task) && !self.linked[task]).min_by_key(|&task| self.key(task))
    }

    /// The job loses its link. Returns what the next one gets.
    fn unlink(&mut self, task: usize) -> Gets {
        self.linked[task] = false;
        match self.after[task].take() {
            Some(other) => Gets::After(other),
            None if self.is_pending(task) && self.is_not_preempted(task) => Gets::After(task),
            None => {
                self.executes[task] = false;
                Gets::Free
            }
        }
    }

    fn link(&mut self, task: usize, gets: Gets) {
        self.linked[task] = true;
        if gets == Gets::After(task) {
            return;
        }
        // A job that executes, because it is not preempted, stays; the one that waits for it gets the processor.
        let waiter = (0..TASKS).find(|&other| self.after[other] == Some(task));
        let who = if self.executes[task] { waiter.expect("a linked job waits for it") } else { task };
        match gets {
            Gets::Free => (self.after[who], self.executes[who]) = (None, true),
            Gets::After(other) => self.after[who] = Some(other),
        }
    }

    /// Links the most urgent jobs. `free` is what a job that is gone had.
    fn link_all(&mut self, mut free: Option<Gets>) {
        while let Some(task) = self.first_unlinked() {
            let gets = match self.least_linked() {
                _ if self.linked.iter().filter(|linked| **linked).count() < PROCESSORS => {
                    free.take().unwrap_or(Gets::Free)
                }
                Some(least) if self.key(task) < self.key(least) => self.unlink(least),
                _ => return,
            };
            self.link(task, gets);
        }
    }

    /// The job can be preempted again.
    fn ends_section(&mut self, task: usize) {
        if !self.linked[task] {
            self.executes[task] = false;
            let waiter = (0..TASKS).find(|&other| self.after[other] == Some(task)).expect("a linked job waits for it");
            (self.after[waiter], self.executes[waiter]) = (None, true);
        }
    }

    fn level(&self, task: usize) -> Priority {
        let is_blocked = matches!(self.asks[task], Asks::Blocked(_));
        match self.executes[task] {
            _ if !self.is_pending(task) || is_blocked || self.is_not_preempted(task) => Walked::<TASKS>::ARRIVING,
            true => Walked::<TASKS>::RUNNING,
            false => Walked::<TASKS>::PREEMPTED,
        }
    }

    fn refusals(&self, event: Event) -> Vec<Refusal> {
        let task = event.task();
        let unknown = event.refusals_of_unknown(TASKS, RESOURCES);
        if !unknown.is_empty() {
            return unknown;
        }
        let mut found = Vec::new();
        let mut check = |is_wrong: bool, refusal| found.extend(is_wrong.then_some(refusal));
        let (owned, asks) = (self.owns(task), self.asks[task]);
        match event {
            Event::Arrive(..) => check(self.due[task].is_some(), Refusal::Job),
            Event::Finish(_) => check(self.due[task].is_none() || asks != Asks::Nothing, Refusal::Job),
            Event::Request(_, on) => {
                check(self.due[task].is_none(), Refusal::Job);
                check(owned == Some(on), Refusal::AlreadyHeld);
                check(owned.is_some_and(|owned| owned != on), Refusal::Nested);
                check(owned.is_none() && asks != Asks::Nothing, Refusal::Waiting);
            }
            Event::Release(_, on) => check(owned != Some(on), Refusal::NotHeld),
            Event::Woken(_) => check(!matches!(asks, Asks::Woken(_)), Refusal::NotWaiting),
            Event::Cancel(_) => check(asks == Asks::Nothing || owned.is_some(), Refusal::NotWaiting),
        }
        found
    }

    /// Carries the event out, and returns the actions that it must have; epochs are 0.
    fn follow(&mut self, event: Event) -> Vec<Action> {
        let before = self.clone();
        let task = event.task();
        let id = TaskId::new;
        let (mut middle, mut last) = (Vec::new(), None);
        match event {
            Event::Arrive(_, due) => {
                self.due[task] = Some(due);
                self.link_all(None);
            }
            Event::Finish(_) => {
                let free = self.linked[task].then(|| self.unlink(task));
                self.due[task] = None;
                self.link_all(free);
            }
            Event::Request(_, on) => last = Some(self.ask(task, on)),
            Event::Woken(_) => {
                let Asks::Woken(on) = self.asks[task] else { panic!("it was woken") };
                last = Some(self.ask(task, on));
            }
            Event::Release(_, on) => {
                self.asks[task] = Asks::Nothing;
                self.queues[on].remove(0);
                if on == SHORT {
                    self.ends_section(task);
                }
                if let Some(&next) = self.queues[on].first() {
                    middle.push(Action::Grant { task: id(next), resource: ResourceId::new(on) });
                    middle.extend((on != SHORT).then_some(Action::Wake { task: id(next) }));
                }
                self.link_all(None);
            }
            Event::Cancel(_) => {
                let spins = self.is_not_preempted(task);
                self.asks[task] = Asks::Nothing;
                self.queues.iter_mut().for_each(|queue| queue.retain(|&other| other != task));
                if spins {
                    self.ends_section(task);
                } else {
                    last = Some(Action::Wake { task: id(task) });
                }
                self.link_all(None);
            }
        }
        let mut actions = Vec::new();
        for executes in [false, true] {
            for other in 0..TASKS {
                if other == task || !self.is_pending(other) || self.executes[other] != executes {
                    continue;
                }
                let wakes = match self.asks[other] {
                    Asks::Blocked(on) if executes => {
                        self.asks[other] = Asks::Woken(on);
                        true
                    }
                    _ => false,
                };
                let priority = self.level(other);
                let tells = Action::SetPriority { task: id(other), priority, epoch: 0 };
                actions.extend((before.level(other) != priority).then_some(tells));
                actions.extend(wakes.then_some(Action::Wake { task: id(other) }));
            }
        }
        actions.extend(middle);
        let priority = self.level(task);
        let tells = Action::SetPriority { task: id(task), priority, epoch: 0 };
        actions.extend((before.level(task) != priority).then_some(tells));
        actions.extend(last);
        self.check(&before);
        actions
    }

    /// The job makes a request. Returns the last action.
    fn ask(&mut self, task: usize, on: usize) -> Action {
        let (resource, id) = (ResourceId::new(on), TaskId::new(task));
        if !self.executes[task] {
            self.asks[task] = Asks::Blocked(on);
            return Action::Block { task: id, resource };
        }
        self.asks[task] = Asks::Queued(on);
        let is_free = self.queues[on].is_empty();
        let free = (!is_free && on != SHORT && self.linked[task]).then(|| self.unlink(task));
        self.queues[on].push(task);
        self.link_all(free);
        match (is_free, on == SHORT) {
            (true, _) => Action::Grant { task: id, resource },
            (false, true) => Action::Spin { task: id, resource },
            (false, false) => Action::Block { task: id, resource },
        }
    }

    /// The rules that every state has to keep, and every event.
    fn check(&self, before: &Self) {
        let all = |is: &dyn Fn(usize) -> bool| (0..TASKS).filter(|&task| is(task)).collect::<Vec<_>>();
        let (pending, executing) = (all(&|task| self.is_pending(task)), all(&|task| self.executes[task]));
        assert!(executing.len() <= PROCESSORS && executing.iter().all(|task| pending.contains(task)), "{self:?}");
        assert_eq!(executing.len(), pending.len().min(PROCESSORS), "a processor is idle: {self:?}");
        let mut most_urgent = pending.clone();
        most_urgent.sort_by_key(|&task| self.key(task));
        most_urgent.truncate(PROCESSORS);
        assert!((0..TASKS).all(|task| self.linked[task] == most_urgent.contains(&task)), "{self:?}");
        for task in 0..TASKS {
            assert!(!self.is_not_preempted(task) || self.executes[task], "a section is preempted: {self:?}");
            assert!(!self.executes[task] || self.linked[task] || self.is_not_preempted(task), "{self:?}");
            let waits_again = before.linked[task]
                && before.executes[task]
                && self.is_pending(task)
                && self.linked[task]
                && !self.executes[task];
            assert!(!waits_again, "a job waits again for one that is not preempted: {before:?}, {self:?}");
            assert_eq!(self.after[task].is_some(), self.linked[task] && !self.executes[task], "{self:?}");
            let waits_for_none = self.after[task].is_some_and(|other| !self.is_not_preempted(other));
            assert!(!waits_for_none, "a job waits for one that can be preempted: {self:?}");
        }
    }

    /// An event of a job that executes.
    fn next(&self) -> Option<Event> {
        (0..TASKS).filter(|&task| self.executes[task]).find_map(|task| match (self.asks[task], self.owns(task)) {
            (Asks::Woken(_), _) => Some(Event::Woken(task)),
            (_, Some(on)) => Some(Event::Release(task, on)),
            (Asks::Nothing, None) => Some(Event::Finish(task)),
            _ => None,
        })
    }
}

type State<const TASKS: usize> = (Walked<TASKS>, Shadow<TASKS>);

fn check<const TASKS: usize>(
    state: &State<TASKS>,
    event: Event,
    mutate: Mutation<Walked<TASKS>>,
) -> Option<State<TASKS>> {
    let (machine, shadow) = state;
    let (mut next, answer) = give(machine, event, &shadow.refusals(event), mutate)?;
    let actions = answer.unwrap_or_else(|refused| panic!("{event:?} refused: {refused:?} in {shadow:?}"));
    let mut told = shadow.clone();
    assert_eq!(actions, told.follow(event), "{event:?} in {shadow:?}");
    next.forget_epochs();
    Some((next, told))
}

/// Whether every job ends from here.
fn ends<const TASKS: usize>(state: &State<TASKS>, mutate: Mutation<Walked<TASKS>>) {
    let mut state = state.clone();
    // BOUND: a job is woken, releases and finishes once, and is blocked at a request once more.
    for _ in 0..TASKS * 4 {
        let Some(event) = state.1.next() else { break };
        state = check(&state, event, mutate).expect("the event can happen");
    }
    assert!(state.1.due == [None; TASKS], "a job never ends: {:?}", state.1);
}

fn walk<const TASKS: usize>(dues: u64, mutate: Mutation<Walked<TASKS>>) -> usize {
    let machine = Walked::new(TASKS, &[EdfLock::Short, EdfLock::Long], PROCESSORS);
    let events = Event::all(TASKS, RESOURCES, dues);
    reach((machine, Shadow::new()), |state, successors| {
        ends(state, mutate);
        successors.extend(events.iter().filter_map(|&event| check(state, event, mutate)));
    })
}

#[test]
fn every_order_of_events_of_three_tasks() {
    check_states("g-edf, three tasks", walk::<3>(3, |_, _, _, _| ()), 5_000);
}

#[test]
fn every_order_of_events_of_four_tasks() {
    check_states("g-edf, four tasks", walk::<4>(2, |_, _, _, _| ()), 50_000);
}

/// The machine with another deadline for each arrival.
fn with_due(event: Event, before: &Walked<3>, after: &mut Walked<3>, answer: &mut Answer, due: fn(usize, u64) -> u64) {
    if let Event::Arrive(task, own) = event
        && answer.is_ok()
    {
        *after = before.clone();
        *answer = Event::Arrive(task, due(task, own)).give(after);
    }
}

/// Gives the event to a machine whose long resources are short, or the other way round.
fn with_kinds(event: Event, before: &Walked<3>, after: &mut Walked<3>, answer: &mut Answer, all: EdfLock) {
    *after = before.clone();
    after.locks = [all; 2];
    *answer = event.give(after);
    after.locks = before.locks;
}

const MUTANTS: [(&str, Mutation<Walked<3>>); 9] = [
    ("by fixed priorities", |event, before, after, answer| {
        with_due(event, before, after, answer, |task, _| task as u64);
    }),
    ("equal deadlines by the higher id", |event, before, after, answer| {
        with_due(event, before, after, answer, |task, due| due * 4 + 3 - task as u64);
    }),
    ("a short section is preempted", |event, before, after, answer| {
        if let Event::Arrive(..) = event {
            with_kinds(event, before, after, answer, EdfLock::Long);
        }
    }),
    ("a long section is not preempted", |event, before, after, answer| {
        if let Event::Arrive(..) = event {
            with_kinds(event, before, after, answer, EdfLock::Short);
        }
    }),
    ("the owner inherits nothing", |event, before, _, answer| {
        if let (Event::Request(task, 1), Ok(actions)) = (event, &mut *answer)
            && matches!(actions.last(), Some(Action::Block { .. }))
            && before.runs(TaskId::new(task))
        {
            let owner = before.owner(ResourceId(1));
            let raises = |action: &Action| match *action {
                Action::SetPriority { task, priority, .. } => Some(task) == owner && priority == Walked::<3>::RUNNING,
                _ => false,
            };
            actions.retain(|action| !raises(action));
        }
    }),
    ("a request of a preempted job is decided at once", |event, before, after, answer| {
        if let Event::Request(task, on) = event
            && answer.is_ok()
            && !before.runs(TaskId::new(task))
        {
            *after = before.clone();
            after.places[0].runs = Some(TaskId::new(task));
            let mut actions = Vec::new();
            let decided = after.decide(TaskId::new(task), ResourceId::new(on), &mut |action| actions.push(action));
            *answer = decided.map(|()| actions);
        }
    }),
    ("a blocked request is never made", |event, _, after, answer| {
        if !matches!(event, Event::Cancel(_))
            && let Ok(actions) = answer
        {
            actions.retain(|action| {
                let Action::Wake { task } = *action else { return true };
                !matches!(after.single.stand(task), crate::parts::single::Stand::Sent(_))
            });
        }
    }),
    ("nobody continues after the end of a job", |event, _, _, answer| {
        if let (Event::Finish(task), Ok(actions)) = (event, answer) {
            actions.retain(|action| matches!(action, Action::SetPriority { task: told, .. } if told.index() == task));
        }
    }),
    ("a task stays at its priority after its job", |event, _, _, answer| {
        if let (Event::Finish(_), Ok(actions)) = (event, answer) {
            actions.pop();
        }
    }),
];

#[test]
#[cfg_attr(miri, ignore = "walks all states")]
fn each_mutant_is_noticed() {
    for (name, mutate) in MUTANTS {
        let walked = catch_unwind(AssertUnwindSafe(|| walk::<3>(3, mutate)));
        assert!(walked.is_err(), "not noticed: {name}");
    }
}

/// The example of the short FMLP in `docs/edf.md`.
#[test]
fn a_job_waits_once_for_one_that_is_not_preempted() {
    let (low, mid, urgent, next) = (0, 1, 2, 3);
    let mut machine = Walked::<4>::new(4, &[EdfLock::Short, EdfLock::Long], PROCESSORS);
    let mut give = |event: Event| event.give(&mut machine).expect("accepted");
    let told = |task: usize, priority| {
        move |action: &Action| {
            matches!(action, Action::SetPriority { task: other, priority: given, .. }
                if other.index() == task && *given == priority)
        }
    };
    give(Event::Arrive(low, 10));
    give(Event::Request(low, SHORT));
    give(Event::Arrive(mid, 5));
    // It waits for `low`, and `mid` continues.
    let arrived = give(Event::Arrive(urgent, 1));
    assert!(arrived.len() == 1 && told(urgent, Walked::<4>::PREEMPTED)(&arrived[0]), "{arrived:?}");
    // It preempts `mid`, and spins.
    let arrived = give(Event::Arrive(next, 2));
    assert!(arrived.iter().any(told(mid, Walked::<4>::PREEMPTED)), "{arrived:?}");
    assert!(arrived.iter().any(told(next, Walked::<4>::RUNNING)), "{arrived:?}");
    assert!(matches!(give(Event::Request(next, SHORT)).last(), Some(Action::Spin { .. })));
    let released = give(Event::Release(low, SHORT));
    assert!(released.iter().any(told(urgent, Walked::<4>::RUNNING)), "{released:?}");
    assert!(told(low, Walked::<4>::PREEMPTED)(released.last().expect("an action")), "{released:?}");
}
