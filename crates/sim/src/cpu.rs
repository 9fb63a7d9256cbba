//! One processor: its running task, its ready tasks, and its execution times by base priority.

use lockwright_model::Priority;

/// The state of a processor. Tasks are given by their indices.
pub(crate) struct Cpu {
    pub(crate) running: Option<usize>,
    /// The end of the overhead that occupies the processor.
    pub(crate) stalled_until: u64,
    /// Whether the next scheduling decision waits for that end.
    pub(crate) deferred: bool,
    /// The task to which the processor was assigned last.
    pub(crate) given: Option<usize>,
    /// The nominal time of the next tick, and its actual time.
    pub(crate) tick: (u64, u64),
    /// The ready tasks, by increasing priority. The last one executes next; of equal ones that is the first to come.
    ready: Vec<(Priority, u32)>,
    /// The execution time so far, by rank of base priority. The most urgent rank is the first.
    executed: Vec<u64>,
    accounted_until: u64,
}

impl Cpu {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            running: None,
            stalled_until: 0,
            deferred: false,
            given: None,
            tick: (0, u64::MAX),
            ready: Vec::new(),
            executed: vec![0; ranks],
            accounted_until: 0,
        }
    }

    /// Adds a task behind those of its priority: it has become ready, or its priority has risen.
    #[inline]
    pub(crate) fn push_tail(&mut self, priority: Priority, task: usize) {
        // In most cases the task is the most urgent one.
        let place = self.ready.iter().rposition(|&(other, _)| other < priority).map_or(0, |before| before + 1);
        // A task's index has 16 bits.
        self.ready.insert(place, (priority, task as u32));
    }

    /// Adds a task before those of its priority: it was preempted, or its priority has fallen.
    #[inline]
    pub(crate) fn push_head(&mut self, priority: Priority, task: usize) {
        let place = self.ready.iter().rposition(|&(other, _)| other <= priority).map_or(0, |before| before + 1);
        self.ready.insert(place, (priority, task as u32));
    }

    #[inline]
    pub(crate) fn remove(&mut self, task: usize) {
        if let Some(place) = self.ready.iter().rposition(|&(_, other)| other as usize == task) {
            self.ready.remove(place);
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(Priority, usize)> {
        self.ready.last().map(|&(priority, task)| (priority, task as usize))
    }

    /// The ready tasks, the most urgent first.
    #[inline]
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().rev().map(|&(_, task)| task as usize)
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) {
        self.ready.pop();
    }

    /// Returns the time since the last call of [`Cpu::account`].
    #[inline]
    pub(crate) fn unaccounted(&self, now: u64) -> u64 {
        now - self.accounted_until
    }

    /// Adds the time since the last call to the rank of the running task.
    #[inline]
    pub(crate) fn account(&mut self, now: u64, rank_running: Option<u32>) {
        if let Some(rank) = rank_running {
            self.executed[rank as usize] += now - self.accounted_until;
        }
        self.accounted_until = now;
    }

    /// Returns the time for which this processor has executed tasks of `rank` or a more urgent one, up to the last call
    /// of [`Cpu::account`].
    #[inline]
    pub(crate) fn executed_at_least(&self, rank: usize) -> u64 {
        self.executed[..=rank].iter().sum()
    }
}
