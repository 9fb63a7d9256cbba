//! `lockwright check`: bounds.

use crate::args::{BoundChoice, Check, ProtocolChoice};
use crate::bars;
use crate::beside::{self, Beside};
use crate::charges;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFile;
use crate::html::{self, Account};
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Explain, Output, ProtocolResult, SensitivityResult};
use crate::layout::Layout;
use crate::placed::{Assigned, placed};
use crate::ranking::ranking;
use crate::report::{Rank, Report};
use crate::same::grouped_where;
use crate::scheduled;
use crate::table;
use crate::tame::line;
use crate::terms::{grow, grown, terms_table};
use crate::units;
use lockwright_analysis::{Analysis, Proof, Sensitivity, Term, Uncovered, analyse, best, explain};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, System, TaskId};
use lockwright_report::{Place, bounds};

/// All results for one protocol.
struct Answer {
    report: Report,
    analysis: Analysis,
    explain: Option<(TaskId, Vec<Term>)>,
    sensitivity: Option<Sensitivity>,
}

/// Executes `check`.
///
/// # Errors
/// The console has the message.
pub fn check(arguments: &Check, console: &Console) -> Result<Exit, Exit> {
    let input = placed(&arguments.subject.file, arguments.scheduler, Assigned::By(arguments.partition), console)?;
    let system = &input.system;
    let overheads = match &arguments.subject.overheads {
        Some(path) => input::read_overheads(path, console)?,
        None => Overheads::default(),
    };
    // Without any of these, there are no results so far, and a signal ends the command.
    if arguments.sensitivity || arguments.subject.protocol == ProtocolChoice::All {
        let told = *console;
        let text = "interrupted; what has begun is completed (a second Ctrl-C ends the command at once)";
        interrupt::listen(move || told.note(text), console);
    }
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        if arguments.svg.is_some() {
            console.error(
                format!(
                    "--svg draws the terms of response bounds, and the tests of `{}` give none",
                    system.scheduler()
                ),
                "remove --svg, or use `--scheduler p-fp`",
            );
            return Err(Exit::BadInput);
        }
        refuse_sensitivity_of_programs(arguments, system.scheduler(), console)?;
        return scheduled::check(arguments, &input, &overheads, console);
    }
    let charged = charges::chargeable(arguments.subject.protocol.protocols(system), system, &overheads, console)?;
    refuse_sensitivity_of_programs(arguments, system.scheduler(), console)?;
    let task = arguments.explain.as_deref().map(|name| input::find_task(system, name, console)).transpose()?;
    let svg = arguments.svg.as_deref().map(|path| ResultFile::open(path, "--svg", console)).transpose()?;
    let html = html::open(&arguments.subject, console)?;
    let mut uncovered = Vec::new();
    let mut answer = |(protocol, charged): (Protocol, &System)| {
        let (analysis, why) = bounds(arguments.bound, charged, protocol);
        uncovered.extend(why.map(|why| (protocol, why.describe(charged))));
        Answer {
            report: match arguments.subject.overheads {
                Some(_) => Report::of_charged(system, charged.clone(), &analysis),
                None => Report::of_bounds(system, &analysis),
            },
            explain: task.map(|task| (task, explain(charged, &analysis, task))),
            sensitivity: if arguments.sensitivity { grow(system, &overheads, protocol, console) } else { None },
            analysis,
        }
    };
    let mut answers: Vec<Answer> = Vec::new();
    for (protocol, charged) in &charged {
        answers.push(answer((*protocol, charged)));
        if interrupt::requested() {
            break;
        }
    }
    let missing: Vec<Protocol> = charged[answers.len()..].iter().map(|(protocol, _)| *protocol).collect();
    note_uncovered(&uncovered, console);
    answers.sort_by_key(|answer| Rank::of(system, &answer.report));
    if let Some(file) = svg {
        let picture = picture(&input, &answers);
        let path = file.write(|out| Ok(out.write_all(picture.as_bytes())?), console)?;
        console.note(format!("the picture of the bounds is in {}", path.display()));
    }
    let charged = arguments.subject.overheads.as_deref().map(json::Charged::given);
    let interrupted = (!missing.is_empty()).then_some(true);
    let output = Output { overheads: charged, interrupted, ..as_json(&input, &answers) };
    if let Some(file) = html {
        let shown = groups(system, &answers);
        let shown: Vec<_> = shown.iter().map(|(answer, _)| (&answer.report, &answer.analysis)).collect();
        let bounds = bars::bars(system, &shown);
        let charged = arguments.subject.overheads.is_some().then_some(&overheads);
        let account = Account { bounds, overheads: charged, ..Account::new(&input, &output, &arguments.subject) };
        html::write(file, &account, console)?;
    }
    if arguments.subject.json {
        console.print(&json::to_text(&output))?;
    } else {
        let text = if arguments.subject.protocol == ProtocolChoice::All {
            compare(&input, &answers, console.layout)
        } else {
            answers.iter().map(|answer| one(&input, answer, console)).collect()
        };
        console.print_text(&(text + &charges::note(arguments.subject.overheads.as_deref())))?;
    }
    let holds = answers.iter().all(|answer| answer.report.holds());
    Ok(scheduled::ended(&missing, arguments.sensitivity, holds, console))
}

/// Refuses `--sensitivity` with `--bound lp`, where that has an effect.
fn refuse_sensitivity_of_programs(arguments: &Check, scheduler: Scheduler, console: &Console) -> Result<(), Exit> {
    if arguments.bound == BoundChoice::Lp && arguments.sensitivity && !scheduler.is_global() {
        console.error("--sensitivity supports the classic bounds only", "remove --bound lp");
        return Err(Exit::BadInput);
    }
    Ok(())
}

/// The bounds of the chosen method, and why linear programs gave none if that is worth a note.
fn bounds(choice: BoundChoice, system: &System, protocol: Protocol) -> (Analysis, Option<Uncovered>) {
    let (analysis, uncovered) = match choice {
        BoundChoice::Classic => (analyse(system, protocol), None),
        BoundChoice::Lp | BoundChoice::Best => best(system, protocol),
    };
    // Without `--bound lp`, only linear programs that were too large are worth one.
    (analysis, uncovered.filter(|why| choice == BoundChoice::Lp || *why == Uncovered::Work))
}

/// Notes once under which protocols linear programs gave no bounds.
fn note_uncovered(uncovered: &[(Protocol, String)], console: &Console) {
    let names: Vec<String> = uncovered.iter().map(|(protocol, _)| protocol.to_string()).collect();
    let Some((_, first)) = uncovered.first() else { return };
    let why = match uncovered.iter().all(|(_, why)| why == first) {
        true => format!(": {}", line(first)),
        false => "; `--protocol` with one of them prints why".to_owned(),
    };
    let names = names.join(", ");
    console.note(format!("under {names} linear programs give no bounds, so the classic bounds apply{why}"));
}

fn as_json(input: &Input, answers: &[Answer]) -> Output {
    let system = &input.system;
    let groups = groups(system, answers);
    let first = |name: &String| groups.iter().find(|(_, report)| report.same.contains(name));
    let result = |answer: &Answer| ProtocolResult {
        same_rules_as: first(&answer.report.protocol).map(|(_, report)| report.protocol.clone()),
        beside: of_all(system, answers, answer).map(|found| json::BesideLock::new(system, &found)),
        explain: answer
            .explain
            .as_ref()
            .map(|(task, terms)| Explain::new(answer.report.analysed(system), *task, terms)),
        sensitivity: answer
            .sensitivity
            .as_ref()
            .map(|found| SensitivityResult::new(system, found, Some(Proof::Classic))),
        ..ProtocolResult::new(system, &answer.report)
    };
    Output::new(json::Verb::Check, &input.name, answers.iter().map(result).collect())
}

fn one(input: &Input, answer: &Answer, console: &Console) -> String {
    let (system, report) = (&input.system, &answer.report);
    let mut text = table::headline(&input.name, system, report);
    text.push('\n');
    text.push_str(&table::tasks(system, report, console));
    text.push_str(&table::reasons(system, report));
    text.push_str(&extras(system, answer, console.layout));
    text
}

/// The explanation and the sensitivity, if asked for.
fn extras(system: &System, answer: &Answer, layout: Layout) -> String {
    let mut text = String::new();
    if let Some((task, terms)) = &answer.explain {
        text.push('\n');
        text.push_str(&explained(answer.report.analysed(system), &answer.report, *task, terms, layout));
    }
    if let Some(sensitivity) = &answer.sensitivity {
        let is_tighter = answer.analysis.tasks.iter().any(|task| task.proof != Proof::Classic);
        text.push('\n');
        text.push_str(if is_tighter { SENSITIVITY_BELOW_BEST } else { SENSITIVITY_OF_BOUNDS });
        text.push_str(&grown(system, sensitivity, layout));
    }
    text
}

/// Title of the factors.
const SENSITIVITY_OF_BOUNDS: &str = "Sensitivity of the classic bounds:\n";

/// Title of the factors if the table has tighter bounds.
const SENSITIVITY_BELOW_BEST: &str = "Sensitivity of the classic bounds (`--bound classic` prints them); the tighter \
    bounds above may prove deadlines beyond these factors:\n";

/// The comparison: one row for each protocol, best first.
fn compare(input: &Input, answers: &[Answer], layout: Layout) -> String {
    let system = &input.system;
    let groups = groups(system, answers);
    let reports: Vec<&Report> = groups.iter().map(|(_, report)| report).collect();
    let shown: Vec<&Answer> = groups.iter().map(|(answer, _)| *answer).collect();
    let mut text = ranking(input, &reports, layout);
    for &answer in &shown {
        if let Some(found) = of_all(system, answers, answer) {
            text.push_str(&(line(&beside::sentence(system, &answer.report.protocol, &found)) + "\n"));
        }
    }
    text.push_str(&first_reasons(system, &shown));
    for answer in shown {
        let more = extras(system, answer, layout);
        if !more.is_empty() {
            text.push_str(&format!("\nUnder {}:\n{}", answer.report.protocol, more.trim_start_matches('\n')));
        }
    }
    text
}

/// The first answer of each group of protocols with the same rules, bounds and sensitivity, with the report that names
/// the others.
fn groups<'a>(system: &System, answers: &'a [Answer]) -> Vec<(&'a Answer, Report)> {
    let bounds = answers.iter().map(|answer| (answer.analysis.protocol, answer.report.clone())).collect();
    let of = |protocol| answers.iter().find(|answer| answer.analysis.protocol == protocol);
    let sensitivity = |protocol| of(protocol).and_then(|answer| answer.sensitivity.as_ref());
    let groups = grouped_where(system, bounds, |one, other| sensitivity(one) == sensitivity(other)).into_iter();
    groups.filter_map(|(protocol, report)| Some((of(protocol)?, report))).collect()
}

/// The bounds of all tasks as bars of their terms. Of protocols with the same rules, only the first is drawn.
fn picture(input: &Input, answers: &[Answer]) -> String {
    let groups = groups(&input.system, answers);
    let title = match groups.as_slice() {
        [(_, report)] => format!("{}: bounds under {}", input.name, report.protocol),
        _ => format!("{}: bounds under each protocol", input.name),
    };
    let shown: Vec<_> = groups.iter().map(|(answer, _)| (&answer.report, &answer.analysis)).collect();
    bounds::draw(&bars::bars(&input.system, &shown), &title, Place::File)
}

/// The comparison of interruptible sections with the best lock, if `answer` is about interruptible sections.
fn of_all(system: &System, answers: &[Answer], answer: &Answer) -> Option<Beside> {
    let all: Vec<_> = answers.iter().map(|answer| (&answer.report, &answer.analysis)).collect();
    beside::beside(system, &all, &answer.report, answer.analysis.protocol)
}

/// For each protocol without bounds, the first task that has none, and the reason: the others often follow from it.
fn first_reasons(system: &System, answers: &[&Answer]) -> String {
    let mut text = String::new();
    for report in answers.iter().map(|answer| &answer.report) {
        let first = report.rows.iter().find_map(|row| Some((row.task, row.bound.reason.as_ref()?)));
        if let Some((task, reason)) = first {
            text.push_str(&(line(&format!("  {}: {}: {reason}", report.protocol, system.task(task).name)) + "\n"));
        }
    }
    if text.is_empty() { text } else { format!("\nWithout a bound, among others:\n{text}") }
}

fn explained(system: &System, report: &Report, task: TaskId, terms: &[Term], layout: Layout) -> String {
    let bound = report.rows.iter().find(|row| row.task == task).and_then(|row| row.bound.response);
    let name = &system.task(task).name;
    let title = match bound {
        Some(response) => format!("{name}: every term of its response bound R = {}", units::text(response)),
        None => format!("{name}: no response bound; the terms known without one"),
    };
    let sum = terms.iter().try_fold(Duration::ZERO, |sum, term| sum.checked_add(term.total));
    line(&title) + "\n\n" + &terms_table(system, terms, bound.and(sum).map(|sum| ("R", sum)), layout)
}
