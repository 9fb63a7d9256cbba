//! `lockwright check` under schedulers other than partitioned fixed priorities: what each test says.

use crate::args::{BoundChoice, Check, ProtocolChoice};
use crate::check::{charged_note, grown, grown_for};
use crate::console::{Console, tame};
use crate::exit::Exit;
use crate::input::Input;
use crate::interrupt;
use crate::json::{self, Output, ProtocolResult, SensitivityResult, TestResult};
use crate::report::{Bound, Report, Row, table_order};
use crate::table::{self, Column};
use lockwright_analysis::{Scheduled, Sensitivity, scheduled};
use lockwright_model::{Overheads, System, TaskId};

/// Tests the system under its scheduler, and prints what came out.
///
/// # Errors
/// Where no test covers it: that has been said on the console.
pub fn check(arguments: &Check, input: &Input, overheads: &Overheads, console: &Console) -> Result<Exit, Exit> {
    let system = &input.system;
    if arguments.explain.is_some() {
        let scheduler = system.scheduler();
        console
            .error(format!("there are no terms to explain under `{scheduler}`"), "leave --explain out, or use `p-fp`");
        return Err(Exit::BadInput);
    }
    if arguments.subject.protocol != ProtocolChoice::File || arguments.bound != BoundChoice::Classic {
        console.note("--protocol and --bound do nothing here: resources are under SRP and MSRP, or there are none");
    }
    let found = scheduled(system, overheads).map_err(|why| {
        console.error(tame(&why.describe(system)), "use `p-fp`, or leave out of the file what is not covered");
        Exit::BadInput
    })?;
    let report = report(system, &found);
    let sensitivity = if arguments.sensitivity { grown_for(system, overheads, console) } else { None };
    let text = if arguments.subject.json {
        json::to_text(&as_json(input, &report, &found, sensitivity.as_ref()))
    } else {
        as_text(input, &report, &found, sensitivity.as_ref(), console)
    };
    console.print(&(text + &charged_note(arguments)))?;
    if interrupt::requested() {
        console.note("interrupted: the sensitivity is not complete");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::from_holds(found.schedulable))
}

fn report(system: &System, found: &Scheduled) -> Report {
    let is_sharing = system.task_ids().any(|id| !system.requests(id).is_empty());
    let row = |task| {
        let (response, proved) = (found.responses[TaskId::index(task)], found.proved[TaskId::index(task)]);
        Row { task, bound: Bound { response, proved, ..Bound::default() }, seen: None }
    };
    Report {
        protocol: if is_sharing { "msrp".into() } else { "none".into() },
        rows: table_order(system).into_iter().map(row).collect(),
    }
}

fn as_json(input: &Input, report: &Report, found: &Scheduled, sensitivity: Option<&Sensitivity>) -> Output {
    let system = &input.system;
    let test = |test: &lockwright_analysis::Test| TestResult {
        test: test.name.into(),
        cpu: test.cpu.map(|cpu| cpu.0),
        accepts: test.failure.is_none(),
        reason: test.describe(system),
    };
    let result = ProtocolResult {
        schedulable: found.schedulable,
        tests: Some(found.tests.iter().map(test).collect()),
        sensitivity: sensitivity.map(|found| SensitivityResult::new(system, found)),
        ..ProtocolResult::new(system, report)
    };
    Output::new(json::Verb::Check, &input.name, vec![result])
}

fn as_text(
    input: &Input,
    report: &Report,
    found: &Scheduled,
    sensitivity: Option<&Sensitivity>,
    console: &Console,
) -> String {
    let system = &input.system;
    let sharing = if report.protocol == "none" { String::new() } else { format!(" and {}", report.protocol) };
    let mut text =
        format!("{}, {}{sharing}\n\n", table::system_line(&input.name, system).trim_end(), system.scheduler());
    text.push_str(&table::tasks(system, report, console.color_out));
    let columns = [
        Column::words("test", found.tests.iter().map(ToString::to_string)),
        Column::words(
            "accepts",
            found.tests.iter().map(|test| if test.failure.is_none() { "yes" } else { "no" }.into()),
        ),
        Column::words("why not", found.tests.iter().map(|test| test.describe(system).unwrap_or_default())),
    ];
    text.push('\n');
    text.push_str(&table::draw(&columns));
    let verdict = match (found.schedulable, found.exact) {
        (true, _) if found.tests.len() > 1 && system.scheduler().is_global() => {
            "All deadlines hold: one test that accepts is enough."
        }
        (true, _) => "All deadlines hold.",
        (false, true) => "A deadline can be missed.",
        (false, false) => "Not every deadline is proved to hold; none is shown to be missed.",
    };
    text.push_str(&format!("\n{verdict}\n"));
    if let Some(sensitivity) = sensitivity {
        text.push('\n');
        text.push_str(&grown(system, sensitivity));
    }
    text
}
