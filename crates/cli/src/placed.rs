//! The system of a file under another scheduler, or with its tasks on other CPUs.

use crate::console::Console;
use crate::exit::Exit;
use crate::input::{Input, Source};
use crate::tame::line;
use crate::units;
use lockwright_analysis::{Failure, Fit, partitioned};
use lockwright_model::format::Placing;
use lockwright_model::{Scheduler, TaskId};
use std::path::Path;

/// How tasks are assigned to CPUs.
#[derive(Clone, Copy)]
pub(crate) enum Assigned {
    /// By this heuristic, or as in the file.
    By(Option<Fit>),
    /// As in the file; the command has no option for it.
    InFile,
}

/// The system of a file under the chosen scheduler and partition.
///
/// # Errors
/// The file is invalid, or does not say where tasks execute; the console has the message.
pub(crate) fn placed(
    file: &Path,
    scheduler: Option<Scheduler>,
    assigned: Assigned,
    console: &Console,
) -> Result<Input, Exit> {
    let (partition, help) = match assigned {
        Assigned::By(partition) => (partition, "add --partition worst-fit"),
        Assigned::InFile => (None, "give each task a cpu; `check --partition worst-fit` proposes them"),
    };
    // The CPUs in the file matter unless the tasks are partitioned or the scheduler is global.
    let is_global = scheduler.is_some_and(Scheduler::is_global);
    let placing = if partition.is_some() || is_global { Placing::Caller } else { Placing::File };
    let source = Source::read(file, console)?;
    let (Input { mut system, name, text }, placed) = source.placed(placing, console)?;
    let (from, has_clusters) = (system.scheduler(), system.has_clusters());
    if let Some(scheduler) = scheduler {
        system = system.under(scheduler);
    }
    let scheduler = system.scheduler();
    match partition {
        Some(_) if scheduler == Scheduler::CFp => {
            console.error("under `c-fp` the file assigns tasks to clusters", "remove --partition");
            return Err(Exit::BadInput);
        }
        Some(_) if scheduler.is_global() => {
            console.error(format!("under `{scheduler}` tasks are not assigned to CPUs"), "remove --partition");
            return Err(Exit::BadInput);
        }
        Some(fit) => {
            system = partitioned(&system, fit).map_err(|why| {
                let task = match why {
                    Failure::Task { task } => format!("`{}`", line(&system.task(TaskId::new(task)).name)),
                    _ => "a task".into(),
                };
                let cpus = match system.cpus() {
                    1 => "the CPU".to_owned(),
                    cpus => format!("any of the {cpus} CPUs"),
                };
                console.error(
                    format!("{task} does not fit on {cpus} with this heuristic"),
                    "try another heuristic, or more CPUs",
                );
                Exit::BadInput
            })?;
        }
        None if has_clusters && !scheduler.is_global() && scheduler != Scheduler::CFp => {
            console.error(
                format!("under `{scheduler}` each task needs one CPU, and the file assigns tasks to clusters"),
                help,
            );
            return Err(Exit::BadInput);
        }
        None if from.is_global() && !scheduler.is_global() && system.cpus() > 1 && placed < system.tasks().len() => {
            console.error(format!("under `{scheduler}` each task needs a CPU, which the file does not give"), help);
            return Err(Exit::BadInput);
        }
        None => {}
    }
    let why = match partition {
        Some(_) => Some("--partition assigns the tasks to CPUs".to_owned()),
        None => scheduler.is_global().then(|| format!("under `{scheduler}` jobs execute on any CPU")),
    };
    if let Some(why) = why.filter(|_| placed > 0) {
        console.note(format!(
            "{why}: the CPUs that the file gives to {} are ignored",
            units::count(placed as u64, "task")
        ));
    }
    Ok(Input { system, name, text })
}
