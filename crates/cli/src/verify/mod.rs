//! `lockwright verify`: measures overheads, computes bounds with them, executes the tasks, and compares.

mod cache;

use crate::args::Verify;
use crate::charges::{self, Charges};
use crate::console::Console;
use crate::exit::Exit;
use crate::html;
use crate::input::{self, Input};
use crate::interrupt;
use crate::json::{self, Charged, Origin, Output};
use crate::report::{Report, Row, Standard, Verdict, interrupt_text};
use crate::run::{Length, Ran, Stopper, Worst, as_json, compared, execute_all, warn, write_page};
use crate::same::grouped;
use crate::schedule::ScheduleFiles;
use crate::scheduled;
use crate::tame::line;
use crate::units;
use cache::Cache;
use lockwright_engine::{Ended, RunConfig, RunError};
use lockwright_model::format::{parse_overheads, write_overheads};
use lockwright_model::{Duration, Overhead, Overheads, Protocol, Scheduler, System};
use std::path::PathBuf;

/// Readings of each operation in the measurement of overheads.
const READINGS: usize = 2_000;
/// Greatest number of names for each reason in a verdict.
const NAMES_SHOWN: usize = 4;

/// Overheads and their origin.
struct Source {
    charges: Charges,
    origin: Origin,
    /// The file that has them.
    file: Option<PathBuf>,
}

/// Executes `verify`.
///
/// # Errors
/// The console has the message.
pub fn verify(arguments: &Verify, console: &Console) -> Result<Exit, Exit> {
    let known = [Scheduler::PFp, Scheduler::CFp, Scheduler::PEdf, Scheduler::GEdf];
    let input = input::read_scheduled(&arguments.execution.subject.file, &known, console)?;
    let system = &input.system;
    scheduled::refuse_charges("verify", &input, "use `lockwright run`", console)?;
    let protocols = match system.scheduler().is_by_deadline() {
        true => scheduled::executable(arguments.execution.subject.protocol, system, true, console)?,
        false => input::executable(&arguments.execution.subject, system, console)?,
    };
    let given = Charges::of(arguments.execution.subject.overheads.as_deref(), console)?;
    let files =
        |protocol| ScheduleFiles::create(system, &arguments.execution.schedules, protocol, protocols.len(), console);
    // A bad path is reported before the long work begins. These files stay open: the reader of a pipe ends when it is
    // closed.
    let first = protocols.first().map(|&protocol| Ok((protocol, files(protocol)?))).transpose()?;
    let html = html::open(&arguments.execution.subject, console)?;
    let length = Length::of(arguments.execution.duration, system);
    let stopper = Stopper::listen(console);
    let source = match given {
        Some(charges) => {
            Some(Source { charges, origin: Origin::Given, file: arguments.execution.subject.overheads.clone() })
        }
        None => overheads(arguments.remeasure, &stopper, console)?,
    };
    let (mut runs, mut ended) = (Vec::new(), Ok(()));
    let mut missing = protocols.clone();
    if let Some(source) = &source {
        // Under EDF, tests say so if overheads leave no time.
        let charged = match system.scheduler().is_by_deadline() {
            true => protocols.clone(),
            false => Charges::possible(Some(&source.charges), protocols.clone(), system, console)?,
        };
        let bounds = |&protocol: &Protocol| Ok((protocol, bounds(&input, protocol, &source.charges, console)?));
        // All bounds first, so that overheads that cannot be charged cost no run.
        let groups = grouped(system, charged.iter().map(bounds).collect::<Result<_, Exit>>()?);
        let mut first = first;
        let files = groups.iter().map(|&(protocol, _)| match first.take_if(|(known, _)| *known == protocol) {
            Some((_, files)) => Ok(files),
            None => files(protocol),
        });
        let files = files.collect::<Result<Vec<_>, Exit>>()?;
        let config = |protocol| RunConfig::new(protocol, length.duration);
        (runs, ended) = execute_all(&input, &groups, files, config, &stopper, console)?;
        missing = groups[runs.len()..].iter().map(|(protocol, _)| *protocol).collect();
    }
    warn(&runs, system, console);
    let verdicts = runs.iter().map(|ran| verdict(system, ran));
    let file = |source: &Source| source.file.as_ref().map(|file| file.display().to_string());
    let charged = source.as_ref().map(|source| Charged { file: file(source), origin: source.origin });
    let mut output = Output { overheads: charged, ..as_json(json::Verb::Verify, &input, &length, &runs) };
    // One run stands for all protocols with the same rules.
    let of_each = runs.iter().zip(verdicts.clone()).flat_map(|(ran, verdict)| vec![verdict; 1 + ran.report.same.len()]);
    for (result, verdict) in output.results.iter_mut().zip(of_each) {
        result.verdict = Some(verdict);
    }
    if let Some(file) = html {
        let overheads = source.as_ref().map(|source| &source.charges.overheads);
        let page = write_page(file, &input, &output, &runs, overheads, &arguments.execution.subject, console);
        ended = ended.and(page);
    }
    if arguments.execution.subject.json {
        console.print(&json::to_text(&output))?;
    } else {
        let charging = source.as_ref().map(|source| source.charges.name.as_str());
        let text = |(ran, verdict): (&Ran, String)| {
            format!("{}\nverdict: {verdict}\n", ran.text(&input, &length, charging, console))
        };
        let texts = runs.iter().zip(verdicts).map(text).collect::<Vec<_>>().join("\n");
        console.print_text(&(compared(&input, &runs, console) + &texts))?;
    }
    if interrupt::requested() {
        console.warn(interrupt_text(&missing));
        return Ok(Exit::Interrupted);
    }
    ended?;
    Ok(Exit::from_holds(runs.iter().all(Ran::holds)))
}

/// Stored overheads, or else measured ones. `None` if a signal ended the measurement.
fn overheads(remeasure: bool, stopper: &Stopper, console: &Console) -> Result<Option<Source>, Exit> {
    let cache = Cache::of_this_machine();
    if cache.is_none() {
        console.note("the overheads cannot be stored: neither XDG_CACHE_HOME nor HOME names a directory");
    }
    if let Some(cache) = cache.as_ref().filter(|_| !remeasure) {
        let path = cache.path().display();
        match cache.read() {
            Ok(Some(kept)) => {
                console.note(format!(
                    "charging the overheads in {path}, measured {} ago; --remeasure measures them again",
                    cache::age_text(kept.age)
                ));
                let name = "the overheads measured here".into();
                let charges = Charges::new(kept.overheads, name);
                return Ok(Some(Source { charges, origin: Origin::Kept, file: Some(cache.path().to_owned()) }));
            }
            Ok(None) => {}
            Err(why) => console.note(format!("the overheads in {path} are not used: {why}; measuring them again")),
        }
    }
    console.note("measuring the overheads of this machine; this takes some seconds");
    let Some(control) = stopper.control() else { return Ok(None) };
    let measured = lockwright_measure::overheads(&Protocol::ALL, READINGS, &control);
    let measured = measured.map_err(|error| refuse(&error, console))?;
    if interrupt::requested() {
        return Ok(None);
    }
    if let Some(period) = without_rest(&measured) {
        console.error(
            format!(
                "while the overheads were measured, other work had a CPU for {} without a break",
                units::text(period)
            ),
            "repeat it when the machine and its host do less",
        );
        return Err(Exit::Machine);
    }
    let text = write_overheads(&measured);
    let overheads = parse_overheads(&text).map_err(|_| {
        console.error("the measured overheads are not a valid file: this is a bug in lockwright", "please report it");
        Exit::Machine
    })?;
    let kept = cache.and_then(|cache| match cache.write(&text) {
        Ok(()) => {
            console.note(format!("the overheads are stored for a day in {}", cache.path().display()));
            Some(cache)
        }
        Err(error) => {
            console.warn(format!("the overheads cannot be stored in {}: {error}", cache.path().display()));
            None
        }
    });
    let charges = Charges::new(overheads, "the overheads measured here".into());
    Ok(Some(Source { charges, origin: Origin::Measured, file: kept.map(|cache| cache.path().to_owned()) }))
}

/// The period of the tick if interrupts and the host took all of it, as on a machine that stands still for a while.
/// Such overheads leave no time, and no file has them.
fn without_rest(measured: &Overheads) -> Option<Duration> {
    let period = measured.tick_period;
    (period != Duration::ZERO && measured.cost(Overhead::Tick).with(0) >= period).then_some(period)
}

/// Prints why the measurement failed, and what to do.
fn refuse(error: &RunError, console: &Console) -> Exit {
    let message = match error {
        RunError::Stuck { tasks } => format!("{} of the measuring threads did not end", tasks.len()),
        _ => error.to_string(),
    };
    let help = "`lockwright doctor` prints what this machine lacks for real time, and how to fix it";
    console.error(format!("cannot measure: {message}"), help);
    Exit::Machine
}

/// The bounds with the overheads.
fn bounds(input: &Input, protocol: Protocol, charges: &Charges, console: &Console) -> Result<Report, Exit> {
    console.note(format!("computing bounds of {} under {protocol} with {}", input.name, charges.name));
    let bounds = match input.system.scheduler().is_by_deadline() {
        true => scheduled::promised(input, protocol, Some(charges), console)?,
        false => {
            let charged = charges.charge(&input.system, protocol, console)?;
            charges::bounds(&input.system, Some(charged), protocol)
        }
    };
    Ok(bounds.judged_by(Standard::Proved))
}

/// The verdict, in one sentence.
fn verdict(system: &System, ran: &Ran) -> String {
    if ran.outcome.ended == Ended::Interrupted {
        return "none: the run was interrupted".into();
    }
    let rows = &ran.report.rows;
    let jobs: u64 = rows.iter().filter_map(|row| row.seen).map(|seen| seen.observation.jobs).sum();
    let jobs = units::count(jobs, "job");
    let named = |is_meant: &dyn Fn(&Row) -> bool| -> Option<String> {
        let names: Vec<String> = rows
            .iter()
            .filter(|row| is_meant(row))
            .map(|row| format!("`{}`", line(&system.task(row.task).name)))
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
    // A job that is above its bound is named below.
    let is_refuted = |row: &Row| is_late(row) && row.bound.proved && row.bound.response.is_none();
    faults.extend(named(&is_refuted).map(|names| format!("proved deadlines were missed ({names})")));
    let is_late = |row: &Row| is_late(row) && !is_refuted(row);
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

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::Cost;

    /// What is measured is a valid file, unless ticks leave no time.
    #[test]
    fn measured_ticks_leave_time() {
        for (ms, is_valid) in [(3, true), (4, false), (5, false)] {
            let mut measured = Overheads::default();
            measured.tick_period = Duration::from_ms(4);
            measured.set(Overhead::Tick, Cost::constant(Duration::from_ms(ms)));
            assert_eq!(parse_overheads(&write_overheads(&measured)).is_ok(), is_valid, "{ms}");
            assert_eq!(without_rest(&measured).is_none(), is_valid, "{ms}");
        }
        assert_eq!(without_rest(&Overheads::default()), None);
    }
}
