//! Reading and writing task-set files.
//!
//! [`parse_system`] reads Lockwright's own form, TOML; [`write_system`] writes it; [`import_rt_app`] reads the
//! workloads of rt-app. Every reader takes any text at all and gives either a [`System`](crate::System) or at least one
//! [`Diagnostic`], which knows its place in the text. The file form is described in `docs/task-set.md`.

mod diagnostic;
mod task_set;
mod writer;

pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, MAX_SOURCE_BYTES};
pub use task_set::{parse_system, parse_system_bytes};
pub use writer::write_system;
