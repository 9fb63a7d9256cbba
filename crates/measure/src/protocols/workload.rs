//! The workload of a published measurement on RTEMS.
//!
//! Each of three application processors has five tasks with distinct priorities. There are three resources, and each
//! job has one request. A fourth processor is for synchronisation. A machine with fewer processors has up to three
//! application processors, and the last of them is also the one for synchronisation.

use super::results::run_error;
use crate::harness::Readings;
use lockwright::tasks::{TaskError, TaskSet};
use lockwright_engine::raw::{spawn, wait_for_ends};
use lockwright_engine::{Control, RunError};
use lockwright_model::{Protocol, ResourceId, TaskId};
use lockwright_sys::{clock, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration as Wait;

/// The resource of each task, by priority and application processor. Every processor uses every resource.
const TABLE: [[usize; 3]; 5] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 2, 0], [2, 0, 1]];
/// The period of the first task. The periods of the others are slightly longer, so that the tasks are not in phase.
const PERIOD_NS: u64 = 2_000_000;
const STAGGER_NS: u64 = 37_000;
/// The time for which a job holds its resource.
const HELD_NS: u64 = 10_000;
/// The time by which the workload may exceed its planned end.
const PATIENCE: Wait = Wait::from_secs(20);

/// Measures lock and unlock under the workload. Returns `None` if `control` was stopped or there are no readings.
pub(super) fn workload(
    protocol: Protocol,
    applications: usize,
    has_synchronisation: bool,
    pairs: usize,
    control: &Control,
) -> Result<Option<(Readings, Readings)>, RunError> {
    let mut builder = TaskSet::builder(protocol);
    let home = applications - usize::from(!has_synchronisation);
    let cpu = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
    let resources = ["r1", "r2", "r3"].map(|name| builder.resource_at(name, cpu(home)));
    let mut jobs = Vec::new();
    for (level, row) in TABLE.iter().enumerate() {
        for (application, &resource) in row.iter().enumerate().take(applications) {
            let name = format!("{level}-{application}");
            let task = builder.task(&name, cpu(application), 10 + 10 * level as u16, &[resources[resource]]);
            jobs.push((task, resources[resource]));
        }
    }
    let set = builder.build().map_err(run_error)?;
    let rounds = pairs.div_ceil(jobs.len());
    let stop = Arc::new(AtomicBool::new(false));
    let begin = clock::now_ns() + 20_000_000;
    let (sender, receiver) = mpsc::channel();
    let mut threads = Vec::new();
    for (index, &(task, resource)) in jobs.iter().enumerate() {
        let (set, stop, sender) = (set.clone(), Arc::clone(&stop), sender.clone());
        let body = move || {
            let seen = work(&set, task, resource, rounds, begin + index as u64 * STAGGER_NS, &stop);
            let _ = sender.send(seen);
        };
        threads.push(signal::with_all_blocked(|| spawn("measure-task", body))?);
    }
    drop(sender);
    let planned = Wait::from_nanos(rounds as u64 * (PERIOD_NS + jobs.len() as u64 * 1_000));
    let mut left = jobs.len();
    let (mut locks, mut unlocks) = (Vec::new(), Vec::new());
    let mut failure = None;
    let mut until = std::time::Instant::now() + planned + PATIENCE;
    // BOUND: the planned time and PATIENCE; PATIENCE after a stop.
    while left > 0 {
        match receiver.recv_timeout(Wait::from_millis(100)) {
            Ok(Ok((lock, unlock))) => {
                locks.extend(lock);
                unlocks.extend(unlock);
                left -= 1;
            }
            Ok(Err(error)) => {
                // ORDERING: Relaxed, here and where it is read: it publishes nothing.
                stop.store(true, Ordering::Relaxed);
                failure = failure.or(Some(run_error(error)));
                left -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = std::time::Instant::now();
                if control.is_stopped() {
                    stop.store(true, Ordering::Relaxed);
                    until = until.min(now + PATIENCE);
                }
                if now > until {
                    stop.store(true, Ordering::Relaxed);
                    return Err(RunError::Stuck { tasks: jobs.iter().map(|job| job.0).collect() });
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(RunError::SetUp),
        }
    }
    let stuck = wait_for_ends(&threads);
    if !stuck.is_empty() {
        return Err(RunError::Stuck { tasks: stuck.into_iter().map(|index| jobs[index].0).collect() });
    }
    match failure {
        Some(failure) => Err(failure),
        None if control.is_stopped() => Ok(None),
        None => Ok(Readings::new(locks).zip(Readings::new(unlocks))),
    }
}

/// Executes the jobs of one task. Returns the times of their locks and unlocks.
fn work(
    set: &TaskSet,
    task: TaskId,
    resource: ResourceId,
    rounds: usize,
    begin: u64,
    stop: &AtomicBool,
) -> Result<(Vec<u64>, Vec<u64>), TaskError> {
    let (mut locks, mut unlocks) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    let me = set.join(task)?;
    let period = PERIOD_NS + u64::from(task.0) * 1_000;
    for round in 0..rounds as u64 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        clock::sleep_until(begin + round * period)?;
        let job = me.begin()?;
        let before = clock::now_ns();
        let section = job.lock(resource)?;
        let locked = clock::now_ns();
        // BOUND: HELD_NS.
        while clock::now_ns() - locked < HELD_NS {}
        let held = clock::now_ns();
        section.end()?;
        let after = clock::now_ns();
        job.end()?;
        locks.push(locked - before);
        unlocks.push(after - held);
    }
    Ok((locks, unlocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_uses_every_resource() {
        for cpu in 0..3 {
            let mut used: Vec<usize> = TABLE.iter().map(|row| row[cpu]).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, [0, 1, 2]);
        }
    }
}
