//! Chores of the project: `cargo xtask test` is set-up and every test in one command.
#![forbid(unsafe_code)]

mod examples;
mod tool;

use std::process::ExitCode;

/// A chore: its name, what it does, and the doing.
type Chore = (&'static str, &'static str, fn() -> Result<(), String>);

const CHORES: [Chore; 5] = [
    ("test", "check the toolchain, then run every test and every example", test),
    ("examples", "run the example files through the command line", examples::run),
    ("loom", "explore the interleavings of two to four threads on every spinlock", loom),
    ("shuttle", "sample the interleavings of four to six threads on every spinlock", shuttle),
    ("schema", "write docs/output.schema.json from the types it describes", schema),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let chore = match (arguments.next(), arguments.next()) {
        (Some(name), None) => CHORES.iter().find(|(known, ..)| *known == name),
        (None, _) => {
            list();
            return ExitCode::SUCCESS;
        }
        _ => None,
    };
    let Some((name, _, chore)) = chore else {
        eprintln!("xtask: there is no such chore");
        list();
        return ExitCode::from(2);
    };
    match chore() {
        Ok(()) => {
            eprintln!("xtask: {name} is done");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("xtask: {name} failed: {why}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    println!("cargo xtask CHORE, where CHORE is one of");
    for (name, what, _) in CHORES {
        println!("  {name:<10}{what}");
    }
}

/// Tests of real threads are skipped, visibly, where there is no permission for them; LOCKWRIGHT_REQUIRE_RT=1 makes that a failure.
fn test() -> Result<(), String> {
    tool::check_toolchain()?;
    // Unit tests, integration tests and the examples in the documentation, of all crates.
    tool::cargo(&["test", "--workspace"])?;
    // What is optional in the spinlocks.
    tool::cargo(&["test", "--package", "lockwright-locks", "--all-features"])?;
    loom()?;
    shuttle()?;
    examples::run()
}

fn loom() -> Result<(), String> {
    model("loom")
}

fn shuttle() -> Result<(), String> {
    model("shuttle")
}

/// The tests of the spinlocks on a model's atomics; in a folder of their own, for everything is built anew.
fn model(name: &str) -> Result<(), String> {
    let folder = tool::root().join("target").join(name);
    let mut command = tool::cargo_command(&["test", "--release", "--package", "lockwright-locks", "--lib"]);
    command
        .arg("--target-dir")
        .arg(folder)
        .env("RUSTFLAGS", format!("--cfg lockwright_{name}"))
        .env("RUST_BACKTRACE", "0");
    tool::run(&mut command)
}

fn schema() -> Result<(), String> {
    let mut command = tool::cargo_command(&["test", "--quiet", "--package", "lockwright-cli", "--test", "cli"]);
    command.args(["--", "schema::the_committed_schema_is_up_to_date"]).env("LOCKWRIGHT_WRITE_SCHEMA", "1");
    tool::run(&mut command)
}
