//! Real-time locking protocols as plain state machines: events in, ordered actions out.
//!
//! A machine decides and does nothing else: it performs no system call, allocates nothing, spins for nobody,
//! and knows no time. The simulator carries its [`Action`]s out in virtual time, the runtime with system
//! calls. Both must
//!
//! 1. call the machine under mutual exclusion and carry the actions out after it, in the order given: others
//!    come first, the caller last, so that the next owner is awake before the caller lowers its own priority;
//! 2. treat [`Action::SetPriority`] as an absolute value, and drop one whose epoch is older than the last one applied
//!    to the same task;
//! 3. call `woken` for a task that was woken without a grant: it may have to wait again.
//!
//! | machine | waits | queue | on release | effective priority |
//! |---|---|---|---|---|
//! | [`Plain`] | suspended | as a futex: priority at the time of waiting | the lock is free; one waiter is woken and tries again | base |
//! | [`Pip`] | suspended | priority | the lock is free; the first waiter is woken, and only a more urgent task may take the lock before it | highest of own and of all who wait for what it holds, along the chain |
//! | [`Icpp`] | suspended (never on one processor) | priority | handed to the first waiter | highest of own and of the ceilings of what it holds or waits for |
//! | [`Pcp`] | suspended | priority | the lock is free; who may go on is woken and tries again | highest of own and of all whom it keeps waiting |
//! | [`Srp`] | before its start | - | those that may start are woken | base |
//! | [`Ics`] | - | - | commits, or begins again | base |
//! | [`IcsLock`] | as `Icpp`, below the cutoff | priority | commits and is handed to the first waiter, or begins again | as `Icpp`, below the cutoff |
//! | [`Mpcp`] | suspended | priority | handed to the first waiter | as `Icpp`, with ceilings above every base priority |
//! | [`MpcpVs`] | suspended, at home first | priority | handed to the first waiter | as `Mpcp`, once admitted |
//! | [`Dpcp`] | at the resource's home, ready | priority | the next of the home executes | base in the boosted band, then the ceiling there |
//! | [`Dflp`] | at the resource's home, ready | arrival | the next of the home executes | boosted, by the order of requests |
//! | [`FmlpLong`] | suspended | arrival | handed to the first waiter | highest of own and of those that wait |
//! | [`FmlpPlus`] | suspended | arrival | handed to the first waiter | boosted, by the order of requests |
//! | [`FmlpShort`] | spins | arrival | handed to the first waiter | above everything |
//! | [`Mrsp`] | spins | arrival | handed to the first waiter | the ceiling of the processor where it is |
//! | [`Omlp`] | suspended, at home first; or before its start | arrival | handed to the first waiter | boosted, once admitted |
//! | [`Fulock`] | suspended | priority | handed to the first waiter, or free and that one woken, as the releaser says | highest of own, of the ceilings of what it holds and of all who wait for it, along the chain; each lock says what counts |
//! | [`Fuqueue`] | suspended | priority | nobody owns anything: the first waiters are woken | - |
//!
//! Protocols for several processors, but `Mpcp`, have no nested requests: those in a group go through one lock.
//!
//! Machines are total: every event in every state gives actions or a [`Refusal`] that says why, and a refused
//! event changes nothing. All have fixed capacity, `TASKS` and `RESOURCES`.
#![no_std]
#![forbid(unsafe_code)]

mod action;
#[cfg(feature = "boxed")]
mod boxed;
mod dflp;
mod dpcp;
mod fmlp_long;
mod fmlp_plus;
mod fmlp_short;
pub mod fulock;
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
mod srp;
#[cfg(test)]
mod testing;

pub use action::{Action, Refusal};
#[cfg(feature = "boxed")]
pub use boxed::boxed;
pub use dflp::Dflp;
pub use dpcp::Dpcp;
pub use fmlp_long::FmlpLong;
pub use fmlp_plus::FmlpPlus;
pub use fmlp_short::FmlpShort;
pub use fulock::{Fulock, Fuqueue};
pub use icpp::Icpp;
pub use ics::Ics;
pub use ics_lock::IcsLock;
pub use machine::Machine;
pub use mpcp::Mpcp;
pub use mpcp_vs::MpcpVs;
pub use mrsp::Mrsp;
pub use none::Plain;
pub use omlp::Omlp;
pub use parts::queue::{Order, WAITING_MAX, Waiting};
pub use parts::request_order::request_priorities;
pub use pcp::Pcp;
pub use pip::Pip;
pub use srp::Srp;

use lockwright_model::{MAX_EXECUTED_TASKS, MAX_RESOURCES};

/// Capacity of a machine where none is named: that of the largest [`System`](lockwright_model::System) that is simulated or executed.
pub const DEFAULT_TASKS: usize = MAX_EXECUTED_TASKS;
/// See [`DEFAULT_TASKS`].
pub const DEFAULT_RESOURCES: usize = MAX_RESOURCES;
