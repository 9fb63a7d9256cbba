//! `lockwright import`: workloads of other tools as task-set files.

use crate::args::{Import, Tool};
use crate::console::Console;
use crate::diagnose::Severity;
use crate::exit::Exit;
use crate::input::Source;
use lockwright_model::format::{import_rt_app, write_system};

/// Executes `import`.
///
/// # Errors
/// The console has the message.
pub fn import(arguments: &Import, console: &Console) -> Result<Exit, Exit> {
    let source = Source::read(&arguments.file, console)?;
    let text = source.text(console)?;
    let result = match arguments.tool {
        Tool::RtApp => import_rt_app(text),
    };
    match result {
        Ok(imported) => {
            source.show(&imported.notes, Severity::Note, console);
            console.print(&write_system(&imported.system))?;
            Ok(Exit::Holds)
        }
        Err(faults) => {
            source.show(&faults, Severity::Error, console);
            Err(Exit::BadInput)
        }
    }
}
