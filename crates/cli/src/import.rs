//! `lockwright import`: workloads of other tools as task-set files.

use crate::args::{Import, TimeUnit, Tool};
use crate::console::Console;
use crate::diagnose::Severity;
use crate::exit::Exit;
use crate::input::Source;
use lockwright_model::Duration;
use lockwright_model::format::{import_cheddar, import_rt_app, import_schedcat, write_system};

/// Executes `import`.
///
/// # Errors
/// The console has the message.
pub fn import(arguments: &Import, console: &Console) -> Result<Exit, Exit> {
    let source = Source::read(&arguments.file, console)?;
    let text = source.text(console)?;
    if arguments.tool == Tool::RtApp && arguments.unit.is_some() {
        console.error("the times of rt-app are microseconds", "remove --unit");
        return Err(Exit::BadInput);
    }
    let unit = |default: Duration| arguments.unit.map_or(default, duration);
    let result = match arguments.tool {
        Tool::RtApp => import_rt_app(text),
        Tool::Schedcat => import_schedcat(text, unit(Duration::from_us(1))),
        Tool::Cheddar => import_cheddar(text, unit(Duration::from_ms(1))),
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

/// The duration of one unit.
fn duration(unit: TimeUnit) -> Duration {
    match unit {
        TimeUnit::Ns => Duration::from_ns(1),
        TimeUnit::Us => Duration::from_us(1),
        TimeUnit::Ms => Duration::from_ms(1),
        TimeUnit::S => Duration::from_ms(1_000),
    }
}
