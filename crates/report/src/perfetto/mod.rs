//! Schedules as Perfetto traces, which open in <https://ui.perfetto.dev>.
//!
//! ```text
//! <title>
//!   CPU 0          slices: the task that executes there
//!   ...
//!   <task>         slices: running; instants: arrival, finish, deadline missed, priority changes, migrations
//!     locks        slices: waiting for R, holding R; nested like the requests of the task
//! ```
//!
//! The slices of a track are always balanced and nested, and times ascend, even though records of real threads may be
//! truncated or overlap by a few instructions. Slices that are open at the end are closed there.

pub mod proto;

use lockwright_model::{Duration, Event, Instant, Record, ResourceId, System, TaskId};
use prost::Message;
use proto::{ChildOrdering, Data, DebugAnnotation, EventType, Trace, TracePacket, TrackDescriptor, TrackEvent};
use std::collections::VecDeque;
use std::io::{self, Write};

/// Id of the writer of these traces.
const SEQUENCE: u32 = 1;

/// Ids of tracks; Perfetto reserves 0.
#[derive(Clone, Copy)]
struct Tracks {
    cpus: u64,
}

impl Tracks {
    const ROOT: u64 = 1;

    fn cpu(self, cpu: usize) -> u64 {
        2 + cpu as u64
    }

    fn task(self, task: TaskId) -> u64 {
        2 + self.cpus + 2 * task.index() as u64
    }

    fn locks(self, task: TaskId) -> u64 {
        self.task(task) + 1
    }
}

/// The tracks of a trace: CPUs, tasks and resources by their ids, with names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scene {
    /// The title of the trace.
    pub title: String,
    /// The number of CPUs.
    pub cpus: usize,
    /// The tasks.
    pub actors: Vec<Actor>,
    /// The order in which tasks are shown.
    pub order: Vec<TaskId>,
    /// The names of the resources.
    pub resources: Vec<String>,
}

/// A task of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Actor {
    /// Its name.
    pub name: String,
    /// The CPU on which it executes at first.
    pub cpu: usize,
    /// Whether it locks resources.
    pub locks: bool,
    /// Its deadline after an arrival; `None` shows no misses.
    pub deadline: Option<Duration>,
}

impl Scene {
    /// The tasks of a system.
    #[must_use]
    pub fn of(system: &System, title: &str) -> Self {
        let actor = |id: TaskId| Actor {
            name: system.task(id).name.clone(),
            cpu: system.task(id).cpu.index(),
            locks: !system.requests(id).is_empty(),
            deadline: Some(system.task(id).deadline),
        };
        Self {
            title: title.to_owned(),
            cpus: system.cpus(),
            actors: system.task_ids().map(actor).collect(),
            order: crate::table_order(system),
            resources: system.resources().iter().map(|resource| resource.name.clone()).collect(),
        }
    }
}

/// Writes the trace of `records`, which are of `scene`.
///
/// # Errors
/// The errors of `out`.
pub fn write(scene: &Scene, records: &[Record], out: impl Write) -> io::Result<()> {
    let mut sorted;
    let records = if records.is_sorted_by_key(|record| record.at) {
        records
    } else {
        sorted = records.to_vec();
        sorted.sort_by_key(|record| record.at);
        sorted.as_slice()
    };
    let mut writer = Writer::new(scene, out);
    writer.describe_tracks()?;
    let waits = contended(scene, records);
    let mut misses = missed_deadlines(scene, records).into_iter().peekable();
    let end = records.last().map_or(Instant::ZERO, |record| record.at);
    for (record, waits) in records.iter().zip(waits) {
        while let Some((at, task)) = misses.next_if(|miss| miss.0 < record.at) {
            writer.instant(at, task, "deadline missed".into())?;
        }
        writer.record(record, waits)?;
    }
    for (at, task) in misses {
        writer.instant(at, task, "deadline missed".into())?;
    }
    writer.close(end)
}

/// For each record, whether it is a request that was not granted at once.
fn contended(scene: &Scene, records: &[Record]) -> Vec<bool> {
    let mut contended = vec![false; records.len()];
    // By task: its open request. A job waits for one resource at a time.
    let mut open: Vec<Option<usize>> = vec![None; scene.actors.len()];
    for (index, record) in records.iter().enumerate() {
        let open = &mut open[record.task.index()];
        match record.event {
            Event::Request(_) => {
                contended[index] = true;
                *open = Some(index);
            }
            Event::Acquire(_) => {
                if let Some(request) = open.take() {
                    contended[request] = records[request].at < record.at;
                }
            }
            _ => {}
        }
    }
    contended
}

/// The missed deadlines, by time.
fn missed_deadlines(scene: &Scene, records: &[Record]) -> Vec<(Instant, TaskId)> {
    let mut missed = Vec::new();
    let mut arrivals: Vec<VecDeque<Instant>> = vec![VecDeque::new(); scene.actors.len()];
    let deadline_of = |task: TaskId, arrival: Instant| arrival.checked_add(scene.actors[task.index()].deadline?);
    for record in records {
        let arrivals = &mut arrivals[record.task.index()];
        match record.event {
            Event::Arrive => arrivals.push_back(record.at),
            Event::Finish => {
                let deadline = arrivals.pop_front().and_then(|arrival| deadline_of(record.task, arrival));
                missed.extend(deadline.filter(|&deadline| deadline < record.at).map(|at| (at, record.task)));
            }
            _ => {}
        }
    }
    let end = records.last().map_or(Instant::ZERO, |record| record.at);
    for (task, arrivals) in arrivals.iter().enumerate() {
        let task = TaskId::new(task);
        let open = arrivals.iter().filter_map(|&arrival| deadline_of(task, arrival));
        missed.extend(open.filter(|&deadline| deadline < end).map(|at| (at, task)));
    }
    missed.sort();
    missed
}

/// The open slices of one task.
#[derive(Clone, Default)]
struct Open {
    running: bool,
    waiting: bool,
    holding: Vec<ResourceId>,
    /// The CPU on which it executes, if not its own.
    away: Option<usize>,
    /// Number of finished jobs, which is the number of the oldest unfinished job.
    finished: u64,
}

struct Writer<'s, W> {
    scene: &'s Scene,
    tracks: Tracks,
    tasks: Vec<Open>,
    /// By CPU, the task that executes. Threads may overlap during a context switch: the slice belongs to the last one.
    cpus: Vec<Vec<TaskId>>,
    buffer: Vec<u8>,
    out: W,
}

impl<'s, W: Write> Writer<'s, W> {
    fn new(scene: &'s Scene, out: W) -> Self {
        Self {
            scene,
            tracks: Tracks { cpus: scene.cpus as u64 },
            tasks: vec![Open::default(); scene.actors.len()],
            cpus: vec![Vec::new(); scene.cpus],
            buffer: Vec::new(),
            out,
        }
    }

    fn packet(&mut self, timestamp: Option<Instant>, flags: Option<u32>, data: Data) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: timestamp.map(Instant::as_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: flags,
            data: Some(data),
        };
        self.buffer.clear();
        // Each packet is a trace of its own: concatenated traces are a trace.
        Trace { packet: vec![packet] }.encode(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn describe_tracks(&mut self) -> io::Result<()> {
        let (scene, tracks) = (self.scene, self.tracks);
        let explicit = Some(ChildOrdering::Explicit as i32);
        let root = TrackDescriptor {
            uuid: Some(Tracks::ROOT),
            name: Some(scene.title.clone()),
            child_ordering: explicit,
            ..TrackDescriptor::default()
        };
        self.packet(None, Some(proto::SEQ_INCREMENTAL_STATE_CLEARED), Data::Track(root))?;
        for cpu in 0..scene.cpus {
            self.describe(tracks.cpu(cpu), Tracks::ROOT, format!("CPU {cpu}"), cpu)?;
        }
        for (place, &task) in scene.order.iter().enumerate() {
            let actor = &scene.actors[task.index()];
            self.describe(tracks.task(task), Tracks::ROOT, actor.name.clone(), scene.cpus + place)?;
            if actor.locks {
                self.describe(tracks.locks(task), tracks.task(task), "locks".into(), 0)?;
            }
        }
        Ok(())
    }

    fn describe(&mut self, uuid: u64, parent: u64, name: String, rank: usize) -> io::Result<()> {
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(parent),
            child_ordering: None,
            sibling_order_rank: i32::try_from(rank).ok(),
        };
        self.packet(None, None, Data::Track(track))
    }

    fn event(
        &mut self,
        at: Instant,
        track: u64,
        kind: EventType,
        name: Option<String>,
        job: Option<u64>,
    ) -> io::Result<()> {
        let job = job.map(|job| DebugAnnotation { name: Some("job".into()), uint_value: Some(job) });
        let event = TrackEvent {
            debug_annotations: job.into_iter().collect(),
            r#type: Some(kind as i32),
            track_uuid: Some(track),
            name,
        };
        self.packet(Some(at), None, Data::Event(event))
    }

    fn begin(&mut self, at: Instant, track: u64, name: String, job: Option<u64>) -> io::Result<()> {
        self.event(at, track, EventType::SliceBegin, Some(name), job)
    }

    fn end(&mut self, at: Instant, track: u64) -> io::Result<()> {
        self.event(at, track, EventType::SliceEnd, None, None)
    }

    fn instant(&mut self, at: Instant, task: TaskId, name: String) -> io::Result<()> {
        self.event(at, self.tracks.task(task), EventType::Instant, Some(name), None)
    }

    fn record(&mut self, record: &Record, waits: bool) -> io::Result<()> {
        let &Record { at, task, event } = record;
        match event {
            Event::Arrive => self.instant(at, task, "arrival".into()),
            Event::Run => self.run(at, task),
            Event::Stop => self.stop(at, task),
            Event::Request(resource) if waits => self.wait(at, task, resource),
            Event::Request(_) => Ok(()),
            Event::Acquire(resource) => self.acquire(at, task, resource),
            Event::Release(resource) => self.release(at, task, resource),
            Event::Restart(resource) => {
                self.instant(at, task, format!("`{}` again", self.scene.resources[resource.index()]))
            }
            Event::Priority(priority) => self.instant(at, task, format!("priority {priority}")),
            Event::Migrate(cpu) => self.migrate(at, task, cpu.index()),
            Event::Finish => {
                self.tasks[task.index()].finished += 1;
                self.instant(at, task, "finish".into())
            }
        }
    }

    fn cpu_of(&self, task: TaskId) -> usize {
        self.tasks[task.index()].away.unwrap_or_else(|| self.scene.actors[task.index()].cpu)
    }

    /// Moves the slices of a task to another CPU's track; an open slice is split.
    fn migrate(&mut self, at: Instant, task: TaskId, cpu: usize) -> io::Result<()> {
        self.instant(at, task, format!("on CPU {cpu}"))?;
        if cpu >= self.cpus.len() || cpu == self.cpu_of(task) {
            return Ok(());
        }
        let running = self.tasks[task.index()].running;
        self.stop(at, task)?;
        self.tasks[task.index()].away = Some(cpu);
        if running { self.run(at, task) } else { Ok(()) }
    }

    fn run(&mut self, at: Instant, task: TaskId) -> io::Result<()> {
        if std::mem::replace(&mut self.tasks[task.index()].running, true) {
            return Ok(());
        }
        let cpu = self.cpu_of(task);
        if !self.cpus[cpu].is_empty() {
            self.end(at, self.tracks.cpu(cpu))?;
        }
        self.cpus[cpu].push(task);
        self.occupy(at, task)?;
        let job = self.job(task);
        self.begin(at, self.tracks.task(task), "running".into(), job)
    }

    fn stop(&mut self, at: Instant, task: TaskId) -> io::Result<()> {
        if !std::mem::take(&mut self.tasks[task.index()].running) {
            return Ok(());
        }
        let cpu = self.cpu_of(task);
        let was_shown = self.cpus[cpu].last() == Some(&task);
        self.cpus[cpu].retain(|&other| other != task);
        if was_shown {
            self.end(at, self.tracks.cpu(cpu))?;
            if let Some(&other) = self.cpus[cpu].last() {
                self.occupy(at, other)?;
            }
        }
        self.end(at, self.tracks.task(task))
    }

    /// Begins the slice of `task` on its CPU.
    fn occupy(&mut self, at: Instant, task: TaskId) -> io::Result<()> {
        let (track, job) = (self.tracks.cpu(self.cpu_of(task)), self.job(task));
        self.begin(at, track, self.scene.actors[task.index()].name.clone(), job)
    }

    /// The number of the oldest unfinished job, from 1.
    fn job(&self, task: TaskId) -> Option<u64> {
        Some(self.tasks[task.index()].finished + 1)
    }

    fn wait(&mut self, at: Instant, task: TaskId, resource: ResourceId) -> io::Result<()> {
        self.end_wait(at, task)?;
        self.tasks[task.index()].waiting = true;
        let name = format!("waiting for {}", self.scene.resources[resource.index()]);
        self.begin(at, self.tracks.locks(task), name, None)
    }

    fn end_wait(&mut self, at: Instant, task: TaskId) -> io::Result<()> {
        if std::mem::take(&mut self.tasks[task.index()].waiting) {
            self.end(at, self.tracks.locks(task))?;
        }
        Ok(())
    }

    fn acquire(&mut self, at: Instant, task: TaskId, resource: ResourceId) -> io::Result<()> {
        self.end_wait(at, task)?;
        self.tasks[task.index()].holding.push(resource);
        let name = format!("holding {}", self.scene.resources[resource.index()]);
        self.begin(at, self.tracks.locks(task), name, None)
    }

    /// Ends the slice of `resource` and all open slices inside it.
    fn release(&mut self, at: Instant, task: TaskId, resource: ResourceId) -> io::Result<()> {
        let holding = &self.tasks[task.index()].holding;
        let Some(outer) = holding.iter().rposition(|&held| held == resource) else { return Ok(()) };
        self.end_wait(at, task)?;
        while self.tasks[task.index()].holding.len() > outer {
            self.tasks[task.index()].holding.pop();
            self.end(at, self.tracks.locks(task))?;
        }
        Ok(())
    }

    fn close(mut self, at: Instant) -> io::Result<()> {
        for task in (0..self.tasks.len()).map(TaskId::new) {
            self.stop(at, task)?;
            self.end_wait(at, task)?;
            while self.tasks[task.index()].holding.pop().is_some() {
                self.end(at, self.tracks.locks(task))?;
            }
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
