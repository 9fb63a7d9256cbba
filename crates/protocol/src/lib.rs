//! Real-time locking protocols as plain state machines: events in, ordered actions out.
//!
//! A machine only decides. It makes no system calls, does not allocate, never waits, and has no clock. The simulator
//! carries out its [`Action`]s in virtual time, and the runtime carries them out with system calls.
//!
//! # Example
//! ```
//! use lockwright_model::{Priority, ResourceId, TaskId};
//! use lockwright_protocol::{Action, Machine, Pip};
//!
//! let (low, high, lock) = (TaskId(0), TaskId(1), ResourceId(0));
//! let mut machine = Pip::<2, 1>::new(&[Priority::base(1), Priority::base(9)]);
//! machine.request(low, lock, &mut |_| ())?;
//!
//! // The owner inherits the priority of the waiter before the waiter suspends.
//! let mut actions = Vec::new();
//! machine.request(high, lock, &mut |action| actions.push(action))?;
//! assert_eq!(
//!     actions,
//!     [
//!         Action::SetPriority { task: low, priority: Priority::base(9), epoch: 1 },
//!         Action::Block { task: high, resource: lock },
//!     ]
//! );
//! # Ok::<(), lockwright_protocol::Refusal>(())
//! ```
//!
//! # Rules for callers
//!
//! 1. Call the machine under mutual exclusion. Carry out the actions afterwards, in the order given: other tasks come
//!    first and the caller comes last, so that the next owner is awake before the caller lowers its own priority.
//! 2. [`Action::SetPriority`] carries an absolute value. Drop an action whose epoch is older than that of the last one
//!    applied to the same task.
//! 3. A task that was woken without a grant calls [`woken`](Machine::woken): it may have to wait again.
//!
//! # Machines
//!
//! | machine | waits | queue | on release | effective priority |
//! |---|---|---|---|---|
//! | [`PlainMutex`] | suspended | as a futex: priority at the start of waiting | the lock is free; one waiter is woken and tries again | base |
//! | [`Pip`] | suspended | priority | the lock is free; the first waiter is woken, and only a more urgent task may take the lock before it | highest of the base and of all waiters for what it holds, along the chain |
//! | [`Icpp`] | suspended (never on one processor) | priority | handed to the first waiter | highest of the base and of the ceilings of what it holds or waits for |
//! | [`Pcp`] | suspended | priority | the lock is free; the waiters that may go on are woken and try again | highest of the base and of all tasks that it blocks |
//! | [`Srp`] | before its start | - | the jobs that may start are woken | base |
//! | [`Ics`] | - | - | commits, or restarts | base |
//! | [`IcsLock`] | as `Icpp`, below the cutoff | priority | commits and is handed to the first waiter, or restarts | as `Icpp`, below the cutoff |
//! | [`Mpcp`] | suspended | priority | handed to the first waiter | as `Icpp`, with ceilings above every base priority |
//! | [`MpcpVs`] | suspended, until admitted on its processor first | priority | handed to the first waiter | as `Mpcp`, once admitted |
//! | [`Dpcp`] | at the resource's home, ready | priority | the next task on the home executes | base in the boosted band, then the ceiling there |
//! | [`Dflp`] | at the resource's home, ready | arrival | the next task on the home executes | boosted, by the order of requests |
//! | [`FmlpLong`] | suspended | arrival | handed to the first waiter | highest of the base and of the waiters |
//! | [`FmlpPlus`] | suspended | arrival | handed to the first waiter | boosted, by the order of requests |
//! | [`FmlpShort`] | spins | arrival | handed to the first waiter | above everything |
//! | [`Mrsp`] | spins | arrival | handed to the first waiter | the ceiling of the processor where it executes |
//! | [`Omlp`] | suspended, until admitted in its cluster first; or before its start | arrival | handed to the first waiter | boosted, once admitted |
//! | [`ReaderWriter`] | spins | arrival, or phases of readers and of one writer in turn | handed to the next phase | above everything |
//! | [`Fulock`] | suspended | priority | handed to the first waiter, or free with that waiter woken, as the caller chooses | highest of the base, of the ceilings of what it holds and of all its waiters, along the chain; each lock chooses what counts |
//! | [`Fuqueue`] | suspended | priority | no owners: the first waiters are woken | - |
//!
//! `phase_fair` and `task_fair` have the machine [`ReaderWriter`], the only one that distinguishes reading from
//! writing. `lock_free` has the machine [`Ics`], and `wait_free` the machine [`WaitFree`], under which no task waits
//! and nothing is repeated.
//!
//! The protocols for several processors, except `Mpcp`, have no nested requests. Resources that are nested are put into
//! a group with one lock.
//!
//! [`Edf`] is a scheduler, not a protocol: it decides by deadlines which job of a processor executes, with the machine
//! [`Srp`] for the resources of the processor. [`GlobalEdf`] does the same for the jobs of all processors, and contains
//! both locks of the FMLP; its tasks may have processors of their own.
//!
//! Machines are total: in every state, every event gives actions or a [`Refusal`] with the reason, and a refused event
//! changes nothing. All machines have a fixed capacity, `TASKS` and `RESOURCES`.
//!
//! # Features
//!
//! - `boxed`: the functions `boxed`, `boxed_edf` and `boxed_global_edf`, which make the machine of any protocol, and
//!   the schedulers, for a whole system. They need an allocator; the rest of the crate does not.
#![warn(missing_debug_implementations)]
#![no_std]
#![forbid(unsafe_code)]

mod action;
#[cfg(feature = "boxed")]
mod boxed;
mod capacity;
mod dflp;
mod dpcp;
mod edf;
mod fmlp_long;
mod fmlp_plus;
mod fmlp_short;
pub mod fulock;
mod global_edf;
mod icpp;
mod ics;
mod ics_lock;
mod machine;
mod mpcp;
mod mpcp_vs;
mod mrsp;
mod none;
mod omlp;
mod parts;
mod pcp;
mod pip;
mod reader_writer;
mod srp;
#[cfg(test)]
mod testing;
mod wait_free;

pub use action::{Action, Refusal};
#[cfg(feature = "boxed")]
pub use boxed::{boxed, boxed_edf, boxed_global_edf};
pub use capacity::{DEFAULT_RESOURCES, DEFAULT_TASKS};
pub use dflp::Dflp;
pub use dpcp::Dpcp;
pub use edf::Edf;
pub use fmlp_long::FmlpLong;
pub use fmlp_plus::FmlpPlus;
pub use fmlp_short::FmlpShort;
pub use fulock::{Fulock, Fuqueue};
pub use global_edf::{EdfLock, GlobalEdf};
pub use icpp::Icpp;
pub use ics::Ics;
pub use ics_lock::IcsLock;
pub use machine::Machine;
pub use mpcp::Mpcp;
pub use mpcp_vs::MpcpVs;
pub use mrsp::Mrsp;
pub use none::PlainMutex;
pub use omlp::Omlp;
pub use parts::queue::{Order, WAITING_MAX, Waiting};
pub use parts::request_order::request_priorities;
pub use pcp::Pcp;
pub use pip::Pip;
pub use reader_writer::{Fairness, ReaderWriter};
pub use srp::Srp;
pub use wait_free::WaitFree;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
