//! The parts that the other crates of Lockwright need beyond the public interface: the locks of a system without a task
//! set around them, and the assignment of priority levels. They are not part of the stable interface.

pub use crate::levels::{SCRIPT_LEVEL, WATCHDOG_LEVEL};
pub use crate::tasks::error::{check_isolation, check_scheduler, check_system};
pub use crate::tasks::executor::{Executor, Seat, Turn, Waited};
pub use crate::tasks::journal::{Journal, Order};
pub use crate::tasks::lock::{Ending, Locks};
pub use crate::tasks::priorities::{Levels, TooMany};
