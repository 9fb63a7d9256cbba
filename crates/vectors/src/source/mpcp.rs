//! The linear program of the MPCP: constraints 1, 9 to 11 and 15 to 20 of Brandenburg, RTAS 2013.

use super::answers::Answers;
use super::program::Program;
use super::requests::{asked, fixed_point, issued, left_early, others};
use super::response::{Blocking, joint, told};
use crate::{Input, Malformed};
use lockwright_analysis::Sharing;
use microlp::Variable;
use std::collections::BTreeMap;

pub(super) fn blocking(input: &Input) -> Result<Answers, Malformed> {
    let set = crate::linear::sharing(input)?;
    Ok(Answers { published: told(bounds(&set, true)), corrected: told(bounds(&set, false)) })
}

pub(super) fn responses(input: &Input) -> Result<Answers, Malformed> {
    let set = crate::linear::sharing(input)?;
    let of = |published| joint(set.clone(), |set| bounds(set, published));
    Ok(Answers { published: of(true), corrected: of(false) })
}

/// Returns the ceiling of a resource on a cluster: the priority of
/// its most urgent user elsewhere, plus 1, or 0 if there is none.
fn ceiling(set: &Sharing, cluster: u16, resource: u16) -> u64 {
    let users = set.tasks.iter().filter(|task| task.cluster != cluster && asked(task, resource) > 0);
    users.map(|task| u64::from(task.priority) + 1).max().unwrap_or(0)
}

/// Returns how long a task holds a resource: its section, plus one section
/// of each other task of its processor with at least the same ceiling.
fn kept(set: &Sharing, x: usize, resource: u16, length: u64) -> u64 {
    let cluster = set.tasks[x].cluster;
    let own = ceiling(set, cluster, resource);
    let beside = others(set, x).filter(|&y| set.tasks[y].cluster == cluster);
    let longest = beside.map(|y| {
        let above = set.tasks[y].requests.iter().filter(|request| ceiling(set, cluster, request.resource) >= own);
        above.map(|request| request.length).max().unwrap_or(0)
    });
    length + longest.sum::<u64>()
}

/// Returns the longest wait of `i` for a resource, or `None` if it has no bound.
fn wait(set: &Sharing, i: usize, resource: u16, published: bool) -> Option<u64> {
    let own = &set.tasks[i];
    let users = |of: fn(u32, u32) -> bool| {
        others(set, i).filter(move |&x| of(set.tasks[x].priority, own.priority)).flat_map(move |x| {
            let requests = set.tasks[x].requests.iter().filter(move |request| request.resource == resource);
            requests.map(move |request| (x, request.count, kept(set, x, resource, request.length)))
        })
    };
    let lower = users(|x, i| x < i).map(|(_, _, kept)| kept).max().unwrap_or(0);
    let start = lower + users(|x, i| x == i).map(|(_, _, kept)| kept).sum::<u64>();
    let next =
        |waited| start + users(|x, i| x > i).map(|(x, count, kept)| issued(set, x, waited, count) * kept).sum::<u64>();
    if published {
        return Some(left_early(1, start, own.response, next));
    }
    fixed_point(start, own.response.max(own.deadline), next)
}

/// A request of a task elsewhere, with the number of its direct and of its indirect delays.
struct Elsewhere {
    task: usize,
    resource: u16,
    length: u64,
    ceiling: u64,
    /// The maximum number of direct delays, for the requests that it preempts.
    direct_most: u64,
    direct: Variable,
    indirect: Variable,
}

fn bounds(set: &Sharing, published: bool) -> Option<Blocking> {
    (0..set.tasks.len()).map(|i| Some((remote(set, i, published)?, local(set, i)))).collect()
}

/// Constraints 9 and 11: each local task that is not more urgent delays once per arrival.
fn local(set: &Sharing, i: usize) -> u64 {
    let own = &set.tasks[i];
    let resources: BTreeMap<u16, u64> =
        own.requests.iter().map(|request| (request.resource, asked(own, request.resource))).collect();
    let away = |resource: u16| -> u64 {
        let tasks = others(set, i).filter(|&x| set.tasks[x].cluster != own.cluster);
        tasks.map(|x| issued(set, x, own.response, asked(&set.tasks[x], resource) as u32)).sum()
    };
    let arrivals = 1 + resources.iter().map(|(&resource, &count)| count.min(away(resource))).sum::<u64>();
    let mut total = 0;
    for x in others(set, i).filter(|&x| set.tasks[x].cluster == own.cluster && set.tasks[x].priority <= own.priority) {
        let mut requests: Vec<_> = set.tasks[x].requests.iter().collect();
        requests.sort_by_key(|request| std::cmp::Reverse(request.length));
        let mut left = arrivals;
        for request in requests {
            let taken = left.min(issued(set, x, own.response, request.count));
            total += taken * request.length;
            left -= taken;
        }
    }
    total
}

fn remote(set: &Sharing, i: usize, published: bool) -> Option<u64> {
    let own = &set.tasks[i];
    let mut program = Program::new();
    let mut all = Vec::new();
    // Constraint 16. Equal priorities are limited separately.
    let mut lower: BTreeMap<u16, Vec<(Variable, u64)>> = BTreeMap::new();
    let waits: BTreeMap<u16, Option<u64>> =
        own.requests.iter().map(|request| (request.resource, wait(set, i, request.resource, published))).collect();
    for x in others(set, i) {
        // The corrected program counts requests that preempt owners on the task's own processor. These interfere.
        let is_local = set.tasks[x].cluster == own.cluster;
        if is_local && published {
            continue;
        }
        let priority = set.tasks[x].priority;
        for request in &set.tasks[x].requests {
            let (resource, most) = (request.resource, issued(set, x, own.response, request.count));
            let count = asked(own, resource);
            // Constraints 15 and 19.
            let direct_most = match waits.get(&resource) {
                None => 0,
                Some(Some(wait)) if set.tasks[x].priority > own.priority => {
                    most.min(issued(set, x, *wait, request.count) * count)
                }
                Some(None) if set.tasks[x].priority > own.priority => most,
                Some(_) => most.min(count),
            };
            let ceiling = ceiling(set, set.tasks[x].cluster, resource);
            // Local tasks of lower priority are never before the task in a queue, nor are others that have no users
            // elsewhere.
            let direct_most = if is_local && (priority < own.priority || ceiling == 0) { 0 } else { direct_most };
            let direct = program.variable(request.length, if is_local { 0 } else { direct_most });
            let indirect = program.variable(request.length, if is_local && priority > own.priority { 0 } else { most });
            // Constraint 1.
            program.at_most([(direct, 1), (indirect, 1)], most);
            let is_pooled = set.tasks[x].priority < own.priority || published && set.tasks[x].priority == own.priority;
            if count > 0 && is_pooled {
                lower.entry(resource).or_default().push((direct, 1));
            }
            all.push(Elsewhere { task: x, resource, length: request.length, ceiling, direct_most, direct, indirect });
        }
    }
    for (resource, terms) in lower {
        program.at_most(terms, asked(own, resource));
    }
    let is_beside =
        |x: &Elsewhere, y: &Elsewhere| x.task != y.task && set.tasks[x.task].cluster == set.tasks[y.task].cluster;
    // Constraint 18: a request preempts others with at most its ceiling that delay directly.
    for x in &all {
        let preempted = all.iter().filter(|y| is_beside(x, y) && x.resource != y.resource && y.ceiling <= x.ceiling);
        program.at_most([(x.indirect, 1)], preempted.map(|y| y.direct_most).sum());
    }
    // Constraint 17: the same for all requests of a task together.
    for x in others(set, i) {
        let mine: Vec<&Elsewhere> = all.iter().filter(|request| request.task == x).collect();
        let Some(highest) = mine.iter().map(|request| request.ceiling).max() else { continue };
        let preempted = all.iter().filter(|y| is_beside(mine[0], y) && y.ceiling <= highest);
        program.at_most(mine.iter().map(|request| (request.indirect, 1)), preempted.map(|y| y.direct_most).sum());
    }
    // Constraint 20.
    let in_all = waits.iter().map(|(&resource, wait)| Some((*wait)? * asked(own, resource))).sum::<Option<u64>>();
    if let Some(most) = in_all {
        program.at_most(all.iter().flat_map(|x| [(x.direct, x.length), (x.indirect, x.length)]), most);
    }
    program.optimum()
}
