//! Generated task sets, and simulated schedules compared with bounds.
//!
//! This is the only library of the project that depends on both the analysis and the simulator: the simulator attacks
//! the bounds of the analysis. Independently of these, [`bpl`] simulates the grant orders of one lock.
#![warn(missing_debug_implementations)]
#![forbid(unsafe_code)]

pub mod bpl;
pub mod experiment;
mod generate;
pub mod generators;
mod hold;
mod late;
mod mutate;
pub mod plan;
pub mod rtas2008;

pub use generate::{Shape, generate, generate_clusters};
pub use hold::{Excess, Quantity, attack, hold};
pub use late::{attack_late, generate_late};
pub use mutate::mutate;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
