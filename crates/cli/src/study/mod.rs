//! `lockwright study`: published simulations, repeated.

mod bpl;
mod figures;

use crate::args::Study;
use crate::console::Console;
use crate::exit::Exit;

/// Does `study`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn study(arguments: &Study, console: &Console) -> Result<Exit, Exit> {
    match arguments {
        Study::Bpl(arguments) => bpl::bpl(arguments, console),
    }
}
