//! A fast simulator of tasks without locks: global or partitioned EDF, fixed priorities, FIFO.
//!
//! Jobs of one task execute one after another. A job is preempted where a more urgent one is ready and every processor is taken: of those that may be
//! preempted, the least urgent. Jobs as urgent as the one that executes wait. Who of equally urgent jobs goes first is not said: the queues are plain binary
//! heaps and leave equals in the order their movements make, which is always the same for the same tasks, and the same as of other simulators with a heap.
//!
//! # Examples
//! ```
//! use lockwright_sim::plain::{Order, Periodic, PlainTask, simulate};
//! let task = PlainTask { cost: 2, period: 3, deadline: 3, ..PlainTask::default() };
//! let seen = simulate(&[task; 3], 2, Order::EarliestDeadline, 1000, &mut Periodic);
//! assert_eq!((seen.first_miss, seen.late(), seen.tardiness()), (Some(3), 333, 1));
//! ```

use fastrand::Rng;

/// A task of the simulation. Times are integers in one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainTask {
    /// Worst-case execution time, C.
    pub cost: u64,
    /// Least distance of two arrivals, T; 0 counts as 1.
    pub period: u64,
    /// From arrival, D.
    pub deadline: u64,
    /// No job arrives before.
    pub offset: u64,
    /// Greater is more urgent; for [`Order::FixedPriority`].
    pub priority: u32,
    /// Each job is not preempted before it executed for so long, once it began: 0 is preemptive, C or more is not preemptive.
    pub section: u64,
}

/// Which job goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The one with the earlier deadline.
    EarliestDeadline,
    /// The one of the task with the greater priority.
    FixedPriority,
    /// The one that arrived earlier.
    Fifo,
}

/// When jobs arrive, and for how long they execute.
pub trait Releases {
    /// The next job of the task at `index`: when it arrives, not before `earliest`, and for how long it executes. `None`: there is none any more.
    fn next(&mut self, index: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)>;
}

/// Jobs arrive as early as they may and execute for C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Periodic;

impl Releases for Periodic {
    fn next(&mut self, _: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)> {
        Some((earliest, task.cost))
    }
}

/// Jobs arrive later than they may, and execute for less than C, now and then.
#[derive(Clone, Debug)]
pub struct Sporadically {
    /// What decides.
    pub random: Rng,
    /// One job of so many arrives late, by up to a period; 0: none.
    pub late: u32,
    /// One job of so many is short; 0: none.
    pub short: u32,
    /// No job arrives after.
    pub until: u64,
}

impl Releases for Sporadically {
    fn next(&mut self, _: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)> {
        let late = self.late > 0 && self.random.u32(..self.late) == 0;
        let at = if late { earliest.saturating_add(self.random.u64(0..=task.period)) } else { earliest };
        let short = self.short > 0 && task.cost > 0 && self.random.u32(..self.short) == 0;
        let cost = if short { self.random.u64(1..=task.cost) } else { task.cost };
        (at <= self.until).then_some((at, cost))
    }
}

/// What was seen of a task's jobs that were done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// How many.
    pub jobs: u64,
    /// Of them, after their deadline.
    pub late: u64,
    /// The longest response time.
    pub response: u64,
    /// The greatest tardiness.
    pub tardiness: u64,
    /// The sum of all tardiness.
    pub total_tardiness: u64,
}

/// What was seen of all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// In the order of the tasks.
    pub tasks: Vec<Seen>,
    /// The deadline of the first job that was done after it.
    pub first_miss: Option<u64>,
}

impl Outcome {
    /// Jobs done, late or not.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.tasks.iter().map(|task| task.jobs).sum()
    }

    /// Jobs done after their deadline.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.tasks.iter().map(|task| task.late).sum()
    }

    /// The greatest tardiness.
    #[must_use]
    pub fn tardiness(&self) -> u64 {
        self.tasks.iter().map(|task| task.tardiness).max().unwrap_or(0)
    }

    /// The sum of all tardiness.
    #[must_use]
    pub fn total_tardiness(&self) -> u64 {
        self.tasks.iter().map(|task| task.total_tardiness).sum()
    }
}

/// Simulates global scheduling from 0 to the first moment after `end`, or until no job is left. What happens at that moment still counts.
#[must_use]
pub fn simulate(
    tasks: &[PlainTask],
    processors: usize,
    order: Order,
    end: u64,
    releases: &mut impl Releases,
) -> Outcome {
    let mut simulation = Simulation {
        tasks,
        order,
        releases,
        now: 0,
        jobs: vec![Job::default(); tasks.len()],
        moments: Heap::with_capacity(2 * tasks.len() + processors),
        ready: Heap::with_capacity(tasks.len()),
        running: vec![None; processors],
        outcome: Outcome { tasks: vec![Seen::default(); tasks.len()], first_miss: None },
    };
    simulation.run(end);
    simulation.outcome
}

/// Simulates each processor by itself: `placement` says which executes a task.
///
/// Tasks without a place are not executed.
#[must_use]
pub fn simulate_partitioned(
    tasks: &[PlainTask],
    placement: &[u16],
    order: Order,
    end: u64,
    releases: &mut impl Releases,
) -> Outcome {
    /// Tells the tasks of one processor by their places among all.
    struct Part<'a, R> {
        of_all: Vec<usize>,
        releases: &'a mut R,
    }
    impl<R: Releases> Releases for Part<'_, R> {
        fn next(&mut self, index: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)> {
            self.releases.next(self.of_all[index], task, earliest)
        }
    }
    let mut all = Outcome { tasks: vec![Seen::default(); tasks.len()], first_miss: None };
    let mut processors: Vec<u16> = placement.to_vec();
    processors.sort_unstable();
    processors.dedup();
    for processor in processors {
        let of_all: Vec<usize> =
            (0..tasks.len()).filter(|&index| placement.get(index).is_some_and(|&place| place == processor)).collect();
        let part: Vec<PlainTask> = of_all.iter().map(|&index| tasks[index]).collect();
        let mut releases = Part { of_all, releases };
        let seen = simulate(&part, 1, order, end, &mut releases);
        for (&index, seen) in releases.of_all.iter().zip(seen.tasks) {
            all.tasks[index] = seen;
        }
        all.first_miss = [all.first_miss, seen.first_miss].into_iter().flatten().min();
    }
    all
}

/// A binary heap, the least key on top. Equal keys are where the movements leave them.
struct Heap {
    items: Vec<(u64, u32)>,
}

impl Heap {
    fn with_capacity(capacity: usize) -> Self {
        Self { items: Vec::with_capacity(capacity) }
    }

    fn first(&self) -> Option<(u64, u32)> {
        self.items.first().copied()
    }

    fn push(&mut self, key: u64, item: u32) {
        self.items.push((key, item));
        self.rise(self.items.len() - 1);
    }

    /// To the top, past all greater keys.
    fn rise(&mut self, mut at: usize) {
        let item = self.items[at];
        while at > 0 && self.items[(at - 1) / 2].0 > item.0 {
            self.items[at] = self.items[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        self.items[at] = item;
    }

    fn pop(&mut self) {
        let Some(last) = self.items.pop() else { return };
        if self.items.is_empty() {
            return;
        }
        // The hole at the top sinks to the bottom, along the lesser children, the right one of equals; what was last rises from there.
        let (mut hole, length) = (0, self.items.len());
        while 2 * hole + 1 < length {
            let left = 2 * hole + 1;
            let right = left + 1 < length && self.items[left + 1].0 <= self.items[left].0;
            let child = left + usize::from(right);
            self.items[hole] = self.items[child];
            hole = child;
        }
        self.items[hole] = last;
        self.rise(hole);
    }
}

/// A moment that is not an arrival: some execution or section may end.
const MOMENT: u32 = u32::MAX;

/// The job of a task that arrived last, or arrives next.
#[derive(Clone, Copy, Default)]
struct Job {
    arrival: u64,
    cost: u64,
    executed: u64,
}

/// A job that executes.
#[derive(Clone, Copy)]
struct Running {
    task: u32,
    /// Less is more urgent.
    key: u64,
    /// When it began, or was resumed.
    since: u64,
    /// When it is done, if nothing preempts it.
    done: u64,
    /// It is not preempted before.
    held: u64,
}

struct Simulation<'a, R> {
    tasks: &'a [PlainTask],
    order: Order,
    releases: &'a mut R,
    now: u64,
    jobs: Vec<Job>,
    /// Arrivals, and moments: those of preempted jobs stay and find nothing.
    moments: Heap,
    ready: Heap,
    running: Vec<Option<Running>>,
    outcome: Outcome,
}

impl<R: Releases> Simulation<'_, R> {
    fn run(&mut self, end: u64) {
        for index in 0..self.tasks.len() {
            if let Some(arrival) = self.arrive(index, self.tasks[index].offset) {
                self.moments.push(arrival, index as u32);
            }
        }
        while self.now <= end
            && let Some((now, _)) = self.moments.first()
        {
            self.now = now;
            for processor in 0..self.running.len() {
                if let Some(running) = self.running[processor]
                    && running.done <= now
                {
                    self.running[processor] = None;
                    self.finish(running.task);
                }
            }
            while let Some((at, item)) = self.moments.first()
                && at <= now
            {
                self.moments.pop();
                if item != MOMENT {
                    self.ready.push(self.key(item), item);
                }
            }
            self.dispatch();
        }
    }

    /// The next job of a task, and when it arrives.
    fn arrive(&mut self, index: usize, earliest: u64) -> Option<u64> {
        let (arrival, cost) = self.releases.next(index, &self.tasks[index], earliest)?;
        let arrival = arrival.max(earliest);
        self.jobs[index] = Job { arrival, cost, executed: 0 };
        // Time ends there.
        (arrival < u64::MAX).then_some(arrival)
    }

    fn key(&self, task: u32) -> u64 {
        let (it, job) = (&self.tasks[task as usize], &self.jobs[task as usize]);
        match self.order {
            Order::EarliestDeadline => job.arrival.saturating_add(it.deadline),
            Order::FixedPriority => u64::from(u32::MAX - it.priority),
            Order::Fifo => job.arrival,
        }
    }

    fn finish(&mut self, task: u32) {
        let index = task as usize;
        let (it, arrival) = (&self.tasks[index], self.jobs[index].arrival);
        let deadline = arrival.saturating_add(it.deadline);
        let tardiness = self.now.saturating_sub(deadline);
        let seen = &mut self.outcome.tasks[index];
        seen.jobs += 1;
        seen.response = seen.response.max(self.now - arrival);
        if tardiness > 0 {
            seen.late += 1;
            seen.tardiness = seen.tardiness.max(tardiness);
            seen.total_tardiness = seen.total_tardiness.saturating_add(tardiness);
            self.outcome.first_miss.get_or_insert(deadline);
        }
        if let Some(arrival) = self.arrive(index, arrival.saturating_add(it.period.max(1))) {
            if arrival >= self.now {
                self.moments.push(arrival, task);
            } else {
                self.ready.push(self.key(task), task);
            }
        }
    }

    fn dispatch(&mut self) {
        while let Some((key, task)) = self.ready.first() {
            let Some(processor) = self.place(key) else { return };
            self.ready.pop();
            if let Some(preempted) = self.running[processor] {
                self.jobs[preempted.task as usize].executed += self.now - preempted.since;
                self.ready.push(preempted.key, preempted.task);
            }
            let (job, section) = (&self.jobs[task as usize], self.tasks[task as usize].section);
            let done = self.now.saturating_add(job.cost - job.executed);
            let held = self.now.saturating_add(section.saturating_sub(job.executed));
            self.running[processor] = Some(Running { task, key, since: self.now, done, held });
            if self.now < held && held < done {
                self.moments.push(held, MOMENT);
            }
            self.moments.push(done, MOMENT);
        }
    }

    /// A processor for a job: one that idles, or the one of the least urgent job that may be preempted, the first of equals.
    fn place(&self, key: u64) -> Option<usize> {
        let mut least: Option<(u64, usize)> = None;
        for (processor, running) in self.running.iter().enumerate() {
            let Some(running) = running else { return Some(processor) };
            if running.held <= self.now && least.is_none_or(|(least, _)| running.key > least) {
                least = Some((running.key, processor));
            }
        }
        least.filter(|&(least, _)| least > key).map(|(_, processor)| processor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(cost: u64, period: u64) -> PlainTask {
        PlainTask { cost, period, deadline: period, ..PlainTask::default() }
    }

    #[test]
    fn heaps_hold_order() {
        let mut random = Rng::with_seed(5);
        let mut heap = Heap::with_capacity(0);
        heap.pop();
        let mut all = Vec::new();
        for round in 0..2_000 {
            if round % 3 < 2 {
                let key = random.u64(..50);
                heap.push(key, 0);
                all.push(key);
            } else {
                all.sort_unstable_by(|a, b| b.cmp(a));
                assert_eq!(heap.first().map(|(key, _)| key), all.pop());
                heap.pop();
            }
        }
    }

    #[test]
    fn fixed_priorities_preempt_and_fifo_does_not() {
        let urgent = PlainTask { priority: 2, offset: 1, ..task(2, 100) };
        let other = PlainTask { priority: 1, ..task(5, 100) };
        let seen = |order| simulate(&[other, urgent], 1, order, 50, &mut Periodic).tasks;
        let responses = |order| (seen(order)[0].response, seen(order)[1].response);
        assert_eq!(responses(Order::FixedPriority), (7, 2));
        assert_eq!(responses(Order::Fifo), (5, 6));
        let urgent_later = PlainTask { deadline: 5, ..urgent };
        let seen = simulate(&[other, urgent_later], 1, Order::EarliestDeadline, 50, &mut Periodic).tasks;
        assert_eq!((seen[0].response, seen[1].response), (7, 2));
    }

    #[test]
    fn sections_hold_a_processor_until_they_end() {
        let urgent = PlainTask { priority: 2, offset: 1, ..task(2, 100) };
        for (section, expected) in [(0, (7, 2)), (1, (7, 2)), (3, (7, 4)), (4, (7, 5)), (5, (5, 6)), (9, (5, 6))] {
            let other = PlainTask { priority: 1, section, ..task(5, 100) };
            let seen = simulate(&[other, urgent], 1, Order::FixedPriority, 50, &mut Periodic).tasks;
            assert_eq!((seen[0].response, seen[1].response), expected, "a section of {section}");
        }
    }

    #[test]
    fn parts_are_simulated_by_themselves() {
        let tasks = [task(2, 3), task(2, 3), task(1, 3)];
        let seen = simulate_partitioned(&tasks, &[0, 7, 0], Order::EarliestDeadline, 29, &mut Periodic);
        assert_eq!((seen.late(), seen.first_miss), (0, None));
        assert_eq!(seen.tasks.iter().map(|task| task.response).collect::<Vec<_>>(), [2, 2, 3]);
        let seen = simulate_partitioned(&tasks, &[0, 0], Order::EarliestDeadline, 29, &mut Periodic);
        assert!(seen.late() > 0);
        assert_eq!(seen.tasks[2].jobs, 0, "no place");
    }

    #[test]
    fn odd_tasks_end() {
        let odd = PlainTask { cost: 0, period: 0, deadline: 0, ..PlainTask::default() };
        assert_eq!(simulate(&[odd], 1, Order::Fifo, 10, &mut Periodic).tasks[0].jobs, 11);
        assert_eq!(simulate(&[odd], 0, Order::Fifo, 10, &mut Periodic).jobs(), 0);
        let long = PlainTask { cost: u64::MAX, period: u64::MAX, deadline: 1, ..PlainTask::default() };
        assert_eq!(simulate(&[long], 1, Order::Fifo, u64::MAX - 1, &mut Periodic).jobs(), 1);
        assert_eq!(simulate(&[], 4, Order::Fifo, 10, &mut Periodic), Outcome::default());
    }
}
