//! Checks of sections. Each has a mutant that must fail.
//!
//! | file | checks |
//! |---|---|
//! | `nested` | explores every schedule of one processor under fixed priorities |
//! | `search` | sections under those schedules |
//! | `structures` | the structures under those schedules |
//! | `marks` | late marks, on several processors |
//! | `models` | sections in loom and shuttle |
//! | `values` | variables of several words |
//! | `published` | what the paper prints and cannot mean |

mod mutants;

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
