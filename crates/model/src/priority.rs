//! Priorities: the base priorities of tasks, and the boosted band above all of them.
//!
//! ```text
//!   0 ........ 65 535   base band: the levels that a task-set file may use
//!   65 536 .. 131 071   boosted band: base + 65 536, above every base priority
//!   above               non-preemptive
//! ```

use core::fmt;

/// A priority. **A greater priority is more urgent**, everywhere in Lockwright.
///
/// Each level is stored as an even number. The odd number above it is the same level [raised](Priority::raised).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u32);

/// The number of levels of a band.
const LEVELS: u32 = 1 << 16;
/// The distance of the boosted band from the base band.
const BOOST: u32 = 2 * LEVELS;

impl Priority {
    /// The least urgent priority.
    pub const MIN: Self = Self(0);
    /// The most urgent base priority a task may have.
    pub const BASE_MAX: Self = Self(BOOST - 2);

    /// A priority above the boosted band. A job that has it is not preempted.
    pub const NON_PREEMPTIVE: Self = Self(2 * BOOST);

    /// Returns the base priority of `level`.
    ///
    /// # Panics
    /// Panics if `level` is above 65 535, the level of [`Priority::BASE_MAX`].
    #[must_use]
    pub const fn base(level: u32) -> Self {
        assert!(level < LEVELS, "a base priority has 16 bits");
        Self(2 * level)
    }

    /// Returns the same level in the boosted band. Boosted priorities are above every base priority, and are ordered
    /// as the base priorities are.
    #[must_use]
    pub const fn boosted(self) -> Self {
        Self(self.0 | BOOST)
    }

    /// Returns whether this priority lies in the boosted band.
    #[must_use]
    pub const fn is_boosted(self) -> bool {
        self.0 >= BOOST && self.0 < 2 * BOOST
    }

    /// Returns the level inside the band, as a task-set file writes it.
    #[must_use]
    pub const fn level(self) -> u32 {
        (self.0 & (BOOST - 1)) / 2
    }

    /// Returns the priority just above this one and below the next level.
    #[must_use]
    pub const fn raised(self) -> Self {
        Self(self.0 | 1)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NON_PREEMPTIVE {
            return f.write_str("not preempted");
        }
        if self.is_boosted() {
            f.write_str("boosted ")?;
        }
        write!(f, "{}", self.level())?;
        if self.0 % 2 == 1 { f.write_str("+") } else { Ok(()) }
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_is_between_levels() {
        let raised = Priority::base(7).raised();
        assert!(Priority::base(7) < raised && raised < Priority::base(8));
        assert_eq!((raised.level(), raised.raised()), (7, raised));
        assert_eq!(format!("{raised}"), "7+");
    }

    #[test]
    fn every_boosted_priority_is_above_every_base_priority() {
        assert!(Priority::base(0).boosted() > Priority::BASE_MAX);
        assert!(Priority::base(3).boosted() > Priority::base(2).boosted());
        assert_eq!(Priority::base(7).boosted().boosted(), Priority::base(7).boosted());
        assert_eq!(Priority::base(7).boosted().level(), 7);
        assert!(Priority::NON_PREEMPTIVE > Priority::BASE_MAX.boosted().raised());
        assert!(Priority::BASE_MAX.raised() < Priority::MIN.boosted());
    }
}
