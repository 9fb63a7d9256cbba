//! `lockwright completions` and `lockwright man`: what an installation puts beside the binary.

use crate::args::{Cli, Completions, Man};
use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFolder;
use clap::CommandFactory;

/// Prints the completion script of a shell.
///
/// # Errors
/// The output cannot be written; the console has the message.
pub fn completions(arguments: &Completions, console: &Console) -> Result<Exit, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "lockwright", &mut script);
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Holds)
}

/// Writes a page for each command: `lockwright.1`, `lockwright-check.1`, `lockwright-measure-locks.1`.
///
/// # Errors
/// The directory or a page cannot be written; the console has the message.
pub fn man(arguments: &Man, console: &Console) -> Result<Exit, Exit> {
    let folder = ResultFolder::create(&arguments.folder, "DIR", console)?;
    clap_mangen::generate_to(Cli::command(), folder.path()).map_err(|error| {
        console.error(
            format!("cannot write into {}: {error}", folder.path().display()),
            "free space, or choose another path",
        );
        Exit::Machine
    })?;
    Ok(Exit::Holds)
}
