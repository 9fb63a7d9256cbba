//! Runs the programs with the tests of all crates.
//!
//! Cargo runs them one after another when all are built. Here a program that only computes runs as soon as it is built,
//! and uses what others leave of the processors, as the examples of the documentation do. The programs that need the
//! machine wait for the end of the build, which would disturb them. Two of them run side by side: their tests in real
//! time take turns (`crates/sys/tests/support/machine.rs`), and the others mostly wait for processes and compilers.

use crate::tool;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The packages whose tests only compute: they use no real-time priorities, and may be kept from a processor for a
/// while.
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

/// A program with tests. Programs are in the order of their packages.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Program {
    /// The directory of its package.
    pub package: PathBuf,
    pub file: PathBuf,
}

/// Builds and runs all programs, and the examples of the documentation.
pub fn run() -> Result<(), String> {
    let (computing, mut others) = (Ready::default(), BTreeSet::new());
    let failed = std::thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let mut failed = run_behind(&computing);
            // The examples of this package are those of `lockwright-objects`; cargo ignores its `doctest = false` here.
            let examples = ["test", "--workspace", "--no-fail-fast", "--doc", "--exclude", "lockwright-objects-steps"];
            let cargo = tool::cargo_command(&examples);
            failed.extend(tool::run_quietly(tool::idle(Path::new(cargo.get_program())).args(cargo.get_args())).err());
            failed
        });
        let built = build(|program| match only_computes(&program) {
            true => computing.add(program),
            false => _ = others.insert(program),
        });
        computing.end(built.is_ok());
        let in_front = built.and_then(|()| {
            tool::run_pairs(others.iter().map(|program| in_package(Command::new(&program.file), program)))
        });
        let mut failed = Vec::from_iter(in_front.err());
        failed.extend(behind.join().unwrap_or_else(|_| vec!["the programs that compute".into()]));
        failed
    });
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Programs that are built and have not begun.
#[derive(Default)]
struct Ready {
    /// The programs, and whether there are no others.
    programs: Mutex<(BTreeSet<Program>, bool)>,
    changed: Condvar,
}

impl Ready {
    fn add(&self, program: Program) {
        self.lock().0.insert(program);
        self.changed.notify_one();
    }

    /// There are no others. If the build failed, no further program begins.
    fn end(&self, is_built: bool) {
        let mut programs = self.lock();
        programs.1 = true;
        if !is_built {
            programs.0.clear();
        }
        self.changed.notify_all();
    }

    /// Takes one program after another, and waits for the build of the next one.
    fn programs(&self) -> impl Iterator<Item = Program> + Send {
        std::iter::from_fn(|| {
            let is_waiting = |programs: &mut (BTreeSet<Program>, bool)| programs.0.is_empty() && !programs.1;
            // BOUND: the build.
            let programs = self.changed.wait_while(self.lock(), is_waiting);
            programs.unwrap_or_else(PoisonError::into_inner).0.pop_first()
        })
    }

    fn lock(&self) -> MutexGuard<'_, (BTreeSet<Program>, bool)> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn only_computes(program: &Program) -> bool {
    COMPUTING.iter().any(|package| program.package == tool::root().join(package))
}

/// Builds the programs, and returns them in the order of their packages.
pub fn programs() -> Result<Vec<Program>, String> {
    let mut programs = BTreeSet::new();
    build(|program| {
        programs.insert(program);
    })?;
    Ok(programs.into_iter().collect())
}

/// Builds the programs, and hands over each as soon as it is built.
fn build(mut built: impl FnMut(Program)) -> Result<(), String> {
    let mut build = tool::cargo_command(&["test", "--workspace", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let shown = tool::shown(&build);
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let mut cargo = build.spawn().map_err(failed)?;
    let mut packages = BTreeSet::new();
    if let Some(messages) = cargo.stdout.take() {
        for message in BufReader::new(messages).lines() {
            if let Some(program) = program(&message.map_err(failed)?) {
                packages.insert(program.package.clone());
                built(program);
            }
        }
    }
    let status = cargo.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("{shown} ended with {status}"));
    }
    // Without messages that are understood, nothing would be tested.
    let has = |package: &str| packages.contains(&tool::root().join(package));
    match COMPUTING.iter().chain(&["crates/rt", "crates/cli"]).find(|package| !has(package)) {
        Some(package) => Err(format!("cargo named no program with the tests of {package}")),
        None => Ok(()),
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
fn run_behind(programs: &Ready) -> Vec<String> {
    let run = |program: Program| tool::run_quietly(&mut in_package(tool::idle(&program.file), &program)).err();
    programs.programs().filter_map(run).collect()
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
    fn programs_begin_when_they_are_built() {
        let program = |file: &str| Program { package: "/a".into(), file: file.into() };
        let ready = Ready::default();
        let mut programs = ready.programs();
        ready.add(program("c"));
        ready.add(program("a"));
        assert_eq!([programs.next(), programs.next()], [Some(program("a")), Some(program("c"))]);
        std::thread::scope(|scope| {
            let next = scope.spawn(move || programs.next());
            ready.add(program("b"));
            assert_eq!(next.join().expect("no panic"), Some(program("b")));
        });
        ready.add(program("d"));
        ready.end(true);
        assert_eq!(ready.programs().collect::<Vec<_>>(), [program("d")]);
        let ready = Ready::default();
        ready.add(program("a"));
        ready.end(false);
        assert_eq!(ready.programs().next(), None, "the build failed");
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
