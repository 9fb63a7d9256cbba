//! The threads of a recording: which one a number of the kernel means at a time.

use super::read::Contents;
use std::collections::HashMap;

/// A thread, and when it existed as far as its events tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) lost: u64,
    pub(super) first_ns: u64,
    pub(super) end_ns: Option<u64>,
}

/// All threads. The kernel gives the number of a thread that ended to a new one after some time.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub(super) all: Vec<Life>,
    by_number: HashMap<u32, usize>,
    by_id: HashMap<u32, Vec<usize>>,
}

impl Lives {
    pub(super) fn new(contents: &Contents) -> Self {
        let mut lives = Self::default();
        for entry in &contents.threads {
            lives.by_number.insert(entry.number, lives.all.len());
            let (id, name, lost) = (entry.id, entry.name.clone(), entry.lost);
            lives.all.push(Life { id, name, lost, first_ns: u64::MAX, end_ns: None });
        }
        lives
    }

    /// Returns the thread of this number in the file.
    pub(super) fn of_number(&mut self, number: u32) -> usize {
        *self.by_number.entry(number).or_insert_with(|| {
            self.all.push(Life { first_ns: u64::MAX, ..Life::default() });
            self.all.len() - 1
        })
    }

    /// Must be called once the times of all threads are known, and before [`of_id`](Self::of_id).
    pub(super) fn index(&mut self) {
        for (index, life) in self.all.iter().enumerate() {
            self.by_id.entry(life.id).or_default().push(index);
        }
        for indices in self.by_id.values_mut() {
            indices.sort_by_key(|&index| self.all[index].first_ns);
        }
    }

    /// Returns the thread with this number in the kernel at this time; a new one if no other event names it.
    pub(super) fn of_id(&mut self, id: u32, at_ns: u64) -> usize {
        let all = &mut self.all;
        let indices = self.by_id.entry(id).or_default();
        let after = indices.partition_point(|&index| all[index].first_ns <= at_ns);
        match (after.checked_sub(1).map(|before| indices[before]), indices.get(after).copied()) {
            (Some(before), Some(next)) => match all[before].end_ns {
                // The kernel dispatches a thread before its first event, and stops it after its last one.
                Some(end_ns) if end_ns < at_ns && at_ns - end_ns > all[next].first_ns - at_ns => next,
                _ => before,
            },
            (Some(before), None) => before,
            (None, Some(next)) => next,
            (None, None) => {
                all.push(Life { id, ..Life::default() });
                indices.push(all.len() - 1);
                all.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_the_kernel_gives_again_means_the_thread_of_that_time() {
        let life = |id, first_ns, end_ns| Life { id, first_ns, end_ns, ..Life::default() };
        let all = vec![life(5, 1_000, Some(2_000)), life(6, 0, None), life(5, 9_000, None)];
        let mut lives = Lives { all, ..Lives::default() };
        lives.index();
        // The kernel names a thread a little before its first event and after its last one.
        let seen = [900, 1_500, 2_010, 8_990, 9_500].map(|at_ns| lives.of_id(5, at_ns));
        assert_eq!(seen, [0, 0, 0, 2, 2]);
        assert_eq!((lives.of_id(6, 5), lives.of_id(8, 5), lives.of_id(8, 6)), (1, 3, 3));
    }
}
