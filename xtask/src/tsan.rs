//! Runs ThreadSanitizer on the C interface. It observes the library, a program in C, and the rebuilt standard library.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The exit status of the program if there are no options with this number, and if it may not use SCHED_FIFO.
const NO_SUCH: i32 = 2;
const SKIPPED: i32 = 77;
/// The exit status of a program in which ThreadSanitizer found a race.
const REPORTED: i32 = 66;

/// Builds the library and the program. Checks that no race is reported in the program, and that one is reported in each
/// of its mutants.
pub fn run() -> Result<(), String> {
    let folder = tool::root().join("target/tsan");
    let mut build = tool::rustup_cargo(
        "nightly",
        &["rustc", "--locked", "--package", "lockwright-c", "--lib", "--crate-type", "staticlib", "-Zbuild-std"],
    );
    build.args(["--target", TARGET, "--target-dir"]).arg(&folder);
    // This cfg enables the annotations of hand-overs by the kernel.
    build.env("RUSTFLAGS", "-Zsanitizer=thread --cfg lockwright_tsan");
    if !tool::has_toolchain(&["+nightly", "component", "add", "rust-src"]) {
        return Ok(());
    }
    tool::run(&mut build)?;

    let program = link(&folder)?;
    let output = execute(&program, None)?;
    match output.status.code() {
        Some(0) => {}
        Some(SKIPPED) => {
            if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() {
                return Err("there is no permission for SCHED_FIFO".into());
            }
            eprintln!("xtask: skipped: there is no permission for SCHED_FIFO");
            return Ok(());
        }
        _ => return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
    // BOUND: the program has finitely many options.
    for number in 0.. {
        let output = execute(&program, Some(number))?;
        match output.status.code() {
            Some(REPORTED) => {}
            Some(NO_SUCH) if number > 0 => {
                eprintln!("xtask: {number} mutants were reported");
                return Ok(());
            }
            _ => return Err(format!("the race with the options {number} was not reported: {}", output.status)),
        }
    }
    Ok(())
}

/// Builds the program with the compiler's instrumentation and Rust's runtime of the sanitizer, because the compiler's
/// runtime may be older.
fn link(folder: &Path) -> Result<PathBuf, String> {
    let output = tool::command("rustup").args(["run", "nightly", "rustc", "--print", "target-libdir"]).output();
    let output = output.map_err(|error| format!("rustup does not start: {error}"))?;
    let runtime = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("librustc-nightly_rt.tsan.a");
    let cc = || Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    let (bindings, object, program) =
        (tool::root().join("bindings/c"), folder.join("handover.o"), folder.join("handover"));
    let mut compile = cc();
    compile.args(["-std=c11", "-O1", "-g", "-fsanitize=thread", "-c", "-I"]).arg(bindings.join("include"));
    tool::run(compile.arg(bindings.join("tests/tsan/handover.c")).arg("-o").arg(&object))?;
    let mut link = cc();
    link.arg(&object).arg(folder.join(TARGET).join("debug/liblockwright_c.a"));
    link.arg("-Wl,--whole-archive").arg(runtime).args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic", "-lresolv"]);
    tool::run(link.args(crate::install::SYSTEM.split(' ')).arg("-pthread").arg("-o").arg(&program))?;
    Ok(program)
}

/// Executes the program without address space randomisation, of which ThreadSanitizer supports only some forms.
fn execute(program: &Path, race: Option<u32>) -> Result<Output, String> {
    let mut command = Command::new("setarch");
    command.arg("-R").arg(program).args(race.map(|number| number.to_string()));
    command.env("TSAN_OPTIONS", format!("halt_on_error=1 exitcode={REPORTED}"));
    eprintln!("xtask: {}", tool::shown(&command));
    command.output().map_err(|error| format!("setarch does not start: {error}"))
}
