//! One look at a process: reads its statistics from the memory that it shares.

use super::maps::Maps;
use crate::json::{
    WatchOutput, WatchedBin, WatchedMutex, WatchedRequest, WatchedResource, WatchedSet, WatchedTask, WatchedThread,
};
use lockwright::statistics::{MutexStatistics, Mutexes, SeenThread};
use lockwright::tasks::{ResourceStatistics, Statistics, TaskStatistics};
use lockwright_model::Duration;
use std::io;

/// Looks at a process.
///
/// # Errors
/// There is no such process, it may not be looked at, or it counts in the form of another version.
pub(super) fn look(process: u32) -> io::Result<WatchOutput> {
    let program = std::fs::read_to_string(format!("/proc/{process}/comm"))?;
    let sets = Statistics::of_process(process)?;
    let mutexes = Mutexes::of_process(process)?;
    let left_out = mutexes.as_ref().map_or(0, |mutexes| mutexes.left_out);
    let maps = Maps::of(process);
    let mut mutexes: Vec<MutexStatistics> = mutexes.map(|mutexes| mutexes.mutexes).unwrap_or_default();
    mutexes.sort_by_key(|mutex| std::cmp::Reverse((mutex.total_wait, mutex.sections)));
    Ok(WatchOutput {
        verb: WatchOutput::VERB,
        process,
        program: program.trim_end().to_owned(),
        sets: sets.iter().map(of_set).collect(),
        mutexes: mutexes.iter().map(|mutex| of_mutex(mutex, process, &maps)).collect(),
        mutexes_left_out: left_out,
    })
}

fn of_set(set: &Statistics) -> WatchedSet {
    WatchedSet {
        name: set.name.clone(),
        counted_ns: set.counted.as_ns(),
        tasks: set.tasks.iter().map(|task| of_task(set, task)).collect(),
    }
}

fn of_task(set: &Statistics, task: &TaskStatistics) -> WatchedTask {
    let ns = |time: Option<Duration>| time.map(Duration::as_ns);
    let request = task.request.as_ref().map(|request| {
        let holds = |other: &&TaskStatistics| {
            other.resources.iter().any(|one| one.resource == request.resource && one.held.is_some())
        };
        WatchedRequest {
            resource: request.name.clone(),
            since_ns: request.since.as_ns(),
            holders: set.tasks.iter().filter(holds).map(|other| other.name.clone()).collect(),
        }
    });
    let resource = |one: &ResourceStatistics| WatchedResource {
        name: one.name.clone(),
        sections: one.sections,
        waits: one.waits,
        total_wait_ns: one.total_wait.as_ns(),
        longest_wait_ns: one.longest_wait.as_ns(),
        behind: one.holder.and_then(|holder| Some(set.tasks.get(holder.index())?.name.clone())),
        longest_section_ns: one.longest_section.as_ns(),
        held_ns: ns(one.held),
    };
    WatchedTask {
        name: task.name.clone(),
        thread: task.thread,
        jobs: task.jobs,
        misses: task.misses,
        deadline_ns: ns(task.deadline),
        bound_ns: ns(task.bound),
        above_bound: task.above_bound,
        mean_ns: task.mean.as_ns(),
        p999_ns: ns(task.percentile(99.9)),
        worst_ns: task.worst.as_ns(),
        worst_job: task.worst_job,
        present_ns: ns(task.present),
        request,
        histogram: task.histogram().map(|(up_to, jobs)| WatchedBin { up_to_ns: up_to.as_ns(), jobs }).collect(),
        resources: task.resources.iter().map(resource).collect(),
    }
}

fn of_mutex(mutex: &MutexStatistics, process: u32, maps: &Maps) -> WatchedMutex {
    let thread =
        |seen: Option<SeenThread>| seen.map(|seen| WatchedThread { id: seen.id, name: seen.name().to_string() });
    let owner = mutex.held.map(|(id, _)| {
        let name = std::fs::read_to_string(format!("/proc/{process}/task/{id}/comm"));
        WatchedThread { id, name: name.map(|name| name.trim_end().to_owned()).unwrap_or_default() }
    });
    WatchedMutex {
        name: maps.name(mutex.address),
        sections: mutex.sections,
        waits: mutex.waits,
        total_wait_ns: mutex.total_wait.as_ns(),
        longest_wait_ns: mutex.longest_wait.as_ns(),
        waiter: thread(mutex.waiter),
        holder: thread(mutex.holder),
        longest_section_ns: mutex.longest_section.as_ns(),
        longest_by: thread(mutex.longest_by),
        owner,
        held_ns: mutex.held.map(|(_, held)| held.as_ns()),
        waiting: mutex.waiting,
    }
}
