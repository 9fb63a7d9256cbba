//! The overheads that `--overheads` names: read once, charged to the system under each protocol.

use crate::console::Console;
use crate::exit::Exit;
use crate::input;
use crate::report::Report;
use crate::same::Once;
use crate::tame::line;
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
        Ok(Self { overheads, name: format!("the overheads of {}", line(&path.display().to_string())) })
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

    /// The protocols under which these overheads can be charged, if there are any to charge. A note names the others.
    ///
    /// # Errors
    /// There are none; the console has the message.
    pub fn possible(
        charges: Option<&Self>,
        protocols: Vec<Protocol>,
        system: &System,
        console: &Console,
    ) -> Result<Vec<Protocol>, Exit> {
        let Some(charges) = charges else { return Ok(protocols) };
        let charged = chargeable(protocols, system, &charges.overheads, console)?;
        Ok(charged.into_iter().map(|(protocol, _)| protocol).collect())
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
    lengthened(system, overheads, protocol).map_err(|why| refuse(&why, console))
}

/// The protocols under which these overheads can be charged, with the charged systems. A note names the others.
///
/// # Errors
/// There are none; the console has the message.
pub fn chargeable(
    protocols: Vec<Protocol>,
    system: &System,
    overheads: &Overheads,
    console: &Console,
) -> Result<Vec<(Protocol, System)>, Exit> {
    let (mut charged, mut left_out, mut first) = (Vec::new(), Once::default(), None);
    let all = protocols.len();
    for protocol in protocols {
        match lengthened(system, overheads, protocol) {
            Ok(system) => charged.push((protocol, system)),
            Err(why) => {
                left_out.add(protocol.name(), format!("the overheads cannot be charged: {}", why.message));
                first.get_or_insert(why);
            }
        }
    }
    match first {
        Some(why) if charged.is_empty() => Err(refuse(&why, console)),
        _ => {
            left_out.texts(all).for_each(|text| console.note(format!("left out {text}")));
            Ok(charged)
        }
    }
}

fn refuse(why: &Invalid, console: &Console) -> Exit {
    console.error(format!("the overheads cannot be charged: {}", why.message), &why.help);
    Exit::BadInput
}

/// As [`charged`], without a message. Under schedulers other than `p-fp` and `c-fp`, the execution times include the
/// interrupts.
///
/// # Errors
/// They cannot be charged.
pub fn lengthened(system: &System, overheads: &Overheads, protocol: Protocol) -> Result<System, Invalid> {
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => charge(system, overheads, protocol),
        _ => charge_by_deadline(&system.clone().with_protocol(protocol), overheads),
    }
}

/// A line below the tables that names the charged overheads, if there are any.
#[must_use]
pub fn note(path: Option<&Path>) -> String {
    let Some(path) = path else { return String::new() };
    let path = line(&path.display().to_string());
    format!("\nThe overheads of {path} are charged; see docs/overheads.md.\n")
}
