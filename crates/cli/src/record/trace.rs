//! A recording as a Perfetto trace of its threads.

use lockwright_model::{CpuId, Event, Instant, Record, ResourceId, TaskId};
use lockwright_record::{EventKind, Inferred, Recording};
use lockwright_report::perfetto::{Actor, Scene};

/// The threads and objects that ids can name; a trace shows no others.
const IDS_MAX: u32 = u16::MAX as u32;

/// The scene and the records: arrivals and ends of jobs as inferred, everything else as recorded.
pub(super) fn trace(recording: &Recording, inferred: &Inferred) -> (Scene, Vec<Record>) {
    let deadline = |thread: u32| {
        let task = inferred.tasks.iter().position(|task| task.thread == thread)?;
        Some(inferred.system.as_ref().ok()?.tasks().get(task)?.deadline)
    };
    let locks = |thread: u32| {
        let is_lock = |kind| matches!(kind, EventKind::Locked { .. } | EventKind::Request { .. });
        recording.events.iter().any(|event| event.thread == thread && is_lock(event.kind))
    };
    let threads = (0..IDS_MAX).take(recording.threads.len());
    let actors = threads.clone().map(|thread| Actor {
        name: recording.thread_name(thread),
        cpu: 0,
        locks: locks(thread),
        deadline: deadline(thread),
    });
    let cpu_of = |kind| match kind {
        EventKind::SwitchIn { cpu } => Some(cpu),
        _ => None,
    };
    let cpus = recording.events.iter().filter_map(|event| cpu_of(event.kind)).filter(|&cpu| cpu < IDS_MAX).max();
    let objects = (0..IDS_MAX).take(recording.objects.len());
    let scene = Scene {
        title: recording.program.join(" "),
        cpus: cpus.map_or(1, |cpu| cpu as usize + 1),
        actors: actors.collect(),
        order: threads.map(|thread| TaskId::new(thread as usize)).collect(),
        resources: objects.map(|object| recording.object_name(object)).collect(),
    };
    (scene, records(recording, inferred))
}

fn records(recording: &Recording, inferred: &Inferred) -> Vec<Record> {
    let mut records = Vec::new();
    let mut push = |at_ns: u64, thread: u32, event: Event| {
        records.push(Record { at: Instant::from_ns(at_ns), task: TaskId::new(thread as usize), event });
    };
    for task in inferred.tasks.iter().filter(|task| task.thread < IDS_MAX) {
        for job in &task.jobs {
            push(u64::try_from(job.release_ns).unwrap_or(0), task.thread, Event::Arrive);
            push(job.finish_ns, task.thread, Event::Finish);
        }
    }
    let mut cpus = vec![0; recording.threads.len()];
    for event in recording.events.iter().filter(|event| event.thread < IDS_MAX) {
        let Some(on) = cpus.get_mut(event.thread as usize) else { continue };
        let resource = |object: u32| ResourceId::new(object as usize);
        let known = |object: u32| object < IDS_MAX && (object as usize) < recording.objects.len();
        let kind = match event.kind {
            EventKind::SwitchIn { cpu } if cpu < IDS_MAX => {
                if std::mem::replace(on, cpu) != cpu {
                    push(event.at_ns, event.thread, Event::Migrate(CpuId::new(cpu as usize)));
                }
                Event::Run
            }
            EventKind::SwitchOut(_) | EventKind::End => Event::Stop,
            EventKind::Request { object, .. } if known(object) => Event::Request(resource(object)),
            EventKind::Locked { object, .. } if known(object) => Event::Acquire(resource(object)),
            EventKind::Unlock { object } if known(object) => Event::Release(resource(object)),
            _ => continue,
        };
        push(event.at_ns, event.thread, kind);
    }
    records.sort_by_key(|record| record.at);
    records
}
