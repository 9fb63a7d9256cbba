//! Assignment of tasks to processors, in order of decreasing utilization.
//!
//! The caller decides whether tasks fit on one processor. Tasks that should not be separated, such as the users of one
//! long resource in Brandenburg, Calandrino, Block, Leontyev, Anderson (RTAS 2008), are placed together, as one item
//! with the sum of their utilizations.

use crate::rows::divisor::Divisor;
use crate::rows::failure::Failure;
use crate::rows::sporadic::Sporadic;

/// The processor to choose among those where an item fits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fit {
    /// The first one.
    First,
    /// The one with the greatest utilization.
    Best,
    /// The one with the least utilization.
    Worst,
}

/// Returns the processor of each task.
///
/// Each of the `groups` lists tasks that must be on one processor. Groups with a task in common count as one group.
/// `fits` decides whether the tasks of one processor, given as increasing indices, are schedulable there.
///
/// # Errors
/// Returns [`Failure::Task`] with the task that fits on no processor, or with the first task of such a group. Returns
/// [`Failure::Unsupported`] if a group contains an index without a task, or if a task has no period.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Fit, Sporadic, partition};
/// let task = |cost| Sporadic { cost, period: 100, deadline: 100 };
/// let tasks = [task(60), task(50), task(40)];
/// let fits = |members: &[usize]| members.iter().map(|&index| tasks[index].cost).sum::<u64>() <= 100;
/// assert_eq!(partition(&tasks, 2, Fit::First, &[], fits)?, [0, 1, 0]);
/// # Ok::<(), lockwright_analysis::Failure>(())
/// ```
pub fn partition(
    tasks: &[Sporadic],
    processors: usize,
    fit: Fit,
    groups: &[Vec<usize>],
    mut fits: impl FnMut(&[usize]) -> bool,
) -> Result<Vec<usize>, Failure> {
    let mut items = items(tasks, groups)?;
    items.sort_by_key(|item| std::cmp::Reverse(item.load));
    let mut placed: Vec<Item> = vec![Item::default(); processors];
    let mut homes = vec![0; tasks.len()];
    let mut order: Vec<usize> = (0..processors).collect();
    for item in items {
        match fit {
            Fit::First => {}
            Fit::Best => order.sort_by_key(|&processor| (std::cmp::Reverse(placed[processor].load), processor)),
            Fit::Worst => order.sort_by_key(|&processor| (placed[processor].load, processor)),
        }
        let home = order.iter().copied().find(|&processor| {
            let mut members = placed[processor].members.clone();
            members.extend(&item.members);
            members.sort_unstable();
            fits(&members)
        });
        let task = item.members.first().copied().unwrap_or(0);
        let home = home.ok_or(Failure::Task { task })?;
        placed[home].load = placed[home].load.saturating_add(item.load);
        placed[home].members.extend(&item.members);
        for &member in &item.members {
            homes[member] = home;
        }
    }
    Ok(homes)
}

/// Like [`partition`], first with the groups together and, if that fails, with every task placed individually.
///
/// # Errors
/// Returns the error of the attempt without groups.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Fit, Sporadic, together_first};
/// let task = |cost| Sporadic { cost, period: 100, deadline: 100 };
/// let tasks = [task(60), task(50), task(40)];
/// let fits = |members: &[usize]| members.iter().map(|&index| tasks[index].cost).sum::<u64>() <= 100;
/// // The second and the third task should stay together.
/// assert_eq!(together_first(&tasks, 2, Fit::First, &[vec![1, 2]], fits)?, [1, 0, 0]);
/// # Ok::<(), lockwright_analysis::Failure>(())
/// ```
pub fn together_first(
    tasks: &[Sporadic],
    processors: usize,
    fit: Fit,
    groups: &[Vec<usize>],
    mut fits: impl FnMut(&[usize]) -> bool,
) -> Result<Vec<usize>, Failure> {
    partition(tasks, processors, fit, groups, &mut fits).or_else(|_| partition(tasks, processors, fit, &[], &mut fits))
}

/// A task or a group, which is placed as a whole.
#[derive(Clone, Default)]
struct Item {
    /// The utilization in units of 2^-64, rounded down. It affects only the order in which items and processors are
    /// tried.
    load: u128,
    members: Vec<usize>,
}

fn items(tasks: &[Sporadic], groups: &[Vec<usize>]) -> Result<Vec<Item>, Failure> {
    // By task: the least index of the tasks in its group.
    let mut heads: Vec<usize> = (0..tasks.len()).collect();
    for group in groups {
        for pair in group.windows(2) {
            let find =
                |task: usize| heads.get(task).copied().ok_or(Failure::Unsupported { task, what: "does not exist" });
            let (a, b) = (find(pair[0])?, find(pair[1])?);
            let (low, high) = (a.min(b), a.max(b));
            for head in heads.iter_mut().filter(|head| **head == high) {
                *head = low;
            }
        }
    }
    let mut items = vec![Item::default(); tasks.len()];
    for (index, task) in tasks.iter().enumerate() {
        let period = Divisor::new(task.period).ok_or(Failure::Unsupported { task: index, what: "has no period" })?;
        let item = &mut items[heads[index]];
        let load = u128::from(task.cost) * u128::from(period.inverse());
        item.load = item.load.saturating_add(load);
        item.members.push(index);
    }
    items.retain(|item| !item.members.is_empty());
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uniprocessor::edf;

    fn tasks(percent: &[u64]) -> Vec<Sporadic> {
        percent.iter().map(|&cost| Sporadic { cost, period: 100, deadline: 100 }).collect()
    }

    fn place(percent: &[u64], fit: Fit, groups: &[Vec<usize>]) -> Result<Vec<usize>, Failure> {
        let tasks = tasks(percent);
        partition(&tasks, 3, fit, groups, |members| {
            let local: Vec<Sporadic> = members.iter().map(|&index| tasks[index]).collect();
            edf::schedulable(&local, &[]).is_ok()
        })
    }

    #[test]
    fn each_heuristic_is_itself() {
        let percent = [30, 60, 50, 40];
        assert_eq!(place(&percent, Fit::First, &[]), Ok(vec![1, 0, 1, 0]));
        assert_eq!(place(&percent, Fit::Worst, &[]), Ok(vec![2, 0, 1, 2]));
        // 60 goes to the first processor and 55 opens the second; 30 goes to the fuller, which is the first.
        assert_eq!(place(&[60, 55, 30], Fit::Best, &[]), Ok(vec![0, 1, 0]));
        assert_eq!(place(&[60, 55, 30], Fit::Worst, &[]), Ok(vec![0, 1, 2]));
        assert_eq!(place(&[55, 60, 42, 40], Fit::First, &[]), Ok(vec![1, 0, 1, 0]));
        assert_eq!(place(&[60; 4], Fit::First, &[]), Err(Failure::Task { task: 3 }));
        assert_eq!(place(&[], Fit::Best, &[]), Ok(vec![]));
        assert_eq!(partition(&tasks(&[1]), 0, Fit::Best, &[], |_| true), Err(Failure::Task { task: 0 }));
    }

    #[test]
    fn groups_stay_together_while_they_fit() {
        // 0 and 1, 1 and 3: all three stay together.
        let groups = [vec![0, 1], vec![3, 1]];
        let homes = place(&[20, 30, 70, 40], Fit::Worst, &groups).unwrap();
        assert_eq!(homes, vec![0, 0, 1, 0]);
        assert!(place(&[60, 30, 70, 40], Fit::Worst, &groups).is_err());
        let tasks = tasks(&[60, 30, 70, 40]);
        let fits = |members: &[usize]| members.iter().map(|&index| tasks[index].cost).sum::<u64>() <= 100;
        assert_eq!(together_first(&tasks, 3, Fit::Worst, &groups, fits), Ok(vec![1, 2, 0, 2]));
        assert!(partition(&tasks, 3, Fit::Worst, &[vec![0, 9]], fits).is_err());
    }
}
