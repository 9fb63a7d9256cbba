//! Reading and writing task-set files.
//!
//! [`parse_system`] reads Lockwright's own form, TOML, and [`write_system`] writes it. [`import_rt_app`] reads the
//! workloads of rt-app, [`import_schedcat`] and [`import_cheddar`] read the XML of SchedCAT and Cheddar.
//! [`parse_overheads`] reads the overheads of a machine, and [`write_overheads`] writes them. [`reader`] reads other
//! files in the same way.
//!
//! Every reader accepts any text. It returns either a value or at least one [`Diagnostic`], with its place in the text
//! unless it concerns the file as a whole. The file form is described in `docs/task-set.md`.
//!
//! # Examples
//! ```
//! use lockwright_model::format::{parse_system, write_system};
//! let source = "[[task]]\nname = \"camera\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n";
//! let system = parse_system(source)?;
//! assert_eq!(parse_system(&write_system(&system))?, system);
//! # Ok::<(), lockwright_model::format::Diagnostics>(())
//! ```

mod diagnostic;
mod foreign;
pub mod reader;
mod rt_app;
mod runs;
mod task_set;
mod writer;
mod xml;

pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics, SOURCE_BYTES_MAX, nearest};
pub use rt_app::{Imported, import_rt_app};
pub use task_set::{Placed, Placing, parse_overheads, parse_placed_bytes, parse_system, parse_system_bytes};
pub use writer::{Place, write_commented_system, write_overheads, write_system};
pub use xml::{import_cheddar, import_schedcat};
