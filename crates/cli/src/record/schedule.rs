//! The schedule of a recording for pictures: the tasks as inferred, and behind them the other threads, which have no
//! jobs.

use lockwright_model::{
    CpuId, DURATION_MAX, Duration, Event, Instant, Priority, Record, ResourceId, Step, System, Task, TaskId,
};
use lockwright_record::{Findings, Inferred, Policy, Recording};

/// The system, and the records of its tasks.
pub(super) struct Recorded {
    pub(super) system: System,
    pub(super) records: Vec<Record>,
}

/// The schedule in `records`, which name threads and objects. `None` without a task set.
pub(super) fn schedule(
    recording: &Recording,
    inferred: &Inferred,
    findings: &Findings,
    records: &[Record],
) -> Option<Recorded> {
    let system = inferred.system.as_ref().ok()?;
    let mut tasks = system.tasks().to_vec();
    let mut places: Vec<Option<TaskId>> = vec![None; recording.threads.len()];
    for (index, task) in inferred.tasks.iter().enumerate() {
        *places.get_mut(task.thread as usize)? = Some(TaskId::new(index));
    }
    for out in &inferred.left_out {
        *places.get_mut(out.thread as usize)? = Some(TaskId::new(tasks.len()));
        let mut name = recording.thread_name(out.thread);
        if tasks.iter().any(|task| task.name == name) {
            name = format!("{name} ({})", recording.threads[out.thread as usize].id);
        }
        let policy = findings.threads.get(out.thread as usize).and_then(|found| found.policies.last());
        tasks.push(other(name, policy.copied()));
    }
    let system = system.with_tasks(tasks).ok()?;
    // A thread begins on CPU 0, as in a trace.
    let begin = records.first().map_or(Instant::ZERO, |record| record.at);
    let first = |task: TaskId| Record { at: begin, task, event: Event::Migrate(CpuId::new(0)) };
    let mut known: Vec<Record> = system.task_ids().map(first).collect();
    // Whether a thread is on a CPU that the system does not have.
    let mut away = vec![false; system.tasks().len()];
    for record in records {
        let Some(task) = places.get(record.task.index()).copied().flatten() else { continue };
        let away = &mut away[task.index()];
        let resource = |object: ResourceId| {
            let object = u32::try_from(object.index()).ok()?;
            let place = inferred.objects.iter().position(|&known| known == object)?;
            (place < system.resources().len()).then(|| ResourceId::new(place))
        };
        let event = match record.event {
            Event::Request(object) => resource(object).map(Event::Request),
            Event::Acquire(object) => resource(object).map(Event::Acquire),
            Event::Release(object) => resource(object).map(Event::Release),
            Event::Migrate(cpu) => {
                *away = cpu.index() >= system.cpus();
                Some(if *away { Event::Stop } else { Event::Migrate(cpu) })
            }
            Event::Run if *away => None,
            event => Some(event),
        };
        known.extend(event.map(|event| Record { at: record.at, task, event }));
    }
    Some(Recorded { system, records: known })
}

/// A thread that is no task.
fn other(name: String, policy: Option<Policy>) -> Task {
    let level = match policy {
        Some(Policy::Fifo(priority) | Policy::RoundRobin(priority)) => u32::from(priority),
        Some(Policy::Deadline { .. }) => u32::from(u8::MAX),
        _ => 0,
    };
    let least = Duration::from_ns(1);
    Task {
        name,
        cpu: CpuId::new(0),
        priority: Priority::base(level),
        period: DURATION_MAX,
        deadline: DURATION_MAX,
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: least,
        body: vec![Step::Run(least)],
    }
}
