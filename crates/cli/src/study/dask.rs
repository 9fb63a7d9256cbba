//! `lockwright study FILE --dask ADDRESS`: the shares of a study on the workers of a Dask cluster.
//!
//! The Python package hands the shares out and puts the results together; this file finds it.

use crate::args::Study;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::{self, Watch};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Time between two looks for a signal.
const SIGNALS: Duration = Duration::from_millis(50);

/// Prints the version of the package, after the names of what is missing.
const PROBE: &str = "from importlib.util import find_spec
missing = [name for name in ('lockwright', 'distributed') if find_spec(name) is None]
print(*missing)
if not missing:
    import lockwright
    print(lockwright.__version__)";

/// Executes the study in `file` on the cluster at `address`.
///
/// # Errors
/// The package is missing or has another version; the console has the message.
pub fn on_cluster(
    arguments: &Study,
    file: &Path,
    output: &Path,
    address: &str,
    console: &Console,
) -> Result<Exit, Exit> {
    if file == Path::new("-") {
        console.error("a cluster needs the name of the study file", "write standard input into a file first");
        return Err(Exit::BadInput);
    }
    let python = std::env::var_os("LOCKWRIGHT_PYTHON").unwrap_or_else(|| "python3".into());
    check(&python, console)?;
    interrupt::listen(|| {}, console);
    let mut command = Command::new(&python);
    command.args(["-P", "-m", "lockwright.cluster", address]).arg(file).arg(output);
    for (option, value) in [("--seed", arguments.seed), ("--samples", arguments.samples)] {
        if let Some(value) = value {
            command.arg(format!("{option}={value}"));
        }
    }
    if arguments.run.resume {
        command.arg("--resume");
    }
    let done = execute(&mut command).map_err(|error| unusable(&python, &error.to_string(), console))?;
    console.print_text(&String::from_utf8_lossy(&done.stdout))?;
    Ok(match done.status.code() {
        Some(0) => Exit::Holds,
        Some(2) => Exit::BadInput,
        Some(130) => Exit::Interrupted,
        _ if interrupt::requested() => Exit::Interrupted,
        _ => Exit::Machine,
    })
}

/// Executes the interpreter, and returns its output. It ends early when its standard input does: at a signal to this
/// process, and when this process ends in any way.
fn execute(command: &mut Command) -> io::Result<Output> {
    // A group of its own: the terminal does not interrupt it a second time, while it ends.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
    let mut child = command.spawn()?;
    let (input, watch) = (child.stdin.take(), Watch::here());
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // BOUND: the interpreter ends, or a signal arrives.
            while ended.recv_timeout(SIGNALS) == Err(RecvTimeoutError::Timeout) && !watch.requested() {}
            drop(input);
        });
        let output = child.wait_with_output();
        drop(done);
        output
    })
}

/// Refuses an interpreter without the package, or with another version of it.
fn check(python: &OsString, console: &Console) -> Result<(), Exit> {
    let probed = Command::new(python).args(["-P", "-c", PROBE]).stdin(Stdio::null()).output();
    let probed = probed.map_err(|error| unusable(python, &error.to_string(), console))?;
    let text = String::from_utf8_lossy(&probed.stdout);
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(""), Some(VERSION)) => Ok(()),
        (Some(""), Some(version)) => {
            console.error(
                format!("the Python package has version {version}, and this program has {VERSION}"),
                "install the package of this version; other versions may give other results",
            );
            Err(Exit::Machine)
        }
        (Some(missing), None) if probed.status.success() => {
            let missing = missing.replace(' ', " and ");
            console.error(
                format!("--dask needs the Python package {missing}, which {} does not have", shown(python)),
                "pip install './bindings/python[dask]' in the source of Lockwright, or set LOCKWRIGHT_PYTHON to an \
                 interpreter that has it",
            );
            Err(Exit::Machine)
        }
        _ => {
            let messages = String::from_utf8_lossy(&probed.stderr);
            let last = messages.lines().next_back().unwrap_or("it ended without a message");
            Err(unusable(python, last, console))
        }
    }
}

fn shown(python: &OsStr) -> std::path::Display<'_> {
    Path::new(python).display()
}

fn unusable(python: &OsStr, why: &str, console: &Console) -> Exit {
    console.error(
        format!("--dask needs Python 3.11 or later, and {} cannot be used: {why}", shown(python)),
        "set LOCKWRIGHT_PYTHON to an interpreter that has the Python package lockwright",
    );
    Exit::Machine
}
