//! Counts jobs of a task set: response times, deadline misses, waits for resources, and the lengths of sections.
//!
//! Each task has counters that only its own thread writes, with plain stores. The holder of a resource is a word that
//! its users share. None of this makes a system call, allocates or waits.

use lockwright_model::{Duration, ResourceId, System, TaskId};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No task, in a holder.
pub(super) const NOBODY: u32 = u32::MAX;
/// No bound or deadline.
pub(super) const NONE: u64 = u64::MAX;
/// Times are counted in groups that are at most a sixteenth wide: 16 for each power of two.
const GROUP_BITS: u32 = 4;
pub(super) const GROUPS: usize = (64 - GROUP_BITS as usize + 1) << GROUP_BITS;

/// The counters of a task set.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) tasks: Box<[TaskCounters]>,
    /// By resource: the task that locked it last, until it unlocks.
    holders: Box<[AtomicU32]>,
}

/// Aligned, so that no cache line has counters of two tasks, which may execute on different CPUs.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct TaskCounters {
    /// The relative deadline in nanoseconds, or [`NONE`].
    pub(super) deadline_ns: u64,
    pub(super) bound_ns: AtomicU64,
    pub(super) jobs: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) above_bound: AtomicU64,
    pub(super) total_ns: AtomicU64,
    pub(super) worst_ns: AtomicU64,
    /// The number of the job with the longest response, from 1.
    pub(super) worst_job: AtomicU64,
    pub(super) groups: Box<[AtomicU32]>,
    pub(super) resources: Box<[ResourceCounters]>,
}

/// Aligned, as [`TaskCounters`] are.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ResourceCounters {
    pub(super) sections: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) total_wait_ns: AtomicU64,
    pub(super) longest_wait_ns: AtomicU64,
    /// The holder at the request of the longest wait.
    pub(super) holder: AtomicU32,
    pub(super) longest_section_ns: AtomicU64,
}

/// Adds to a counter that no other thread writes.
fn add(counter: &AtomicU64, more: u64) {
    // ORDERING: Relaxed, here and in all of this file: a report is read while tasks execute, and promises no more than
    // that each value was there at some moment.
    counter.store(counter.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
}

/// Raises a maximum that no other thread writes. Returns whether the value is a new one.
fn raise(most: &AtomicU64, to: u64) -> bool {
    let is_new = to > most.load(Ordering::Relaxed);
    if is_new {
        most.store(to, Ordering::Relaxed);
    }
    is_new
}

/// The group of a time.
fn group(ns: u64) -> usize {
    let power = (u64::BITS - ns.leading_zeros()).saturating_sub(GROUP_BITS + 1);
    ((power as usize) << GROUP_BITS) + (ns >> power) as usize
}

/// The longest time of a group.
pub(super) fn group_end(group: usize) -> u64 {
    // Groups of the same width begin at a multiple of 16 from 16 on.
    let power = (group >> GROUP_BITS).saturating_sub(1) as u32;
    let first = (group - ((power as usize) << GROUP_BITS)) as u64;
    (first << power) | ((1 << power) - 1)
}

impl Counters {
    /// `has_deadline` tells for each task whether jobs can miss its deadline.
    pub(super) fn new(system: &System, has_deadline: &[bool]) -> Self {
        let zero = || AtomicU64::new(0);
        let resource = |_| ResourceCounters {
            sections: zero(),
            waits: zero(),
            total_wait_ns: zero(),
            longest_wait_ns: zero(),
            holder: AtomicU32::new(NOBODY),
            longest_section_ns: zero(),
        };
        let task = |task: TaskId| TaskCounters {
            deadline_ns: if has_deadline[task.index()] { system.task(task).deadline.as_ns() } else { NONE },
            bound_ns: AtomicU64::new(NONE),
            jobs: zero(),
            misses: zero(),
            above_bound: zero(),
            total_ns: zero(),
            worst_ns: zero(),
            worst_job: zero(),
            groups: (0..GROUPS).map(|_| AtomicU32::new(0)).collect(),
            resources: system.resource_ids().map(resource).collect(),
        };
        let holders = system.resource_ids().map(|_| AtomicU32::new(NOBODY)).collect();
        Self { tasks: system.task_ids().map(task).collect(), holders }
    }

    pub(super) fn set_bound(&self, task: TaskId, bound: Duration) {
        self.tasks[task.index()].bound_ns.store(bound.as_ns(), Ordering::Relaxed);
    }

    /// Counts a job that ended `response_ns` after its release. If its absolute deadline is known, `is_late` tells
    /// whether it missed it; otherwise the relative deadline of the task decides.
    pub(super) fn finish(&self, task: TaskId, response_ns: u64, is_late: Option<bool>) {
        let own = &self.tasks[task.index()];
        add(&own.jobs, 1);
        add(&own.total_ns, response_ns);
        if raise(&own.worst_ns, response_ns) {
            own.worst_job.store(own.jobs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let is_late = is_late.unwrap_or(response_ns > own.deadline_ns);
        add(&own.misses, is_late.into());
        add(&own.above_bound, (response_ns > own.bound_ns.load(Ordering::Relaxed)).into());
        let group = &own.groups[group(response_ns)];
        group.store(group.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// The task that holds a resource, before a request for it. A hint.
    pub(super) fn holder(&self, resource: ResourceId) -> u32 {
        self.holders[resource.index()].load(Ordering::Relaxed)
    }

    /// Counts a lock, and a wait of `wait_ns` behind `holder` if there was one.
    pub(super) fn locked(&self, task: TaskId, resource: ResourceId, holder: u32, wait_ns: Option<u64>) {
        self.holders[resource.index()].store(u32::from(task.0), Ordering::Relaxed);
        let own = &self.tasks[task.index()].resources[resource.index()];
        add(&own.sections, 1);
        if let Some(wait_ns) = wait_ns {
            add(&own.waits, 1);
            add(&own.total_wait_ns, wait_ns);
            if raise(&own.longest_wait_ns, wait_ns) {
                own.holder.store(holder, Ordering::Relaxed);
            }
        }
    }

    /// Counts a section of this length, which is about to end.
    pub(super) fn unlocking(&self, task: TaskId, resource: ResourceId, section_ns: u64) {
        // Another reader may have locked it meanwhile.
        let holder = &self.holders[resource.index()];
        let _ = holder.compare_exchange(u32::from(task.0), NOBODY, Ordering::Relaxed, Ordering::Relaxed);
        raise(&self.tasks[task.index()].resources[resource.index()].longest_section_ns, section_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_all_times_in_order() {
        let mut times: Vec<u64> = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + 1, (1_u64 << bit) - 1]).collect();
        times.extend([0, 15, 16, 17, 31, 32, 33, 1_000, 123_456_789, u64::MAX]);
        times.sort_unstable();
        for &ns in &times {
            let group = group(ns);
            let end = group_end(group);
            assert!(group < GROUPS && ns <= end && end - ns <= ns / 16, "{ns}: group {group} ends at {end}");
            assert!(group == 0 || group_end(group - 1) < ns, "{ns}: the group before ends at {}", group_end(group - 1));
        }
        assert_eq!(group(u64::MAX), GROUPS - 1);
    }
}
