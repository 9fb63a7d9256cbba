//! Traces of jobs: what a program's own tasks did, and when.
//!
//! Each task has a list of fixed capacity that only its own thread writes. The records are those of simulations and
//! runs ([`Record`]), so the same code draws them and writes them to files.

use super::log::Log;
use lockwright_model::{Event, Instant, Record, ResourceId, TaskId};
use std::collections::TryReserveError;

/// The greatest number of events of one task.
pub const TRACE_EVENTS_MAX: usize = 1 << 24;

/// What the jobs of a task set did since [`TaskSet::trace`](super::TaskSet::trace).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The events of all tasks in the order of time, in nanoseconds of the monotonic clock.
    pub records: Vec<Record>,
    /// The number of events that did not fit, with those of the job that was then under way: it is not shown, because
    /// its end is unknown.
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
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(tasks: usize, events: usize) -> Result<Self, TryReserveError> {
        (0..tasks).map(|_| Log::new(events)).collect::<Result<_, _>>().map(Self)
    }

    /// Writes an event of `task`, whose thread is the caller.
    pub(super) fn write(&self, task: TaskId, note: Note, at_ns: u64) {
        self.0[task.index()].write_alone(pack(note), at_ns);
    }

    /// All events.
    pub(super) fn read(&self) -> Trace {
        let (mut records, mut dropped) = (Vec::new(), 0);
        for (task, log) in (0..).map(TaskId).zip(&self.0) {
            let mut notes: Vec<(u64, Note)> = log.entries().map(|(at_ns, word)| (at_ns, unpack(word))).collect();
            if log.dropped() > 0 {
                // A job without its end would look as if it waited, or missed its deadline.
                let kept = notes.iter().rposition(|&(_, note)| note == Note::End).map_or(0, |last| last + 1);
                dropped += log.dropped() + notes.len() - kept;
                notes.truncate(kept);
            }
            records.extend(of_task(task, &notes));
        }
        records.sort_by_key(|record| record.at);
        Trace { records, dropped: dropped as u64 }
    }
}

/// The records of one task. A job that waits executes nothing until it has the resource. A lock without a wait has one
/// time for its request and its grant, so that the time between them does not look like a wait.
fn of_task(task: TaskId, notes: &[(u64, Note)]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut request = None;
    let mut push = |at_ns: u64, event| records.push(Record { at: Instant::from_ns(at_ns), task, event });
    for &(at_ns, note) in notes {
        match note {
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
    // The job waits now.
    if let Some((at_ns, resource)) = request {
        push(at_ns, Event::Request(resource));
        push(at_ns, Event::Stop);
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
    fn a_full_list_shows_whole_jobs_and_counts_the_rest() {
        let (one, other, bus) = (TaskId(0), TaskId(1), ResourceId(7));
        let traces = Traces::new(2, 8).expect("there is memory");
        let job = |from_ns: u64| {
            let notes = [Note::Release, Note::Start, Note::Request(bus), Note::LockAfterWait(bus)];
            notes.into_iter().zip([0, 1, 2, 4]).for_each(|(note, after)| traces.write(one, note, from_ns + after));
        };
        job(5);
        traces.write(other, Note::Release, 8);
        traces.write(other, Note::Start, 9);
        traces.write(other, Note::Request(bus), 10);
        let record = |at_ns, task, event| Record { at: Instant::from_ns(at_ns), task, event };
        let mut wanted = vec![
            record(5, one, Event::Arrive),
            record(6, one, Event::Run),
            record(7, one, Event::Request(bus)),
            record(7, one, Event::Stop),
            record(8, other, Event::Arrive),
            record(9, one, Event::Acquire(bus)),
            record(9, one, Event::Run),
            record(9, other, Event::Run),
            record(10, other, Event::Request(bus)),
            record(10, other, Event::Stop),
        ];
        assert_eq!(traces.read(), Trace { records: wanted.clone(), dropped: 0 });
        traces.write(one, Note::Unlock(bus), 11);
        traces.write(one, Note::End, 12);
        // Two events fit, and two do not.
        job(20);
        let ends = [Event::Release(bus), Event::Finish, Event::Stop];
        wanted.extend([(11, ends[0]), (12, ends[1]), (12, ends[2])].map(|(at_ns, event)| record(at_ns, one, event)));
        assert_eq!(traces.read(), Trace { records: wanted, dropped: 4 });
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
