//! The linear program of the DPCP: constraints 1 to 3 and 6 to 8 of Brandenburg, RTAS 2013.

use super::answers::Answers;
use super::program::Program;
use super::requests::{asked, fixed_point, issued, left_early, others};
use super::response::{Blocking, joint, told};
use crate::{Input, Malformed};
use lockwright_analysis::{Demand, Sharing};
use microlp::Variable;
use std::collections::BTreeMap;

/// The variant of the source's program.
#[derive(Clone, Copy)]
struct Source {
    /// Whether it has its defects.
    published: bool,
    /// Whether it has constraint 8. Without it, no request delays on a processor where the job has no requests.
    waits: bool,
}

fn answers(
    input: &Input,
    answer: impl Fn(&Sharing, &[u16], Source) -> serde_json::Value,
) -> Result<Answers, Malformed> {
    let (set, sites) = (crate::linear::sharing(input)?, crate::linear::sites(input)?);
    if set.tasks.iter().flat_map(|task| &task.requests).any(|request| usize::from(request.resource) >= sites.len()) {
        return Err(Malformed("a resource has no location".into()));
    }
    let waits = !input.params.contains_key("use_rta") || input.is("use_rta");
    Ok(Answers {
        published: answer(&set, &sites, Source { published: true, waits }),
        corrected: answer(&set, &sites, Source { published: false, waits: true }),
    })
}

pub(super) fn blocking(input: &Input) -> Result<Answers, Malformed> {
    answers(input, |set, sites, source| told(bounds(set, sites, source)))
}

pub(super) fn responses(input: &Input) -> Result<Answers, Malformed> {
    answers(input, |set, sites, source| joint(set.clone(), |set| bounds(set, sites, source)))
}

fn site(sites: &[u16], request: &Demand) -> u16 {
    sites[usize::from(request.resource)]
}

fn ceiling(set: &Sharing, resource: u16) -> u32 {
    let users = set.tasks.iter().filter(|task| asked(task, resource) > 0);
    users.map(|task| task.priority).max().unwrap_or(0)
}

/// Returns how long a request of `i` takes, including its own section.
fn wait(set: &Sharing, sites: &[u16], i: usize, own_request: &Demand, source: Source) -> Option<u64> {
    let own = &set.tasks[i];
    let here = site(sites, own_request);
    let requests = |of: fn(u32, u32) -> bool, itself: bool| {
        let tasks =
            (0..set.tasks.len()).filter(move |&x| of(set.tasks[x].priority, own.priority) && (itself || x != i));
        tasks.flat_map(move |x| {
            set.tasks[x].requests.iter().filter(move |it| site(sites, it) == here).map(move |it| (x, it))
        })
    };
    let conflicts = |request: &Demand| ceiling(set, request.resource) >= own.priority;
    let lower =
        requests(|x, i| x <= i, true).filter(|(_, it)| conflicts(it)).map(|(_, it)| it.length).max().unwrap_or(0);
    let start = own_request.length + lower;
    let is_before: fn(u32, u32) -> bool = if source.published { |x, i| x > i } else { |x, i| x >= i };
    let next = |waited| {
        start + requests(is_before, false).map(|(x, it)| issued(set, x, waited, it.count) * it.length).sum::<u64>()
    };
    if source.published {
        return Some(left_early(0, start, own.response, next));
    }
    fixed_point(start, own.response.max(own.deadline), next)
}

fn bounds(set: &Sharing, sites: &[u16], source: Source) -> Option<Blocking> {
    (0..set.tasks.len()).map(|i| of_task(set, sites, i, source)).collect()
}

/// Returns the remote and the local blocking. The program separates into one for each processor.
fn of_task(set: &Sharing, sites: &[u16], i: usize, source: Source) -> Option<(u64, u64)> {
    let own = &set.tasks[i];
    let asks_at = |place: u16| -> u64 {
        own.requests.iter().filter(|it| site(sites, it) == place).map(|it| u64::from(it.count)).sum()
    };
    let asked_away: u64 =
        own.requests.iter().filter(|it| site(sites, it) != own.cluster).map(|it| u64::from(it.count)).sum();
    let mut blocked = (0, 0);
    let mut places = sites.to_vec();
    places.sort_unstable();
    places.dedup();
    for place in places {
        let is_here = place == own.cluster;
        let waits: Option<Vec<(u64, u64)>> = own
            .requests
            .iter()
            .filter(|it| site(sites, it) == place)
            .map(|it| Some((u64::from(it.count), wait(set, sites, i, it, source)?)))
            .collect();
        let mut program = Program::new();
        let mut lower = Vec::new();
        let mut arriving: BTreeMap<usize, Vec<(Variable, u64)>> = BTreeMap::new();
        for x in others(set, i) {
            let task = &set.tasks[x];
            let is_lower = task.priority < own.priority || source.published && task.priority == own.priority;
            for request in task.requests.iter().filter(|it| site(sites, it) == place) {
                let most = issued(set, x, own.response, request.count);
                let conflicts = ceiling(set, request.resource) >= own.priority;
                // Constraint 6, and the replacement of constraint 8.
                let is_apart = !source.waits && asks_at(place) == 0;
                let waiting_most = if conflicts && !is_apart { most } else { 0 };
                let direct = program.variable(request.length, waiting_most);
                let indirect = program.variable(request.length, waiting_most);
                // Constraint 2.
                let preempting = program.variable(request.length, if is_here { most } else { 0 });
                // Constraint 1.
                program.at_most([(direct, 1), (indirect, 1), (preempting, 1)], most);
                if is_lower {
                    // Constraint 7: the source limits only the direct delays.
                    lower.push((direct, 1));
                    if !source.published {
                        lower.push((indirect, 1));
                    }
                } else if let (true, Some(waits)) = (source.waits, &waits) {
                    // Constraint 8.
                    let jobs = |wait| issued(set, x, wait, request.count);
                    program.at_most(
                        [(direct, 1), (indirect, 1)],
                        waits.iter().map(|&(count, wait)| count * jobs(wait)).sum(),
                    );
                }
                // Constraint 3.
                if is_here && is_lower && task.cluster == own.cluster {
                    arriving.entry(x).or_default().push((preempting, 1));
                }
            }
        }
        program.at_most(lower, asks_at(place));
        for terms in arriving.into_values() {
            program.at_most(terms, 1 + asked_away);
        }
        let most = program.optimum()?;
        *(if is_here { &mut blocked.1 } else { &mut blocked.0 }) += most;
    }
    Some(blocked)
}
