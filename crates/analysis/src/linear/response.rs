//! Joint response times and blocking under partitioned fixed priorities, by linear programs.
//!
//! Starting with R = C, bounds on blocking and response times are computed alternately until nothing changes. Responses
//! only grow. For semaphores, `R = C + B + sum over local h of higher priority of ceil((R + J_h) / T_h) * C_h`, where B
//! is all blocking, and J_h = R_h - C_h if h can suspend, else 0. Tasks of equal priority interfere. For spinlocks the
//! equation is the same, with J = 0.
//!
//! Under DPCP and DFLP, the whole C counts as execution on the task's processor. In the published analyses, C does not
//! include sections. If it does, sections that execute at homes elsewhere count twice for tasks of lower priority: as
//! interference here, and at the home if these tasks have requests there. These response times can therefore exceed
//! those of [`analyse`](crate::analyse) and [`tighten`](crate::tighten()), which distinguish where each section
//! executes.
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013;
//! A. Wieder, B. Brandenburg, RTSS 2013. The jitter R - C of tasks that suspend: J.-J. Chen et al., "Many suspensions,
//! many problems", Real-Time Systems 55(1), 2019.

use super::mpcp::Owners;
use super::spin::{Arrivals, Order};
use super::view::{View, add_product};
use super::{Blocked, Work, dflp, dpcp, fmlp_plus, mpcp, spin, sum};
use crate::blocking::{joint, msrp};
use crate::rows::mutant::Omission;
use crate::{Failure, Limit, Sharing};

/// A locking protocol under partitioned fixed priorities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Locking<'a> {
    /// MPCP; see [`mpcp`](super::mpcp()).
    Mpcp,
    /// DPCP, with the processor of each resource, by its number; see [`dpcp`](super::dpcp()).
    Dpcp(&'a [u16]),
    /// DFLP, with the processor of each resource, by its number; see [`dflp`](super::dflp()).
    Dflp(&'a [u16]),
    /// FMLP+; see [`fmlp_plus`](super::fmlp_plus()).
    FmlpPlus,
    /// Non-preemptive FIFO spinlocks; see [`spin_fifo`](super::spin_fifo()).
    SpinFifo,
    /// Preemptable FIFO spinlocks; see [`spin_fifo_preemptable`](super::spin_fifo_preemptable).
    SpinFifoPreemptable,
    /// Non-preemptive unordered spinlocks; see [`spin_unordered`](super::spin_unordered).
    SpinUnordered,
    /// Preemptable unordered spinlocks; see [`spin_unordered_preemptable`](super::spin_unordered_preemptable).
    SpinUnorderedPreemptable,
}

/// Response times that are consistent with the blocking within them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Responses {
    /// R of each task.
    pub responses: Vec<u64>,
    /// The number of rounds of blocking and response times, including the last one, which changed nothing.
    pub rounds: u32,
}

/// The most rounds of [`responses`].
pub const ROUNDS_MAX: u32 = 10_000;

/// The most steps to the response time of one task in one round of [`responses`].
pub const RESPONSE_STEPS_MAX: u32 = 1_000_000;

/// Returns the response times of the tasks under a protocol and partitioned fixed priorities. None exceeds that of the
/// protocol's classic bound in [`blocking`](crate::blocking).
///
/// The `response` of the tasks is ignored. Clusters are processors. Times are in the unit of the input. The sources are
/// Brandenburg, RTAS 2013, and Wieder, Brandenburg, RTSS 2013.
///
/// # Errors
/// Returns [`Failure::Late`] with a task that may miss its deadline, [`Failure::Unsupported`] if a period is 0, a
/// deadline exceeds its period or a resource has no processor, [`Failure::Diverged`] after [`ROUNDS_MAX`] rounds or
/// [`RESPONSE_STEPS_MAX`] steps, and [`Failure::Overflow`] if a number does not fit.
pub fn responses(sharing: &Sharing, protocol: Locking<'_>) -> Result<Responses, Failure> {
    let program = responses_of_program(sharing, protocol);
    if protocol != Locking::SpinFifo {
        return program;
    }
    // The classic bound is that of MSRP.
    let classic = msrp::protocol(sharing, None).and_then(|mut protocol| joint(sharing, &mut protocol));
    match (program, classic) {
        (Ok(mut program), Ok(classic)) => {
            for (response, other) in program.responses.iter_mut().zip(classic.responses) {
                *response = other.min(*response);
            }
            Ok(program)
        }
        (Err(_), Ok(classic)) => Ok(Responses { responses: classic.responses, rounds: classic.rounds }),
        (program, Err(_)) => program,
    }
}

/// Like [`responses`], from the program alone. Under [`Locking::SpinFifo`], a response time may exceed the classic
/// one.
///
/// # Errors
/// Returns the errors of [`responses`].
pub fn responses_of_program(sharing: &Sharing, protocol: Locking<'_>) -> Result<Responses, Failure> {
    if let Some(task) = sharing.tasks.iter().position(|task| task.deadline > task.period) {
        return Err(Failure::Unsupported { task, what: "its deadline is beyond its period" });
    }
    let sites = match protocol {
        Locking::Dpcp(sites) | Locking::Dflp(sites) => sites,
        _ => &[],
    };
    let mut view = View::new(sharing, sites)?;
    let placed = if let Locking::Dpcp(_) | Locking::Dflp(_) = protocol { view.placed(sites)? } else { Vec::new() };
    let owners = if protocol == Locking::Mpcp { Some(Owners::new(&view, Omission::NOTHING)?) } else { None };
    let mut order: Vec<usize> = (0..view.tasks()).collect();
    order.sort_by_key(|&task| (std::cmp::Reverse(view.rows[task].priority), task));
    for row in &mut view.rows {
        row.response = row.cost;
    }
    // BOUND: ROUNDS_MAX.
    for round in 1..=ROUNDS_MAX {
        let work = &mut Work::of_all(&view);
        let spinning = |order| {
            let bounds = spin::bounds(&view, order, Arrivals::Shared, &mut Work::of_all(&view))?;
            Ok::<_, Failure>(
                bounds.into_iter().map(|both| Blocked { remote: 0, local: both.remote + both.local }).collect(),
            )
        };
        let blocked: Vec<Blocked> = match protocol {
            Locking::Mpcp => match &owners {
                Some(owners) => mpcp::bounds(&view, owners, work)?,
                None => Vec::new(),
            },
            Locking::Dpcp(_) => dpcp::bounds(&view, &placed, work)?,
            Locking::Dflp(_) => dflp::bounds(&view, &placed, work)?,
            Locking::FmlpPlus => fmlp_plus::bounds(&view, work)?,
            Locking::SpinFifo => spinning(Order::Fifo)?,
            Locking::SpinFifoPreemptable => spinning(Order::FifoPreemptable)?,
            Locking::SpinUnordered => spinning(Order::Unordered)?,
            Locking::SpinUnorderedPreemptable => spinning(Order::UnorderedPreemptable)?,
        };
        let mut changed = false;
        for &task in &order {
            let response = response(&view, task, &blocked)?;
            changed |= response != view.rows[task].response;
            view.rows[task].response = view.rows[task].response.max(response);
        }
        if !changed {
            return Ok(Responses { responses: view.rows.iter().map(|row| row.response).collect(), rounds: round });
        }
    }
    Err(Failure::Diverged {
        task: 0,
        limit: Limit { name: "rounds of blocking and response times", most: ROUNDS_MAX.into() },
    })
}

/// Returns the response time of `task` for the current response times of the others. Tasks of equal priority interfere
/// with each other.
fn response(view: &View, task: usize, blocked: &[Blocked]) -> Result<u64, Failure> {
    let own = sum(view.rows[task].cost, blocked[task].total()?)?;
    let higher: Vec<(u64, u64, u64)> = (0..view.tasks())
        .filter(|&h| h != task && view.is_local(task, h) && !view.is_higher(h, task))
        .map(|h| {
            let row = &view.rows[h];
            (row.cost, row.period, if blocked[h].remote > 0 { row.response - row.cost } else { 0 })
        })
        .collect();
    let mut response = own;
    // BOUND: RESPONSE_STEPS_MAX.
    for _ in 0..RESPONSE_STEPS_MAX {
        if response > view.rows[task].deadline {
            return Err(Failure::Late { task, response });
        }
        let mut demand = own;
        for &(cost, period, jitter) in &higher {
            add_product(&mut demand, sum(response, jitter)?.div_ceil(period), cost)?;
        }
        if demand == response {
            return Ok(response);
        }
        response = demand;
    }
    Err(Failure::Diverged { task, limit: Limit { name: "steps to a response time", most: RESPONSE_STEPS_MAX.into() } })
}
