//! Priorities: base priorities of tasks, and the boosted band above all of them.
//!
//! ```text
//!   0 ........ 65 535   base band: what a task-set file may say
//!   65 536 .. 131 071   boosted band: base + 65 536, above every base priority
//! ```

use crate::{Duration, Task};
use alloc::vec::Vec;
use core::fmt;

/// How urgent something is: **greater is more urgent**, everywhere in Lockwright.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u32);

/// Distance of the boosted band from the base band.
const BOOST: u32 = 1 << 16;

impl Priority {
    /// The least urgent priority.
    pub const MIN: Self = Self(0);
    /// The most urgent base priority a task may have.
    pub const BASE_MAX: Self = Self(BOOST - 1);

    /// A base priority.
    ///
    /// # Panics
    /// Above [`Priority::BASE_MAX`].
    #[must_use]
    pub const fn base(level: u32) -> Self {
        assert!(level < BOOST, "a base priority has 16 bits");
        Self(level)
    }

    /// The same urgency in the boosted band: above every base priority, ordered as the base priorities are.
    #[must_use]
    pub const fn boosted(self) -> Self {
        Self(self.0 | BOOST)
    }

    /// Whether this lies in the boosted band.
    #[must_use]
    pub const fn is_boosted(self) -> bool {
        self.0 >= BOOST
    }

    /// The level inside its band, as a task-set file writes it.
    #[must_use]
    pub const fn level(self) -> u32 {
        self.0 & (BOOST - 1)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_boosted() {
            f.write_str("boosted ")?;
        }
        write!(f, "{}", self.level())
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P({self})")
    }
}

/// Gives every task a priority of its own, the shorter period the more urgent; among equal periods the
/// earlier task is the more urgent. Levels run from the number of tasks down to 1.
pub fn assign_rate_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| task.period);
}

/// As [`assign_rate_monotonic`], by relative deadline.
pub fn assign_deadline_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| task.deadline);
}

fn assign_by(tasks: &mut [Task], key: impl Fn(&Task) -> Duration) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| (key(&tasks[task]), task));
    for (rank, &task) in order.iter().enumerate() {
        tasks[task].priority = Priority::base((tasks.len() - rank) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_boosted_priority_is_above_every_base_priority() {
        assert!(Priority::base(0).boosted() > Priority::BASE_MAX);
        assert!(Priority::base(3).boosted() > Priority::base(2).boosted());
        assert_eq!(Priority::base(7).boosted().boosted(), Priority::base(7).boosted());
        assert_eq!(Priority::base(7).boosted().level(), 7);
    }
}
