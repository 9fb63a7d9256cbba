//! `lockwright record`: a task set and findings from a running program.

mod bounds;
mod page;
mod schedule;
mod text;
mod trace;

use crate::args::Record;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFile, ResultFolder};
use crate::html;
use crate::interrupt;
use crate::json::{self, RecordOutput};
use crate::tame::tame;
use lockwright_record::file::format::MAGIC;
use lockwright_record::{Choices, Findings, Recording, Run, StartError, Trends, has_wait_at, infer, start};
use lockwright_report::perfetto;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Executes `record`.
///
/// # Errors
/// The console has the message.
pub fn record(arguments: &Record, console: &Console) -> Result<Exit, Exit> {
    let folder = folder(arguments);
    if let Some(known) = &arguments.read {
        refuse_file(known, "give --read a directory that `lockwright record` wrote", console)?;
    }
    refuse_file(&folder, "give -o a directory", console)?;
    refuse_foreign(&folder, console)?;
    let read = |path: &PathBuf| {
        Recording::read(path).map_err(|error| {
            console.error(tame(&error.to_string()), "give --read a directory that `lockwright record` wrote");
            Exit::BadInput
        })
    };
    let known = arguments.read.as_ref().map(read).transpose()?;
    let create = || ResultFolder::create(&folder, "--output", console);
    // The page may be in the directory.
    let open = |path: &PathBuf| create().and_then(|_| ResultFile::open(path, "--html", console));
    let html = arguments.html.as_ref().map(open).transpose()?;
    let recording = known.map_or_else(|| run(arguments, &folder, console), Ok)?;
    told(arguments, &recording, &create()?, html, console)
}

const SYSTEM: &str = "system.toml";
const EVENTS: &str = "events.lwr";
const TRACE: &str = "trace.pftrace";
/// The files in the directory of the results.
pub const RESULTS: [&str; 4] = [SYSTEM, EVENTS, "report.json", TRACE];

/// The directory of the results.
pub fn folder(arguments: &Record) -> PathBuf {
    let of_program = || {
        let path = arguments.program.first().map(PathBuf::from).unwrap_or_default();
        let name = path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned());
        PathBuf::from(format!("record-{name}"))
    };
    arguments.output.clone().or_else(|| arguments.read.clone()).unwrap_or_else(of_program)
}

/// Refuses a file in place of a directory.
fn refuse_file(path: &Path, help: &str, console: &Console) -> Result<(), Exit> {
    if path.exists() && !path.is_dir() {
        console.error(format!("{} is not a directory", path.display()), help);
        return Err(Exit::BadInput);
    }
    Ok(())
}

/// Refuses to replace files that no recording wrote.
fn refuse_foreign(folder: &Path, console: &Console) -> Result<(), Exit> {
    let refuse = |message: String| {
        console.error(message, "give another directory with -o");
        Err(Exit::BadInput)
    };
    let mut is_ours = false;
    for name in RESULTS {
        let path = folder.join(name);
        let recorded = match File::open(&path) {
            // A trace has no head: it is that of the recording beside it.
            Ok(_) if name == TRACE => Ok(is_ours),
            Ok(file) => is_recorded(name, file),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Err(error),
        };
        match recorded {
            // The directory of a recording: all four are its own.
            Ok(true) if name == SYSTEM => return Ok(()),
            Ok(true) => is_ours = true,
            Ok(false) => return refuse(format!("{} is there, and no recording wrote it", path.display())),
            Err(error) => return refuse(format!("cannot read {}: {error}", path.display())),
        }
    }
    Ok(())
}

/// Whether a recording wrote this file, one of [`RESULTS`].
fn is_recorded(name: &str, file: File) -> io::Result<bool> {
    /// The beginning of a task set that a recording wrote.
    const HEAD: &[u8] = b"# Recorded: ";
    #[derive(Deserialize)]
    struct Verb {
        verb: String,
    }
    let begins = |file: File, head: &[u8]| {
        let mut begin = Vec::new();
        file.take(head.len() as u64).read_to_end(&mut begin).map(|_| begin)
    };
    match name {
        SYSTEM => Ok(begins(file, HEAD)? == HEAD),
        // A full disk cuts a recording short.
        EVENTS => Ok(MAGIC.starts_with(&begins(file, &MAGIC)?)),
        _ => {
            let read: Result<Verb, _> = serde_json::from_reader(BufReader::new(file));
            Ok(read.is_ok_and(|output| output.verb == RecordOutput::VERB))
        }
    }
}

/// Executes the program and reads what was recorded.
fn run(arguments: &Record, folder: &Path, console: &Console) -> Result<Recording, Exit> {
    let options = lockwright_record::Options::new(folder);
    // An interrupt at the terminal ends the program as well. What was recorded until then is told.
    interrupt::listen(|| {}, console);
    let Run { recording, status, .. } = start(&arguments.program, &options).map_err(|error| {
        if matches!(error, StartError::Folder(_))
            && let Err(exit) = ResultFolder::create(folder, "--output", console)
        {
            return exit;
        }
        let is_unwritten = matches!(error, StartError::Unwritten(_) | StartError::Folder(_));
        console.error(
            tame(&error.to_string()),
            if is_unwritten { "free space, or give another directory with -o" } else { "" },
        );
        if is_unwritten { Exit::Machine } else { Exit::BadInput }
    })?;
    if !status.success() {
        console.note(format!("the program ended with {status}"));
    }
    Ok(recording)
}

/// Infers, writes the files and prints.
fn told(
    arguments: &Record,
    recording: &Recording,
    folder: &ResultFolder,
    html: Option<ResultFile>,
    console: &Console,
) -> Result<Exit, Exit> {
    let choices = Choices { margin: arguments.margin.unwrap_or(0), job_at: arguments.job_at.clone() };
    let mut findings = Findings::of(recording, arguments.sections_longer.map(lockwright_model::Duration::as_ns));
    let trends = Trends::of(recording);
    // Callbacks of ROS 2 are tasks, and so the threads of what follows.
    let by_callback = recording.by_callback();
    if let Some(split) = &by_callback {
        findings.threads = Findings::of(split, None).threads;
    }
    let recording = by_callback.as_ref().unwrap_or(recording);
    for value in choices.job_at.iter().filter(|value| !has_wait_at(recording, value)) {
        console.note(format!("--job-at {value} has no effect: no wait of this recording is there"));
    }
    let inferred = infer(recording, &choices);
    let bounds = inferred.system.as_ref().ok().and_then(|system| bounds::bounds(system, &inferred.tasks));
    let check = bounds.as_ref().map(bounds::Bounds::results).unwrap_or_default();
    let output = RecordOutput { check, ..RecordOutput::new(recording, &inferred, &findings, &trends) };
    let system_path = folder.path().join(SYSTEM);
    match &output.system {
        Some(file) => folder.write(SYSTEM, Ok::<_, io::Error>(file.clone()), console)?,
        // A task set of an earlier recording would be taken for that of this one.
        None => {
            let removed = std::fs::remove_file(&system_path);
            if let Err(error) = removed
                && error.kind() != ErrorKind::NotFound
            {
                console.error(format!("cannot remove {}: {error}", system_path.display()), "remove it: it is older");
                return Err(Exit::of_output(&error));
            }
        }
    }
    folder.write("report.json", Ok::<_, io::Error>(json::to_text(&output)), console)?;
    let trace = ResultFile::open(&folder.path().join(TRACE), "--output", console)?;
    let (scene, records) = trace::trace(recording, &inferred);
    trace.write(|out| Ok(perfetto::write(&scene, &records, out)?), console)?;
    if let Some(file) = html {
        let recorded = schedule::schedule(recording, &inferred, &findings, &records);
        html::write_file(file, &page::page(&output, bounds.as_ref(), recorded.as_ref(), arguments), console)?;
    }
    for warning in &inferred.warnings {
        console.warn(warning);
    }
    if arguments.json {
        console.print(&json::to_text(&output))?;
    } else {
        console.print_text(&text::text(&output, bounds.as_ref(), console))?;
    }
    if let Err(why) = &inferred.system {
        console.warn(format!("no task set: {why}"));
        for out in &inferred.left_out {
            console.note(format!("`{}`: {}", recording.thread_name(out.thread), out.reason));
        }
        return Ok(Exit::Misses);
    }
    console.note(format!("the task set is in {}", system_path.display()));
    Ok(Exit::Holds)
}
