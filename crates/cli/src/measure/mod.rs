//! `lockwright measure`: what locks cost on this machine.

mod costs;
mod figures;
mod frame;
mod ics;
mod locks;
mod mutex;
mod objects;
mod protocols;

use crate::args::Measure;
use crate::console::Console;
use crate::exit::Exit;

/// Executes `measure`.
///
/// # Errors
/// The console has the message.
pub fn measure(arguments: &Measure, console: &Console) -> Result<Exit, Exit> {
    match arguments {
        Measure::Locks(arguments) => locks::locks(arguments, console),
        Measure::Mutex(arguments) => mutex::mutex(arguments, console),
        Measure::Protocols(arguments) => protocols::protocols(arguments, console),
        Measure::Ics(arguments) => ics::ics(arguments, console),
        Measure::Objects(arguments) => objects::objects(arguments, console),
    }
}
