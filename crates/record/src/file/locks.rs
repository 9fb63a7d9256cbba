//! Puts locks after the unlocks that they waited for.
//!
//! A processor may read its counter before an earlier instruction has completed. So the stamp of a lock can be a little
//! earlier than that of the unlock by which it became possible, on another processor. The unlock's stamp is never too
//! late, because the counter is read before the unlock can be seen.

use crate::event::{Event, EventKind};
use crate::recording::{ObjectId, ThreadIndex};
use std::collections::HashMap;

/// The most by which a stamp is too early: far more than an access to memory takes.
const EARLY_NS: u64 = 2_000;

/// Corrects the order of events.
pub(super) fn settle(events: &mut [Event]) {
    let mut writers: HashMap<ObjectId, (ThreadIndex, u32)> = HashMap::new();
    let mut next = 0;
    // BOUND: each round advances, or moves a lock behind an unlock, which does not come before it again.
    while let Some(&event) = events.get(next) {
        match event.kind {
            EventKind::Locked { object, mode, .. } => {
                let holder = writers.get(&object).copied().filter(|&(thread, _)| thread != event.thread);
                if let Some((holder, _)) = holder
                    && let Some(unlock) = unlock_after(events, next, holder, object)
                {
                    postpone(&mut events[next..=unlock], event.thread);
                    continue;
                }
                if mode == crate::Mode::Write {
                    let depth = writers.get(&object).map_or(0, |&(_, depth)| if holder.is_some() { 0 } else { depth });
                    writers.insert(object, (event.thread, depth + 1));
                }
            }
            EventKind::Unlock { object } => match writers.get_mut(&object) {
                Some((thread, depth)) if *thread == event.thread && *depth > 1 => *depth -= 1,
                _ => {
                    writers.remove(&object);
                }
            },
            _ => {}
        }
        next += 1;
    }
}

/// Returns where the holder unlocks the object soon.
fn unlock_after(events: &[Event], from: usize, holder: ThreadIndex, object: ObjectId) -> Option<usize> {
    let until_ns = events[from].at_ns.saturating_add(EARLY_NS);
    let soon = events[from..].iter().take_while(|event| event.at_ns <= until_ns);
    let is_it = |event: &Event| event.thread == holder && event.kind == EventKind::Unlock { object };
    soon.enumerate().filter(|(_, event)| is_it(event)).map(|(index, _)| from + index).next()
}

/// Moves the events of a thread behind the last one of the slice.
fn postpone(events: &mut [Event], thread: ThreadIndex) {
    let Some(at_ns) = events.last().map(|event| event.at_ns) else { return };
    for event in events.iter_mut().filter(|event| event.thread == thread) {
        event.at_ns = event.at_ns.max(at_ns);
    }
    events.sort_by_key(|event| event.thread == thread);
}
