//! What locks cost on this machine: alone, and against each other.

mod contention;
mod cost;
mod subject;

pub use contention::{Arrivals, Contended, ContentionConfig, contention};
pub use cost::{Cost, Costs, cost};
pub use subject::lock_names;

use crate::sys::{SysError, sched};

/// A level no task of this measurement is preempted at, but by the thread that watches it.
const LEVEL: u8 = 90;
/// A section and its wait take turns with the rest of the machine: at most this much of each second is taken.
const BUSY_NS: u64 = 700_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Binds the calling thread to `cpu` under SCHED_FIFO.
fn become_realtime(cpu: usize) -> Result<(), SysError> {
    let me = sched::gettid();
    sched::set_affinity(me, &[cpu])?;
    sched::set_fifo(me, LEVEL)
}
