//! `lockwright watch`: what the tasks and mutexes of a running process do, from memory that it shares.

mod look;
mod maps;
#[cfg(feature = "screen")]
mod screen;
mod tables;

use crate::args::Watch;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::{self, WatchOutput};
use std::io::ErrorKind;

/// Executes `watch`.
///
/// # Errors
/// The console has the message.
pub fn watch(arguments: &Watch, console: &Console) -> Result<Exit, Exit> {
    let first = first(arguments.process, console)?;
    if arguments.json {
        console.print(&json::to_text(&first))?;
        return Ok(Exit::Holds);
    }
    #[cfg(feature = "screen")]
    if !arguments.once && crate::streams::are_terminals()[0] {
        return screen::show(arguments, first, console);
    }
    console.print_text(&tables::text(&first, console))?;
    Ok(Exit::Holds)
}

/// The first look, which tells why there is nothing to see.
fn first(process: u32, console: &Console) -> Result<WatchOutput, Exit> {
    let found = look::look(process).map_err(|error| {
        let (message, help, exit) = match error.kind() {
            ErrorKind::NotFound => (format!("there is no process {process}"), "", Exit::BadInput),
            ErrorKind::PermissionDenied => (
                format!("process {process} may not be looked at: {error}"),
                "watch as the user of the process, or as root",
                Exit::Machine,
            ),
            _ => (format!("process {process}: {error}"), "use the lockwright of the version it uses", Exit::BadInput),
        };
        console.error(message, help);
        exit
    })?;
    if found.sets.is_empty() && found.mutexes.is_empty() {
        console.error(
            format!("process {process} ({}) has no statistics", found.program),
            "a program counts its tasks with lw_taskset_measure or TaskSet::measure, and its mutexes with \
             Builder::counted, with lw_mutex_init and .counted, or if it is started with \
             LD_PRELOAD=liblockwright_pthread.so LOCKWRIGHT_STATS=1",
        );
        return Err(Exit::BadInput);
    }
    Ok(found)
}
