//! `lockwright check` under EDF and under global schedulers: the result of each schedulability test; and the bounds
//! that other verbs show under EDF.

use crate::args::{BoundChoice, Check, ProtocolChoice};
use crate::charges::{self, Charges};
use crate::console::Console;
use crate::exit::Exit;
use crate::html::{self, Account};
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, BlockedBy, Explain, Output, PointResult, ProtocolResult, SensitivityResult, TestResult};
use crate::layout::{Column, Layout};
use crate::report::{Bound, Report, Row, Standard, table_order};
use crate::table;
use crate::tame::tame;
use crate::terms::{grown, grown_for, terms_table};
use crate::units;
use lockwright_analysis::{
    Demanded, Proof, Scheduled, Sensitivity, Uncovered, Untested, best_scheduled, explain_demand, scheduled,
};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, System, TaskId};

/// Why a scheduler leaves no choice of the protocol.
fn ruled(scheduler: Scheduler) -> String {
    if scheduler.is_global() {
        format!("the tests of `{scheduler}` cover no shared resources")
    } else {
        format!("under `{scheduler}` resources use SRP on one CPU and MSRP across CPUs")
    }
}

/// The protocol of all resources, whatever the file says: `msrp`, which is `srp` on one processor, or none without
/// requests.
#[must_use]
pub fn protocol(system: &System) -> Protocol {
    if system.is_sharing() { Protocol::Msrp } else { Protocol::None }
}

/// Prints a note for each choice without effect: the options, if any, and another protocol in the file.
pub fn note_ruled(options: Option<&str>, system: &System, console: &Console) {
    if let Some(options) = options {
        console.note(format!("{options} here: {}", ruled(system.scheduler())));
    }
    let own = system.resource_ids().filter_map(|resource| system.resource(resource).protocol);
    // The tests refuse objects and readers.
    let is_ruled_out = |named: &Protocol| {
        !matches!(named, Protocol::Srp | Protocol::Msrp) && !named.is_object() && !named.has_readers()
    };
    if let Some(named) = own.chain(system.protocol()).find(is_ruled_out) {
        console.note(format!("the file's protocol `{named}` has no effect here: {}", ruled(system.scheduler())));
    }
}

/// Tests the system under its scheduler, and prints the results.
///
/// # Errors
/// No test covers the system; the console has the message.
pub fn check(arguments: &Check, input: &Input, overheads: &Overheads, console: &Console) -> Result<Exit, Exit> {
    let system = &input.system;
    let task = arguments.explain.as_deref().map(|name| input::find_task(system, name, console)).transpose()?;
    if task.is_some() && system.scheduler() != Scheduler::PEdf {
        console.error(tame(&Untested::Global.describe(system)), "remove --explain, or use `p-fp` or `p-edf`");
        return Err(Exit::BadInput);
    }
    let html = html::open(&arguments.subject, console)?;
    note_options(arguments, system, console);
    let found = tested(arguments.bound, system, overheads, console).map_err(|why| {
        console.error(tame(&why.describe(system)), "use `p-fp`, or remove from the file what is not covered");
        Exit::BadInput
    })?;
    let explained = task.map(|task| explain(system, overheads, &found, task, console)).transpose()?;
    // If the overheads leave no time, a test says so.
    let given = arguments.subject.overheads.is_some();
    let charged = if given { charges::lengthened(system, overheads, protocol(system)).ok() } else { None };
    let report = Report { charged, ..report(system, &found) };
    let sensitivity = if arguments.sensitivity { grown_for(system, overheads, console) } else { None };
    let mut output = as_json(input, &report, &found, sensitivity.as_ref());
    output.overheads = arguments.subject.overheads.as_deref().map(json::Charged::given);
    if let (Some((task, demanded)), Some(result)) = (&explained, output.results.first_mut()) {
        let explain = Explain::new(system, *task, &demanded.terms);
        result.explain = Some(Explain { interval_ns: Some(demanded.interval.as_ns()), ..explain });
    }
    if let Some(file) = html {
        let charged = given.then_some(overheads);
        html::write(
            file,
            &Account { overheads: charged, ..Account::new(input, &output, &arguments.subject) },
            console,
        )?;
    }
    if arguments.subject.json {
        console.print(&json::to_text(&output))?;
    } else {
        let mut text = as_text(input, &report, &found, console);
        if let Some((task, demanded)) = &explained {
            text.push('\n');
            text.push_str(&taken_apart(system, *task, demanded, console.layout));
        }
        if let Some(sensitivity) = &sensitivity {
            text.push_str(if is_tighter(&found) { SENSITIVITY_BELOW_BEST } else { SENSITIVITY_OF_TESTS });
            text.push_str(&grown(system, sensitivity, console.layout));
        }
        console.print_text(&(text + &charges::note(arguments.subject.overheads.as_deref())))?;
    }
    if interrupt::requested() {
        console.note("interrupted: the sensitivity is incomplete");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::from_holds(found.schedulable))
}

/// Prints a note for the options of `check` that have no effect.
fn note_options(arguments: &Check, system: &System, console: &Console) {
    let has_bounds = system.scheduler() == Scheduler::PEdf;
    let asked = match (arguments.subject.protocol, arguments.bound) {
        (ProtocolChoice::File, BoundChoice::Best) => None,
        (ProtocolChoice::File, _) if has_bounds => None,
        _ if has_bounds => Some("--protocol has no effect"),
        _ => Some("--protocol and --bound have no effect"),
    };
    note_ruled(asked, system, console);
}

/// The tests of the chosen method.
fn tested(
    choice: BoundChoice,
    system: &System,
    overheads: &Overheads,
    console: &Console,
) -> Result<Scheduled, Untested> {
    if choice == BoundChoice::Classic || system.scheduler() != Scheduler::PEdf {
        return scheduled(system, overheads);
    }
    let (found, uncovered) = best_scheduled(system, overheads)?;
    // As for the bounds under fixed priorities.
    if let Some(why) = uncovered.filter(|why| choice == BoundChoice::Lp || *why == Uncovered::Work) {
        let why = tame(&why.describe(system));
        console.note(format!("linear programs do not prove all that they could, so the classic test decides: {why}"));
    }
    Ok(found)
}

fn explain(
    system: &System,
    overheads: &Overheads,
    found: &Scheduled,
    task: TaskId,
    console: &Console,
) -> Result<(TaskId, Demanded), Exit> {
    let demanded = explain_demand(system, overheads, found, task).map_err(|why| {
        console.error(tame(&why.describe(system)), "remove --explain, or use `p-fp` or `p-edf`");
        Exit::BadInput
    })?;
    Ok((task, demanded))
}

fn taken_apart(system: &System, task: TaskId, demanded: &Demanded, layout: Layout) -> String {
    let sum = demanded.terms.iter().try_fold(Duration::ZERO, |sum, term| sum.checked_add(term.total));
    let fits = match sum {
        Some(sum) if sum <= demanded.interval => "fits",
        _ => "does not fit",
    };
    let interval = units::text(demanded.interval);
    let title =
        format!("{}: every term of what is due on its CPU in {interval}, which {fits}\n", system.task(task).name);
    tame(&title) + "\n" + &terms_table(system, &demanded.terms, sum.map(|sum| ("due", sum)), layout)
}

/// The bounds that the tests give.
#[must_use]
pub fn report(system: &System, found: &Scheduled) -> Report {
    let row = |task| {
        let (response, proved) = (found.responses[TaskId::index(task)], found.proved[TaskId::index(task)]);
        let blocker = found.blocked[TaskId::index(task)];
        let reason = found.describe_unbounded(task);
        // A sufficient test that fails does not show that a deadline is missed, and an exact one not whose. Response
        // times under partitioned EDF are exact.
        let is_beyond = response.is_some_and(|response| response > system.task(task).deadline);
        let is_late = found.exact && system.scheduler() == Scheduler::PEdf && is_beyond;
        let open = !proved && !is_late;
        let proof = (proved && system.scheduler() == Scheduler::PEdf).then(|| found.proof[TaskId::index(task)]);
        let bound = Bound { response, proved, proof, open, blocker, reason, ..Bound::default() };
        Row { task, bound, seen: None, standard: Standard::default() }
    };
    let rows = table_order(system).into_iter().map(row).collect();
    Report { protocol: protocol(system).to_string(), same: Vec::new(), rows, charged: None }
}

/// For verbs that execute or simulate the tasks under EDF: the bounds, or no bounds if the tests do not cover the
/// system and the scheduler does. `what` names the execution in messages, and `asked` is the protocol that the user
/// chose.
///
/// # Errors
/// Overheads that cannot be charged, or nested requests that MSRP does not support; the console has the message.
pub fn promised(
    what: &str,
    input: &Input,
    asked: ProtocolChoice,
    charges: Option<&Charges>,
    console: &Console,
) -> Result<Report, Exit> {
    let system = &input.system;
    let scheduler = system.scheduler();
    if scheduler == Scheduler::PEdf {
        let is_asked = asked != ProtocolChoice::File;
        note_ruled(is_asked.then_some("--protocol has no effect"), system, console);
    }
    let free = Overheads::default();
    let overheads = charges.map_or(&free, |charges| &charges.overheads);
    let found = tested(BoundChoice::Best, system, overheads, console);
    let charged = match (charges, &found) {
        (None, _) => None,
        // That overheads leave no time is a result of the tests.
        (Some(_), Ok(_)) => charges::lengthened(system, overheads, protocol(system)).ok(),
        (Some(charges), Err(_)) => Some(charges.charge(system, protocol(system), console)?),
    };
    match found {
        Ok(found) => {
            if let Some(test) = found.tests.iter().find(|test| test.name == "overheads") {
                let why = tame(&test.describe(system).unwrap_or_default());
                console.note(format!("no deadline is proved, because the overheads leave too little time: {why}"));
            }
            Ok(Report { charged, ..report(system, &found) })
        }
        Err(why @ Untested::Nested(_)) => {
            console.error(tame(&why.describe(system)), "put both into one section, or both on one CPU");
            Err(Exit::BadInput)
        }
        Err(why) => {
            let instead = match why {
                Untested::Protocol(_) if scheduler == Scheduler::PEdf => {
                    format!("; {what} here: {}", ruled(system.scheduler()))
                }
                _ => String::new(),
            };
            console.note(format!("there are no bounds: {}{instead}", tame(&why.describe(system))));
            let row = |task| Row { task, bound: Bound::default(), seen: None, standard: Standard::default() };
            let rows = table_order(system).into_iter().map(row).collect();
            Ok(Report { protocol: protocol(system).to_string(), same: Vec::new(), rows, charged })
        }
    }
}

/// Refuses an execution with overheads under `g-edf`. `what` names it.
///
/// # Errors
/// The scheduler is `g-edf`; the console has the message.
pub fn refuse_charges(what: &str, input: &Input, help: &str, console: &Console) -> Result<(), Exit> {
    let scheduler = input.system.scheduler();
    if scheduler != Scheduler::GEdf {
        return Ok(());
    }
    console.error(
        format!(
            "{}: {what} under `{scheduler}` does not support overheads: those of the kernel's EDF (SCHED_DEADLINE) are \
             not measured",
            input.name
        ),
        help,
    );
    Err(Exit::BadInput)
}

/// Whether linear programs prove deadlines that the classic test does not.
fn is_tighter(found: &Scheduled) -> bool {
    found.proof.iter().any(|&proof| proof != Proof::Classic)
}

/// Title of the factors.
const SENSITIVITY_OF_TESTS: &str = "\nSensitivity of the tests above:\n";

/// Title of the factors if linear programs prove more than the test that the factors are about.
const SENSITIVITY_BELOW_BEST: &str = "\nSensitivity of the processor demand (`--bound classic` prints it); the linear \
    programs above may prove deadlines beyond these factors:\n";

fn as_json(input: &Input, report: &Report, found: &Scheduled, sensitivity: Option<&Sensitivity>) -> Output {
    let system = &input.system;
    let test = |test: &lockwright_analysis::Test| TestResult {
        test: test.name.into(),
        cpu: test.cpu.map(|cpu| cpu.0),
        accepts: test.failure.is_none(),
        reason: test.describe(system),
        point: test.point.map(|point| PointResult {
            interval_ns: point.interval.as_ns(),
            due_ns: point.due.as_ns(),
            blocking_ns: point.blocker.map_or(0, |blocker| blocker.total().as_ns()),
            blocked_by: point.blocker.map(|blocker| BlockedBy::new(system, &blocker)),
        }),
    };
    let result = ProtocolResult {
        schedulable: found.schedulable,
        tests: Some(found.tests.iter().map(test).collect()),
        sensitivity: sensitivity.map(|sensitivity| {
            let proof = (system.scheduler() == Scheduler::PEdf).then_some(Proof::Classic);
            SensitivityResult::new(system, sensitivity, proof)
        }),
        ..ProtocolResult::new(system, report)
    };
    Output::new(json::Verb::Check, &input.name, vec![result])
}

fn as_text(input: &Input, report: &Report, found: &Scheduled, console: &Console) -> String {
    let system = &input.system;
    let mut text = table::headline(&input.name, system, report) + "\n";
    text.push_str(&table::tasks(system, report, console));
    text.push_str(&table::reasons(system, report));
    let columns = [
        Column::words("test", found.tests.iter().map(ToString::to_string)),
        Column::words(
            "accepts",
            found.tests.iter().map(|test| if test.failure.is_none() { "yes" } else { "no" }.into()),
        ),
        Column::prose("why not", found.tests.iter().map(|test| test.describe(system).unwrap_or_default())),
    ];
    text.push('\n');
    text.push_str(&console.layout.draw(&columns));
    let verdict = match (found.schedulable, found.exact) {
        (true, _) if found.tests.len() > 1 && system.scheduler().is_global() => {
            "All deadlines hold: one test that accepts is enough."
        }
        (true, _) if is_tighter(found) => "All deadlines hold: for each CPU, one test that accepts is enough.",
        (true, _) => "All deadlines hold.",
        (false, true) => "A deadline can be missed.",
        (false, false) => "Not every deadline is proved to hold; none is shown to be missed.",
    };
    text.push_str(&blocked(system, report, console.layout));
    text.push_str(&format!("\n{verdict}\n"));
    text
}

/// The critical section that can delay each task the longest, if there is one.
fn blocked(system: &System, report: &Report, layout: Layout) -> String {
    let all: Vec<_> = report.rows.iter().filter_map(|row| Some((row.task, row.bound.blocker?))).collect();
    if all.is_empty() {
        return String::new();
    }
    let name = |task: TaskId| system.task(task).name.clone();
    let columns = [
        Column::words("task", all.iter().map(|&(task, _)| name(task))),
        Column::words("may wait for", all.iter().map(|(_, by)| name(by.task))),
        Column::words("on", all.iter().map(|(_, by)| system.resource(by.resource).name.clone())),
        Column::numbers("section", all.iter().map(|(_, by)| units::text(by.length))),
        Column::numbers("spinning before", all.iter().map(|(_, by)| units::text(by.spin))),
    ];
    format!("\n{}", layout.draw(&columns))
}
