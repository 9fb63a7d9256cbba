//! The overheads that `--overheads` names: read once, charged to the system under each protocol.

use crate::console::Console;
use crate::exit::Exit;
use crate::input;
use crate::report::Report;
use crate::tame::tame;
use lockwright_analysis::{best, charge, charge_by_deadline};
use lockwright_model::{Invalid, Overheads, Protocol, Scheduler, System};
use std::path::Path;

/// Overheads that are charged.
pub struct Charges {
    /// The overheads.
    pub overheads: Overheads,
    /// Their name in messages, such as "the overheads of costs.toml".
    pub name: String,
}

impl Charges {
    /// The overheads in a file.
    ///
    /// # Errors
    /// The file is invalid; the console has the message.
    pub fn read(path: &Path, console: &Console) -> Result<Self, Exit> {
        let overheads = input::read_overheads(path, console)?;
        Ok(Self { overheads, name: format!("the overheads of {}", tame(&path.display().to_string())) })
    }

    /// As [`Charges::read`], if the option names a file.
    ///
    /// # Errors
    /// As [`Charges::read`].
    pub fn of(option: Option<&Path>, console: &Console) -> Result<Option<Self>, Exit> {
        option.map(|path| Self::read(path, console)).transpose()
    }

    /// Overheads from elsewhere, and their name in messages.
    #[must_use]
    pub fn new(overheads: Overheads, name: String) -> Self {
        Self { overheads, name }
    }

    /// The system with these overheads.
    ///
    /// # Errors
    /// They cannot be charged; the console has the message.
    pub fn charge(&self, system: &System, protocol: Protocol, console: &Console) -> Result<System, Exit> {
        charged(system, &self.overheads, protocol, console)
    }
}

/// The bounds of a system, or of `charged`, the system with overheads, if it is given.
#[must_use]
pub fn bounds(system: &System, charged: Option<System>, protocol: Protocol) -> Report {
    match charged {
        None => Report::of_bounds(system, &best(system, protocol).0),
        Some(charged) => {
            let (analysis, _) = best(&charged, protocol);
            Report::of_charged(system, charged, &analysis)
        }
    }
}

/// The system with overheads.
///
/// # Errors
/// They cannot be charged; the console has the message.
pub fn charged(system: &System, overheads: &Overheads, protocol: Protocol, console: &Console) -> Result<System, Exit> {
    lengthened(system, overheads, protocol).map_err(|why| {
        console.error(format!("the overheads cannot be charged: {}", why.message), &why.help);
        Exit::BadInput
    })
}

/// As [`charged`], without a message. Under schedulers other than `p-fp` and `c-fp`, the execution times include the
/// interrupts, and the protocol has no effect.
///
/// # Errors
/// They cannot be charged.
pub fn lengthened(system: &System, overheads: &Overheads, protocol: Protocol) -> Result<System, Invalid> {
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => charge(system, overheads, protocol),
        _ => charge_by_deadline(system, overheads),
    }
}

/// A line below the tables that names the charged overheads, if there are any.
#[must_use]
pub fn note(path: Option<&Path>) -> String {
    let Some(path) = path else { return String::new() };
    let path = tame(&path.display().to_string());
    format!("\nThe overheads of {path} are charged; see docs/overheads.md.\n")
}
