//! The time axis: the positions and labels of its ticks.

use crate::Window;

/// The units and their lengths in nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A time axis with ticks at round numbers of a unit.
pub struct Axis {
    /// The unit of all labels.
    pub unit: &'static str,
    /// The position of each tick in nanoseconds, and its label.
    pub ticks: Vec<(u64, String)>,
}

impl Axis {
    /// An axis with at most `most` ticks, which are 1, 2 or 5 times a power of ten apart. `most` is at least 2.
    pub fn new(window: Window, most: u64) -> Self {
        let (from, until) = (window.from.as_ns(), window.until.as_ns());
        let length = until - from;
        let mut step = 1_u64;
        let mut factors = [2, 5, 10].into_iter().cycle();
        let mut decade = 1_u64;
        // BOUND: 64 bits have 20 decades of three steps.
        while length / step > most.saturating_sub(1) {
            let Some(factor) = factors.next() else { break };
            let Some(next) = decade.checked_mul(factor) else { break };
            step = next;
            if factor == 10 {
                decade = next;
            }
        }
        // The largest unit in which the step is a whole number.
        let (unit, size) = UNITS.into_iter().find(|&(_, size)| step.is_multiple_of(size)).unwrap_or(("ns", 1));
        let first = from.div_ceil(step).checked_mul(step);
        let ticks = std::iter::successors(first, |at| at.checked_add(step)).take_while(|&at| at <= until);
        Self { unit, ticks: ticks.map(|at| (at, (at / size).to_string())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::Instant;

    #[test]
    fn steps_are_round() {
        let labels = |from: u64, until: u64, most| {
            let axis = Axis::new(Window { from: Instant::from_ns(from), until: Instant::from_ns(until) }, most);
            (axis.unit, axis.ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(labels(100_000_000, 200_000_000, 6), ("ms", "100 120 140 160 180 200".into()));
        assert_eq!(labels(95_000_000, 205_000_000, 4), ("ms", "100 150 200".into()));
        assert_eq!(labels(0, 9, 10), ("ns", "0 1 2 3 4 5 6 7 8 9".into()));
        assert_eq!(labels(0, 5_000_000_000, 3), ("s", "0 2 4".into()));
        assert_eq!(labels(3, 4, 2), ("ns", "3 4".into()));
        assert!(!labels(u64::MAX - 10, u64::MAX, 4).1.is_empty());
    }
}
