//! What locks cost on this machine: alone, and against each other.

mod contention;
mod cost;
mod pace;
mod squad;
mod subject;

pub use contention::{Arrivals, Contended, ContentionConfig, OverFifo, contention};
pub use cost::{Cost, Costs, cost};
pub use subject::lock_names;

/// Above everything that is not this measurement, but for the thread that watches it.
const LEVEL: u8 = 90;
