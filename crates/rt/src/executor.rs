//! Carries out what the machines decide: wakes, waits, and changes priorities, on real threads.
//!
//! Decisions are made under a machine's guard and carried out after it, in the machine's order: others first,
//! the caller last, so that the next owner is awake before the caller lowers itself.
//!
//! | action | under the guard | after it |
//! |---|---|---|
//! | Grant to another | its flag is set (Release) | - |
//! | Wake | - | futex wake on its flag |
//! | SetPriority | - | see [`Claims`] |
//! | Block | - | the caller waits on its own flag (Acquire) |
//!
//! A task rises to the ceiling *before* it asks ([`Executor::rise`]): were it to ask first, it could be preempted
//! between the machine's grant and its rise, and would hold the resource at its base priority for as long as others run.

use crate::guard::Guarded;
use crate::priorities::Levels;
use crate::sys::{SysError, futex, sched};
use lockwright_model::{Priority, TaskId};
use lockwright_protocol::Action;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Most actions noted for one event: a release wakes and lowers; grants take effect at once.
const ACTIONS_MAX: usize = 2;

/// The machines, each with its own epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// `icpp` for the resources of one CPU: one machine a CPU, and a task knows only its own.
    Local = 0,
    /// `icpp` for resources shared across CPUs.
    Shared = 1,
    Mpcp = 2,
}

const SOURCES: usize = 3;

/// Everything that has a say in the priority of one task. What counts is the highest.
#[derive(Debug)]
pub(crate) struct Claims {
    base: Priority,
    /// By source: the last value and its epoch.
    machines: [(Priority, u32); SOURCES],
    /// The ceiling of what the task is about to ask for.
    asking: Option<Priority>,
    /// What the kernel was told last.
    level: u8,
}

impl Claims {
    fn new(base: Priority, level: u8) -> Self {
        // A machine says nothing before its first change, and one that does not exist never does.
        Self { base, machines: [(Priority::MIN, 0); SOURCES], asking: None, level }
    }

    /// Takes a machine's value, unless a later one was taken already.
    fn set(&mut self, source: Source, priority: Priority, epoch: u32) {
        let last = &mut self.machines[source as usize];
        // Epochs wrap: the later one is less than half the circle ahead.
        if epoch.wrapping_sub(last.1) as i32 > 0 {
            *last = (priority, epoch);
        }
    }

    fn effective(&self) -> Priority {
        let machines = self.machines.iter().map(|machine| machine.0);
        machines.fold(self.base, Priority::max).max(self.asking.unwrap_or(Priority::MIN))
    }
}

/// What the runtime keeps for the thread of one task. One cache line and more each, so that neighbours do not meet.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Seat {
    /// The thread; 0 before it exists.
    tid: AtomicU32,
    /// 0: nothing, 1: what the task waits for is its own.
    granted: AtomicU32,
    /// The thread is under the ordinary policy for good: levels mean nothing to it any more.
    is_ordinary: AtomicBool,
    claims: Guarded<Claims>,
}

impl Seat {
    pub(crate) fn tid(&self) -> sched::Tid {
        // ORDERING: Acquire pairs with the Release in `sit`.
        sched::Tid(self.tid.load(Ordering::Acquire))
    }

    /// The calling thread takes the seat.
    pub(crate) fn sit(&self) {
        // ORDERING: Release pairs with the Acquire in `tid`.
        self.tid.store(sched::gettid().0, Ordering::Release);
    }

    /// Puts the thread under the ordinary policy, for good.
    pub(crate) fn demote(&self) -> Result<(), SysError> {
        // ORDERING: Release pairs with the Acquire in `Executor::change`: who meets the ordinary policy knows why.
        self.is_ordinary.store(true, Ordering::Release);
        sched::set_other(self.tid())
    }
}

/// A decision that waits to be carried out.
pub(crate) struct Actions {
    list: [Option<Action>; ACTIONS_MAX],
    len: usize,
}

impl Actions {
    pub(crate) const fn new() -> Self {
        Self { list: [None; ACTIONS_MAX], len: 0 }
    }
}

/// The seats of all tasks, and the levels of one run.
#[derive(Debug)]
pub(crate) struct Executor {
    seats: Box<[Seat]>,
    levels: Levels,
}

impl Executor {
    /// `priorities[t]` is the base priority of task `t`.
    pub(crate) fn new(priorities: impl Iterator<Item = Priority>, levels: Levels) -> Self {
        let seat = |base| Seat {
            tid: AtomicU32::new(0),
            granted: AtomicU32::new(0),
            is_ordinary: AtomicBool::new(false),
            claims: Guarded::new(Claims::new(base, levels.get(base))),
        };
        Self { seats: priorities.map(seat).collect(), levels }
    }

    pub(crate) fn seat(&self, task: TaskId) -> &Seat {
        &self.seats[task.index()]
    }

    /// The level a task has when it claims nothing.
    pub(crate) fn level(&self, priority: Priority) -> u8 {
        self.levels.get(priority)
    }

    /// `task`, the caller, rises to `ceiling` before it asks. Ends with [`Executor::asked`], after an error too.
    pub(crate) fn rise(&self, task: TaskId, ceiling: Priority) -> Result<(), SysError> {
        self.change(task, |claims| claims.asking = Some(ceiling))
    }

    /// The answer is carried out: from here on only the machines' values count.
    pub(crate) fn asked(&self, task: TaskId) -> Result<(), SysError> {
        self.change(task, |claims| claims.asking = None)
    }

    /// The base priority of a task changes. The machines are told apart.
    pub(crate) fn set_base(&self, task: TaskId, base: Priority) -> Result<(), SysError> {
        self.change(task, |claims| claims.base = base)
    }

    /// What counts for a task now.
    pub(crate) fn effective(&self, task: TaskId) -> Priority {
        self.seat(task).claims.lock().effective()
    }

    /// Notes an action. Called under the machine's guard: a grant takes effect here.
    pub(crate) fn note(&self, me: TaskId, actions: &mut Actions, action: Action) {
        if let Action::Grant { task, .. } = action {
            if task != me {
                // ORDERING: Release pairs with the Acquire in `wait_for_grant`: the new owner sees the section before.
                self.seat(task).granted.store(1, Ordering::Release);
            }
            return;
        }
        assert!(actions.len < ACTIONS_MAX, "an event answers at most {ACTIONS_MAX} actions");
        actions.list[actions.len] = Some(action);
        actions.len += 1;
    }

    /// Carries out what was noted, without the guard. Says whether the caller had to wait.
    pub(crate) fn carry_out(&self, source: Source, actions: &Actions) -> Result<bool, SysError> {
        let mut waited = false;
        let mut result = Ok(());
        for action in actions.list[..actions.len].iter().flatten() {
            match *action {
                Action::Grant { .. } => {}
                // Until their protocols have locks here.
                Action::Spin { .. } | Action::Hold { .. } | Action::Migrate { .. } => {}
                Action::Wake { task } => futex::wake(&self.seat(task).granted, 1),
                Action::SetPriority { task, priority, epoch } => {
                    // A failure does not keep the others from being woken.
                    result = result.and(self.change(task, |claims| claims.set(source, priority, epoch)));
                }
                Action::Block { task, .. } => {
                    self.wait_for_grant(task);
                    waited = true;
                }
            }
        }
        result.map(|()| waited)
    }

    /// BOUND: the sections of those who come before; every holder runs at the ceiling, and gives back when the run ends.
    fn wait_for_grant(&self, task: TaskId) {
        let granted = &self.seat(task).granted;
        // ORDERING: Acquire pairs with the Release in `note`.
        while granted.load(Ordering::Acquire) == 0 {
            futex::wait(granted, 0, None);
        }
        // ORDERING: Relaxed: the next grant comes after this task's next request, under the same guard.
        granted.store(0, Ordering::Relaxed);
    }

    /// Changes a claim and tells the kernel, if the outcome is another level. Both under the seat's guard, so that
    /// the last change is also the last the kernel hears of.
    fn change(&self, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        let seat = self.seat(task);
        let mut claims = seat.claims.lock();
        change(&mut claims);
        let level = self.levels.get(claims.effective());
        if level == claims.level {
            return Ok(());
        }
        match sched::set_level(seat.tid(), level) {
            // ORDERING: Acquire pairs with the Release in `Seat::demote`.
            Err(SysError { errno: libc::EINVAL, .. }) if seat.is_ordinary.load(Ordering::Acquire) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                claims.level = level;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_priority_is_dropped() {
        let [low, high, top] = [1, 2, 3].map(Priority::base);
        let mut claims = Claims::new(low, 1);
        claims.set(Source::Local, top, 2);
        claims.set(Source::Local, high, 1);
        assert_eq!(claims.effective(), top, "epoch 1 arrived after epoch 2");
        claims.set(Source::Local, low, 3);
        assert_eq!(claims.effective(), low);
    }

    #[test]
    fn epochs_are_compared_across_their_wrap() {
        let [low, high, top] = [1, 2, 3].map(Priority::base);
        let mut claims = Claims::new(low, 1);
        claims.machines[0].1 = u32::MAX;
        claims.set(Source::Local, top, 0);
        assert_eq!(claims.effective(), top);
        claims.set(Source::Local, high, u32::MAX);
        assert_eq!(claims.effective(), top);
    }

    #[test]
    fn a_base_priority_falls_where_no_machine_holds_it_up() {
        let mut claims = Claims::new(Priority::base(5), 1);
        claims.base = Priority::base(0);
        assert_eq!(claims.effective(), Priority::base(0));
    }

    #[test]
    fn the_highest_claim_counts() {
        let mut claims = Claims::new(Priority::base(1), 1);
        claims.set(Source::Local, Priority::base(5), 1);
        claims.set(Source::Mpcp, Priority::base(2).boosted(), 1);
        assert_eq!(claims.effective(), Priority::base(2).boosted());
        claims.set(Source::Mpcp, Priority::base(1), 2);
        assert_eq!(claims.effective(), Priority::base(5));
        claims.asking = Some(Priority::base(9));
        assert_eq!(claims.effective(), Priority::base(9));
    }
}
