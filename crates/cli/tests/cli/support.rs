//! Running the binary, and the files it is run on.

use crate::realtime::has_waited;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use tempfile::TempDir;

/// Two tasks that share a lock. Their deadlines are long enough for real threads on a busy machine.
pub const HOLDS: &str = r#"
name = "holds"

[platform]
cpus = 1
priorities = "rate-monotonic"

[[resource]]
name = "bus"

[[task]]
name = "fast"
period = "1 s"
wcet = "100 us"
requests = [{ resource = "bus", length = "20 us" }]

[[task]]
name = "slow"
period = "2 s"
wcet = "200 us"
requests = [{ resource = "bus", length = "50 us" }]
"#;

/// Two tasks that overload the CPU.
pub const LATE: &str = r#"
name = "late"

[platform]
cpus = 1
priorities = "rate-monotonic"

[[task]]
name = "first"
period = "100 ms"
wcet = "60 ms"

[[task]]
name = "second"
period = "110 ms"
wcet = "60 ms"
"#;

/// A medium task between two that share a lock: under `none` the urgent one has no bound.
pub const INVERSION: &str = r#"
name = "inversion"

[platform]
cpus = 1
priorities = "rate-monotonic"

[[resource]]
name = "bus"

[[task]]
name = "high"
period = "10 ms"
wcet = "1 ms"
requests = [{ resource = "bus", length = "1 ms" }]

[[task]]
name = "medium"
period = "20 ms"
wcet = "4 ms"

[[task]]
name = "low"
period = "40 ms"
wcet = "2 ms"
requests = [{ resource = "bus", length = "1 ms" }]
"#;

/// A lock across CPUs, and release jitter: something is random in every simulation of it.
pub const GLOBAL: &str = r#"
name = "global"

[platform]
cpus = 2
priorities = "rate-monotonic"

[[resource]]
name = "state"

[[task]]
name = "here"
cpu = 0
period = "10 ms"
wcet = "1 ms"
jitter = "1 ms"
requests = [{ resource = "state", length = "100 us" }]

[[task]]
name = "there"
cpu = 1
period = "20 ms"
wcet = "2 ms"
requests = [{ resource = "state", length = "300 us" }]
"#;

/// A folder with one file in it, gone when dropped.
pub struct File {
    folder: TempDir,
    /// Where the file is.
    pub path: PathBuf,
}

impl File {
    pub fn new(text: &str) -> Self {
        Self::named("system.toml", text)
    }

    pub fn named(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a temporary file");
        Self { folder, path }
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The binary, without what the environment may say about colours, on a screen so wide that nothing is wrapped.
pub fn lockwright() -> Command {
    at(Path::new(env!("CARGO_BIN_EXE_lockwright")))
}

pub fn at(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env_remove("NO_COLOR").env("COLUMNS", "10000").stdin(Stdio::null());
    command
}

/// Whether the machine permits no files in `/sys`. Otherwise a message says that the rest of the test is skipped.
pub fn refuses_files_in_sys() -> bool {
    let permits = std::fs::create_dir("/sys/lockwright").is_ok_and(|()| std::fs::remove_dir("/sys/lockwright").is_ok());
    if permits {
        eprintln!("SKIPPED: /sys can be written here");
    }
    !permits
}

/// The result of a command.
pub struct Ended {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

pub fn end(command: &mut Command) -> Ended {
    let ended: Ended = command.output().expect("the binary starts").into();
    assert!(!ended.err.contains("bug in lockwright"), "{}", ended.err);
    // A copy of the binary is for users without permission for real-time priorities.
    let is_ours = command.get_program() == env!("CARGO_BIN_EXE_lockwright");
    let verb = command.get_args().next().and_then(|verb| verb.to_str());
    let executes = is_ours && ended.status < 2 && matches!(verb, Some("measure" | "run" | "verify"));
    let is_help = ended.out.contains("Usage:");
    assert!(!executes || is_help || has_waited(), "a test that executes threads in real time waits for the machine");
    ended
}

/// Runs `lockwright VERB FILE ARGUMENTS...` on a file with this text.
pub fn on(text: &str, verb: &str, arguments: &[&str]) -> Ended {
    let file = File::new(text);
    end(lockwright().arg(verb).arg(&file.path).args(arguments))
}

/// The JSON object on standard output.
pub fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("not one JSON object ({error}): {}", ended.out))
}

/// An empty list, to compare lists of faults with.
pub const NO_FAULTS: [&str; 0] = [];

/// A process that has said its first word on standard error: by then it listens.
pub struct Started {
    /// The process.
    pub child: Child,
    /// Its first line on standard error.
    pub first: String,
    err: BufReader<ChildStderr>,
}

impl Started {
    pub fn new(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut err = BufReader::new(child.stderr.take().expect("is piped"));
        let mut first = String::new();
        err.read_line(&mut first).expect("it says something");
        Self { child, first, err }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    pub fn end(mut self) -> Ended {
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            self.err.read_to_string(&mut rest).expect("is UTF-8");
            rest
        });
        let mut ended: Ended = self.child.wait_with_output().expect("ends").into();
        ended.err = self.first + &rest.join().expect("reads to the end");
        ended
    }
}
