//! What `--overheads` names: read once, charged to the system under each protocol.

use crate::console::{Console, tame};
use crate::exit::Exit;
use crate::input;
use crate::report::Report;
use lockwright_analysis::{best, charge};
use lockwright_model::{Overheads, Protocol, System};
use std::path::Path;

/// Overheads that are charged.
pub struct Charges {
    overheads: Overheads,
    /// As messages call them, such as "the overheads of costs.toml".
    pub name: String,
}

impl Charges {
    /// Those of a file.
    ///
    /// # Errors
    /// Says what is wrong with the file.
    pub fn read(path: &Path, console: &Console) -> Result<Self, Exit> {
        let overheads = input::read_overheads(path, console)?;
        Ok(Self { overheads, name: format!("the overheads of {}", tame(&path.display().to_string())) })
    }

    /// As [`Charges::read`], where an option names a file.
    ///
    /// # Errors
    /// As there.
    pub fn of(option: Option<&Path>, console: &Console) -> Result<Option<Self>, Exit> {
        option.map(|path| Self::read(path, console)).transpose()
    }

    /// Overheads from elsewhere, and what messages call them.
    #[must_use]
    pub fn new(overheads: Overheads, name: String) -> Self {
        Self { overheads, name }
    }

    /// The system with these overheads.
    ///
    /// # Errors
    /// Says why they cannot be charged.
    pub fn charge(&self, system: &System, protocol: Protocol, console: &Console) -> Result<System, Exit> {
        charged(system, &self.overheads, protocol, console)
    }
}

/// The bounds of a system: of that with overheads, where there is one.
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
/// Says why they cannot be charged.
pub fn charged(system: &System, overheads: &Overheads, protocol: Protocol, console: &Console) -> Result<System, Exit> {
    charge(system, overheads, protocol).map_err(|why| {
        console.error(format!("the overheads cannot be charged: {}", why.message), &why.help);
        Exit::BadInput
    })
}

/// Below the tables: what is charged, where something is.
#[must_use]
pub fn note(path: Option<&Path>) -> String {
    let Some(path) = path else { return String::new() };
    let path = tame(&path.display().to_string());
    format!("\nThe overheads of {path} are charged; see docs/overheads.md.\n")
}
