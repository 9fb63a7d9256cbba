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

/// The tables and the records of a study in its directory, besides figures.
pub const RESULTS: [&str; 6] =
    ["manifest.json", "sums.json", "results.csv", "results.parquet", "weighted.csv", "conclusions.csv"];

/// The files in the directory of `study rtas2008 --overheads`.
pub const OVERHEADS: [&str; 2] = ["worst.toml", "average.toml"];

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
