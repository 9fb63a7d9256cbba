//! Reading and writing task-set files.
//!
//! [`parse_system`] reads Lockwright's own form, TOML, and [`write_system`] writes it. [`import_rt_app`] reads the
//! workloads of rt-app. [`parse_overheads`] reads the overheads of a machine, and [`write_overheads`] writes them.
//!
//! Every reader accepts any text. It returns either a value or at least one [`Diagnostic`], with its place in the text
//! unless it concerns the file as a whole. The file form is described in `docs/task-set.md`.

mod diagnostic;
mod rt_app;
mod task_set;
mod writer;

pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, MAX_SOURCE_BYTES, nearest};
pub use rt_app::{Imported, import_rt_app};
pub use task_set::{Placed, Placing, parse_overheads, parse_placed_bytes, parse_system, parse_system_bytes};
pub use writer::{write_overheads, write_system};

use crate::{Duration, Step};

/// Returns the sum of a body's runs, or a value above every limit if the sum does not fit.
fn sum_of_runs(body: &[Step]) -> Duration {
    let runs = body.iter().filter_map(|step| if let Step::Run(time) = step { Some(*time) } else { None });
    runs.fold(Duration::ZERO, |sum, time| sum.checked_add(time).unwrap_or(Duration::from_ns(u64::MAX)))
}
