//! The study of Brandenburg, Calandrino, Block, Leontyev and Anderson, *Real-Time Synchronization on Multiprocessors:
//! To Block or Not to Block, to Suspend or Spin?*, RTAS 2008, with its extended figures.
//!
//! Task sets are drawn as in section 4.2 of the paper, overheads are those of its tables 1 and 2, and the tests are
//! those that it names. `docs/rtas2008.md` describes what the paper leaves open, and what comes out.

mod background;
mod charges;
mod conclusions;
mod figures;
mod locks;
mod objects;
mod sets;
mod tables;

use crate::experiment::{Experiment, Judge};
use crate::generators::Nesting;
pub use charges::Others;
pub use conclusions::{Conclusion, conclusions};
pub use figures::{Figure, Inset, Quantity, figure, figures};
pub use objects::spinning_access;
pub use sets::{Distribution, Length, Parameters};
pub use tables::{Algorithm, Demand, Edf, Machine, Object, table_1, table_2};

/// What the paper leaves open. The default is our reading of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches {
    /// The lengths of sections below the greatest one.
    pub lengths: Length,
    /// The way in which the requests of others are counted.
    pub counting: Counting,
    /// What the sections of others are charged.
    pub others: Others,
    /// The tests for hard deadlines.
    pub tests: Tests,
    /// Which resources are held together.
    pub nesting: Nested,
    /// The way in which failed attempts are counted.
    pub retries: Retries,
}

/// The way in which the requests of others are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// Each request waits for the longest sections of the others.
    #[default]
    PerRequest,
    /// As often as the others request during the job, if that is less.
    PerJob,
}

/// The tests for hard deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tests {
    /// GFB under global EDF, and utilizations with blocking on each processor.
    #[default]
    Published,
    /// The best tests of Lockwright: several tests of global EDF, and the processor demand.
    Best,
}

/// Which resources are held together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nested {
    /// Sections are nested as traced in Linux. Resources that are held together are one lock.
    #[default]
    Traced,
    /// No sections are nested.
    Never,
}

/// The way in which failed attempts are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retries {
    /// For each access, the accesses of two jobs of each other task, if that is less than per job. This is no safe
    /// bound where an access may be preempted for longer than a period.
    #[default]
    PerAccess,
    /// All accesses of others during the job.
    PerJob,
}

/// The greatest number of methods of a cell.
const METHODS: usize = 6;

/// A point of the horizontal axis of some curves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cell {
    /// Sets whose schedulability or tardiness is tested.
    Tests {
        /// The parameters of the sets.
        parameters: Parameters,
        /// The type of all objects, or `None` for locks.
        object: Option<Object>,
    },
    /// Sets that leave time for background jobs.
    Background {
        /// The percentage of the execution that is in sections.
        share: u32,
    },
}

impl Cell {
    /// Returns the schedulers and the names of the methods, in the order of the tallies.
    #[must_use]
    pub fn methods(&self) -> &'static [(Edf, &'static str)] {
        const LOCKS: [(Edf, &str); 4] = [
            (Edf::Global, "G-EDF short"),
            (Edf::Global, "G-EDF long"),
            (Edf::Partitioned, "P-EDF short"),
            (Edf::Partitioned, "P-EDF long"),
        ];
        const OBJECTS: [(Edf, &str); METHODS] = [
            (Edf::Global, "G-EDF spin"),
            (Edf::Global, "G-EDF lock-free"),
            (Edf::Global, "G-EDF wait-free"),
            (Edf::Partitioned, "P-EDF spin"),
            (Edf::Partitioned, "P-EDF lock-free"),
            (Edf::Partitioned, "P-EDF wait-free"),
        ];
        const BACKGROUND: [(Edf, &str); METHODS] = [
            (Edf::Global, "spin, 1 resource"),
            (Edf::Global, "spin, 2 resources"),
            (Edf::Global, "spin, 4 resources"),
            (Edf::Global, "suspend, 1 resource"),
            (Edf::Global, "suspend, 2 resources"),
            (Edf::Global, "suspend, 4 resources"),
        ];
        match self {
            Self::Tests { object: None, .. } => &LOCKS,
            Self::Tests { object: Some(_), .. } => &OBJECTS,
            Self::Background { .. } => &BACKGROUND,
        }
    }
}

/// The cells of some figures, under one reading and on one machine.
#[derive(Clone, Debug)]
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
            Cell::Tests { parameters, object } => self.judge_tests(parameters, object),
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
    fn judge_tests(&self, parameters: Parameters, object: Option<Object>) -> Judge<'_> {
        let cell = Cell::Tests { parameters, object };
        let (machine, switches) = (&self.machine, &self.switches);
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
                    None if index % 2 == 0 => locks::short(&set, machine, test, switches),
                    None => locks::long(&set, machine, test, switches),
                    Some(object) => {
                        let algorithm = [Algorithm::Spinning, Algorithm::LockFree, Algorithm::WaitFree][index % 3];
                        objects::judge(&set, (object, algorithm), machine, test, switches)
                    }
                };
                tally.add(utilization, verdict);
            }
            Ok(())
        })
    }
}
