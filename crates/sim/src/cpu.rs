//! One processor: who executes, who is ready, and how much was executed at which base priority.

use lockwright_model::Priority;

/// A processor's view of time and tasks; `usize` is a task's index.
pub(crate) struct Cpu {
    pub(crate) running: Option<usize>,
    /// When the running task's current run ends; `u64::MAX` while nobody runs.
    pub(crate) run_ends: u64,
    /// Until then the machine takes the processor for itself.
    pub(crate) stalled_until: u64,
    /// What is to be decided here is decided then.
    pub(crate) deferred: bool,
    /// Who the processor was given last.
    pub(crate) given: Option<usize>,
    /// When the next tick should come, and when it does.
    pub(crate) tick: (u64, u64),
    /// Most urgent first; first come, first served inside a priority.
    ready: Vec<(Priority, usize)>,
    /// Execution so far by rank of base priority, the most urgent rank first.
    executed: Vec<u64>,
    accounted_until: u64,
}

impl Cpu {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            running: None,
            run_ends: u64::MAX,
            stalled_until: 0,
            deferred: false,
            given: None,
            tick: (0, u64::MAX),
            ready: Vec::new(),
            executed: vec![0; ranks],
            accounted_until: 0,
        }
    }

    /// The machine takes the processor for so long.
    pub(crate) fn stall(&mut self, now: u64, ns: u64) {
        self.stalled_until = self.stalled_until.max(now).saturating_add(ns);
        if self.run_ends != u64::MAX {
            self.run_ends = self.run_ends.saturating_add(ns);
        }
    }

    /// Behind its equals: newly ready, or risen.
    pub(crate) fn push_tail(&mut self, priority: Priority, task: usize) {
        let place = self.ready.partition_point(|&(other, _)| other >= priority);
        self.ready.insert(place, (priority, task));
    }

    /// Before its equals: preempted, or fallen.
    pub(crate) fn push_head(&mut self, priority: Priority, task: usize) {
        let place = self.ready.partition_point(|&(other, _)| other > priority);
        self.ready.insert(place, (priority, task));
    }

    pub(crate) fn remove(&mut self, task: usize) {
        self.ready.retain(|&(_, other)| other != task);
    }

    pub(crate) fn first(&self) -> Option<(Priority, usize)> {
        self.ready.first().copied()
    }

    /// Who is ready, most urgent first.
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().map(|&(_, task)| task)
    }

    pub(crate) fn pop_first(&mut self) {
        self.ready.remove(0);
    }

    /// The time since the last call of [`Cpu::account`].
    pub(crate) fn unaccounted(&self, now: u64) -> u64 {
        now - self.accounted_until
    }

    /// Books the time since the last call on the rank of the running task.
    pub(crate) fn account(&mut self, now: u64, rank_running: Option<usize>) {
        if let Some(rank) = rank_running {
            self.executed[rank] += now - self.accounted_until;
        }
        self.accounted_until = now;
    }

    /// Time so far in which this processor executed tasks of `rank` or more urgent; [`Cpu::account`] first.
    pub(crate) fn executed_at_least(&self, rank: usize) -> u64 {
        self.executed[..=rank].iter().sum()
    }
}
