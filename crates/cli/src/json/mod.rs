//! The objects that `--json` prints, one file a verb. Their schema is generated from these types into
//! `docs/output.schema.json`.

mod check;
mod doctor;
mod measure;
mod record;
mod run;
mod study;
mod tasks;
mod watch;

pub use check::{
    BesideLock, BlockedBy, ChangedBound, Explain, GrowthResult, GrowthState, PointResult, ResourceGrowth,
    SensitivityResult, TaskGrowth, TermResult, TestResult, WaitedSection,
};
pub use doctor::{DoctorFinding, DoctorOutput, DoctorState};
pub use measure::{
    IcsBin, IcsCost, IcsOperation, IcsOutput, IcsResponses, IcsStrategy, LockArrivals, LockContention, LockCost,
    LocksOutput, MEASURE, MachineCost, MutexHandOver, MutexOutput, ObjectAlone, ObjectContention, ObjectLine,
    ObjectsOutput, ProtocolTimes, ProtocolsOutput,
};
pub use record::{
    RecordOutput, RecordedBoundary, RecordedCycle, RecordedInversion, RecordedLock, RecordedLongSection, RecordedTask,
    RecordedThread, RecordedTrends, RecordedWait,
};
pub use run::{AuditResult, DepartureResult, Executed, Taken, TakenBy, WorstJob};
pub use study::{BplFreeLock, BplLock, BplOutput, BplResult};
pub use tasks::{BlockingParts, Charged, FORMAT, Origin, Output, ProtocolResult, TaskResult, Verb};
pub use watch::{
    WatchOutput, WatchedBin, WatchedMutex, WatchedRequest, WatchedResource, WatchedSet, WatchedTask, WatchedThread,
};

use crate::fault::Fault;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;

/// The object that `lockwright` prints with `--json`. The key `verb` identifies its kind; an object without it
/// reports an error.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "Output of lockwright --json")]
#[expect(clippy::large_enum_variant, reason = "a command makes one object")]
pub enum AnyOutput {
    /// `check`, `simulate`, `run` and `verify`.
    Tasks(Output),
    /// `study bpl`.
    Bpl(BplOutput),
    /// `measure locks`.
    Locks(LocksOutput),
    /// `measure mutex`.
    Mutex(MutexOutput),
    /// `measure protocols`.
    Protocols(ProtocolsOutput),
    /// `measure ics`.
    Ics(IcsOutput),
    /// `measure objects`.
    Objects(ObjectsOutput),
    /// `doctor`.
    Doctor(DoctorOutput),
    /// `record`.
    Record(RecordOutput),
    /// `watch`.
    Watch(WatchOutput),
    /// Any verb that failed, in place of its result; the exit status is 2 or 3.
    Error(ErrorOutput),
}

/// Why a verb failed. The same messages are on standard error.
#[derive(Serialize, JsonSchema)]
pub struct ErrorOutput {
    /// The first fault.
    pub error: Fault,
    /// The other faults, if a file has several.
    pub more: Vec<Fault>,
}

/// One object as text that ends in a newline.
#[must_use]
pub fn to_text(output: &impl Serialize) -> String {
    // These types hold strings, numbers, lists and objects: JSON can represent all of them.
    let mut text = serde_json::to_string_pretty(output).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    text.push('\n');
    text
}

/// The schema of [`AnyOutput`].
#[must_use]
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<AnyOutput>()
}
