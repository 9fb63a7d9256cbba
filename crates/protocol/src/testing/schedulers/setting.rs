//! The settings of the walks, and the faults of mutants.

use crate::{Edf, EdfLock, GlobalEdf};
use lockwright_model::Priority;

/// The tasks and resources of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) processors: usize,
    /// The scheduler is that of `g-edf`; otherwise that of `p-edf` on one processor.
    pub(super) is_global: bool,
    /// The number of deadlines.
    pub(super) dues: u64,
    /// The preemption level of each task.
    pub(super) levels: &'static [u32],
    /// By resource: the ceiling, the highest level of the tasks that use it.
    pub(super) ceilings: &'static [u32],
    /// By resource: its lock, for `g-edf`.
    pub(super) locks: &'static [EdfLock],
    /// The priority of tasks that have no job, or decide on their job.
    pub(super) arriving: Priority,
}

impl Setting {
    pub(super) fn tasks(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn resources_of(&self, task: usize) -> impl Iterator<Item = usize> {
        (0..self.ceilings.len()).filter(move |&on| self.levels[task] <= self.ceilings[on])
    }
}

/// The first task does not use the second resource.
pub(super) const PARTITIONED: Setting = Setting {
    processors: 1,
    is_global: false,
    dues: 3,
    levels: &[3, 2, 1],
    ceilings: &[3, 2],
    locks: &[],
    arriving: Edf::<1, 1>::ARRIVING,
};
pub(super) const SHORT: Setting = Setting {
    processors: 2,
    is_global: true,
    dues: 2,
    levels: &[1, 1, 1],
    ceilings: &[1],
    locks: &[EdfLock::Short],
    arriving: GlobalEdf::<1, 1>::ARRIVING,
};
pub(super) const LONG: Setting = Setting { locks: &[EdfLock::Long], ..SHORT };
pub(super) const SHORT_ON_ONE: Setting = Setting { processors: 1, ..SHORT };
pub(super) const LONG_ON_ONE: Setting = Setting { processors: 1, ..LONG };
pub(super) const BOTH_ON_ONE: Setting =
    Setting { ceilings: &[1, 1], locks: &[EdfLock::Short, EdfLock::Long], ..SHORT_ON_ONE };

/// The fault of the threads of a mutant, or of its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    None,
    /// Wake-ups are lost.
    NoWake,
    /// A thread that leaves the guard gives it to no thread that waits for it.
    GuardKept,
    /// The priorities of others are not set.
    NotTold,
    /// The machine prefers the latest deadlines.
    ByLatest,
    /// The machine grants resources that have an owner.
    GrantsOwned,
    /// The machine grants to the latest request.
    GrantsLatest,
    /// A stale priority takes effect.
    TakesStale,
    /// A thread decides without rising.
    NotRaised,
    /// A thread carries out its own actions before those on others.
    OwnFirst,
}
