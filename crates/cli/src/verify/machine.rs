//! Measuring what this machine takes.

use crate::interrupt;
use lockwright_engine::{Control, RunError};
use lockwright_model::Protocol;
use lockwright_model::format::write_overheads;

/// Changes whenever something else is measured: overheads that were kept before do not serve then.
pub const MEASUREMENT: u32 = 2;
/// Readings of everything.
const READINGS: usize = 2_000;

/// An overheads file of this machine, with a table for each protocol. `None` where `control` was stopped.
///
/// # Errors
/// Without the right to real-time priorities; where threads cannot be started, or do not come back.
pub fn overheads(control: &Control) -> Result<Option<String>, RunError> {
    let measured = lockwright_measure::overheads(&Protocol::ALL, READINGS, control)?;
    Ok((!interrupt::requested()).then(|| write_overheads(&measured)))
}
