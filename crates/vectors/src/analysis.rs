//! The analyses of the library that an example can name.

use crate::compare::Closeness;
use crate::input::{Input, Malformed};
use crate::work::Work;

/// One analysis that examples name.
pub struct Analysis {
    /// The name that examples use.
    pub id: &'static str,
    /// Reads an input and returns the library's computation on it, not yet started.
    pub prepare: fn(&Input) -> Result<Work, Malformed>,
    /// The required closeness of the answers.
    pub closeness: Closeness,
}
