//! Protocols with the same rules on a system, which share one row.

use crate::layout::Column;
use crate::report::{Report, Verdict};
use crate::units;
use lockwright_model::{Mode, Protocol, Request, ResourceId, System, TaskId};
use std::cmp::Reverse;

/// The protocols in their order, with the bounds under each. Of protocols with the same rules and the same bounds, only
/// the first remains, and its report names the others.
#[must_use]
pub fn grouped(system: &System, bounds: Vec<(Protocol, Report)>) -> Vec<(Protocol, Report)> {
    grouped_where(system, bounds, |_, _| true)
}

/// Like [`grouped`], but only protocols for which `is_alike` holds as well share a row.
#[must_use]
pub fn grouped_where(
    system: &System,
    bounds: Vec<(Protocol, Report)>,
    is_alike: impl Fn(Protocol, Protocol) -> bool,
) -> Vec<(Protocol, Report)> {
    let mut groups: Vec<(Protocol, Report)> = Vec::new();
    for (protocol, report) in bounds {
        let is_same = |(other, first): &&mut (Protocol, Report)| {
            let has_same_rules = rules(system, *other).eq(rules(system, protocol));
            has_same_rules && first.rows == report.rows && is_alike(*other, protocol)
        };
        match groups.iter_mut().find(is_same) {
            Some((_, first)) => first.same.push(report.protocol),
            None => groups.push((protocol, report)),
        }
    }
    groups
}

/// The protocol of each resource that is used. `msrp` and `fmlp_short` have the same rules for a shared resource, and
/// so have `phase_fair` and `task_fair` for a resource that no task reads.
fn rules(system: &System, protocol: Protocol) -> impl Iterator<Item = Protocol> {
    let used = system.resource_ids().filter(|&resource| !system.users(resource).is_empty());
    used.map(move |resource| match system.protocol_of(resource, protocol) {
        Protocol::Msrp => Protocol::FmlpShort,
        sharing if sharing.has_readers() && !is_read(system, resource) => Protocol::FmlpShort,
        other => other,
    })
}

fn is_read(system: &System, resource: ResourceId) -> bool {
    let reads = |request: &Request| request.resource == resource;
    system.users(resource).iter().any(|&task| system.requests_in(task, Mode::Read).iter().any(reads))
}

/// The lines below a comparison that name the protocols with the same rules.
#[must_use]
pub fn legend<'a>(reports: impl Iterator<Item = &'a Report>) -> String {
    let groups = reports.filter(|report| !report.same.is_empty());
    let lines: String = groups.map(|report| format!("= {}: {}\n", report.protocol, report.same.join(", "))).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("Protocols that have the same rules on this system share a row:\n{lines}"),
    }
}

/// The observations under several protocols, one row for each: fewest misses first, then most slack.
#[must_use]
pub fn comparison(system: &System, reports: &[&Report]) -> [Column; 5] {
    let mut reports = reports.to_vec();
    let misses = |report: &Report| -> u64 {
        report.rows.iter().filter_map(|row| row.seen).map(|seen| seen.observation.misses).fold(0, u64::saturating_add)
    };
    reports.sort_by_key(|report| (misses(report), Reverse(slack_seen(system, report).map(|(slack, _)| slack))));
    let of_task = |slack: Option<(i64, TaskId)>| match slack {
        Some((slack, task)) => format!("{} ({})", units::slack(slack), system.task(task).name),
        None => "–".into(),
    };
    let each = |of: &dyn Fn(&Report) -> String| -> Vec<String> { reports.iter().map(|report| of(report)).collect() };
    [
        Column::words("protocol", each(&|report| report.protocol.clone())),
        Column::words("verdict", each(&|report| worst(report).word().to_owned())),
        Column::numbers("misses", each(&|report| misses(report).to_string())),
        Column::prose("least slack seen", each(&|report| of_task(slack_seen(system, report)))),
        Column::prose("least slack proved", each(&|report| of_task(report.worst_slack(system)))).gives_way(1),
    ]
}

/// The least observed slack and its task; `None` if no job finished.
fn slack_seen(system: &System, report: &Report) -> Option<(i64, TaskId)> {
    let slacks = report.rows.iter().filter_map(|row| Some((row.slack_seen(system)?, row.task)));
    slacks.min_by_key(|(slack, _)| *slack)
}

/// The worst verdict of all tasks.
fn worst(report: &Report) -> Verdict {
    let order = [Verdict::Late, Verdict::AboveBound, Verdict::NoBound, Verdict::NotProved, Verdict::NotSeen];
    let has = |verdict: &Verdict| report.rows.iter().any(|row| row.verdict() == *verdict);
    order.into_iter().find(has).unwrap_or(Verdict::Ok)
}

/// Messages about several protocols. Each is printed once, with its protocols.
#[derive(Debug, Default)]
pub struct Once {
    messages: Vec<(String, Vec<String>)>,
}

impl Once {
    /// Adds a message about one protocol.
    pub fn add(&mut self, protocol: &str, message: String) {
        match self.messages.iter_mut().find(|(known, _)| *known == message) {
            Some((_, protocols)) => protocols.push(protocol.to_owned()),
            None => self.messages.push((message, vec![protocol.to_owned()])),
        }
    }

    /// Each message once. The protocols are named where it is not about all of `count`.
    pub fn texts(&self, count: usize) -> impl Iterator<Item = String> {
        self.messages.iter().map(move |(message, protocols)| match protocols.len() == count {
            true => message.clone(),
            false => format!("under {}: {message}", protocols.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Seen, Standard};
    use lockwright_analysis::analyse;
    use lockwright_model::Observation;
    use lockwright_model::format::parse_system;

    const TASKS: &str = r#"
        [[resource]]
        name = "r"
        [[task]]
        name = "a"
        period = "10 ms"
        wcet = "1 ms"
        requests = [{ resource = "r", length = "1 ms" }]
        [[task]]
        name = "b"
        period = "20 ms"
        wcet = "1 ms"
        requests = [{ resource = "r", length = "1 ms" }]
    "#;

    fn groups(text: &str) -> Vec<(String, Vec<String>)> {
        let system = parse_system(text).expect("valid");
        let bounds = |protocol| (protocol, Report::of_bounds(&system, &analyse(&system, protocol)));
        let groups = grouped(&system, Protocol::ALL.into_iter().map(bounds).collect());
        groups.into_iter().map(|(_, report)| (report.protocol, report.same)).collect()
    }

    #[test]
    fn on_one_cpu_the_shared_protocols_are_icpp() {
        let one = groups(&format!("[platform]\npriorities = \"rate-monotonic\"\n{TASKS}"));
        let icpp = one.iter().find(|(first, _)| first == "icpp").expect("a group");
        assert!(icpp.1.contains(&"mpcp".to_owned()) && icpp.1.contains(&"msrp".to_owned()), "{one:?}");
        assert!(one.iter().any(|(first, same)| first == "pip" && same.is_empty()), "{one:?}");
    }

    /// What else is shown of a protocol, such as its sensitivity, can keep it apart.
    #[test]
    fn other_results_keep_protocols_apart() {
        let system = parse_system(&format!("[platform]\npriorities = \"rate-monotonic\"\n{TASKS}")).expect("valid");
        let bounds = |protocol| (protocol, Report::of_bounds(&system, &analyse(&system, protocol)));
        let bounds = Protocol::ALL.into_iter().map(bounds).collect();
        let groups = grouped_where(&system, bounds, |one, other| (one == Protocol::Mpcp) == (other == Protocol::Mpcp));
        assert!(groups.iter().any(|(first, report)| *first == Protocol::Mpcp && report.same.is_empty()));
        let icpp = groups.iter().find(|(first, _)| *first == Protocol::Icpp).expect("a group");
        assert!(icpp.1.same.contains(&"msrp".to_owned()), "{:?}", icpp.1.same);
    }

    #[test]
    fn across_cpus_protocols_differ() {
        let tasks = TASKS.replace("\"a\"", "\"a\"\ncpu = 0").replace("\"b\"", "\"b\"\ncpu = 1");
        let two = groups(&format!("[platform]\ncpus = 2\npriorities = \"rate-monotonic\"\n{tasks}"));
        assert!(two.iter().any(|(first, same)| first == "mpcp" && same.is_empty()), "{two:?}");
    }

    #[test]
    fn unproved_tasks_are_worse_than_good_ones() {
        let system = parse_system(&format!("[platform]\npriorities = \"rate-monotonic\"\n{TASKS}")).expect("valid");
        let seen = |misses| {
            let mut observation = Observation::default();
            (observation.jobs, observation.misses) = (3, misses);
            Seen { observation, p999: None }
        };
        let report = |all: [Seen; 2]| {
            let bounds = Report::of_bounds(&system, &analyse(&system, Protocol::Icpp));
            let mut report = bounds.judged_by(Standard::Proved).with_seen(&all);
            report.rows[0].bound.proved = false;
            report
        };
        assert_eq!(worst(&report([seen(0), seen(0)])), Verdict::NotProved);
        assert_eq!(worst(&report([seen(0), Seen::default()])), Verdict::NotProved, "nothing seen is less");
        assert_eq!(worst(&report([seen(0), seen(1)])), Verdict::Late, "a miss is more");
    }

    #[test]
    fn a_message_about_all_names_no_protocol() {
        let mut once = Once::default();
        for protocol in ["pip", "icpp"] {
            once.add(protocol, "the same".into());
        }
        once.add("icpp", "another".into());
        assert_eq!(once.texts(2).collect::<Vec<_>>(), ["the same", "under icpp: another"]);
    }
}
