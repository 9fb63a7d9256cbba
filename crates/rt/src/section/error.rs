//! The errors of sections.

use lockwright_sys::SysError;
use lockwright_sys::time_slice::NoExtension;
use std::fmt;

/// Why a section could not be entered or left, or why a handle could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SectionError {
    /// The process may not use the level of sections.
    NoPermission {
        /// The level.
        level: u8,
        /// The kernel's error.
        error: SysError,
    },
    /// The level is not one of SCHED_FIFO.
    BadLevel {
        /// The requested level.
        level: u8,
    },
    /// The thread is under SCHED_DEADLINE, which is above all levels.
    Deadline,
    /// The thread cannot be bound to the processor.
    NoCpu {
        /// The processor's Linux number.
        cpu: usize,
        /// The kernel's error.
        error: SysError,
    },
    /// The thread already has a handle of this kind.
    SecondHandle,
    /// The thread would suspend inside its own section.
    Inside,
    /// The thread inside the section waits for the caller through other locks.
    Deadlock,
    /// A thread ended inside its section without leaving it, and the waiter to which the kernel gave the section could
    /// not execute.
    OwnerDied,
    /// The kernel extends no time slice of this thread.
    NoExtension(NoExtension),
    /// A system call failed.
    Sys(SysError),
}

impl fmt::Display for SectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermission { level, error } => write!(
                f,
                "no permission to rise to level {level} for a section ({error}); grant CAP_SYS_NICE (run with sudo, or \
                 `setcap cap_sys_nice+ep` on the binary), or an rtprio limit of {level} (a line `<user> - rtprio {level}` \
                 in /etc/security/limits.d), or use Eager::at with a lower level that is above all its users"
            ),
            Self::BadLevel { level } => {
                write!(f, "sections cannot have level {level}; SCHED_FIFO has levels 1 to 99")
            }
            Self::Deadline => f.write_str(
                "a thread under SCHED_DEADLINE cannot rise for a section: it is above all levels already, and only its \
                 own budget takes the processor from it; leave the section out, or put the thread under SCHED_FIFO",
            ),
            Self::NoCpu { cpu, error } => write!(
                f,
                "the thread cannot be bound to CPU {cpu} ({error}); choose one the process may use (`taskset -p <pid>` \
                 shows them), or widen its set (taskset, cpuset cgroup)"
            ),
            Self::SecondHandle => f.write_str(
                "this thread already has a handle for sections, and two handles would not track each other's sections; \
                 lend the first one, or drop it first",
            ),
            Self::Inside => f.write_str(
                "the thread would sleep inside its own section while others may spin for it; leave the section first",
            ),
            Self::Deadlock => f.write_str(
                "the thread inside the section waits for a lock that the caller holds; a section must not wait for \
                 locks that suspend",
            ),
            Self::OwnerDied => f.write_str(
                "a thread ended inside a section, and the waiter that inherited the section could not execute for \
                 several milliseconds; try again later",
            ),
            Self::NoExtension(why) => write!(f, "a section cannot be extended: {why}"),
            Self::Sys(error) => write!(f, "a section failed: {error}"),
        }
    }
}

impl std::error::Error for SectionError {}
