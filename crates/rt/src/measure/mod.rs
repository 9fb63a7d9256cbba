//! What locks cost on this machine: alone, and against each other.

mod contention;
mod cost;
mod ics;
mod mutex;
mod pace;
mod protocols;
mod squad;
mod subject;

pub use contention::{Arrivals, Contended, ContentionConfig, OverFifo, contention};
pub use cost::{Cost, Costs, cost};
pub use ics::{Experiment, Mechanism, Overhead, Overheads, Setting, ics_experiments, ics_overheads};
pub use mutex::{HandOver, hand_over, mutex_cost};
pub use protocols::{Interruptions, Pick, ProtocolCost, Protocols, Readings, Work, overheads, protocols};
pub use subject::lock_names;

/// Above everything that is not this measurement, but for the thread that watches it.
const LEVEL: u8 = 90;

/// Tests that claim slots take turns.
#[cfg(test)]
fn all_slots() -> std::sync::MutexGuard<'static, ()> {
    static SLOTS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
