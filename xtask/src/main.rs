//! Chores of the project: `cargo xtask test` is set-up and every test in one command.
#![forbid(unsafe_code)]

mod deb;
mod deep;
mod examples;
mod install;
mod installed;
mod packages;
mod tool;
mod tsan;

use std::process::ExitCode;

/// What is done: without arguments, or with those behind its name.
enum Doing {
    Plain(fn() -> Result<(), String>),
    With(fn(&[String]) -> Result<(), String>),
}
use Doing::{Plain, With};

/// A chore: its name, what it does, and the doing.
type Chore = (&'static str, &'static str, Doing);

const CHORES: [Chore; 6] = [
    ("test", "[--deep [CHECK...]]: the tests of a contributor, or the checks that take longer", With(test)),
    ("schema", "write docs/output.schema.json from the types it describes", Plain(schema)),
    ("vectors", "DIR [--time]: hold the analyses against the published examples in a folder", With(vectors)),
    ("header", "write bindings/c/include/lockwright.h from the sources of bindings/c", Plain(header)),
    (
        "install",
        "--prefix DIR [--libdir DIR] [--destdir DIR]: install the command line, the libraries and the headers",
        With(install::install),
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
            eprintln!("xtask: there is no such chore");
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
    println!("cargo xtask CHORE, where CHORE is one of");
    for (name, what, _) in &CHORES {
        println!("  {name:<10}{what}");
    }
    println!("\nThe checks of `cargo xtask test --deep`:");
    deep::list();
}

/// Tests on real threads are skipped with a message where there is no permission for them; LOCKWRIGHT_REQUIRE_RT=1 makes that a failure.
fn test(arguments: &[String]) -> Result<(), String> {
    tool::check_toolchain()?;
    match arguments {
        [] => {
            // Unit tests, integration tests and the examples in the documentation, of all crates.
            tool::cargo(&["test", "--workspace", "--no-fail-fast"])?;
            examples::run()
        }
        [deep, names @ ..] if deep == "--deep" => deep::run(names),
        [other, ..] => Err(format!("`{other}` is no option of `test`; there is --deep")),
    }
}

/// The folder is the caller's; the chore is a program of its own.
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
    let mut command = tool::cargo_command(&["test", "--quiet", "--package", "lockwright-c", "--test", "header"]);
    command.args(["--", "the_committed_header_is_up_to_date"]).env("LOCKWRIGHT_WRITE_HEADER", "1");
    tool::run(&mut command)
}
