//! A study with its axes, whose combinations are its cells.

use super::method::Method;
use super::setting::{Key, Setting, Value};
use crate::experiment::{Experiment, Judge, millionths};
use crate::generators::{Impossible, Philox};
use lockwright_model::System;

/// A study.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The name; it may be empty.
    pub name: String,
    /// The seed of all random numbers, if the file gives one.
    pub seed: Option<u64>,
    /// The number of samples of each cell.
    pub samples: u64,
    /// The parameters that vary, in the order of the file. The cells are all combinations; the last axis varies
    /// fastest.
    pub axes: Vec<Axis>,
    /// The axis of the curves, if an axis has numbers.
    pub x: Option<usize>,
    /// The methods.
    pub methods: Vec<Method>,
    pub(super) base: Setting,
}

/// The generator of one cell of a study.
///
/// # Examples
/// ```
/// use lockwright_study::plan::parse_generator;
/// let generator = parse_generator("[generator]\ntasks = 8\nload = 0.5\n").expect("a valid generator");
/// assert_eq!(generator.draw(1, 7)?.tasks().len(), 8);
/// # Ok::<(), lockwright_study::generators::Impossible>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Generator {
    pub(super) setting: Setting,
}

impl Generator {
    /// Draws the system with this number: the one that a study with this seed judges in the cell with these values.
    ///
    /// # Errors
    /// Returns an error if the draw failed, as [`Systems::draw`](crate::generators::Systems::draw).
    pub fn draw(&self, seed: u64, sample: u64) -> Result<System, Impossible> {
        self.setting.systems()?.draw(Philox::new(seed, self.setting.number_of_cell()), sample)
    }
}

/// A key and the values that it takes in turn.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
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

    pub(super) fn setting(&self, cell: usize) -> Setting {
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
                tally.add(utilization, method.tardiness(&system));
            }
            Ok(())
        })
    }
}
