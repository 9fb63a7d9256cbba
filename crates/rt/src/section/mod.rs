//! Sections that other threads of the same processor do not preempt: for users of spinlocks.
//!
//! A spinlock that serves in order of arrival lets a user wait for at most m − 1 sections on m processors, *if* neither
//! its holder nor those who wait for it are preempted. Otherwise the bound has every job in it that can preempt one of them; and a
//! thread that spins for a less urgent holder on its own processor spins for ever. A kernel forbids preemption around its
//! spinlocks. A process can come near to that in two ways:
//!
//! | | [`Eager`] | [`Lazy`] |
//! |---|---|---|
//! | how | rises above all tasks, and back | puts its id into a word of its processor, which others look at when their jobs are released |
//! | cost of a section | two system calls, about 2 µs | two atomic operations, about 5 ns |
//! | cost of a job released meanwhile | none | two switches, about 5 µs, in the section; about as much after it |
//! | binds | all threads below level 98 | managed threads of the processor: those that look |
//! | needs | permission for level 98 | threads under SCHED_FIFO that stay on their processor |
//! | keeps threads apart, too | no | yes, those of one processor |
//!
//! Costs are orders of magnitude; `cargo test --release -p lockwright costs -- --ignored --nocapture` measures them.
//!
//! # With a spinlock
//!
//! Enter the section before you ask for the lock: who waits must not be preempted either, so that the section lasts for the wait,
//! too. Locals are dropped in reverse, so the lock is given back first:
//!
//! ```
//! # use std::sync::atomic::{AtomicBool, Ordering};
//! # struct Spinlock(AtomicBool);
//! # struct Guard<'a>(&'a Spinlock);
//! # impl Spinlock {
//! #     fn lock(&self) -> Guard<'_> {
//! #         while self.0.swap(true, Ordering::Acquire) {
//! #             std::hint::spin_loop();
//! #         }
//! #         Guard(self)
//! #     }
//! # }
//! # impl Drop for Guard<'_> {
//! #     fn drop(&mut self) {
//! #         self.0.0.store(false, Ordering::Release);
//! #     }
//! # }
//! use lockwright::section::{Lazy, SectionError};
//!
//! fn job(thread: &Lazy, lock: &Spinlock) -> Result<(), SectionError> {
//!     let _section = thread.enter()?;
//!     let _guard = lock.lock();
//!     // A few microseconds of work.
//!     Ok(())
//! }
//! # let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
//! # let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
//! # let cpu = allowed.trim().split(['-', ',']).next().unwrap().parse().unwrap();
//! # let thread = Lazy::manage(cpu).unwrap();
//! # job(&thread, &Spinlock(AtomicBool::new(false))).unwrap();
//! ```
//!
//! # What a section must not do
//!
//! Suspend: sleep, read a file, take a lock that suspends. Its processor would go to others, and whoever spins for the lock
//! would spin for the time of the suspension. Nor start threads: they inherit the raised priority.
//!
//! # What neither kind can exclude
//!
//! Interrupts, the kernel's own threads above the section's level, SCHED_DEADLINE, the kernel's stop class, the throttling of
//! real-time threads (`sched_rt_runtime_us`), page faults, and a host that takes the processor from a virtual machine.

mod eager;
mod lazy;
#[cfg(test)]
mod tests;

pub use eager::{Eager, EagerSection};
pub(crate) use lazy::{CEILINGS_MAX, LazyCeiling};
pub use lazy::{Lazy, LazySection};

use crate::sys::SysError;
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
