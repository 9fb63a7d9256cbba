//! The object of `study bpl`.

use schemars::JsonSchema;
use serde::Serialize;

/// The object that `lockwright study bpl` prints with `--json`. The unit of time is a hundredth of the mean critical
/// section. Later versions may add keys beside `results`.
#[derive(Serialize, JsonSchema)]
pub struct BplOutput {
    /// Always "study".
    #[schemars(extend("const" = Self::VERB))]
    pub verb: &'static str,
    /// Always "bpl".
    #[schemars(extend("const" = Self::STUDY))]
    pub study: &'static str,
    /// The seed, from which the seed of each run is drawn.
    pub seed: u64,
    /// Number of runs behind each result.
    pub runs: u32,
    /// Number of requests asked for in each run; a run ends a few requests later, between two batches.
    pub requests: u64,
    /// Which member of a burst gets a free lock.
    pub free_lock: BplFreeLock,
    /// Whether a signal ended the study early; incomplete simulations have no result then.
    pub interrupted: bool,
    /// Three results for each number of cores, mean burst and rate: one for each lock.
    pub results: Vec<BplResult>,
}

impl BplOutput {
    /// The value of `verb`.
    pub const VERB: &str = "study";
    /// The value of `study`.
    pub const STUDY: &str = "bpl";
}

/// Which member of a burst gets a free lock.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BplFreeLock {
    /// A member chosen at random.
    Random,
    /// The most important member.
    Best,
}

/// One lock under one traffic. Only granted requests count.
#[derive(Clone, Default, Serialize, JsonSchema)]
pub struct BplResult {
    /// Sources of traffic, each with a priority of its own and at most one request at a time.
    pub cores: u32,
    /// Mean size of a burst.
    pub burst: u32,
    /// Bursts per mean critical section: λ/μ.
    pub rate: f64,
    /// The order in which the lock is granted.
    pub lock: BplLock,
    /// Share of the requests that waited at some instant while a less important one held the lock, in percent.
    pub inversions_pct: f64,
    /// Mean of the cores' mean waits, with weights from 1 for the least important core up to `cores` for the most
    /// important one. Cores that never got the lock are left out of the sum and of the weights.
    pub weighted_delay: f64,
    /// `weighted_delay` divided by that under fifo; null if no request waits under fifo.
    pub weighted_delay_over_fifo: Option<f64>,
    /// Mean wait of all granted requests. Waits are censored: a request that still waits at the end does not count,
    /// however long it has waited. If cores are `unserved`, this is far below the wait to expect.
    pub mean_wait: f64,
    /// Mean wait of the requests of the most important core; null if it never got the lock.
    pub top_mean_wait: Option<f64>,
    /// The greatest number of critical sections for which one request waited, including the one during which it
    /// arrived.
    pub max_sections_waited: u64,
    /// Number of cores that never got the lock.
    pub unserved: usize,
}

/// The order in which a lock is granted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BplLock {
    /// First come, first served.
    #[default]
    Fifo,
    /// The most important request first.
    Priority,
    /// All requests that arrive during one critical section form a batch: batches in order of arrival, and within a
    /// batch the most important request first.
    Batched,
}

impl BplLock {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Priority => "priority",
            Self::Batched => "batched",
        }
    }
}
