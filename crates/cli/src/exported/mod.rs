//! `lockwright export`: a system as a program in C, or as a workload of another tool.

mod c;
mod rt_app;

use crate::args::{Export, ExportedForm, ProtocolChoice};
use crate::console::Console;
use crate::exit::Exit;
use crate::input;
use crate::tame::tame;
use lockwright_model::{Duration, Protocol, Scheduler, System};

/// A system that the form cannot express: what it cannot express, and what to do.
pub(crate) struct Inexpressible {
    message: String,
    help: &'static str,
}

impl Inexpressible {
    fn new(message: String, help: &'static str) -> Self {
        Self { message, help }
    }
}

/// Executes `export`.
///
/// # Errors
/// The console has the message.
pub fn export(arguments: &Export, console: &Console) -> Result<Exit, Exit> {
    let input = input::read_scheduled(&arguments.file, &[Scheduler::PFp], console)?;
    let system = &input.system;
    let protocol = match arguments.protocol {
        ProtocolChoice::One(protocol) => protocol,
        _ => system.protocol_or_default(),
    };
    let text = match arguments.form {
        ExportedForm::C => c::program(system, &input.name, protocol),
        ExportedForm::RtApp => rt_app::workload(system, protocol),
    };
    let text = text.map_err(|why| {
        console.error(tame(&why.message), why.help);
        Exit::BadInput
    })?;
    if system.tasks().iter().any(|task| task.jitter > Duration::ZERO) {
        console.note("release jitter is omitted: each job is released when it arrives");
    }
    console.print(&text)?;
    Ok(Exit::Holds)
}

/// The level of SCHED_FIFO of each task, in the order of the tasks: 1 for the least priority, and so on.
fn levels(system: &System) -> Result<Vec<u8>, Inexpressible> {
    let mut priorities: Vec<_> = system.tasks().iter().map(|task| task.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    if priorities.len() > LEVELS_MAX {
        let message = format!("the tasks have {} different priorities, and SCHED_FIFO has 99 levels", priorities.len());
        return Err(Inexpressible::new(message, "give the same priority to some tasks"));
    }
    let rank = |priority| priorities.partition_point(|other| *other < priority) as u8 + 1;
    Ok(system.tasks().iter().map(|task| rank(task.priority)).collect())
}

/// One level remains above all tasks, for a watchdog.
const LEVELS_MAX: usize = 98;

/// The fault of a protocol that the form does not have.
fn unknown(protocol: Protocol, what: &str, help: &'static str) -> Inexpressible {
    Inexpressible::new(format!("{what} do not have the protocol `{protocol}`"), help)
}
