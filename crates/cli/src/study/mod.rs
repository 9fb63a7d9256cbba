//! `lockwright study`: published studies, and studies that a file describes.

mod beside;
mod bpl;
mod bpl_page;
mod dask;
mod engine;
mod figures;
mod file;
mod folder;
mod list;
mod page;
mod rtas2008;
mod table;

use crate::args::{Study, StudyVerb};
use crate::console::Console;
use crate::exit::Exit;

/// Executes `study`.
///
/// # Errors
/// The console has the message.
pub fn study(arguments: &Study, console: &Console) -> Result<Exit, Exit> {
    match &arguments.verb {
        Some(StudyVerb::Bpl(arguments)) => bpl::bpl(arguments, console),
        Some(StudyVerb::List) => list::list(console),
        Some(StudyVerb::Rtas2008(arguments)) => rtas2008::rtas2008(arguments, console),
        None => file::file(arguments, console),
    }
}
