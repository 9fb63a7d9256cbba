//! The critical sections of a thread, as it executed them.

use crate::event::EventKind;
use crate::history::{Entry, History};
use crate::recording::{ObjectId, SiteId};
use lockwright_model::Mode;

/// One critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The object that is locked.
    pub(crate) object: ObjectId,
    /// How it is locked.
    pub(crate) mode: Mode,
    /// The place of the lock.
    pub(crate) site: SiteId,
    /// Whether the lock was an attempt.
    pub(crate) tried: bool,
    /// The index of its `Locked` in [`History::entries`].
    pub(crate) first: usize,
    /// The index of its `Unlock`; `None` if the thread holds the object at the end.
    pub(crate) last: Option<usize>,
    /// The innermost section around its begin, as an index into the same list.
    pub(crate) parent: Option<usize>,
    /// The number of sections around its begin.
    pub(crate) depth: usize,
}

impl Held {
    /// The time and the CPU time from the lock to the unlock. `None` for a section without an end.
    pub(crate) fn lengths(&self, entries: &[Entry]) -> Option<(u64, u64)> {
        let (first, last) = (entries[self.first], entries[self.last?]);
        Some((last.at_ns.saturating_sub(first.at_ns), last.cpu_ns.saturating_sub(first.cpu_ns)))
    }
}

/// Returns the critical sections of a thread, in the order of their locks. A lock of an object that the thread holds
/// already belongs to the section that it is in.
pub(crate) fn held(history: &History) -> Vec<Held> {
    let mut sections: Vec<Held> = Vec::new();
    // The open sections, with the number of locks of each.
    let mut open: Vec<(usize, u32)> = Vec::new();
    for (index, entry) in history.entries.iter().enumerate() {
        match entry.kind {
            EventKind::Locked { object, mode, site, tried } => {
                if let Some((_, count)) = open.iter_mut().find(|(place, _)| sections[*place].object == object) {
                    *count += 1;
                    continue;
                }
                let parent = open.last().map(|&(place, _)| place);
                let depth = open.len();
                open.push((sections.len(), 1));
                sections.push(Held { object, mode, site, tried, first: index, last: None, parent, depth });
            }
            EventKind::Unlock { object } => {
                let Some(place) = open.iter().rposition(|&(place, _)| sections[place].object == object) else {
                    continue;
                };
                open[place].1 -= 1;
                if open[place].1 == 0 {
                    sections[open.remove(place).0].last = Some(index);
                }
            }
            _ => {}
        }
    }
    sections
}
