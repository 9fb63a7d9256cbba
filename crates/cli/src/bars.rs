//! Each bound as a bar of its terms, for `check --svg` and for pages.

use crate::report::Report;
use lockwright_analysis::{Analysis, Cause, Term, best, explain};
use lockwright_model::{Protocol, Scheduler, System};
use lockwright_report::bounds::{self, Bar, Row};

/// One row for each task of the file. Each has one bar for each report, in the order of the reports.
#[must_use]
pub fn bars(system: &System, bounds: &[(&Report, &Analysis)]) -> Vec<Row> {
    let Some((first, _)) = bounds.first() else { return Vec::new() };
    let row = |task| {
        let bar = |(report, analysis): &(&Report, &Analysis)| {
            let analysed = report.analysed(system);
            let bound = report.rows.iter().find(|row| row.task == task).map(|row| &row.bound);
            Bar {
                protocol: report.protocol.clone(),
                response: bound.and_then(|bound| bound.response),
                proved: bound.is_some_and(|bound| bound.proved),
                terms: explain(analysed, analysis, task).iter().filter_map(|term| drawn(analysed, term)).collect(),
            }
        };
        let (name, deadline) = (system.task(task).name.clone(), system.task(task).deadline);
        Row { task: name, deadline, bars: bounds.iter().map(bar).collect() }
    };
    first.rows.iter().map(|first| row(first.task)).collect()
}

/// As [`bars`], for the bounds of [`best`]. Schedulers whose tests give no terms have no bars.
#[must_use]
pub fn of_best(system: &System, bounds: &[(Protocol, &Report)]) -> Vec<Row> {
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        return Vec::new();
    }
    let analyses: Vec<Analysis> =
        bounds.iter().map(|(protocol, report)| best(report.analysed(system), *protocol).0).collect();
    bars(system, &bounds.iter().map(|(_, report)| *report).zip(&analyses).collect::<Vec<_>>())
}

/// The term with names; `None` if there is no number for it.
fn drawn(system: &System, term: &Term) -> Option<bounds::Term> {
    let cause = match term.cause {
        Cause::Execution => bounds::Cause::Execution,
        Cause::Jitter => bounds::Cause::Jitter,
        Cause::Local => bounds::Cause::Local,
        Cause::Boosted => bounds::Cause::Boosted,
        Cause::Waiting | Cause::Holder | Cause::Urgent => bounds::Cause::Remote,
        Cause::Interference => bounds::Cause::Interference,
        Cause::Again => bounds::Cause::Again,
        // `Unbounded`; the others all have numbers.
        _ => return None,
    };
    Some(bounds::Term {
        cause,
        by: term.by.map(|by| system.task(by).name.clone()),
        resource: term.resource.map(|resource| system.resource(resource).name.clone()),
        total: term.total,
    })
}
