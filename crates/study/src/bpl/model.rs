//! What is simulated, within named limits.

use std::fmt;

/// Most sources: the bits of a word.
pub const CORES_MAX: u32 = 64;
/// Largest mean size of a burst. Sizes above the number of sources are clipped to the idle ones anyway.
pub const BURST_MAX: u32 = 1_000_000;
/// Least bursts per mean critical section.
pub const RATE_MIN: f64 = 1e-6;
/// Most bursts per mean critical section.
pub const RATE_MAX: f64 = 1e3;

/// Who gets a lock that is free when a burst comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeLock {
    /// Any member of the burst, each as likely as another: requests of one instant reach the lock in any order.
    Random,
    /// The most important member of the burst.
    Best,
}

/// Machine repairmen with bursts: `cores` sources of traffic with at most one request each, one lock, and a generator of bursts.
///
/// # Reference
/// The machine-repairman model of Kendall (1953); with bursts, section 6.1 of "Bounded Priority-Aware Locking for Real-Time Kernels".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    cores: u32,
    burst: u32,
    rate: f64,
    free_lock: FreeLock,
}

/// A number that no model has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ModelError {
    /// Not from 1 to [`CORES_MAX`].
    Cores(u32),
    /// Not from 1 to [`BURST_MAX`].
    Burst(u32),
    /// Not from [`RATE_MIN`] to [`RATE_MAX`].
    Rate(f64),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cores(cores) => write!(f, "{cores} cores: there can be 1 to {CORES_MAX}"),
            Self::Burst(burst) => write!(f, "a mean burst of {burst}: it can be 1 to {BURST_MAX}"),
            Self::Rate(rate) => {
                write!(f, "a rate of {rate}: it can be {RATE_MIN} to {RATE_MAX} bursts per mean section")
            }
        }
    }
}

impl std::error::Error for ModelError {}

impl Model {
    /// A model of `cores` sources; bursts with a mean size of `burst`, uniform from 1 to twice that less 1; `rate` of them
    /// (the paper's λ/μ) per mean critical section.
    ///
    /// # Errors
    /// Where a number is beyond its limits.
    pub fn new(cores: u32, burst: u32, rate: f64, free_lock: FreeLock) -> Result<Self, ModelError> {
        if !(1..=CORES_MAX).contains(&cores) {
            return Err(ModelError::Cores(cores));
        }
        if !(1..=BURST_MAX).contains(&burst) {
            return Err(ModelError::Burst(burst));
        }
        if !(RATE_MIN..=RATE_MAX).contains(&rate) {
            return Err(ModelError::Rate(rate));
        }
        Ok(Self { cores, burst, rate, free_lock })
    }

    /// Sources of traffic. Source 0 is the least important one.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// Mean size of a burst.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// Bursts per mean critical section: the paper's λ/μ.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Who gets a free lock.
    #[must_use]
    pub fn free_lock(&self) -> FreeLock {
        self.free_lock
    }
}
