//! Runs the tools that the commands use.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The oldest compiler that builds the project: `rust-version` of the workspace.
pub const RUST_OLDEST: (u32, u32) = (1, 90);

/// The root directory of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Checks the operating system and the compiler before anything is built.
pub fn check_toolchain() -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("lockwright runs on Linux: build and test it there".into());
    }
    let output = Command::new("rustc")
        .arg("--version")
        .output()
        .map_err(|error| format!("rustc does not start ({error}); install Rust from https://rustup.rs"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1).and_then(parse_version);
    match version {
        Some(version) if version >= RUST_OLDEST => Ok(()),
        Some(_) => {
            let (major, minor) = RUST_OLDEST;
            Err(format!("{} is too old: at least {major}.{minor} is needed; `rustup update`", text.trim()))
        }
        None => Err(format!("`rustc --version` prints no version: {text}")),
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The cargo that runs this program, in the root directory of the workspace.
pub fn cargo_command(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// A program of the machine, in the root directory of the workspace.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// A program that executes, with all that it starts, where no other thread wants the processor.
pub fn idle(program: &Path) -> Command {
    // SCHED_IDLE: an ordinary thread that wakes up runs at once.
    let mut command = command("chrt");
    command.args(["--idle", "0"]).arg(program);
    command
}

/// The cargo of another toolchain, without the environment variables of this one.
pub fn rustup_cargo(toolchain: &str, arguments: &[&str]) -> Command {
    let mut command = command("rustup");
    command.args(["run", toolchain, "cargo"]).args(arguments);
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

/// Runs rustup, one at a time also among processes: checks that run side by side may need the same toolchain.
pub fn rustup(arguments: &[&str]) -> Result<(), String> {
    let path = root().join("target/rustup.lock");
    let lock = std::fs::create_dir_all(root().join("target")).and_then(|()| File::create(&path));
    let lock = lock.and_then(|file| file.lock().map(|()| file));
    let _lock = lock.map_err(|error| format!("cannot lock {}: {error}", path.display()))?;
    run(command("rustup").args(arguments))
}

/// Runs rustup to add a toolchain or components. Returns false, and prints why the check is skipped, if they cannot be
/// had: some machines reach no server for them.
pub fn has_toolchain(arguments: &[&str]) -> bool {
    let has = rustup(arguments);
    if let Err(why) = &has {
        eprintln!("xtask: skipped: {why}");
    }
    has.is_ok()
}

/// Installs a cargo command if it is missing.
pub fn install(package: &str, subcommand: &str) -> Result<(), String> {
    let present = cargo_command(&[subcommand, "--version"]).output().is_ok_and(|output| output.status.success());
    if present { Ok(()) } else { cargo(&["install", "--locked", package]) }
}

/// Runs cargo. Its output goes to the terminal.
pub fn cargo(arguments: &[&str]) -> Result<(), String> {
    run(&mut cargo_command(arguments))
}

/// Builds the command line and returns its path. This is the binary that the tests use, so that nothing is compiled
/// again after them.
pub fn lockwright() -> Result<PathBuf, String> {
    cargo(&["test", "--workspace", "--no-run"])?;
    let me = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let binary = me.with_file_name("lockwright");
    if binary.is_file() { Ok(binary) } else { Err(format!("{} was not built", binary.display())) }
}

/// Runs a command. Its output goes to the terminal.
pub fn run(command: &mut Command) -> Result<(), String> {
    eprintln!("xtask: {}", shown(command));
    let status = command.status().map_err(|error| format!("{} does not start: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", shown(command))) }
}

/// How many lines of a failed command's output are repeated in its error.
const END: usize = 80;
/// How long output is awaited after the end of a command.
const REST: Duration = Duration::from_secs(2);
/// The time between two looks at whether a command without output has ended.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs a command. Its output goes to the terminal as it comes, and the error has the end of it.
pub fn run_with_end(command: &mut Command) -> Result<(), String> {
    let name = shown(command);
    let (status, end) = told(command).map_err(|error| format!("{name} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}. Its output ends:\n{end}")) }
}

/// Runs a command, and prints its output as it comes. Returns also the last lines. What a process that it left behind
/// prints later than [`REST`] is lost.
fn told(command: &mut Command) -> std::io::Result<(ExitStatus, String)> {
    let (output, input) = std::io::pipe()?;
    let mut child = command.stdout(input.try_clone()?).stderr(input).spawn()?;
    // The command would hold the pipe's other end, and the output would not end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let (lines, printed) = channel();
    std::thread::spawn(move || {
        let mut read = BufReader::new(output).split(b'\n').map_while(Result::ok);
        read.try_for_each(|line| lines.send(String::from_utf8_lossy(&line).into_owned()))
    });
    let (mut end, mut ended) = (VecDeque::new(), None);
    while ended.is_none_or(|at: Instant| at.elapsed() < REST) {
        match printed.recv_timeout(GLANCE) {
            Ok(line) => {
                eprintln!("{line}");
                end.push_back(line);
                if end.len() > END {
                    end.pop_front();
                }
            }
            Err(RecvTimeoutError::Timeout) if ended.is_none() => {
                ended = child.try_wait()?.map(|_| Instant::now());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok((child.wait()?, end.make_contiguous().join("\n")))
}

/// Runs commands, two at a time. The output of each goes to the terminal when it has ended.
pub fn run_pairs(commands: impl IntoIterator<Item = Command, IntoIter: Send>) -> Result<(), String> {
    let left = Mutex::new(commands.into_iter());
    let work = || {
        let mut failed = Vec::new();
        loop {
            // The lock is held only until there is a next command.
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(mut command) = next else { return failed };
            failed.extend(run_quietly(&mut command).err());
        }
    };
    let mut failed = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut failed = work();
        failed.extend(other.join().unwrap_or_else(|_| vec!["a thread panicked".into()]));
        failed
    });
    failed.sort();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs a command. Its output, and the time that it took, go to the terminal when it has ended.
pub fn run_quietly(command: &mut Command) -> Result<(), String> {
    let begin = Instant::now();
    eprintln!("xtask: {} begins", shown(command));
    let output = command.output().map_err(|error| format!("{} does not start: {error}", shown(command)))?;
    let (text, seconds) = ([output.stdout, output.stderr].concat(), begin.elapsed().as_secs_f64());
    eprintln!("xtask: {}\n{}xtask: it took {seconds:.1} s\n", shown(command), String::from_utf8_lossy(&text));
    if output.status.success() { Ok(()) } else { Err(format!("{} ended with {}", shown(command), output.status)) }
}

/// The command as a user would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_in_a_pair_is_named() {
        let commands = |names: &[&str]| names.iter().map(|name| command(name)).collect::<Vec<_>>();
        assert_eq!(run_pairs(commands(&["true"; 3])), Ok(()));
        let failed = run_pairs(commands(&["true", "false", "true", "no-such-program"])).expect_err("two fail");
        assert!(failed.contains("false ended with") && failed.contains("no-such-program does not start"), "{failed}");
    }

    #[test]
    fn an_error_has_the_end_of_the_output() {
        let shell = |script: &str| run_with_end(command("sh").args(["-c", script]));
        assert_eq!(shell("echo told"), Ok(()));
        let error = shell("seq 1000; echo last >&2; exit 3").expect_err("the status is 3");
        assert!(error.contains("status: 3") && error.ends_with("\n1000\nlast"), "{error}");
        assert_eq!(error.lines().count(), 1 + END, "{error}");
        // A process that holds the output is not awaited.
        let begin = Instant::now();
        assert_eq!(shell("sleep 20 & echo told"), Ok(()));
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse_version("1.95.0-nightly"), Some((1, 95)));
        assert!(parse_version("1.100.0") > Some(RUST_OLDEST) && parse_version("1.89.0") < Some(RUST_OLDEST));
        assert_eq!(parse_version("one"), None);
    }
}
