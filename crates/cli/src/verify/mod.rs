//! `lockwright verify`: what the machine takes is measured and charged, bounds are proved with it, the tasks are executed, and what was
//! seen is held against the bounds.

mod cache;
mod machine;

use crate::args::Verify;
use crate::charges::{self, Charges};
use crate::console::{Console, tame};
use crate::exit::Exit;
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Charged, Origin, Output};
use crate::report::{Report, Row, Standard, Verdict, interrupt_text};
use crate::run::{Length, Ran, Stopper, Worst, as_json, compared, execute, warn};
use crate::same::grouped;
use crate::trace_file::TraceFile;
use crate::units;
use cache::Cache;
use lockwright_engine::{Ended, RunError};
use lockwright_model::format::parse_overheads;
use lockwright_model::{Protocol, Scheduler, System};
use std::path::PathBuf;

/// Names shown in a verdict for each reason.
const NAMES_SHOWN: usize = 4;

/// Overheads, and where they are from.
struct Source {
    charges: Charges,
    origin: Origin,
    /// The file they are in.
    file: Option<PathBuf>,
}

/// Does `verify`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn verify(arguments: &Verify, console: &Console) -> Result<Exit, Exit> {
    let input = input::read_scheduled(&arguments.subject.file, &[Scheduler::PFp, Scheduler::CFp], console)?;
    let system = &input.system;
    let protocols = input::executable(&arguments.subject, system, console)?;
    let given = Charges::of(arguments.overheads.as_deref(), console)?;
    let trace = |protocol| TraceFile::create(arguments.trace.as_deref(), protocol, protocols.len(), console);
    // Before the long work begins, so that a bad path is found out first: the first protocol is executed in any case.
    protocols.first().map(|&protocol| trace(protocol)).transpose()?;
    let length = Length::of(arguments.duration, system);
    let stopper = Stopper::listen(console);
    let source = match given {
        Some(charges) => Some(Source { charges, origin: Origin::Given, file: arguments.overheads.clone() }),
        None => overheads(arguments.remeasure, &stopper, console)?,
    };
    let mut runs: Vec<Ran> = Vec::new();
    let mut missing = protocols.clone();
    if let Some(source) = &source {
        let bounds = |&protocol: &Protocol| Ok((protocol, bounds(&input, protocol, &source.charges, console)?));
        // All of them first: what cannot be charged is found out before anything is executed.
        let groups = grouped(system, protocols.iter().map(bounds).collect::<Result<_, Exit>>()?);
        let traces = groups.iter().map(|(protocol, _)| trace(*protocol)).collect::<Result<Vec<_>, Exit>>()?;
        for ((protocol, bounds), trace) in groups.iter().zip(traces) {
            let Some(control) = stopper.control() else { break };
            let outcome = execute(&input, *protocol, length, trace, &control, console)?;
            runs.push(Ran::new(system, bounds.clone(), outcome));
        }
        missing = groups[runs.len()..].iter().map(|(protocol, _)| *protocol).collect();
    }
    warn(&runs, system, console);
    let verdicts = runs.iter().map(|ran| verdict(system, ran));
    if arguments.subject.json {
        let mut output = as_json(json::Verb::Verify, &input, length, &runs);
        // A run answers for all protocols that have its rules.
        let of_each = runs.iter().zip(verdicts).flat_map(|(ran, verdict)| vec![verdict; 1 + ran.report.same.len()]);
        for (result, verdict) in output.results.iter_mut().zip(of_each) {
            result.verdict = Some(verdict);
        }
        let file = |source: &Source| source.file.as_ref().map(|file| file.display().to_string());
        let charged = source.as_ref().map(|source| Charged { file: file(source), origin: source.origin });
        console.print(&json::to_text(&Output { overheads: charged, ..output }))?;
    } else {
        let charging = source.as_ref().map(|source| source.charges.name.as_str());
        let text = |(ran, verdict): (&Ran, String)| {
            format!("{}\nverdict: {verdict}\n", ran.text(&input, length, charging, console))
        };
        let texts = runs.iter().zip(verdicts).map(text).collect::<Vec<_>>().join("\n");
        console.print_text(&(compared(&input, &runs, console) + &texts))?;
    }
    if interrupt::requested() {
        console.warn(interrupt_text(&missing));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::from_holds(runs.iter().all(Ran::holds)))
}

/// Kept ones, or else measured ones. `None` where a signal ended the measurement.
fn overheads(remeasure: bool, stopper: &Stopper, console: &Console) -> Result<Option<Source>, Exit> {
    let cache = Cache::of_this_machine();
    if cache.is_none() {
        console.note("neither XDG_CACHE_HOME nor HOME names a folder: the overheads cannot be kept");
    }
    if let Some(cache) = cache.as_ref().filter(|_| !remeasure) {
        let path = cache.path().display();
        match cache.read() {
            Ok(Some(kept)) => {
                console.note(format!(
                    "charging the overheads in {path}, measured {} ago; --remeasure measures them anew",
                    cache::age_text(kept.age)
                ));
                let name = "the overheads measured here".into();
                let charges = Charges::new(kept.overheads, name);
                return Ok(Some(Source { charges, origin: Origin::Kept, file: Some(cache.path().to_owned()) }));
            }
            Ok(None) => {}
            Err(why) => console.note(format!("the overheads in {path} do not serve: {why}; measuring them anew")),
        }
    }
    console.note("measuring what this machine takes; this takes some seconds");
    let Some(control) = stopper.control() else { return Ok(None) };
    let measured = machine::overheads(&control).map_err(|error| refuse(&error, console))?;
    let Some(text) = measured else { return Ok(None) };
    let overheads = parse_overheads(&text).map_err(|_| {
        console.error("the measured overheads are no overheads file: this is a bug in lockwright", "please report it");
        Exit::Machine
    })?;
    let kept = cache.and_then(|cache| match cache.write(&text) {
        Ok(()) => {
            console.note(format!("the overheads are kept for a day in {}", cache.path().display()));
            Some(cache)
        }
        Err(error) => {
            console.warn(format!("the overheads cannot be kept in {}: {error}", cache.path().display()));
            None
        }
    });
    let charges = Charges::new(overheads, "the overheads measured here".into());
    Ok(Some(Source { charges, origin: Origin::Measured, file: kept.map(|cache| cache.path().to_owned()) }))
}

/// Says why nothing could be measured, and what to do.
fn refuse(error: &RunError, console: &Console) -> Exit {
    let message = match error {
        RunError::Stuck { tasks } => format!("{} of the measuring threads did not come back", tasks.len()),
        _ => error.to_string(),
    };
    let help = "`lockwright doctor` says what this machine lacks for real time, and how to mend it";
    console.error(format!("cannot measure: {message}"), help);
    Exit::Machine
}

/// What is promised with the overheads.
fn bounds(input: &Input, protocol: Protocol, charges: &Charges, console: &Console) -> Result<Report, Exit> {
    console.note(format!("proving bounds of {} under {protocol} with {}", input.name, charges.name));
    let charged = charges.charge(&input.system, protocol, console)?;
    Ok(charges::bounds(&input.system, Some(charged), protocol).judged_by(Standard::Proved))
}

/// In a sentence.
fn verdict(system: &System, ran: &Ran) -> String {
    if ran.outcome.ended == Ended::Interrupted {
        return "none, for the run was interrupted".into();
    }
    let rows = &ran.report.rows;
    let jobs: u64 = rows.iter().filter_map(|row| row.seen).map(|seen| seen.observation.jobs).sum();
    let jobs = units::count(jobs, "job");
    let named = |is_meant: &dyn Fn(&Row) -> bool| -> Option<String> {
        let names: Vec<String> = rows
            .iter()
            .filter(|row| is_meant(row))
            .map(|row| format!("`{}`", tame(&system.task(row.task).name).replace('\n', " ")))
            .collect();
        match names.len() {
            0 => None,
            all if all > NAMES_SHOWN => {
                Some(format!("{} and {} more", names[..NAMES_SHOWN].join(", "), all - NAMES_SHOWN))
            }
            _ => Some(names.join(", ")),
        }
    };
    let mut faults = Vec::new();
    faults.extend(named(&|row| !row.bound.proved).map(|names| format!("not every deadline is proved ({names})")));
    let is_late = |row: &Row| row.seen.is_some_and(|seen| seen.observation.misses > 0);
    faults.extend(named(&is_late).map(|names| format!("deadlines were missed ({names})")));
    if let Some(names) = named(&|row| row.above_bound() == Some(true)) {
        let most = ran.worst.iter().filter_map(Worst::excess).max().unwrap_or_default();
        faults.push(format!("responses were above their bounds, by up to {} ({names})", units::text(most)));
    }
    if ran.outcome.ended == Ended::Watchdog {
        faults.push("the watchdog ended the run".into());
    }
    if !faults.is_empty() {
        return format!("does not hold: {}", faults.join("; "));
    }
    let unseen = named(&|row| row.verdict() == Verdict::NotSeen);
    let unseen = unseen.map_or_else(String::new, |names| format!("; no job was seen of {names}"));
    format!("holds: every deadline is proved, and {jobs} were seen, none late or above its bound{unseen}")
}
