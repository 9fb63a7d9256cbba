//! Blocking under global fixed priorities with priority inheritance.
//!
//! ```text
//! DB_i  = Σ_q N(i,q) · the longest section on q of a less urgent task
//! H_i   = Σ_{h more urgent} W_h(R_i, x_h),  x_h = the time for which one job of h uses resources that i uses
//! I_i   = ⌈Σ_{l less urgent} W_l(R_i, x_l) / m⌉, 0 for the m most urgent tasks
//!         x_l = the time for which one job of l uses resources whose ceiling is above i
//! W_k(t, x) = n x + min(x, t + D_k − x − n T_k),  n = ⌊(t + D_k − x) / T_k⌋
//! B_i = DB_i + H_i + I_i
//! ```
//! The source is Easwaran, Andersson, *Resource sharing in global fixed-priority preemptive multiprocessor scheduling*,
//! RTSS 2009. H is part of the interference as well: [`bertogna_cirinei`](super::bertogna_cirinei()) subtracts it
//! there.

use crate::{Failure, Sharer, Sharing};
use std::collections::BTreeMap;

/// The blocking of one task. Times are in the unit of the input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Inherited {
    /// The total blocking, B.
    pub total: u64,
    /// The part of it that consists of sections of more urgent tasks for which this task waits, H.
    pub urgent: u64,
}

/// Returns bounds on the blocking of one job of each task under global fixed priorities with priority inheritance, in
/// the order of the tasks.
///
/// The response-time bounds are those in `sharing`. Clusters are ignored, and priorities must be distinct. The source
/// is Easwaran, Andersson, RTSS 2009.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if two tasks have the same priority, a period is 0, or the sections of a job last
/// longer than a window, [`Failure::Overload`] for tasks without processors, and [`Failure::Overflow`] if a number does
/// not fit.
pub fn easwaran_andersson(sharing: &Sharing, processors: u32) -> Result<Vec<Inherited>, Failure> {
    let tasks = &sharing.tasks;
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(tasks[task].priority));
    for pair in order.windows(2) {
        if tasks[pair[0]].priority == tasks[pair[1]].priority {
            return Err(Failure::Unsupported { task: pair[1], what: "another task has its priority" });
        }
    }
    if let Some(task) = tasks.iter().position(|task| task.period == 0) {
        return Err(Failure::Unsupported { task, what: "its period is 0" });
    }
    if processors == 0 && !tasks.is_empty() {
        return Err(Failure::Overload);
    }
    let mut ceilings: BTreeMap<u16, u32> = BTreeMap::new();
    for task in tasks {
        for demand in &task.requests {
            let ceiling = ceilings.entry(demand.resource).or_insert(0);
            *ceiling = (*ceiling).max(task.priority);
        }
    }
    let mut found = vec![Inherited::default(); tasks.len()];
    for (rank, &index) in order.iter().enumerate() {
        let task = &tasks[index];
        let (urgent, lower) = (&order[..rank], &order[rank + 1..]);
        let own = |resource: u16| task.requests.iter().any(|demand| demand.resource == resource);
        let mut direct = 0_u64;
        for demand in &task.requests {
            let all = lower.iter().flat_map(|&other| &tasks[other].requests);
            let longest = all.filter(|other| other.resource == demand.resource).map(|other| other.length).max();
            add(&mut direct, u64::from(demand.count).checked_mul(longest.unwrap_or(0)))?;
        }
        let mut shared = 0_u64;
        for &other in urgent {
            let used = use_of(&tasks[other], own)?;
            add(&mut shared, Some(work(&tasks[other], other, task.response, used)?))?;
        }
        let mut indirect = 0_u64;
        if rank >= processors as usize {
            for &other in lower {
                let above = |resource: u16| ceilings.get(&resource).is_some_and(|&ceiling| ceiling > task.priority);
                let used = use_of(&tasks[other], above)?;
                add(&mut indirect, Some(work(&tasks[other], other, task.response, used)?))?;
            }
        }
        let mut total = direct;
        add(&mut total, Some(shared))?;
        add(&mut total, Some(indirect.div_ceil(u64::from(processors))))?;
        found[index] = Inherited { total, urgent: shared };
    }
    Ok(found)
}

fn add(sum: &mut u64, more: Option<u64>) -> Result<(), Failure> {
    *sum = more.and_then(|more| sum.checked_add(more)).ok_or(Failure::Overflow)?;
    Ok(())
}

/// Returns the time for which one job uses the resources for which `which` holds.
fn use_of(task: &Sharer, which: impl Fn(u16) -> bool) -> Result<u64, Failure> {
    let mut sum = 0;
    for demand in task.requests.iter().filter(|demand| which(demand.resource)) {
        add(&mut sum, u64::from(demand.count).checked_mul(demand.length))?;
    }
    Ok(sum)
}

/// Returns W of `task`, which is the one at `index`.
fn work(task: &Sharer, index: usize, time: u64, each: u64) -> Result<u64, Failure> {
    let window = time.checked_add(task.deadline).ok_or(Failure::Overflow)?;
    let longer =
        Failure::Unsupported { task: index, what: "its sections last longer than the window and its deadline" };
    let window = window.checked_sub(each).ok_or(longer)?;
    let whole = each.checked_mul(window / task.period).ok_or(Failure::Overflow)?;
    whole.checked_add(each.min(window % task.period)).ok_or(Failure::Overflow)
}
