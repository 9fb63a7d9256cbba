//! Protocols that are the same rules on a system: there only one of them is shown.

use crate::layout::Column;
use crate::report::{Report, Verdict};
use crate::units;
use lockwright_model::{Protocol, System, TaskId};
use std::cmp::Reverse;

/// Protocols in their order with what is promised under each; of those that have the same rules, and promise the
/// same, only the first, which names the others.
#[must_use]
pub fn grouped(system: &System, bounds: Vec<(Protocol, Report)>) -> Vec<(Protocol, Report)> {
    let mut groups: Vec<(Protocol, Report)> = Vec::new();
    for (protocol, report) in bounds {
        let is_same = |(other, first): &&mut (Protocol, Report)| {
            rules(system, *other).eq(rules(system, protocol)) && first.rows == report.rows
        };
        match groups.iter_mut().find(is_same) {
            Some((_, first)) => first.same.push(report.protocol),
            None => groups.push((protocol, report)),
        }
    }
    groups
}

/// What rules each resource that is used. A shared resource is under the same rules in `msrp` and `fmlp_short`.
fn rules(system: &System, protocol: Protocol) -> impl Iterator<Item = Protocol> {
    let used = system.resource_ids().filter(|&resource| !system.users(resource).is_empty());
    used.map(move |resource| match system.protocol_of(resource, protocol) {
        Protocol::Msrp => Protocol::FmlpShort,
        other => other,
    })
}

/// Below a comparison: which protocols are the same rules, a line a group.
#[must_use]
pub fn legend<'a>(reports: impl Iterator<Item = &'a Report>) -> String {
    let groups = reports.filter(|report| !report.same.is_empty());
    let lines: String = groups.map(|report| format!("= {}: {}\n", report.protocol, report.same.join(", "))).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("Protocols that have the same rules on this system share a row:\n{lines}"),
    }
}

/// What was seen under several protocols, a row each: the fewest misses first, then the most slack.
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

/// The least that was left of a deadline, and whose it was; `None` where no job finished.
fn slack_seen(system: &System, report: &Report) -> Option<(i64, TaskId)> {
    let slacks = report.rows.iter().filter_map(|row| Some((row.slack_seen(system)?, row.task)));
    slacks.min_by_key(|(slack, _)| *slack)
}

/// The verdict of the task that is worst off.
fn worst(report: &Report) -> Verdict {
    let order = [Verdict::Late, Verdict::AboveBound, Verdict::NoBound, Verdict::NotProved, Verdict::NotSeen];
    let has = |verdict: &Verdict| report.rows.iter().any(|row| row.verdict() == *verdict);
    order.into_iter().find(has).unwrap_or(Verdict::Ok)
}

/// Messages about several protocols, each said once with the protocols it is about.
#[derive(Debug, Default)]
pub struct Once {
    messages: Vec<(String, Vec<String>)>,
}

impl Once {
    /// Something to say of one protocol.
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

    #[test]
    fn across_cpus_protocols_differ() {
        let tasks = TASKS.replace("\"a\"", "\"a\"\ncpu = 0").replace("\"b\"", "\"b\"\ncpu = 1");
        let two = groups(&format!("[platform]\ncpus = 2\npriorities = \"rate-monotonic\"\n{tasks}"));
        assert!(two.iter().any(|(first, same)| first == "mpcp" && same.is_empty()), "{two:?}");
    }

    #[test]
    fn who_is_not_proved_is_worse_off_than_who_is_well() {
        let system = parse_system(&format!("[platform]\npriorities = \"rate-monotonic\"\n{TASKS}")).expect("valid");
        let seen = |misses| Seen { observation: Observation { jobs: 3, misses, ..Observation::default() }, p999: None };
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
