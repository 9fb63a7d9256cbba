//! Published examples of analyses, input and expected result, and this library held against them.
//!
//! `examples/` holds what other programs answered, each with its source. An example names an analysis; [`analyses`] has what the library
//! answers in its place. Files of others in the same format are read alike: `cargo xtask vectors DIR`.
//!
//! ```text
//!   { "schema": "rt-analysis-vectors/1", "vectors": [ { "id", "analysis", "input", "expected", "source" }, .. ] }
//! ```
//! Times are integers in one unit. A smaller number is the more urgent priority, but where an analysis says otherwise.
#![forbid(unsafe_code)]

mod blocking;
mod compare;
mod global;
mod input;
mod linear;
mod overheads;
mod uniprocessor;
mod work;

pub use compare::{Closeness, difference};
pub use input::{Input, Malformed, Vector, read};
pub use work::Work;

/// One analysis that examples name.
pub struct Analysis {
    /// As examples name it.
    pub id: &'static str,
    /// The library's computation of it on this input, read but not begun.
    pub prepare: fn(&Input) -> Result<Work, Malformed>,
    /// How close the answers have to be.
    pub closeness: Closeness,
}

/// An example whose expected result is wrong, or where the library gives another on purpose.
pub struct Departure {
    /// The example.
    pub id: &'static str,
    /// What the library answers is never below, or never above, what is expected: see [`Closeness`].
    pub closeness: Closeness,
    /// Why.
    pub why: &'static str,
}

/// All analyses that are known.
pub fn analyses() -> impl Iterator<Item = &'static Analysis> {
    [uniprocessor::ANALYSES, global::ANALYSES, blocking::ANALYSES, linear::ANALYSES, overheads::ANALYSES]
        .into_iter()
        .flatten()
}

/// Where the library departs from an example on purpose.
pub fn departures() -> impl Iterator<Item = &'static Departure> {
    [uniprocessor::DEPARTURES, global::DEPARTURES, blocking::DEPARTURES, linear::DEPARTURES, overheads::DEPARTURES]
        .into_iter()
        .flatten()
}

/// Holds the library against one example: `Ok(None)` where it answers what is expected, else the first difference.
///
/// # Errors
/// Where nobody knows the analysis, or the input is not one for it.
pub fn check(vector: &Vector) -> Result<Option<String>, Malformed> {
    let analysis = analyses().find(|analysis| analysis.id == vector.analysis);
    let analysis = analysis.ok_or_else(|| Malformed(format!("no analysis is called `{}`", vector.analysis)))?;
    let departure = departures().find(|departure| departure.id == vector.id);
    let closeness = departure.map_or(analysis.closeness, |departure| departure.closeness);
    Ok(difference(&vector.expected, &(analysis.prepare)(&vector.input)?.answer(), closeness))
}
