//! Measuring what this machine takes.

use crate::measure::overheads_of;
use lockwright::measure::protocols;
use lockwright::{Control, RunError};

/// Changes whenever something else is measured: overheads that were kept before do not serve then.
pub const MEASUREMENT: u32 = 1;
/// Readings of everything.
const READINGS: usize = 2_000;

/// An overheads file of this machine. `None` where `control` was stopped.
///
/// # Errors
/// Without the right to real-time priorities; where threads cannot be started, or do not come back.
pub fn overheads(control: &Control, tell: &mut dyn FnMut(usize, usize)) -> Result<Option<String>, RunError> {
    let seen = protocols(READINGS, 0, control, tell)?;
    Ok((!seen.interrupted).then(|| overheads_of(&seen)))
}
