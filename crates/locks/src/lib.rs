//! Spinlocks for real time, each with its order of waiters and its waiting bound.
//!
//! | algorithm | order | wait, in critical sections of others (`m` cores) | request | supports giving up |
//! |---|---|---|---|---|
//! | [`Tas`] | none | unbounded | nothing | yes |
//! | [`Ticket`] | FIFO | m − 1 | nothing | no |
//! | [`Anderson`] | FIFO | m − 1 | slot | no |
//! | [`Mcs`] | FIFO | m − 1 | slot | no |
//! | [`Clh`] | FIFO | m − 1 | slot | no |
//! | [`Markatos`] | priority, selected at release | unbounded except for the most urgent | slot, priority | no |
//! | [`JohnsonHarathi`] | priority, enqueued at request | unbounded except for the most urgent | slot, priority | no |
//! | [`Bpl`] | FIFO across batches, priority inside one | m − 1 if cores are equally fast | slot, priority | yes |
//! | [`Batched`] | FIFO across batches, priority inside one | m − 1 | slot, priority | yes |
//!
//! Two locks distinguish readers, which share the value, from writers ([`RwSpinLock`]):
//!
//! | algorithm | order | wait of a reader | wait of a writer |
//! |---|---|---|---|
//! | [`PhaseFair`] | readers and single writers alternate, writers FIFO | 1 writer, 1 phase of readers | m − 1 writers, m phases of readers |
//! | [`TaskFair`] | FIFO, readers with no writer between them together | m − 1 | m − 1 |
//!
//! # Assumption of all bounds
//! Bounds count critical sections, for waiters and holders that **cannot be preempted**.
//! A holder that is preempted delays all waiters for that time, and a preempted FIFO waiter delays those behind it.
//! A kernel must disable preemption and interrupts first.
//! A program on Linux locks inside a non-preemptive section (`lockwright::section`).
//! Without such a section, a more urgent thread that spins for a holder on its own core spins forever.
//!
//! A holder must not lock the same lock again: it would wait for itself.
//!
//! # Targets
//! The crate needs compare-and-swap of 32 bits and of pointer width.
//! The build fails with one message on a target without it, such as `thumbv6m-none-eabi`.
//! No lock needs 64-bit atomics; on targets that have them, [`Bpl`] and [`Batched`] can consist of `u64` words.
//!
//! # Features
//! - `lock_api` implements `lock_api::RawMutex` for [`Tas`] and [`Ticket`], and `lock_api::RawRwLock` for [`PhaseFair`]
//!   and [`TaskFair`].
//! - `std` implements [`Deadline`] for `std::time::Instant`.
//!
//! # Examples
//! ```
//! use lockwright_locks::{SpinLock, Ticket};
//!
//! static COUNT: SpinLock<Ticket, u32> = SpinLock::new(0);
//! *COUNT.lock() += 1;
//! ```

#![warn(missing_debug_implementations)]
#![no_std]
#![deny(unsafe_code)]
// A model does not use everything.
#![cfg_attr(any(lockwright_loom, lockwright_shuttle), allow(unused))]

#[cfg(any(test, feature = "std", lockwright_loom, lockwright_shuttle))]
extern crate std;

mod algorithm;
mod batched;
mod johnson_harathi;
mod limit;
mod markatos;
#[cfg(all(feature = "lock_api", not(any(lockwright_loom, lockwright_shuttle))))]
mod raw_mutex;
#[cfg(all(feature = "lock_api", not(any(lockwright_loom, lockwright_shuttle))))]
mod raw_rw_lock;
mod registry;
mod relax;
#[allow(unsafe_code)] // The guard of a reader accesses the value.
mod rw_spin_lock;
mod slot;
#[allow(unsafe_code)] // The guard accesses the value.
mod spin_lock;
mod sync;
#[cfg(test)]
mod testing;
mod word;

mod anderson;
mod bpl;
mod clh;
mod mcs;
mod phase_fair;
mod tas;
mod task_fair;
mod ticket;

pub use algorithm::{Abortable, Algorithm, Deadline, Shareable};
pub use anderson::Anderson;
pub use batched::Batched;
pub use bpl::Bpl;
pub use clh::Clh;
pub use johnson_harathi::JohnsonHarathi;
pub use markatos::Markatos;
pub use mcs::Mcs;
pub use phase_fair::PhaseFair;
pub use registry::SLOTS_MAX;
pub use relax::{Backoff, Relax, Spin};
pub use rw_spin_lock::{ReadGuard, RwSpinLock};
pub use slot::{Priority, Slot};
pub use spin_lock::{Guard, SpinLock};
pub use tas::Tas;
pub use task_fair::TaskFair;
pub use ticket::Ticket;
pub use word::Word;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
