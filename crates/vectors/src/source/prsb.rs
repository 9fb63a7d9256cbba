//! The PRSB under global fixed priorities: constraints 1 to 5, 9, 10, 16 to 22 and 26 of Yang, Wieder and Brandenburg,
//! RTSS 2015.

use super::answers::Answers;
use super::program::Program;
use super::requests::{asked, fixed_point, issued, others};
use crate::{Input, Malformed};
use lockwright_analysis::{Demand, Sharing};
use microlp::Variable;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn blocking(input: &Input) -> Result<Answers, Malformed> {
    let mut set = crate::linear::sharing(input)?;
    let processors = input.number("num_cpus")?.max(1);
    let mut ranks: Vec<usize> = (0..set.tasks.len()).collect();
    ranks.sort_by_key(|&task| (std::cmp::Reverse(set.tasks[task].priority), task));
    set.tasks = ranks.iter().map(|&task| set.tasks[task].clone()).collect();
    let told = |published| {
        let delays: Option<Vec<u64>> = (0..ranks.len()).map(|i| delay(&set, i, processors, published)).collect();
        let Some(delays) = delays else { return json!({ "failure": "no optimum was found" }) };
        let mut terms = vec![Value::Null; ranks.len()];
        for (delay, &task) in delays.into_iter().zip(&ranks) {
            terms[task] = json!({ "total": delay, "total_count": 1, "remote": 0, "local": 0, "arrival": 0 });
        }
        json!({ "per_task": terms })
    };
    Ok(Answers { published: told(true), corrected: told(false) })
}

/// Returns the maximum work of `x` in an interval.
fn workload(set: &Sharing, x: usize, interval: u64) -> u64 {
    let task = &set.tasks[x];
    let span = (interval + task.response).saturating_sub(task.cost);
    span / task.period * task.cost + task.cost.min(span % task.period)
}

/// Returns the longest wait of `i` for a resource plus one unit, or `None` if it exceeds the deadline.
fn wait(set: &Sharing, i: usize, resource: u16) -> Option<u64> {
    // Every other task can precede the owner once, in its longest section on another resource.
    let kept = |x: usize, request: &Demand| -> u64 {
        let beside = others(set, i).filter(|&y| y != x).map(|y| {
            let elsewhere = set.tasks[y].requests.iter().filter(|request| request.resource != resource);
            elsewhere.map(|request| request.length).max().unwrap_or(0)
        });
        request.length + beside.sum::<u64>()
    };
    let users = |is_asked: fn(usize, usize) -> bool| {
        others(set, i).filter(move |&x| is_asked(x, i)).flat_map(move |x| {
            let requests = set.tasks[x].requests.iter().filter(move |request| request.resource == resource);
            requests.map(move |request| (x, request))
        })
    };
    let start = 1 + users(|x, i| x > i).map(|(x, request)| kept(x, request)).max().unwrap_or(0);
    fixed_point(start, set.tasks[i].deadline, |waited| {
        let before = users(|x, i| x < i).map(|(x, request)| issued(set, x, waited, request.count) * kept(x, request));
        start + before.sum::<u64>()
    })
}

/// A request of another task, with the number of its direct delays and,
/// for a less urgent task, of its indirect ones and its preemptions.
struct Other {
    task: usize,
    resource: u16,
    count: u32,
    length: u64,
    direct: Variable,
    indirect: Variable,
    preempting: Variable,
}

/// The work of another task while the job waits for a processor.
struct Interference {
    task: usize,
    /// The work of a more urgent task.
    regular: Variable,
    co_boosting: Variable,
    stalling: Variable,
}

fn delay(set: &Sharing, i: usize, m: u64, published: bool) -> Option<u64> {
    let own = &set.tasks[i];
    let response = own.response;
    // All times are multiplied by m.
    let mut program = Program::new();
    let mut requests = Vec::new();
    let mut interference = Vec::new();
    for x in others(set, i) {
        let of = |is: bool| if is { workload(set, x, response) } else { 0 };
        interference.push(Interference {
            task: x,
            regular: program.variable(1, of(x < i)),
            co_boosting: program.variable(1, of(x > i)),
            // Constraint 4.
            stalling: program.variable(1, of(x > i && !own.requests.is_empty())),
        });
        for request in &set.tasks[x].requests {
            let most = issued(set, x, response, request.count);
            let below = if x > i { most } else { 0 };
            // Constraint 5.
            let direct = program.variable(m * request.length, if asked(own, request.resource) > 0 { most } else { 0 });
            let indirect = program.variable(request.length, below);
            let preempting = program.variable(request.length, below);
            // Constraint 3.
            program.at_most([(direct, 1), (indirect, 1), (preempting, 1)], most);
            let (resource, count, length) = (request.resource, request.count, request.length);
            requests.push(Other { task: x, resource, count, length, direct, indirect, preempting });
        }
    }
    let all = || interference.iter().flat_map(|x| [(x.regular, 1), (x.co_boosting, 1), (x.stalling, 1)]);
    let boosted = |of: &dyn Fn(usize) -> bool, factor: u64| -> Vec<(Variable, u64)> {
        let of = requests.iter().filter(|request| of(request.task));
        of.flat_map(|it| [(it.indirect, factor * it.length), (it.preempting, factor * it.length)]).collect()
    };
    let direct = |of: &dyn Fn(usize) -> bool, factor: u64| -> Vec<(Variable, u64)> {
        requests.iter().filter(|request| of(request.task)).map(|it| (it.direct, factor * it.length)).collect()
    };
    for x in &interference {
        let its = |factor| {
            let work = [(x.regular, factor), (x.co_boosting, factor), (x.stalling, factor)];
            work.into_iter().chain(boosted(&|y| y == x.task, factor))
        };
        // Constraint 1.
        program.at_most(its(1).chain(direct(&|y| y == x.task, 1)), workload(set, x.task, response));
        // Constraint 2.
        program.at_most_beside(its(m), all().chain(boosted(&|_| true, 1)), 0);
    }
    for resource in requests.iter().map(|request| request.resource).collect::<BTreeSet<_>>() {
        // Constraint 9.
        let lower = requests.iter().filter(|request| request.task > i && request.resource == resource);
        program.at_most(lower.map(|request| (request.direct, 1)), asked(own, resource));
        // Constraint 10.
        let Some(wait) = wait(set, i, resource) else { continue };
        for request in requests.iter().filter(|request| request.task < i && request.resource == resource) {
            let most = issued(set, request.task, wait, request.count) * asked(own, resource);
            program.at_most([(request.direct, 1)], most);
        }
    }
    let above = requests.iter().filter(|request| request.task < i);
    let sections: u64 = above.map(|it| issued(set, it.task, response, it.count) * it.length).sum();
    let lower = || interference.iter().filter(|x| x.task > i);
    for x in lower() {
        // Constraint 16.
        let work = [(x.co_boosting, 1), (x.stalling, 1)].into_iter().chain(direct(&|y| y < i, 1));
        program.at_most_beside(work, boosted(&|y| y != x.task, 1), sections);
        // Constraint 18.
        program.at_most_beside([(x.co_boosting, 1)], boosted(&|y| y > x.task, 1), 0);
    }
    // Constraint 17.
    let work = lower().flat_map(|x| [(x.co_boosting, 1), (x.stalling, 1)]).chain(direct(&|y| y < i, m - 1));
    program.at_most_beside(work, boosted(&|_| true, m - 1), (m - 1) * sections);
    // Constraint 19.
    program.at_most_beside(lower().map(|x| (x.co_boosting, 1)), boosted(&|_| true, m - 1), 0);
    // Constraint 20.
    let uses = |x: &usize| set.tasks[*x].requests.iter().any(|request| asked(own, request.resource) > 0);
    let lowest = (i + 1..set.tasks.len()).rev().find(uses).unwrap_or(i);
    program.at_most(lower().filter(|x| x.task >= lowest).map(|x| (x.stalling, 1)), 0);
    // Constraint 21.
    if (i as u64) + 1 < m {
        let urgent = requests.iter().filter(|request| (request.task as u64) < m);
        program.at_most(urgent.map(|request| (request.preempting, 1)), 0);
    }
    let per_wait = indirect_per_wait(set, i, published);
    for x in i + 1..set.tasks.len() {
        let its = || requests.iter().filter(|request| request.task == x).map(|request| (request.indirect, 1));
        // Constraint 22.
        let asking = requests.iter().filter(|it| it.task != x && asked(own, it.resource) > 0);
        program.at_most(its(), asking.map(|it| issued(set, it.task, response, it.count)).sum());
        // Constraint 26.
        if let Some(times) = per_wait {
            program.at_most(its(), times);
        }
    }
    // Rounded down. The optimum in floats falls short by far less than a hundredth of a unit.
    Some(((program.value()? + 0.01) / m as f64) as u64)
}

/// Returns how often others can delay a job of `i` directly, or `None` if a wait has no bound. The source computes the
/// waits for all resources, including those that `i` does not use.
fn indirect_per_wait(set: &Sharing, i: usize, published: bool) -> Option<u64> {
    let resources: BTreeSet<u16> =
        set.tasks.iter().flat_map(|task| &task.requests).map(|request| request.resource).collect();
    let needed = resources.into_iter().filter(|&resource| published || asked(&set.tasks[i], resource) > 0);
    let times = needed.map(|resource| {
        let wait = wait(set, i, resource)?;
        let below = (i + 1..set.tasks.len()).any(|x| asked(&set.tasks[x], resource) > 0);
        let above = (0..i).map(|x| issued(set, x, wait, asked(&set.tasks[x], resource) as u32)).sum::<u64>();
        Some((u64::from(below) + above) * asked(&set.tasks[i], resource))
    });
    times.sum()
}
