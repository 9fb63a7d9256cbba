//! Unordered spin locks: Wieder and Brandenburg, RTSS 2013. For each choice of the resource that blocks at the
//! arrival, the constraints give a separate limit to each task's requests for each resource.

use super::answers::Answers;
use super::requests::{asked, fixed_point, issued, others};
use crate::{Input, Malformed};
use lockwright_analysis::Sharing;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn blocking(input: &Input) -> Result<Answers, Malformed> {
    let set = crate::linear::sharing(input)?;
    let preemptable = input.is("preemptable_spinning");
    let told = |published| {
        let term = |i| {
            let total = bound(&set, i, preemptable, published);
            json!({ "total": total, "total_count": 0, "remote": 0, "local": 0, "arrival": 0 })
        };
        json!({ "per_task": (0..set.tasks.len()).map(term).collect::<Vec<Value>>() })
    };
    Ok(Answers { published: told(true), corrected: told(false) })
}

fn is_local(set: &Sharing, i: usize, x: usize) -> bool {
    set.tasks[i].cluster == set.tasks[x].cluster
}

/// Returns the tasks of the processor of `i` that are at least as urgent.
fn above(set: &Sharing, i: usize) -> impl Iterator<Item = usize> + Clone {
    others(set, i).filter(move |&h| is_local(set, i, h) && set.tasks[h].priority >= set.tasks[i].priority)
}

/// Returns the number of jobs of a task of the same processor in an interval.
fn jobs(set: &Sharing, h: usize, interval: u64) -> u64 {
    interval.div_ceil(set.tasks[h].period)
}

/// Returns the number of requests for `resource` from the processor of `i` while its job is pending.
fn own(set: &Sharing, i: usize, resource: u16) -> u64 {
    let before = above(set, i).map(|h| jobs(set, h, set.tasks[i].response) * asked(&set.tasks[h], resource));
    asked(&set.tasks[i], resource) + before.sum::<u64>()
}

/// Returns the longest wait for a resource, or `None` if it exceeds the period.
fn wait(set: &Sharing, i: usize, resource: u16, preemptable: bool, published: bool) -> Option<u64> {
    let task = &set.tasks[i];
    let remote = |interval: Option<u64>| -> u64 {
        let requests = others(set, i)
            .filter(|&x| !is_local(set, i, x))
            .flat_map(|x| set.tasks[x].requests.iter().map(move |request| (x, request)));
        let delaying = requests
            .filter(|(_, request)| request.resource == resource || preemptable && own(set, i, request.resource) > 0);
        let count = |x, count: u32| interval.map_or(count.into(), |interval| issued(set, x, interval, count));
        delaying.map(|(x, request)| count(x, request.count) * request.length).sum()
    };
    let local = |interval: u64| -> u64 {
        let before = above(set, i).filter(|_| preemptable);
        before.map(|h| jobs(set, h, interval) * set.tasks[h].cost).sum()
    };
    // The source starts with one job of each task elsewhere, and with
    // all execution of higher priority while the job is pending.
    let start = if published { remote(None) + local(task.response) } else { 1 };
    fixed_point(start, task.period, |waited| 1 + remote(Some(waited)) + local(waited))
}

fn bound(set: &Sharing, i: usize, preemptable: bool, published: bool) -> u64 {
    let resources: BTreeSet<u16> =
        set.tasks.iter().flat_map(|task| &task.requests).map(|request| request.resource).collect();
    let arrivals = resources.iter().copied().map(Some).chain([None]);
    arrivals.map(|arrival| with_arrival(set, i, &resources, arrival, preemptable, published)).max().unwrap_or(0)
}

/// Returns the delay if `arrival` is the resource that blocks at the arrival, or if none does.
fn with_arrival(
    set: &Sharing,
    i: usize,
    resources: &BTreeSet<u16>,
    arrival: Option<u16>,
    preemptable: bool,
    published: bool,
) -> u64 {
    let task = &set.tasks[i];
    let of = |x: usize, resource: u16| set.tasks[x].requests.iter().filter(move |it| it.resource == resource);
    // Constraints 3, 4 and 6: one request of a less urgent task, for a resource that is shared with others.
    let blocker = arrival.and_then(|resource| {
        let users = || (0..set.tasks.len()).filter(move |&x| asked(&set.tasks[x], resource) > 0);
        let conflicts = users().any(|x| !is_local(set, i, x) || set.tasks[x].priority >= task.priority);
        let below = users().filter(|&x| x != i && is_local(set, i, x) && set.tasks[x].priority <= task.priority);
        below.flat_map(|x| of(x, resource)).map(|request| request.length).max().filter(|_| conflicts)
    });
    let mut total = blocker.unwrap_or(0);
    for &resource in resources {
        let wait = wait(set, i, resource, preemptable, published).unwrap_or(task.response);
        for x in others(set, i).filter(|&x| !is_local(set, i, x)) {
            for request in of(x, resource) {
                let most = issued(set, x, task.response, request.count);
                let passes = issued(set, x, wait, request.count);
                // Constraints 10 and 11, and the waits of local jobs for a resource that this one does not use.
                let mut spun = passes * own(set, i, resource);
                if asked(task, resource) == 0 {
                    let users = above(set, i).filter(|&h| asked(&set.tasks[h], resource) > 0);
                    let each =
                        |h: usize| jobs(set, h, task.response) * issued(set, x, set.tasks[h].response, request.count);
                    spun = spun.min(users.map(each).sum());
                }
                let arriving = if !preemptable && arrival == Some(resource) && blocker.is_some() { passes } else { 0 };
                total += most.min(spun.min(most) + arriving) * request.length;
            }
        }
    }
    total
}
