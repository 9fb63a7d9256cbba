//! Assigning tasks to processors, greatest utilization first.
//!
//! Whether tasks fit on one processor is the caller's test. Where some must not be separated, as the users of one long resource in
//! Brandenburg, Calandrino, Block, Leontyev, Anderson (RTAS 2008), they are placed together, as one item with the sum of their utilizations.

use crate::divisor::Divisor;
use crate::failure::Failure;
use crate::sporadic::Sporadic;

/// On which of the processors where an item fits it is put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The first.
    First,
    /// The fullest.
    Best,
    /// The emptiest.
    Worst,
}

/// The processor of each task.
///
/// `groups`: tasks that are to be on one processor; groups with a task in common count as one. `fits` is asked whether the tasks of one processor,
/// by growing index, are schedulable there.
///
/// # Errors
/// The first task, or a task of the group, that fits nowhere.
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

/// As [`partition`], first with the groups together, and if that does not succeed without.
///
/// # Errors
/// Why it does not succeed without.
pub fn together_first(
    tasks: &[Sporadic],
    processors: usize,
    fit: Fit,
    groups: &[Vec<usize>],
    mut fits: impl FnMut(&[usize]) -> bool,
) -> Result<Vec<usize>, Failure> {
    partition(tasks, processors, fit, groups, &mut fits).or_else(|_| partition(tasks, processors, fit, &[], &mut fits))
}

/// What is placed at one time.
#[derive(Clone, Default)]
struct Item {
    /// Utilization, in parts of 2^64, rounded down: it decides who comes first, and nothing else.
    load: u128,
    members: Vec<usize>,
}

fn items(tasks: &[Sporadic], groups: &[Vec<usize>]) -> Result<Vec<Item>, Failure> {
    // The least task that each is together with.
    let mut heads: Vec<usize> = (0..tasks.len()).collect();
    for group in groups {
        for pair in group.windows(2) {
            let find =
                |task: usize| heads.get(task).copied().ok_or(Failure::Unsupported { task, what: "is not there" });
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
        // 60, then 55 opens the second, 30 goes to the fuller first.
        assert_eq!(place(&[60, 55, 30], Fit::Best, &[]), Ok(vec![0, 1, 0]));
        assert_eq!(place(&[60, 55, 30], Fit::Worst, &[]), Ok(vec![0, 1, 2]));
        assert_eq!(place(&[55, 60, 42, 40], Fit::First, &[]), Ok(vec![1, 0, 1, 0]));
        assert_eq!(place(&[60; 4], Fit::First, &[]), Err(Failure::Task { task: 3 }));
        assert_eq!(place(&[], Fit::Best, &[]), Ok(vec![]));
        assert_eq!(partition(&tasks(&[1]), 0, Fit::Best, &[], |_| true), Err(Failure::Task { task: 0 }));
    }

    #[test]
    fn groups_stay_together_while_they_fit() {
        // 0 and 1, 1 and 3: all three.
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
