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
                    postpone(&mut events[next..=unlock], object);
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

/// Moves those that locked the object too early behind the unlock, which is the last event of the slice.
fn postpone(events: &mut [Event], object: ObjectId) {
    let Some(unlock) = events.last().copied() else { return };
    let locks = |event: &&Event| matches!(event.kind, EventKind::Locked { object: its, .. } if its == object);
    let mut early: Vec<ThreadIndex> = events.iter().filter(locks).map(|event| event.thread).collect();
    early.retain(|&thread| thread != unlock.thread);
    for event in events.iter_mut().filter(|event| early.contains(&event.thread)) {
        event.at_ns = event.at_ns.max(unlock.at_ns);
    }
    events.sort_by_key(|event| early.contains(&event.thread));
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::Mode;

    fn event(at_ns: u64, thread: ThreadIndex, kind: EventKind) -> Event {
        Event { at_ns, thread, kind }
    }

    fn locked(at_ns: u64, thread: ThreadIndex) -> Event {
        event(at_ns, thread, EventKind::Locked { object: 7, mode: Mode::Write, site: 0, tried: false })
    }

    fn unlock(at_ns: u64, thread: ThreadIndex) -> Event {
        event(at_ns, thread, EventKind::Unlock { object: 7 })
    }

    #[test]
    fn a_lock_comes_after_the_unlock_before_it() {
        // Thread 1 locks and unlocks, by its stamps, just before thread 0 unlocks.
        let mut events = [locked(100, 0), locked(900, 1), unlock(930, 1), unlock(950, 0), locked(960, 0)];
        settle(&mut events);
        assert_eq!(events, [locked(100, 0), unlock(950, 0), locked(950, 1), unlock(950, 1), locked(960, 0)]);
    }

    #[test]
    fn a_chain_of_early_locks_is_put_in_order() {
        let mut events = [locked(100, 0), locked(900, 1), locked(910, 2), unlock(950, 0), unlock(990, 1)];
        settle(&mut events);
        assert_eq!(events, [locked(100, 0), unlock(950, 0), locked(950, 1), unlock(990, 1), locked(990, 2)]);
    }

    #[test]
    fn what_is_far_apart_or_recursive_stays() {
        let far = [locked(100, 0), locked(900, 1), unlock(900 + EARLY_NS + 1, 0)];
        let recursive = [locked(100, 0), locked(110, 0), unlock(120, 0), unlock(130, 0), locked(140, 1)];
        let mut events = [&far[..], &recursive].map(<[Event]>::to_vec);
        events.iter_mut().for_each(|events| settle(events));
        assert_eq!(events, [&far[..], &recursive]);
    }
}
