//! Published examples of analyses, with input and expected result, and a comparison of this library with them.
//!
//! `examples/` contains the answers of other programs, each with its source. An example
//! names an analysis, and [`analyses`] lists the computation of the library for it.
//! `cargo xtask vectors DIR` reads any other files in the same format.
//!
//! ```text
//!   { "schema": "rt-analysis-vectors/1", "vectors": [ { "id", "analysis", "input", "expected", "source" }, .. ] }
//! ```
//! Times are integers in one unit. A smaller number is a more urgent priority, unless an analysis defines it otherwise.
#![forbid(unsafe_code)]

mod analysis;
mod blocking;
mod compare;
mod global;
mod input;
mod linear;
mod overheads;
mod source;
mod uniprocessor;
mod work;

pub use analysis::Analysis;
pub use compare::{Closeness, difference};
pub use input::{Input, Malformed, Vector, read};
pub use work::Work;

use serde_json::Value;
use source::{Answers, DEFECTS, Defect};

/// Returns all known analyses.
pub fn analyses() -> impl Iterator<Item = &'static Analysis> {
    [uniprocessor::ANALYSES, global::ANALYSES, blocking::ANALYSES, linear::ANALYSES, overheads::ANALYSES]
        .into_iter()
        .flatten()
}

/// Returns the library's answer to an example.
///
/// # Errors
/// Returns an error if the analysis is unknown, or if the input is not suitable for it.
pub fn answer(vector: &Vector) -> Result<Value, Malformed> {
    Ok((analysis(vector)?.prepare)(&vector.input)?.answer())
}

fn analysis(vector: &Vector) -> Result<&'static Analysis, Malformed> {
    let analysis = analyses().find(|analysis| analysis.id == vector.analysis);
    analysis.ok_or_else(|| Malformed(format!("no analysis is called `{}`", vector.analysis)))
}

/// Compares an answer with an example. Returns `None` if it is right, and the first difference otherwise.
///
/// If the source of the example has a known defect, its program is repeated with the defect and without. The example
/// must expect the answer of one of them, and the library must give the answer of the one without.
///
/// # Errors
/// Returns an error as [`answer`] does.
pub fn judge(vector: &Vector, ours: &Value) -> Result<Option<String>, Malformed> {
    let closeness = analysis(vector)?.closeness;
    let Some((defect, answers)) = defective(vector)? else { return Ok(difference(&vector.expected, ours, closeness)) };
    let unexplained = difference(&vector.expected, &answers.published, closeness)
        .filter(|_| difference(&vector.expected, &answers.corrected, closeness).is_some());
    Ok(match unexplained {
        Some(difference) => {
            Some(format!("the defect of its source ({}) does not explain it: {difference}", defect.why))
        }
        None => difference(&answers.corrected, ours, Closeness::Equal)
            .map(|difference| format!("without the defect of its source ({}): {difference}", defect.why)),
    })
}

/// Returns the known defect in the expectation of an example and
/// the correct result, or `None` if the expectation is correct.
///
/// # Errors
/// Returns an error as [`answer`] does.
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

/// Compares the library with one example: [`judge`] of its [`answer`].
///
/// # Errors
/// Returns an error as [`answer`] does.
pub fn check(vector: &Vector) -> Result<Option<String>, Malformed> {
    judge(vector, &answer(vector)?)
}
