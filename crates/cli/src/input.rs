//! Reading the file a verb was given, or standard input.

use crate::args::Subject;
use crate::console::{Console, tame};
use crate::diagnose::{self, Severity};
use crate::exit::Exit;
use crate::fault::{self, Fault, Place};
use lockwright_model::format::{self, Diagnostic, MAX_DIAGNOSTICS, MAX_SOURCE_BYTES, Placed, Placing};
use lockwright_model::{MAX_EXECUTED_TASKS, Overheads, Protocol, Scheduler, System};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file as it was read.
pub struct Source {
    /// As messages call it.
    pub name: String,
    /// What a system without a name of its own is called.
    pub stem: String,
    bytes: Vec<u8>,
}

/// A system and what to call it.
pub struct Input {
    /// The system.
    pub system: System,
    /// Its name, or the name of its file; safe to print.
    pub name: String,
}

impl Source {
    /// Reads a whole file; `-` is standard input.
    ///
    /// # Errors
    /// Says what is wrong, and with which file, on the console.
    pub fn read(path: &Path, console: &Console) -> Result<Self, Exit> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
        let result = if is_stdin { read_all(io::stdin().lock()) } else { File::open(path).and_then(read_all) };
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
            console.say_raw(&diagnose::render(diagnostic, severity, &self.name, &text, console.color_err));
            if severity == Severity::Error {
                let (line, column) = diagnostic.line_column(&text).unzip();
                fault::keep(Fault {
                    message: tame(&diagnostic.message),
                    help: diagnostic.help.as_deref().map(tame),
                    place: Some(Place { file: tame(&self.name), line, column }),
                });
            }
        }
        if severity == Severity::Error && diagnostics.len() >= MAX_DIAGNOSTICS {
            console.note(format!("only the first {MAX_DIAGNOSTICS} faults are shown"));
        }
    }

    /// The text; what is not UTF-8 is refused.
    ///
    /// # Errors
    /// Says where the first byte at fault is.
    pub fn text(&self, console: &Console) -> Result<&str, Exit> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let line = self.bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
            console.error(format!("{}:{line}: the text is not UTF-8", self.name), "save the file as UTF-8");
            Exit::BadInput
        })
    }

    /// The system that a task-set file describes.
    ///
    /// # Errors
    /// Shows what is wrong with it.
    pub fn system(&self, console: &Console) -> Result<Input, Exit> {
        self.placed(Placing::File, console).map(|(input, _)| input)
    }

    /// As [`Source::system`], and how many tasks the file places on CPUs.
    ///
    /// # Errors
    /// As [`Source::system`].
    pub fn placed(&self, placing: Placing, console: &Console) -> Result<(Input, usize), Exit> {
        let Placed { system, placed } = format::parse_placed_bytes(&self.bytes, placing).map_err(|faults| {
            self.show(&faults, Severity::Error, console);
            Exit::BadInput
        })?;
        let name = if system.name().is_empty() { self.stem.as_str() } else { system.name() };
        let name = tame(name).replace('\n', " ");
        Ok((Input { system, name }, placed))
    }
}

/// At most a byte more than what is read of a file at all, so that the reader can say that it is too long.
fn read_all(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The system's words without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn help(error: &io::Error, path: &Path) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => {
            "give the path of a file, from this folder, or - for standard input"
        }
        io::ErrorKind::IsADirectory => "give the path of a file in it",
        io::ErrorKind::PermissionDenied => "let this user read it",
        _ => "give the path of a file, or - for standard input",
    }
}

/// As [`read_system`], for verbs that execute the tasks, and know some schedulers.
///
/// # Errors
/// As [`read_system`], and where the file asks for another scheduler, or has more tasks than are executed.
pub fn read_scheduled(path: &Path, known: &[Scheduler], console: &Console) -> Result<Input, Exit> {
    let input = read_system(path, console)?;
    let scheduler = input.system.scheduler();
    if !known.contains(&scheduler) {
        let others = if scheduler == Scheduler::PEdf { "`check` and `simulate` know" } else { "`check` knows" };
        console.error(
            format!("{}: it is for `{scheduler}`, which only {others}", input.name),
            "use `lockwright check`, or say scheduler = \"p-fp\" and give each task a cpu",
        );
        return Err(Exit::BadInput);
    }
    let tasks = input.system.tasks().len();
    if tasks > MAX_EXECUTED_TASKS {
        console.error(
            format!("{}: it has {tasks} tasks; at most {MAX_EXECUTED_TASKS} are simulated or executed", input.name),
            "use `lockwright check`, or leave tasks out",
        );
        return Err(Exit::BadInput);
    }
    Ok(input)
}

/// Reads the overheads file at `path`.
///
/// # Errors
/// Says what is wrong with it on the console.
pub fn read_overheads(path: &Path, console: &Console) -> Result<Overheads, Exit> {
    let source = Source::read(path, console)?;
    format::parse_overheads(source.text(console)?).map_err(|faults| {
        source.show(&faults, Severity::Error, console);
        Exit::BadInput
    })
}

/// Reads the task-set file at `path`.
///
/// # Errors
/// Says what is wrong with it on the console.
pub fn read_system(path: &Path, console: &Console) -> Result<Input, Exit> {
    Source::read(path, console)?.system(console)
}

/// The protocols asked for under which the system can execute: some have no nested requests.
///
/// # Errors
/// One was asked for, and cannot; it has been said on the console.
pub fn executable(subject: &Subject, system: &System, console: &Console) -> Result<Vec<Protocol>, Exit> {
    let asked = subject.protocol.protocols(system);
    if let Some((&protocol, id)) =
        asked.iter().find_map(|protocol| Some((protocol, system.refused_in_clusters(*protocol)?)))
        && asked.iter().all(|&protocol| system.refused_in_clusters(protocol).is_some())
    {
        let name = tame(&system.resource(id).name);
        let why = format!("`{name}` is used in a cluster of several CPUs, which `{protocol}` does not know");
        console.error(why, "use omlp, or give each task one CPU");
        return Err(Exit::BadInput);
    }
    const HELP: &str = "put both into one group (docs/task-set.md), or use another protocol";
    let mut protocols = asked;
    let all = protocols.len();
    protocols.retain(|&protocol| system.refused_in_clusters(protocol).is_none());
    if protocols.len() < all {
        console.note("left out, for they know no clusters of several CPUs: all protocols but omlp");
    }
    let mut refused = Vec::new();
    protocols.retain(|&protocol| {
        let nested = system.refused_nesting(protocol);
        refused.extend(nested.map(|nested| (protocol, nested)));
        nested.is_none()
    });
    let Some(&(protocol, (task, outer, inner))) = refused.first() else { return Ok(protocols) };
    let name = |id| tame(&system.resource(id).name);
    let nests =
        format!("`{}` requests `{}` while it holds `{}`", tame(&system.task(task).name), name(inner), name(outer));
    if protocols.is_empty() {
        console.error(format!("{nests}, and `{protocol}` has no nested requests"), HELP);
        return Err(Exit::BadInput);
    }
    let names: Vec<&str> = refused.iter().map(|(protocol, _)| protocol.name()).collect();
    console.note(format!("left out, for they have no nested requests: {}; {nests}", names.join(", ")));
    Ok(protocols)
}
