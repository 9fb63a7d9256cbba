//! The figures of the paper: their insets, axes and curves.

use super::cell::Cell;
use super::sets::{Distribution, Parameters};
use super::tables::{Demand, Edf, Object, WORKING_SET};

/// The greatest section lengths, in microseconds.
const SECTIONS: std::ops::RangeInclusive<u32> = 1..=14;
/// The numbers of accesses of a task.
const ACCESSES: std::ops::RangeInclusive<u32> = 1..=9;
/// The number of accesses in the figures about section lengths.
const USUAL_ACCESSES: u32 = 5;

/// The working sets of the figures, in KiB.
const WORKING_SETS: [u32; 3] = [WORKING_SET, 32, 64];

/// A figure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Figure {
    /// The number in the paper.
    pub number: u32,
    /// The contents.
    pub title: String,
    /// The number of insets in a row.
    pub columns: usize,
    /// The insets, in order of their letters.
    pub insets: Vec<Inset>,
}

/// The quantity that an inset shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// The share of schedulable sets.
    Share,
    /// The mean bound on the tardiness of schedulable sets.
    Tardiness,
    /// The processors that are left for background jobs.
    Background,
}

/// One coordinate system of a figure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Inset {
    /// The letter.
    pub letter: char,
    /// The contents.
    pub title: String,
    /// The vertical axis.
    pub quantity: Quantity,
    /// The cells from left to right, and the places on the horizontal axis.
    pub cells: Vec<Cell>,
    /// The methods of these cells that have a curve.
    pub methods: Vec<usize>,
}

impl Inset {
    /// Returns the place of a cell on the horizontal axis.
    #[must_use]
    pub fn place(cell: &Cell) -> u32 {
        match cell {
            Cell::Tests { parameters, object: None, .. } => parameters.section,
            Cell::Tests { parameters, object: Some(_), .. } => parameters.accesses,
            Cell::Background { share } => *share,
        }
    }

    /// Returns the label of the horizontal axis.
    #[must_use]
    pub fn axis(&self) -> &'static str {
        match self.cells.first() {
            Some(Cell::Tests { object: Some(_), .. }) => "accesses of each task, K",
            Some(Cell::Background { .. }) => "execution in sections [%]",
            _ => "section length [µs]",
        }
    }
}

/// Returns the numbers of all figures.
pub fn figures() -> impl Iterator<Item = u32> {
    (1..=4).chain(7..=132)
}

/// Returns the figure with this number, or `None` if it is not among [`figures`].
#[must_use]
pub fn figure(number: u32) -> Option<Figure> {
    let distribution = |place: u32| Distribution::ALL[place as usize % Distribution::ALL.len()];
    Some(match number {
        1 => figure_1(),
        2 => figure_2(),
        3 => figure_3(),
        4 => figure_4(),
        7..=48 => {
            let group = (number - 7) / 7;
            let processors = if group.is_multiple_of(2) { 4 } else { 16 };
            section_lengths(number, processors, WORKING_SETS[group as usize / 2], distribution(number - 7))
        }
        49..=132 => {
            let group = (number - 49) / 7;
            let processors = if group % 4 < 2 { 4 } else { 16 };
            let sets = (processors, 1 + group % 2, WORKING_SETS[group as usize / 4]);
            object_accesses(number, sets, distribution(number - 49))
        }
        _ => return None,
    })
}

/// The sets of an inset, except for what is on its horizontal axis.
#[derive(Clone, Copy)]
struct Sets {
    processors: u16,
    degree: u32,
    demand: Demand,
    distribution: Distribution,
    object: Option<Object>,
    working_set: u32,
}

impl Sets {
    /// Sets on four processors with one access of each processor to each resource on average.
    fn four(demand: Demand, distribution: Distribution, object: Option<Object>) -> Self {
        Self { processors: 4, degree: 1, demand, distribution, object, working_set: WORKING_SET }
    }

    fn cells(self) -> Vec<Cell> {
        let cell = |accesses, section| Cell::Tests {
            parameters: Parameters {
                processors: self.processors,
                degree: self.degree,
                accesses,
                section,
                demand: self.demand,
                distribution: self.distribution,
            },
            object: self.object,
            working_set: self.working_set,
        };
        match self.object {
            None => SECTIONS.map(|section| cell(USUAL_ACCESSES, section)).collect(),
            // The accesses have the lengths of the object.
            Some(_) => ACCESSES.map(|accesses| cell(accesses, 1)).collect(),
        }
    }

    /// Returns the methods under some schedulers.
    fn inset(self, title: String, quantity: Quantity, schedulers: &[Edf]) -> Inset {
        let cells = self.cells();
        let methods = cells.first().map_or(&[][..], |cell| cell.methods());
        let methods = methods.iter().enumerate().filter(|(_, (scheduler, _))| schedulers.contains(scheduler));
        let methods = methods.map(|(index, _)| index).collect();
        Inset { letter: 'a', title, quantity, cells, methods }
    }
}

const BOTH: [Edf; 2] = [Edf::Global, Edf::Partitioned];
const SHORT_NAMES: [(&str, Demand); 2] = [("HRT", Demand::Hard), ("SRT", Demand::Soft)];

fn lettered(number: u32, title: String, columns: usize, mut insets: Vec<Inset>) -> Figure {
    for (inset, letter) in insets.iter_mut().zip('a'..) {
        inset.letter = letter;
        inset.title = format!("({letter}) {}", inset.title);
    }
    Figure { number, title, columns, insets }
}

const UNIFORM: [Distribution; 3] = [Distribution::UniformLow, Distribution::UniformMedium, Distribution::UniformHigh];

fn figure_1() -> Figure {
    let mut insets = Vec::new();
    for (name, demand) in SHORT_NAMES {
        for distribution in UNIFORM {
            let sets = Sets::four(demand, distribution, None);
            insets.push(sets.inset(format!("{name}, {}", distribution.name()), Quantity::Share, &BOTH));
        }
    }
    for distribution in UNIFORM {
        let sets = Sets::four(Demand::Soft, distribution, None);
        insets.push(sets.inset(format!("tardiness, {}", distribution.name()), Quantity::Tardiness, &[Edf::Global]));
    }
    lettered(1, "Figure 1: short and long resources, m = 4, α = 1".into(), 3, insets)
}

fn figure_2() -> Figure {
    let cells = (0..=10).map(|tenths| Cell::Background { share: 10 * tenths }).collect();
    let title = "background jobs".to_owned();
    let inset = Inset { letter: 'a', title, quantity: Quantity::Background, cells, methods: (0..6).collect() };
    lettered(2, "Figure 2: what is left of 4 processors".into(), 1, vec![inset])
}

fn figure_3() -> Figure {
    let mut insets = Vec::new();
    for object in [Object::Buffer, Object::Heap] {
        for distribution in UNIFORM {
            let sets = Sets::four(Demand::Soft, distribution, Some(object));
            let title = format!("{}, {}", object.name(), distribution.name());
            insets.push(sets.inset(title, Quantity::Tardiness, &[Edf::Global]));
        }
    }
    lettered(3, "Figure 3: tardiness with shared objects, m = 4, α = 1".into(), 3, insets)
}

fn figure_4() -> Figure {
    let shown = [
        (Object::Heap, Distribution::UniformLow),
        (Object::Buffer, Distribution::UniformHigh),
        (Object::Heap, Distribution::UniformHigh),
    ];
    let inset = |(object, distribution): (Object, Distribution)| {
        let sets = Sets::four(Demand::Soft, distribution, Some(object));
        sets.inset(format!("SRT, {}, {}", object.name(), distribution.name()), Quantity::Share, &BOTH)
    };
    let insets = shown.map(inset).into();
    lettered(4, "Figure 4: schedulability with shared objects, m = 4, α = 1".into(), 3, insets)
}

fn section_lengths(number: u32, processors: u16, working_set: u32, distribution: Distribution) -> Figure {
    let sets = |degree, demand| Sets { processors, degree, demand, distribution, object: None, working_set };
    let mut insets = Vec::new();
    for (name, demand) in SHORT_NAMES {
        for scheduler in BOTH {
            for degree in [1, 2] {
                let title = format!("{name}, {}, α = {degree}", edf(scheduler));
                insets.push(sets(degree, demand).inset(title, Quantity::Share, &[scheduler]));
            }
        }
    }
    for degree in [1, 2] {
        let soft = sets(degree, Demand::Soft);
        insets.push(soft.inset(format!("tardiness, α = {degree}"), Quantity::Tardiness, &[Edf::Global]));
    }
    let name = distribution.name();
    let title = format!("Figure {number}: short and long resources, m = {processors}{}, {name}", shown(working_set));
    lettered(number, title, 2, insets)
}

fn object_accesses(
    number: u32,
    (processors, degree, working_set): (u16, u32, u32),
    distribution: Distribution,
) -> Figure {
    let mut insets = Vec::new();
    let sets = |demand, object| Sets { processors, degree, demand, distribution, object: Some(object), working_set };
    for (name, demand) in SHORT_NAMES {
        for scheduler in BOTH {
            for object in Object::ALL {
                let title = format!("{name}, {}, {}", edf(scheduler), object.name());
                insets.push(sets(demand, object).inset(title, Quantity::Share, &[scheduler]));
            }
        }
    }
    for object in Object::ALL {
        let title = format!("tardiness, {}", object.name());
        insets.push(sets(Demand::Soft, object).inset(title, Quantity::Tardiness, &[Edf::Global]));
    }
    let name = distribution.name();
    let set = shown(working_set);
    let title = format!("Figure {number}: shared objects, m = {processors}, α = {degree}{set}, {name}");
    lettered(number, title, 3, insets)
}

/// A working set in a title. That of the paper's own costs is not named.
fn shown(working_set: u32) -> String {
    if working_set == WORKING_SET { String::new() } else { format!(", {working_set} KiB") }
}

fn edf(scheduler: Edf) -> &'static str {
    match scheduler {
        Edf::Global => "G-EDF",
        Edf::Partitioned => "P-EDF",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_insets_of_the_paper() {
        let count = |number| figure(number).map(|figure| figure.insets.len());
        assert_eq!([1, 3, 4, 7, 20, 49, 76].map(count), [9, 6, 3, 10, 10, 15, 15].map(Some));
        assert_eq!([21, 48, 77, 132].map(count), [10, 10, 15, 15].map(Some));
        assert_eq!([0, 5, 6, 133].map(count), [None; 4]);
        assert_eq!(figures().count(), 4 + 42 + 84);
        for number in figures() {
            let figure = figure(number).expect("is listed");
            for inset in &figure.insets {
                let places: Vec<u32> = inset.cells.iter().map(Inset::place).collect();
                let expected: Vec<u32> = match inset.cells[0] {
                    Cell::Tests { object: None, .. } => (1..=14).collect(),
                    Cell::Tests { .. } => (1..=9).collect(),
                    Cell::Background { .. } => (0..=10).map(|tenths| 10 * tenths).collect(),
                };
                assert_eq!(places, expected);
                assert!(!inset.methods.is_empty() && inset.title.starts_with(&format!("({})", inset.letter)));
            }
        }
        // Bimodal on 16 processors with α = 1.
        let bimodal = figure(69).expect("is listed");
        let parameters = |cell: &Cell| match cell {
            Cell::Tests { parameters, .. } => *parameters,
            Cell::Background { .. } => unreachable!("it has no sets to test"),
        };
        let last = figure(20).expect("is listed").insets[9].cells[13];
        let last = parameters(&last);
        let parameters = parameters(&bimodal.insets[0].cells[0]);
        assert_eq!((parameters.processors, parameters.degree), (16, 1));
        assert_eq!(parameters.distribution, Distribution::Bimodal);
        let working_set = |number| match figure(number).expect("is listed").insets[0].cells[0] {
            Cell::Tests { working_set, parameters, .. } => (working_set, parameters.processors, parameters.degree),
            Cell::Background { .. } => unreachable!("it has no sets to test"),
        };
        assert_eq!([7, 20, 21, 34, 35, 48].map(|number| working_set(number).0), [4, 4, 32, 32, 64, 64]);
        assert_eq!([49, 76, 77, 104, 105, 132].map(|number| working_set(number).0), [4, 4, 32, 32, 64, 64]);
        assert_eq!([28, 35, 97].map(working_set), [(32, 16, 1), (64, 4, 1), (32, 16, 1)]);
        assert!(figure(30).is_some_and(|figure| figure.title.contains("m = 16, 32 KiB, uniform high")));
        assert_eq!((last.processors, last.degree, last.section, last.demand), (16, 2, 14, Demand::Soft));
    }
}
