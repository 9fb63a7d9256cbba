//! Single values: texts, whole numbers, durations, words of a fixed list.

use super::{Diagnostic, Faults, Found, shown};
use crate::format::diagnostic::nearest;
use crate::{Duration, DurationError, Priority};
use toml::de::DeValue;

impl Found<'_, '_> {
    /// Reads a text.
    pub fn text(&self, what: &str, faults: &mut Faults) -> Option<String> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                faults.push(self.mistyped(what, "a string").help("put it in quotes"));
                None
            }
        }
    }

    /// Reads true or false.
    pub fn yes_or_no(&self, what: &str, faults: &mut Faults) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(yes) => Some(*yes),
            _ => {
                faults.push(self.mistyped(what, "true or false").help("write true or false, without quotes"));
                None
            }
        }
    }

    /// Reads a whole number from `least` to `most`.
    pub fn integer(&self, what: &str, least: u64, most: u64, faults: &mut Faults) -> Option<u64> {
        let DeValue::Integer(integer) = self.value.get_ref() else {
            let fault = self.mistyped(what, "a whole number");
            faults.push(fault.help(format!("write a number from {least} to {most}, without quotes")));
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let inside = number.filter(|number| (least..=most).contains(number));
        if inside.is_none() {
            let fault = Diagnostic::new(format!("{what} is {}", shown(&integer.to_string()))).at(self.span());
            faults.push(fault.help(format!("it must be from {least} to {most}")));
        }
        inside
    }

    pub(super) fn priority(&self, what: &str, faults: &mut Faults) -> Option<Priority> {
        let most = u64::from(Priority::BASE_MAX.level());
        self.integer(what, 0, most, faults).map(|level| Priority::base(level as u32))
    }

    /// Reads a number from `least` to `most`, with or without decimals.
    pub fn number(&self, what: &str, least: f64, most: f64, faults: &mut Faults) -> Option<f64> {
        let (text, number) = match self.value.get_ref() {
            DeValue::Integer(integer) => {
                let whole = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                (integer.to_string(), whole.map(|whole| whole as f64))
            }
            DeValue::Float(float) => (float.to_string(), float.as_str().parse().ok()),
            _ => {
                let fault = self.mistyped(what, "a number");
                faults.push(fault.help(format!("write a number from {least} to {most}, without quotes")));
                return None;
            }
        };
        let inside = number.filter(|number| (least..=most).contains(number));
        if inside.is_none() {
            let fault = Diagnostic::new(format!("{what} is {}", shown(&text))).at(self.span());
            faults.push(fault.help(format!("it must be from {least} to {most}")));
        }
        inside
    }

    /// Reads a duration: a text with a unit.
    pub fn duration(&self, what: &str, faults: &mut Faults) -> Option<Duration> {
        let fault = match self.value.get_ref() {
            DeValue::String(text) => match Duration::parse(text) {
                Ok(duration) => return Some(duration),
                Err(DurationError::NoNumber) if text.trim_start().starts_with('-') => {
                    Diagnostic::new(format!("{what} is negative")).help("a duration is at least 0")
                }
                Err(error) => {
                    Diagnostic::new(format!("{what}, {}, is not a duration", shown(text))).help(error.to_string())
                }
            },
            DeValue::Integer(integer) => Diagnostic::new(format!("{what} has no unit"))
                .help(format!("write it with a unit, in quotes, such as \"{} us\"", cut(&integer.to_string()))),
            DeValue::Float(float) => match Duration::parse(float.as_str()) {
                Err(error @ (DurationError::NotFinite | DurationError::Exponent)) => {
                    Diagnostic::new(format!("{what}, {}, is not a duration", shown(float.as_str())))
                        .help(error.to_string())
                }
                _ => Diagnostic::new(format!("{what} has no unit"))
                    .help(format!("write it with a unit, in quotes, such as \"{} ms\"", cut(float.as_str()))),
            },
            _ => self.mistyped(what, "a duration").help("a duration is a string, for example \"10 ms\""),
        };
        faults.push(fault.at(self.span()));
        None
    }

    /// Reads one word of a fixed list, and returns its meaning.
    pub fn one_of<T: Copy>(
        &self,
        kind: &str,
        what: &str,
        words: &[(&'static str, T)],
        faults: &mut Faults,
    ) -> Option<T> {
        let text = self.text(what, faults)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let valid: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let fault = Diagnostic::new(format!("there is no {kind} {}", shown(&text))).at(self.span());
        faults.push(match (nearest(&text, valid.iter().copied()), valid.as_slice()) {
            (Some(near), _) => fault.help(format!("did you mean `{near}`?")),
            (None, [only]) => fault.help(format!("only `{only}` is supported so far")),
            (None, _) => fault.help(format!("it is one of {}", valid.join(", "))),
        });
        None
    }
}

/// Returns a number without its sign for a help text, or "10" if it is too long.
fn cut(number: &str) -> &str {
    if number.len() <= 20 { number.trim_start_matches(['-', '+']) } else { "10" }
}
