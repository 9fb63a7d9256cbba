//! When the job behind a wait is released.

use super::period::{Release, signed};
use super::taken::Taken;
use crate::event::{Clock, EventKind, Stop, Wait};
use crate::history::Entry;
use crate::recording::{Recording, ThreadIndex};

/// Returns the release of the job behind a wait. An absolute sleep and a sleep name it, and so do the post of a
/// semaphore and the settings of a timer. Otherwise it is the last signal to the awaited condition variable during the
/// wait; else, if the thread suspended, the wake-up, the dispatch, or the end of the wait. `None` if the wait has no
/// end: the job was not released before the recording ended.
pub(super) fn release(
    recording: &Recording,
    thread: ThreadIndex,
    entries: &[Entry],
    wait: usize,
    taken: &Taken,
) -> Option<Release> {
    let begin = entries[wait];
    let EventKind::Wait { wait: kind, .. } = begin.kind else { return None };
    match kind {
        // The instants of other clocks are not on the time line of the recording.
        Wait::SleepUntil { clock: Clock::Monotonic | Clock::Realtime, at_ns } => {
            return Some(Release { at_ns: Some(at_ns), count: 1, is_requested: true });
        }
        Wait::SleepFor { ns } => {
            let at_ns = signed(begin.at_ns.saturating_add(ns));
            return Some(Release { at_ns: Some(at_ns), count: 1, is_requested: false });
        }
        _ => {}
    }
    let end = wait + 1 + entries[wait + 1..].iter().position(|entry| entry.kind == EventKind::Resumed)?;
    if let Some(release) = taken.get(thread, wait) {
        return Some(release);
    }
    let (during, end_ns) = (head(entries, wait) + 1..end, entries[end].at_ns);
    let signal = || {
        let Wait::Condition { object } = kind else { return None };
        let from = recording.events.partition_point(|event| event.at_ns < begin.at_ns);
        let events = recording.events[from..].iter().take_while(|event| event.at_ns <= end_ns);
        let is_signal = |kind| kind == EventKind::Signal { object };
        events.filter(|event| event.thread != thread && is_signal(event.kind)).last().map(|event| event.at_ns)
    };
    let find = |is_meant: fn(&EventKind) -> bool| {
        entries[during.clone()].iter().rev().find(|entry| is_meant(&entry.kind)).map(|entry| entry.at_ns)
    };
    let waited = || {
        let woken = || find(|kind| matches!(kind, EventKind::Wakeup { .. }));
        let dispatched = || find(|kind| matches!(kind, EventKind::SwitchIn { .. }));
        // A thread that yields stays ready until its next period, and a barrier opens when the last thread arrives.
        let is_at_end = matches!(kind, Wait::Yield | Wait::Barrier { .. });
        let has_waited = is_at_end || suspended(entries, during.clone());
        has_waited.then(|| woken().or_else(dispatched).unwrap_or(end_ns))
    };
    let expired = entries[wait..end].iter().find_map(|entry| match entry.kind {
        EventKind::Expired { count } => Some(count.max(1)),
        _ => None,
    });
    let at_ns = signal().or_else(waited).map(signed);
    Some(Release { at_ns, count: expired.unwrap_or(1), is_requested: false })
}

/// The wait with which the wait at this index begins: a program that polls several descriptors reads the one that is
/// ready, and waits in the poll.
pub(super) fn head(entries: &[Entry], wait: usize) -> usize {
    let poll_before = || {
        let EventKind::Wait { wait: Wait::Input { .. } | Wait::Timer { .. }, .. } = entries[wait].kind else {
            return None;
        };
        let end = entries[..wait].iter().rposition(|entry| !is_of_kernel(entry.kind))?;
        let is_wait = |entry: &Entry| matches!(entry.kind, EventKind::Wait { .. });
        let begin = entries[..end].iter().rposition(is_wait)?;
        let is_poll = matches!(entries[begin].kind, EventKind::Wait { wait: Wait::Poll { .. }, .. });
        (entries[end].kind == EventKind::Resumed && is_poll).then_some(begin)
    };
    poll_before().unwrap_or(wait)
}

fn is_of_kernel(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::SwitchIn { .. } | EventKind::SwitchOut(_) | EventKind::Wakeup { .. } | EventKind::Boost { .. }
    )
}

/// Whether the thread suspended between these entries. The clock of the switches may differ a little, so that the first
/// switch may seem to be before them.
fn suspended(entries: &[Entry], during: std::ops::Range<usize>) -> bool {
    let is_out = |entry: &&Entry| matches!(entry.kind, EventKind::SwitchOut(_));
    let is_suspension = |entry: &Entry| entry.kind == EventKind::SwitchOut(Stop::Suspended);
    let first = entries[during.clone()]
        .iter()
        .find(|entry| matches!(entry.kind, EventKind::SwitchIn { .. } | EventKind::SwitchOut(_)));
    let was_out = first.is_some_and(|entry| matches!(entry.kind, EventKind::SwitchIn { .. }))
        && entries[..during.start].iter().rev().find(is_out).is_some_and(is_suspension);
    was_out || entries[during].iter().any(is_suspension)
}
