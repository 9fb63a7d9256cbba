//! Generated task sets, and simulated schedules compared with bounds.
//!
//! This is the only library of the project that depends on both the analysis and the simulator: the simulator attacks
//! the bounds of the analysis. Independently of these, [`bpl`] simulates the grant orders of one lock.
//!
//! # Examples
//! ```
//! use fastrand::Rng;
//! use lockwright_analysis::analyse;
//! use lockwright_model::Protocol;
//! use lockwright_study::{Shape, attack, generate};
//!
//! let mut random = Rng::with_seed(7);
//! let system = generate(&mut random, &Shape::small());
//! let analysis = analyse(&system, Protocol::Pip);
//! // No simulated response or blocking exceeds its bound.
//! assert!(attack(&system, &analysis, Protocol::Pip, &mut random, 20, 10).is_none());
//! ```
#![warn(missing_debug_implementations)]
#![forbid(unsafe_code)]

pub mod bpl;
pub mod experiment;
mod generate;
pub mod generators;
mod hash;
mod hold;
mod late;
mod mutate;
pub mod plan;
pub mod rtas2008;

pub use generate::{Shape, generate, generate_clusters};
pub use hash::fnv1a;
pub use hold::{Excess, Quantity, attack, hold};
pub use late::{attack_late, generate_late};
pub use mutate::mutate;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
