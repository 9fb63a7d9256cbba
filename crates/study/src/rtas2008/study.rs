//! The cells of some figures, and their judgement.

use super::background;
use super::cell::{Cell, METHODS};
use super::figures::{Figure, figure};
use super::sets::Parameters;
use super::switches::{Nested, Switches};
use super::tables::{Algorithm, Machine, Object};
use super::{locks, objects};
use crate::experiment::{Experiment, Judge};
use crate::generators::Nesting;

/// The cells of some figures, under one reading and on one machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Study {
    /// The figures, in the order of their numbers.
    pub figures: Vec<Figure>,
    /// The cells, each once.
    pub cells: Vec<Cell>,
    /// The reading.
    pub switches: Switches,
    /// The overheads.
    pub machine: Machine,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of sets of each cell; the paper has 50.
    pub samples: u64,
}

impl Study {
    /// Returns the study of these figures. Numbers without a figure are left out.
    #[must_use]
    pub fn new(numbers: &[u32], switches: Switches, machine: Machine, seed: u64, samples: u64) -> Self {
        let figures: Vec<Figure> = numbers.iter().filter_map(|&number| figure(number)).collect();
        let insets = figures.iter().flat_map(|figure| &figure.insets);
        let mut cells: Vec<Cell> = insets.flat_map(|inset| inset.cells.iter().copied()).collect();
        cells.sort_unstable();
        cells.dedup();
        Self { figures, cells, switches, machine, seed, samples }
    }

    /// Returns the number of a cell, if it is in the study.
    #[must_use]
    pub fn cell(&self, cell: &Cell) -> Option<usize> {
        self.cells.binary_search(cell).ok()
    }
}

impl Experiment for Study {
    fn cells(&self) -> usize {
        self.cells.len()
    }

    fn methods(&self) -> usize {
        METHODS
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn judge(&self, cell: usize) -> Judge<'_> {
        match self.cells[cell] {
            Cell::Tests { parameters, object, working_set } => self.judge_tests(parameters, object, working_set),
            Cell::Background { share } => Box::new(move |sample, tallies| {
                // All tasks together consume one processor.
                for (index, tally) in tallies.iter_mut().enumerate() {
                    let resources = background::RESOURCES[index % 3];
                    let left = background::throughput(self.seed, sample, share, resources, index < 3);
                    tally.add(1_000_000, Some(left));
                }
                Ok(())
            }),
        }
    }
}

impl Study {
    fn judge_tests(&self, parameters: Parameters, object: Option<Object>, working_set: u32) -> Judge<'_> {
        let cell = Cell::Tests { parameters, object, working_set };
        let (machine, switches) = (self.machine.with_working_set(working_set), &self.switches);
        let nesting = match (switches.nesting, object) {
            (Nested::Traced, None) => Nesting::TRACED,
            _ => Nesting::NONE,
        };
        Box::new(move |sample, tallies| {
            let set = parameters.draw(self.seed, sample, switches.lengths, nesting)?;
            let utilization = set.utilization();
            for (index, (&(scheduler, _), tally)) in cell.methods().iter().zip(tallies).enumerate() {
                let test = (parameters.demand, scheduler);
                let verdict = match object {
                    None if index % 2 == 0 => locks::short(&set, &machine, test, switches),
                    None => locks::long(&set, &machine, test, switches),
                    Some(object) => {
                        let algorithm = [Algorithm::Spinning, Algorithm::LockFree, Algorithm::WaitFree][index % 3];
                        objects::judge(&set, (object, algorithm), &machine, test, switches)
                    }
                };
                tally.add(utilization, verdict);
            }
            Ok(())
        })
    }
}
