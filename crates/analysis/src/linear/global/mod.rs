//! Global fixed-priority scheduling with semaphores: bounds on how much longer than its execution a job is pending.
//!
//! Symbols: m is the number of processors. Ranks follow priorities, with 0 for the most urgent task. N(i,q) is the
//! number of requests of one job of task i for q, L(x,q) the longest section, and n(x,q) = N(x,q) * ceil((R_i + R_x) /
//! T_x) the number of requests of all jobs of x while one job of i is pending. W_x(t) is the most work of x in an
//! interval of length t: with s = t + R_x - C_x, it is floor(s / T_x) * C_x + min(C_x, s mod T_x).
//!
//! The variables for each other task x are d, the requests that delay directly; for x of lower priority e and p, the
//! requests that delay indirectly and by preemption; for x of higher priority I, the regular interference; and for x of
//! lower priority c and s, the co-boosting and the stalling interference. With B_x = sum of L d, and O_x = I or c + s +
//! sum of L (e + p), the program maximizes `sum of B_x + (sum of O_x) / m`, where
//! 1. B_x + O_x <= W_x(R_i);
//! 2. m O_x <= sum over y of O_y, as all processors are busy elsewhere;
//! 3. d + e + p <= n(x,q);
//! 4. s = 0 if i has no requests;
//! 5. d = 0 on resources that i does not use;
//!
//! and the constraints of the queue and of the progress mechanism of the protocol hold.
//!
//! # Reference
//! M. Yang, A. Wieder, B. Brandenburg, "Global real-time semaphore protocols: a survey, unified analysis, and
//! comparison", RTSS 2015. The numbers of constraints are those of the paper.

mod ceilings;
mod model;
mod progress;
mod queue;
mod waits;

use super::view::View;
use crate::{Failure, Sharing};
pub use model::Global;
use model::{Model, Queue};
use waits::Progress;

/// Returns bounds on R - C of each task, that is, on its interference and blocking, under global fixed priorities on
/// `processors` processors.
///
/// The `response` of each task must bound how long its jobs are pending. These are response times if no result exceeds
/// R - C. Tasks of equal priority are ranked in the given order. Times are in the unit of the input. The source is
/// Yang, Wieder, Brandenburg, RTSS 2015.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn global(sharing: &Sharing, processors: u16, protocol: Global) -> Result<Vec<u64>, Failure> {
    let ranks = {
        let mut ranks: Vec<usize> = (0..sharing.tasks.len()).collect();
        ranks.sort_by_key(|&task| (std::cmp::Reverse(sharing.tasks[task].priority), task));
        ranks
    };
    // Tasks by rank: each task is more urgent than the next.
    let view = View::new(&Sharing { tasks: ranks.iter().map(|&task| sharing.tasks[task].clone()).collect() }, &[])?;
    let mut delays = vec![0; ranks.len()];
    for (i, &task) in ranks.iter().enumerate() {
        delays[task] = program(&view, i, processors.into(), protocol)?.delay()?;
    }
    Ok(delays)
}

/// Returns the program for task `i`, with the constraints of the protocol.
fn program(view: &View, i: usize, m: u64, protocol: Global) -> Result<Model<'_>, Failure> {
    let mut model = Model::new(view, i, m, protocol)?;
    match protocol.queue() {
        Queue::Fifo => model.fifo(),
        Queue::Priority => model.priority()?,
    }
    match protocol.progress() {
        Progress::Inheritance => model.inheritance(),
        Progress::SegmentBoosting => model.segment_boosting()?,
        Progress::None => model.no_progress(),
    }
    match protocol {
        Global::Pip => model.inherited_per_resource()?,
        Global::Ppcp { reasonable } => {
            model.inherited_per_resource()?;
            model.stalling_by_ceilings()?;
            if reasonable {
                model.reasonable()?;
            }
        }
        Global::Fmlp => model.inherited_per_request()?,
        Global::FmlpPlus => model.segments()?,
        Global::Prsb => model.indirect_per_wait()?,
        Global::PlainFifo | Global::PlainPriority => {}
    }
    Ok(model)
}
