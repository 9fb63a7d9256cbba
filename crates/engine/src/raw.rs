//! What `lockwright-measure` needs beyond the public interface: threads that are set up together, and the kernel's record of context switches.
//! It changes with that crate, and is for nobody else.

pub use crate::occupancy::Recorder;
pub use crate::switches::Ring;
pub use crate::team::{Ends, Gate, Muster, Place, become_realtime, spawn};
