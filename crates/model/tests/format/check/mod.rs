//! The properties of every reader for any input: it returns a system that round-trips, or faults with places inside
//! the source. The tests here and the fuzz targets use them.

use lockwright_model::format::{
    Diagnostic, Diagnostics, Imported, import_cheddar, import_rt_app, import_schedcat, parse_overheads, parse_system,
    parse_system_bytes, write_overheads, write_system,
};
use lockwright_model::{Duration, System};
use std::ops::Deref;

/// The result of an input that was handled correctly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Accepted,
    Refused,
}

/// Checks the readers of task sets on any bytes.
#[allow(dead_code, reason = "a fuzz target reads one kind of file")]
pub fn task_set(bytes: &[u8]) -> Result<Outcome, String> {
    let read = parse_system_bytes(bytes);
    match core::str::from_utf8(bytes) {
        Ok(source) => {
            let again = parse_system(source);
            if again != read {
                return Err("bytes and text are read differently".into());
            }
            outcome(source, read)
        }
        Err(error) => match read {
            Ok(_) => Err("accepted bytes that are not UTF-8".into()),
            Err(faults) => {
                let places: Vec<_> = faults.iter().map(|fault| fault.span.clone()).collect();
                let at = error.valid_up_to();
                if places == [Some(at..at)] { Ok(Outcome::Refused) } else { Err(format!("{places:?} is not {at}")) }
            }
        },
    }
}

/// Checks the reader of rt-app workloads on any text.
#[allow(dead_code, reason = "a fuzz target reads one kind of file")]
pub fn rt_app(source: &str) -> Result<Outcome, String> {
    imported(source, import_rt_app(source))
}

/// Checks the readers of XML on any text.
#[allow(dead_code, reason = "a fuzz target reads one kind of file")]
pub fn xml(source: &str) -> Result<Outcome, String> {
    let schedcat = imported(source, import_schedcat(source, Duration::from_us(1)))?;
    let cheddar = imported(source, import_cheddar(source, Duration::from_us(1)))?;
    match (schedcat, cheddar) {
        (Outcome::Refused, Outcome::Refused) => Ok(Outcome::Refused),
        (Outcome::Accepted, Outcome::Accepted) => Err("one text is a file of both tools".into()),
        _ => Ok(Outcome::Accepted),
    }
}

fn imported(source: &str, imported: Result<Imported, Diagnostics>) -> Result<Outcome, String> {
    if let Ok(imported) = &imported {
        imported.notes.iter().try_for_each(|note| diagnostic(source, note))?;
    }
    outcome(source, imported.map(|imported| imported.system))
}

/// Checks the reader of overheads files on any text.
#[allow(dead_code, reason = "a fuzz target reads one kind of file")]
pub fn overheads(source: &str) -> Result<Outcome, String> {
    match parse_overheads(source) {
        Ok(overheads) => {
            let written = write_overheads(&overheads);
            match parse_overheads(&written) {
                Ok(again) if again == overheads => Ok(Outcome::Accepted),
                _ => Err(format!("does not round-trip:\n{written}")),
            }
        }
        Err(faults) if faults.is_empty() => Err("refused without a fault".into()),
        Err(faults) => {
            faults.iter().try_for_each(|fault| diagnostic(source, fault))?;
            Ok(Outcome::Refused)
        }
    }
}

/// Checks the result of reading `source`.
pub fn outcome(source: &str, read: Result<System, impl Deref<Target = [Diagnostic]>>) -> Result<Outcome, String> {
    match read {
        Ok(system) => {
            let written = write_system(&system);
            match parse_system(&written) {
                Ok(again) if again == system => Ok(Outcome::Accepted),
                Ok(_) => Err(format!("another system is read back:\n{written}")),
                Err(faults) => Err(format!("not read back: {faults:?}\n{written}")),
            }
        }
        Err(faults) if faults.is_empty() => Err("refused without a fault".into()),
        Err(faults) => {
            faults.iter().try_for_each(|fault| diagnostic(source, fault))?;
            let start = |fault: &Diagnostic| fault.span.as_ref().map_or(0, |span| span.start);
            if faults.is_sorted_by_key(start) { Ok(Outcome::Refused) } else { Err("faults out of order".into()) }
        }
    }
}

/// Checks one diagnostic: it has a message, and a place inside the source.
pub fn diagnostic(source: &str, diagnostic: &Diagnostic) -> Result<(), String> {
    if diagnostic.message.is_empty() {
        return Err("a diagnostic without a message".into());
    }
    let Some(span) = &diagnostic.span else { return Ok(()) };
    if source.get(span.clone()).is_none() {
        return Err(format!("{span:?} is not in the source: {diagnostic:?}"));
    }
    match diagnostic.line_column(source) {
        Some((1.., 1..)) => Ok(()),
        other => Err(format!("{span:?} is at {other:?}")),
    }
}
