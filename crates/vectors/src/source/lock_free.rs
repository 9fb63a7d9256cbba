//! Lock-free objects with non-preemptable commit loops, under partitioned EDF: Biondi and Brandenburg, ECRTS 2016.
//! Every point of time is tested, and every loop that may block at the start.

use super::answers::Answers;
use super::requests::asked;
use crate::{Input, Malformed};
use lockwright_analysis::{Sharer, Sharing};
use serde_json::json;
use std::collections::BTreeSet;

/// The maximum length of a busy interval. Beyond it, the tasks are not schedulable.
const BUSY_MAX: u64 = 1 << 20;

pub(super) fn schedulable(input: &Input) -> Result<Answers, Malformed> {
    let set = crate::linear::sharing(input)?;
    let told = |published| json!({ "schedulable": holds(&set, published) });
    Ok(Answers { published: told(true), corrected: told(false) })
}

fn holds(set: &Sharing, published: bool) -> bool {
    let clusters: BTreeSet<u16> = set.tasks.iter().map(|task| task.cluster).collect();
    clusters.into_iter().all(|cluster| {
        let local = || set.tasks.iter().filter(|task| task.cluster == cluster);
        let arriving = |t: u64| local().map(|task| t.div_ceil(task.period) * task.cost).sum::<u64>();
        let mut busy = 1;
        while busy <= BUSY_MAX {
            let longer =
                arriving(busy) + repeated(set, cluster, busy, |task| busy.div_ceil(task.period), None, published);
            if longer <= busy {
                return (1..=busy).all(|t| demand(set, cluster, t, published) <= t);
            }
            busy = longer;
        }
        false
    })
}

fn due(task: &Sharer, t: u64) -> u64 {
    (t + task.period).saturating_sub(task.deadline) / task.period
}

/// Returns the work of the jobs with arrival and deadline in an interval, and the maximum delay of these jobs.
fn demand(set: &Sharing, cluster: u16, t: u64, published: bool) -> u64 {
    let local = || set.tasks.iter().filter(|task| task.cluster == cluster);
    if local().all(|task| task.deadline > t) {
        return 0;
    }
    let work: u64 = local().map(|task| due(task, t) * task.cost).sum();
    let starts = local()
        .filter(|task| task.deadline > t)
        .flat_map(|task| task.requests.iter().map(move |request| Some((task, request.resource))));
    let blocking =
        starts.chain([None]).map(|start| repeated(set, cluster, t, |task| due(task, t), start, published)).max();
    work + blocking.unwrap_or(0)
}

/// Returns the number of commits of remote jobs to one resource within an interval.
fn commits(set: &Sharing, cluster: u16, t: u64, resource: u16) -> u64 {
    let remote = set.tasks.iter().filter(|task| task.cluster != cluster);
    remote.map(|task| (t + task.deadline).div_ceil(task.period) * asked(task, resource)).sum()
}

/// Returns the longest time for which loops are repeated, including the loop that blocks at the start. Each remote
/// commit fails one loop, and a loop fails at most as often as there are commits while it lasts.
fn repeated(
    set: &Sharing,
    cluster: u16,
    t: u64,
    jobs: impl Fn(&Sharer) -> u64,
    start: Option<(&Sharer, u16)>,
    published: bool,
) -> u64 {
    let length = |task: &Sharer, resource: u16| {
        task.requests
            .iter()
            .filter(|request| request.resource == resource)
            .map(|request| request.length)
            .max()
            .unwrap_or(0)
    };
    let resources: BTreeSet<u16> =
        set.tasks.iter().flat_map(|task| &task.requests).map(|request| request.resource).collect();
    let mut total = start.map_or(0, |(task, resource)| length(task, resource));
    for resource in resources {
        let mut loops: Vec<(u64, u64)> = Vec::new();
        for task in set.tasks.iter().filter(|task| task.cluster == cluster && asked(task, resource) > 0) {
            let is_start = start.is_some_and(|(at_start, on)| std::ptr::eq(at_start, task) && on == resource);
            let count = match (jobs(task) * asked(task, resource), is_start) {
                (0, true) if !published => 1,
                // If the loop's duration has no bound, the source lets it be repeated.
                (0, true) if lasts(set, cluster, task, resource, length(task, resource)).is_none() => u64::MAX,
                (count, _) => count,
            };
            let each = lasts(set, cluster, task, resource, length(task, resource));
            let most = match each {
                _ if count == 0 => 0,
                Some(each) => commits(set, cluster, each, resource).saturating_mul(count),
                None => u64::MAX,
            };
            loops.push((length(task, resource), most));
        }
        loops.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = commits(set, cluster, t, resource);
        for (length, most) in loops {
            let taken = most.min(left);
            total += taken * length;
            left -= taken;
        }
    }
    total
}

/// Returns the longest duration of a loop with its repetitions, or `None` if it is beyond the deadline.
fn lasts(set: &Sharing, cluster: u16, task: &Sharer, resource: u16, length: u64) -> Option<u64> {
    let mut lasting = length;
    loop {
        let next = length + commits(set, cluster, lasting, resource) * length;
        if next > task.deadline {
            return None;
        }
        if next == lasting {
            return Some(lasting);
        }
        lasting = next;
    }
}
