//! The generator of the study: section 4.2 of the paper.

use super::tables::Demand;
use crate::generators::{Impossible, Lengths, Nesting, Periods, Philox, Sections, Sharing, Utilization};
use lockwright_model::Duration;

/// The greatest number of tasks of a set: the paper generates up to 100, and discards the last one, whether it exceeds
/// the cap or is the hundredth.
const TASKS_MAX: usize = 99;

/// All periods are equally likely.
const PERIODS: Periods = Periods::Uniform { least: Duration::from_ms(10), most: Duration::from_ms(100) };

/// A distribution of utilizations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Distribution {
    /// Uniform from 0.001 to 0.1.
    UniformLow,
    /// Uniform from 0.1 to 0.4.
    UniformMedium,
    /// Uniform from 0.5 to 0.9.
    UniformHigh,
    /// Exponential with a mean of 0.05, from 0.001 to 0.1.
    ExponentialLow,
    /// Exponential with a mean of 0.25, from 0.1 to 0.4.
    ExponentialMedium,
    /// Exponential with a mean of 0.7, from 0.5 to 0.9.
    ExponentialHigh,
    /// Uniform on a low range for eight tasks of nine.
    Bimodal,
}

impl Distribution {
    /// All distributions, in the order of the figures.
    pub const ALL: [Self; 7] = [
        Self::UniformLow,
        Self::UniformMedium,
        Self::UniformHigh,
        Self::ExponentialLow,
        Self::ExponentialMedium,
        Self::ExponentialHigh,
        Self::Bimodal,
    ];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UniformLow => "uniform low",
            Self::UniformMedium => "uniform medium",
            Self::UniformHigh => "uniform high",
            Self::ExponentialLow => "exponential low",
            Self::ExponentialMedium => "exponential medium",
            Self::ExponentialHigh => "exponential high",
            Self::Bimodal => "bimodal",
        }
    }

    fn utilization(self) -> Utilization {
        match self {
            Self::UniformLow => Utilization::UNIFORM_LOW,
            Self::UniformMedium => Utilization::UNIFORM_MEDIUM,
            Self::UniformHigh => Utilization::UNIFORM_HIGH,
            Self::ExponentialLow => Utilization::EXPONENTIAL_LOW,
            Self::ExponentialMedium => Utilization::EXPONENTIAL_MEDIUM,
            Self::ExponentialHigh => Utilization::EXPONENTIAL_HIGH,
            Self::Bimodal => Utilization::Bimodal,
        }
    }
}

/// The parameters of the sets of one point of a curve.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub struct Parameters {
    /// The number of processors, m.
    pub processors: u16,
    /// The degree of sharing, α.
    pub degree: u32,
    /// The number of accesses of each task, K.
    pub accesses: u32,
    /// The length of outermost sections in microseconds.
    pub section: u32,
    /// The demand, which decides on the cap of the utilization.
    pub demand: Demand,
    /// The distribution of utilizations.
    pub distribution: Distribution,
}

/// A set of tasks, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) processors: u16,
    pub(super) tasks: Vec<Row>,
    /// The number of resources. Resources that are held together are one.
    pub(super) resources: usize,
}

/// One task.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The execution time without accesses.
    pub(super) cost: u64,
    pub(super) period: u64,
    /// The length of all sections of a job together.
    pub(super) inside: u64,
    /// The resources that it accesses, by ascending number.
    pub(super) uses: Vec<Use>,
}

/// The accesses of one task to one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) resource: u16,
    pub(super) count: u64,
    /// The longest section.
    pub(super) length: u64,
}

/// Which lengths sections have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Length {
    /// Every section has the greatest length.
    #[default]
    Greatest,
    /// All lengths up to the greatest one are equally likely.
    UpTo,
}

impl Parameters {
    /// The number of the cell for random numbers. Sets do not depend on what is done with them.
    fn cell(&self) -> u64 {
        let parts = [
            u64::from(self.processors),
            u64::from(self.degree),
            u64::from(self.accesses),
            u64::from(self.section),
            self.demand as u64,
            self.distribution as u64,
        ];
        parts.into_iter().fold(2008, |cell, part| cell << 8 | part)
    }

    /// Draws the set with this number.
    pub(super) fn draw(&self, seed: u64, sample: u64, length: Length, nesting: Nesting) -> Result<Set, Impossible> {
        let random = Philox::new(seed, self.cell());
        let share = if self.demand == Demand::Hard { 0.65 } else { 0.8 };
        let cap = share * f64::from(self.processors);
        let utilizations = self.distribution.utilization().draw_up_to(&mut random.stream(sample, 0), cap, TASKS_MAX);
        let mut stream = random.stream(sample, 1);
        let most = Duration::from_us(u64::from(self.section));
        let lengths = match length {
            Length::Greatest => Lengths::exactly(most),
            Length::UpTo => Lengths { least: Duration::from_ns(1), most },
        };
        let sharing = Sharing::Accesses { accesses: self.accesses, degree: self.degree };
        let sections = Sections { sharing, lengths, nesting, reads: 0.0 };
        let processors = usize::from(self.processors);
        let drawn = sections.draw(&mut random.stream(sample, 2), utilizations.len(), processors)?.grouped();
        let row = |(utilization, accesses): (&f64, &Vec<crate::generators::Access>)| {
            let period = PERIODS.draw(&mut stream).as_ns();
            let mut row = Row {
                cost: ((utilization * period as f64) as u64).max(1),
                period,
                inside: accesses.iter().map(|access| access.length.as_ns()).sum(),
                uses: Vec::with_capacity(accesses.len()),
            };
            for access in accesses {
                let length = access.length.as_ns();
                match row.uses.iter_mut().find(|known| known.resource == access.resource) {
                    Some(known) => {
                        known.count += 1;
                        known.length = known.length.max(length);
                    }
                    None => row.uses.push(Use { resource: access.resource, count: 1, length }),
                }
            }
            row.uses.sort_unstable_by_key(|known| known.resource);
            row
        };
        let tasks = utilizations.iter().zip(&drawn.tasks).map(row).collect();
        Ok(Set { processors: self.processors, tasks, resources: drawn.resources })
    }
}

impl Set {
    /// The utilization without accesses, in millionths of a processor.
    pub(super) fn utilization(&self) -> u64 {
        self.tasks.iter().map(|task| task.cost * 1_000_000 / task.period).sum()
    }

    /// The users of each resource: the task and its accesses.
    pub(super) fn users(&self) -> Vec<Vec<(usize, Use)>> {
        let mut users = vec![Vec::new(); self.resources];
        for (index, task) in self.tasks.iter().enumerate() {
            for &one in &task.uses {
                users[usize::from(one.resource)].push((index, one));
            }
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_those_of_the_paper() {
        let low = Parameters {
            processors: 4,
            degree: 1,
            accesses: 5,
            section: 9,
            demand: Demand::Soft,
            distribution: Distribution::UniformLow,
        };
        let (mut tasks, mut requests, mut resources) = (0, 0, 0);
        for sample in 0..200 {
            let set = low.draw(1, sample, Length::Greatest, Nesting::NONE).expect("is possible");
            let all: f64 = set.tasks.iter().map(|task| task.cost as f64 / task.period as f64).sum();
            // The task that was dropped had at most 0.1.
            assert!(all <= 3.2 && all > 3.1 - 1e-6, "{all}");
            assert!(set.tasks.iter().all(|task| (10_000_000..=100_000_000).contains(&task.period)));
            assert!(set.tasks.iter().all(|task| task.inside == 45_000));
            tasks += set.tasks.len();
            resources += set.resources;
            requests += set.tasks.iter().flat_map(|task| &task.uses).map(|one| one.count).sum::<u64>();
        }
        // About 63 tasks, and on average α m = 4 accesses to each resource.
        assert!((12_000..13_200).contains(&tasks), "{tasks}");
        assert_eq!(requests, 5 * tasks as u64);
        assert!((requests as f64 / resources as f64 - 4.0).abs() < 0.05, "{requests} {resources}");
        let drawn = |parameters: Parameters| {
            let set = parameters.draw(1, 0, Length::Greatest, Nesting::NONE).expect("is possible");
            (set.tasks[0].cost, set.tasks[0].period)
        };
        assert_eq!(drawn(low), drawn(low));
        assert_ne!(drawn(low), drawn(Parameters { section: 10, ..low }), "each point has sets of its own");
    }

    #[test]
    fn nested_resources_are_one_lock() {
        let parameters = Parameters {
            processors: 16,
            degree: 2,
            accesses: 5,
            section: 14,
            demand: Demand::Hard,
            distribution: Distribution::UniformLow,
        };
        let draw = |nesting| parameters.draw(3, 0, Length::UpTo, nesting).expect("is possible");
        let (plain, nested) = (draw(Nesting::NONE), draw(Nesting::TRACED));
        assert_eq!((plain.tasks.len(), plain.resources), (99, 15));
        assert!(nested.resources < plain.resources);
        assert!(plain.tasks.iter().any(|task| task.inside < 5 * 14_000));
    }
}
