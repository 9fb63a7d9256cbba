//! The options of the inference.

/// The options of the inference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Execution times are lengthened by this many percent.
    pub margin: u32,
    /// Places of waits that separate jobs: parts of the names of call sites, addresses, or names of objects.
    pub job_at: Vec<String>,
}
