//! The comparison of protocols: a table with one row for each.

use crate::input::Input;
use crate::layout::{Column, Layout};
use crate::report::Report;
use crate::same;
use crate::table;
use crate::units;
use lockwright_model::System;

/// The order of the comparison, for a line below it.
const ORDER: &str = "Sorted best first: protocols under which all deadlines are proved, then those under which all \
    tasks have bounds, each by worst slack; then those that leave tasks without a bound; protocols that do not apply to \
    this system come last. Ties follow the order in `--help`.\n";

/// A table with one row for each protocol, in this order.
pub fn ranking(input: &Input, reports: &[&Report], layout: Layout) -> String {
    let system = &input.system;
    let slack = |report: &Report| match report.worst_slack(system) {
        Some((slack, task)) => format!("{} ({})", units::slack(slack), system.task(task).name),
        None => "no bound".into(),
    };
    let holds = |report: &Report| if report.holds() { "yes" } else { "no" }.to_owned();
    let columns = [
        Column::words("protocol", reports.iter().map(|report| report.protocol.to_string())),
        Column::words("schedulable", reports.iter().map(|report| holds(report))),
        Column::prose("worst slack", reports.iter().map(|report| slack(report))),
        Column::prose("not proved", reports.iter().map(|report| losers(system, report))),
    ];
    let table = layout.draw(&columns);
    format!("{}\n{table}{}{ORDER}", table::system_line(&input.name, system), same::legend(reports.iter().copied()))
}

/// Greatest number of names in the column of tasks that are not proved.
const LOSERS_SHOWN: usize = 4;

fn losers(system: &System, report: &Report) -> String {
    let names: Vec<&str> =
        report.rows.iter().filter(|row| !row.holds()).map(|row| system.task(row.task).name.as_str()).collect();
    match names.len() {
        0 => "none".into(),
        n if n > LOSERS_SHOWN => format!("{} and {} more", names[..LOSERS_SHOWN].join(", "), n - LOSERS_SHOWN),
        _ => names.join(", "),
    }
}
