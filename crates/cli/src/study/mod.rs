//! `lockwright study`: published studies, and studies that a file describes.

mod bpl;
mod engine;
mod figures;
mod file;
mod folder;
mod list;
mod rtas2008;

use crate::args::{Study, StudyVerb};
use crate::console::Console;
use crate::exit::Exit;
use engine::Outcome;
use folder::Folder;

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

/// The exit status of a study in a directory. An interrupted one tells how to continue.
fn ended(outcome: &Outcome, folder: &Folder, console: &Console) -> Result<Exit, Exit> {
    let shown = folder.path().display();
    if outcome.complete {
        return Ok(Exit::Holds);
    }
    if let Some(share) = outcome.share {
        console.note(format!("share {} of {} is in {shown}/parts", share.number, share.of));
        return Ok(Exit::Holds);
    }
    console.warn(format!("interrupted; the finished parts are in {shown}, and --resume continues the study"));
    Ok(Exit::Interrupted)
}
