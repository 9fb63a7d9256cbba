//! The Python package: `cargo xtask test --deep python`.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreters that the package supports.
const INTERPRETERS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3.14"];

/// Builds the wheel, installs it into a virtual environment below `target/`, and tests it there. The tests are repeated
/// with each other supported interpreter that is found.
pub fn run() -> Result<(), String> {
    let folder = tool::root().join("target/python");
    let venv = folder.join("venv");
    if let Err(why) = environment(&venv) {
        if std::env::var_os("LOCKWRIGHT_REQUIRE_PYTHON").is_some() {
            return Err(why);
        }
        eprintln!("xtask: skipped: {why}");
        return Ok(());
    }
    let wheels = folder.join("wheels");
    // An earlier wheel must not be taken for this one.
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let package = tool::root().join("bindings/python");
    // The profile of the other tests: their dependencies are compiled already.
    let build = ["build", "--locked", "--profile", "dev", "--out"];
    tool::run(inside(&venv, "maturin").args(build).arg(&wheels).current_dir(&package))?;
    let wheel = wheel(&wheels)?;
    pip(&venv, &["--force-reinstall", "--no-deps", &wheel])?;
    pip(&venv, &[&format!("{wheel}[test]")])?;
    let settings = package.join("pyproject.toml");
    let types = ["--package", "lockwright", "--config-file"];
    tool::run(inside(&venv, "mypy").args(types).arg(settings).current_dir(&folder))?;
    test(&venv, &package)?;
    let examples = ["-m", "pytest", "-q", "--doctest-modules", "--pyargs", "lockwright"];
    tool::run(inside(&venv, "python").args(examples).current_dir(&folder))?;
    let tested = version(&mut inside(&venv, "python")).unwrap_or_default();
    for interpreter in INTERPRETERS.into_iter().filter(|&interpreter| interpreter != tested) {
        // A name that starts another version, such as one of a version manager, does not count.
        if version(&mut tool::command(interpreter)).as_deref() != Some(interpreter) {
            eprintln!("xtask: skipped: the package was not tested with {interpreter}, which is not found");
            continue;
        }
        let venv = folder.join(interpreter);
        make(interpreter, &venv)?;
        pip(&venv, &["--force-reinstall", "--no-deps", &wheel])?;
        pip(&venv, &[&format!("{wheel}[test]")])?;
        test(&venv, &package)?;
    }
    Ok(())
}

/// Runs the tests of the package in an environment that contains it.
fn test(venv: &Path, package: &Path) -> Result<(), String> {
    let tests = ["-m", "pytest", "-q"];
    tool::run(inside(venv, "python").args(tests).env("LOCKWRIGHT_REQUIRE_DASK", "1").current_dir(package))
}

/// The name of an interpreter with its version, such as `python3.11`, or `None` if it does not start.
fn version(interpreter: &mut Command) -> Option<String> {
    let print = "import sys; print('python%d.%d' % sys.version_info[:2])";
    let output = interpreter.args(["-c", print]).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes a virtual environment, unless there is one.
fn make(interpreter: &str, venv: &Path) -> Result<(), String> {
    if venv.join("bin/python").exists() {
        return Ok(());
    }
    tool::run(tool::command(interpreter).args(["-m", "venv"]).arg(venv))
}

/// Makes the environment, and installs what builds the wheel.
fn environment(venv: &Path) -> Result<(), String> {
    let has_version = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
    tool::run(tool::command("python3").args(has_version)).map_err(|why| format!("{why}: Python 3.11 is needed"))?;
    make("python3", venv)?;
    pip(venv, &["maturin>=1.16,<2"])
}

/// A program of the environment.
fn inside(venv: &Path, program: &str) -> Command {
    Command::new(venv.join("bin").join(program))
}

fn pip(venv: &Path, packages: &[&str]) -> Result<(), String> {
    tool::run(inside(venv, "python").args(["-m", "pip", "install", "--quiet"]).args(packages))
}

/// The only wheel in this folder.
fn wheel(folder: &Path) -> Result<String, String> {
    let files = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let wheels: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    match wheels.as_slice() {
        [wheel] => Ok(wheel.display().to_string()),
        _ => Err(format!("{} wheels in {}, and not one", wheels.len(), folder.display())),
    }
}
