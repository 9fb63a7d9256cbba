//! All schedules of one processor under fixed priorities.
//!
//! Before each access to shared memory, a more urgent task may preempt, and it executes to its end unless a still more
//! urgent task preempts it. The task may also be killed there.
//!
//! The search executes the sections themselves and no model of them: a preemption is a call at a preemption point of
//! `sync`.
//! It goes depth first over the choices at each point, and executes each schedule from the beginning.

use std::boxed::Box;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::vec::Vec;

/// A section that a task executes at each of its releases.
pub(crate) type Task = Rc<dyn Fn()>;

/// A choice at one point: an index, and the number of options.
#[derive(Clone, Copy)]
struct Choice {
    index: usize,
    of: usize,
}

struct Schedule {
    path: Vec<Choice>,
    at: usize,
    tasks: Vec<Task>,
    /// The releases that each task has left.
    left: Vec<usize>,
    /// The task that executes, if one does.
    executes: Option<usize>,
    /// The number of tasks that may still be killed.
    kills: usize,
    dead: Vec<bool>,
}

std::thread_local! {
    static SCHEDULE: RefCell<Option<Schedule>> = const { RefCell::new(None) };
}

/// The payload of the panic that ends a killed task.
struct Killed;

enum Event {
    Nothing,
    Preempted(usize, Task),
    Kill,
}

impl Schedule {
    /// Returns the next choice among `of` options: that of the path, or the first one.
    fn choose(&mut self, of: usize) -> usize {
        if of == 1 {
            return 0;
        }
        if self.at == self.path.len() {
            self.path.push(Choice { index: 0, of });
        }
        let choice = self.path[self.at];
        assert_eq!(choice.of, of, "the same path has the same choices");
        self.at += 1;
        choice.index
    }

    fn event(&mut self) -> Event {
        let Some(executes) = self.executes else { return Event::Nothing };
        let more_urgent: Vec<usize> =
            (executes + 1..self.tasks.len()).filter(|&task| self.left[task] > 0 && !self.dead[task]).collect();
        let may_die = usize::from(self.kills > 0);
        let chosen = self.choose(1 + more_urgent.len() + may_die);
        match chosen {
            0 => Event::Nothing,
            chosen if chosen <= more_urgent.len() => {
                let task = more_urgent[chosen - 1];
                Event::Preempted(task, Rc::clone(&self.tasks[task]))
            }
            _ => {
                self.kills -= 1;
                self.dead[executes] = true;
                Event::Kill
            }
        }
    }
}

fn with<R>(change: impl FnOnce(&mut Schedule) -> R) -> R {
    SCHEDULE.with_borrow_mut(|schedule| change(schedule.as_mut().expect("a search is in progress")))
}

/// A point at which a preemption or a kill is possible.
pub(crate) fn point() {
    // BOUND: the releases that the tasks have left.
    loop {
        let event = SCHEDULE.with_borrow_mut(|schedule| schedule.as_mut().map_or(Event::Nothing, Schedule::event));
        match event {
            Event::Nothing => return,
            Event::Preempted(task, section) => execute(task, &section),
            Event::Kill => panic::resume_unwind(Box::new(Killed)),
        }
    }
}

fn execute(task: usize, section: &Task) {
    let before = with(|schedule| {
        schedule.left[task] -= 1;
        schedule.executes.replace(task)
    });
    let ended = panic::catch_unwind(AssertUnwindSafe(|| section()));
    with(|schedule| schedule.executes = before);
    if let Err(why) = ended
        && !why.is::<Killed>()
    {
        panic::resume_unwind(why);
    }
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) schedules: usize,
    /// The number of schedules in which the check failed.
    pub(crate) wrong: usize,
}

/// The maximum number of schedules of a search that finds nothing. Miri executes a few of them.
pub(super) const SCHEDULES_MAX: usize = if cfg!(miri) { 5 } else { usize::MAX };

/// Explores every schedule of the tasks that `set_up` returns, the least urgent first, each with its number of
/// releases.
///
/// `set_up` also returns a check, which is called at the end with the killed tasks and returns whether it holds.
/// A section fails a schedule by a panic.
///
/// The search ends early at `enough` failures, or after `most` schedules.
pub(crate) fn explore<Check: FnOnce(&[bool]) -> bool>(
    kills: usize,
    enough: usize,
    most: usize,
    set_up: impl Fn() -> (Vec<(usize, Task)>, Check),
) -> Explored {
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut path: Vec<Choice> = Vec::new();
    let mut explored = Explored { schedules: 0, wrong: 0 };
    loop {
        let (tasks, check) = set_up();
        let left = tasks.iter().map(|&(times, _)| times).collect();
        let tasks: Vec<Task> = tasks.into_iter().map(|(_, task)| task).collect();
        let dead = std::vec![false; tasks.len()];
        SCHEDULE.set(Some(Schedule { path, at: 0, tasks, left, executes: None, kills, dead }));
        let held = panic::catch_unwind(AssertUnwindSafe(|| {
            // The least urgent task is released first. A task that does not preempt executes later, the most urgent one
            // first.
            let tasks = with(|schedule| schedule.tasks.clone());
            for task in std::iter::once(0).chain((0..tasks.len()).rev()) {
                while with(|schedule| schedule.left[task] > 0 && !schedule.dead[task]) {
                    execute(task, &tasks[task]);
                }
            }
        }));
        let schedule = SCHEDULE.take().expect("it was set");
        // Outside the schedule there are no preemptions.
        let holds = held.is_ok() && panic::catch_unwind(AssertUnwindSafe(|| check(&schedule.dead))).unwrap_or(false);
        explored.schedules += 1;
        explored.wrong += usize::from(!holds);
        path = schedule.path;
        path.truncate(schedule.at);
        while path.last().is_some_and(|choice| choice.index + 1 == choice.of) {
            path.pop();
        }
        match path.last_mut() {
            Some(choice) if explored.wrong < enough && explored.schedules < most => choice.index += 1,
            _ => break,
        }
    }
    panic::set_hook(quiet);
    explored
}

mod tests {
    use super::*;
    use crate::sync::AtomicU64;
    use core::sync::atomic::Ordering;

    /// A task reads and then writes one more; a preemption between them loses a count.
    #[test]
    fn a_lost_update_is_found() {
        let explored = explore(0, usize::MAX, usize::MAX, || {
            let word = Rc::new(AtomicU64::new(0));
            let task = || {
                let word = Rc::clone(&word);
                Rc::new(move || {
                    let seen = word.load(Ordering::Relaxed);
                    word.store(seen + 1, Ordering::Relaxed);
                }) as Task
            };
            let tasks = std::vec![(1, task()), (1, task())];
            (tasks, move |_: &[bool]| word.load(Ordering::Relaxed) == 2)
        });
        // The second task executes before the first access, before the second one, or later.
        assert_eq!((explored.schedules, explored.wrong), (3, 1));
    }
}
