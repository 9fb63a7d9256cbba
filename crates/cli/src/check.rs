//! `lockwright check`: bounds.

use crate::args::{BoundChoice, Check, ProtocolChoice};
use crate::beside::{self, Beside};
use crate::console::{Console, tame};
use crate::exit::Exit;
use crate::input::{self, Input, Source};
use crate::interrupt;
use crate::json::{self, Explain, Output, ProtocolResult, SensitivityResult};
use crate::progress::Progress;
use crate::report::{Rank, Report};
use crate::scheduled;
use crate::table::{self, Column};
use crate::units;
use lockwright_analysis::{
    Analysis, Failure, Growth, Sensitivity, Term, analyse, charge, explain, partitioned, sensitivity, tighten,
};
use lockwright_model::format::{Placing, nearest};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, System, TaskId};

/// Everything asked about one protocol.
struct Answer {
    report: Report,
    analysis: Analysis,
    explain: Option<(TaskId, Vec<Term>)>,
    sensitivity: Option<Sensitivity>,
}

/// Does `check`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn check(arguments: &Check, console: &Console) -> Result<Exit, Exit> {
    let input = placed(arguments, console)?;
    let system = &input.system;
    let overheads = match &arguments.overheads {
        Some(path) => input::read_overheads(path, console)?,
        None => Overheads::default(),
    };
    if arguments.sensitivity {
        interrupt::listen(|| {}, console);
    }
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        return scheduled::check(arguments, &input, &overheads, console);
    }
    let charged = |protocol| {
        let charged = charge(system, &overheads, protocol).map_err(|why| {
            console.error(format!("the overheads cannot be charged: {}", why.message), &why.help);
            Exit::BadInput
        })?;
        Ok((protocol, charged))
    };
    let charged: Vec<(Protocol, System)> =
        arguments.subject.protocol.protocols(system).into_iter().map(charged).collect::<Result<_, Exit>>()?;
    if arguments.bound == BoundChoice::Lp && (arguments.explain.is_some() || arguments.sensitivity) {
        console.error("--bound lp goes with neither --explain nor --sensitivity", "leave one of them out");
        return Err(Exit::BadInput);
    }
    let task = arguments.explain.as_deref().map(|name| find_task(system, name, console)).transpose()?;
    let answer = |(protocol, charged): (Protocol, &System)| {
        let mut analysis: Analysis = analyse(charged, protocol);
        if arguments.bound == BoundChoice::Lp
            && let Err(why) = tighten(charged, &mut analysis)
        {
            let why = tame(&why.describe(charged));
            console.note(format!("under {protocol} the linear program gives no bounds: {why}"));
        }
        let mut report = Report::of_bounds(charged, &analysis);
        // Behind them stand interrupts, which nobody asked for.
        report.rows.retain(|row| row.task.index() < system.tasks().len());
        Answer {
            report,
            explain: task.map(|task| (task, explain(charged, &analysis, task))),
            sensitivity: if arguments.sensitivity { grow(system, &overheads, protocol, console) } else { None },
            analysis,
        }
    };
    let mut answers: Vec<Answer> = charged.iter().map(|(protocol, charged)| answer((*protocol, charged))).collect();
    // Under each protocol tasks execute for as long; how much of it is inside sections is in the answers.
    let system = charged.into_iter().next().map_or_else(|| system.clone(), |(_, charged)| charged);
    answers.sort_by_key(|answer| Rank::of(&system, &answer.report));
    let input = Input { system, name: input.name.clone() };
    let text = if arguments.subject.json {
        json::to_text(&as_json(&input, &answers))
    } else if arguments.subject.protocol == ProtocolChoice::All {
        compare(&input, &answers)
    } else {
        answers.iter().map(|answer| one(&input, answer, console)).collect()
    };
    console.print(&(text + &charged_note(arguments)))?;
    if interrupt::requested() {
        console.note("interrupted: the sensitivity is not complete");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::from_holds(answers.iter().all(|answer| answer.report.holds())))
}

/// Below the tables, where there are any: what C holds.
pub(crate) fn charged_note(arguments: &Check) -> String {
    let Some(path) = arguments.overheads.as_ref().filter(|_| !arguments.subject.json) else { return String::new() };
    let path = tame(&path.display().to_string());
    format!("\nThe overheads of {path} are charged; see docs/overheads.md.\n")
}

/// Under the scheduler, and on the CPUs, that were asked for.
fn placed(arguments: &Check, console: &Console) -> Result<Input, Exit> {
    // The CPUs of the file matter where neither the tasks are placed anew nor the scheduler is global.
    let is_global = arguments.scheduler.is_some_and(|choice| choice.scheduler().is_global());
    let placing = if arguments.partition.is_some() || is_global { Placing::Caller } else { Placing::File };
    let source = Source::read(&arguments.subject.file, console)?;
    let (Input { mut system, name }, placed) = source.placed(placing, console)?;
    let (from, has_clusters) = (system.scheduler(), system.has_clusters());
    if let Some(choice) = arguments.scheduler {
        system = system.under(choice.scheduler());
    }
    let scheduler = system.scheduler();
    match arguments.partition {
        Some(_) if scheduler == Scheduler::CFp => {
            console.error("under `c-fp` the file says which clusters tasks have", "leave --partition out");
            return Err(Exit::BadInput);
        }
        Some(_) if scheduler.is_global() => {
            console.error(format!("under `{scheduler}` tasks have no CPU"), "leave --partition out");
            return Err(Exit::BadInput);
        }
        Some(choice) => {
            system = partitioned(&system, choice.fit()).map_err(|why| {
                let task = match why {
                    Failure::Task { task } => format!("`{}`", tame(&system.task(TaskId::new(task)).name)),
                    _ => "a task".into(),
                };
                console.error(
                    format!("{task} fits on no CPU: {} are not enough so", system.cpus()),
                    "try another fit, or more CPUs",
                );
                Exit::BadInput
            })?;
        }
        None if has_clusters && !scheduler.is_global() && scheduler != Scheduler::CFp => {
            console.error(
                format!("under `{scheduler}` each task has one CPU; the file gives clusters"),
                "add --partition worst-fit",
            );
            return Err(Exit::BadInput);
        }
        None if from.is_global() && !scheduler.is_global() && system.cpus() > 1 && placed < system.tasks().len() => {
            console.error(
                format!("under `{scheduler}` tasks need CPUs, which the file does not give"),
                "add --partition worst-fit",
            );
            return Err(Exit::BadInput);
        }
        None => {}
    }
    let why = match arguments.partition {
        Some(_) => Some("--partition places the tasks anew".to_owned()),
        None => scheduler.is_global().then(|| format!("under `{scheduler}` jobs execute on any CPU")),
    };
    if let Some(why) = why.filter(|_| placed > 0) {
        console.note(format!(
            "{why}: the CPUs that the file gives to {} are ignored",
            units::count(placed as u64, "task")
        ));
    }
    Ok(Input { system, name })
}

/// Of a system under another scheduler than partitioned fixed priorities.
pub(crate) fn grown_for(system: &System, overheads: &Overheads, console: &Console) -> Option<Sensitivity> {
    grow(system, overheads, system.protocol_or_default(), console)
}

/// `None` where it was interrupted.
fn grow(system: &System, overheads: &Overheads, protocol: Protocol, console: &Console) -> Option<Sensitivity> {
    let progress = Progress::new(console, &format!("sensitivity under {protocol}"));
    sensitivity(system, overheads, protocol, |done, whole| {
        progress.set(done as u64, whole as u64);
        !interrupt::requested()
    })
}

pub(crate) fn find_task(system: &System, name: &str, console: &Console) -> Result<TaskId, Exit> {
    if let Some(task) = system.task_ids().find(|&task| system.task(task).name == name) {
        return Ok(task);
    }
    let names = || system.tasks().iter().map(|task| task.name.as_str());
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tasks are {}", names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    console.error(format!("there is no task `{name}`"), &help);
    Err(Exit::BadInput)
}

fn as_json(input: &Input, answers: &[Answer]) -> Output {
    let system = &input.system;
    let result = |answer: &Answer| ProtocolResult {
        beside: of_all(system, answers, answer).map(|found| json::BesideLock::new(system, &found)),
        explain: answer.explain.as_ref().map(|(task, terms)| Explain::new(system, *task, terms)),
        sensitivity: answer.sensitivity.as_ref().map(|found| SensitivityResult::new(system, found)),
        ..ProtocolResult::new(system, &answer.report)
    };
    Output::new(json::Verb::Check, &input.name, answers.iter().map(result).collect())
}

fn one(input: &Input, answer: &Answer, console: &Console) -> String {
    let (system, report) = (&input.system, &answer.report);
    let mut text = table::headline(&input.name, system, report);
    text.push('\n');
    text.push_str(&table::tasks(system, report, console.color_out));
    text.push_str(&table::reasons(system, report));
    text.push_str(&extras(system, answer));
    text
}

/// What was asked for beside the table.
fn extras(system: &System, answer: &Answer) -> String {
    let mut text = String::new();
    if let Some((task, terms)) = &answer.explain {
        text.push('\n');
        text.push_str(&explained(system, &answer.report, *task, terms));
    }
    if let Some(sensitivity) = &answer.sensitivity {
        text.push('\n');
        text.push_str(&grown(system, sensitivity));
    }
    text
}

/// Below the comparison: what makes its order.
const ORDER: &str = "The best first: all deadlines proved, then all tasks bounded, each by worst slack; then who has tasks without a bound, \
    last where the protocol\nsays nothing of such a system. Equals stand as in the help.\n";

/// A row a protocol, the best first.
fn compare(input: &Input, answers: &[Answer]) -> String {
    let system = &input.system;
    let reports = || answers.iter().map(|answer| &answer.report);
    let slack = |report: &Report| match report.worst_slack(system) {
        Some((slack, task)) => format!("{} ({})", units::slack(slack), system.task(task).name),
        None => "no bound".into(),
    };
    let columns = [
        Column::words("protocol", reports().map(|report| report.protocol.to_string())),
        Column::words("schedulable", reports().map(|report| if report.holds() { "yes" } else { "no" }.to_owned())),
        Column::words("worst slack", reports().map(slack)),
        Column::words("who loses", reports().map(|report| losers(system, report))),
    ];
    let mut text = table::system_line(&input.name, system);
    text.push('\n');
    text.push_str(&table::draw(&columns));
    text.push_str(ORDER);
    for answer in answers {
        if let Some(found) = of_all(system, answers, answer) {
            text.push_str(&tame(&beside::sentence(system, &answer.report.protocol, &found)));
        }
    }
    text.push_str(&first_reasons(system, answers));
    for answer in answers {
        let more = extras(system, answer);
        if !more.is_empty() {
            text.push_str(&format!("\nUnder {}:\n{}", answer.report.protocol, more.trim_start_matches('\n')));
        }
    }
    text
}

/// An answer beside the best under a lock, where interruptible sections are one.
fn of_all(system: &System, answers: &[Answer], answer: &Answer) -> Option<Beside> {
    let all: Vec<_> = answers.iter().map(|answer| (&answer.report, &answer.analysis)).collect();
    beside::beside(system, &all, &answer.report, answer.analysis.protocol)
}

/// For each protocol without bounds, the first task that has none, and why: the others often follow from it.
fn first_reasons(system: &System, answers: &[Answer]) -> String {
    let mut text = String::new();
    for report in answers.iter().map(|answer| &answer.report) {
        let first = report.rows.iter().find_map(|row| Some((row.task, row.bound.reason.as_ref()?)));
        if let Some((task, reason)) = first {
            text.push_str(&format!("  {}: {}: {reason}\n", report.protocol, system.task(task).name));
        }
    }
    if text.is_empty() { text } else { format!("\nWithout a bound, among others:\n{}", tame(&text)) }
}

/// Names shown of those who lose.
const LOSERS_SHOWN: usize = 4;

fn losers(system: &System, report: &Report) -> String {
    let names: Vec<&str> =
        report.rows.iter().filter(|row| !row.holds()).map(|row| system.task(row.task).name.as_str()).collect();
    match names.len() {
        0 => "nobody".into(),
        n if n > LOSERS_SHOWN => format!("{} and {} more", names[..LOSERS_SHOWN].join(", "), n - LOSERS_SHOWN),
        _ => names.join(", "),
    }
}

fn explained(system: &System, report: &Report, task: TaskId, terms: &[Term]) -> String {
    let bound = report.rows.iter().find(|row| row.task == task).and_then(|row| row.bound.response);
    let name = &system.task(task).name;
    let title = match bound {
        Some(response) => format!("{name}: every term of its response bound R = {}\n", units::text(response)),
        None => format!("{name}: no response bound; the terms known without one\n"),
    };
    let sum = terms.iter().try_fold(Duration::ZERO, |sum, term| sum.checked_add(term.total));
    tame(&title) + "\n" + &terms_table(system, terms, bound.and(sum).map(|sum| ("R", sum)))
}

/// A row a term; with the name of the sum, and the sum, where there is one.
pub(crate) fn terms_table(system: &System, terms: &[Term], sum: Option<(&str, Duration)>) -> String {
    let by = |term: &Term| term.by.map_or_else(String::new, |by| system.task(by).name.clone());
    let resource = |term: &Term| term.resource.map_or_else(String::new, |id| system.resource(id).name.clone());
    let times = |term: &Term| if term.count == 0 { "any".into() } else { term.count.to_string() };
    let total = |term: &Term| if term.count == 0 { "–".into() } else { units::text(term.total) };
    let mut columns = vec![
        Column::words("cause", terms.iter().map(|term| term.cause.to_string())),
        Column::words("by", terms.iter().map(by)),
        Column::words("resource", terms.iter().map(resource)),
        Column::numbers("times", terms.iter().map(times)),
        Column::numbers("each", terms.iter().map(|term| units::text(term.each))),
        Column::numbers("total", terms.iter().map(total)),
        Column::words("why", terms.iter().map(|term| term.why.clone())),
    ];
    if let Some((name, sum)) = sum {
        for column in &mut columns {
            column.cells.push(match column.title.as_str() {
                "cause" => name.into(),
                "total" => units::text(sum),
                _ => String::new(),
            });
        }
    }
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    table::draw(&columns)
}

pub(crate) fn grown(system: &System, sensitivity: &Sensitivity) -> String {
    let rows = || {
        let tasks = sensitivity.tasks.iter().map(|(id, growth)| (system.task(*id).name.clone(), *growth));
        let resources = sensitivity.resources.iter();
        std::iter::once(("all execution times".to_owned(), sensitivity.all))
            .chain(resources.map(|(id, growth)| (format!("sections on {}", system.resource(*id).name), *growth)))
            .chain(tasks.map(|(name, growth)| (format!("execution times of {name}"), growth)))
    };
    if rows().all(|(_, growth)| growth == Growth::Broken) {
        return format!("Sensitivity: {}.\n", factor(Growth::Broken));
    }
    let columns = [
        Column::words("what grows", rows().map(|(what, _)| what)),
        Column::words("how far before a deadline breaks", rows().map(|(_, growth)| factor(growth))),
    ];
    let names = sensitivity.tolerated.iter().map(|(id, _)| system.task(*id).name.clone());
    let most = sensitivity.tolerated.iter().map(|(_, most)| most.map_or_else(|| "–".into(), units::text));
    let tolerated = [Column::words("task", names), Column::numbers("more blocking it tolerates", most)];
    format!("{}\n{}", table::draw(&columns), table::draw(&tolerated))
}

fn factor(growth: Growth) -> String {
    match growth {
        Growth::Permille(permille) => {
            let change = i128::from(permille) - 1000;
            let sign = if change < 0 { '-' } else { '+' };
            let size = change.unsigned_abs();
            format!("×{}.{:03} ({sign}{}.{} %)", permille / 1000, permille % 1000, size / 10, size % 10)
        }
        Growth::Unlimited => "without limit".into(),
        Growth::Broken => "no factor helps: not every deadline can be proved, however short they are".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact() {
        assert_eq!(factor(Growth::Permille(1385)), "×1.385 (+38.5 %)");
        assert_eq!(factor(Growth::Permille(1000)), "×1.000 (+0.0 %)");
        assert_eq!(factor(Growth::Permille(995)), "×0.995 (-0.5 %)");
        assert_eq!(factor(Growth::Permille(1)), "×0.001 (-99.9 %)");
    }
}
