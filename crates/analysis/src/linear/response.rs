//! Response times and blocking under partitioned fixed priorities, together: either needs the other.
//!
//! From R = C, bounds on blocking and response times are computed in turn until nothing changes; responses only grow.
//! Locks that suspend: `R = C + B + sum over local h of higher priority of ceil((R + J_h) / T_h) * C_h`, B all
//! blocking, J_h = R_h - C_h where h can suspend, else 0; tasks of equal priority interfere. Spin locks: the same, J = 0.
//!
//! Under DPCP and DFLP this takes C whole for what a task executes on its processor, as the published analyses do, whose
//! C is without sections. Where C holds the sections, those that execute at homes elsewhere count twice for tasks of
//! lower priority: as interference here, and where they ask there. So these response times can exceed those of
//! [`analyse`](crate::analyse), which knows where each section executes; [`tighten`](crate::tighten()) knows too.
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013;
//! A. Wieder, B. Brandenburg, RTSS 2013. Jitter R - C of tasks that suspend: J.-J. Chen et al., "Many suspensions, many
//! problems", Real-Time Systems 55(1), 2019.

use super::mpcp::Owners;
use super::spin::{Arrivals, Order};
use super::view::{View, add_product};
use super::{Blocked, Work, dflp, dpcp, fmlp_plus, mpcp, spin, sum};
use crate::multiprocessor::{joint, msrp};
use crate::{Failure, Limit, Sharing};

/// A locking protocol under partitioned fixed priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol<'a> {
    /// See [`mpcp`](super::mpcp()).
    Mpcp,
    /// See [`dpcp`](super::dpcp()); the processor of each resource, by its number.
    Dpcp(&'a [u16]),
    /// See [`dflp`](super::dflp()); the processor of each resource, by its number.
    Dflp(&'a [u16]),
    /// See [`fmlp_plus`](super::fmlp_plus()).
    FmlpPlus,
    /// See [`spin_fifo`](super::spin_fifo()).
    SpinFifo,
    /// See [`spin_fifo_preemptable`](super::spin_fifo_preemptable).
    SpinFifoPreemptable,
    /// See [`spin_unordered`](super::spin_unordered).
    SpinUnordered,
    /// See [`spin_unordered_preemptable`](super::spin_unordered_preemptable).
    SpinUnorderedPreemptable,
}

/// Response times that fit the blocking they allow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Responses {
    /// R of each task.
    pub responses: Vec<u64>,
    /// How often blocking and response times were computed, the time that changed nothing included.
    pub rounds: u32,
}

/// Most rounds of [`responses`].
pub const ROUNDS_MAX: u32 = 10_000;

/// Most steps to the response time of one task in one round of [`responses`].
pub const RESPONSE_STEPS_MAX: u32 = 1_000_000;

/// Response times of the tasks of `sharing` under a protocol, none above the classic bound of that in
/// [`multiprocessor`](crate::multiprocessor); `response` of the tasks is not read. Clusters are
/// processors.
///
/// # Errors
/// [`Failure::Late`] where a task may miss its deadline, [`Failure::Diverged`], [`Failure::Unsupported`] where a period
/// is 0, a deadline beyond the period or a resource has no place, [`Failure::Overflow`].
pub fn responses(sharing: &Sharing, protocol: Protocol<'_>) -> Result<Responses, Failure> {
    let program = responses_of_program(sharing, protocol);
    if protocol != Protocol::SpinFifo {
        return program;
    }
    // Classic: MSRP's.
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

/// The same, of the program alone: under [`Protocol::SpinFifo`] now and then above the classic ones.
///
/// # Errors
/// As [`responses`].
pub fn responses_of_program(sharing: &Sharing, protocol: Protocol<'_>) -> Result<Responses, Failure> {
    if let Some(task) = sharing.tasks.iter().position(|task| task.deadline > task.period) {
        return Err(Failure::Unsupported { task, what: "its deadline is beyond its period" });
    }
    let sites = match protocol {
        Protocol::Dpcp(sites) | Protocol::Dflp(sites) => sites,
        _ => &[],
    };
    let mut view = View::new(sharing, sites)?;
    let placed = if let Protocol::Dpcp(_) | Protocol::Dflp(_) = protocol { view.placed(sites)? } else { Vec::new() };
    let owners = if protocol == Protocol::Mpcp { Some(Owners::new(&view)?) } else { None };
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
            Protocol::Mpcp => match &owners {
                Some(owners) => mpcp::bounds(&view, owners, work)?,
                None => Vec::new(),
            },
            Protocol::Dpcp(_) => dpcp::bounds(&view, &placed, work)?,
            Protocol::Dflp(_) => dflp::bounds(&view, &placed, work)?,
            Protocol::FmlpPlus => fmlp_plus::bounds(&view, work)?,
            Protocol::SpinFifo => spinning(Order::Fifo)?,
            Protocol::SpinFifoPreemptable => spinning(Order::FifoPreemptable)?,
            Protocol::SpinUnordered => spinning(Order::Unordered)?,
            Protocol::SpinUnorderedPreemptable => spinning(Order::UnorderedPreemptable)?,
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

/// The response time of `task`, with those of others as they are now. Tasks of equal priority interfere with each other.
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
