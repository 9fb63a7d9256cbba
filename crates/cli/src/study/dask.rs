//! `lockwright study FILE --dask ADDRESS`: the shares of a study on the workers of a Dask cluster.
//!
//! The Python package hands the shares out and puts the results together; this file finds it.

use crate::args::Study;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

const VERSION: &str = env!("CARGO_PKG_VERSION");

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
    // The interpreter gets the signals of the terminal too, and ends with a message.
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
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = done.map_err(|error| unusable(&python, &error.to_string(), console))?;
    console.print_text(&String::from_utf8_lossy(&done.stdout))?;
    Ok(match done.status.code() {
        Some(0) => Exit::Holds,
        Some(2) => Exit::BadInput,
        Some(130) => Exit::Interrupted,
        _ => Exit::Machine,
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
