//! A schedule: what each task does from one instant to another, read from records.

use lockwright_model::{CpuId, Duration, Event, Instant, Record, ResourceId, System, TaskId};
use std::collections::VecDeque;

/// A part of a schedule's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first instant.
    pub from: Instant,
    /// The instant after the last; later than `from`.
    pub until: Instant,
}

impl Window {
    /// The whole of some records; a nanosecond where nothing was recorded.
    #[must_use]
    pub fn of(records: &[Record]) -> Self {
        let from = records.first().map_or(Instant::ZERO, |record| record.at);
        let last = records.last().map_or(from, |record| record.at);
        Self { from, until: last.max(Instant::from_ns(from.as_ns() + 1)) }
    }

    /// Longer by `part` of its length on both sides, but never before the start of time.
    #[must_use]
    pub fn with_margin(self, part: u64) -> Self {
        let margin = self.length().as_ns() / part.max(1);
        let from = Instant::from_ns(self.from.as_ns().saturating_sub(margin));
        Self { from, until: Instant::from_ns(self.until.as_ns().saturating_add(margin)) }
    }

    /// How long it is.
    #[must_use]
    pub fn length(self) -> Duration {
        self.until.since(self.from)
    }

    fn contains(self, at: Instant) -> bool {
        self.from <= at && at <= self.until
    }
}

/// What a task does with an unfinished job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It executes, and holds these resources, the outermost first.
    Executes(Vec<ResourceId>),
    /// It executes, and waits for the resource that its owner, if there is one, holds.
    Spins(ResourceId, Option<TaskId>),
    /// It is suspended until it gets the resource, which the task holds, if any does.
    Waits(ResourceId, Option<TaskId>),
    /// It is ready, and this task executes on its processor; none: the processor does nothing for a task of the system.
    Ready(Option<TaskId>),
}

/// A time in which a task does the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// From when.
    pub from: Instant,
    /// Until when; later than `from`.
    pub until: Instant,
    /// Where the task is.
    pub cpu: CpuId,
    /// What it does.
    pub state: State,
}

/// What happens to a task at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A job arrives.
    Arrival,
    /// The deadline of a job that is not late.
    Deadline,
    /// The deadline of a job that is late.
    Missed,
    /// A job is complete.
    Finish,
    /// An interruptible section begins again.
    Restart,
}

/// One task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Whose row it is.
    pub task: TaskId,
    /// In order of time, without the times in which the task has no job.
    pub spans: Vec<Span>,
    /// In order of time.
    pub marks: Vec<(Instant, Mark)>,
}

/// What each task does, from one instant to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The time that it covers.
    pub window: Window,
    /// By task id.
    pub rows: Vec<Row>,
}

/// What is known of a task while records are read.
struct Reading {
    /// Arrivals of the jobs that are not complete.
    jobs: VecDeque<Instant>,
    cpu: CpuId,
    executes: bool,
    requested: Option<ResourceId>,
    held: Vec<ResourceId>,
    /// The state since an instant.
    open: Option<(Instant, CpuId, State)>,
}

impl Schedule {
    /// Reads what `records`, which must be in order of time, tell of a window.
    #[must_use]
    pub fn read(system: &System, records: &[Record], window: Window) -> Self {
        let mut rows: Vec<Row> =
            system.task_ids().map(|task| Row { task, spans: Vec::new(), marks: Vec::new() }).collect();
        let mut tasks: Vec<Reading> = system
            .tasks()
            .iter()
            .map(|task| Reading {
                jobs: VecDeque::new(),
                cpu: task.cpu,
                executes: false,
                requested: None,
                held: Vec::new(),
                open: None,
            })
            .collect();
        let mut owners: Vec<Option<TaskId>> = vec![None; system.resources().len()];
        let mut executing = vec![None; system.cpus()];
        let mut begun = false;
        for at_once in records.chunk_by(|one, other| one.at == other.at) {
            let now = at_once[0].at;
            if now > window.until {
                break;
            }
            if !begun && now > window.from {
                change(&mut executing, &mut tasks, &owners, &mut rows, window.from, window);
            }
            begun |= now >= window.from;
            for record in at_once {
                let deadline = system.task(record.task).deadline;
                let marks = &mut rows[record.task.index()].marks;
                tasks[record.task.index()].note(record, &mut owners, marks, deadline);
            }
            if now >= window.from {
                change(&mut executing, &mut tasks, &owners, &mut rows, now, window);
            }
        }
        if !begun {
            change(&mut executing, &mut tasks, &owners, &mut rows, window.from, window);
        }
        let known = records.last().map_or(window.from, |record| record.at).min(window.until);
        for (reading, row) in tasks.iter_mut().zip(&mut rows) {
            reading.close(window.until, row, window);
            let deadline = system.task(row.task).deadline;
            for &arrival in &reading.jobs {
                let due = Instant::from_ns(arrival.as_ns().saturating_add(deadline.as_ns()));
                // Whether a job that is not complete is late is known once its deadline has passed.
                let mark = if due < known { Mark::Missed } else { Mark::Deadline };
                row.marks.push((due, mark));
            }
            row.marks.retain(|&(at, _)| window.contains(at));
            row.marks.sort_by_key(|&(at, _)| at);
        }
        Self { window, rows }
    }

    /// The resources that a task holds or waits for in this window, in ascending order.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceId> {
        let spans = self.rows.iter().flat_map(|row| &row.spans);
        let mut seen: Vec<ResourceId> = spans
            .flat_map(|span| match &span.state {
                State::Executes(held) => held.clone(),
                State::Spins(resource, _) | State::Waits(resource, _) => vec![*resource],
                State::Ready(_) => Vec::new(),
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }
}

impl Reading {
    fn note(
        &mut self,
        record: &Record,
        owners: &mut [Option<TaskId>],
        marks: &mut Vec<(Instant, Mark)>,
        deadline: Duration,
    ) {
        let at = record.at;
        match record.event {
            Event::Arrive => {
                self.jobs.push_back(at);
                marks.push((at, Mark::Arrival));
            }
            Event::Run => self.executes = true,
            Event::Stop => self.executes = false,
            Event::Request(resource) => self.requested = Some(resource),
            Event::Acquire(resource) => {
                self.requested = None;
                self.held.push(resource);
                owners[resource.index()] = Some(record.task);
            }
            Event::Release(resource) => {
                self.held.retain(|&held| held != resource);
                if owners[resource.index()] == Some(record.task) {
                    owners[resource.index()] = None;
                }
            }
            Event::Restart(_) => marks.push((at, Mark::Restart)),
            Event::Priority(_) => {}
            Event::Migrate(cpu) => self.cpu = cpu,
            Event::Finish => {
                if let Some(arrival) = self.jobs.pop_front() {
                    let due = Instant::from_ns(arrival.as_ns().saturating_add(deadline.as_ns()));
                    marks.push((due, if at > due { Mark::Missed } else { Mark::Deadline }));
                }
                marks.push((at, Mark::Finish));
            }
        }
    }

    fn state(&self, owners: &[Option<TaskId>], executing: &[Option<TaskId>]) -> Option<State> {
        if self.jobs.is_empty() {
            return None;
        }
        Some(match (self.executes, self.requested) {
            (true, None) => State::Executes(self.held.clone()),
            (true, Some(resource)) => State::Spins(resource, owners[resource.index()]),
            (false, Some(resource)) if owners[resource.index()].is_some() => {
                State::Waits(resource, owners[resource.index()])
            }
            // A request that nothing holds up is granted as soon as the task executes.
            (false, Some(resource)) if executing[self.cpu.index()].is_none() => State::Waits(resource, None),
            (false, _) => State::Ready(executing[self.cpu.index()]),
        })
    }

    fn close(&mut self, now: Instant, row: &mut Row, window: Window) {
        let Some((since, cpu, state)) = self.open.take() else { return };
        let from = since.max(window.from);
        if from < now {
            row.spans.push(Span { from, until: now, cpu, state });
        }
    }
}

/// Closes the spans of tasks that do something else from now on, and opens the next ones.
fn change(
    executing: &mut [Option<TaskId>],
    tasks: &mut [Reading],
    owners: &[Option<TaskId>],
    rows: &mut [Row],
    now: Instant,
    window: Window,
) {
    executing.fill(None);
    for (index, task) in tasks.iter().enumerate() {
        if task.executes {
            executing[task.cpu.index()] = Some(TaskId::new(index));
        }
    }
    for (task, row) in tasks.iter_mut().zip(rows) {
        let state = task.state(owners, executing).map(|state| (task.cpu, state));
        let same = match (&task.open, &state) {
            (Some((_, cpu, open)), Some((now_on, state))) => cpu == now_on && open == state,
            (None, None) => true,
            _ => false,
        };
        if !same {
            task.close(now, row, window);
            task.open = state.map(|(cpu, state)| (now, cpu, state));
        }
    }
}

/// By task id: when the job with the longest response arrived, and when it was complete. `None` where no job was.
#[must_use]
pub fn worst_jobs(system: &System, records: &[Record]) -> Vec<Option<Window>> {
    let mut jobs = vec![VecDeque::new(); system.tasks().len()];
    let mut worst: Vec<Option<Window>> = vec![None; system.tasks().len()];
    for record in records {
        match record.event {
            Event::Arrive => jobs[record.task.index()].push_back(record.at),
            Event::Finish => {
                let Some(from) = jobs[record.task.index()].pop_front() else { continue };
                let (job, worst) = (Window { from, until: record.at }, &mut worst[record.task.index()]);
                if worst.is_none_or(|worst| job.length() > worst.length()) {
                    *worst = Some(job);
                }
            }
            _ => {}
        }
    }
    worst
}
