//! The study of Brandenburg, Calandrino, Block, Leontyev and Anderson, *Real-Time Synchronization on Multiprocessors:
//! To Block or Not to Block, to Suspend or Spin?*, RTAS 2008, with its extended figures.
//!
//! Task sets are drawn as in section 4.2 of the paper, overheads are those of its tables 1 and 2, and the tests are
//! those that it names. `docs/rtas2008.md` describes the choices that the paper leaves open, and the results.
//!
//! # Examples
//! ```
//! use lockwright_study::experiment::{Experiment, Tally};
//! use lockwright_study::rtas2008::{Machine, Study, Switches, figures};
//! // One sample of the first cell of the first figure.
//! let number = figures().next().expect("the paper has figures");
//! let study = Study::new(&[number], Switches::default(), Machine::published(), 1, 50);
//! let mut tallies = vec![Tally::default(); study.methods()];
//! study.judge(0)(0, &mut tallies)?;
//! assert_eq!(tallies[0].samples, 1);
//! # Ok::<(), lockwright_study::generators::Impossible>(())
//! ```

mod background;
mod cell;
mod charges;
mod conclusions;
mod figures;
mod locks;
mod objects;
mod sets;
mod study;
mod switches;
mod tables;

pub use background::{background_left, background_system};
pub use cell::Cell;
pub use charges::Others;
pub use conclusions::{Conclusion, conclusions};
pub use figures::{Figure, Inset, Quantity, figure, figures};
pub use objects::spinning_access;
pub use sets::{Distribution, Length, Parameters};
pub use study::Study;
pub use switches::{Counting, Nested, Retries, Switches, Tests};
pub use tables::{Algorithm, Demand, Edf, Machine, Object, table_1, table_2};
