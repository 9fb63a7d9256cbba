//! Studies that a file describes: a generator of systems, the values that vary, and the methods that judge the systems.
//!
//! The form of the file is described in `docs/study.md`.
//!
//! # Examples
//! ```
//! use lockwright_study::experiment::{Experiment, Tally};
//! use lockwright_study::plan::parse_plan;
//! let plan = parse_plan(
//!     r#"
//!     seed = 1
//!     samples = 20
//!     [generator]
//!     cpus = 2
//!     tasks = 8
//!     [sections]
//!     accesses = 2
//!     [vary]
//!     load = [0.2, 0.9]
//!     [[method]]
//!     protocols = ["mpcp", "fmlp_short"]
//!     "#,
//!     &mut |path| Err(format!("cannot read {path}")),
//! )
//! .expect("a valid study");
//! assert_eq!((plan.cells(), plan.methods()), (2, 2));
//! let mut tallies = [Tally::default(); 2];
//! plan.judge(0)(7, &mut tallies)?;
//! assert_eq!(tallies[0].samples, 1);
//! # Ok::<(), lockwright_study::generators::Impossible>(())
//! ```

mod axes;
mod method;
mod read;
mod setting;
mod values;

pub use axes::{Axis, Generator, Plan};
pub use method::{Method, Test};
pub use read::{CELLS_MAX, SAMPLES_MAX, parse_generator, parse_plan};
pub use setting::{Key, Value};
pub use values::TASKS_MAX;
