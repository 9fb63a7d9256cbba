//! Parsers of option values.

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use lockwright_model::{Duration, Instant};
use lockwright_report::Window;
use std::ops::RangeInclusive;

/// One of these values: its name, its help and what it means.
pub fn one_of<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (&'static str, &'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<_> = values.into_iter().collect();
    let names = values.iter().map(|&(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(move |word| {
        let known = values.iter().find(|(name, ..)| *name == word);
        known.map(|(.., value)| value.clone()).ok_or("not one of the possible values")
    })
}

/// A whole number from 1 to `most`.
pub fn up_to<T: TryFrom<u64> + Clone + Send + Sync>(most: u64) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(1..=most)
}

/// A duration as in task-set files; 0 is refused.
pub fn duration(text: &str) -> Result<Duration, String> {
    match Duration::parse(text) {
        Ok(Duration::ZERO) => Err("it must be longer than 0".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// A part of a schedule: two durations since its start, with `..` between them.
pub fn window(text: &str) -> Result<Window, String> {
    let Some((from, until)) = text.split_once("..") else {
        return Err("it must be two times with `..` between them, for example 100ms..200ms".into());
    };
    let at = |text: &str| {
        let time = Duration::parse(text).map_err(|error| format!("`{}`: {error}", text.trim()))?;
        Ok::<_, String>(Instant::from_ns(time.as_ns()))
    };
    let window = Window { from: at(from)?, until: at(until)? };
    if window.from < window.until { Ok(window) } else { Err("the second time must be later than the first".into()) }
}

/// A task and the number of one of its jobs, from 1, with `:` between them. The name may contain `:`.
pub fn job(text: &str) -> Result<(String, usize), String> {
    let (task, number) = text.rsplit_once(':').ok_or("it must be a task and a number, for example control:3")?;
    match number.parse() {
        Ok(number) if number > 0 => Ok((task.to_owned(), number)),
        _ => Err(format!("`{number}` is not the number of a job; the first job is 1")),
    }
}

/// A duration in a range, which `words` names.
pub fn duration_in(
    range: RangeInclusive<Duration>,
    words: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let time = duration(text)?;
        if range.contains(&time) { Ok(time) } else { Err(format!("it must be from {words}")) }
    }
}

/// A decimal number in a range, in this unit.
pub fn number_in(range: RangeInclusive<f64>, unit: &'static str) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.trim().parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(_) => Err(format!("it must be from {} to {} {unit}", range.start(), range.end())),
        Err(_) => Err("it must be a number, for example 0.5".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_the_file() {
        assert_eq!(duration("500 ms"), Ok(Duration::from_ms(500)));
        assert!(duration("10").is_err_and(|error| error.contains("unit")));
        assert!(duration("0 s").is_err());
        let short = duration_in(Duration::from_ns(1)..=Duration::from_ms(10), "1 ns to 10 ms");
        assert_eq!(short("10 ms"), Ok(Duration::from_ms(10)));
        assert_eq!(short("11 ms"), Err("it must be from 1 ns to 10 ms".into()));
    }

    #[test]
    fn a_window_has_two_ends() {
        let read = window("100 ms..200ms").expect("a window");
        assert_eq!((read.from.as_ns(), read.until.as_ns()), (100_000_000, 200_000_000));
        assert!(window("0ns..1us").is_ok());
        for text in ["100ms", "2ms..1ms", "1ms..1ms", "1..2", "..5ms"] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_job_has_a_task_and_a_number() {
        assert_eq!(job("control:3"), Ok(("control".into(), 3)));
        assert_eq!(job("a:b:1"), Ok(("a:b".into(), 1)));
        for text in ["control", "control:", "control:0", "control:-1", "control:x"] {
            assert!(job(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_positive_and_finite() {
        let rate = number_in(0.001..=10.0, "bursts");
        assert_eq!((rate("0.01"), rate(" 1")), (Ok(0.01), Ok(1.0)));
        for wrong in ["0", "-1", "inf", "NaN", "1e-9", "1e9", "fast", ""] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
