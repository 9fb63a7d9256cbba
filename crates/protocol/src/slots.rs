//! The order of requests on each processor, as priorities of the boosted band: the earlier, the more urgent.

use lockwright_model::{CpuId, Priority, TaskId};

/// Of each task with a request: where, and its level.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slots<const TASKS: usize>([Option<(CpuId, u16)>; TASKS]);

const TOP: u16 = u16::MAX;

impl<const TASKS: usize> Slots<TASKS> {
    pub(crate) const fn new() -> Self {
        Self([None; TASKS])
    }

    /// The priority of a task's request; `None` where it has none.
    pub(crate) fn priority(&self, task: TaskId) -> Option<Priority> {
        let (_, level) = self.0[task.index()]?;
        Some(Priority::base(u32::from(level)).boosted())
    }

    /// `task` asks on `cpu`, after all others there. Says whether those got other levels: they do when levels run out.
    ///
    /// BOUND: a step a task, and a step for each pair of them once in 2^16 requests.
    pub(crate) fn take(&mut self, task: TaskId, cpu: CpuId) -> bool {
        debug_assert!(self.0[task.index()].is_none(), "a task has one request");
        let lowest = self.on(cpu).min();
        let renumbered = lowest == Some(0);
        let level = if renumbered { self.compact(cpu) } else { lowest };
        self.0[task.index()] = Some((cpu, level.map_or(TOP, |lowest| lowest - 1)));
        renumbered
    }

    pub(crate) fn give(&mut self, task: TaskId) {
        self.0[task.index()] = None;
    }

    fn on(&self, cpu: CpuId) -> impl Iterator<Item = u16> {
        self.0.iter().flatten().filter(move |slot| slot.0 == cpu).map(|slot| slot.1)
    }

    /// The levels of one processor, in the same order, from the top without gaps. Returns the lowest.
    fn compact(&mut self, cpu: CpuId) -> Option<u16> {
        let mut lowest = None;
        // The highest level not yet given, and the next to be looked for.
        let (mut next, mut below) = (TOP, u32::from(TOP) + 1);
        while let Some(level) = self.on(cpu).filter(|&level| u32::from(level) < below).max() {
            let place = self.0.iter().position(|&slot| slot == Some((cpu, level)));
            below = u32::from(level);
            if let Some(place) = place {
                self.0[place] = Some((cpu, next));
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
        let mut slots = Slots::<4>([Some((CpuId(0), 700)), Some((CpuId(0), 0)), None, Some((CpuId(1), 0))]);
        assert!(slots.take(third, CpuId(0)));
        let level = |slots: &Slots<4>, task| slots.priority(task).unwrap().level();
        assert_eq!([first, second, third, other].map(|task| level(&slots, task)), [65_535, 65_534, 65_533, 0]);
        slots.give(first);
        assert!(!slots.take(first, CpuId(0)), "behind the last, not in the gap");
        assert_eq!(level(&slots, first), 65_532);
        assert_eq!(slots.priority(first).map(Priority::is_boosted), Some(true));
    }
}
