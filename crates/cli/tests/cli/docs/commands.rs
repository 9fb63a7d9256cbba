//! Command lines in documents.

use super::repository::Repository;
use crate::support::{end, lockwright};
use clap::Parser;
use clap::error::ErrorKind;
use lockwright_cli::args::{Cli, Verb};

/// A command of `lockwright` or `cargo`.
pub struct Command {
    words: Vec<String>,
    /// It can be typed as it is: no argument is left out.
    is_whole: bool,
}

/// The commands of cargo that the documents use.
const CARGO: [&str; 14] = [
    "add", "bench", "build", "check", "clippy", "doc", "fmt", "fuzz", "install", "miri", "package", "run", "test",
    "xtask",
];

impl Command {
    /// The commands of `lockwright` and `cargo` in one line.
    pub fn all(line: &str, is_whole: bool) -> impl Iterator<Item = Self> {
        let all = split(line).into_iter().map(move |words| Self { words, is_whole });
        all.filter(|command| matches!(command.program(), Some("lockwright" | "cargo")) && command.words.len() > 1)
    }

    fn program(&self) -> Option<&str> {
        self.words.first()?.rsplit('/').next()
    }

    /// Its arguments for `lockwright`, where it starts that.
    fn arguments(&self) -> Option<&[String]> {
        if self.program() == Some("lockwright") {
            return Some(&self.words[1..]);
        }
        let behind = self.words.iter().position(|word| word == "--")?;
        let is_run = self.words[1] == "run" && !self.words.iter().any(|word| word == "-p" || word == "--package");
        is_run.then(|| &self.words[behind + 1..])
    }

    /// The fault of the command: it does not parse, it names a missing item, or it fails.
    pub fn fault(&self, repository: &Repository) -> Option<String> {
        let shown = self.words.join(" ");
        if self.program() == Some("cargo")
            && let Some(fault) = self.cargo_fault(repository)
        {
            return Some(format!("`{shown}`: {fault}"));
        }
        let arguments = self.arguments()?;
        if let Err(error) = parse(arguments)
            && (self.is_whole || !is_partial(&error, arguments))
        {
            return Some(format!("`{shown}`: {error}"));
        }
        match self.run(repository) {
            Some((status @ (2 | 3), _)) => Some(format!("`{shown}`: its exit status is {status}")),
            _ => None,
        }
    }

    fn cargo_fault(&self, repository: &Repository) -> Option<String> {
        let mut words =
            self.words[1..].iter().map(|word| word.trim_matches(['[', ']'])).filter(|word| !word.starts_with('+'));
        let verb = words.next()?;
        if !CARGO.contains(&verb) {
            return Some(format!("cargo has no `{verb}` here"));
        }
        let rest: Vec<&str> = words.take_while(|word| *word != "--").collect();
        if verb == "xtask" {
            let (chore, arguments) = rest.split_first()?;
            if !repository.has_chore(chore) {
                return Some(format!("there is no chore `{chore}`"));
            }
            let mut checks = arguments.iter().skip_while(|word| **word != "--deep").skip(1);
            let unknown = checks.find(|check| !repository.has_deep_check(check));
            return unknown.map(|check| format!("there is no check `{check}`"));
        }
        let options = || rest.iter().zip(rest.iter().skip(1).copied());
        let package = options().find(|(name, _)| ["-p", "--package"].contains(name)).map(|(_, package)| package);
        if let Some(package) = package.filter(|package| !repository.has_package(package)) {
            return Some(format!("there is no package `{package}`"));
        }
        let is_wrong = |&(name, value): &(&&str, &str)| match *name {
            "--test" | "--bench" | "--example" | "--bin" => !repository.has_target(package, &name[2..], value),
            "--features" if verb != "add" => !value.split(',').all(|feature| repository.has_feature(package, feature)),
            "--path" => !repository.root.join(value).exists(),
            _ => false,
        };
        options().find(is_wrong).map(|(name, value)| format!("there is no {} `{value}`", name.trim_start_matches('-')))
    }

    /// Runs it where it is a quick one that writes no file and whose own file is there: its exit status and its output.
    pub fn run(&self, repository: &Repository) -> Option<(i32, String)> {
        let arguments = self.arguments().filter(|_| self.is_whole)?;
        let file = match parse(arguments).ok()?.verb {
            Verb::Check(check) if check.svg.is_none() && check.subject.html.is_none() => check.subject.file,
            Verb::Simulate(simulate) => {
                let (shown, html) = (simulate.schedules, simulate.subject.html);
                let writes_no_file = [shown.trace, shown.svg, html].iter().all(Option::is_none);
                Some(simulate.subject.file).filter(|_| writes_no_file)?
            }
            Verb::Import(import) => import.file,
            _ => return None,
        };
        if !repository.root.join(file).is_file() {
            return None;
        }
        let mut command = lockwright();
        let ended = end(command.args(arguments).env_remove("COLUMNS").current_dir(&repository.root));
        Some((ended.status, ended.out))
    }
}

fn parse(arguments: &[String]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("lockwright").chain(arguments.iter().map(String::as_str)))
}

/// Whether arguments are only left out, as in the name of a command or of an option.
fn is_partial(error: &clap::Error, arguments: &[String]) -> bool {
    let is_missing = |error: &clap::Error| {
        let missing = [
            ErrorKind::DisplayHelp,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            ErrorKind::MissingRequiredArgument,
            ErrorKind::MissingSubcommand,
        ];
        missing.contains(&error.kind())
    };
    let ends_in_option = arguments.last().is_some_and(|last| last.starts_with("--"));
    if error.kind() == ErrorKind::InvalidValue && ends_in_option {
        let with_value = [arguments, &["1".to_owned()]].concat();
        return parse(&with_value).map_or_else(|error| is_missing(&error), |_| true);
    }
    is_missing(error)
}

/// The words of each command in a line of a shell, without redirections, variables and comments.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let last = commands.len() - 1;
        match word {
            "|" | "&&" | "||" | ";" => commands.push(Vec::new()),
            ">" | ">>" | "<" | "2>" => drop(words.next()),
            _ if word.starts_with('#') => break,
            _ if commands[last].is_empty() && (word.contains('=') || word == "sudo" || word == "time") => {}
            _ => commands[last].push(word.trim_matches(['"', '\'']).to_owned()),
        }
    }
    commands
}
