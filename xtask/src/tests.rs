//! Runs the programs with the tests of all crates.
//!
//! Cargo runs them one after another. Here two programs that need the machine run side by side: their tests in real time
//! take turns (`crates/sys/tests/support/machine.rs`), and the others mostly wait for processes and compilers. The
//! programs that only compute, and the examples of the documentation, use what these leave of the processors.

use crate::tool;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages whose tests only compute: they use no real-time priorities, and may be kept from a processor for a while.
const COMPUTING: [&str; 10] = [
    "crates/analysis",
    "crates/locks",
    "crates/model",
    "crates/objects",
    "crates/protocol",
    "crates/report",
    "crates/sim",
    "crates/study",
    "crates/vectors",
    "xtask",
];

/// A program with tests.
pub struct Program {
    /// The directory of its package.
    pub package: PathBuf,
    pub file: PathBuf,
}

/// Builds and runs all programs, and the examples of the documentation.
pub fn run() -> Result<(), String> {
    let (computing, others): (Vec<Program>, Vec<Program>) = programs()?.into_iter().partition(only_computes);
    let failed = std::thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let mut failed = run_behind(&computing);
            // The examples of this package are those of `lockwright-objects`; cargo ignores its `doctest = false` here.
            let examples = ["test", "--workspace", "--no-fail-fast", "--doc", "--exclude", "lockwright-objects-steps"];
            let cargo = tool::cargo_command(&examples);
            failed.extend(tool::run_quietly(tool::idle(Path::new(cargo.get_program())).args(cargo.get_args())).err());
            failed
        });
        let in_front = tool::run_pairs(others.iter().map(|program| in_package(Command::new(&program.file), program)));
        let mut failed = Vec::from_iter(in_front.err());
        failed.extend(behind.join().unwrap_or_else(|_| vec!["the programs that compute".into()]));
        failed
    });
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn only_computes(program: &Program) -> bool {
    COMPUTING.iter().any(|package| program.package == tool::root().join(package))
}

/// Builds the programs, and returns them in the order of cargo.
pub fn programs() -> Result<Vec<Program>, String> {
    let mut build = tool::cargo_command(&["test", "--workspace", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").stderr(std::process::Stdio::inherit());
    let output = build.output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", tool::shown(&build), output.status));
    }
    let mut programs: Vec<Program> = String::from_utf8_lossy(&output.stdout).lines().filter_map(program).collect();
    programs.sort_by(|one, other| one.package.cmp(&other.package));
    // Without messages that are understood, nothing would be tested.
    let has = |package: &str| programs.iter().any(|program| program.package == tool::root().join(package));
    match COMPUTING.iter().chain(&["crates/rt", "crates/cli"]).find(|package| !has(package)) {
        Some(package) => Err(format!("cargo named no program with the tests of {package}")),
        None => Ok(programs),
    }
}

/// The program of a message of cargo, if the message is about one.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Program { package: package.to_owned(), file: message["executable"].as_str()?.into() })
}

/// Runs the programs where no other thread wants the processor. Returns what failed.
fn run_behind(programs: &[Program]) -> Vec<String> {
    let run = |program: &Program| tool::run_quietly(&mut in_package(tool::idle(&program.file), program)).err();
    programs.iter().filter_map(run).collect()
}

/// Tests expect to be started in the directory of their package.
fn in_package(mut command: Command, program: &Program) -> Command {
    command.current_dir(&program.package);
    command
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn packages_that_compute_exist() {
        for package in COMPUTING {
            assert!(tool::root().join(package).join("Cargo.toml").is_file(), "{package}");
        }
    }

    /// A test that takes the machine belongs to the programs in front.
    #[test]
    fn packages_that_compute_never_take_the_machine() {
        for package in COMPUTING.iter().filter(|package| **package != "xtask") {
            for file in sources(&tool::root().join(package)) {
                let text = std::fs::read_to_string(&file).expect("a source");
                assert!(!text.contains("require_realtime"), "{}", file.display());
            }
        }
        let taking = sources(&tool::root().join("crates/engine"));
        let takes = |file: &PathBuf| std::fs::read_to_string(file).expect("a source").contains("require_realtime");
        assert!(taking.iter().any(takes), "the engine takes it under another name");
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        let is_source = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "rs");
        folders.iter().flat_map(|folder| sources(folder)).chain(files.into_iter().filter(is_source)).collect()
    }

    #[test]
    fn only_programs_with_tests_are_run() {
        let message = |is_test: bool| {
            format!(r#"{{"manifest_path":"/a/Cargo.toml","profile":{{"test":{is_test}}},"executable":"/t/a-1"}}"#)
        };
        let found = program(&message(true)).expect("a program");
        assert_eq!((found.package, found.file), ("/a".into(), "/t/a-1".into()));
        assert!(program(&message(false)).is_none() && program("no JSON").is_none());
    }
}
