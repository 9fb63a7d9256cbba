//! Checks the example files with the command line.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest simulation of an example.
const SIMULATED: &str = "10 s";

/// Checks and simulates every example without a deadline miss. Imports the files that are not task-set files first.
pub fn run() -> Result<(), String> {
    let binary = tool::lockwright()?;
    let folder = tool::root().join("examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    files.sort();
    for file in &files {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => system(&binary, file)?,
            Some("json") => workload(&binary, file)?,
            _ => {}
        }
    }
    let pathfinder = folder.join("pathfinder.toml");
    expect(&binary, &["check", &text(&pathfinder), "--protocol", "none"], 1, None)?;
    expect(&binary, &["simulate", &text(&pathfinder), "--protocol", "none"], 1, None)?;
    Ok(())
}

fn system(binary: &Path, file: &Path) -> Result<(), String> {
    let file = text(file);
    expect(binary, &["check", &file], 0, None)?;
    expect(binary, &["simulate", &file, "--for", SIMULATED], 0, None)?;
    // Negative control: the same file with an incomplete table is refused.
    let whole = std::fs::read(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let cut = [&whole[..], b"\n[[task]\n"].concat();
    expect(binary, &["check", "-"], 2, Some(&cut)).map(drop)
}

fn workload(binary: &Path, file: &Path) -> Result<(), String> {
    let imported = expect(binary, &["import", "rt-app", &text(file)], 0, None)?;
    expect(binary, &["check", "-"], 0, Some(&imported))?;
    expect(binary, &["simulate", "-", "--for", SIMULATED], 0, Some(&imported)).map(drop)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs the binary, compares its exit status with `status`, and returns its standard output.
fn expect(binary: &Path, arguments: &[&str], status: i32, input: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = tool::shown(&command);
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        std::io::Write::write_all(&mut stdin, input).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.code() == Some(status) {
        eprintln!("xtask: {shown}: {status}, as expected");
        return Ok(output.stdout);
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{shown} ended with {}, not {status}\n{out}{err}", output.status))
}
