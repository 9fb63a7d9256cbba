//! The result of an audit.

use lockwright_model::{CpuId, Instant, TaskId};
use std::fmt;

/// The most departures that are kept; all are counted.
pub(super) const DEPARTURES_MAX: usize = 100;

/// The result of an audit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Audit {
    /// The number of switches to or from a task that were judged.
    pub switches: u64,
    /// The number of inherited priorities that were judged, also their ends.
    pub boosts: u64,
    /// The number of wake-ups of waiting tasks that were judged.
    pub wake_ups: u64,
    /// The number of orders in the journal.
    pub orders: u64,
    /// The number of records of the kernel and of orders that were lost. Unless it is 0, nothing is judged.
    pub lost: u64,
    /// The number of departures from the orders.
    pub departed: u64,
    /// The first departures, in order of time.
    pub departures: Vec<Departure>,
}

/// Something in the kernel's trace that was not ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Departure {
    /// When, from the common start.
    pub at: Instant,
    /// The task.
    pub task: TaskId,
    /// What was seen.
    pub what: Departed,
}

/// What was seen in the kernel's trace, and what was ordered. Level 0 is the ordinary policy; `None` is the policy
/// SCHED_DEADLINE.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Departed {
    /// The task had a level that was neither ordered nor inherited.
    Level {
        /// The level.
        seen: Option<u8>,
        /// The levels that it could have had.
        ordered: Vec<u8>,
    },
    /// The task inherited a level that no thread of the run had.
    Boost {
        /// The level.
        to: Option<u8>,
    },
    /// The task executed on a CPU to which it was not sent.
    Place {
        /// The Linux number of the CPU.
        cpu: usize,
        /// The CPUs of the system on which it could have been.
        ordered: Vec<CpuId>,
    },
    /// The task waited for a protocol, and was woken although no machine had ordered it, or by another thread.
    WakeUp {
        /// The thread that woke it, if that is a task.
        by: Option<TaskId>,
    },
}

impl fmt::Display for Departed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |level: &Option<u8>| match level {
            Some(0) => "the ordinary policy".to_owned(),
            Some(level) => format!("level {level}"),
            None => "SCHED_DEADLINE".to_owned(),
        };
        match self {
            Self::Level { seen, ordered } => {
                let ordered: Vec<String> = ordered.iter().map(|&one| level(&Some(one))).collect();
                write!(f, "had {}; ordered was {}", level(seen), ordered.join(" or "))
            }
            Self::Boost { to } => write!(f, "inherited {}, which no thread of the run had", level(to)),
            Self::Place { cpu, ordered } => {
                let ordered: Vec<String> = ordered.iter().map(|cpu| cpu.0.to_string()).collect();
                write!(f, "executed on Linux CPU {cpu}; ordered was CPU {} of the system", ordered.join(" or "))
            }
            Self::WakeUp { by: Some(by) } => write!(f, "was woken by task {}, which was not ordered", by.0),
            Self::WakeUp { by: None } => f.write_str("was woken by a thread that is no task, which was not ordered"),
        }
    }
}
