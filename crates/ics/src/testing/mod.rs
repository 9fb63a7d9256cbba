//! Checks of sections, each with a twin that must fail.

mod broken;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod marks;
#[cfg(any(lockwright_loom, lockwright_shuttle))]
mod models;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod nested;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod published;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod search;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod structures;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod values;
