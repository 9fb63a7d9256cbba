//! Why a section fails.

use lockwright_sys::SysError;
use std::fmt;

/// Why a section could not be entered, left, or made possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SectionError {
    /// The process may not use the level of sections.
    NoPermission {
        /// The level.
        level: u8,
        /// The kernel's answer.
        error: SysError,
    },
    /// Not a level of SCHED_FIFO.
    BadLevel {
        /// What was asked for.
        level: u8,
    },
    /// The thread is under SCHED_DEADLINE, which is above all levels.
    Deadline,
    /// The thread cannot be bound to the processor.
    NoCpu {
        /// Its Linux number.
        cpu: usize,
        /// The kernel's answer.
        error: SysError,
    },
    /// The thread has a handle of this kind already.
    SecondHandle,
    /// The thread would suspend inside its own section.
    Inside,
    /// The thread inside waits, by other locks, for the caller.
    Deadlock,
    /// A thread ended inside without warning, and the waiter the kernel gave its section to was kept from executing.
    OwnerDied,
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
                 in /etc/security/limits.d), or give sections a lower level by Eager::at, above all threads they meet"
            ),
            Self::BadLevel { level } => {
                write!(f, "sections cannot have level {level}; SCHED_FIFO has levels 1 to 99")
            }
            Self::Deadline => f.write_str(
                "a thread under SCHED_DEADLINE cannot rise for a section: it is above all levels already, and nothing \
                 but its own budget takes the processor from it; leave the section out, or put the thread under SCHED_FIFO",
            ),
            Self::NoCpu { cpu, error } => write!(
                f,
                "the thread cannot be bound to CPU {cpu} ({error}); choose one the process may use (`taskset -p <pid>` \
                 shows them), or widen its set (taskset, cpuset cgroup)"
            ),
            Self::SecondHandle => f.write_str(
                "this thread has a handle for sections already, and two would not know of each other's sections; lend \
                 the first one, or drop it before",
            ),
            Self::Inside => f.write_str(
                "the thread would sleep inside its own section, while others may spin for it; leave the section before",
            ),
            Self::Deadlock => f.write_str(
                "the thread inside the section waits for a lock that the caller holds; a section must not wait for \
                 locks that suspend",
            ),
            Self::OwnerDied => f.write_str(
                "a thread ended inside a section, and the one that waited for it was kept from executing for several \
                 milliseconds since; ask again later",
            ),
            Self::Sys(error) => write!(f, "a section failed: {error}"),
        }
    }
}

impl std::error::Error for SectionError {}
