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
mod source;
mod uniprocessor;
mod work;

pub use compare::{Closeness, difference};
pub use input::{Input, Malformed, Vector, read};
pub use work::Work;

use serde_json::Value;
use source::{Answers, DEFECTS, Defect};

/// One analysis that examples name.
pub struct Analysis {
    /// As examples name it.
    pub id: &'static str,
    /// The library's computation of it on this input, read but not begun.
    pub prepare: fn(&Input) -> Result<Work, Malformed>,
    /// How close the answers have to be.
    pub closeness: Closeness,
}

/// All analyses that are known.
pub fn analyses() -> impl Iterator<Item = &'static Analysis> {
    [uniprocessor::ANALYSES, global::ANALYSES, blocking::ANALYSES, linear::ANALYSES, overheads::ANALYSES]
        .into_iter()
        .flatten()
}

/// What the library answers to an example.
///
/// # Errors
/// Where nobody knows the analysis, or the input is not one for it.
pub fn answer(vector: &Vector) -> Result<Value, Malformed> {
    Ok((analysis(vector)?.prepare)(&vector.input)?.answer())
}

fn analysis(vector: &Vector) -> Result<&'static Analysis, Malformed> {
    let analysis = analyses().find(|analysis| analysis.id == vector.analysis);
    analysis.ok_or_else(|| Malformed(format!("no analysis is called `{}`", vector.analysis)))
}

/// Holds an answer against an example: `Ok(None)` where it is right, else the first difference.
///
/// Where the example's source has a known defect, its own program is repeated, with the defect and without: what the example expects has to be what
/// one of them answers, and the answer has to be that of the one without.
///
/// # Errors
/// As [`answer`].
pub fn judge(vector: &Vector, ours: &Value) -> Result<Option<String>, Malformed> {
    let closeness = analysis(vector)?.closeness;
    let Some((defect, answers)) = defective(vector)? else { return Ok(difference(&vector.expected, ours, closeness)) };
    let unexplained = difference(&vector.expected, &answers.published, closeness)
        .filter(|_| difference(&vector.expected, &answers.corrected, closeness).is_some());
    Ok(match unexplained {
        Some(difference) => Some(format!("its source's defect ({}) does not explain it: {difference}", defect.why)),
        None => difference(&answers.corrected, ours, Closeness::Equal)
            .map(|difference| format!("without its source's defect ({}): {difference}", defect.why)),
    })
}

/// What is known to be wrong with what an example expects, and what is right; `None` where nothing is.
///
/// # Errors
/// As [`answer`].
pub fn departure(vector: &Vector) -> Result<Option<(&'static str, Value)>, Malformed> {
    let closeness = analysis(vector)?.closeness;
    let departs =
        defective(vector)?.filter(|(_, answers)| difference(&vector.expected, &answers.corrected, closeness).is_some());
    Ok(departs.map(|(defect, answers)| (defect.why, answers.corrected)))
}

fn defective(vector: &Vector) -> Result<Option<(&'static Defect, Answers)>, Malformed> {
    let defect = DEFECTS.iter().find(|defect| defect.analyses.contains(&vector.analysis.as_str()));
    defect.map(|defect| Ok((defect, (defect.answers)(&vector.input)?))).transpose()
}

/// Holds the library against one example: [`judge`] of its [`answer`].
///
/// # Errors
/// As [`answer`].
pub fn check(vector: &Vector) -> Result<Option<String>, Malformed> {
    judge(vector, &answer(vector)?)
}
