//! Response times under global fixed priorities: Bertogna–Cirinei and Guan.
//!
//! Tasks are in order of decreasing priority. The first m of them wait for no other task.

use super::set::{Deadlines, Task, Work, check, fixed_point, laid_out};
use crate::{Failure, Sporadic};

/// The blocking of a job, besides the interference of more urgent tasks.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Blocked {
    /// The total blocking, B.
    pub total: u64,
    /// The part of the blocking that consists of sections of more urgent tasks and is therefore interference as well.
    /// It is not charged twice.
    pub urgent: u64,
}

/// How late a more urgent job that was released before the window may still execute in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CarryIn {
    /// Until its deadline.
    Deadlines,
    /// Until its response-time bound.
    Responses,
}

/// Returns response-time bounds under global fixed priorities, by the analysis of Bertogna and Cirinei. Deadlines must
/// not exceed periods.
///
/// ```text
/// R_k = C_k + B_k + ⌊max(0, Σ_{i<k} W_i(R_k) − H_k) / m⌋
/// W_i(t) = ⌊x/T_i⌋ C_i + min(C_i, x mod T_i),  x = t + R_i − C_i   (D_i for R_i with CarryIn::Deadlines)
/// ```
/// W_i(t) is the work of task i in a window of length t. H_k is the part of the blocking that more urgent tasks cause
/// directly. The result is in the order of the tasks, which must be that of decreasing priority. `blocked` may be empty
/// if there is no blocking.
///
/// The sources are Bertogna, Cirinei, *Response-time analysis for globally scheduled symmetric multiprocessor
/// platforms*, RTSS 2007, and, for B and H, Easwaran, Andersson, *Resource sharing in global fixed-priority preemptive
/// multiprocessor scheduling*, RTSS 2009.
///
/// # Errors
/// Returns [`Failure::Late`] with the first task whose response time exceeds its deadline, [`Failure::Unsupported`] if
/// `blocked` has another length, [`Failure::Diverged`] after too many steps, and the errors of invalid sets (see the
/// [module](super)).
pub fn bertogna_cirinei(
    tasks: &[Sporadic],
    blocked: &[Blocked],
    processors: u32,
    carry_in: CarryIn,
) -> Result<Vec<u64>, Failure> {
    published::<true>(tasks, blocked, processors, carry_in)
}

/// The mutant without the job that was released before the window.
///
/// # Errors
/// Returns the errors of the bound.
#[cfg(feature = "mutants")]
pub fn mutant_bertogna_cirinei(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    published::<false>(tasks, &[], processors, CarryIn::Responses)
}

fn published<const CARRY: bool>(
    tasks: &[Sporadic],
    blocked: &[Blocked],
    processors: u32,
    carry_in: CarryIn,
) -> Result<Vec<u64>, Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    if !blocked.is_empty() && blocked.len() != tasks.len() {
        return Err(Failure::Unsupported { task: blocked.len().min(tasks.len()), what: "there is no blocking for it" });
    }
    let set = laid_out(tasks);
    let mut responses: Vec<u64> = Vec::with_capacity(set.len());
    let mut work = Work::default();
    // More urgent tasks, with R − C of each.
    let mut urgent: Vec<(Task, u64)> = Vec::with_capacity(set.len());
    for (k, task) in set.iter().enumerate() {
        let Blocked { total, urgent: counted } = blocked.get(k).copied().unwrap_or_default();
        let own = task.cost.checked_add(total).ok_or(Failure::Overflow)?;
        let response = if k < processors as usize {
            if own > task.deadline {
                return Err(Failure::Late { task: k, response: own });
            }
            own
        } else {
            fixed_point(k, own, task.deadline, processors, &mut work, |response, work| {
                for (task, ahead) in &urgent {
                    let (jobs, rest) = task.divide(response.wrapping_add(*ahead));
                    let done = jobs.wrapping_add(1).wrapping_mul(task.cost);
                    work.add(done.wrapping_sub(task.cost.saturating_sub(rest)), done);
                }
                work.sum = work.sum.saturating_sub(counted);
            })?
        };
        responses.push(response);
        let until = if carry_in == CarryIn::Deadlines { task.deadline } else { response };
        urgent.push((*task, if CARRY { until - task.cost } else { 0 }));
    }
    Ok(responses)
}

/// Returns response-time bounds under global fixed priorities, by the analysis of Guan and others. Deadlines must not
/// exceed periods.
///
/// ```text
/// R_k = C_k + ⌊(Σ_{i<k} N_i + the m − 1 greatest (I_i − N_i)) / m⌋,  both at most R_k − C_k + 1
/// N_i = ⌊R_k/T_i⌋ C_i + min(C_i, R_k mod T_i)
/// I_i = ⌊y/T_i⌋ C_i + C_i + min(C_i − 1, max(0, y mod T_i − (T_i − R_i))),  y = max(0, R_k − C_i)
/// ```
/// N_i is the work of task i without work from before the window, and I_i that with it: at most m − 1 tasks have such
/// work. The result is in the order of the tasks, which must be that of decreasing priority. The source is Guan,
/// Stigge, Yi, Yu, *New response time bounds for fixed priority multiprocessor scheduling*, RTSS 2009.
///
/// # Errors
/// Returns [`Failure::Late`] with the first task whose response time exceeds its deadline, [`Failure::Diverged`] after
/// too many steps, and the errors of invalid sets (see the [module](super)).
pub fn guan(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    limited::<true>(tasks, processors)
}

/// The mutant without the jobs that were released before the window.
///
/// # Errors
/// Returns the errors of the bound.
#[cfg(feature = "mutants")]
pub fn mutant_guan(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    limited::<false>(tasks, processors)
}

/// The additional work of a task with work from before the window, and its work with and without that. Each is paired
/// with the value up to which it rises.
#[derive(Clone, Copy)]
struct Carried {
    more: u64,
    with: (u64, u64),
    without: (u64, u64),
}

fn limited<const CARRY: bool>(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    let set = laid_out(tasks);
    let carrying = if CARRY { processors as usize - usize::from(!tasks.is_empty()) } else { 0 };
    let mut responses: Vec<u64> = Vec::with_capacity(set.len());
    let mut work = Work::default();
    // The tasks with the greatest differences, greatest first.
    let mut chosen: Vec<Carried> = Vec::with_capacity(carrying.min(set.len()) + 1);
    for (k, own) in set.iter().enumerate() {
        if k < processors as usize {
            responses.push(own.cost);
            continue;
        }
        let response = fixed_point(k, own.cost, own.deadline, processors, &mut work, |response, work| {
            let cap = response.wrapping_sub(own.cost).wrapping_add(1);
            chosen.clear();
            for (task, &bound) in set.iter().zip(&responses) {
                let (jobs, rest) = task.divide(response);
                let done = jobs.wrapping_add(1).wrapping_mul(task.cost);
                let without = done.wrapping_sub(task.cost.saturating_sub(rest)).min(cap);
                if carrying == 0 {
                    work.add(without, done.max(without));
                    continue;
                }
                let (jobs, rest) = task.divide(response.saturating_sub(task.cost));
                let base = jobs.wrapping_add(1).wrapping_mul(task.cost);
                let late = rest.checked_sub(task.period.wrapping_sub(bound)).filter(|_| response >= task.cost);
                let most = task.cost.saturating_sub(1);
                let with = base.wrapping_add(late.map_or(0, |late| late.min(most))).min(cap);
                let until = base.wrapping_add(if late.is_some() { most } else { 0 });
                let this = Carried {
                    more: with.wrapping_sub(without),
                    with: (with, until.max(with)),
                    without: (without, done.max(without)),
                };
                // Keep the greatest, and add the one that is displaced.
                let out = if chosen.len() < carrying {
                    chosen.push(this);
                    None
                } else {
                    let last = chosen.len() - 1;
                    if chosen[last].more < this.more {
                        Some(std::mem::replace(&mut chosen[last], this))
                    } else {
                        Some(this)
                    }
                };
                let mut at = chosen.len() - 1;
                while at > 0 && chosen[at - 1].more < chosen[at].more {
                    chosen.swap(at - 1, at);
                    at -= 1;
                }
                if let Some(out) = out {
                    work.add(out.without.0, out.without.1);
                }
            }
            for task in &chosen {
                work.add(task.with.0, task.with.1);
            }
        })?;
        responses.push(response);
    }
    Ok(responses)
}
