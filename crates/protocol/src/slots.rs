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

    /// The levels of one processor, in the same order, from the top without gaps. Returns the lowest.
    fn compact(&mut self, cpu: CpuId) -> Option<u16> {
        let mut lowest = None;
        // The highest level not yet given, and the next to be looked for.
        let (mut next, mut below) = (TOP, u32::from(TOP) + 1);
        while let Some(level) = self.on(cpu).filter(|&level| u32::from(level) < below).max() {
            let place = self.levels.iter().position(|&slot| slot == Some((cpu, level)));
            below = u32::from(level);
            if let Some(place) = place {
                self.levels[place] = Some((cpu, next));
            }
            (lowest, next) = (Some(next), next.saturating_sub(1));
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
}
