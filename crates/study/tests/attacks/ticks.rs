//! A simulator in steps of one unit of time, for protocols that the product does not have. It shares no code with the
//! simulator of the product. Each protocol is a set of [`Rules`]: which jobs execute now, and who gets a lock.

use fastrand::Rng;
use lockwright_model::{Step, System};
use std::collections::VecDeque;

/// One operation of a body. All but `Run` take no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Run(u64),
    Lock(usize),
    Unlock(usize),
}

/// A task.
#[derive(Clone, Debug)]
pub struct Spec {
    pub period: u64,
    pub deadline: u64,
    /// A greater number is more urgent.
    pub priority: u32,
    pub cluster: usize,
    pub ops: Vec<Op>,
}

impl Spec {
    pub fn cost(&self) -> u64 {
        self.ops.iter().map(|op| if let Op::Run(time) = op { *time } else { 0 }).sum()
    }

    /// Whether it uses the resource.
    pub fn uses(&self, q: usize) -> bool {
        self.ops.contains(&Op::Lock(q))
    }
}

/// The pending job of a task.
#[derive(Clone, Debug)]
pub struct Job {
    pub arrival: u64,
    pub deadline: u64,
    /// The operation that is next, or under way.
    pub place: usize,
    /// The rest of a `Run`.
    left: u64,
    /// The resource that it waits for.
    pub waits: Option<usize>,
    /// The resource that it holds.
    pub holds: Option<usize>,
    pub has_started: bool,
    /// The order in which the current segment started: at its arrival, a request, or an unlock.
    pub segment: u64,
    blocked: u64,
}

/// The tasks and their pending jobs.
pub struct State {
    pub tasks: Vec<Spec>,
    pub jobs: Vec<Option<Job>>,
    pub resources: usize,
    order: u64,
}

impl State {
    pub fn job(&self, task: usize) -> &Job {
        self.jobs[task].as_ref().expect("the job is pending")
    }

    pub fn job_mut(&mut self, task: usize) -> &mut Job {
        self.jobs[task].as_mut().expect("the job is pending")
    }

    /// The pending jobs of a cluster.
    pub fn pending(&self, cluster: usize) -> Vec<usize> {
        (0..self.tasks.len()).filter(|&x| self.jobs[x].is_some() && self.tasks[x].cluster == cluster).collect()
    }

    /// The jobs of these that do not wait, the most urgent first.
    pub fn ready(&self, of: &[usize]) -> Vec<usize> {
        let mut ready: Vec<usize> = of.iter().copied().filter(|&x| self.job(x).waits.is_none()).collect();
        ready.sort_by_key(|&x| std::cmp::Reverse(self.tasks[x].priority));
        ready
    }

    /// Gives the resource that the job waits for to it.
    pub fn grant(&mut self, task: usize) {
        let job = self.job_mut(task);
        job.holds = job.waits.take();
        job.place += 1;
        self.enter(task);
    }

    /// Prepares the next operation.
    fn enter(&mut self, task: usize) {
        let place = self.job(task).place;
        if let Some(&Op::Run(time)) = self.tasks[task].ops.get(place) {
            self.job_mut(task).left = time;
        }
    }

    fn next_segment(&mut self, task: usize) {
        self.order += 1;
        self.job_mut(task).segment = self.order;
    }
}

/// The rules of a scheduler with a protocol.
pub trait Rules {
    /// The jobs that execute or spin now, one for each processor in use.
    fn choose(&mut self, state: &mut State) -> Vec<usize>;

    /// The job waits from now on, unless it is granted the resource.
    fn request(&mut self, state: &mut State, task: usize, q: usize);

    /// The job releases the resource. If the result is `false`, it executes the section again.
    fn release(&mut self, state: &mut State, task: usize, q: usize) -> bool;

    /// Whether another job delays this one, in the sense of the bound, while these execute.
    fn is_blocked(&self, _: &State, _: usize, _: &[usize]) -> bool {
        false
    }
}

/// The observations of one task.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    pub response: u64,
    pub blocked: u64,
    pub misses: u64,
}

struct Run<'a> {
    state: State,
    rules: &'a mut dyn Rules,
    random: Rng,
    seen: Vec<Seen>,
    now: u64,
}

impl Run<'_> {
    /// Performs all operations that take no time. Returns the jobs that execute then.
    ///
    /// BOUND: each round ends one operation; a section that is executed again takes time.
    fn settle(&mut self) -> Vec<usize> {
        loop {
            let chosen = self.rules.choose(&mut self.state);
            let due: Vec<usize> = chosen.iter().copied().filter(|&x| self.is_due(x)).collect();
            let Some(&task) = self.random.choice(&due) else { return chosen };
            self.perform(task);
        }
    }

    fn is_due(&self, task: usize) -> bool {
        let job = self.state.job(task);
        let runs = matches!(self.state.tasks[task].ops.get(job.place), Some(Op::Run(_))) && job.left > 0;
        job.waits.is_none() && !runs
    }

    fn perform(&mut self, task: usize) {
        let state = &mut self.state;
        state.job_mut(task).has_started = true;
        let place = state.job(task).place;
        match state.tasks[task].ops.get(place).copied() {
            Some(Op::Run(_)) => {
                state.job_mut(task).place += 1;
                state.enter(task);
            }
            Some(Op::Lock(q)) => {
                state.job_mut(task).waits = Some(q);
                state.next_segment(task);
                self.rules.request(state, task, q);
            }
            Some(Op::Unlock(q)) => {
                if self.rules.release(state, task, q) {
                    state.job_mut(task).holds = None;
                    state.job_mut(task).place += 1;
                    state.next_segment(task);
                } else {
                    let begun = (0..place).rev().find(|&at| state.tasks[task].ops[at] == Op::Lock(q));
                    state.job_mut(task).place = begun.expect("the section has a beginning") + 1;
                }
                state.enter(task);
            }
            None => {
                let job = state.jobs[task].take().expect("the job is pending");
                let seen = &mut self.seen[task];
                seen.response = seen.response.max(self.now - job.arrival);
                seen.blocked = seen.blocked.max(job.blocked);
                seen.misses += u64::from(self.now > job.deadline);
            }
        }
    }

    fn arrive(&mut self, task: usize, arrival: u64) {
        let state = &mut self.state;
        state.jobs[task] = Some(Job {
            arrival,
            deadline: arrival + state.tasks[task].deadline,
            place: 0,
            left: 0,
            waits: None,
            holds: None,
            has_started: false,
            segment: 0,
            blocked: 0,
        });
        state.next_segment(task);
        state.enter(task);
    }

    fn advance(&mut self, executing: &[usize]) {
        for task in 0..self.state.tasks.len() {
            if self.state.jobs[task].is_some() && self.rules.is_blocked(&self.state, task, executing) {
                self.state.job_mut(task).blocked += 1;
            }
        }
        for &task in executing {
            let job = self.state.job_mut(task);
            job.has_started = true;
            if job.waits.is_none() {
                job.left -= 1;
            }
        }
        self.now += 1;
    }
}

/// Executes the tasks with these arrivals until all jobs have ended. Operations that are due at an arrival come before
/// it, or after it if `late`. `None` if the jobs do not end within three times the last arrival and some more.
pub fn run(
    tasks: &[Spec],
    resources: usize,
    rules: &mut dyn Rules,
    arrivals: &[Vec<u64>],
    late: bool,
    random: Rng,
) -> Option<Vec<Seen>> {
    let state = State { tasks: tasks.to_vec(), jobs: vec![None; tasks.len()], resources, order: 0 };
    let mut run = Run { state, rules, random, seen: vec![Seen::default(); tasks.len()], now: 0 };
    let mut waiting: Vec<VecDeque<u64>> = arrivals.iter().map(|all| all.iter().copied().collect()).collect();
    let end = 3 * arrivals.iter().flatten().max().copied().unwrap_or(0) + 10_000;
    while run.now < end {
        if !late {
            run.settle();
        }
        // A job arrives once the one before it has ended.
        let executing = loop {
            for (task, waiting) in waiting.iter_mut().enumerate() {
                if run.state.jobs[task].is_none()
                    && let Some(arrival) = waiting.front().copied().filter(|arrival| *arrival <= run.now)
                {
                    waiting.pop_front();
                    run.arrive(task, arrival);
                }
            }
            let executing = run.settle();
            let is_due = |(task, waiting): (usize, &VecDeque<u64>)| {
                run.state.jobs[task].is_none() && waiting.front().is_some_and(|arrival| *arrival <= run.now)
            };
            if !waiting.iter().enumerate().any(is_due) {
                break executing;
            }
        };
        if waiting.iter().all(VecDeque::is_empty) && run.state.jobs.iter().all(Option::is_none) {
            return Some(run.seen);
        }
        run.advance(&executing);
    }
    None
}

/// The tasks of a generated system, whose sections are not nested.
pub fn specs(system: &System) -> Vec<Spec> {
    let op = |step: &Step| match *step {
        Step::Run(time) => Op::Run(time.as_ns()),
        Step::Lock(q) | Step::Read(q) => Op::Lock(q.index()),
        Step::Unlock(q) => Op::Unlock(q.index()),
    };
    let spec = |task: &lockwright_model::Task| Spec {
        period: task.period.as_ns(),
        deadline: task.deadline.as_ns(),
        priority: task.priority.level(),
        cluster: task.cpu.index(),
        ops: task.body.iter().map(op).collect(),
    };
    system.tasks().iter().map(spec).collect()
}

/// Draws arrivals: together in the first run, then with random offsets, sporadic ones in every fourth run.
pub fn arrivals(tasks: &[Spec], run: usize, periods: u64, random: &mut Rng) -> Vec<Vec<u64>> {
    let longest = tasks.iter().map(|task| task.period).max().unwrap_or(1);
    let of = |task: &Spec| {
        let mut at = if run == 0 { 0 } else { random.u64(0..task.period) };
        let mut all = Vec::new();
        while at < longest * periods {
            all.push(at);
            at += task.period + if run % 4 == 3 { random.u64(0..=task.period / 2) } else { 0 };
        }
        all
    };
    tasks.iter().map(of).collect()
}
