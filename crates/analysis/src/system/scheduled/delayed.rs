//! The terms of the execution time that tests under global schedulers count for a job. `inflated.rs` has the formulas;
//! here each delaying request is named.

use super::inflated::{Kind, arranged, attempts, processors, with_retries};
use super::retries;
use crate::rows::failure::Failure;
use crate::rows::mutant::Omission;
use crate::rows::sharing::{Demand, Sharing};
use crate::system::explain::{Cause, Term};
use lockwright_model::{Duration, ResourceId, System, TaskId};
use std::cmp::Reverse;

/// Returns the terms for a job of `task`. `charged` are the tasks with overheads, and without failed attempts.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub(super) fn terms(system: &System, charged: &Sharing, kind: Kind, task: TaskId) -> Result<Vec<Term>, Failure> {
    let mut terms = Terms(Vec::new());
    terms.add(Cause::Execution, None, None, 1, charged.tasks[task.index()].cost, "the job itself");
    let counted = with_retries(system, charged.clone(), Omission::NOTHING)?;
    match kind {
        Kind::Nothing => {}
        Kind::LockFree => {
            let (attempts, preempting) = attempts(system, charged);
            let costs: Vec<u64> = counted.tasks.iter().map(|task| task.cost).collect();
            let failures = retries::failures(&attempts, preempting, &costs, task.index()).ok_or(Failure::Overflow)?;
            for (request, count) in failures.into_iter().filter(|(_, count)| *count > 0) {
                let why = "an attempt fails because another task commits";
                terms.add(Cause::Again, None, Some(ResourceId(request.resource)), count, request.length, why);
            }
        }
        Kind::Spin | Kind::Suspend => {
            let sharing = arranged(system, &counted, None, Omission::NOTHING);
            let lanes = (kind == Kind::Spin).then(|| u64::from(processors(system)).saturating_sub(1));
            for mine in &sharing.tasks[task.index()].requests {
                for (by, request, count) in before(&sharing, task.index(), mine, u64::from(mine.count), lanes) {
                    let (by, resource) = (Some(TaskId::new(by)), Some(ResourceId(request.resource)));
                    let why = "requests that are served before, at most one for each request of the job";
                    terms.add(Cause::Waiting, by, resource, count, request.length, why);
                }
            }
            if let Some((by, request, wait)) = lanes.and_then(|lanes| arrival(&sharing, task.index(), lanes)) {
                let spins = Duration::from_ns(wait);
                let why = format!("is not preempted when the job arrives: it spins for {spins}, then holds");
                let span = request.length.saturating_add(wait);
                terms.add(Cause::Local, Some(TaskId::new(by)), Some(ResourceId(request.resource)), 1, span, &why);
            }
        }
    }
    Ok(terms.0)
}

/// Returns the requests of others that precede `issued` requests `mine` of task `i`, the longest first, and how many of
/// each task. With spinlocks, at most `lanes` precede each request.
fn before(sharing: &Sharing, i: usize, mine: &Demand, issued: u64, lanes: Option<u64>) -> Vec<(usize, Demand, u64)> {
    let own = &sharing.tasks[i];
    let mut others: Vec<(usize, Demand)> = Vec::new();
    for (k, other) in sharing.tasks.iter().enumerate().filter(|&(k, _)| k != i) {
        others.extend(other.requests.iter().filter(|it| it.resource == mine.resource).map(|request| (k, *request)));
    }
    others.sort_by_key(|(_, request)| Reverse(request.length));
    let mut left = lanes.map_or(u64::MAX, |lanes| lanes.saturating_mul(issued));
    let mut found = Vec::new();
    for (k, request) in others {
        let other = &sharing.tasks[k];
        let jobs = own.response.saturating_add(other.response).div_ceil(other.period.max(1));
        let count = jobs.saturating_mul(u64::from(request.count)).min(issued).min(left);
        left -= count;
        if count > 0 && request.length > 0 {
            found.push((k, request, count));
        }
    }
    found
}

/// Returns the longest request that a job of task `i` can find not preempted when it arrives: of whom, and how long
/// that one spins.
fn arrival(sharing: &Sharing, i: usize, lanes: u64) -> Option<(usize, Demand, u64)> {
    let others = sharing.tasks.iter().enumerate();
    let others = others.filter(|&(k, other)| k != i && other.priority <= sharing.tasks[i].priority);
    let spans = others.flat_map(|(k, other)| {
        other.requests.iter().map(move |request| {
            let earlier = before(sharing, k, request, 1, Some(lanes));
            let wait =
                earlier.iter().map(|(_, it, count)| it.length.saturating_mul(*count)).fold(0, u64::saturating_add);
            (k, *request, wait)
        })
    });
    spans.max_by_key(|&(_, request, wait)| request.length.saturating_add(wait))
}

/// The terms of one sum.
pub(super) struct Terms(pub(super) Vec<Term>);

impl Terms {
    pub(super) fn add(
        &mut self,
        cause: Cause,
        by: Option<TaskId>,
        resource: Option<ResourceId>,
        count: u64,
        each: u64,
        why: &str,
    ) {
        let total = Duration::from_ns(each.saturating_mul(count));
        self.0.push(Term { cause, by, resource, count, each: Duration::from_ns(each), total, why: why.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{charged, inflated::inflated};
    use super::*;
    use fastrand::Rng;
    use lockwright_model::format::{parse_overheads, parse_system};
    use lockwright_model::{Overheads, Scheduler};

    /// The terms are found one by one, and the time that the tests count by the functions for rows.
    #[test]
    fn terms_sum_to_the_time_that_the_tests_count() {
        let mut random = Rng::with_seed(7);
        let costs = parse_overheads("schedule = \"2 us\"\nrelease_latency = \"3 us\"\n").expect("valid overheads");
        for (scheduler, protocol) in [Scheduler::GEdf, Scheduler::GFp]
            .into_iter()
            .flat_map(|scheduler| ["fmlp_short", "fmlp_long", "lock_free", "wait_free"].map(|name| (scheduler, name)))
        {
            let mut delayed = 0;
            for round in 0..300 {
                let system = parse_system(&drawn(&mut random, scheduler, protocol)).expect("a valid system");
                let overheads = if round % 3 == 0 { costs.clone() } else { Overheads::default() };
                let kind = super::super::inflated::kind(&system).expect("is covered");
                let Ok(charged) = charged(&system, &overheads, Omission::NOTHING) else { continue };
                let counted = with_retries(&system, charged.clone(), Omission::NOTHING).expect("fits");
                let inflated = inflated(&system, &counted, kind, Omission::NOTHING).expect("fits");
                for id in system.task_ids() {
                    let terms = terms(&system, &charged, kind, id).expect("fits");
                    let sum: u64 = terms.iter().map(|term| term.total.as_ns()).sum();
                    let task = &inflated.hard[id.index()];
                    // A cost beyond the deadline is cut there.
                    let is_cut = kind == Kind::LockFree && task.cost > task.deadline && sum >= task.cost;
                    assert!(sum == task.cost || is_cut, "{sum} {task:?} {terms:?}\n{system:?}");
                    delayed += u32::from(terms.len() > 1);
                }
            }
            assert_eq!(delayed > 300, protocol != "wait_free", "{scheduler} {protocol}: {delayed}");
        }
    }

    fn drawn(random: &mut Rng, scheduler: Scheduler, protocol: &str) -> String {
        let mut text = format!(
            "protocol = \"{protocol}\"\n[platform]\ncpus = {}\nscheduler = \"{scheduler}\"\npriorities = \"rate-monotonic\"\n\
             [[resource]]\nname = \"r0\"\n[[resource]]\nname = \"r1\"\n",
            random.u32(1..=3)
        );
        for task in 0..random.u32(2..=6) {
            let period = random.u32(100..1_000);
            let requests = (0..2).filter_map(|q| {
                let (count, length) = (random.u32(0..3), random.u32(1..8));
                (count > 0).then(|| format!("{{ resource = \"r{q}\", count = {count}, length = \"{length} us\" }}"))
            });
            let requests: Vec<String> = requests.collect();
            text.push_str(&format!(
                "[[task]]\nname = \"t{task}\"\nperiod = \"{period} us\"\nwcet = \"{} us\"\nrequests = [{}]\n",
                40 + period / 10,
                requests.join(", ")
            ));
        }
        text
    }
}
