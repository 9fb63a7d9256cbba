//! Every order of events, for three and four tasks on processors of their own. A shadow decides from the rules alone
//! which actions an event must have; each mutant must be noticed.
//!
//! Jobs make requests, release and finish whether they execute or not, as in the walk of jobs without processors.

extern crate std;

use super::{EdfLock, GlobalEdf};
use crate::testing::{Answer, Event, Mutation, check_states, give, reach};
use crate::{Action, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

const RESOURCES: usize = 3;

type Walked<const TASKS: usize> = GlobalEdf<TASKS, RESOURCES>;

/// The tasks, by preemption level and processor, and the locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Setting<const TASKS: usize> {
    tasks: [(u32, u16); TASKS],
    locks: [EdfLock; RESOURCES],
}

/// A short and a long resource, and one of the first processor.
const THREE: Setting<3> =
    Setting { tasks: [(1, 0), (2, 0), (3, 1)], locks: [EdfLock::Short, EdfLock::Long, EdfLock::Local(level(2))] };

/// A long resource, and two of the first processor with different ceilings.
const FOUR: Setting<4> = Setting {
    tasks: [(1, 0), (2, 0), (3, 0), (4, 1)],
    locks: [EdfLock::Local(level(2)), EdfLock::Long, EdfLock::Local(level(3))],
};

/// Two long resources, so that a processor can have two owners.
const LONGS: Setting<4> = Setting { locks: [EdfLock::Long, EdfLock::Long, EdfLock::Local(level(3))], ..FOUR };

const fn level(level: u32) -> Priority {
    Priority::base(level)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Asks {
    Nothing,
    /// The job is blocked until it executes.
    Blocked(usize),
    /// The job was woken to make its request.
    Woken(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Shadow<const TASKS: usize> {
    setting: Setting<TASKS>,
    due: [Option<u64>; TASKS],
    asks: [Asks; TASKS],
    /// The owner comes first.
    queues: [Vec<usize>; RESOURCES],
    /// The tasks with requests for long resources, in the order of these.
    requested: Vec<usize>,
    executes: [bool; TASKS],
}

impl<const TASKS: usize> Shadow<TASKS> {
    fn new(setting: Setting<TASKS>) -> Self {
        Self {
            setting,
            due: [None; TASKS],
            asks: [Asks::Nothing; TASKS],
            queues: Default::default(),
            requested: Vec::new(),
            executes: [false; TASKS],
        }
    }

    fn cpu(&self, task: usize) -> u16 {
        self.setting.tasks[task].1
    }

    fn level_of(&self, task: usize) -> Priority {
        level(self.setting.tasks[task].0)
    }

    fn ceiling(&self, on: usize) -> Option<Priority> {
        if let EdfLock::Local(ceiling) = self.setting.locks[on] { Some(ceiling) } else { None }
    }

    fn is(&self, on: usize, lock: EdfLock) -> bool {
        self.setting.locks[on] == lock
    }

    fn owns(&self, task: usize, on: usize) -> bool {
        self.queues[on].first() == Some(&task)
    }

    fn queued(&self, task: usize, lock: EdfLock) -> Option<usize> {
        (0..RESOURCES).find(|&on| self.is(on, lock) && self.queues[on].contains(&task))
    }

    fn owns_long(&self, task: usize) -> bool {
        self.queued(task, EdfLock::Long).is_some_and(|on| self.owns(task, on))
    }

    fn is_not_preempted(&self, task: usize) -> bool {
        self.queued(task, EdfLock::Short).is_some()
    }

    fn waits(&self, task: usize) -> bool {
        self.queued(task, EdfLock::Long).is_some() && !self.owns_long(task)
    }

    fn is_pending(&self, task: usize) -> bool {
        self.due[task].is_some() && !self.waits(task)
    }

    /// The highest ceiling of the resources of its processor that the task holds.
    fn top(&self, task: usize) -> Option<Priority> {
        (0..RESOURCES).filter(|&on| self.owns(task, on)).filter_map(|on| self.ceiling(on)).max()
    }

    fn own_key(&self, task: usize) -> (u64, usize) {
        (self.due[task].expect("a job"), task)
    }

    /// The order of jobs: in a section of its processor, a job is before each one that the ceiling holds up.
    fn key(&self, task: usize) -> ((u64, usize), bool, Reverse<Option<Priority>>) {
        let (own, top) = (self.own_key(task), self.top(task));
        let others = (0..TASKS).filter(|&other| other != task && self.cpu(other) == self.cpu(task));
        let held = others.filter(|&other| self.due[other].is_some() && Some(self.level_of(other)) <= top);
        let first = held.map(|other| self.own_key(other)).fold(own, Ord::min);
        (first, first == own, Reverse(top))
    }

    /// Which jobs execute.
    fn place(&mut self) {
        for cpu in 0..=1 {
            let here: Vec<usize> = (0..TASKS).filter(|&task| self.cpu(task) == cpu && self.is_pending(task)).collect();
            let stays = here.iter().copied().find(|&task| self.executes[task] && self.is_not_preempted(task));
            let owner = self.requested.iter().copied().find(|task| here.contains(task) && self.owns_long(*task));
            let first = stays.or(owner).or_else(|| here.iter().copied().min_by_key(|&task| self.key(task)));
            for task in (0..TASKS).filter(|&task| self.setting.tasks[task].1 == cpu) {
                self.executes[task] = Some(task) == first;
            }
        }
    }

    fn priority(&self, task: usize) -> Priority {
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
        let is_queued = (0..RESOURCES).any(|on| self.ceiling(on).is_none() && self.queues[on].contains(&task));
        let asks = self.asks[task] != Asks::Nothing || self.waits(task);
        let spins = self.is_not_preempted(task) && (0..RESOURCES).all(|on| !self.owns(task, on));
        match event {
            Event::Arrive(..) => check(self.due[task].is_some(), Refusal::Job),
            Event::Finish(_) => {
                check(self.due[task].is_none() || asks || is_queued || self.top(task).is_some(), Refusal::Job);
            }
            Event::Request(_, on) => {
                check(self.due[task].is_none(), Refusal::Job);
                check(self.owns(task, on), Refusal::AlreadyHeld);
                let holds = is_queued || self.top(task).is_some() && self.ceiling(on).is_none();
                check(holds && !asks && !spins && !self.owns(task, on), Refusal::Nested);
                check(asks || spins, Refusal::Waiting);
                check(self.ceiling(on).is_some_and(|ceiling| self.level_of(task) > ceiling), Refusal::AboveCeiling);
            }
            Event::Release(_, on) => check(!self.owns(task, on) || asks, Refusal::NotHeld),
            Event::Woken(_) => check(!matches!(self.asks[task], Asks::Woken(_)), Refusal::NotWaiting),
            Event::Cancel(_) => check(!asks && !spins, Refusal::NotWaiting),
        }
        found
    }

    /// Carries the event out, and returns the actions that it must have; epochs are 0.
    fn follow(&mut self, event: Event) -> Vec<Action> {
        let before = self.clone();
        let (task, id) = (event.task(), TaskId::new);
        let (mut middle, mut last) = (Vec::new(), None);
        match event {
            Event::Arrive(_, due) => self.due[task] = Some(due),
            Event::Finish(_) => self.due[task] = None,
            Event::Request(_, on) => last = Some(self.ask(task, on)),
            Event::Woken(_) => {
                let Asks::Woken(on) = self.asks[task] else { panic!("it was woken") };
                last = Some(self.ask(task, on));
            }
            Event::Release(_, on) => {
                self.queues[on].remove(0);
                self.requested.retain(|&other| other != task);
                if let Some(&next) = self.queues[on].first() {
                    middle.push(Action::Grant { task: id(next), resource: ResourceId::new(on) });
                    middle.extend(self.is(on, EdfLock::Long).then_some(Action::Wake { task: id(next) }));
                }
            }
            Event::Cancel(_) => {
                let spins = self.is_not_preempted(task);
                self.asks[task] = Asks::Nothing;
                let shared = (0..RESOURCES).filter(|&on| before.ceiling(on).is_none());
                shared.for_each(|on| self.queues[on].retain(|&other| other != task));
                self.requested.retain(|&other| other != task);
                last = (!spins).then_some(Action::Wake { task: id(task) });
            }
        }
        self.place();
        let mut actions = Vec::new();
        for executes in [false, true] {
            for other in 0..TASKS {
                if other == task || !self.is_pending(other) || self.executes[other] != executes {
                    continue;
                }
                let mut wakes = false;
                if let Asks::Blocked(on) = self.asks[other]
                    && executes
                {
                    (self.asks[other], wakes) = (Asks::Woken(on), true);
                }
                let priority = self.priority(other);
                let tells = Action::SetPriority { task: id(other), priority, epoch: 0 };
                actions.extend((before.priority(other) != priority).then_some(tells));
                actions.extend(wakes.then_some(Action::Wake { task: id(other) }));
            }
        }
        actions.extend(middle);
        let priority = self.priority(task);
        let tells = Action::SetPriority { task: id(task), priority, epoch: 0 };
        actions.extend((before.priority(task) != priority).then_some(tells));
        actions.extend(last);
        actions
    }

    /// The job makes a request. Returns the last action.
    fn ask(&mut self, task: usize, on: usize) -> Action {
        let (resource, id) = (ResourceId::new(on), TaskId::new(task));
        if !self.executes[task] {
            self.asks[task] = Asks::Blocked(on);
            return Action::Block { task: id, resource };
        }
        self.asks[task] = Asks::Nothing;
        let is_free = self.queues[on].is_empty();
        assert!(is_free || self.ceiling(on).is_none(), "a resource of the processor is not free: {self:?}");
        self.queues[on].push(task);
        if self.is(on, EdfLock::Long) {
            self.requested.push(task);
        }
        match (is_free, self.is(on, EdfLock::Short)) {
            (true, _) => Action::Grant { task: id, resource },
            (false, true) => Action::Spin { task: id, resource },
            (false, false) => Action::Block { task: id, resource },
        }
    }

    /// An event of a job that executes.
    fn next(&self) -> Option<Event> {
        (0..TASKS).filter(|&task| self.executes[task]).find_map(|task| {
            let owned = (0..RESOURCES).find(|&on| self.owns(task, on));
            match (self.asks[task], owned) {
                (Asks::Woken(_), _) => Some(Event::Woken(task)),
                (_, Some(on)) => Some(Event::Release(task, on)),
                (Asks::Nothing, None) if !self.is_not_preempted(task) => Some(Event::Finish(task)),
                _ => None,
            }
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
    // BOUND: a job is woken, releases and finishes, and is blocked at a request once more.
    for _ in 0..TASKS * 6 {
        let Some(event) = state.1.next() else { break };
        state = check(&state, event, mutate).expect("the event can happen");
    }
    assert!(state.1.due == [None; TASKS], "a job never ends: {:?}", state.1);
}

fn walk<const TASKS: usize>(setting: Setting<TASKS>, dues: u64, mutate: Mutation<Walked<TASKS>>) -> usize {
    let tasks = setting.tasks.map(|(own, cpu)| (level(own), CpuId(cpu)));
    let machine = Walked::partitioned(&tasks, &setting.locks, 2);
    let events = Event::all(TASKS, RESOURCES, dues);
    reach((machine, Shadow::new(setting)), |state, successors| {
        ends(state, mutate);
        successors.extend(events.iter().filter_map(|&event| check(state, event, mutate)));
    })
}

#[test]
fn every_order_of_events_of_three_tasks() {
    check_states("p-edf, three tasks", walk(THREE, 3, |_, _, _, _| ()), 5_000);
}

#[test]
#[cfg_attr(miri, ignore = "walks all states")]
fn every_order_of_events_of_four_tasks() {
    check_states("p-edf, four tasks", walk(FOUR, 2, |_, _, _, _| ()), 20_000);
}

#[test]
#[cfg_attr(miri, ignore = "walks all states")]
fn every_order_of_events_with_two_owners() {
    check_states("p-edf, two owners", walk(LONGS, 2, |_, _, _, _| ()), 20_000);
}

/// Gives the event to a machine that was changed before.
fn changed(
    event: Event,
    before: &Walked<4>,
    after: &mut Walked<4>,
    answer: &mut Answer,
    change: impl FnOnce(&mut Walked<4>),
) {
    *after = before.clone();
    change(after);
    *answer = event.give(after);
}

const MUTANTS: [(&str, Mutation<Walked<4>>); 5] = [
    ("owners in the order of ids", |event, before, after, answer| {
        if let Event::Release(..) | Event::Request(..) = event
            && answer.is_ok()
        {
            let was = before.order.clone();
            changed(event, before, after, answer, |machine| {
                let mut order = crate::parts::request_order::RequestOrder::new(4);
                let has = |task: &TaskId| was.priority(*task).is_some();
                for task in (0..4).map(TaskId::new).filter(has) {
                    order.push(task, machine.single.own_cpu(task));
                }
                machine.order = order;
            });
        }
    }),
    ("a waiting job lets a later one start", |event, before, after, answer| {
        // Deadlines of jobs that wait count as if they were the latest.
        if let Event::Arrive(..) = event {
            let mut due = [None; 4];
            changed(event, before, after, answer, |machine| {
                for task in (0..4).map(TaskId::new).filter(|&task| before.jobs[task.index()].is_some()) {
                    if !before.is_pending(task)
                        && let Some(job) = &mut machine.jobs[task.index()]
                    {
                        due[task.index()] = Some(job.due);
                        job.due = lockwright_model::Instant::from_ns(u64::MAX);
                    }
                }
            });
            for (job, due) in after.jobs.iter_mut().zip(due) {
                if let (Some(job), Some(due)) = (job, due) {
                    job.due = due;
                }
            }
        }
    }),
    ("an owner is preempted by an earlier deadline", |event, before, after, answer| {
        if let Event::Arrive(..) = event {
            changed(event, before, after, answer, |machine| machine.locks[1] = EdfLock::Short);
            after.locks[1] = EdfLock::Long;
        }
    }),
    ("nobody continues while a job waits", |event, _, _, answer| {
        if let (Event::Request(task, 1), Ok(actions)) = (event, answer)
            && matches!(actions.last(), Some(Action::Block { .. }))
        {
            actions.retain(|action| !matches!(action, Action::SetPriority { task: told, .. } if told.index() != task));
        }
    }),
    ("the next owner is not woken", |event, _, _, answer| {
        if let (Event::Release(_, 1), Ok(actions)) = (event, answer) {
            actions.retain(|action| !matches!(action, Action::Wake { .. }));
        }
    }),
];

#[test]
#[cfg_attr(miri, ignore = "walks all states")]
fn each_mutant_is_noticed() {
    for (name, mutate) in MUTANTS {
        let is_noticed = |setting| catch_unwind(AssertUnwindSafe(|| walk(setting, 2, mutate))).is_err();
        assert!(is_noticed(FOUR) || is_noticed(LONGS), "not noticed: {name}");
    }
}
