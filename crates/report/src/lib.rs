//! Draws schedules and bounds, and writes the pages that show them.
//!
//! A [`Schedule`] is read from the records of a simulation or of a run. For each task and each instant, it shows
//! whether the task executes, and otherwise which resource it waits for and which task executes instead. [`svg`] draws
//! it for a page, [`text`] for a terminal. [`bounds`] draws response-time bounds as bars of their terms, and [`strip`]
//! the observed response times beside them. [`page`] puts them into one file of HTML. [`perfetto`] writes the same
//! records as a trace for <https://ui.perfetto.dev>.

#![forbid(unsafe_code)]

mod axis;
pub mod bounds;
mod canvas;
mod cpus;
mod label;
mod order;
pub mod page;
pub mod perfetto;
mod schedule;
pub mod strip;
pub mod svg;
pub mod text;

pub use canvas::{Place, STYLE};
pub use cpus::by_cpu;
pub use order::table_order;
pub use schedule::{By, Mark, Raised, Row, Schedule, Span, State, Window, jobs, worst_jobs};
