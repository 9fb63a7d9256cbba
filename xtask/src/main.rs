//! The project's commands for contributors: `cargo xtask test` sets up and runs every test.
#![forbid(unsafe_code)]

mod busy;
mod deb;
mod deep;
mod examples;
mod fuzz;
mod install;
mod installed;
mod lab;
mod packages;
mod pages;
mod python;
mod tests;
mod tool;
mod tsan;

use std::process::ExitCode;

/// The function of a command, which may take arguments.
enum Doing {
    Plain(fn() -> Result<(), String>),
    With(fn(&[String]) -> Result<(), String>),
}
use Doing::{Plain, With};

/// A command: its name, its description and its function.
type Chore = (&'static str, &'static str, Doing);

const CHORES: [Chore; 7] = [
    ("test", "[--deep [CHECK...]]: the tests of a contributor, or the checks that take longer", With(test)),
    ("schema", "write docs/output.schema.json from the types it describes", Plain(schema)),
    ("vectors", "DIR [--time]: compare the analyses with the published examples in a directory", With(vectors)),
    ("header", "write bindings/c/include/lockwright.h from the sources in bindings/c", Plain(header)),
    (
        "install",
        "--prefix DIR [--libdir DIR] [--destdir DIR]: install the command line, the libraries and the headers",
        With(install::install),
    ),
    (
        "lab",
        "[--cpus N] [--sockets N] [--kernel PACKAGE|FILE] [--no-throttling] [--isolated LIST] [--seed N] [NAME...]: tests on a machine of its own, with 8 processors and PREEMPT_RT",
        With(lab::run),
    ),
    ("deb", "build a Debian package of the same files in target/deb/", Plain(deb::build_package)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((wanted, arguments)) = arguments.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    let done = match CHORES.iter().find(|(name, ..)| name == wanted) {
        Some((name, _, Plain(chore))) if arguments.is_empty() => (name, chore()),
        Some((name, _, With(chore))) => (name, chore(arguments)),
        _ => {
            eprintln!("xtask: there is no such command");
            list();
            return ExitCode::from(2);
        }
    };
    let (name, done) = done;
    match done {
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
    println!("cargo xtask COMMAND, where COMMAND is one of");
    for (name, what, _) in &CHORES {
        println!("  {name:<10}{what}");
    }
    println!("\nThe checks of `cargo xtask test --deep`:");
    deep::list();
}

/// Runs the tests. Tests on real threads are skipped with a message if there is no permission for them; with
/// LOCKWRIGHT_REQUIRE_RT=1, they fail.
fn test(arguments: &[String]) -> Result<(), String> {
    tool::check_toolchain()?;
    match arguments {
        [] => {
            tests::run()?;
            examples::run()
        }
        [deep, names @ ..] if deep == "--deep" => deep::run(names),
        [other, ..] => Err(format!("`{other}` is not an option of `test`; the only one is --deep")),
    }
}

/// Compares the analyses with the examples in the caller's directory. The comparison is a program of its own.
fn vectors(arguments: &[String]) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|why| why.to_string())?;
    let mut command = tool::cargo_command(&["run", "--quiet", "--release", "--package", "lockwright-vectors", "--"]);
    command.args(arguments).current_dir(here);
    tool::run(&mut command)
}

fn schema() -> Result<(), String> {
    let mut command = tool::cargo_command(&["test", "--quiet", "--package", "lockwright-cli", "--test", "cli"]);
    command.args(["--", "schema::the_committed_schema_is_up_to_date"]).env("LOCKWRIGHT_WRITE_SCHEMA", "1");
    tool::run(&mut command)
}

fn header() -> Result<(), String> {
    let mut command = tool::cargo_command(&["test", "--quiet", "--package", "xtask", "--test", "header"]);
    command.args(["--", "the_committed_header_is_up_to_date"]).env("LOCKWRIGHT_WRITE_HEADER", "1");
    tool::run(&mut command)
}
