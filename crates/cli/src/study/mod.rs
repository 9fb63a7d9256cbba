//! `lockwright study`: published simulations, repeated.

mod bpl;
mod figures;

use crate::args::Study;
use crate::console::Console;
use crate::exit::Exit;

/// Executes `study`.
///
/// # Errors
/// The console has the message.
pub fn study(arguments: &Study, console: &Console) -> Result<Exit, Exit> {
    match arguments {
        Study::Bpl(arguments) => bpl::bpl(arguments, console),
    }
}
