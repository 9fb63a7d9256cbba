//! Levels of SCHED_FIFO, as Lockwright gives them out.
//!
//! ```text
//!   99        the watchdog of a run
//!   98        scripted priority changes; sections no task preempts
//!   1..=97    tasks
//! ```

/// Level of the watchdog of a run.
pub const WATCHDOG_LEVEL: u8 = 99;
/// Level of the thread that carries out scripted priority changes.
pub const SCRIPT_LEVEL: u8 = 98;
/// Level of a thread inside an eager section: above all tasks, below the watchdog. Of two threads at one level neither
/// preempts the other, so that a scripted change and a section on one processor come one after the other.
pub const SECTION_LEVEL: u8 = 98;
/// Levels for tasks: 1 to this.
pub const TASK_LEVELS_MAX: usize = 97;
