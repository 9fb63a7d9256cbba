//! The page of a recording: what was found, and the object of `--json` as tables.

use super::bounds::Bounds;
use super::schedule::Recorded;
use crate::args::Record;
use crate::bars;
use crate::html::{self, Watched, facts, tables};
use crate::json::{RecordOutput, RecordedBoundary, RecordedThread};
use crate::units;
use lockwright_model::Duration;
use lockwright_report::page::{Cell, Column, Page, Part, Section, Table, Verdict};

/// The greatest number of rows of locks.
const ROWS_MAX: usize = 100;

/// The page.
pub(super) fn page<'a>(
    output: &RecordOutput,
    bounds: Option<&Bounds<'_>>,
    recorded: Option<&'a Recorded>,
    arguments: &Record,
) -> Page<'a> {
    let program = output.program.join(" ");
    let mut facts = facts::machine();
    facts.extend([
        ("Recorded", program.clone()),
        ("Length", format!("{}, {}", text(output.length_ns), units::count(output.events, "event"))),
        ("Command", facts::command(&arguments.command, &[])),
    ]);
    let tables = output.check.iter().flat_map(|result| {
        let table = Part::Table(tables::tasks(result));
        std::iter::once(table).chain(list(tables::reasons(result)))
    });
    let own = bounds.map(|bounds| (bounds.system, bounds.system.protocol_or_default(), &bounds.seen));
    let bars = own.map_or_else(Vec::new, |(system, own, seen)| bars::of_best(system, &[(own, seen)]));
    // The first result has the responses that were seen.
    let strips = output.check.first().zip(bounds).map_or_else(Vec::new, |(result, bounds)| {
        let responses = bounds.responses.iter().collect();
        let watched = Watched { protocol: &result.protocol, system: bounds.system, records: &[], responses };
        html::strips(result, Some(&watched))
    });
    let tasks = output.threads.iter().filter(|thread| thread.task.is_some()).count();
    let jobs = recorded
        .map_or_else(Vec::new, |recorded| html::jobs("as recorded", &recorded.system, &recorded.records, tasks));
    let mut warnings = output.warnings.clone();
    if output.lost > 0 {
        warnings.push(format!("{} were lost.", units::count(output.lost, "event")));
    }
    if !output.complete {
        warnings.push("The recording is incomplete: the program did not end by itself.".into());
    }
    Page {
        title: format!("{program}, recorded"),
        verdicts: vec![verdict(output)],
        sections: vec![
            Section { title: "What was found", parts: list(output.sentences.clone()) },
            Section { title: "Threads", parts: threads(output) },
            Section { title: "The task set beside its bounds", parts: tables.collect() },
            Section { title: "Bounds by term", parts: html::bounds_by_term(&bars) },
            Section { title: "Seen against promised", parts: strips },
            Section { title: "The worst job of each task", parts: jobs },
            Section { title: "Priority inversions", parts: inversions(output) },
            Section { title: "Orders of locking that can deadlock", parts: cycles(output) },
            Section { title: "Long waits for locks", parts: waits(output) },
            Section { title: "Long sections", parts: sections(output) },
            Section { title: "Locks", parts: locks(output) },
            Section { title: "Caveats", parts: list(warnings) },
            Section { title: "How to repeat this", parts: vec![Part::Facts(facts)] },
            Section { title: "The task set", parts: output.system.clone().map(Part::Source).into_iter().collect() },
        ],
    }
}

/// The verdict: a recording is good if it is whole, and nothing was found that can delay an urgent thread for long.
fn verdict(output: &RecordOutput) -> Verdict {
    let inversions: u64 = output.inversions.iter().map(|found| found.times).sum();
    let seen = match inversions {
        0 => "no priority inversion was seen".to_owned(),
        _ => format!(
            "{} seen",
            if inversions == 1 {
                "1 priority inversion was".into()
            } else {
                format!("{inversions} priority inversions were")
            }
        ),
    };
    let cycles = match output.cycles.len() {
        0 if output.orders_left_out > 0 => "not all orders of locking were looked at".to_owned(),
        0 => "no order of locking that can deadlock was seen".to_owned(),
        1 => "1 order of locking that can deadlock was seen".to_owned(),
        several => format!("{several} orders of locking that can deadlock were seen"),
    };
    let tasks = match &output.reason {
        Some(why) => format!("there is no task set: {why}"),
        None => {
            let tasks = output.threads.iter().filter(|thread| thread.task.is_some()).count();
            format!("a task set of {} follows", units::count(tasks as u64, "task"))
        }
    };
    let is_whole = output.lost == 0 && output.unrecorded_threads == 0 && output.orders_left_out == 0 && output.complete;
    let holds = inversions == 0 && output.cycles.is_empty() && output.reason.is_none() && is_whole;
    Verdict { holds, text: format!("In {}, {seen}; {cycles}; {tasks}.", text(output.length_ns)) }
}

fn list<'a>(lines: Vec<String>) -> Vec<Part<'a>> {
    if lines.is_empty() { Vec::new() } else { vec![Part::List(lines)] }
}

fn text(ns: u64) -> String {
    units::text(Duration::from_ns(ns))
}

fn time(ns: u64) -> Cell {
    Cell::number(text(ns), ns)
}

fn count(number: u64) -> Cell {
    Cell::number(number.to_string(), number)
}

fn optional(text: Option<&String>) -> Cell {
    text.map_or_else(Cell::absent, |text| Cell::text(text.as_str()))
}

/// A table, unless it has no rows. The keys of the columns are those of JSON; those of numbers end with `#`.
fn table<'a>(caption: &str, columns: &[(&str, &'static str)], rows: Vec<Vec<Cell>>) -> Vec<Part<'a>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let column = |&(title, key): &(&str, &'static str)| match title.strip_suffix('#') {
        Some(title) => Column::numbers(title, key),
        None => Column::words(title, key),
    };
    vec![Part::Table(Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows })]
}

fn threads<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let boundary = |boundary: &RecordedBoundary| format!("behind {}", boundary.text);
    let row = |thread: &RecordedThread| {
        let task = thread.task.as_ref();
        let or = |cell: Option<Cell>| cell.unwrap_or_else(Cell::absent);
        let job = match (task, &thread.reason) {
            (Some(task), _) => boundary(&task.boundary),
            (None, reason) => format!("none: {}", reason.clone().unwrap_or_default()),
        };
        vec![
            Cell::text(&thread.name),
            Cell::text(thread.policies.join(", ")),
            Cell::text(thread.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
            time(thread.cpu_ns),
            or(task.map(|task| count(task.boundary.jobs))),
            or(task.map(|task| time(task.period_ns))),
            Cell::text(task.map_or("", |task| task.regularity)),
            or(task.and_then(|task| task.cpu_quantiles_ns.last().map(|&ns| time(ns)))),
            or(task.map(|task| time(task.response_ns))),
            Cell::text(job),
        ]
    };
    let columns = [
        ("thread", "name"),
        ("priority", "policies"),
        ("CPU", "cpus"),
        ("CPU time#", "cpu_ns"),
        ("jobs#", "jobs"),
        ("period#", "period_ns"),
        ("releases", "regularity"),
        ("longest job#", "cpu_quantiles_ns"),
        ("longest response#", "response_ns"),
        ("job", "boundary"),
    ];
    table("The threads", &columns, output.threads.iter().map(row).collect())
}

fn inversions<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let columns = [
        ("waiter", "waiter"),
        ("holder", "holder"),
        ("executed instead", "between"),
        ("lock", "lock"),
        ("times#", "times"),
        ("worst#", "worst_ns"),
        ("began at#", "worst_at_ns"),
        ("with inheritance#", "inherited_ns"),
    ];
    let rows = output.inversions.iter().map(|found| {
        let words = [found.waiter.as_str(), &found.holder, &found.between.join(", "), &found.lock].map(Cell::text);
        let numbers = [count(found.times), time(found.worst_ns), time(found.worst_at_ns), time(found.inherited_ns)];
        words.into_iter().chain(numbers).collect()
    });
    table("Waits of urgent threads while less urgent ones executed", &columns, rows.collect())
}

fn cycles<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let cycle = |cycle: &crate::json::RecordedCycle| {
        let threads = cycle.threads.iter().zip(&cycle.holds).zip(&cycle.sites);
        let each = |((thread, holds), site): ((&String, &String), &String)| {
            format!("{thread} holds {holds} and requests the next one at {site}")
        };
        threads.map(each).collect::<Vec<_>>().join("; ")
    };
    list(output.cycles.iter().map(cycle).collect())
}

fn waits<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let columns = [
        ("waiter", "waiter"),
        ("lock", "lock"),
        ("length#", "length_ns"),
        ("began at#", "at_ns"),
        ("requested at", "site"),
        ("holder", "holder"),
        ("locked at", "holder_site"),
    ];
    let rows = output.waits.iter().map(|wait| {
        vec![
            Cell::text(&wait.waiter),
            Cell::text(&wait.lock),
            time(wait.length_ns),
            time(wait.at_ns),
            Cell::text(&wait.site),
            optional(wait.holder.as_ref()),
            optional(wait.holder_site.as_ref()),
        ]
    });
    // The recording keeps no more of them.
    table("The longest waits, at most 100", &columns, rows.collect())
}

fn sections<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let columns = [
        ("thread", "thread"),
        ("lock", "lock"),
        ("locked at", "site"),
        ("times#", "times"),
        ("CPU time#", "longest_cpu_ns"),
        ("held#", "longest_held_ns"),
    ];
    let rows = output.long_sections.iter().map(|found| {
        let words = [found.thread.as_str(), &found.lock, &found.site].map(Cell::text);
        let numbers = [count(found.times), time(found.longest_cpu_ns), time(found.longest_held_ns)];
        words.into_iter().chain(numbers).collect()
    });
    table("Sections longer than --sections-longer", &columns, rows.collect())
}

fn locks<'a>(output: &RecordOutput) -> Vec<Part<'a>> {
    let columns = [
        ("lock", "name"),
        ("sections#", "sections"),
        ("threads#", "threads"),
        ("waits#", "contended"),
        ("longest wait#", "longest_wait_ns"),
        ("longest held#", "longest_held_ns"),
        ("CPU held#", "longest_cpu_ns"),
    ];
    let mut locks: Vec<_> = output.locks.iter().collect();
    locks.sort_by_key(|lock| std::cmp::Reverse((lock.contended, lock.sections)));
    let more = locks.len().saturating_sub(ROWS_MAX);
    let rows = locks.into_iter().take(ROWS_MAX).map(|lock| {
        let numbers = [count(lock.sections), count(lock.threads), count(lock.contended)];
        let times = [lock.longest_wait_ns, lock.longest_held_ns, lock.longest_cpu_ns].map(time);
        std::iter::once(Cell::text(&lock.name)).chain(numbers).chain(times).collect()
    });
    let mut parts = table("The locks, those with the most waits first", &columns, rows.collect());
    if more > 0 {
        parts.push(Part::Text(format!("report.json has {} more.", units::count(more as u64, "lock"))));
    }
    parts
}
