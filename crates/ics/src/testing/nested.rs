//! All schedules of one processor under fixed priorities: before each access to shared memory a more urgent task may come between, and executes to its end,
//! unless a still more urgent one comes between, and so on; or the task may be killed there.
//!
//! It executes the sections themselves, not a model of them: preemption is a call at a place where `sync` says one is possible. Depth first over what may
//! happen at each place, each schedule from the beginning.

use std::boxed::Box;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::vec::Vec;

/// What a task does each time it comes: its section.
pub(crate) type Task = Rc<dyn Fn()>;

/// A choice at one place: which of how many.
#[derive(Clone, Copy)]
struct Choice {
    taken: usize,
    of: usize,
}

struct Schedule {
    path: Vec<Choice>,
    at: usize,
    tasks: Vec<Task>,
    /// How often each task will still come.
    left: Vec<usize>,
    /// Who executes; nobody yet.
    executes: Option<usize>,
    /// How many more may be killed.
    kills: usize,
    dead: Vec<bool>,
}

std::thread_local! {
    static SCHEDULE: RefCell<Option<Schedule>> = const { RefCell::new(None) };
}

/// The end of a task that is killed.
struct Killed;

enum Happens {
    Nothing,
    Comes(usize, Task),
    Kill,
}

impl Schedule {
    /// The next choice among `of`: as last time, or the first.
    fn choose(&mut self, of: usize) -> usize {
        if of == 1 {
            return 0;
        }
        if self.at == self.path.len() {
            self.path.push(Choice { taken: 0, of });
        }
        let choice = self.path[self.at];
        assert_eq!(choice.of, of, "the same way has the same choices");
        self.at += 1;
        choice.taken
    }

    fn happens(&mut self) -> Happens {
        let Some(executes) = self.executes else { return Happens::Nothing };
        let more_urgent: Vec<usize> =
            (executes + 1..self.tasks.len()).filter(|&task| self.left[task] > 0 && !self.dead[task]).collect();
        let may_die = usize::from(self.kills > 0);
        let chosen = self.choose(1 + more_urgent.len() + may_die);
        match chosen {
            0 => Happens::Nothing,
            chosen if chosen <= more_urgent.len() => {
                let task = more_urgent[chosen - 1];
                Happens::Comes(task, Rc::clone(&self.tasks[task]))
            }
            _ => {
                self.kills -= 1;
                self.dead[executes] = true;
                Happens::Kill
            }
        }
    }
}

fn with<R>(change: impl FnOnce(&mut Schedule) -> R) -> R {
    SCHEDULE.with_borrow_mut(|schedule| change(schedule.as_mut().expect("a search goes on")))
}

/// A place where something may happen.
pub(crate) fn point() {
    // BOUND: the sections the tasks have left.
    loop {
        let happens =
            SCHEDULE.with_borrow_mut(|schedule| schedule.as_mut().map_or(Happens::Nothing, Schedule::happens));
        match happens {
            Happens::Nothing => return,
            Happens::Comes(task, section) => execute(task, &section),
            Happens::Kill => panic::resume_unwind(Box::new(Killed)),
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

/// What was found.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) schedules: usize,
    /// In how many the check did not hold.
    pub(crate) wrong: usize,
}

/// Every schedule of tasks, the least urgent first, that each come so often. `set_up` makes them, and a check at the end, which gets to know who was killed; the
/// check says whether it holds, and so do the sections, by panicking.
///
/// Ends early at `enough` wrong ones.
pub(crate) fn explore<Check: FnOnce(&[bool]) -> bool>(
    kills: usize,
    enough: usize,
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
            // Who does not come between comes later, the most urgent first, as on a processor; but the first is the least urgent.
            let tasks = with(|schedule| schedule.tasks.clone());
            for task in std::iter::once(0).chain((0..tasks.len()).rev()) {
                while with(|schedule| schedule.left[task] > 0 && !schedule.dead[task]) {
                    execute(task, &tasks[task]);
                }
            }
        }));
        let schedule = SCHEDULE.take().expect("it was set");
        // Outside the schedule: nothing comes between any more.
        let holds = held.is_ok() && panic::catch_unwind(AssertUnwindSafe(|| check(&schedule.dead))).unwrap_or(false);
        explored.schedules += 1;
        explored.wrong += usize::from(!holds);
        path = schedule.path;
        path.truncate(schedule.at);
        while path.last().is_some_and(|choice| choice.taken + 1 == choice.of) {
            path.pop();
        }
        match path.last_mut() {
            Some(choice) if explored.wrong < enough => choice.taken += 1,
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

    /// A task that reads, and writes one more, is preempted in between; in how many schedules is a count lost?
    #[test]
    fn a_lost_update_is_found() {
        let explored = explore(0, usize::MAX, || {
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
        // The second comes before the first access, before the second, or later.
        assert_eq!((explored.schedules, explored.wrong), (3, 1));
    }
}
