//! The points of the horizontal axes, and the methods at each.

use super::sets::Parameters;
use super::tables::{Edf, Object};

/// The greatest number of methods of a cell.
pub(super) const METHODS: usize = 6;

/// A point of the horizontal axis of some curves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cell {
    /// Sets whose schedulability or tardiness is tested.
    Tests {
        /// The parameters of the sets.
        parameters: Parameters,
        /// The type of all objects, or `None` for locks.
        object: Option<Object>,
        /// The working set of each task in KiB. It decides on the costs of caches, and not on the sets.
        working_set: u32,
    },
    /// Sets that leave time for background jobs.
    Background {
        /// The percentage of the execution that is in sections.
        share: u32,
    },
}

impl Cell {
    /// Returns the schedulers and the names of the methods, in the order of the tallies.
    #[must_use]
    pub fn methods(&self) -> &'static [(Edf, &'static str)] {
        const LOCKS: [(Edf, &str); 4] = [
            (Edf::Global, "G-EDF short"),
            (Edf::Global, "G-EDF long"),
            (Edf::Partitioned, "P-EDF short"),
            (Edf::Partitioned, "P-EDF long"),
        ];
        const OBJECTS: [(Edf, &str); METHODS] = [
            (Edf::Global, "G-EDF spin"),
            (Edf::Global, "G-EDF lock-free"),
            (Edf::Global, "G-EDF wait-free"),
            (Edf::Partitioned, "P-EDF spin"),
            (Edf::Partitioned, "P-EDF lock-free"),
            (Edf::Partitioned, "P-EDF wait-free"),
        ];
        const BACKGROUND: [(Edf, &str); METHODS] = [
            (Edf::Global, "spin, 1 resource"),
            (Edf::Global, "spin, 2 resources"),
            (Edf::Global, "spin, 4 resources"),
            (Edf::Global, "suspend, 1 resource"),
            (Edf::Global, "suspend, 2 resources"),
            (Edf::Global, "suspend, 4 resources"),
        ];
        match self {
            Self::Tests { object: None, .. } => &LOCKS,
            Self::Tests { object: Some(_), .. } => &OBJECTS,
            Self::Background { .. } => &BACKGROUND,
        }
    }
}
