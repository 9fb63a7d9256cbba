//! The files that one command line names.

use crate::args::Verb;
use crate::console::Console;
use crate::exit::Exit;
use std::path::Path;

/// Refuses a command line that reads standard input as two files: the second would be empty.
///
/// # Errors
/// The console has the message.
pub fn refuse_clashes(verb: &mut Verb, console: &Console) -> Result<(), Exit> {
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if let Some(subject) = verb.subject_mut()
        && is_stdin(&subject.file)
        && subject.overheads.as_deref().is_some_and(is_stdin)
    {
        console.error("standard input has one file, and `-` is given twice", "give --overheads the path of a file");
        return Err(Exit::BadInput);
    }
    Ok(())
}
