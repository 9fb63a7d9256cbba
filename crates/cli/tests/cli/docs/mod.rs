//! The documents: their links lead somewhere, their commands work, and their counts are right.

mod commands;
mod markdown;
mod repository;

use crate::support::NO_FAULTS;
use commands::Command;
use markdown::Document;
use repository::Repository;
use std::path::{Path, PathBuf};

/// Faults of a document, one line each.
type Check = fn(&Repository, &Document) -> Vec<String>;

/// Applies a check to all documents of the repository.
fn hold(check: Check) {
    let repository = Repository::here();
    let documents = repository.documents();
    assert!(documents.len() > 30, "only {} documents were found", documents.len());
    let faults: Vec<String> = documents.iter().flat_map(|document| check(repository, document)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Applies a check to a document with this text, beside README.md.
fn faults(check: Check, text: &str) -> Vec<String> {
    check(Repository::here(), &Document::new(PathBuf::from("wrong.md"), text.to_owned()))
}

fn links(repository: &Repository, document: &Document) -> Vec<String> {
    let folder = document.path.parent().unwrap_or(Path::new(""));
    let fault = |(line, link): &(usize, String)| {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
        let to = if path.is_empty() { document.path.clone() } else { folder.join(path) };
        let there = match anchor {
            None => repository.root.join(&to).exists(),
            Some(anchor) if path.is_empty() => document.anchors().iter().any(|known| known == anchor),
            Some(anchor) => repository.document(&to).is_some_and(|to| to.anchors().iter().any(|known| known == anchor)),
        };
        (!there).then(|| format!("{}: the link {link} leads nowhere", document.at(*line)))
    };
    document.links.iter().filter_map(fault).collect()
}

/// Spans of code that begin with one of these are paths.
const FOLDERS: [&str; 8] = ["crates/", "docs/", "examples/", "bindings/", "scenarios/", "xtask/", "fuzz/", ".ci/"];

fn paths(repository: &Repository, document: &Document) -> Vec<String> {
    let fault = |(line, span): &(usize, String)| {
        let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder))
            && !span.contains(|c: char| c.is_whitespace() || "*{<…".contains(c));
        // `file.rs:12` and `file.rs::test` name a place in a file.
        let path = span.split(':').next().unwrap_or_default();
        (is_path && !repository.root.join(path).exists()).then(|| format!("{}: there is no {span}", document.at(*line)))
    };
    document.spans.iter().filter_map(fault).collect()
}

fn commands(repository: &Repository, document: &Document) -> Vec<String> {
    let lines =
        document.shell.iter().flat_map(|(line, text)| Command::all(text, true).map(move |found| (*line, found)));
    let spans =
        document.spans.iter().flat_map(|(line, text)| Command::all(text, false).map(move |found| (*line, found)));
    lines
        .chain(spans)
        .filter_map(|(line, command)| Some(format!("{}: {}", document.at(line), command.fault(repository)?)))
        .collect()
}

/// Numbers as words, from `two` on.
const NUMBERS: [&str; 19] = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

fn number(word: &str) -> Option<usize> {
    let place = NUMBERS.iter().position(|number| word.eq_ignore_ascii_case(number));
    place.map(|place| place + 2).or_else(|| word.parse().ok())
}

/// Numbers before words that the code can count.
fn counts(repository: &Repository, document: &Document) -> Vec<String> {
    let programs = std::fs::read_dir(repository.root.join("bindings/c/examples")).map_or(0, Iterator::count);
    // Fewer than ten protocols are a part of them.
    let counted = [
        ("protocols", lockwright_model::Protocol::ALL.len(), 10),
        ("C programs", programs, 0),
        ("programs", programs, 4),
    ];
    let mut faults = Vec::new();
    for (line, text) in &document.prose {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for (place, word) in words.iter().enumerate() {
            let Some(number) = number(word) else { continue };
            let rest = words[place + 1..].join(" ");
            let wrong = |(what, count, least): &&(&str, usize, usize)| {
                rest.starts_with(what) && number >= *least && number != *count
            };
            if let Some((what, count, _)) = counted.iter().find(wrong) {
                faults.push(format!("{}: there are {count} {what}, not {word}", document.at(*line)));
            }
        }
    }
    faults
}

#[test]
fn links_lead_somewhere() {
    hold(links);
}

#[test]
fn a_dead_link_is_found() {
    let text = "# A title, *of* `mine`\n[a](docs/mutex.md), [b](#a-title-of-mine), [c](docs/task-set.md#priorities) and \
        <https://example.org/nowhere>\n\n[d]: docs\n[d]\n";
    assert_eq!(faults(links, text), NO_FAULTS);
    for wrong in ["docs/mutexes.md", "#a-title", "docs/mutex.md#nowhere", "docs/mutexes.md#a"] {
        let text = format!("# A title\n\n[x]({wrong})\n\n# A title, too\n");
        let expected = if wrong == "#a-title" { 0 } else { 1 };
        assert_eq!(faults(links, &text).len(), expected, "{wrong}");
    }
    assert_eq!(faults(links, "![x](nothing.svg) [y][z]\n\n[z]: nothing.md\n").len(), 2);
}

#[test]
fn paths_in_code_spans_exist() {
    hold(paths);
}

#[test]
fn a_wrong_path_is_found() {
    assert_eq!(faults(paths, "`examples/robot.toml`, `docs/` and `crates/*/tests`, `mine/yours`"), NO_FAULTS);
    assert_eq!(faults(paths, "`examples/robbot.toml` and `crates/nothing/`").len(), 2);
}

#[test]
fn commands_work() {
    hold(commands);
}

#[test]
fn a_wrong_command_is_found() {
    let right = "`lockwright check`, `lockwright check --protocol all`, `lockwright run FILE --overheads`\n```sh\n\
        $ lockwright check examples/pathfinder.toml --explain ordo_bus > out.txt # a comment\n\
        cargo run --release -- check examples/pathfinder.toml | head\n\
        cargo test -p lockwright-cli --test cli -- --ignored\ncargo xtask schema\n```\n";
    assert_eq!(faults(commands, right), NO_FAULTS);
    for wrong in [
        "`lockwright chekc`",
        "`lockwright check --protocol pipp`",
        "`lockwright check --no-such-option`",
        "```\nlockwright check\n```",
        "```\n$ lockwright check examples/pathfinder.toml --explain nobody\n```",
        "```\nLOG=1 lockwright run a b\n```",
        "```\ncargo run --release -- check examples/pathfinder.toml --protocl all\n```",
        "`cargo test -p lockwright-nothing`",
        "`cargo test -p lockwright-cli --test nothing`",
        "`cargo bench -p lockwright-study --bench nothing`",
        "`cargo bench -p lockwright-study --features nothing`",
        "`cargo xtask nothing`",
        "`cargo xtask test --deep nothing`",
        "`cargo install --path crates/nothing`",
        "`cargo nothing`",
    ] {
        assert_eq!(faults(commands, wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn sample_sessions_are_of_this_version() {
    hold(sessions);
}

/// Commands with their output, and exit statuses that are claimed by `echo $?`.
fn sessions(repository: &Repository, document: &Document) -> Vec<String> {
    let fault = |session: &markdown::Session| {
        let command = Command::all(&session.command, true).next()?;
        let (status, out) = command.run(repository)?;
        let claimed = session.status.is_none_or(|claimed| claimed == status);
        if !claimed {
            return Some(format!("{}: the exit status is {status}", document.at(session.line)));
        }
        (!session.shows(&out)).then(|| format!("{}: the output is\n{out}", document.at(session.line)))
    };
    document.sessions.iter().filter_map(fault).collect()
}

#[test]
fn a_wrong_session_is_found() {
    let session =
        |shown: &str| faults(sessions, &format!("```text\n$ lockwright check examples/pathfinder.toml\n{shown}```\n"));
    assert_eq!(session("$ echo $?\n0\n"), NO_FAULTS);
    assert_eq!(session("$ echo $?\n1\n").len(), 1);
    assert_eq!(session("pathfinder under pip: 7 tasks\n").len(), 1, "a line is part of the output as a whole");
    assert_eq!(session("...\nAll deadlines hold as they did on Mars.\n").len(), 1);
}

#[test]
fn counts_come_from_the_code() {
    hold(counts);
}

#[test]
fn a_wrong_count_is_found() {
    assert_eq!(faults(counts, "21 protocols, under seven protocols, six C programs."), NO_FAULTS);
    assert_eq!(faults(counts, "Fifteen [protocols](docs/README.md), 18 protocols, four\nC programs.").len(), 3);
}

/// Commands in `--help`, under "Example" and in backticks.
#[test]
fn commands_in_help_parse() {
    fn each(command: &clap::Command, then: &mut impl FnMut(&str)) {
        let texts = [command.get_about(), command.get_long_about(), command.get_after_help()];
        texts.into_iter().flatten().for_each(|text| then(&text.to_string()));
        let helps = command.get_arguments().flat_map(|arg| [arg.get_help(), arg.get_long_help()]).flatten();
        helps.for_each(|text| then(&text.to_string()));
        command.get_subcommands().for_each(|inner| each(inner, then));
    }
    let repository = Repository::here();
    let (mut seen, mut faults) = (0, Vec::new());
    each(&<lockwright_cli::args::Cli as clap::CommandFactory>::command(), &mut |text| {
        let examples =
            text.lines().filter(|line| line.starts_with("  lockwright ")).flat_map(|line| Command::all(line, true));
        let spans = text.split('`').skip(1).step_by(2).flat_map(|span| Command::all(span, false));
        for command in examples.chain(spans) {
            seen += 1;
            faults.extend(command.fault(repository));
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 30, "only {seen} commands were found");
}
