//! Generated task sets, and simulated schedules held against bounds.
//!
//! The only library of the project that sees both the analysis and the simulator: what one promises, the other
//! attacks.
//! Beside that, [`bpl`] simulates the orders of one lock, on its own.
#![forbid(unsafe_code)]

pub mod bpl;
mod generate;
mod hold;
mod late;
mod mutate;

pub use generate::{Shape, generate, generate_clusters};
pub use hold::{Excess, Quantity, attack, hold};
pub use late::{attack_late, generate_late};
pub use mutate::mutate;
