//! `lockwright measure`: what locks cost on this machine.

mod figures;
mod locks;

use crate::args::Measure;
use crate::console::Console;
use crate::exit::Exit;

/// Does `measure`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn measure(arguments: &Measure, console: &Console) -> Result<Exit, Exit> {
    match arguments {
        Measure::Locks(arguments) => locks::locks(arguments, console),
    }
}
