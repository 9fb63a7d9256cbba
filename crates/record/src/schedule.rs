//! Recordings of schedules: each is the recording of a program that executes the schedule.

use crate::event::{Clock, Event, EventKind, Policy, Stop, Wait};
use crate::recording::{MutexProtocol, Object, ObjectKind, Recording, Site, Thread};
use lockwright_model::Mode;
use lockwright_model::{self as model, CpuId, Protocol, Record, System, Task, TaskId};

/// Returns the recording of a schedule of `system`: each task is a thread under `SCHED_FIFO` on its CPU, which sleeps
/// until the absolute instant of its next release. Each resource is a mutex with the protocol that rules it if the
/// system is under `protocol`; a protocol that mutexes do not have becomes none. Under `phase_fair` and `task_fair` it
/// is a reader-writer lock.
///
/// `records` are those of the simulator or of real threads, by time.
///
/// # Panics
/// Panics if a priority is not one of `SCHED_FIFO`, 1 to 99.
#[must_use]
pub fn of_schedule(system: &System, protocol: Protocol, records: &[Record]) -> Recording {
    let threads = system.tasks().iter().enumerate();
    let threads = threads.map(|(index, task)| Thread { id: 100 + index as u32, name: task.name.clone(), lost: 0 });
    let object = |id| {
        let rule = system.protocol_of(id, protocol);
        let protocol = match rule {
            Protocol::Pip => MutexProtocol::Inherit,
            // The ceiling of a resource without users is below all priorities of SCHED_FIFO.
            Protocol::Icpp => MutexProtocol::Protect(level(system.ceiling(id).max(model::Priority::base(1)))),
            _ => MutexProtocol::None,
        };
        let address = 0x1000 + 64 * u64::from(id.0);
        let kind = match rule.has_readers() {
            true => ObjectKind::RwLock,
            false => ObjectKind::Mutex { protocol, recursive: false },
        };
        Object { address, kind, site: None, symbol: Some(system.resource(id).name.clone()) }
    };
    let mut writer = Writer {
        system,
        protocol,
        tasks: system.tasks().iter().map(|_| State::default()).collect(),
        events: Vec::new(),
    };
    for record in records.iter().filter(|record| record.event == model::Event::Arrive) {
        writer.tasks[record.task.index()].arrivals.push(record.at.as_ns());
    }
    for (index, task) in system.tasks().iter().enumerate() {
        writer.begin(index, task);
    }
    for record in records {
        writer.record(record);
    }
    let Writer { mut events, .. } = writer;
    // Arrivals with jitter are recorded late; they are no events.
    events.sort_by_key(|event| event.at_ns);
    let site = |name: &str, address| Site { address, name: Some(name.into()) };
    Recording {
        program: vec![system.name().into()],
        length_ns: records.iter().map(|record| record.at.as_ns()).max().unwrap_or(0),
        threads: threads.collect(),
        objects: system.resource_ids().map(object).collect(),
        sites: vec![site("thread", 0x10), site("job", 0x20)],
        callbacks: Vec::new(),
        events,
        lost: 0,
        unrecorded_threads: 0,
        complete: true,
        switches: true,
    }
}

/// The place of the absolute sleeps.
const SLEEP: u32 = 0;
/// The place of the locks.
const LOCK: u32 = 1;

fn level(priority: model::Priority) -> u8 {
    let level = u8::try_from(priority.level()).ok().filter(|level| (1..=99).contains(level));
    level.expect("the priority is one of SCHED_FIFO")
}

/// One task.
#[derive(Default)]
struct State {
    arrivals: Vec<u64>,
    /// The number of jobs that are finished.
    finished: usize,
    /// The number of sections of the present job that are finished.
    unlocks: usize,
    is_running: bool,
    /// The CPU to which it migrated.
    away: Option<CpuId>,
    is_sleeping: bool,
    /// The resource that it requested, until it has it, and when.
    requested: Option<(model::ResourceId, u64)>,
    /// Whether the request is an event: the task waits.
    waits: bool,
    /// Resources that it acquired while it did not execute.
    granted: Vec<model::ResourceId>,
}

struct Writer<'s> {
    system: &'s System,
    protocol: Protocol,
    tasks: Vec<State>,
    events: Vec<Event>,
}

impl Writer<'_> {
    fn push(&mut self, at_ns: u64, task: usize, kind: EventKind) {
        self.events.push(Event { at_ns, thread: task as u32, kind });
    }

    fn begin(&mut self, index: usize, task: &Task) {
        self.push(0, index, EventKind::Start);
        self.push(0, index, EventKind::Scheduling(Policy::Fifo(level(task.priority))));
        self.push(0, index, EventKind::Affinity(1 << task.cpu.index()));
        self.sleep(0, index);
        let stop = if self.tasks[index].is_sleeping { Stop::Suspended } else { Stop::Preempted };
        self.push(0, index, EventKind::SwitchOut(stop));
    }

    /// The thread sleeps until its next release.
    fn sleep(&mut self, at_ns: u64, index: usize) {
        let task = &self.system.tasks()[index];
        let state = &mut self.tasks[index];
        let next = state.arrivals.get(state.finished).copied();
        // After the end of the records, one period later.
        let next = next.or_else(|| Some(state.arrivals.last()? + task.period.as_ns()));
        let release = next.unwrap_or(task.offset.as_ns());
        state.is_sleeping = true;
        let at = i64::try_from(release).unwrap_or(i64::MAX);
        let wait = Wait::SleepUntil { at_ns: at, clock: Clock::Monotonic };
        self.push(at_ns, index, EventKind::Wait { wait, site: SLEEP });
        // A release that is due does not wait.
        if release <= at_ns {
            self.resume(at_ns, index);
        }
    }

    fn resume(&mut self, at_ns: u64, index: usize) {
        if std::mem::take(&mut self.tasks[index].is_sleeping) {
            self.push(at_ns, index, EventKind::Resumed);
        }
    }

    fn record(&mut self, record: &Record) {
        let (at_ns, index) = (record.at.as_ns(), record.task.index());
        let state = &mut self.tasks[index];
        match record.event {
            model::Event::Run => {
                state.is_running = true;
                let cpu = u32::from(state.away.unwrap_or(self.system.tasks()[index].cpu).0);
                let granted = std::mem::take(&mut state.granted);
                self.push(at_ns, index, EventKind::SwitchIn { cpu });
                self.resume(at_ns, index);
                granted.into_iter().for_each(|resource| self.locked(at_ns, index, resource));
            }
            model::Event::Stop => {
                state.is_running = false;
                if let Some((resource, since)) = state.requested.filter(|_| !state.waits) {
                    state.waits = true;
                    let (object, mode) = (u32::from(resource.0), self.mode(index, resource));
                    self.push(since, index, EventKind::Request { object, mode, site: LOCK });
                }
                let state = &self.tasks[index];
                let is_over = state.is_sleeping || state.requested.is_some();
                let stop = if is_over { Stop::Suspended } else { Stop::Preempted };
                self.push(at_ns, index, EventKind::SwitchOut(stop));
            }
            model::Event::Request(resource) => {
                // A task that is woken to try again waits since its first try.
                if state.requested.is_none() {
                    (state.requested, state.waits) = (Some((resource, at_ns)), false);
                }
            }
            model::Event::Acquire(resource) => {
                state.requested = None;
                if state.is_running { self.locked(at_ns, index, resource) } else { state.granted.push(resource) }
            }
            model::Event::Release(resource) => {
                state.unlocks += 1;
                self.push(at_ns, index, EventKind::Unlock { object: u32::from(resource.0) });
            }
            model::Event::Finish => {
                state.finished += 1;
                state.unlocks = 0;
                self.sleep(at_ns, index);
            }
            model::Event::Migrate(cpu) => {
                state.away = Some(cpu);
                if state.is_running {
                    self.push(at_ns, index, EventKind::SwitchIn { cpu: u32::from(cpu.0) });
                }
            }
            model::Event::Arrive | model::Event::Restart(_) | model::Event::Priority(_) => {}
        }
    }

    fn locked(&mut self, at_ns: u64, index: usize, resource: model::ResourceId) {
        let (object, mode) = (u32::from(resource.0), self.mode(index, resource));
        self.push(at_ns, index, EventKind::Locked { object, mode, site: LOCK, tried: false });
    }
    /// How the task locks the resource next. The sections of protocols with readers do not nest, so the number of those
    /// that are finished tells which one is next.
    fn mode(&self, index: usize, resource: model::ResourceId) -> Mode {
        let task = TaskId::new(index);
        let next = self.system.sections(task).get(self.tasks[index].unlocks).filter(|next| next.resource == resource);
        let has_readers = self.system.protocol_of(resource, self.protocol).has_readers();
        next.filter(|_| has_readers).map_or(Mode::Write, |section| section.mode)
    }
}
