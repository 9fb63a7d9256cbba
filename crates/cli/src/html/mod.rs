//! `--html`: everything about a result as one page.
//!
//! The numbers are those of the object that `--json` prints. Pictures are drawn from the same bounds and records.

mod caveats;
pub mod facts;
mod pictures;
pub mod tables;

pub use pictures::{Watched, bounds as bounds_by_term, jobs, strips};

use crate::args::Subject;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFile;
use crate::input::Input;
use crate::json::{Origin, Output, ProtocolResult, Verb};
use crate::kept::Kept;
use lockwright_model::Overheads;
use lockwright_model::format::write_overheads;
use lockwright_report::bounds;
use lockwright_report::page::{Page, Part, Section};
use std::ffi::OsString;

/// A result with all that the page shows of it.
pub struct Account<'a> {
    /// The system.
    pub input: &'a Input,
    /// The numbers.
    pub output: &'a Output,
    /// The bounds by their terms.
    pub bounds: Vec<bounds::Row>,
    /// The observations under each protocol.
    pub watched: Vec<Watched<'a>>,
    /// The overheads that are charged.
    pub overheads: Option<&'a Overheads>,
    /// The command.
    pub command: &'a [OsString],
    /// Options that repeat the result, in addition to those of the command.
    pub options: Vec<String>,
}

impl<'a> Account<'a> {
    /// The numbers alone.
    pub fn new(input: &'a Input, output: &'a Output, subject: &'a Subject) -> Self {
        let command = &subject.command;
        Self { input, output, bounds: Vec::new(), watched: Vec::new(), overheads: None, command, options: Vec::new() }
    }
}

/// Where the page goes.
pub enum Sink {
    /// The file of `--html`.
    File(ResultFile),
    /// To the server.
    Kept(Kept),
}

/// Opens the file of `--html`, if it is wanted.
///
/// # Errors
/// The file cannot be written; the console has the message.
pub fn open(subject: &Subject, console: &Console) -> Result<Option<Sink>, Exit> {
    if let Some(kept) = &subject.kept {
        return Ok(Some(Sink::Kept(kept.clone())));
    }
    let file = subject.html.as_deref().map(|path| ResultFile::open(path, "--html", console)).transpose()?;
    Ok(file.map(Sink::File))
}

/// Writes the page.
///
/// # Errors
/// The file cannot be written; the console has the message.
pub fn write(sink: Sink, account: &Account<'_>, console: &Console) -> Result<(), Exit> {
    let page = page(account);
    match sink {
        Sink::File(file) => write_file(file, &page, console)?,
        Sink::Kept(kept) => kept.put(page.to_result()),
    }
    Ok(())
}

/// Writes a page into a file.
///
/// # Errors
/// The file cannot be written; the console has the message.
pub fn write_file(file: ResultFile, page: &Page<'_>, console: &Console) -> Result<(), Exit> {
    let page = page.to_html();
    let path = file.write(|out| Ok(out.write_all(page.as_bytes())?), console)?;
    console.note(format!("the page is in {}", path.display()));
    Ok(())
}

fn page<'a>(account: &'a Account<'a>) -> Page<'a> {
    let output = account.output;
    let results = &output.results;
    let watched = |result: &ProtocolResult| account.watched.iter().find(|one| one.protocol == result.protocol);
    // Protocols with the same rules were observed once.
    let own = || results.iter().filter(|result| result.same_rules_as.is_none());
    let each = |parts: &dyn Fn(&ProtocolResult) -> Vec<Part<'a>>| -> Vec<Part<'a>> {
        match results.as_slice() {
            [result] => parts(result),
            _ => own().enumerate().filter_map(|(place, result)| folded(place, result, parts(result))).collect(),
        }
    };
    let mut facts = facts::machine();
    facts.push(("Command", facts::command(account.command, &account.options)));
    let compared = if results.len() > 1 { vec![Part::Table(tables::compared(output))] } else { Vec::new() };
    let worst = |result: &ProtocolResult| -> Vec<Part<'a>> {
        let one = account.watched.iter().find(|one| one.protocol == result.protocol);
        one.map_or_else(Vec::new, |one| {
            jobs(&format!("under {}", one.protocol), one.system, one.records, account.input.system.tasks().len())
        })
    };
    let sections = vec![
        Section { title: "Tasks", parts: each(&tasks) },
        Section { title: "Bounds by term", parts: bounds_by_term(&account.bounds) },
        Section { title: "Seen against promised", parts: each(&|result| strips(result, watched(result))) },
        Section { title: "The worst job of each task", parts: each(&worst) },
        Section { title: "Protocols compared", parts: compared },
        Section { title: "Overheads", parts: overheads(account) },
        Section { title: "Caveats", parts: list(caveats::caveats(&account.input.system, output)) },
        Section { title: "How to repeat this", parts: vec![Part::Facts(facts)] },
        Section { title: "The task-set file", parts: vec![Part::Source(account.input.text.clone())] },
    ];
    let verb = match output.verb {
        Verb::Check => "checked",
        Verb::Simulate => "simulated",
        Verb::Run => "executed",
        Verb::Verify => "verified",
    };
    Page { title: format!("{}, {verb}", output.system), verdicts: tables::verdicts(output), sections }
}

/// The parts about one of several protocols; the first is open.
fn folded<'a>(place: usize, result: &ProtocolResult, parts: Vec<Part<'a>>) -> Option<Part<'a>> {
    let title = format!("Under {}", tables::named(result));
    (!parts.is_empty()).then_some(Part::Folded(title, place == 0, parts))
}

fn list<'a>(lines: Vec<String>) -> Vec<Part<'a>> {
    if lines.is_empty() { Vec::new() } else { vec![Part::List(lines)] }
}

/// The table of tasks, and what belongs to it.
fn tasks<'a>(result: &ProtocolResult) -> Vec<Part<'a>> {
    let mut parts = vec![Part::Table(tables::tasks(result))];
    parts.extend(list(tables::reasons(result)));
    parts.extend(tables::tests(result).map(Part::Table));
    parts.extend(tables::sensitivity(result).map(Part::Table));
    parts.extend(result.beside.as_ref().map(|beside| Part::Table(tables::beside(beside, &result.protocol))));
    parts
}

fn overheads<'a>(account: &Account<'a>) -> Vec<Part<'a>> {
    let Some(charged) = &account.output.overheads else {
        return vec![Part::Text("No overheads are charged.".into())];
    };
    let origin = match charged.origin {
        Origin::Given => "The bounds charge the overheads of a file",
        Origin::Kept => "The bounds charge overheads that this machine measured within the last day",
        Origin::Measured => "The bounds charge overheads that were measured for this result",
    };
    let file = charged.file.as_ref().map_or_else(String::new, |file| format!(": {file}"));
    let values = account.overheads.map(|overheads| Part::Source(write_overheads(overheads)));
    std::iter::once(Part::Text(format!("{origin}{file}."))).chain(values).collect()
}
