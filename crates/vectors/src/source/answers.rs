//! The two answers of a source with a defect.

use serde_json::Value;

/// The expectation of an example, and the correct result.
pub(crate) struct Answers {
    /// The answer of the source, with its defect.
    pub published: Value,
    /// The answer without the defect.
    pub corrected: Value,
}
