//! The order of requests on each processor, as priorities of the boosted band: the earlier, the more urgent.

use lockwright_model::{CpuId, Priority, TaskId};

/// Of each task with a request: where, and its level.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slots<const TASKS: usize> {
    levels: [Option<(CpuId, u16)>; TASKS],
    bottom: u16,
}

const TOP: u16 = u16::MAX;

/// The priorities that a machine gives the requests of at most so many tasks of one processor, the earliest first: twice as many as tasks, so that they seldom have
/// to be given out anew.
pub fn request_priorities(tasks: usize) -> impl Iterator<Item = Priority> + Clone {
    (bottom(tasks)..=TOP).rev().map(|level| Priority::base(u32::from(level)).boosted())
}

fn bottom(tasks: usize) -> u16 {
    let levels = u16::try_from(tasks.saturating_mul(2)).unwrap_or(TOP).max(1);
    TOP - (levels - 1)
}

impl<const TASKS: usize> Slots<TASKS> {
    /// For at most so many requests on one processor.
    pub(crate) fn new(tasks: usize) -> Self {
        Self { levels: [None; TASKS], bottom: bottom(tasks) }
    }

    /// The priority of a task's request; `None` where it has none.
    pub(crate) fn priority(&self, task: TaskId) -> Option<Priority> {
        let (_, level) = self.levels[task.index()]?;
        Some(Priority::base(u32::from(level)).boosted())
    }

    /// `task` asks on `cpu`, after all others there. Says whether those got other levels: they do when levels run out.
    ///
    /// BOUND: a step a task, and a step for each pair of them whenever the levels run out.
    pub(crate) fn take(&mut self, task: TaskId, cpu: CpuId) -> bool {
        debug_assert!(self.levels[task.index()].is_none(), "a task has one request");
        let lowest = self.on(cpu).min();
        let renumbered = lowest == Some(self.bottom);
        let level = if renumbered { self.compact(cpu) } else { lowest };
        self.levels[task.index()] = Some((cpu, level.map_or(TOP, |lowest| lowest - 1)));
        renumbered
    }

    pub(crate) fn give(&mut self, task: TaskId) {
        self.levels[task.index()] = None;
    }

    fn on(&self, cpu: CpuId) -> impl Iterator<Item = u16> {
        self.levels.iter().flatten().filter(move |slot| slot.0 == cpu).map(|slot| slot.1)
    }

    /// The first request on `cpu` after the one at level `last`, and its level; without `last`, the earliest.
    pub(crate) fn after(&self, cpu: CpuId, last: Option<u16>) -> Option<(TaskId, u16)> {
        let slots = self.levels.iter().enumerate();
        let there = slots.filter_map(|(place, slot)| slot.filter(|slot| slot.0 == cpu).map(|slot| (place, slot.1)));
        let later = there.filter(|&(_, level)| last.is_none_or(|last| level < last));
        later.max_by_key(|&(_, level)| level).map(|(place, level)| (TaskId::new(place), level))
    }

    /// The levels of one processor, in the same order, from the top without gaps. Returns the lowest.
    ///
    /// No level falls: above the request at place k there are k others, so its level was at most the one it gets. Whoever tells the tasks in the order of their
    /// requests keeps that order at each step: the told ones are above the level of the next, and it is above all that follow.
    fn compact(&mut self, cpu: CpuId) -> Option<u16> {
        let (mut lowest, mut last) = (None, None);
        for next in (0..=TOP).rev() {
            let Some((task, level)) = self.after(cpu, last) else { break };
            self.levels[task.index()] = Some((cpu, next));
            // What was given a new level has it above all that follow.
            (lowest, last) = (Some(next), Some(level));
        }
        lowest
    }

    /// For the exhaustive walk: only the order counts.
    #[cfg(test)]
    pub(crate) fn forget_gaps(&mut self) {
        for cpu in 0..TASKS {
            self.compact(CpuId::new(cpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_begin_anew_where_they_run_out_and_keep_their_order() {
        let [first, second, third, other] = [0, 1, 2, 3].map(TaskId::new);
        let levels = [Some((CpuId(0), 65_532)), Some((CpuId(0), 65_530)), None, Some((CpuId(1), 65_530))];
        let mut slots = Slots::<4> { levels, ..Slots::new(3) };
        assert!(slots.take(third, CpuId(0)));
        let level = |slots: &Slots<4>, task| slots.priority(task).unwrap().level();
        assert_eq!([first, second, third, other].map(|task| level(&slots, task)), [65_535, 65_534, 65_533, 65_530]);
        slots.give(first);
        assert!(!slots.take(first, CpuId(0)), "behind the last, not in the gap");
        assert_eq!(level(&slots, first), 65_532);
        assert_eq!(slots.priority(first).map(Priority::is_boosted), Some(true));
    }

    /// As [`lockwright_protocol::Machine`]s tell them: one by one.
    #[test]
    fn levels_told_in_order_of_arrival_keep_it_at_each_step() {
        const CPU: CpuId = CpuId(0);
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        // Each three of the lower levels that three tasks have.
        let levels =
            (bottom(4)..TOP - 1).flat_map(|a| (a + 1..TOP).flat_map(move |b| (b + 1..=TOP).map(move |c| [c, b, a])));
        for old in levels.filter(|old| old[2] == bottom(4)) {
            for order in orders {
                let mut slots = Slots::<4>::new(4);
                for (&task, level) in order.iter().zip(old) {
                    slots.levels[task] = Some((CPU, level));
                }
                assert!(slots.take(TaskId::new(3), CPU));
                let mut told = old;
                let (mut last, mut place) = (None, 0);
                while let Some((task, level)) = slots.after(CPU, last).filter(|(task, _)| *task != TaskId::new(3)) {
                    assert_eq!(task.index(), order[place], "the earliest first");
                    told[place] = level;
                    assert!(told.is_sorted_by(|earlier, later| earlier > later), "{old:?}, then {told:?}");
                    (last, place) = (Some(level), place + 1);
                }
                assert_eq!((place, told), (3, [TOP, TOP - 1, TOP - 2]));
            }
        }
    }
}
