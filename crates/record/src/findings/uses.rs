//! The use of threads and locks, in numbers.

use super::waits::LockWait;
use crate::event::{EventKind, Policy};
use crate::held::Held;
use crate::history::History;
use crate::recording::{ObjectId, Recording, SiteId, ThreadIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The use of one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockUse {
    /// The lock.
    pub object: ObjectId,
    /// The number of sections.
    pub sections: u64,
    /// The threads that locked it.
    pub threads: BTreeSet<ThreadIndex>,
    /// The number of waits for it.
    pub contended: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// The longest time from a lock to its unlock.
    pub longest_held_ns: u64,
    /// The longest CPU time from a lock to its unlock.
    pub longest_cpu_ns: u64,
}

/// Sections of one thread, lock and place that are longer than the requested limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongSection {
    /// The thread.
    pub thread: ThreadIndex,
    /// The lock.
    pub object: ObjectId,
    /// The place of the lock.
    pub site: SiteId,
    /// How many such sections there are.
    pub times: u64,
    /// The CPU time of the longest.
    pub longest_cpu_ns: u64,
    /// The longest time from lock to unlock.
    pub longest_held_ns: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadUse {
    /// The policies that it had, in the order of their first use.
    pub policies: Vec<Policy>,
    /// The CPUs on which it executed.
    pub cpus: Vec<u32>,
    /// Its CPU time.
    pub cpu_ns: u64,
}

pub(super) fn locks(
    recording: &Recording,
    histories: &[History],
    sections: &[Vec<Held>],
    waits: &[LockWait],
) -> Vec<LockUse> {
    let mut uses: BTreeMap<ObjectId, LockUse> = BTreeMap::new();
    for (thread, (history, sections)) in (0..).zip(histories.iter().zip(sections)) {
        for section in sections {
            let lock = uses.entry(section.object).or_default();
            lock.sections += 1;
            lock.threads.insert(thread);
            // A section without an end lasts until the recording ends.
            let begin = history.entries[section.first];
            let last = history.entries.last().map_or(begin.cpu_ns, |last| last.cpu_ns);
            let open = (recording.length_ns.saturating_sub(begin.at_ns), last.saturating_sub(begin.cpu_ns));
            let (held, cpu) = section.lengths(&history.entries).unwrap_or(open);
            lock.longest_held_ns = lock.longest_held_ns.max(held);
            lock.longest_cpu_ns = lock.longest_cpu_ns.max(cpu);
        }
    }
    for wait in waits {
        let lock = uses.entry(wait.object).or_default();
        lock.contended += 1;
        lock.longest_wait_ns = lock.longest_wait_ns.max(wait.length_ns());
    }
    uses.into_iter().map(|(object, lock)| LockUse { object, ..lock }).collect()
}

/// Sections whose CPU time is longer than this, the longest first.
pub(super) fn long_sections(histories: &[History], sections: &[Vec<Held>], longer_than_ns: u64) -> Vec<LongSection> {
    let mut long: BTreeMap<(ThreadIndex, ObjectId, SiteId), LongSection> = BTreeMap::new();
    for (thread, (history, sections)) in (0..).zip(histories.iter().zip(sections)) {
        for section in sections {
            let Some((held, cpu)) = section.lengths(&history.entries).filter(|&(_, cpu)| cpu > longer_than_ns) else {
                continue;
            };
            let (object, site) = (section.object, section.site);
            let entry = long.entry((thread, object, site)).or_insert(LongSection {
                thread,
                object,
                site,
                times: 0,
                longest_cpu_ns: 0,
                longest_held_ns: 0,
            });
            entry.times += 1;
            entry.longest_cpu_ns = entry.longest_cpu_ns.max(cpu);
            entry.longest_held_ns = entry.longest_held_ns.max(held);
        }
    }
    let mut long: Vec<LongSection> = long.into_values().collect();
    long.sort_by_key(|section| std::cmp::Reverse(section.longest_cpu_ns));
    long
}

pub(super) fn threads(histories: &[History]) -> Vec<ThreadUse> {
    let of = |history: &History| {
        let mut policies: Vec<Policy> = Vec::new();
        for entry in &history.entries {
            match entry.kind {
                EventKind::Scheduling(policy) if !policies.contains(&policy) => policies.push(policy),
                _ => {}
            }
        }
        let cpus = history.cpus.iter().map(|&(cpu, _)| cpu).collect();
        ThreadUse { policies, cpus, cpu_ns: history.cpu_ns() }
    };
    histories.iter().map(of).collect()
}
