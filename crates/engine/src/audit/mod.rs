//! Holds the kernel's trace of a run against what the protocols ordered.
//!
//! The kernel traces each context switch with the priorities of both threads, each inherited priority, and each
//! wake-up. The locks keep a journal of their orders: levels, places, and wake-ups of waiting tasks. In the trace, a
//! task must
//!
//! - have a level that was ordered for it, or that it inherited from another task;
//! - inherit only the level of a thread of the run;
//! - execute only on a CPU to which it was sent;
//! - be woken from a wait for a protocol only by the task that was to wake it.
//!
//! The judge shares no code with the part of the locks that carries orders out.

mod departure;
mod judge;
mod trace;

pub use departure::{Audit, Departed, Departure};

use judge::Judge;
use lockwright::raw::Executor;
use lockwright_model::System;
use lockwright_sys::probe;
pub(crate) use trace::Tracer;

/// Judges the trace of a run that began at `start_ns`. All its threads have ended.
pub(crate) fn judge(system: &System, executor: &Executor, trace: trace::Trace, start_ns: u64) -> Audit {
    let Some(journal) = executor.journal() else { return Audit::default() };
    let orders = journal.orders();
    // Each thread has begun and ended, so a trace in which one is missing is not whole.
    let tids = || system.task_ids().map(|task| executor.seat(task).tid().0);
    let switched = trace.switched();
    let missing = tids().filter(|thread| !switched.contains(thread)).count() as u64;
    let lost = trace.lost + journal.dropped() as u64 + missing;
    let audit = Audit { orders: orders.len() as u64, lost, ..Audit::default() };
    if lost > 0 {
        return audit;
    }
    let places = system.task_ids().map(|task| system.cpus_of(task).collect());
    let judge = Judge::new(tids(), places, executor.cpus(), start_ns, audit).on_preempt_rt(probe::is_preempt_rt());
    judge.judge(&orders, &trace.events)
}
