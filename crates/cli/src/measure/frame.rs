//! The common parts of all subjects of `measure`: result files, interruption, and the end.

use crate::args::Results;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFolder, csv_text};
use crate::figure::Figure;
use crate::interrupt;
use crate::json::{self, LockCost};
use crate::progress::Progress;
use crate::units;
use lockwright::tasks::MachineError;
use lockwright_engine::{Control, RunError};
use lockwright_measure::{CostError, Costs};
use serde::Serialize;
use std::error::Error;

/// A measurement, from its arguments to its results.
pub struct Frame<'a> {
    console: &'a Console,
    is_json: bool,
    csv: Option<ResultFolder>,
    svg: Option<ResultFolder>,
    /// Suggestion for users without permission for real-time priorities, if there is one.
    without_rights: Option<&'static str>,
    /// Stopped by a signal.
    pub control: Control,
}

/// A CSV file: its name and its content.
pub type Table = (&'static str, Result<String, Box<dyn Error>>);

/// The files of the costs and of other results; without other results, their file is not touched.
pub fn tables<T: Serialize + Default>(costs: &[LockCost], name: &'static str, results: &[T]) -> Vec<Table> {
    let others = (!results.is_empty()).then(|| (name, csv_text(results)));
    std::iter::once(("cost.csv", csv_text(costs))).chain(others).collect()
}

/// The results in each form.
pub struct Findings<'a, T> {
    /// As one JSON object.
    pub output: &'a T,
    /// As tables.
    pub text: String,
    pub csv: Vec<Table>,
    pub figures: Vec<(String, Figure)>,
    /// Whether a signal ended the measurement, and what is left out then.
    pub interrupted: bool,
    pub cut: &'static str,
}

impl<'a> Frame<'a> {
    /// Creates the directories, and handles signals from now on.
    ///
    /// # Errors
    /// A directory cannot be created; the console has the message.
    pub fn begin(results: &Results, console: &'a Console) -> Result<Self, Exit> {
        let create = |path: &Option<_>, option| {
            path.as_deref().map(|path| ResultFolder::create(path, option, console)).transpose()
        };
        let (csv, svg) = (create(&results.csv, "--csv")?, create(&results.svg, "--svg")?);
        let control = Control::new();
        let stop = control.clone();
        interrupt::listen(move || stop.stop(), console);
        Ok(Self { console, is_json: results.json, csv, svg, without_rights: None, control })
    }

    /// Suggests `--alone` to users without permission for real-time priorities.
    pub fn works_alone(mut self, is_alone: bool) -> Self {
        self.without_rights = (!is_alone).then_some("`--alone` measures the part that needs no permission");
        self
    }

    /// Costs without contention.
    ///
    /// # Errors
    /// The measurement fails; the console has the message.
    pub fn costs(&self, measure: impl FnOnce(&Control) -> Result<Costs, CostError>) -> Result<Costs, Exit> {
        let costs = measure(&self.control).map_err(|error| match error {
            CostError::Run(error) => self.refuse(&error),
            coarse => {
                let help = "`lockwright measure ics --alone` needs no time-stamp counter";
                self.console.error(format!("cannot measure: {coarse}"), help);
                Exit::Machine
            }
        })?;
        self.warn_unless(costs.realtime);
        Ok(costs)
    }

    /// Warns if costs were measured without real-time priority.
    pub fn warn_unless(&self, realtime: bool) {
        if !realtime {
            self.console.warn("measured without real-time priority: other threads may have disturbed it; `lockwright doctor` prints what is missing");
        }
    }

    /// Executes `measure`, which may report its progress.
    ///
    /// # Errors
    /// The measurement fails; the console has the message.
    pub fn measure<T>(
        &self,
        measure: impl FnOnce(&Control, &mut dyn FnMut(usize, usize)) -> Result<T, RunError>,
    ) -> Result<T, Exit> {
        let progress = Progress::new(self.console, "measuring");
        let mut tell = |done: usize, whole: usize| progress.set(done as u64, whole as u64);
        measure(&self.control, &mut tell).map_err(|error| self.refuse(&error))
    }

    fn refuse(&self, error: &RunError) -> Exit {
        let message = match error {
            RunError::Stuck { tasks } => {
                format!("{} of the measuring threads did not end; they still wait for a lock or a CPU", tasks.len())
            }
            _ => error.to_string(),
        };
        let doctor = "`lockwright doctor` prints what this machine lacks";
        let help = match (error, self.without_rights) {
            (RunError::Machine(MachineError::NoPermission(_)), Some(instead)) => format!("{doctor}; {instead}"),
            _ => doctor.into(),
        };
        self.console.error(format!("cannot measure: {message}"), &help);
        Exit::Machine
    }

    /// Prints and writes all results. A failure of one does not prevent the others.
    ///
    /// # Errors
    /// One of them cannot be written; the console has the message.
    pub fn end<T: Serialize>(self, findings: Findings<'_, T>) -> Result<Exit, Exit> {
        let console = self.console;
        let printed = match self.is_json {
            true => console.print(&json::to_text(findings.output)),
            false => console.print_text(&findings.text),
        };
        let tabled = self.csv.map_or(Ok(()), |csv| {
            findings.csv.into_iter().try_for_each(|(name, content)| csv.write(name, content, console))
        });
        let drawn = self.svg.map_or(Ok(()), |svg| {
            for (name, figure) in &findings.figures {
                svg.write(name, figure.to_svg(), console)?;
            }
            console.note(format!(
                "{} in {}",
                units::count(findings.figures.len() as u64, "figure"),
                svg.path().display()
            ));
            Ok(())
        });
        if findings.interrupted {
            console.warn(format!("interrupted; {} are left out", findings.cut));
        }
        printed.and(tabled).and(drawn)?;
        Ok(if findings.interrupted { Exit::Interrupted } else { Exit::Holds })
    }
}
