//! The tasks of each processor, so that an event of one processor examines no tasks of another.

use core::ops::Range;
use lockwright_model::{CpuId, TaskId};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Peers<const TASKS: usize> {
    /// All tasks: those of one processor are adjacent, by id.
    order: [TaskId; TASKS],
    /// By task: the beginning and the end of the tasks of its processor in `order`.
    spans: [(u16, u16); TASKS],
}

impl<const TASKS: usize> Peers<TASKS> {
    /// `cpus[t]` is the processor of task `t`. Tasks beyond the capacity are ignored.
    pub(crate) fn new(cpus: impl Iterator<Item = CpuId>) -> Self {
        let mut all = [CpuId(0); TASKS];
        let mut count = 0;
        for (slot, cpu) in all.iter_mut().zip(cpus) {
            *slot = cpu;
            count += 1;
        }
        let mut order = [TaskId(0); TASKS];
        for (index, task) in order[..count].iter_mut().enumerate() {
            *task = TaskId::new(index);
        }
        order[..count].sort_unstable_by_key(|&task| (all[task.index()], task));
        let mut spans = [(0, 0); TASKS];
        let mut first = 0;
        for peers in order[..count].chunk_by(|one, other| all[one.index()] == all[other.index()]) {
            let end = first + peers.len() as u16;
            peers.iter().for_each(|task| spans[task.index()] = (first, end));
            first = end;
        }
        Self { order, spans }
    }

    /// The tasks of the processor of `task`, itself included, by id; none if `task` is unknown.
    pub(crate) fn of(&self, task: TaskId) -> &[TaskId] {
        self.order.get(self.places(task)).unwrap_or_default()
    }

    /// The places of these tasks for [`Peers::at`], for loops that change the machine.
    pub(crate) fn places(&self, task: TaskId) -> Range<usize> {
        let (first, end) = self.spans.get(task.index()).copied().unwrap_or_default();
        usize::from(first)..usize::from(end)
    }

    pub(crate) fn at(&self, place: usize) -> TaskId {
        self.order[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_a_processor_come_by_id() {
        let peers = Peers::<6>::new([3, 1, 3, 0, 3, 1, 3].map(CpuId).into_iter());
        let of = |task| peers.of(TaskId(task)).iter().map(|peer| peer.0);
        assert!(of(0).eq([0, 2, 4]) && of(4).eq([0, 2, 4]) && of(1).eq([1, 5]) && of(3).eq([3]));
        assert!(of(6).eq([]), "beyond the capacity");
        assert!(Peers::<6>::new([CpuId(0)].into_iter()).of(TaskId(1)).is_empty(), "it does not exist");
    }
}
