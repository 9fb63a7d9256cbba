//! The checks that take too long for every change: `cargo xtask test --deep`.

use crate::{busy, deb, fuzz, installed, lab, packages, pages, python, tool, tsan};
use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A check.
struct Check {
    name: &'static str,
    covers: &'static str,
    /// Whether it only computes: it executes no threads in real time, and may be kept from a processor for a while.
    computes: bool,
    run: fn() -> Result<(), String>,
}

/// A check that only computes.
const fn computing(name: &'static str, covers: &'static str, run: fn() -> Result<(), String>) -> Check {
    Check { name, covers, computes: true, run }
}

/// A check that executes threads in real time.
const fn executing(name: &'static str, covers: &'static str, run: fn() -> Result<(), String>) -> Check {
    Check { name, covers, computes: false, run }
}

/// The checks in the order in which they run, those first that others need or that are quick.
const CHECKS: [Check; 18] = [
    computing("features", "every useful combination of features builds", features),
    computing(
        "targets",
        "the crates without std build for processors without an operating system, or are refused in one sentence",
        targets,
    ),
    computing("msrv", "everything builds with the oldest supported compiler", msrv),
    computing("attacks", "the attacks on all bounds, with ten times as many systems", attacks),
    executing("full", "the other tests that `cargo xtask test` shortens, with all of their rounds", full),
    computing(
        "loom",
        "the interleavings of two to four threads on each spinlock, in interruptible sections and on objects",
        || model("loom"),
    ),
    computing("shuttle", "samples of the interleavings of four to six threads on the same", || model("shuttle")),
    executing(
        "installed",
        "everything is installed under target/, and programs are built and preloaded with it",
        installed::run,
    ),
    executing("deb", "the Debian package is built, installed below target/, used and removed", deb::check),
    executing("pages", "pages of HTML in a browser, and pictures in a second program (Chromium, librsvg)", pages::run),
    computing("packages", "every published crate is packaged and built from its package", packages::crates),
    executing("python", "the Python package: built, typed, and tested in an environment of its own", python::run),
    computing("licences", "licences and banned crates (cargo-deny)", packages::licences),
    computing("miri", "undefined behaviour in locks, ics, objects, protocol and model (Miri)", miri),
    executing("tsan", "data races in a program in C and the library below it (ThreadSanitizer)", tsan::run),
    executing("lab", "a part of `cargo xtask lab`: eight emulated processors under PREEMPT_RT (QEMU)", lab::check),
    executing("busy", "the tests on real threads, ten times beside threads that want every processor", busy::run),
    computing("fuzz", "each reader, for a minute or XTASK_FUZZ_SECONDS, with random bytes (libFuzzer)", fuzz::run),
];

/// Runs all checks, or those that are named. Checks that only compute run beside the others.
pub fn run(names: &[String]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|check| check.name == **name)) {
        let known: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        return Err(format!("there is no check `{unknown}`; there are {}", known.join(", ")));
    }
    let is_chosen = |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.name);
    let (computing, executing): (Vec<&Check>, Vec<&Check>) =
        CHECKS.iter().filter(is_chosen).partition(|it| it.computes);
    let failed = match (computing.is_empty(), executing.is_empty()) {
        (false, false) => std::thread::scope(|scope| {
            let behind = scope.spawn(|| failed(&computing, run_behind));
            let mut failed = failed(&executing, run_apart);
            failed.extend(behind.join().unwrap_or_else(|_| vec![("those that compute", "a thread panicked".into())]));
            failed
        }),
        _ => failed(&[computing, executing].concat(), if names.len() == 1 { run_here } else { run_apart }),
    };
    if failed.is_empty() {
        return Ok(());
    }
    // The reasons stand at the end: thousands of lines of other checks may follow a failure.
    for (name, why) in &failed {
        eprintln!("\nxtask: {name} failed: {why}");
    }
    Err(format!("these checks failed: {}", failed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")))
}

/// Runs the checks one after another. Returns those that failed, and why.
fn failed(checks: &[&Check], run: impl Fn(&Check) -> Result<(), String>) -> Vec<(&'static str, String)> {
    let failure = |check: &&Check| run(check).err().map(|why| (check.name, why));
    checks.iter().filter_map(failure).collect()
}

fn run_here(check: &Check) -> Result<(), String> {
    let begin = std::time::Instant::now();
    eprintln!("xtask: {}: {}", check.name, check.covers);
    let done = (check.run)();
    eprintln!("xtask: {} took {} s", check.name, begin.elapsed().as_secs());
    done
}

/// Runs the check in a process of its own, and keeps the end of its output for the error.
fn run_apart(check: &Check) -> Result<(), String> {
    tool::run_with_end(tool::command(&me()).args(["test", "--deep", check.name]))
}

/// Runs the check in a process of its own, where no other thread wants the processor.
fn run_behind(check: &Check) -> Result<(), String> {
    tool::run_with_end(tool::idle(Path::new(&me())).args(["test", "--deep", check.name]))
}

/// The path of this program, which is not its file any more once a check has built it again.
fn me() -> String {
    format!("/proc/{}/exe", std::process::id())
}

/// Prints the checks for the help.
pub fn list() {
    for check in &CHECKS {
        println!("    {:<10}{}", check.name, check.covers);
    }
}

fn features() -> Result<(), String> {
    for (package, features) in [
        ("lockwright-model", ""),
        ("lockwright-model", "alloc"),
        ("lockwright-protocol", ""),
        ("lockwright-protocol", "boxed"),
        ("lockwright-locks", "lock_api"),
        ("lockwright-locks", "std"),
        ("lockwright-analysis", ""),
        ("lockwright-analysis", "lp"),
        ("lockwright-cli", ""),
        ("lockwright-cli", "serve"),
    ] {
        let chosen = ["check", "--package", package, "--no-default-features", "--features", features];
        tool::cargo(&chosen)?;
    }
    // In a build of the whole workspace, the Python package turns the server on and leaves the screen out. All features
    // are together in what is installed.
    for (target, names) in
        [("--lib", &["watch::"][..]), ("--test=cli", &["watch::", "pages::a_build_without_a_server_says_so"])]
    {
        let cli = ["test", "--package", "lockwright-cli", "--no-default-features", "--features", "screen", target];
        let mut cli = tool::cargo_command(&cli);
        // In a directory of its own: another check would build the command line again while the tests execute it.
        named_tests(cli.arg("--target-dir").arg(tool::root().join("target/features")), names)?;
    }
    tool::cargo(&["test", "--package", "lockwright-locks", "--all-features"])
}

/// The targets, and whether interruptible sections and objects build there. Each target has a compare-and-swap of a
/// word; interruptible sections and objects need one of 64 bits.
const TARGETS: [(&str, bool); 3] =
    [("thumbv7em-none-eabihf", false), ("riscv32imac-unknown-none-elf", false), ("x86_64-unknown-none", true)];

/// Targets without a compare-and-swap.
const TARGETS_WITHOUT_EXCHANGE: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

/// The only error of a build of the spinlocks there, as `crates/locks/build.rs` has it.
const NO_EXCHANGE: &str =
    "the target has no compare-and-swap of 32 bits and of a pointer's width, which spinlocks need";

fn targets() -> Result<(), String> {
    for (target, has_64_bits) in TARGETS {
        tool::rustup(&["target", "add", target])?;
        let packages = ["lockwright-locks", "lockwright-ics", "lockwright-objects"];
        for package in &packages[..if has_64_bits { 3 } else { 1 }] {
            tool::run(&mut build_for(target, package))?;
        }
        link_for(target)?;
    }
    for target in TARGETS_WITHOUT_EXCHANGE {
        if !tool::has_toolchain(&["target", "add", target]) {
            continue;
        }
        link_for(target)?;
        let mut build = build_for(target, "lockwright-locks");
        eprintln!("xtask: {}, which is refused", tool::shown(&build));
        let output = build.output().map_err(|error| format!("{} does not start: {error}", tool::shown(&build)))?;
        is_refused(&String::from_utf8_lossy(&output.stderr)).map_err(|why| format!("{target}: {why}"))?;
    }
    Ok(())
}

fn build_for(target: &str, package: &str) -> Command {
    tool::cargo_command(&["build", "--package", package, "--no-default-features", "--target", target])
}

/// Links a program with model and protocol. Only this shows that they need no allocator.
fn link_for(target: &str) -> Result<(), String> {
    let program = "crates/protocol/tests/no_alloc/Cargo.toml";
    let mut link = tool::cargo_command(&["build", "--locked", "--manifest-path", program, "--target", target]);
    tool::run(link.arg("--target-dir").arg(tool::root().join("target/no_alloc")))
}

/// Checks that what cargo printed has the one message, and no error of the compiler.
fn is_refused(printed: &str) -> Result<(), String> {
    let is_error = |line: &&str| line.starts_with("error") && !line.contains("build script logged errors");
    match printed.lines().filter(is_error).collect::<Vec<_>>().as_slice() {
        [only] if only.contains("lockwright-locks") && only.ends_with(NO_EXCHANGE) => Ok(()),
        _ => Err(format!("the spinlocks are not refused with one message, but:\n{printed}")),
    }
}

fn msrv() -> Result<(), String> {
    let (major, minor) = tool::RUST_OLDEST;
    let toolchain = format!("{major}.{minor}.0");
    if !tool::has_toolchain(&["toolchain", "install", &toolchain, "--profile", "minimal"]) {
        return Ok(());
    }
    let mut command = tool::rustup_cargo(&toolchain, &["check", "--workspace", "--all-targets", "--locked"]);
    tool::run(command.arg("--target-dir").arg(tool::root().join("target/msrv")))
}

/// The packages are not named, so that features and thus binaries are those of `cargo xtask test`.
fn attacks() -> Result<(), String> {
    deep_test(&["--test", "attacks"])
}

fn full() -> Result<(), String> {
    deep_test(&["--test", "c", "--test", "programs", "--test", "memory"])?;
    named_tests(deep_command().arg("--lib"), &["batched::search", "mutex::model"])?;
    named_tests(deep_command().args(["--test", "mutex"]), &["at_random_points"])?;
    let programs = ["random_systems_are_recorded", "inversion_of_pathfinder", "exported_pathfinder", "a_program_in_c"];
    let commands = ["the_examples_are_verified", "widths"];
    named_tests(deep_command().args(["--test", "cli"]), &[&programs[..], &commands].concat())?;
    let ends = ["an_overloaded_run_ends", "all_task_levels"];
    let judged = ["audit", "exclusion", "order", "stress"];
    named_tests(deep_command().args(["--test", "realtime"]), &[&judged[..], &ends].concat())
}

fn deep_test(arguments: &[&str]) -> Result<(), String> {
    tool::run(deep_command().args(arguments))
}

fn deep_command() -> Command {
    let mut command = tool::cargo_command(&["test", "--workspace"]);
    command.env("LOCKWRIGHT_DEEP", "1");
    command
}

/// Runs the tests whose names contain one of these, and fails if there is none for one of them.
fn named_tests(command: &mut Command, names: &[&str]) -> Result<(), String> {
    command.arg("--").args(names).stdout(Stdio::piped());
    let shown = tool::shown(command);
    eprintln!("xtask: {shown}");
    let failed = |why: &dyn Display| format!("{shown}: {why}");
    let mut cargo = command.spawn().map_err(|error| failed(&error))?;
    let mut passed = Vec::new();
    for line in cargo.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok)
    {
        println!("{line}");
        passed.extend(line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... ok")).map(str::to_owned));
    }
    let status = cargo.wait().map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&status));
    }
    match names.iter().find(|name| !passed.iter().any(|test| test.contains(**name))) {
        Some(name) => Err(failed(&format!("no test of `{name}` passed"))),
        None => Ok(()),
    }
}

/// Tests the spinlocks, interruptible sections and objects with the atomics of a model checker. They have their own
/// target directory, because everything is built again.
fn model(name: &str) -> Result<(), String> {
    let mut command = tool::cargo_command(&["test", "--release", "--lib"]);
    command
        .args(["--package", "lockwright-locks", "--package", "lockwright-ics", "--package", "lockwright-objects"])
        .arg("--target-dir")
        .arg(tool::root().join("target").join(name))
        .env("RUSTFLAGS", format!("--cfg lockwright_{name}"))
        .env("RUST_BACKTRACE", "0");
    tool::run(&mut command)
}

fn miri() -> Result<(), String> {
    if !tool::has_toolchain(&["+nightly", "component", "add", "miri", "rust-src"]) {
        return Ok(());
    }
    let packages =
        ["lockwright-objects", "lockwright-ics", "lockwright-locks", "lockwright-protocol", "lockwright-model"];
    let command = |package: &str, more: &[&str]| {
        let mut command = tool::rustup_cargo("nightly", &["miri", "test", "--package", package, "--lib"]);
        command.arg("--target-dir").arg(tool::root().join("target/miri")).args(more);
        command
    };
    // Cargo builds one at a time. An interpreter executes all threads of a program in one of its own, so several run.
    for package in packages {
        tool::run(&mut command(package, &["--no-run"]))?;
    }
    tool::run_pairs(packages.map(|package| command(package, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_fail_are_named() {
        let checks = [computing("one", "", || Ok(())), executing("two", "", || Err("why".into()))];
        assert_eq!(failed(&checks.each_ref(), run_here), [("two", "why".to_owned())]);
        assert!(failed(&checks.each_ref(), |_| Ok(())).is_empty());
    }

    #[test]
    fn a_target_is_refused_by_one_message_only() {
        let told = format!("error: lockwright-locks@0.1.0: {NO_EXCHANGE}\nerror: build script logged errors\n");
        assert_eq!(is_refused(&told), Ok(()));
        let errors = "error[E0432]: unresolved import `AtomicU64`\n";
        for wrong in ["", "Finished\n", errors, &(told + errors)] {
            assert!(is_refused(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_without_a_test_is_told() {
        // In place of cargo, a program prints what cargo would.
        let tests = |names: &[&str], status: u8| {
            let printed =
                format!("echo 'test a::search::one ... ok'; echo 'test b::model::two ... ignored'; exit {status}");
            named_tests(tool::command("sh").args(["-c", &printed]), names)
        };
        assert_eq!(tests(&["search"], 0), Ok(()));
        let error = tests(&["search", "model"], 0).expect_err("`model` did not run");
        assert!(error.contains("`model`"), "{error}");
        assert!(tests(&["search"], 1).is_err());
    }

    #[test]
    fn unknown_checks_are_refused() {
        let error = run(&["loom".to_owned(), "lom".to_owned()]).expect_err("there is no such check");
        assert!(error.contains("`lom`") && error.contains("loom"), "{error}");
    }
}
