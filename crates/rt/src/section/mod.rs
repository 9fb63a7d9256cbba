//! Sections that other threads of the same processor do not preempt, for users of spinlocks.
//!
//! A spinlock that serves in order of arrival lets a thread wait for at most m − 1 sections on m processors, *if*
//! neither its holder nor its waiters are preempted. Otherwise the bound also contains every job that can preempt one
//! of them. A thread that spins for a less urgent holder on its own processor even spins for ever. A kernel disables
//! preemption around its spinlocks. A process can approximate this in three ways:
//!
//! | | [`Eager`] | [`Lazy`] | [`Extended`] |
//! |---|---|---|---|
//! | how | rises above all tasks, and back | puts its thread id into a word of its processor, which other threads check when their jobs are released | asks the kernel for an extension of its time slice |
//! | cost of a section | two system calls, about 2 µs | two atomic operations, about 5 ns | a few loads and stores |
//! | cost of a job released meanwhile | none | two switches, about 5 µs, inside the section; about as much after it | a timer and a system call |
//! | threads that it holds off | all threads below level 98 | managed threads of the processor, which check the word | any, for the kernel's limit of 5 µs, if the kernel grants it; hardly any under PREEMPT_RT |
//! | requirements | permission for level 98 | threads under SCHED_FIFO that stay on their processor | Linux 7.0 built with it, glibc 2.41 |
//! | also excludes other sections | no | yes, those of the same processor | no |
//! | a bound may count on it | yes | yes | no, it is a hint |
//!
//! The costs are orders of magnitude; `cargo test --release -p lockwright costs -- --ignored --nocapture` measures
//! them.
//!
//! # With a spinlock
//!
//! Enter the section before you lock the spinlock: a waiter must not be preempted either, so the section has to cover
//! the wait. Locals are dropped in reverse order, so the lock is unlocked first:
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
//! # let allowed = std::fs::read_to_string("/proc/self/status")?;
//! # let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
//! # let cpu = allowed.trim().split(['-', ',']).next().unwrap_or("0").parse()?;
//! # let thread = Lazy::manage(cpu)?;
//! # job(&thread, &Spinlock(AtomicBool::new(false)))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a section must not do
//!
//! It must not suspend: it must not sleep, read a file, or lock a suspending lock. Otherwise other threads get its
//! processor, and a thread that spins for the lock spins for the time of the suspension. Nor must it start threads,
//! because they inherit the raised priority.
//!
//! # What no kind can exclude
//!
//! Interrupts, the kernel's own threads above the section's level, SCHED_DEADLINE, the kernel's stop class, the
//! throttling of real-time threads (`sched_rt_runtime_us`), page faults, and a host that takes the processor from a
//! virtual machine.

mod eager;
mod error;
mod extended;
mod lazy;
#[cfg(test)]
mod tests;

pub use eager::{Eager, EagerSection};
pub use error::SectionError;
pub use extended::{Extended, ExtendedSection};
pub(crate) use lazy::{CEILINGS_MAX, LazyCeiling};
pub use lazy::{Lazy, LazySection};
pub use lockwright_sys::time_slice::NoExtension;
