//! Internals for `lockwright-measure`: threads that are set up together, and the kernel's record of context switches.
//!
//! This module is not part of the public interface, and changes with that crate.

pub use crate::occupancy::Recorder;
pub use crate::switches::Ring;
pub use crate::team::{END_NS, Ends, Gate, Muster, Place, become_realtime, spawn, wait_for_ends};
