//! The parameters of a simulation, and their limits.

use std::fmt;

/// The maximum number of sources: the bits of a word.
pub const CORES_MAX: u32 = 64;
/// The maximum mean size of a burst. Bursts are clipped to the idle sources in any case.
pub const BURST_MAX: u32 = 1_000_000;
/// The minimum number of bursts per mean critical section.
pub const RATE_MIN: f64 = 1e-6;
/// The maximum number of bursts per mean critical section.
pub const RATE_MAX: f64 = 1e3;

/// The choice of the request that gets a free lock when a burst comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FreeLock {
    /// Any member of the burst with equal probability: requests of one instant reach the lock in any order.
    Random,
    /// The most important member of the burst.
    Best,
}

/// A machine-repairman model with bursts: `cores` sources of traffic
/// with at most one request each, one lock, and a generator of bursts.
///
/// # Reference
/// The machine-repairman model of Kendall (1953). With bursts: section
/// 6.1 of "Bounded Priority-Aware Locking for Real-Time Kernels".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    cores: u32,
    burst: u32,
    rate: f64,
    free_lock: FreeLock,
}

/// A parameter that is out of its limits.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// The number of cores is not from 1 to [`CORES_MAX`].
    Cores(u32),
    /// The mean burst is not from 1 to [`BURST_MAX`].
    Burst(u32),
    /// The rate is not from [`RATE_MIN`] to [`RATE_MAX`].
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
    /// Returns a model of `cores` sources, with bursts of a mean size of `burst` and `rate` bursts (the paper's λ/μ)
    /// per mean critical section. The size of a burst is uniform from 1 to `2 * burst - 1`.
    ///
    /// # Errors
    /// Returns the first parameter that is out of its limits.
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

    /// Returns the number of sources of traffic. Source 0 is the least important one.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// Returns the mean size of a burst.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// Returns the number of bursts per mean critical section: the paper's λ/μ.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the choice of the request that gets a free lock.
    #[must_use]
    pub fn free_lock(&self) -> FreeLock {
        self.free_lock
    }
}
