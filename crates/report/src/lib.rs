//! Pictures of schedules.
//!
//! A [`Schedule`] is read from the records of a simulation or of a run.
//! It tells for each task and each instant whether the task executes, and otherwise what it waits for and which task is in its place.
//! [`svg`] draws it for a page, [`text`] for a terminal.

#![forbid(unsafe_code)]

mod axis;
mod label;
mod schedule;
pub mod svg;
pub mod text;

pub use schedule::{Mark, Row, Schedule, Span, State, Window, worst_jobs};
