//! The checks that take too long for every change: `cargo xtask test --deep`.

use crate::{deb, installed, packages, pages, python, tool, tsan};

/// A check: its name, what it covers, and the function that performs it.
type Check = (&'static str, &'static str, fn() -> Result<(), String>);

/// The checks in the order in which they run, the quick ones first.
const CHECKS: [Check; 16] = [
    ("features", "every useful combination of features builds", features),
    ("targets", "the crates without std build for processors without an operating system", targets),
    ("msrv", "everything builds with the oldest supported compiler", msrv),
    ("attacks", "the attacks on all bounds, with ten times as many systems", attacks),
    ("full", "the other tests that `cargo xtask test` shortens, with all of their rounds", full),
    (
        "loom",
        "the interleavings of two to four threads on each spinlock, in interruptible sections and on objects",
        || model("loom"),
    ),
    ("shuttle", "samples of the interleavings of four to six threads on the same", || model("shuttle")),
    (
        "installed",
        "everything is installed under target/, and programs are built and preloaded with it",
        installed::run,
    ),
    ("deb", "the Debian package is built, installed below target/, used and removed", deb::check),
    ("pages", "pages of HTML in a browser, and pictures in a second program (Chromium, librsvg)", pages::run),
    ("packages", "every published crate is packaged and built from its package", packages::crates),
    ("python", "the Python package: built, typed, and tested in an environment of its own", python::run),
    ("licences", "licences and banned crates (cargo-deny)", packages::licences),
    ("miri", "undefined behaviour in locks, ics, objects, protocol and model (Miri)", miri),
    ("tsan", "data races in a program in C and the library below it (ThreadSanitizer)", tsan::run),
    ("fuzz", "each reader, for a minute, with random bytes (cargo-fuzz)", fuzz),
];

/// Runs all checks, or those that are named.
pub fn run(names: &[String]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|check| check.0 == **name)) {
        let known: Vec<&str> = CHECKS.iter().map(|check| check.0).collect();
        return Err(format!("there is no check `{unknown}`; there are {}", known.join(", ")));
    }
    let mut failed = Vec::new();
    for (name, what, check) in CHECKS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let begin = std::time::Instant::now();
        eprintln!("xtask: {name}: {what}");
        let done = check();
        eprintln!("xtask: {name} took {} s", begin.elapsed().as_secs());
        if let Err(why) = done {
            eprintln!("xtask: {name} failed: {why}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these checks failed: {}", failed.join(", "))) }
}

/// Prints the checks for the help.
pub fn list() {
    for (name, what, _) in CHECKS {
        println!("    {name:<10}{what}");
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
    ] {
        let chosen = ["check", "--package", package, "--no-default-features", "--features", features];
        tool::cargo(&chosen)?;
    }
    tool::cargo(&["test", "--package", "lockwright-locks", "--all-features"])
}

/// The targets, and whether interruptible sections and objects build there. Each target has a compare-and-swap of a
/// word; interruptible sections and objects need one of 64 bits.
const TARGETS: [(&str, bool); 3] =
    [("thumbv7em-none-eabihf", false), ("riscv32imac-unknown-none-elf", false), ("x86_64-unknown-none", true)];

fn targets() -> Result<(), String> {
    for (target, has_64_bits) in TARGETS {
        tool::run(tool::command("rustup").args(["target", "add", target]))?;
        let build =
            |package| tool::cargo(&["build", "--package", package, "--no-default-features", "--target", target]);
        build("lockwright-locks")?;
        if has_64_bits {
            build("lockwright-ics")?;
            build("lockwright-objects")?;
        }
        // Only linking a program with model and protocol shows that they need no allocator.
        let program = "crates/protocol/tests/no_alloc/Cargo.toml";
        let mut link = tool::cargo_command(&["build", "--locked", "--manifest-path", program, "--target", target]);
        tool::run(link.arg("--target-dir").arg(tool::root().join("target/no_alloc")))?;
    }
    Ok(())
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
    deep_test(&["--lib", "--", "batched::search", "mutex::model"])
}

fn deep_test(arguments: &[&str]) -> Result<(), String> {
    let mut command = tool::cargo_command(&["test", "--workspace"]);
    tool::run(command.args(arguments).env("LOCKWRIGHT_DEEP", "1"))
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
    for package in
        ["lockwright-locks", "lockwright-ics", "lockwright-objects", "lockwright-protocol", "lockwright-model"]
    {
        let mut command = tool::rustup_cargo("nightly", &["miri", "test", "--package", package, "--lib"]);
        tool::run(command.arg("--target-dir").arg(tool::root().join("target/miri")))?;
    }
    Ok(())
}

/// Fuzzes each reader for a minute.
fn fuzz() -> Result<(), String> {
    tool::install("cargo-fuzz", "fuzz")?;
    let corpus = tool::root().join("fuzz/corpus");
    for (target, seeds, extension) in [
        ("task_set", "crates/model/tests/corpus/task-set", "toml"),
        ("rt_app", "crates/model/tests/corpus/rt-app", "json"),
        ("xml", "crates/model/tests/corpus/schedcat", "xml"),
        ("xml", "crates/model/tests/corpus/cheddar", "xmlv3"),
        ("overheads", "crates/model/tests/corpus/overheads", "toml"),
    ] {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        for source in [tool::root().join(seeds), tool::root().join("examples")] {
            let entries = std::fs::read_dir(&source).map_err(|error| format!("{}: {error}", source.display()))?;
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.extension().is_some_and(|found| found == extension) {
                    let name = path.file_name().unwrap_or_default();
                    std::fs::copy(&path, folder.join(name)).map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
        }
        let arguments = ["fuzz", "run", target, "--", "-max_total_time=60"];
        tool::run(&mut tool::rustup_cargo("nightly", &arguments))?;
    }
    Ok(())
}
