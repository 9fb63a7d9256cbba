//! Bounds of an inferred task set: under the protocol of the program, beside the observed responses, and under the
//! best protocol.

use crate::json::ProtocolResult;
use crate::report::{Rank, Report, Seen};
use crate::responses::{histogram, p999};
use hdrhistogram::Histogram;
use lockwright_analysis::analyse;
use lockwright_model::{Duration, Observation, Protocol, Scheduler, System};
use lockwright_record::{InferredTask, Job};

/// The bounds.
pub(super) struct Bounds<'s> {
    pub(super) system: &'s System,
    /// Under the protocol of the program, with the observed responses.
    pub(super) seen: Report,
    /// Under the best protocol, if that is another one.
    pub(super) best: Option<Report>,
    /// The observed response times of each task.
    pub(super) responses: Vec<Histogram<u64>>,
}

/// Analyses `system`. `None` under schedulers other than partitioned fixed priorities.
pub(super) fn bounds<'s>(system: &'s System, tasks: &[InferredTask]) -> Option<Bounds<'s>> {
    if system.scheduler() != Scheduler::PFp {
        return None;
    }
    let times = |task: &InferredTask| histogram(task.jobs.iter().map(Job::response_ns));
    let responses: Vec<_> = tasks.iter().map(times).collect();
    let each = system.tasks().iter().zip(tasks).zip(&responses);
    let observed: Vec<Seen> = each.map(|((task, found), times)| seen(task.deadline, found, times)).collect();
    let own = system.protocol_or_default();
    let report = |system: &System, protocol| Report::of_bounds(system, &analyse(system, protocol));
    // The best protocol rules all resources, also those that name one. A program with mutexes cannot restart its
    // sections, nor are they objects without locks.
    let free = without_protocols(system).unwrap_or_else(|| system.clone());
    let ranked = Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()).map(|protocol| {
        let report = report(&free, protocol);
        (Rank::of(&free, &report), report)
    });
    let best = ranked.min_by_key(|(rank, _)| *rank);
    let seen = report(system, own).with_seen(&observed);
    let own_rank = Rank::of(system, &seen);
    let best = best.filter(|(rank, _)| *rank < own_rank).map(|(_, report)| report);
    Some(Bounds { system, seen, best, responses })
}

fn without_protocols(system: &System) -> Option<System> {
    let resources = system.resources().iter().map(|resource| lockwright_model::Resource::new(resource.name.clone()));
    let (name, tasks) = (system.name().into(), system.tasks().to_vec());
    System::new(name, system.cpus(), None, resources.collect(), tasks).ok()
}

/// The observed responses of a task.
fn seen(deadline: Duration, task: &InferredTask, times: &Histogram<u64>) -> Seen {
    let responses = task.jobs.iter().map(Job::response_ns);
    let misses = responses.clone().filter(|&ns| ns > deadline.as_ns()).count();
    let mut observation = Observation::default();
    (observation.jobs, observation.misses) = (task.jobs.len() as u64, misses as u64);
    observation.response = responses.max().map(Duration::from_ns);
    Seen { p999: p999(&observation, times), observation }
}

impl Bounds<'_> {
    /// For JSON.
    pub(super) fn results(&self) -> Vec<ProtocolResult> {
        let reports = std::iter::once(&self.seen).chain(&self.best);
        reports.map(|report| ProtocolResult::new(self.system, report)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_system;

    /// A program with mutexes cannot follow the advice to use objects without locks.
    #[test]
    fn the_best_protocol_is_a_lock() {
        let task = |name, cpu| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nwcet = \"4 ms\"\n\
                 requests = [{{ resource = \"bus\", length = \"2 ms\" }}]\n"
            )
        };
        let text = format!(
            "protocol = \"none\"\n[platform]\ncpus = 2\npriorities = \"rate-monotonic\"\n[[resource]]\nname = \"bus\"\n{}{}",
            task("here", 0),
            task("there", 1)
        );
        let system = parse_system(&text).expect("valid");
        let bounds = bounds(&system, &[]).expect("fixed priorities");
        assert_eq!(bounds.results().len(), 2, "another protocol is better");
        let best = bounds.best.expect("another protocol is better").protocol;
        let is_lock = |protocol: &Protocol| !protocol.is_interruptible() && protocol.name() == best;
        assert!(Protocol::ALL.iter().any(is_lock), "{best}");
    }
}
