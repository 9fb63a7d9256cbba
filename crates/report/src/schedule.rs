//! A schedule: what each task does at each time, read from records.

use lockwright_model::{CpuId, Duration, Event, Instant, Record, ResourceId, System, TaskId};
use std::collections::VecDeque;

/// A time interval of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first instant.
    pub from: Instant,
    /// The end; later than `from`.
    pub until: Instant,
}

impl Window {
    /// The window from the first record to the last, and at least one nanosecond long.
    #[must_use]
    pub fn of(records: &[Record]) -> Self {
        let from = records.first().map_or(Instant::ZERO, |record| record.at);
        let last = records.last().map_or(from, |record| record.at);
        Self { from, until: last.max(Instant::from_ns(from.as_ns() + 1)) }
    }

    /// Extends the window on both sides by its length divided by `part`, but not to before time 0.
    #[must_use]
    pub fn with_margin(self, part: u64) -> Self {
        let margin = self.length().as_ns() / part.max(1);
        let from = Instant::from_ns(self.from.as_ns().saturating_sub(margin));
        Self { from, until: Instant::from_ns(self.until.as_ns().saturating_add(margin)) }
    }

    /// The length of the window.
    #[must_use]
    pub fn length(self) -> Duration {
        self.until.since(self.from)
    }

    fn contains(self, at: Instant) -> bool {
        self.from <= at && at <= self.until
    }
}

/// The state of a task that has an unfinished job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// The task executes and holds these resources, the outermost first.
    Executes(Vec<ResourceId>),
    /// The task executes while it waits for the resource. The owner is `None` if the resource is free.
    Spins(ResourceId, Option<TaskId>),
    /// The task is suspended until it acquires the resource. The owner is `None` if the resource is free.
    Waits(ResourceId, Option<TaskId>),
    /// The task is ready, and this task executes on its processor. `None` if no task of the system does.
    Ready(Option<TaskId>),
}

/// A time interval in which the state of a task does not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The start.
    pub from: Instant,
    /// The end; later than `from`.
    pub until: Instant,
    /// The processor of the task.
    pub cpu: CpuId,
    /// The state of the task.
    pub state: State,
}

/// An event of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A job arrives.
    Arrival,
    /// The deadline of a job that meets it, or that may still meet it.
    Deadline,
    /// The deadline of a job that misses it.
    Missed,
    /// A job is complete.
    Finish,
    /// An interruptible section restarts.
    Restart,
}

/// The schedule of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The task.
    pub task: TaskId,
    /// The states in order of time. Times without a job are omitted.
    pub spans: Vec<Span>,
    /// The events in order of time.
    pub marks: Vec<(Instant, Mark)>,
}

/// What each task does in a window of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The window.
    pub window: Window,
    /// The rows by task id.
    pub rows: Vec<Row>,
}

/// The state of a task while records are read.
struct Reading {
    /// The arrivals of the unfinished jobs.
    jobs: VecDeque<Instant>,
    cpu: CpuId,
    executes: bool,
    requested: Option<ResourceId>,
    held: Vec<ResourceId>,
    /// The current state, with its start and processor.
    open: Option<(Instant, CpuId, State)>,
}

impl Schedule {
    /// Reads the schedule in a window. `records` must be in order of time.
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
                // Whether an unfinished job is late is known only after its deadline.
                let mark = if due < known { Mark::Missed } else { Mark::Deadline };
                row.marks.push((due, mark));
            }
            row.marks.retain(|&(at, _)| window.contains(at));
            row.marks.sort_by_key(|&(at, _)| at);
        }
        Self { window, rows }
    }

    /// The resources that any task holds or waits for in this window, in ascending order.
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
            // A request for a free resource is granted as soon as the task executes.
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

/// Closes the spans of tasks whose state changes now, and opens the next ones.
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

/// For each task id, the job with the longest response time, from its arrival to its finish. `None` if no job finished.
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

/// The jobs of a task in the order of their arrivals, each from its arrival to its finish. A job that did not finish
/// ends with the last record. A job that arrives with the last record is omitted.
#[must_use]
pub fn jobs(records: &[Record], task: TaskId) -> Vec<Window> {
    let at = |event: Event| {
        let of_task = records.iter().filter(move |record| record.task == task && record.event == event);
        of_task.map(|record| record.at)
    };
    let end = Window::of(records).until;
    let arrivals = at(Event::Arrive).filter(|&from| from < end);
    let window =
        |(from, until): (Instant, Instant)| Window { from, until: until.max(Instant::from_ns(from.as_ns() + 1)) };
    arrivals.zip(at(Event::Finish).chain(std::iter::repeat(end))).map(window).collect()
}
