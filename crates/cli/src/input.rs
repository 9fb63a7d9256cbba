//! Reading the file a verb was given, or standard input.

use crate::args::Subject;
use crate::console::Console;
use crate::diagnose::{self, Severity};
use crate::exit::Exit;
use crate::fault::{self, Fault, Place};
use crate::streams;
use crate::tame::line;
use lockwright_model::format::{self, DIAGNOSTICS_MAX, Diagnostic, Placed, Placing, SOURCE_BYTES_MAX};
use lockwright_model::{EXECUTED_TASKS_MAX, Overheads, Protocol, Scheduler, System, TaskId};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of a file.
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Name of a system that has no name of its own.
    pub stem: String,
    bytes: Vec<u8>,
}

/// A system and its name.
pub struct Input {
    /// The system.
    pub system: System,
    /// The name of the system, or of its file, without control characters.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// Reads a whole file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read; the console has the message.
    pub fn read(path: &Path, console: &Console) -> Result<Self, Exit> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
        let result = if is_stdin { read_all(streams::input()) } else { File::open(path).and_then(read_all) };
        match result {
            Ok(bytes) => {
                let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
                Ok(Self { name, stem: if is_stdin { "stdin".into() } else { stem }, bytes })
            }
            Err(error) => {
                console.error(format!("cannot read {name}: {}", reason(&error)), help(&error, path));
                Err(Exit::BadInput)
            }
        }
    }

    /// Shows diagnostics of this file.
    pub fn show(&self, diagnostics: &[Diagnostic], severity: Severity, console: &Console) {
        let text = String::from_utf8_lossy(&self.bytes);
        for diagnostic in diagnostics {
            console.say_raw(&diagnose::render(diagnostic, severity, &self.name, &text, console.look()));
            if severity == Severity::Error {
                let (row, column) = diagnostic.line_column(&text).unzip();
                fault::keep(Fault {
                    message: line(&diagnostic.message),
                    help: diagnostic.help.as_deref().map(line),
                    place: Some(Place { file: line(&self.name), line: row, column }),
                });
            }
        }
        if severity == Severity::Error && diagnostics.len() >= DIAGNOSTICS_MAX {
            console.note(format!("only the first {DIAGNOSTICS_MAX} faults are shown"));
        }
    }

    /// The text.
    ///
    /// # Errors
    /// The text is not UTF-8; the console has the line.
    pub fn text(&self, console: &Console) -> Result<&str, Exit> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let number = self.bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
            console.error(format!("{}:{number}: the text is not UTF-8", self.name), "save the file as UTF-8");
            Exit::BadInput
        })
    }

    /// The system that a task-set file describes.
    ///
    /// # Errors
    /// The file is invalid; the console has the faults.
    pub fn system(&self, console: &Console) -> Result<Input, Exit> {
        self.placed(Placing::File, console).map(|(input, _)| input)
    }

    /// As [`Source::system`], with the number of tasks that the file assigns to CPUs.
    ///
    /// # Errors
    /// As [`Source::system`].
    pub fn placed(&self, placing: Placing, console: &Console) -> Result<(Input, usize), Exit> {
        let Placed { system, placed, .. } = format::parse_placed_bytes(&self.bytes, placing).map_err(|faults| {
            self.show(&faults, Severity::Error, console);
            Exit::BadInput
        })?;
        let name = if system.name().is_empty() { self.stem.as_str() } else { system.name() };
        let name = line(name);
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        Ok((Input { system, name, text }, placed))
    }
}

/// Reads one byte more than a file may have, so that the parser can refuse files that are too long.
fn read_all(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text file that another file names. The error is a message without the path.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let bytes = File::open(path).and_then(read_all).map_err(|error| reason(&error))?;
    String::from_utf8(bytes).map_err(|_| "the text is not UTF-8".into())
}

/// The message of the operating system without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn help(error: &io::Error, path: &Path) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => {
            "give the path of a file, relative to the current directory, or - for standard input"
        }
        io::ErrorKind::IsADirectory => "give the path of a file in this directory",
        io::ErrorKind::PermissionDenied => "give this user read permission",
        _ => "give the path of a file, or - for standard input",
    }
}

/// As [`read_system`], for verbs that execute the tasks and support only these schedulers.
///
/// # Errors
/// As [`read_system`], and if the file has another scheduler or too many tasks.
pub fn read_scheduled(path: &Path, known: &[Scheduler], console: &Console) -> Result<Input, Exit> {
    let input = read_system(path, console)?;
    executes(&input, known, console)?;
    Ok(input)
}

/// Refuses a system that the command does not execute: only these schedulers are `known`.
///
/// # Errors
/// The system has another scheduler, or too many tasks; the console has the message.
pub fn executes(input: &Input, known: &[Scheduler], console: &Console) -> Result<(), Exit> {
    let scheduler = input.system.scheduler();
    if !known.contains(&scheduler) {
        let others = match scheduler {
            Scheduler::PEdf => "`check`, `simulate`, `run` and `verify` support",
            Scheduler::GEdf => "`check`, `simulate` and `run` support",
            _ => "`check` and `simulate` support",
        };
        console.error(
            format!("{}: its scheduler is `{scheduler}`, which only {others}", input.name),
            "use `lockwright check`, or set scheduler = \"p-fp\" and give each task a cpu",
        );
        return Err(Exit::BadInput);
    }
    let tasks = input.system.tasks().len();
    if tasks > EXECUTED_TASKS_MAX {
        console.error(
            format!("{} has {tasks} tasks; at most {EXECUTED_TASKS_MAX} can be simulated or executed", input.name),
            "use `lockwright check`, or remove tasks",
        );
        return Err(Exit::BadInput);
    }
    Ok(())
}

/// Reads the overheads file at `path`. A file without costs gets a note.
///
/// # Errors
/// The file is invalid; the console has the faults.
pub fn read_overheads(path: &Path, console: &Console) -> Result<Overheads, Exit> {
    let source = Source::read(path, console)?;
    let overheads = format::parse_overheads(source.text(console)?).map_err(|faults| {
        source.show(&faults, Severity::Error, console);
        Exit::BadInput
    })?;
    if overheads == Overheads::default() {
        console.note(format!("{} has no costs, so nothing is charged", source.name));
    }
    Ok(overheads)
}

/// Reads the task-set file at `path`.
///
/// # Errors
/// The file is invalid; the console has the faults.
pub fn read_system(path: &Path, console: &Console) -> Result<Input, Exit> {
    Source::read(path, console)?.system(console)
}

/// The chosen protocols that support this system.
///
/// # Errors
/// None of them does; the console has the message.
pub fn executable(subject: &Subject, system: &System, console: &Console) -> Result<Vec<Protocol>, Exit> {
    let asked = subject.protocol.protocols(system);
    if let Some((&protocol, id)) =
        asked.iter().find_map(|protocol| Some((protocol, system.refused_in_clusters(*protocol)?)))
        && asked.iter().all(|&protocol| system.refused_in_clusters(protocol).is_some())
    {
        let name = line(&system.resource(id).name);
        let why = format!("`{name}` is used in a cluster of several CPUs, which `{protocol}` does not support");
        console.error(why, "use omlp, or give each task one CPU");
        return Err(Exit::BadInput);
    }
    let mut protocols = asked;
    if system.scheduler() == Scheduler::GEdf {
        protocols = by_deadlines(protocols, system, "the scheduler `p-edf`", console)?;
    }
    let all = protocols.len();
    protocols.retain(|&protocol| system.refused_in_clusters(protocol).is_none());
    if protocols.len() < all {
        console.note("all protocols except omlp are left out: they do not support clusters of several CPUs");
    }
    without_nesting(protocols, system, console)
}

/// The protocols that are executed by deadlines for this system: under `g-edf`, or by the kernel's EDF. `instead` is
/// another way.
///
/// # Errors
/// There is none of them; the console has the message.
pub(crate) fn by_deadlines(
    mut protocols: Vec<Protocol>,
    system: &System,
    instead: &str,
    console: &Console,
) -> Result<Vec<Protocol>, Exit> {
    // Under `p-edf`, a resource under `none` is under `srp` or `msrp`.
    let is_global = system.scheduler() == Scheduler::GEdf;
    let refused = |protocol: Protocol| Some((system.refused_by_deadlines(protocol)?, protocol));
    let first = protocols.first().and_then(|&first| refused(first));
    let all = protocols.len();
    protocols.retain(|&protocol| refused(protocol).is_none());
    if let Some((resource, protocol)) = first.filter(|_| protocols.is_empty()) {
        let (name, ruling) = (line(&system.resource(resource).name), system.protocol_of(resource, protocol));
        let (why, others) = match is_global {
            true if system.has_global_locks(protocol) => {
                ("is not executed beside locks of the FMLP", "fmlp_short, fmlp_long, lock_free or wait_free")
            }
            true => ("is not executed under `g-edf`", "fmlp_short, fmlp_long, lock_free, wait_free or none"),
            false => ("the kernel's EDF does not support", "lock_free or wait_free"),
        };
        let why = format!("`{name}` is under `{ruling}`, which {why} (docs/edf.md)");
        console.error(why, &format!("use {others}, or {instead}"));
        return Err(Exit::BadInput);
    }
    if protocols.len() < all {
        let names: Vec<&str> = protocols.iter().map(|protocol| protocol.name()).collect();
        let how = if is_global { "under `g-edf`" } else { "by the kernel's EDF" };
        let names = names.join(", ");
        console.note(format!("all protocols except {names} are left out: this system is not executed with them {how}"));
    }
    Ok(protocols)
}

/// The protocols that support the nested requests of this system.
///
/// # Errors
/// None of them does; the console has the message.
pub(crate) fn without_nesting(
    mut protocols: Vec<Protocol>,
    system: &System,
    console: &Console,
) -> Result<Vec<Protocol>, Exit> {
    const HELP: &str = "put both into one group (docs/task-set.md), or use another protocol";
    let mut refused = Vec::new();
    protocols.retain(|&protocol| {
        let nested = system.refused_nesting(protocol);
        refused.extend(nested.map(|nested| (protocol, nested)));
        nested.is_none()
    });
    let Some(&(protocol, (task, outer, inner))) = refused.first() else { return Ok(protocols) };
    let name = |id| line(&system.resource(id).name);
    let nests =
        format!("`{}` requests `{}` while it holds `{}`", line(&system.task(task).name), name(inner), name(outer));
    if protocols.is_empty() {
        console.error(format!("{nests}, and `{protocol}` does not support nested requests"), HELP);
        return Err(Exit::BadInput);
    }
    let names: Vec<&str> = refused.iter().map(|(protocol, _)| protocol.name()).collect();
    console.note(format!("left out because they do not support nested requests: {}; {nests}", names.join(", ")));
    Ok(protocols)
}

/// Finds the task with this name.
///
/// # Errors
/// The console has the message.
pub(crate) fn find_task(system: &System, name: &str, console: &Console) -> Result<TaskId, Exit> {
    if let Some(task) = system.task_ids().find(|&task| system.task(task).name == name) {
        return Ok(task);
    }
    let names = || system.tasks().iter().map(|task| task.name.as_str());
    let help = match format::nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tasks are {}", names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    console.error(format!("there is no task `{name}`"), &help);
    Err(Exit::BadInput)
}
