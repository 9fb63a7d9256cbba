//! Spinlocks for real time: who waits, for whom, and for how many critical sections at most.
//!
//! | algorithm | order | wait, in critical sections of others (`m` cores) | says of itself | gives up |
//! |---|---|---|---|---|
//! | [`Tas`] | none | unbounded | nothing | yes |
//! | [`Ticket`] | FIFO | m − 1 | nothing | no |
//! | [`Anderson`] | FIFO | m − 1 | slot | no |
//! | [`Mcs`] | FIFO | m − 1 | slot | no |
//! | [`Clh`] | FIFO | m − 1 | slot | no |
//! | [`Markatos`] | priority, chosen at release | unbounded but for the most urgent | slot, priority | no |
//! | [`JohnsonHarathi`] | priority, queued at acquire | unbounded but for the most urgent | slot, priority | no |
//! | [`Bpl`] | FIFO across batches, priority inside one | m − 1 where cores are about equally fast | slot, priority | yes |
//! | [`Batched`] | FIFO across batches, priority inside one | m − 1 | slot, priority | yes |
//!
//! # What every bound here rests on
//! Bounds count critical sections, and hold for waiters and holders that **cannot be preempted**: a holder that is preempted keeps
//! everybody waiting for as long as it is, and a FIFO waiter that is preempted keeps those behind it. In a kernel, switch
//! preemption and interrupts off first. Under Linux, take the lock inside a non-preemptive section (`lockwright::section`);
//! without one, a more urgent thread that spins for a holder on its own core spins for ever.
//!
//! None of these locks may be taken again by its holder: it would wait for itself.
//!
//! # Targets
//! Targets whose atomics of 32 bits and of a pointer's width have compare-and-swap: not those that only load and store them, as
//! `thumbv6m-none-eabi` does. 64-bit atomics are needed by none of the locks; where they exist, [`Bpl`] and [`Batched`] can be made of
//! `u64` words.
//!
//! # Examples
//! ```
//! use lockwright_locks::{SpinLock, Ticket};
//!
//! static TICKET: SpinLock<Ticket, u32> = SpinLock::new(0);
//! *TICKET.lock() += 1;
//! ```

#![no_std]
#![deny(unsafe_code)]
// A model leaves out what it has no use for.
#![cfg_attr(any(lockwright_loom, lockwright_shuttle), allow(unused))]

#[cfg(any(test, feature = "std", lockwright_loom, lockwright_shuttle))]
extern crate std;

mod algorithm;
mod batched;
mod johnson_harathi;
mod markatos;
#[cfg(all(feature = "lock_api", not(any(lockwright_loom, lockwright_shuttle))))]
mod raw_mutex;
mod registry;
mod relax;
mod slot;
#[allow(unsafe_code)] // The value behind the algorithm.
mod spin_lock;
mod sync;
#[cfg(test)]
mod testing;
mod word;

mod anderson;
mod bpl;
mod clh;
mod mcs;
mod tas;
mod ticket;

pub use algorithm::{Abortable, Algorithm, Deadline};
pub use anderson::Anderson;
pub use batched::Batched;
pub use bpl::Bpl;
pub use clh::Clh;
pub use johnson_harathi::JohnsonHarathi;
pub use markatos::Markatos;
pub use mcs::Mcs;
pub use relax::{Backoff, Relax, Spin};
pub use slot::{Priority, SLOTS_MAX, Slot};
pub use spin_lock::{Guard, SpinLock};
pub use tas::Tas;
pub use ticket::Ticket;
pub use word::Word;
