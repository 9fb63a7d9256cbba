//! What the other crates of Lockwright need beyond the public interface: the locks of a system without a task set around them, and the levels that are given out.
//! It changes with them, and is for nobody else.

pub use crate::levels::{SCRIPT_LEVEL, WATCHDOG_LEVEL};
pub use crate::tasks::error::check_system;
pub use crate::tasks::executor::{Executor, Seat};
pub use crate::tasks::lock::{Ending, Locks};
pub use crate::tasks::priorities::{Levels, TooMany};
