//! Traces of jobs: what a program's own tasks did, and when.
//!
//! Each task has a list of fixed capacity that only its own thread writes. The records are those of simulations and
//! runs ([`Record`]), so the same code draws them and writes them to files.

use super::log::Log;
use lockwright_model::{Event, Instant, Record, ResourceId, TaskId};

/// The greatest number of events of one task.
pub const TRACE_EVENTS_MAX: usize = 1 << 24;

/// What the jobs of a task set did since [`TaskSet::trace`](super::TaskSet::trace).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The events of all tasks in the order of time, in nanoseconds of the monotonic clock.
    pub records: Vec<Record>,
    /// The number of events that did not fit.
    pub dropped: u64,
}

/// One event of a task, as its thread writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Note {
    /// The release of a job.
    Release,
    /// The job executes.
    Start,
    /// The job is about to request a resource.
    Request(ResourceId),
    /// The job has locked it without waiting.
    Lock(ResourceId),
    /// The job has waited for it and locked it.
    LockAfterWait(ResourceId),
    /// The protocol refused the request.
    Refused,
    /// The job is about to unlock it.
    Unlock(ResourceId),
    /// The job is complete.
    End,
}

/// The lists of all tasks.
#[derive(Debug)]
pub(super) struct Traces(Box<[Log]>);

impl Traces {
    /// Room for `events` events of each task.
    pub(super) fn new(tasks: usize, events: usize) -> Self {
        Self((0..tasks).map(|_| Log::new(events)).collect())
    }

    /// Writes an event of `task`, whose thread is the caller.
    pub(super) fn write(&self, task: TaskId, note: Note, at_ns: u64) {
        self.0[task.index()].write_alone(pack(note), at_ns);
    }

    /// All events.
    pub(super) fn read(&self) -> Trace {
        let mut records: Vec<Record> =
            (0..).map(TaskId).zip(&self.0).flat_map(|(task, log)| of_task(task, log)).collect();
        records.sort_by_key(|record| record.at);
        Trace { records, dropped: self.0.iter().map(|log| log.dropped() as u64).sum() }
    }
}

/// The records of one task. A job that waits executes nothing until it has the resource. A lock without a wait has one
/// time for its request and its grant, so that the time between them does not look like a wait.
fn of_task(task: TaskId, log: &Log) -> Vec<Record> {
    let mut records = Vec::new();
    let mut request = None;
    for (at_ns, word) in log.entries() {
        let mut push = |at_ns: u64, event| records.push(Record { at: Instant::from_ns(at_ns), task, event });
        match unpack(word) {
            Note::Release => push(at_ns, Event::Arrive),
            Note::Start => push(at_ns, Event::Run),
            Note::Request(resource) => request = Some((at_ns, resource)),
            Note::Lock(resource) => {
                request = None;
                push(at_ns, Event::Request(resource));
                push(at_ns, Event::Acquire(resource));
            }
            Note::LockAfterWait(resource) => {
                let asked_ns = request.take().map_or(at_ns, |request| request.0);
                push(asked_ns, Event::Request(resource));
                push(asked_ns, Event::Stop);
                push(at_ns, Event::Acquire(resource));
                push(at_ns, Event::Run);
            }
            Note::Refused => request = None,
            Note::Unlock(resource) => push(at_ns, Event::Release(resource)),
            Note::End => {
                push(at_ns, Event::Finish);
                push(at_ns, Event::Stop);
            }
        }
    }
    // The job waits now, or an event did not fit.
    if let Some((at_ns, resource)) = request {
        records.push(Record { at: Instant::from_ns(at_ns), task, event: Event::Request(resource) });
    }
    records
}

/// Kind and resource, in 16 bits each.
fn pack(note: Note) -> u64 {
    let (kind, resource) = match note {
        Note::Release => (0, 0),
        Note::Start => (1, 0),
        Note::Request(resource) => (2, resource.0),
        Note::Lock(resource) => (3, resource.0),
        Note::LockAfterWait(resource) => (4, resource.0),
        Note::Refused => (5, 0),
        Note::Unlock(resource) => (6, resource.0),
        Note::End => (7, 0),
    };
    kind << 16 | u64::from(resource)
}

fn unpack(word: u64) -> Note {
    let resource = ResourceId(word as u16);
    match word >> 16 {
        0 => Note::Release,
        1 => Note::Start,
        2 => Note::Request(resource),
        3 => Note::Lock(resource),
        4 => Note::LockAfterWait(resource),
        5 => Note::Refused,
        6 => Note::Unlock(resource),
        _ => Note::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_counts_what_it_drops() {
        let (one, other, bus) = (TaskId(0), TaskId(1), ResourceId(7));
        let traces = Traces::new(2, 4);
        for (note, at_ns) in
            [(Note::Release, 5), (Note::Start, 6), (Note::Request(bus), 7), (Note::LockAfterWait(bus), 9)]
        {
            traces.write(one, note, at_ns);
        }
        traces.write(other, Note::Release, 8);
        assert_eq!(traces.read().dropped, 0);
        for (note, at_ns) in [(Note::Unlock(bus), 10), (Note::End, 11)] {
            traces.write(one, note, at_ns);
        }
        let record = |at_ns, task, event| Record { at: Instant::from_ns(at_ns), task, event };
        let wanted = [
            record(5, one, Event::Arrive),
            record(6, one, Event::Run),
            record(7, one, Event::Request(bus)),
            record(7, one, Event::Stop),
            record(8, other, Event::Arrive),
            record(9, one, Event::Acquire(bus)),
            record(9, one, Event::Run),
        ];
        assert_eq!(traces.read(), Trace { records: wanted.to_vec(), dropped: 2 });
    }

    #[test]
    fn notes_survive_their_packing() {
        let bus = ResourceId(u16::MAX);
        let notes = [
            Note::Release,
            Note::Start,
            Note::Request(bus),
            Note::Lock(bus),
            Note::LockAfterWait(bus),
            Note::Refused,
            Note::Unlock(bus),
            Note::End,
        ];
        assert_eq!(notes.map(pack).map(unpack), notes);
    }
}
