//! `lockwright export`: a system as a program in C, or as a workload of another tool.

mod c;
mod form;
mod rt_app;

use crate::args::{Export, ExportedForm, ProtocolChoice};
use crate::console::Console;
use crate::exit::Exit;
use crate::input;
use crate::tame::line;
use lockwright_model::{Duration, Scheduler};

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
        console.error(line(&why.message), why.help);
        Exit::BadInput
    })?;
    if system.tasks().iter().any(|task| task.jitter > Duration::ZERO) {
        console.note("release jitter is omitted: each job is released when it arrives");
    }
    console.print(&text)?;
    Ok(Exit::Holds)
}
