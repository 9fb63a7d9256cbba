//! The object of `doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// The object that `lockwright doctor` prints with `--json`.
#[derive(Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// Always "doctor".
    #[schemars(extend("const" = Self::VERB))]
    pub verb: &'static str,
    /// The requirements of `run`, one by one.
    pub findings: Vec<DoctorFinding>,
}

impl DoctorOutput {
    /// The value of `verb`.
    pub const VERB: &str = "doctor";
}

/// One requirement of `run`.
#[derive(Serialize, JsonSchema)]
pub struct DoctorFinding {
    /// Name of the requirement.
    pub name: String,
    /// Whether it is met.
    pub state: DoctorState,
    /// The finding.
    pub found: String,
    /// How to fix it; null if nothing needs to be done.
    pub fix: Option<String>,
}

/// Whether a requirement is met.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DoctorState {
    /// It is met.
    Ok,
    /// `run` works, but with worse timing.
    Warn,
    /// `run` does not work without it.
    Missing,
}
