//! Studies that a file describes: a generator of systems, what varies, and the methods that judge the systems.
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

mod method;
mod read;
mod setting;

use crate::experiment::{Experiment, Judge, millionths};
use crate::generators::Philox;
pub use method::{Method, Test};
pub use read::{CELLS_MAX, SAMPLES_MAX, TASKS_MAX, parse_plan};
use setting::Setting;
pub use setting::{Key, Value};

/// A study.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name; it may be empty.
    pub name: String,
    /// The seed of all random numbers, if the file gives one.
    pub seed: Option<u64>,
    /// The number of samples of each cell.
    pub samples: u64,
    /// What varies, in the order of the file. The cells are all combinations; the last axis varies fastest.
    pub axes: Vec<Axis>,
    /// The axis of the curves, if an axis has numbers.
    pub x: Option<usize>,
    /// The methods.
    pub methods: Vec<Method>,
    base: Setting,
}

/// A key and the values that it takes in turn.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The key.
    pub key: Key,
    /// The values; there is at least one.
    pub values: Vec<Value>,
}

impl Plan {
    /// Returns the place of a cell on each axis.
    #[must_use]
    pub fn places(&self, cell: usize) -> Vec<usize> {
        let mut rest = cell;
        let mut places: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let place = rest % axis.values.len();
                rest /= axis.values.len();
                place
            })
            .collect();
        places.reverse();
        places
    }

    fn setting(&self, cell: usize) -> Setting {
        let mut setting = self.base.clone();
        for (axis, place) in self.axes.iter().zip(self.places(cell)) {
            setting.set(axis.key, axis.values[place].clone());
        }
        setting
    }
}

impl Experiment for Plan {
    fn cells(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    fn methods(&self) -> usize {
        self.methods.len()
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn judge(&self, cell: usize) -> Judge<'_> {
        let setting = self.setting(cell);
        let random = Philox::new(self.seed.unwrap_or_default(), setting.number_of_cell());
        let systems = setting.systems();
        Box::new(move |sample, tallies| {
            let system = systems.as_ref().map_err(Clone::clone)?.draw(random, sample)?;
            let utilization = millionths(&system);
            for (method, tally) in self.methods.iter().zip(tallies) {
                tally.add(utilization, method.accepts(&system).then_some(0));
            }
            Ok(())
        })
    }
}
