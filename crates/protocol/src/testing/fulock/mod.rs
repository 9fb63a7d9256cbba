//! Every order of events, for 3 tasks and 2 locks of every pair of protections.
//!
//! A shadow follows only the actions. After every event it is compared with the machine:
//! - *exclusion*: a lock is granted only while it has no owner;
//! - *order*: waiters are queued by effective priority, the earliest first among equals, also after a change; a
//!   hand-off or a wake-up goes to the first one;
//! - *unlock modes*: serial leaves no gap; parallel hands nothing over; automatic is one or the other, by the class of
//!   the first waiter;
//! - *progress*: the first waiter of a free lock is awake; and from every state every task can finish, with and without
//!   healing;
//! - *one heir*: each death of an owner is told to exactly one next owner; a dead lock that is released is not
//!   recoverable for all tasks, and all its waiters are awake;
//! - *priorities*: the last value told to each task is that of a computation from scratch, told once, with rising
//!   epochs;
//! - *order of actions*: other tasks come first, the caller comes last; a task that is handed a lock rises before it
//!   wakes; no action concerns a dead task;
//! - *bounds*: no chain of waiting is longer than the limit; a deadlock is refused, and its whole cycle is reported;
//! - *totality*: every event without meaning is refused, and changes nothing.

extern crate std;

mod mutants;
mod shadow;

use super::harness::{Actions, Answer, Walk, answer, check_states, run, unchanged, walk};
use crate::Refusal;
use crate::fulock::{Fulock, Health, Protection, Unlock};
use lockwright_model::{Priority, ResourceId, TaskId};
use shadow::{BASES, CLASSES, Event, LOCKS, MODES, Protections, Shadow, TASKS, Walked};
use std::vec::Vec;

struct Fulocks;

impl<M: Walked> Walk<M> for Fulocks {
    type Shadow = Shadow;
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for task in 0..TASKS {
            for lock in 0..LOCKS {
                events.extend([Event::Request(task, lock), Event::Try(task, lock), Event::Heal(task, lock)]);
                events.extend(MODES.map(|mode| Event::Release(task, lock, mode)));
            }
            events.extend([Event::Woken(task), Event::Cancel(task), Event::Rebase(task), Event::Die(task)]);
        }
        events
    }

    fn apply(&self, machine: &mut M, shadow: &Shadow, event: Event) -> Answer {
        machine.apply(shadow, event)
    }

    fn refusals(&self, shadow: &Shadow, event: Event) -> Vec<Refusal> {
        shadow.refusal(event, M::LIMIT).into_iter().collect()
    }

    /// A deadlock is reported as a cycle, and nothing else is.
    fn compare(&self, machine: &M, shadow: &Shadow, event: Event, refused: Option<Refusal>) {
        match (event, refused) {
            (Event::Request(task, lock), Some(Refusal::Deadlock)) => {
                let cycle = shadow.chain(task, lock).0;
                assert_eq!(machine.cycle_of(task, lock), Some(cycle), "the cycle of {event:?}");
            }
            (Event::Request(task, lock), None) => {
                assert_eq!(machine.cycle_of(task, lock), None, "a cycle where there is none");
            }
            _ => {}
        }
    }

    fn follow(&self, machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
        shadow.follow(machine, event, actions);
    }

    /// Tasks that are awake try again, and tasks that run release what they hold: with and without healing it first.
    fn finish(&self, machine: &M, shadow: &Shadow) {
        for (heals, mode) in [(true, Unlock::Serial), (false, Unlock::Parallel)] {
            let (mut machine, mut shadow) = (machine.clone(), shadow.clone());
            // BOUND: far more events than three tasks need.
            run(self, (&mut machine, &mut shadow), 50, |shadow| {
                let awake = (0..TASKS).find(|&task| shadow.waits_for(task).is_some() && shadow.awake[task]);
                let release = (0..LOCKS).find_map(|lock| {
                    let owner = shadow.owners[lock].filter(|&owner| shadow.waits_for(owner).is_none())?;
                    let heal = heals && shadow.health[lock] == Health::Dead;
                    Some(if heal { Event::Heal(owner, lock) } else { Event::Release(owner, lock, mode) })
                });
                release.or(awake.map(Event::Woken))
            });
            assert!(shadow.waiting.is_empty() && shadow.owners == [None; LOCKS], "somebody never finishes");
        }
    }

    fn forget(&self, machine: &mut M, shadow: &mut Shadow) {
        machine.forget();
        shadow.epochs = [0; TASKS];
    }
}

/// Walks all reachable states, and returns their number.
fn walk_all<M: Walked>(protections: Protections) -> usize {
    walk(&Fulocks, (M::initial(protections), Shadow::initial(protections)), unchanged)
}

impl<const CHAIN: usize> Walked for Fulock<TASKS, LOCKS, CHAIN> {
    const LIMIT: usize = CHAIN;

    fn initial(protections: Protections) -> Self {
        let tasks: [_; TASKS] = core::array::from_fn(|task| (Priority::base(BASES[task][0]), CLASSES[task]));
        Self::new(&tasks, &protections)
    }

    fn apply(&mut self, shadow: &Shadow, event: Event) -> Answer {
        let caller = TaskId::new(event.caller());
        answer(|mut act| match event {
            Event::Request(_, lock) => self.request(caller, ResourceId::new(lock), &mut act),
            Event::Try(_, lock) => self.try_request(caller, ResourceId::new(lock), &mut act),
            Event::Release(_, lock, mode) => self.release(caller, ResourceId::new(lock), mode, &mut act),
            Event::Heal(_, lock) => self.make_consistent(caller, ResourceId::new(lock)),
            Event::Woken(_) => self.woken(caller, &mut act),
            Event::Cancel(_) => self.cancel(caller, &mut act),
            Event::Rebase(task) => self.set_base(caller, Priority::base(BASES[task][1 - shadow.bases[task]]), &mut act),
            Event::Die(_) => self.die(caller, &mut act),
        })
    }

    fn owner_of(&self, lock: usize) -> Option<usize> {
        self.owner(ResourceId::new(lock)).map(TaskId::index)
    }

    fn health_of(&self, lock: usize) -> Health {
        self.health(ResourceId::new(lock))
    }

    fn queue_of(&self, lock: usize) -> Vec<usize> {
        self.waiters(ResourceId::new(lock)).map(TaskId::index).collect()
    }

    fn cycle_of(&self, task: usize, lock: usize) -> Option<Vec<(usize, usize)>> {
        let cycle = self.cycle(TaskId::new(task), ResourceId::new(lock))?;
        Some(cycle.waits().map(|(task, resource)| (task.index(), resource.index())).collect())
    }

    fn forget(&mut self) {
        self.forget_epochs();
    }
}

/// Below some base priorities, and above all of them.
const CEILINGS: [Protection; LOCKS] = [Protection::Protect(Priority::base(3)), Protection::Protect(Priority::base(5))];

macro_rules! walks {
    ($($name:ident: $chain:literal, $protections:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk_all::<Fulock<TASKS, LOCKS, $chain>>($protections);
            check_states(stringify!($name), states, 1_000);
        }
    )*};
}

walks! {
    none_none: 2, [Protection::None, Protection::None];
    none_inherit: 2, [Protection::None, Protection::Inherit];
    none_protect: 2, [Protection::None, CEILINGS[1]];
    inherit_inherit: 2, [Protection::Inherit, Protection::Inherit];
    protect_inherit: 2, [CEILINGS[0], Protection::Inherit];
    inherit_protect: 2, [Protection::Inherit, CEILINGS[1]];
    protect_protect: 2, CEILINGS;
    short_chains: 1, [Protection::Inherit, Protection::Inherit];
}
