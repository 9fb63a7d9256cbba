//! One processor: its running task, its ready tasks, and its execution times by base priority.

use lockwright_model::Priority;

/// The number of execution times in a group. Groups are added without branches.
const GROUP: usize = 8;

/// By place in a group: all ones for each place up to it, and zeros for the others.
const COUNTED: [[u64; GROUP]; GROUP] = {
    let mut counted = [[0; GROUP]; GROUP];
    let mut rest = 0;
    while rest < GROUP {
        let mut place = 0;
        while place <= rest {
            counted[rest][place] = u64::MAX;
            place += 1;
        }
        rest += 1;
    }
    counted
};

/// The state of a processor. Tasks are given by their indices.
#[repr(align(64))]
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
    /// The execution time so far, by rank of base priority, in groups. The most urgent rank is the first.
    executed: Vec<[u64; GROUP]>,
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
            executed: vec![[0; GROUP]; ranks.div_ceil(GROUP)],
            accounted_until: 0,
        }
    }

    /// Adds a task behind those of its priority: it has become ready.
    #[inline]
    pub(crate) fn push_tail(&mut self, priority: Priority, task: usize) {
        // A task's index has 16 bits.
        self.ready.push((priority, task as u32));
        self.sink(self.ready.len() - 1, |other| other >= priority);
    }

    /// Adds a task before those of its priority: it was preempted.
    #[inline]
    pub(crate) fn push_head(&mut self, priority: Priority, task: usize) {
        self.ready.push((priority, task as u32));
        self.sink(self.ready.len() - 1, |other| other > priority);
    }

    /// Moves a task to the place of its new priority: behind those of this priority if it has risen, and before them if
    /// it has fallen.
    #[inline]
    pub(crate) fn reorder(&mut self, priority: Priority, task: usize) {
        let ready = &mut self.ready;
        let Some(mut place) = ready.iter().rposition(|&(_, other)| other as usize == task) else { return };
        let has_risen = priority > ready[place].0;
        ready[place].0 = priority;
        if !has_risen {
            return self.sink(place, |other| other > priority);
        }
        // BOUND: one step for each task that the priority rises above.
        while place + 1 < ready.len() && ready[place + 1].0 < priority {
            ready.swap(place, place + 1);
            place += 1;
        }
    }

    /// Moves the task at `place` below the next less urgent ones that are `above` it.
    ///
    /// In most cases there is none.
    #[inline]
    fn sink(&mut self, mut place: usize, above: impl Fn(Priority) -> bool) {
        // BOUND: one step for each less urgent task.
        while place > 0 && above(self.ready[place - 1].0) {
            self.ready.swap(place - 1, place);
            place -= 1;
        }
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
            self.executed[rank as usize / GROUP][rank as usize % GROUP] += now - self.accounted_until;
        }
        self.accounted_until = now;
    }

    /// Returns the time for which this processor has executed tasks of `rank` or a more urgent one, up to the last call
    /// of [`Cpu::account`].
    #[inline]
    pub(crate) fn executed_at_least(&self, rank: usize) -> u64 {
        // The sum is at most the present time, so it cannot wrap.
        let (groups, rest) = (&self.executed[..=rank / GROUP], rank % GROUP);
        let Some((last, before)) = groups.split_last() else { return 0 };
        let mut sums = [0_u64; GROUP];
        for place in 0..GROUP {
            sums[place] = last[place] & COUNTED[rest][place];
        }
        for group in before {
            for place in 0..GROUP {
                sums[place] = sums[place].wrapping_add(group[place]);
            }
        }
        sums.iter().fold(0, |sum, &time| sum.wrapping_add(time))
    }
}
