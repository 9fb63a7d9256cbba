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
use crate::ranking::ranking;
use crate::report::{Bound, Rank, Report, Row, Standard, interrupt_text};
use crate::same::grouped;
use crate::table;
use crate::tame::line;
use crate::terms::{grown, grown_for, terms_table};
use crate::units;
use lockwright_analysis::{
    Demanded, Proof, Scheduled, Sensitivity, Uncovered, Untested, best_scheduled, explain_demand, scheduled,
};
use lockwright_model::{Duration, Overheads, Protocol, Scheduler, System, TaskId};
use lockwright_report::table_order;

/// What to do where overheads cannot be charged to long resources.
const UNCHARGED: &str = "use `msrp`, or `check`, `simulate` or `run` without --overheads";
/// Why a scheduler leaves no choice of the locks.
const RULED: &str = "under `p-edf` resources use SRP on one CPU and MSRP across CPUs; `fmlp_long` across CPUs and \
    objects keep their protocol";

/// The protocol of resources that name none: under partitioned EDF `msrp`, which is `srp` on one processor, unless the
/// file names `fmlp_long` or one of objects, or the requested resources name the same one themselves; under global
/// schedulers that of the file. None without requests.
#[must_use]
pub fn protocol(system: &System) -> Protocol {
    match system.protocol() {
        _ if !system.is_sharing() => Protocol::None,
        Some(named) if named.is_object() || named == Protocol::FmlpLong => named,
        _ if system.scheduler() == Scheduler::PEdf => named_alike(system).unwrap_or(Protocol::Msrp),
        _ => system.protocol_or_default(),
    }
}

/// The protocol of objects that all requested resources name themselves, or `fmlp_long` if all those do that are shared
/// across processors.
fn named_alike(system: &System) -> Option<Protocol> {
    let requested = || system.resource_ids().filter(|&id| !system.users(id).is_empty());
    let shared = requested().filter(|&id| system.is_global(id));
    let object = same(requested().map(|id| system.resource(id).protocol)).filter(|all| all.is_object());
    object.or_else(|| same(shared.map(|id| system.resource(id).protocol)).filter(|&all| all == Protocol::FmlpLong))
}

/// The protocol that all of these are, if there are any.
fn same(mut named: impl Iterator<Item = Option<Protocol>>) -> Option<Protocol> {
    let first = named.next()??;
    named.all(|other| other == Some(first)).then_some(first)
}

/// The chosen protocols, for a system under EDF or a global scheduler. Prints a note for a choice without effect, and
/// for another protocol in the file.
#[must_use]
pub fn protocols(choice: ProtocolChoice, system: &System, console: &Console) -> Vec<Protocol> {
    let is_global = system.scheduler().is_global();
    if !system.is_sharing() {
        if choice != ProtocolChoice::File {
            console.note("--protocol has no effect here: no task uses a resource");
        }
        return vec![Protocol::None];
    }
    if !is_global {
        let has_effect =
            |named: Protocol| matches!(named, Protocol::Srp | Protocol::Msrp | Protocol::FmlpLong) || named.is_object();
        if matches!(choice, ProtocolChoice::One(protocol) if !has_effect(protocol)) {
            console.note(format!("--protocol has no effect here: {RULED}"));
        }
        let own = system.resource_ids().filter_map(|resource| system.resource(resource).protocol);
        // The tests refuse readers.
        let is_ruled_out = |named: &Protocol| !has_effect(*named) && !named.has_readers();
        if let Some(named) = own.chain(system.protocol()).find(is_ruled_out) {
            console.note(format!("the file's protocol `{named}` has no effect here: {RULED}"));
        }
    }
    const OBJECTS: [Protocol; 2] = [Protocol::LockFree, Protocol::WaitFree];
    match choice {
        ProtocolChoice::All if is_global => {
            [[Protocol::None, Protocol::FmlpLong, Protocol::FmlpShort].as_slice(), &OBJECTS].concat()
        }
        ProtocolChoice::All => [[Protocol::Msrp, Protocol::FmlpLong].as_slice(), &OBJECTS].concat(),
        ProtocolChoice::One(protocol) if is_global || protocol.is_object() || protocol == Protocol::FmlpLong => {
            vec![protocol]
        }
        ProtocolChoice::One(_) => vec![Protocol::Msrp],
        ProtocolChoice::File => vec![protocol(system)],
    }
}

/// The [`protocols`] that can be executed, and whose overheads are known if they are to be charged.
///
/// # Errors
/// There are none; the console has the message.
pub fn executable(
    choice: ProtocolChoice,
    system: &System,
    is_charged: bool,
    console: &Console,
) -> Result<Vec<Protocol>, Exit> {
    let mut protocols = protocols(choice, system, console);
    if is_charged && system.scheduler() == Scheduler::PEdf {
        protocols = with_charges(protocols, system, console)?;
    }
    let refused = |protocol: Protocol| Some((system.refused_globally(protocol)?, protocol));
    if let (true, Some((resource, protocol))) = (protocols.len() == 1, protocols.first().and_then(|&one| refused(one)))
    {
        let (name, named) = (line(&system.resource(resource).name), system.protocol_of(resource, protocol));
        let why = format!("`{name}` is under `{named}`, which assigns tasks to CPUs");
        let scheduler = system.scheduler();
        console.error(
            format!("{why}: it cannot be executed under `{scheduler}`"),
            "use fmlp_short, fmlp_long, lock_free, wait_free or none",
        );
        return Err(Exit::BadInput);
    }
    protocols.retain(|&protocol| refused(protocol).is_none());
    input::without_nesting(protocols, system, console)
}

/// The protocols under which overheads can be charged to all waits.
///
/// # Errors
/// There are none; the console has the message.
fn with_charges(protocols: Vec<Protocol>, system: &System, console: &Console) -> Result<Vec<Protocol>, Exit> {
    let (uncharged, charged): (Vec<_>, Vec<_>) = protocols.into_iter().partition(|&one| system.has_global_locks(one));
    let why = "nothing charges overheads to waits under `fmlp_long` and `p-edf`";
    match uncharged.as_slice() {
        [] => {}
        _ if charged.is_empty() => {
            console.error(why, UNCHARGED);
            return Err(Exit::BadInput);
        }
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.name()).collect();
            console.note(format!("left out: {}: {why}", names.join(", ")));
        }
    }
    Ok(charged)
}

/// All results for one protocol.
struct Answer {
    protocol: Protocol,
    system: System,
    found: Scheduled,
    report: Report,
    explained: Option<(TaskId, Demanded)>,
    sensitivity: Option<Sensitivity>,
}

/// Tests the system under its scheduler, and prints the results.
///
/// # Errors
/// No test covers the system; the console has the message.
pub fn check(arguments: &Check, input: &Input, overheads: &Overheads, console: &Console) -> Result<Exit, Exit> {
    let system = &input.system;
    let task = arguments.explain.as_deref().map(|name| input::find_task(system, name, console)).transpose()?;
    let html = html::open(&arguments.subject, console)?;
    if system.scheduler().is_global() && arguments.bound != BoundChoice::Best {
        console.note(format!("--bound has no effect here: `{}` has no linear programs", system.scheduler()));
    }
    let (answers, missing) = answers(arguments, system, overheads, task, console)?;
    let given = arguments.subject.overheads.is_some();
    let results = answers.iter().map(result).collect();
    let mut output = Output::new(json::Verb::Check, &input.name, results);
    output.overheads = arguments.subject.overheads.as_deref().map(json::Charged::given);
    output.interrupted = (!missing.is_empty()).then_some(true);
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
        let reports = answers.iter().map(|answer| (answer.protocol, answer.report.clone())).collect();
        let groups = grouped(system, reports);
        let mut texts: Vec<String> = Vec::new();
        if answers.len() > 1 {
            let reports: Vec<&Report> = groups.iter().map(|(_, report)| report).collect();
            texts.push(ranking(input, &reports, console.layout));
        }
        let shown = answers.iter().filter(|answer| groups.iter().any(|(protocol, _)| *protocol == answer.protocol));
        texts.extend(shown.map(|answer| text(input, answer, console)));
        console.print_text(&(texts.join("\n") + &charges::note(arguments.subject.overheads.as_deref())))?;
    }
    let holds = answers.iter().all(|answer| answer.found.schedulable);
    Ok(ended(&missing, arguments.sensitivity, holds, console))
}

/// The status, with a warning if a signal made the results of `check` incomplete.
pub(crate) fn ended(missing: &[Protocol], sensitivity: bool, holds: bool, console: &Console) -> Exit {
    if !missing.is_empty() {
        console.warn(interrupt_text(missing));
    } else if sensitivity && interrupt::requested() {
        console.warn("interrupted: the sensitivity is incomplete");
    } else {
        return Exit::from_holds(holds);
    }
    Exit::Interrupted
}

/// The results under each chosen protocol that the tests cover, the best first, and the protocols that were not reached
/// before a signal.
fn answers(
    arguments: &Check,
    system: &System,
    overheads: &Overheads,
    task: Option<TaskId>,
    console: &Console,
) -> Result<(Vec<Answer>, Vec<Protocol>), Exit> {
    let protocols = protocols(arguments.subject.protocol, system, console);
    let mut answers = Vec::new();
    let mut missing = protocols.as_slice();
    while let Some((&protocol, rest)) = missing.split_first().filter(|_| answers.is_empty() || !interrupt::requested())
    {
        missing = rest;
        let system = system.clone().with_protocol(protocol);
        let found = match tested(arguments.bound, &system, overheads, console) {
            Ok(found) => found,
            Err(why) if protocols.len() > 1 => {
                console.note(format!("{protocol} is left out: {}", line(&why.describe(&system))));
                continue;
            }
            Err(why) => {
                let short = system.clone().with_protocol(Protocol::FmlpShort);
                let is_covered = short.scheduler().is_global() && scheduled(&short, overheads).is_ok();
                let first = if is_covered { "`--protocol fmlp_short` or " } else { "" };
                let help = match why {
                    Untested::Uncharged(_) => UNCHARGED.into(),
                    _ => format!("use {first}`p-fp`, or remove from the file what is not covered"),
                };
                console.error(line(&why.describe(&system)), &help);
                return Err(Exit::BadInput);
            }
        };
        let explained = task.map(|task| explain(&system, overheads, &found, task, console)).transpose()?;
        // If the overheads leave no time, a test says so.
        let given = arguments.subject.overheads.is_some();
        let charged = if given { charges::lengthened(&system, overheads, protocol).ok() } else { None };
        let report = Report { charged, ..report(&system, protocol, &found) };
        let sensitivity = if arguments.sensitivity { grown_for(&system, overheads, console) } else { None };
        answers.push(Answer { protocol, system, found, report, explained, sensitivity });
    }
    if answers.is_empty() {
        console.error("no test covers this system under any protocol", "the notes above give the reasons");
        return Err(Exit::BadInput);
    }
    answers.sort_by_key(|answer: &Answer| Rank::of(system, &answer.report));
    Ok((answers, missing.to_vec()))
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
        let why = line(&why.describe(system));
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
        console.error(line(&why.describe(system)), "remove --explain");
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
    if system.scheduler().is_global() {
        let title = "every term of the execution time that the tests count for a job";
        let title = format!("{}: {title}", system.task(task).name);
        return line(&title) + "\n\n" + &terms_table(system, &demanded.terms, sum.map(|sum| ("counted", sum)), layout);
    }
    let interval = units::text(demanded.interval);
    let title = format!("{}: every term of what is due on its CPU in {interval}, which {fits}", system.task(task).name);
    line(&title) + "\n\n" + &terms_table(system, &demanded.terms, sum.map(|sum| ("due", sum)), layout)
}

/// The bounds that the tests give.
#[must_use]
pub fn report(system: &System, protocol: Protocol, found: &Scheduled) -> Report {
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
    Report { protocol: protocol.to_string(), same: Vec::new(), rows, charged: None }
}

/// For verbs that execute or simulate the tasks under EDF or a global scheduler: the bounds under this protocol, or no
/// bounds if the tests do not cover the system and the scheduler does.
///
/// # Errors
/// Overheads that cannot be charged, or nested requests that the protocol does not support; the console has the
/// message.
pub fn promised(
    input: &Input,
    protocol: Protocol,
    charges: Option<&Charges>,
    console: &Console,
) -> Result<Report, Exit> {
    let system = &input.system.clone().with_protocol(protocol);
    let free = Overheads::default();
    let overheads = charges.map_or(&free, |charges| &charges.overheads);
    let found = tested(BoundChoice::Best, system, overheads, console);
    let charged = match (charges, &found) {
        (None, _) => None,
        // That overheads leave no time is a result of the tests.
        (Some(_), Ok(_)) => charges::lengthened(system, overheads, protocol).ok(),
        (Some(charges), Err(_)) => Some(charges.charge(system, protocol, console)?),
    };
    match found {
        Ok(found) => {
            if let Some((because, test)) = found.tests.iter().find_map(|test| Some((undecided(test.name)?, test))) {
                let why = line(&test.describe(system).unwrap_or_default());
                console.note(format!("no deadline is proved, because {because}: {why}"));
            }
            Ok(Report { charged, ..report(system, protocol, &found) })
        }
        Err(why @ Untested::Nested(_)) if !system.scheduler().is_global() => {
            console.error(line(&why.describe(system)), "put both into one section, or both on one CPU");
            Err(Exit::BadInput)
        }
        Err(why) => {
            let instead = match why {
                Untested::Protocol(_) if !system.scheduler().is_global() => format!("; here, {RULED}"),
                _ => String::new(),
            };
            console.note(format!("there are no bounds: {}{instead}", line(&why.describe(system))));
            let row = |task| Row { task, bound: Bound::default(), seen: None, standard: Standard::default() };
            let rows = table_order(system).into_iter().map(row).collect();
            Ok(Report { protocol: protocol.to_string(), same: Vec::new(), rows, charged })
        }
    }
}

/// Why no test decides, if `name` stands for what is computed before any test.
fn undecided(name: &str) -> Option<&'static str> {
    match name {
        "overheads" => Some("the overheads leave too little time"),
        "failed attempts" => Some("no bound on the time of failed attempts was found"),
        "waits" => Some("no bound on the waits was found"),
        _ => None,
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
            "{}: {what} under `{scheduler}` does not support overheads: those of its execution are not measured",
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

fn result(answer: &Answer) -> ProtocolResult {
    let Answer { system, found, .. } = answer;
    let test = |test: &lockwright_analysis::Test| TestResult {
        test: test.name.into(),
        cpu: test.cpu.map(|cpu| cpu.0),
        accepts: test.failure.is_none(),
        reason: test.describe(system),
        point: test.point.map(|point| PointResult {
            interval_ns: point.interval.as_ns(),
            due_ns: point.due.as_ns(),
            blocking_ns: point.blocking.as_ns(),
            blocked_by: point.blocker.map(|blocker| BlockedBy::new(system, &blocker)),
        }),
    };
    ProtocolResult {
        schedulable: found.schedulable,
        tests: Some(found.tests.iter().map(test).collect()),
        sensitivity: answer.sensitivity.as_ref().map(|sensitivity| {
            let proof = (system.scheduler() == Scheduler::PEdf).then_some(Proof::Classic);
            SensitivityResult::new(system, sensitivity, proof)
        }),
        explain: answer.explained.as_ref().map(|(task, demanded)| {
            let explain = Explain::new(system, *task, &demanded.terms);
            let interval = Some(demanded.interval).filter(|_| !system.scheduler().is_global());
            Explain { interval_ns: interval.map(Duration::as_ns), ..explain }
        }),
        ..ProtocolResult::new(system, &answer.report)
    }
}

/// The tables of one protocol.
fn text(input: &Input, answer: &Answer, console: &Console) -> String {
    let mut text = as_text(&input.name, answer, console);
    if let Some((task, demanded)) = &answer.explained {
        text.push('\n');
        text.push_str(&taken_apart(&answer.system, *task, demanded, console.layout));
    }
    if let Some(sensitivity) = &answer.sensitivity {
        text.push_str(if is_tighter(&answer.found) { SENSITIVITY_BELOW_BEST } else { SENSITIVITY_OF_TESTS });
        text.push_str(&grown(&answer.system, sensitivity, console.layout));
    }
    text
}

fn as_text(name: &str, answer: &Answer, console: &Console) -> String {
    let Answer { system, found, report, .. } = answer;
    let mut text = table::headline(name, system, report) + "\n";
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
