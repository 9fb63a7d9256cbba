//! Time in integer nanoseconds.

use core::fmt;
use core::str::FromStr;

/// The longest duration that a system may name: 10^15 ns, about eleven and a half days. Sums over
/// [`TASKS_MAX`](crate::TASKS_MAX) tasks fit into 64 bits.
pub const DURATION_MAX: Duration = Duration::from_ns(1_000_000_000_000_000);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time, in nanoseconds since the system's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// The reason why a text is not a duration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DurationError {
    /// The text has no number.
    NoNumber,
    /// The number has no unit.
    NoUnit,
    /// The unit is not one of `ns`, `us`, `µs`, `ms`, `s`, `sec`, `min` and `h`.
    UnknownUnit,
    /// The number has an exponent, such as `1e3`.
    Exponent,
    /// The text is `nan` or `inf`.
    NotFinite,
    /// The duration is not a whole number of nanoseconds.
    BelowNanosecond,
    /// The duration is longer than [`DURATION_MAX`].
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "a duration is a number and a unit, such as \"15 us\"",
            Self::NoUnit => "a duration needs a unit: ns, us, ms, s, min or h",
            Self::UnknownUnit => "the units of a duration are ns, us, ms, s, min and h",
            Self::Exponent => "write the number without an exponent, such as \"1000 ms\" for 1e3 ms",
            Self::NotFinite => "a duration is a finite number and a unit, such as \"15 us\"",
            Self::BelowNanosecond => "a duration is a whole number of nanoseconds",
            Self::TooLong => "a duration is at most 10^15 ns (eleven and a half days)",
        })
    }
}

impl core::error::Error for DurationError {}

const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("sec", 1_000_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Returns whether `unit`, the text behind a number, begins with an exponent, such as `e3 ms` or `E-3ms`.
fn is_exponent(unit: &str) -> bool {
    let power = unit.strip_prefix(['e', 'E']).map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
    power.is_some_and(|power| power.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether the text begins with `nan` or `inf`, in any case and with any sign.
fn is_not_finite(text: &str) -> bool {
    let word = text.trim_start_matches(['+', '-']);
    ["nan", "inf"].iter().any(|name| word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

impl Duration {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);

    /// Returns a duration of `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns a duration of `us` microseconds.
    ///
    /// # Panics
    /// Panics if the number of nanoseconds does not fit into 64 bits.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Returns a duration of `ms` milliseconds.
    ///
    /// # Panics
    /// Panics if the number of nanoseconds does not fit into 64 bits.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Returns the duration in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the sum, or `None` if it does not fit into 64 bits.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// Returns the difference, or `None` if it is below zero.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// Returns the difference, or zero if it is below zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the product, or `None` if it does not fit into 64 bits.
    #[must_use]
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// Reads a duration as a task-set file writes it: a decimal number and a unit, such as `"15 us"` or `"1.5ms"`.
    ///
    /// # Errors
    /// Returns the reason why the text is not a duration.
    ///
    /// # Examples
    /// ```
    /// use lockwright_model::Duration;
    /// assert_eq!(Duration::parse("1.5 ms"), Ok(Duration::from_us(1_500)));
    /// assert!(Duration::parse("15").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim());
        if is_not_finite(text) {
            return Err(DurationError::NotFinite);
        }
        if !number.contains(|c: char| c.is_ascii_digit()) || number.starts_with('_') {
            return Err(DurationError::NoNumber);
        }
        if is_exponent(unit) {
            return Err(DurationError::Exponent);
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit);
        }
        let scale =
            UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns).ok_or(DurationError::UnknownUnit)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        if decimals.contains('.') {
            return Err(DurationError::NoNumber);
        }
        let mut ns: u64 = 0;
        for digit in whole.bytes().filter(u8::is_ascii_digit) {
            ns = ns
                .checked_mul(10)
                .and_then(|ns| ns.checked_add(u64::from(digit - b'0')))
                .ok_or(DurationError::TooLong)?;
        }
        ns = ns.checked_mul(scale).ok_or(DurationError::TooLong)?;
        let mut rest = scale;
        for digit in decimals.bytes().filter(u8::is_ascii_digit) {
            // `rest` is the worth in nanoseconds of one unit of the previous decimal place. If it is not a multiple of
            // ten, only zeros may follow.
            if rest % 10 != 0 {
                if digit != b'0' {
                    return Err(DurationError::BelowNanosecond);
                }
                continue;
            }
            rest /= 10;
            ns = ns.checked_add(rest * u64::from(digit - b'0')).ok_or(DurationError::TooLong)?;
        }
        if ns > DURATION_MAX.0 {
            return Err(DurationError::TooLong);
        }
        Ok(Self(ns))
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    /// Reads a duration as [`Duration::parse`] does.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        Self::parse(text)
    }
}

impl Instant {
    /// The start of the system.
    pub const ZERO: Self = Self(0);

    /// Returns the instant `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the start.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this instant, or zero if this instant is not later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant `duration` later, or `None` if it does not fit into 64 bits.
    #[must_use]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.0.checked_add(duration.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration.0)
    }
}

impl core::ops::Add for Duration {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl core::ops::AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl core::ops::Sub for Duration {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl core::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(durations: I) -> Self {
        Self(durations.map(|duration| duration.0).sum())
    }
}

impl fmt::Display for Duration {
    /// Writes the duration exactly, in the largest unit that leaves at least one whole: `43 ms`, `1.5 us`, `0 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        write!(f, "{}", self.0 / scale)?;
        let mut rest = self.0 % scale;
        if rest != 0 {
            f.write_str(".")?;
            let mut digit = scale / 10;
            while rest != 0 {
                write!(f, "{}", rest / digit)?;
                rest %= digit;
                digit /= 10;
            }
        }
        write!(f, " {unit}")
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Duration(self.0), f)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_units_are_read() {
        let cases = [
            ("15 us", 15_000),
            ("15us", 15_000),
            (" 1.5 ms ", 1_500_000),
            ("0.001 us", 1),
            ("2 s", 2_000_000_000),
            ("1 min", 60_000_000_000),
            ("0.5 min", 30_000_000_000),
            ("2 h", 7_200_000_000_000),
            ("0.25h", 900_000_000_000),
            ("3 µs", 3_000),
            ("1_000 ns", 1_000),
            ("1.50000000000000 us", 1_500),
        ];
        for (text, ns) in cases {
            assert_eq!(Duration::parse(text), Ok(Duration(ns)), "{text}");
        }
    }

    #[test]
    fn malformed_durations_are_refused_with_a_reason() {
        let cases = [
            ("", DurationError::NoNumber),
            ("ms", DurationError::NoNumber),
            (".", DurationError::NoNumber),
            ("1.2.3 ms", DurationError::NoNumber),
            ("-3 ms", DurationError::NoNumber),
            ("15", DurationError::NoUnit),
            ("15 parsec", DurationError::UnknownUnit),
            ("1e3 ms", DurationError::Exponent),
            ("1.5E-3s", DurationError::Exponent),
            ("1 e", DurationError::UnknownUnit),
            ("nan", DurationError::NotFinite),
            ("nan ms", DurationError::NotFinite),
            ("-inf s", DurationError::NotFinite),
            ("Infinity", DurationError::NotFinite),
            ("0.5 ns", DurationError::BelowNanosecond),
            ("99999999999999999999 s", DurationError::TooLong),
            ("10000000000 s", DurationError::TooLong),
        ];
        for (text, error) in cases {
            assert_eq!(Duration::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn display_is_exact_and_reads_back() {
        for ns in [0, 1, 999, 1_000, 1_001, 15_000, 1_500_000, 43_000_000, 2_000_000_000, 1_234_567_891] {
            let text = Duration(ns).to_string();
            assert_eq!(text.parse(), Ok(Duration(ns)), "{text}");
        }
    }
}
