//! Formatting of times, shares and counts.

use lockwright_model::Duration;

/// The unit of all times of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// Greatest number of decimals in a table.
const DECIMALS_MAX: usize = 3;

impl Unit {
    /// The largest unit in which the least of `times` (a table's execution times) is at least a tenth.
    #[must_use]
    pub fn fitting(times: impl IntoIterator<Item = Duration>) -> Self {
        let least = times.into_iter().filter(|&time| time > Duration::ZERO).min().unwrap_or_default().as_ns();
        [Self::S, Self::Ms, Self::Us].into_iter().find(|unit| least >= unit.ns() / 10).unwrap_or(Self::Ns)
    }

    /// Nanoseconds of one.
    #[must_use]
    pub const fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// As written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    /// How many decimals `ns` needs in this unit, at most three.
    #[must_use]
    pub fn decimals(self, ns: i64) -> usize {
        let thousandths = self.thousandths(ns, Round::Up).unsigned_abs();
        match self {
            Self::Ns => 0,
            _ => (0..DECIMALS_MAX)
                .find(|&n| thousandths.is_multiple_of(10_u64.pow((DECIMALS_MAX - n) as u32)))
                .unwrap_or(3),
        }
    }

    /// `ns` in this unit with this number of decimals: at least [`Unit::decimals`], at most three.
    #[must_use]
    pub fn format(self, ns: i64, decimals: usize, round: Round) -> String {
        if self == Self::Ns {
            return ns.to_string();
        }
        let thousandths = self.thousandths(ns, round);
        let sign = if thousandths < 0 { "-" } else { "" };
        let (whole, part) = (thousandths.unsigned_abs() / 1000, thousandths.unsigned_abs() % 1000);
        let part = format!("{part:03}");
        match decimals.min(DECIMALS_MAX) {
            0 => format!("{sign}{whole}"),
            decimals => format!("{sign}{whole}.{}", &part[..decimals]),
        }
    }

    fn thousandths(self, ns: i64, round: Round) -> i64 {
        let step = (self.ns() / 1000).max(1) as i64;
        let down = ns.div_euclid(step);
        match round {
            Round::Down => down,
            Round::Up => down + i64::from(ns.rem_euclid(step) != 0),
        }
    }
}

/// Direction of rounding: always the pessimistic one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// For times: up.
    Up,
    /// For slacks: down.
    Down,
}

/// A duration with its unit, rounded up to at most three decimals.
#[must_use]
pub fn text(time: Duration) -> String {
    signed(i64::try_from(time.as_ns()).unwrap_or(i64::MAX))
}

/// A slack with its unit, rounded down to at most three decimals.
#[must_use]
pub fn slack(ns: i64) -> String {
    with_unit(ns, Round::Down)
}

fn signed(ns: i64) -> String {
    with_unit(ns, Round::Up)
}

fn with_unit(ns: i64, round: Round) -> String {
    let size = ns.unsigned_abs();
    let unit = [Unit::S, Unit::Ms, Unit::Us].into_iter().find(|unit| size >= unit.ns()).unwrap_or(Unit::Ns);
    let decimals = match unit.format(ns, DECIMALS_MAX, round).split_once('.') {
        Some((_, part)) => part.trim_end_matches('0').len(),
        None => 0,
    };
    format!("{} {}", unit.format(ns, decimals, round), unit.name())
}

/// A share, such as a utilization, as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A count of things: "1 task", "7 tasks".
#[must_use]
pub fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_follows_the_least_execution_time() {
        let cases = [
            (&[10_000_000, 23_000_000][..], Unit::Ms),
            (&[100_000], Unit::Ms),
            (&[99_999], Unit::Us),
            (&[20], Unit::Ns),
            (&[], Unit::Ns),
        ];
        for (times, unit) in cases {
            assert_eq!(Unit::fitting(times.iter().map(|&ns| Duration::from_ns(ns))), unit, "{times:?}");
        }
    }

    #[test]
    fn rounding_is_pessimistic() {
        assert_eq!(Unit::Ms.format(1_000_001, 3, Round::Up), "1.001");
        assert_eq!(Unit::Ms.format(1_999_999, 3, Round::Down), "1.999");
        assert_eq!(Unit::Ms.format(-1, 3, Round::Down), "-0.001");
        assert_eq!(Unit::Us.format(-1_500, 1, Round::Down), "-1.5");
        assert_eq!(Unit::Ns.format(-15, 0, Round::Down), "-15");
        assert_eq!((Unit::Ms.decimals(43_000_000), Unit::Ms.decimals(500_000), Unit::Ms.decimals(1)), (0, 1, 3));
    }

    #[test]
    fn text_is_short() {
        assert_eq!(text(Duration::from_ms(43)), "43 ms");
        assert_eq!(text(Duration::from_ns(43_120_001)), "43.121 ms");
        assert_eq!(text(Duration::ZERO), "0 ns");
        assert_eq!(slack(-1_500_000), "-1.5 ms");
        assert_eq!(slack(7_000_000), "7 ms");
    }
}
