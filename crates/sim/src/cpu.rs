//! One processor: who executes, who is ready, and how much was executed at which base priority.

use lockwright_model::Priority;

/// A processor's view of time and tasks; `usize` is a task's index.
pub(crate) struct Cpu {
    pub(crate) running: Option<usize>,
    /// Until then the machine takes the processor for itself.
    pub(crate) stalled_until: u64,
    /// What is to be decided here is decided then.
    pub(crate) deferred: bool,
    /// Who the processor was given last.
    pub(crate) given: Option<usize>,
    /// When the next tick should come, and when it does.
    pub(crate) tick: (u64, u64),
    /// Most urgent last; first come, first served inside a priority: the last one is next.
    ready: Vec<(Priority, u32)>,
    /// Execution so far by rank of base priority, the most urgent rank first.
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

    /// Behind its equals: newly ready, or risen.
    #[inline]
    pub(crate) fn push_tail(&mut self, priority: Priority, task: usize) {
        // Mostly it is the most urgent.
        let place = self.ready.iter().rposition(|&(other, _)| other < priority).map_or(0, |before| before + 1);
        // A task's index has 16 bits.
        self.ready.insert(place, (priority, task as u32));
    }

    /// Before its equals: preempted, or fallen.
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

    /// Who is ready, most urgent first.
    #[inline]
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().rev().map(|&(_, task)| task as usize)
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) {
        self.ready.pop();
    }

    /// The time since the last call of [`Cpu::account`].
    #[inline]
    pub(crate) fn unaccounted(&self, now: u64) -> u64 {
        now - self.accounted_until
    }

    /// Books the time since the last call on the rank of the running task.
    #[inline]
    pub(crate) fn account(&mut self, now: u64, rank_running: Option<u32>) {
        if let Some(rank) = rank_running {
            self.executed[rank as usize] += now - self.accounted_until;
        }
        self.accounted_until = now;
    }

    /// Time so far in which this processor executed tasks of `rank` or more urgent; [`Cpu::account`] first.
    #[inline]
    pub(crate) fn executed_at_least(&self, rank: usize) -> u64 {
        self.executed[..=rank].iter().sum()
    }
}
