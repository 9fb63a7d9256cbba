//! A fast simulator of tasks without locks: global or partitioned EDF, fixed priorities, FIFO.
//!
//! The jobs of one task execute one after another. If a job is ready and every processor is occupied, it preempts the
//! least urgent of the less urgent jobs that may be preempted. It waits for jobs of its own priority.
//!
//! The order of equally urgent jobs is unspecified, and the same in each simulation of the same tasks. The queues are
//! binary heaps, and equal jobs have the order in which the movements of the heap leave them. Other simulators with a
//! heap have the same order.
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
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlainTask {
    /// Worst-case execution time, C.
    pub cost: u64,
    /// Least time between two arrivals, T; 0 counts as 1.
    pub period: u64,
    /// Relative deadline, D.
    pub deadline: u64,
    /// The earliest arrival of the first job.
    pub offset: u64,
    /// The priority under [`Order::FixedPriority`]. Greater is more urgent.
    pub priority: u32,
    /// The length of the non-preemptive section at the beginning of each job. With 0, jobs are preemptive; with C or
    /// more, they are not preemptive.
    pub section: u64,
}

/// The rule by which the most urgent job is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// The job with the earliest deadline.
    EarliestDeadline,
    /// The job of the task with the greatest priority.
    FixedPriority,
    /// The job that arrived first.
    Fifo,
}

/// When jobs arrive, and for how long they execute.
pub trait Releases {
    /// Returns the arrival, not before `earliest`, and the execution time of the next job of the task at `index`.
    /// Returns `None` if the task has no more jobs.
    fn next(&mut self, index: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)>;
}

/// Jobs arrive as early as possible, and execute for C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Periodic;

impl Releases for Periodic {
    fn next(&mut self, _: usize, task: &PlainTask, earliest: u64) -> Option<(u64, u64)> {
        Some((earliest, task.cost))
    }
}

/// Some jobs arrive later than possible, and some execute for less than C.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sporadically {
    /// The random number generator.
    pub random: Rng,
    /// On average, one of this number of jobs arrives late, by up to a period. With 0, none does.
    pub late: u32,
    /// On average, one of this number of jobs executes for less than C. With 0, none does.
    pub short: u32,
    /// The latest arrival of a job.
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

/// Observations of the finished jobs of a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Seen {
    /// The number of finished jobs.
    pub jobs: u64,
    /// The number of jobs that finished after their deadline.
    pub late: u64,
    /// The longest response time.
    pub response: u64,
    /// The greatest tardiness.
    pub tardiness: u64,
    /// The sum of all tardiness.
    pub total_tardiness: u64,
}

/// Observations of all tasks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The observations of each task, in the order of the tasks.
    pub tasks: Vec<Seen>,
    /// The deadline of the first job that finished after its deadline.
    pub first_miss: Option<u64>,
}

impl Outcome {
    /// The number of finished jobs.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.tasks.iter().map(|task| task.jobs).sum()
    }

    /// The number of jobs that finished after their deadline.
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

/// Simulates global scheduling from time 0 to the first event after `end`, or until no job is left. That event is
/// included.
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

/// Simulates each processor separately. `placement` has the processor of each task; tasks without one are not executed.
#[must_use]
pub fn simulate_partitioned(
    tasks: &[PlainTask],
    placement: &[u16],
    order: Order,
    end: u64,
    releases: &mut impl Releases,
) -> Outcome {
    /// The releases of one processor's tasks, with their indices among all tasks.
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

/// A binary heap with the least key at the top.
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

    /// Moves an item towards the top, past all greater keys.
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
        // The hole at the top sinks to the bottom along the lesser children; of equal ones, along the right one. The
        // last item fills it and rises from there.
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

/// An event that is not an arrival: an execution or a section may end.
const MOMENT: u32 = u32::MAX;

/// The current job of a task, or its next one if that has not arrived.
#[derive(Clone, Copy, Default)]
struct Job {
    arrival: u64,
    cost: u64,
    executed: u64,
}

/// A running job.
#[derive(Clone, Copy)]
struct Running {
    task: u32,
    /// The urgency: less is more urgent.
    key: u64,
    /// The time at which it began or was resumed.
    since: u64,
    /// The time at which it finishes if it is not preempted.
    done: u64,
    /// The end of its section; it is not preempted before.
    held: u64,
}

struct Simulation<'a, R> {
    tasks: &'a [PlainTask],
    order: Order,
    releases: &'a mut R,
    now: u64,
    jobs: Vec<Job>,
    /// Arrivals and other events. The events of preempted jobs stay here and have no effect.
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

    /// Draws the next job of a task. Returns its arrival.
    fn arrive(&mut self, index: usize, earliest: u64) -> Option<u64> {
        let (arrival, cost) = self.releases.next(index, &self.tasks[index], earliest)?;
        let arrival = arrival.max(earliest);
        self.jobs[index] = Job { arrival, cost, executed: 0 };
        // The simulated time ends there.
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

    /// Returns a processor for a job: an idle one, or that of the least urgent job that may be preempted. Of equal
    /// ones, it is the first.
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
