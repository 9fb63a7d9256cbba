//! The result of a text: what `simulate` says of it, or `check` if it has more tasks than are simulated.

use super::sections::{Section, sections};
use crate::args::{Cli, Serve, Verb};
use crate::console::{Color, Console};
use crate::exit::Exit;
use crate::fault::{self, Fault};
use crate::kept::Kept;
use crate::{check, json, simulate, streams};
use clap::Parser;
use lockwright_model::format::parse_system_bytes;
use lockwright_model::{Duration, EXECUTED_TASKS_MAX, Protocol, System};
use lockwright_sim::default_horizon;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::process::parent_id;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Greatest number of jobs in a schedule, without `--for`.
const JOBS_MAX: f64 = 10_000.0;

/// A text, and the protocol under which it is wanted.
#[derive(Deserialize)]
pub struct Question {
    text: String,
    protocol: String,
}

/// The result for a text.
#[derive(Serialize)]
pub struct Answer {
    /// The page without its head.
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    /// How long it took.
    ms: u128,
    /// Notes and warnings.
    notes: String,
    /// Why there is no page.
    faults: Vec<Fault>,
    /// The sections of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    sections: Option<Vec<Section>>,
}

/// Answers the question on standard input, for a server whose process may end this one at any time.
///
/// # Errors
/// The console has the message.
pub fn answer(server: u32, arguments: &Serve, console: &Console) -> Result<Exit, Exit> {
    let question = serde_json::from_reader(streams::input()).map_err(|error| {
        console.error(format!("this is no question of a page: {error}"), "leave --answer out");
        Exit::BadInput
    })?;
    end_with(server);
    let answer = Work::of(arguments).answer(question);
    console.print(&json::to_text(&answer))?;
    Ok(Exit::Holds)
}

/// Time between two looks at the server.
const GLANCE: std::time::Duration = std::time::Duration::from_millis(200);

/// Ends this process soon after its server has ended, however and whenever that ended: it may be gone already.
fn end_with(server: u32) {
    std::thread::spawn(move || {
        // BOUND: the end of the process.
        while parent_id() == server {
            std::thread::sleep(GLANCE);
        }
        std::process::exit(Exit::Interrupted as i32);
    });
}

/// The option in one word: a path may begin with a dash.
pub fn overheads_word(path: &Path) -> OsString {
    let mut word = OsString::from("--overheads=");
    word.push(path);
    word
}

/// The settings that all texts share.
struct Work<'a> {
    file: &'a PathBuf,
    overheads: Option<&'a PathBuf>,
    duration: Option<Duration>,
}

impl<'a> Work<'a> {
    fn of(arguments: &'a Serve) -> Self {
        Self { file: &arguments.file, overheads: arguments.overheads.as_ref(), duration: arguments.duration }
    }

    fn answer(&self, question: Question) -> Answer {
        let begun = Instant::now();
        let system = parse_system_bytes(question.text.as_bytes()).ok();
        let words = self.words(system.as_ref(), &question.protocol);
        let kept = Kept::default();
        let sections = system.is_some().then(|| sections(&question.text));
        let execute = || execute(&words, self.file, &kept);
        let (ended, written) =
            streams::collect(question.text.into_bytes(), Arc::default(), || catch_unwind(AssertUnwindSafe(execute)));
        let mut faults = fault::take();
        if ended.is_err() {
            faults.push(fault_of("this is a bug in lockwright; please report it, with the text"));
        }
        let is_told = |line: &&str| line.starts_with("note: ") || line.starts_with("warning: ");
        let notes = written.err.lines().filter(is_told).collect::<Vec<_>>().join("\n");
        Answer { html: kept.take(), ms: begun.elapsed().as_millis(), notes, faults, sections }
    }

    /// The command line for a system. One that is wrong is told by `simulate`.
    fn words(&self, system: Option<&System>, protocol: &str) -> Vec<OsString> {
        let is_simulated = system.is_none_or(|system| system.tasks().len() <= EXECUTED_TASKS_MAX);
        let verb = if is_simulated { "simulate" } else { "check" };
        let mut words: Vec<OsString> = vec!["lockwright".into(), verb.into(), "-".into()];
        words.push(format!("--protocol={protocol}").into());
        words.extend(self.overheads.map(|path| overheads_word(path)));
        let Some(system) = system.filter(|_| is_simulated) else { return words };
        if let Some(duration) = self.duration.or_else(|| short(system)) {
            words.push(format!("--for={}ns", duration.as_ns()).into());
        }
        // Two results differ in the text only.
        if system.tasks().iter().any(|task| task.jitter > Duration::ZERO) {
            words.push("--seed=1".into());
        }
        words
    }
}

/// The length of a schedule of few jobs, if the default one has more.
fn short(system: &System) -> Option<Duration> {
    // Jobs in a nanosecond.
    let rate: f64 = system.tasks().iter().map(|task| 1.0 / task.period.as_ns() as f64).sum();
    let longest = system.tasks().iter().map(|task| task.period.max(task.offset) + task.deadline).max()?;
    let length = Duration::from_ns((JOBS_MAX / rate) as u64).max(longest);
    (length < default_horizon(system).duration).then_some(length)
}

/// Executes a command line whose file is `-`, and keeps its page. The page tells the command for `file`.
fn execute(words: &[OsString], file: &PathBuf, kept: &Kept) -> Result<Exit, Exit> {
    fault::forget();
    let mut cli = Cli::try_parse_from(words).map_err(|error| {
        fault::keep(Fault::of_arguments(&error));
        Exit::BadInput
    })?;
    if let Some(subject) = cli.verb.subject_mut() {
        subject.command = words.iter().map(|word| if word == "-" { file.into() } else { word.clone() }).collect();
        subject.kept = Some(kept.clone());
    }
    let console = Console::new(Color::Never, true);
    match &cli.verb {
        Verb::Check(arguments) => check::check(arguments, &console),
        Verb::Simulate(arguments) => simulate::simulate(arguments, &console),
        _ => unreachable!("the words name one of these"),
    }
}

/// A fault without a place.
pub fn fault_of(message: impl Into<String>) -> Fault {
    Fault { message: message.into(), help: None, place: None }
}

/// The protocols that a page offers, and the one that it shows first.
pub fn protocols(first: &str) -> Vec<(&'static str, bool)> {
    let names = ["file", "all"].into_iter().chain(Protocol::ALL.into_iter().map(Protocol::name));
    names.map(|name| (name, name == first)).collect()
}
