//! The levels of SCHED_FIFO that Lockwright assigns.
//!
//! ```text
//!   99        the watchdog of a run
//!   98        scripted priority changes; sections that no task preempts
//!   1..=97    tasks
//! ```

/// Level of the watchdog of a run.
pub const WATCHDOG_LEVEL: u8 = 99;
/// Level of the thread that carries out scripted priority changes.
pub const SCRIPT_LEVEL: u8 = 98;
/// Level of a thread inside an eager section: above all tasks, below the watchdog. Two threads at one level do not
/// preempt each other, so a scripted change and a section on one processor execute one after the other.
pub const SECTION_LEVEL: u8 = 98;
/// Highest level for tasks; the lowest is 1.
pub const TASK_LEVELS_MAX: usize = 97;
