//! Counts jobs of a task set: response times, deadline misses, waits for resources, and the lengths of sections.
//!
//! Each task has counters that only its own thread writes, with plain stores. The holder of a resource is a word that
//! its users share. None of this makes a system call, allocates or waits.
//!
//! The counters are words in memory that other processes may read. [`Statistics`](super::Statistics) are read from
//! these words, by this process and by others.

use crate::groups::{add, group};
use lockwright_model::{Duration, ResourceId, System, TaskId};
use lockwright_sys::clock;
use lockwright_sys::shared::SharedWords;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// No task, in a holder.
pub(super) const NOBODY: u64 = u32::MAX as u64;
/// No bound or deadline.
pub(super) const NONE: u64 = u64::MAX;

/// The name of the shared memory.
pub(super) const NAME: &CStr = c"lockwright-tasks";

/// The first words. Places are numbers of words from the first one.
pub(super) mod head {
    /// The first word: the kind of memory, and the version of its layout.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"LWTASKS1");
    /// The monotonic clock when counting began.
    pub const SINCE: usize = 1;
    /// The number of tasks, and that of resources.
    pub const TASKS: usize = 2;
    pub const RESOURCES: usize = 3;
    /// The place of the table of names: for each name its place and its bytes (32 bits each). First the names of the
    /// tasks, then those of the resources, then that of the task set.
    pub const NAMES: usize = 4;
    /// The place of the table of tasks: the place of each.
    pub const TABLE: usize = 5;
    pub(super) const WORDS: usize = 8;
}

/// The words of a task. Those of its resources follow.
pub(super) mod of_task {
    /// The relative deadline in nanoseconds, or [`NONE`](super::NONE).
    pub const DEADLINE: usize = 0;
    pub const BOUND: usize = 1;
    pub const JOBS: usize = 2;
    pub const MISSES: usize = 3;
    pub const ABOVE_BOUND: usize = 4;
    pub const TOTAL: usize = 5;
    pub const WORST: usize = 6;
    /// The number of the job with the longest response, from 1.
    pub const WORST_JOB: usize = 7;
    /// The thread's id in the kernel, or 0.
    pub const THREAD: usize = 8;
    /// The release of the present job by the monotonic clock, or 0.
    pub const RELEASE: usize = 9;
    /// The resource that the job requests, from 1, or 0; and since when. In this order, see `asks`.
    pub const ASKS: usize = 10;
    pub const ASKS_SINCE: usize = 11;
    /// The number of resources that the task uses.
    pub const USED: usize = 12;
    pub const GROUPS: usize = 16;
    pub const WORDS: usize = GROUPS + crate::groups::GROUPS;
}

/// The words of a task and a resource: one line of the cache.
pub(super) mod of_use {
    pub const RESOURCE: usize = 0;
    pub const SECTIONS: usize = 1;
    pub const WAITS: usize = 2;
    pub const TOTAL_WAIT: usize = 3;
    pub const LONGEST_WAIT: usize = 4;
    /// The holder at the request of the longest wait.
    pub const HOLDER: usize = 5;
    pub const LONGEST_SECTION: usize = 6;
    /// Since when the task holds the resource, or 0.
    pub const HELD_SINCE: usize = 7;
    pub const WORDS: usize = 8;
}

/// The words of a line of the cache. What different threads write is in different lines.
const LINE: usize = 8;

/// The counters of a task set.
#[derive(Debug)]
pub(super) struct Counters {
    words: SharedWords,
    /// The place of each task.
    tasks: Box<[usize]>,
    /// The place of each task and each resource that it uses.
    uses: Box<[usize]>,
    /// The place of the holder of the first resource: the task that locked it last, until it unlocks.
    holders: usize,
}

/// Raises a maximum that no other thread writes. Returns whether the value is a new one.
fn raise(most: &AtomicU64, to: u64) -> bool {
    // ORDERING: Relaxed, here and where nothing else is said: as in `add`.
    let is_new = to > most.load(Ordering::Relaxed);
    if is_new {
        most.store(to, Ordering::Relaxed);
    }
    is_new
}

/// The resources that a task uses, in the order of their ids.
fn used(system: &System, task: TaskId) -> Vec<ResourceId> {
    let mut used: Vec<ResourceId> = system.sections(task).iter().map(|section| section.resource).collect();
    used.sort_unstable();
    used.dedup();
    used
}

impl Counters {
    /// `has_deadline` tells for each task whether jobs can miss its deadline.
    pub(super) fn new(system: &System, has_deadline: &[bool]) -> Self {
        let resources = system.resources().len();
        let names = system.tasks().iter().map(|task| task.name.as_str());
        let names = names.chain(system.resources().iter().map(|resource| resource.name.as_str()));
        let names: Vec<&str> = names.chain([system.name()]).collect();
        let all: Vec<Vec<ResourceId>> = system.task_ids().map(|task| used(system, task)).collect();

        let holders = head::WORDS;
        let table = holders + resources * LINE;
        let names_at = table + all.len();
        let mut next = names_at + names.len();
        let mut texts = Vec::new();
        for name in &names {
            texts.push((next, name.as_bytes()));
            next += name.len().div_ceil(size_of::<u64>());
        }
        let mut uses = vec![usize::MAX; all.len() * resources].into_boxed_slice();
        let mut tasks = Vec::new();
        for (task, used) in all.iter().enumerate() {
            next = next.next_multiple_of(LINE);
            tasks.push(next);
            next += of_task::WORDS;
            for resource in used {
                uses[task * resources + resource.index()] = next;
                next += of_use::WORDS;
            }
        }
        let counters = Self { words: SharedWords::new(NAME, next), tasks: tasks.into(), uses, holders };
        counters.fill(system, has_deadline, &all, &texts, [table, names_at]);
        counters
    }

    /// Writes what does not change, the first word last.
    fn fill(
        &self,
        system: &System,
        has_deadline: &[bool],
        all: &[Vec<ResourceId>],
        texts: &[(usize, &[u8])],
        [table, names_at]: [usize; 2],
    ) {
        let put = |at: usize, value: u64| self.words[at].store(value, Ordering::Relaxed);
        for resource in system.resource_ids() {
            self.holder_of(resource).store(NOBODY, Ordering::Relaxed);
        }
        for ((task, used), &has_deadline) in system.task_ids().zip(all).zip(has_deadline) {
            let at = self.tasks[task.index()];
            put(table + task.index(), at as u64);
            put(at + of_task::DEADLINE, if has_deadline { system.task(task).deadline.as_ns() } else { NONE });
            put(at + of_task::BOUND, NONE);
            put(at + of_task::USED, used.len() as u64);
            for &resource in used {
                self.of_use(task, resource, of_use::RESOURCE).store(resource.0.into(), Ordering::Relaxed);
                self.of_use(task, resource, of_use::HOLDER).store(NOBODY, Ordering::Relaxed);
            }
        }
        for (index, &(at, text)) in texts.iter().enumerate() {
            put(names_at + index, (at as u64) << 32 | text.len() as u64);
            for (word, bytes) in text.chunks(size_of::<u64>()).enumerate() {
                let mut padded = [0; size_of::<u64>()];
                padded[..bytes.len()].copy_from_slice(bytes);
                put(at + word, u64::from_le_bytes(padded));
            }
        }
        put(head::SINCE, clock::now_ns());
        put(head::TASKS, system.tasks().len() as u64);
        put(head::RESOURCES, system.resources().len() as u64);
        put(head::NAMES, names_at as u64);
        put(head::TABLE, table as u64);
        // ORDERING: Release: who reads the first word finds the others.
        self.words[0].store(head::MAGIC, Ordering::Release);
    }

    /// All words as they are now.
    pub(super) fn words(&self) -> Vec<u64> {
        self.words.to_vec()
    }

    fn of_task(&self, task: TaskId, word: usize) -> &AtomicU64 {
        &self.words[self.tasks[task.index()] + word]
    }

    fn of_use(&self, task: TaskId, resource: ResourceId, word: usize) -> &AtomicU64 {
        let resources = self.uses.len() / self.tasks.len();
        &self.words[self.uses[task.index() * resources + resource.index()] + word]
    }

    fn holder_of(&self, resource: ResourceId) -> &AtomicU64 {
        &self.words[self.holders + resource.index() * LINE]
    }

    pub(super) fn set_bound(&self, task: TaskId, bound: Duration) {
        self.of_task(task, of_task::BOUND).store(bound.as_ns(), Ordering::Relaxed);
    }

    /// A job of this thread begins that was released at this time.
    pub(super) fn begin(&self, task: TaskId, thread: u32, release_ns: u64) {
        self.of_task(task, of_task::THREAD).store(thread.into(), Ordering::Relaxed);
        self.of_task(task, of_task::RELEASE).store(release_ns, Ordering::Relaxed);
    }

    /// The job does not begin after all.
    pub(super) fn cancel(&self, task: TaskId) {
        self.of_task(task, of_task::RELEASE).store(0, Ordering::Relaxed);
    }

    /// Counts a job that ended `response_ns` after its release. If its absolute deadline is known, `is_late` tells
    /// whether it missed it; otherwise the relative deadline of the task decides.
    pub(super) fn finish(&self, task: TaskId, response_ns: u64, is_late: Option<bool>) {
        let own = |word| self.of_task(task, word);
        add(own(of_task::JOBS), 1);
        add(own(of_task::TOTAL), response_ns);
        if raise(own(of_task::WORST), response_ns) {
            own(of_task::WORST_JOB).store(own(of_task::JOBS).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let is_late = is_late.unwrap_or(response_ns > own(of_task::DEADLINE).load(Ordering::Relaxed));
        add(own(of_task::MISSES), is_late.into());
        add(own(of_task::ABOVE_BOUND), (response_ns > own(of_task::BOUND).load(Ordering::Relaxed)).into());
        add(own(of_task::GROUPS + group(response_ns)), 1);
        self.cancel(task);
    }

    /// The task that holds a resource, before a request for it. A hint.
    pub(super) fn holder(&self, resource: ResourceId) -> u64 {
        self.holder_of(resource).load(Ordering::Relaxed)
    }

    /// The job is about to request a resource.
    pub(super) fn asks(&self, task: TaskId, resource: ResourceId, now_ns: u64) {
        self.of_task(task, of_task::ASKS_SINCE).store(now_ns, Ordering::Relaxed);
        // ORDERING: Release: words are read in the order of their places, so who finds the request finds its time or
        // a later one.
        self.of_task(task, of_task::ASKS).store(u64::from(resource.0) + 1, Ordering::Release);
    }

    /// The request has ended.
    pub(super) fn asked(&self, task: TaskId) {
        self.of_task(task, of_task::ASKS).store(0, Ordering::Relaxed);
    }

    /// Counts a lock at `now_ns`, and a wait of `wait_ns` behind `holder` if there was one.
    pub(super) fn locked(&self, task: TaskId, resource: ResourceId, now_ns: u64, holder: u64, wait_ns: Option<u64>) {
        self.holder_of(resource).store(task.0.into(), Ordering::Relaxed);
        let own = |word| self.of_use(task, resource, word);
        own(of_use::HELD_SINCE).store(now_ns, Ordering::Relaxed);
        add(own(of_use::SECTIONS), 1);
        if let Some(wait_ns) = wait_ns {
            add(own(of_use::WAITS), 1);
            add(own(of_use::TOTAL_WAIT), wait_ns);
            if raise(own(of_use::LONGEST_WAIT), wait_ns) {
                own(of_use::HOLDER).store(holder, Ordering::Relaxed);
            }
        }
    }

    /// Counts a section of this length, which is about to end.
    pub(super) fn unlocking(&self, task: TaskId, resource: ResourceId, section_ns: u64) {
        // Another reader may have locked it meanwhile.
        let holder = self.holder_of(resource);
        let _ = holder.compare_exchange(task.0.into(), NOBODY, Ordering::Relaxed, Ordering::Relaxed);
        self.of_use(task, resource, of_use::HELD_SINCE).store(0, Ordering::Relaxed);
        raise(self.of_use(task, resource, of_use::LONGEST_SECTION), section_ns);
    }
}
