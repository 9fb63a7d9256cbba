//! A schedule: what each task does at each time, read from records.

use lockwright_model::{CpuId, Duration, Event, Instant, Priority, Record, ResourceId, System, Task, TaskId};
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

    /// The part before `end`. `None` if the window begins at `end` or later.
    #[must_use]
    pub fn before(self, end: Instant) -> Option<Self> {
        (self.from < end).then(|| Self { until: self.until.min(end), ..self })
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
    /// The task executes an interruptible section that is invalidated: it holds these resources, and restarts. Only
    /// restarts within the window count.
    Undone(Vec<ResourceId>),
    /// The task executes while it waits for the resource. The owner is `None` if the resource is free.
    Spins(ResourceId, Option<TaskId>),
    /// The task is suspended until it acquires the resource. The owner is `None` if the resource is free.
    Waits(ResourceId, Option<TaskId>),
    /// The task is ready, and this task executes on its processor. `None` if no task of the system does.
    Ready(Option<TaskId>),
    /// The task is ready, and this less urgent task executes on its processor. Urgency is that of the base priorities
    /// of one processor or cluster, and of the deadlines under EDF.
    Blocked(TaskId),
}

impl State {
    /// The resources that the task holds while it executes, the outermost first. `None` if it does not execute, or
    /// spins.
    #[must_use]
    pub fn held(&self) -> Option<&[ResourceId]> {
        match self {
            Self::Executes(held) | Self::Undone(held) => Some(held),
            _ => None,
        }
    }

    /// Whether the task occupies its processor.
    #[must_use]
    pub fn executes(&self) -> bool {
        matches!(self, Self::Executes(_) | Self::Undone(_) | Self::Spins(..))
    }
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

/// The subject of a row in a picture of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// Each task: its states, and the tasks for which it waits.
    #[default]
    Task,
    /// Each processor: the tasks that it executes.
    Cpu,
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

/// A time interval in which the effective priority of a task is not its base priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raised {
    /// The start.
    pub from: Instant,
    /// The end; later than `from`.
    pub until: Instant,
    /// The effective priority.
    pub to: Priority,
}

/// The schedule of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The task.
    pub task: TaskId,
    /// The states in order of time. Times without a job are omitted.
    pub spans: Vec<Span>,
    /// The steps of the priority in order of time.
    pub raised: Vec<Raised>,
    /// The events in order of time.
    pub marks: Vec<(Instant, Mark)>,
}

/// The states of all tasks in a window of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The window.
    pub window: Window,
    /// The rows by task id.
    pub rows: Vec<Row>,
}

impl Schedule {
    /// Reads the schedule in a window. `records` must be in order of time.
    ///
    /// The state after the last record lasts until the window ends. The window should therefore not end after the
    /// schedule, see [`Window::before`].
    #[must_use]
    pub fn read(system: &System, records: &[Record], window: Window) -> Self {
        Reader::new(system, window).read(records)
    }

    /// The resources that any task holds or waits for in this window, in ascending order.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceId> {
        let spans = self.rows.iter().flat_map(|row| &row.spans);
        let mut seen: Vec<ResourceId> = spans
            .flat_map(|span| match &span.state {
                State::Executes(held) | State::Undone(held) => held.clone(),
                State::Spins(resource, _) | State::Waits(resource, _) => vec![*resource],
                State::Ready(_) | State::Blocked(_) => Vec::new(),
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }
}

/// The schedule while records are read.
struct Reader<'a> {
    system: &'a System,
    window: Window,
    tasks: Vec<Reading>,
    /// The owner of each resource.
    owners: Vec<Option<TaskId>>,
    /// The task that executes on each processor.
    executing: Vec<Option<TaskId>>,
    rows: Vec<Row>,
}

/// The state of a task while records are read.
struct Reading {
    /// The arrivals of the unfinished jobs.
    jobs: VecDeque<Instant>,
    cpu: CpuId,
    executes: bool,
    requested: Option<ResourceId>,
    held: Vec<ResourceId>,
    /// When it began the section on each resource that it holds, for the last time.
    begun: Vec<Instant>,
    /// The current state, with its start and processor.
    open: Option<(Instant, CpuId, State)>,
    /// The effective priority, and since when the task has it.
    priority: (Instant, Priority),
}

impl<'a> Reader<'a> {
    fn new(system: &'a System, window: Window) -> Self {
        let row = |task| Row { task, spans: Vec::new(), raised: Vec::new(), marks: Vec::new() };
        let reading = |task: &Task| Reading {
            jobs: VecDeque::new(),
            cpu: task.cpu,
            executes: false,
            requested: None,
            held: Vec::new(),
            begun: Vec::new(),
            open: None,
            priority: (window.from, task.priority),
        };
        Self {
            system,
            window,
            tasks: system.tasks().iter().map(reading).collect(),
            owners: vec![None; system.resources().len()],
            executing: vec![None; system.cpus()],
            rows: system.task_ids().map(row).collect(),
        }
    }

    fn read(mut self, records: &[Record]) -> Schedule {
        let window = self.window;
        let mut begun = false;
        for at_once in records.chunk_by(|one, other| one.at == other.at) {
            let now = at_once[0].at;
            if now > window.until {
                break;
            }
            if !begun && now > window.from {
                self.change(window.from);
            }
            begun |= now >= window.from;
            for record in at_once {
                self.note(record);
            }
            if now >= window.from {
                self.change(now);
            }
        }
        if !begun {
            self.change(window.from);
        }
        let known = records.last().map_or(window.from, |record| record.at).min(window.until);
        for (task, row) in self.tasks.iter_mut().zip(&mut self.rows) {
            let own = self.system.task(row.task);
            task.close(window.until, row, window);
            task.step(window.until, row, window, own.priority, own.priority);
            for &arrival in &task.jobs {
                let due = due(arrival, own.deadline);
                // Whether an unfinished job is late is known only after its deadline.
                let mark = if due < known { Mark::Missed } else { Mark::Deadline };
                row.marks.push((due, mark));
            }
            row.marks.retain(|&(at, _)| window.contains(at));
            row.marks.sort_by_key(|&(at, _)| at);
        }
        Schedule { window, rows: self.rows }
    }

    fn note(&mut self, record: &Record) {
        let (at, id) = (record.at, record.task);
        let (own, task, row) = (self.system.task(id), &mut self.tasks[id.index()], &mut self.rows[id.index()]);
        match record.event {
            Event::Arrive => {
                task.jobs.push_back(at);
                row.marks.push((at, Mark::Arrival));
            }
            Event::Run => task.executes = true,
            Event::Stop => task.executes = false,
            Event::Request(resource) => task.requested = Some(resource),
            Event::Acquire(resource) => {
                task.requested = None;
                task.held.push(resource);
                task.begun.push(at);
                self.owners[resource.index()] = Some(id);
            }
            Event::Release(resource) => {
                if let Some(place) = task.held.iter().position(|&held| held == resource) {
                    task.held.remove(place);
                    task.begun.remove(place);
                }
                if self.owners[resource.index()] == Some(id) {
                    self.owners[resource.index()] = None;
                }
            }
            Event::Restart(resource) => {
                row.marks.push((at, Mark::Restart));
                task.undo(at, resource, row, self.window);
            }
            Event::Priority(priority) => task.step(at, row, self.window, own.priority, priority),
            Event::Migrate(cpu) => task.cpu = cpu,
            Event::Finish => {
                if let Some(arrival) = task.jobs.pop_front() {
                    let due = due(arrival, own.deadline);
                    row.marks.push((due, if at > due { Mark::Missed } else { Mark::Deadline }));
                }
                row.marks.push((at, Mark::Finish));
            }
        }
    }

    /// Closes the spans of tasks whose state changes now, and opens the next ones.
    fn change(&mut self, now: Instant) {
        self.executing.fill(None);
        for (index, task) in self.tasks.iter().enumerate() {
            if task.executes {
                self.executing[task.cpu.index()] = Some(TaskId::new(index));
            }
        }
        let states: Vec<Option<(CpuId, State)>> = self.system.task_ids().map(|task| self.state(task)).collect();
        for ((task, row), state) in self.tasks.iter_mut().zip(&mut self.rows).zip(states) {
            let same = match (&task.open, &state) {
                (Some((_, cpu, open)), Some((now_on, state))) => cpu == now_on && open == state,
                (None, None) => true,
                _ => false,
            };
            if !same {
                task.close(now, row, self.window);
                task.open = state.map(|(cpu, state)| (now, cpu, state));
            }
        }
    }

    /// The processor and the state of a task; `None` without an unfinished job.
    fn state(&self, id: TaskId) -> Option<(CpuId, State)> {
        let task = &self.tasks[id.index()];
        if task.jobs.is_empty() {
            return None;
        }
        let beside = self.executing[task.cpu.index()];
        let state = match (task.executes, task.requested) {
            (true, None) => State::Executes(task.held.clone()),
            (true, Some(resource)) => State::Spins(resource, self.owners[resource.index()]),
            (false, Some(resource)) if self.owners[resource.index()].is_some() => {
                State::Waits(resource, self.owners[resource.index()])
            }
            // A request for a free resource is granted as soon as the task executes.
            (false, Some(resource)) if beside.is_none() => State::Waits(resource, None),
            (false, _) => match beside {
                Some(other) if self.is_less_urgent(other, id) => State::Blocked(other),
                other => State::Ready(other),
            },
        };
        Some((task.cpu, state))
    }

    /// Whether the oldest job of `other` is less urgent than that of `task`.
    fn is_less_urgent(&self, other: TaskId, task: TaskId) -> bool {
        if self.system.scheduler().is_by_deadline() {
            let due = |id: TaskId| {
                let arrival = self.tasks[id.index()].jobs.front();
                arrival.map(|&arrival| due(arrival, self.system.task(id).deadline))
            };
            return due(other) > due(task);
        }
        let [other, task] = [other, task].map(|id| self.system.task(id));
        self.system.cluster(other.cpu) != self.system.cluster(task.cpu) || other.priority < task.priority
    }
}

impl Reading {
    /// The section on the resource restarts: what it has executed since it began is undone.
    fn undo(&mut self, now: Instant, resource: ResourceId, row: &mut Row, window: Window) {
        let Some(place) = self.held.iter().position(|&held| held == resource) else { return };
        let begun = std::mem::replace(&mut self.begun[place], now);
        // The sections inside it begin again, too.
        self.begun[place + 1..].fill(now);
        // The state goes on behind the restart.
        let open = self.open.clone();
        self.close(now, row, window);
        self.open = open.map(|(since, cpu, state)| (since.max(now), cpu, state));
        for span in row.spans.iter_mut().rev().take_while(|span| span.from >= begun.max(window.from)) {
            if let State::Executes(held) = &mut span.state {
                span.state = State::Undone(std::mem::take(held));
            }
        }
    }

    fn close(&mut self, now: Instant, row: &mut Row, window: Window) {
        let Some((since, cpu, state)) = self.open.take() else { return };
        let from = since.max(window.from);
        if from < now {
            row.spans.push(Span { from, until: now, cpu, state });
        }
    }

    /// Ends the current priority, and begins another.
    fn step(&mut self, now: Instant, row: &mut Row, window: Window, base: Priority, next: Priority) {
        let (since, priority) = std::mem::replace(&mut self.priority, (now, next));
        let (from, until) = (since.max(window.from), now.min(window.until));
        if priority != base && from < until {
            row.raised.push(Raised { from, until, to: priority });
        }
    }
}

/// The absolute deadline of a job.
fn due(arrival: Instant, deadline: Duration) -> Instant {
    Instant::from_ns(arrival.as_ns().saturating_add(deadline.as_ns()))
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
