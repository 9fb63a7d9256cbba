//! Critical sections: which resources the tasks of a system request, for how long, and inside which other sections.

use super::{Impossible, Stream};
use lockwright_model::{Duration, Mode, NESTING_MAX, RESOURCES_MAX};

/// How many resources a system has, and which task requests which of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sharing {
    /// Each task makes the same number of requests, each for a resource that is drawn uniformly. The number of
    /// resources follows: `accesses` times the number of tasks, divided by `degree` times the number of processors, and
    /// rounded, but at least 1. On average, `degree` requests for each resource come from each processor.
    ///
    /// # Reference
    /// Brandenburg, Calandrino, Block, Leontyev and Anderson, RTAS 2008, where these are K and α.
    Accesses {
        /// The number of requests of each task, K.
        accesses: u32,
        /// The degree of sharing, α; above 0.
        degree: u32,
    },
    /// Each task uses each resource with the same probability, and then makes at least one request for it.
    ///
    /// # Reference
    /// The example generator of SchedCAT, with 1 to 5 requests.
    Resources {
        /// The number of resources.
        resources: usize,
        /// The probability that a task uses a resource.
        probability: f64,
        /// The greatest number of requests of a task for a resource that it uses; above 0.
        requests: u32,
    },
}

/// The lengths of outermost sections. All nanoseconds from `least` to `most` are equally likely.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lengths {
    /// The least length; above 0.
    pub least: Duration,
    /// The greatest length.
    pub most: Duration,
}

impl Lengths {
    /// 1 to 15 µs, as in the examples of SchedCAT.
    pub const SHORT: Self = Self { least: Duration::from_us(1), most: Duration::from_us(15) };
    /// 1 to 100 µs, as in the examples of SchedCAT.
    pub const MEDIUM: Self = Self { least: Duration::from_us(1), most: Duration::from_us(100) };
    /// 5 to 1,280 µs, as in the examples of SchedCAT.
    pub const LONG: Self = Self { least: Duration::from_us(5), most: Duration::from_us(1_280) };

    /// Every section has this length.
    #[must_use]
    pub const fn exactly(length: Duration) -> Self {
        Self { least: length, most: length }
    }
}

/// The shares of outermost sections that contain others. The rest contains none.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nesting {
    /// The share of sections that contain one other section, in hundredths of a percent.
    pub one: u16,
    /// The share of sections in which 3 to `deepest` resources are held at a time, all numbers equally likely, in
    /// hundredths of a percent.
    pub deeper: u16,
    /// The greatest number of resources that are held at a time.
    pub deepest: usize,
}

impl Nesting {
    /// No section contains another one.
    pub const NONE: Self = Self { one: 0, deeper: 0, deepest: 1 };
    /// As traced in Linux: 83 % of the sections contain no other one, 13 % contain one, and the others contain more, up
    /// to 6 resources at a time.
    ///
    /// # Reference
    /// The traces of spinlocks in Brandenburg, Calandrino, Block, Leontyev and Anderson, RTAS 2008, section 4.1.
    pub const TRACED: Self = Self { one: 1_300, deeper: 400, deepest: 6 };
}

/// The critical sections of a system.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
///
/// # Examples
/// ```
/// use lockwright_study::generators::{Lengths, Nesting, Philox, Sections, Sharing};
/// let sharing = Sharing::Accesses { accesses: 5, degree: 1 };
/// let sections = Sections { sharing, lengths: Lengths::SHORT, nesting: Nesting::NONE, reads: 0.0 };
/// // 5 * 12 / (1 * 4) resources.
/// let drawn = sections.draw(&mut Philox::new(42, 0).stream(0, 2), 12, 4)?;
/// assert_eq!(drawn.resources, 15);
/// assert!(drawn.tasks.iter().all(|accesses| accesses.len() == 5));
/// # Ok::<(), lockwright_study::generators::Impossible>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sections {
    /// Which task requests which resource.
    pub sharing: Sharing,
    /// How long the outermost sections are, with all sections inside.
    pub lengths: Lengths,
    /// Which sections contain others.
    pub nesting: Nesting,
    /// The probability that an outermost section reads, with all sections inside. It changes nothing else: two systems
    /// of one stream with different probabilities have the same sections, and those that read under the lower one also
    /// read under the higher one.
    pub reads: f64,
}

/// The sections of all tasks of one system.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct DrawnSections {
    /// The number of resources.
    pub resources: usize,
    /// The outermost sections of one job, by task.
    pub tasks: Vec<Vec<Access>>,
}

/// One outermost section.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Access {
    /// The outermost resource.
    pub resource: u16,
    /// Whether it reads, with all sections inside.
    pub mode: Mode,
    /// The length with all sections inside.
    pub length: Duration,
    /// The resources of the sections inside, each inside the one before, by ascending number and all above `resource`.
    pub inner: Vec<u16>,
}

impl Sections {
    /// Draws the sections of `tasks` tasks on `cpus` processors. If a section should hold more resources than there
    /// are, it holds all of them.
    ///
    /// # Errors
    /// Returns an error if the number of resources exceeds [`RESOURCES_MAX`].
    ///
    /// # Panics
    /// Panics if a range ends before it begins, or if `degree`, `requests` or `cpus` is zero.
    pub fn draw(&self, random: &mut Stream, tasks: usize, cpus: usize) -> Result<DrawnSections, Impossible> {
        let resources = self.sharing.resources(tasks, cpus)?;
        let mut drawn = DrawnSections { resources, tasks: vec![Vec::new(); tasks] };
        match self.sharing {
            Sharing::Accesses { accesses, .. } => {
                for own in &mut drawn.tasks {
                    own.extend((0..accesses).map(|_| {
                        let resource = random.index(resources) as u16;
                        self.access(random, resource, resources)
                    }));
                }
            }
            Sharing::Resources { probability, requests, .. } => {
                for own in &mut drawn.tasks {
                    for resource in 0..resources as u16 {
                        if random.unit() < probability {
                            let count = random.whole((1, u64::from(requests)));
                            own.extend((0..count).map(|_| self.access(random, resource, resources)));
                        }
                    }
                    // The last ones may not fit into the job.
                    random.shuffle(own);
                }
            }
        }
        if self.reads > 0.0 {
            for access in drawn.tasks.iter_mut().flatten().filter(|_| random.unit() < self.reads) {
                access.mode = Mode::Read;
            }
        }
        Ok(drawn)
    }

    /// Returns the mean and the standard deviation of the number of steps that the sections of a job take.
    pub(crate) fn steps(&self) -> (f64, f64) {
        let (requests, spread) = match self.sharing {
            Sharing::Accesses { accesses, .. } => (f64::from(accesses), 0.0),
            Sharing::Resources { resources, probability, requests } => {
                let (all, most) = (resources as f64, f64::from(requests));
                let mean = probability * (most + 1.0) / 2.0;
                let squares = probability * (most + 1.0) * (2.0 * most + 1.0) / 6.0;
                (all * mean, all * (squares - mean * mean))
            }
        };
        let each = || self.nesting.shares().map(|(held, share)| (steps(held) as f64, share));
        let mean: f64 = each().map(|(steps, share)| steps * share).sum();
        let squares: f64 = each().map(|(steps, share)| steps * steps * share).sum();
        // Rounding may leave a variance below zero.
        let variance = requests * (squares - mean * mean) + spread * mean * mean;
        (requests * mean, variance.max(0.0).sqrt())
    }

    fn access(&self, random: &mut Stream, resource: u16, resources: usize) -> Access {
        let length = random.whole((self.lengths.least.as_ns(), self.lengths.most.as_ns()));
        let held = self.nesting.held(random).min(resources);
        let mut all = vec![];
        if held > 1 {
            all.push(resource);
            // BOUND: each draw adds a resource with a probability of at least one in 256.
            while all.len() < held {
                let next = random.index(resources) as u16;
                if !all.contains(&next) {
                    all.push(next);
                }
            }
            all.sort_unstable();
        }
        let outermost = all.first().copied().unwrap_or(resource);
        Access {
            resource: outermost,
            mode: Mode::Write,
            length: Duration::from_ns(length),
            inner: all.get(1..).unwrap_or_default().into(),
        }
    }
}

/// Returns the number of steps of a section that holds this number of resources: a lock, an unlock and a run for each
/// resource, and a run before it.
pub(super) fn steps(held: usize) -> usize {
    3 * held + 1
}

impl Sharing {
    /// Returns the number of resources of a system of `tasks` tasks on `cpus` processors.
    ///
    /// # Errors
    /// Returns an error if it exceeds [`RESOURCES_MAX`].
    pub fn resources(&self, tasks: usize, cpus: usize) -> Result<usize, Impossible> {
        let count = match *self {
            Self::Accesses { accesses, degree } => {
                let (requests, each) = (accesses as usize * tasks, degree as usize * cpus);
                ((2 * requests + each) / (2 * each)).max(1)
            }
            Self::Resources { resources, .. } => resources,
        };
        if count <= RESOURCES_MAX { Ok(count) } else { Err(Impossible::Resources { count }) }
    }
}

impl Nesting {
    /// Returns the numbers of resources that a section may hold at a time, each with its share of the sections.
    fn shares(self) -> impl Iterator<Item = (usize, f64)> {
        let most = self.deepest.max(3);
        let [one, deeper] = [self.one, self.deeper].map(|share| f64::from(share) / 10_000.0);
        let each = deeper / (most - 2) as f64;
        let all = [(1, 1.0 - one - deeper), (2, one)].into_iter().chain((3..=most).map(move |held| (held, each)));
        all.map(move |(held, share)| (held.min(self.deepest).min(NESTING_MAX), share))
    }

    /// Draws the number of resources that a section holds at a time.
    fn held(&self, random: &mut Stream) -> usize {
        if self.deepest < 2 {
            return 1;
        }
        let share = random.whole((0, 9_999));
        let held = if share < u64::from(self.one) {
            2
        } else if share < u64::from(self.one) + u64::from(self.deeper) {
            random.whole((3, self.deepest.max(3) as u64)) as usize
        } else {
            1
        };
        held.min(self.deepest).min(NESTING_MAX)
    }
}

impl DrawnSections {
    /// Makes one resource of all resources that are held together, directly or through others: a group lock. No section
    /// is nested then.
    #[must_use]
    pub fn grouped(mut self) -> Self {
        let mut heads: Vec<u16> = (0..self.resources as u16).collect();
        for access in self.tasks.iter().flatten() {
            for &inner in &access.inner {
                let (one, other) = (heads[usize::from(access.resource)], heads[usize::from(inner)]);
                let (low, high) = (one.min(other), one.max(other));
                heads.iter_mut().filter(|head| **head == high).for_each(|head| *head = low);
            }
        }
        let mut numbers = vec![0_u16; self.resources];
        let mut groups = 0;
        for resource in 0..self.resources {
            let head = usize::from(heads[resource]);
            // A head is the least of its group, so it comes first.
            if head == resource {
                numbers[resource] = groups;
                groups += 1;
            } else {
                numbers[resource] = numbers[head];
            }
        }
        for access in self.tasks.iter_mut().flatten() {
            access.resource = numbers[usize::from(access.resource)];
            access.inner.clear();
        }
        Self { resources: usize::from(groups), tasks: self.tasks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Philox;

    const TRACED: Sections = Sections {
        sharing: Sharing::Accesses { accesses: 50, degree: 2 },
        lengths: Lengths::SHORT,
        nesting: Nesting::TRACED,
        reads: 0.0,
    };

    fn drawn(sections: Sections, tasks: usize, cpus: usize) -> DrawnSections {
        sections.draw(&mut Philox::new(9, 0).stream(0, 2), tasks, cpus).expect("is possible")
    }

    /// Whether `count` of `all` is within five standard deviations of `share`.
    fn is_share(count: usize, all: usize, share: f64) -> bool {
        let deviation = (all as f64 * share * (1.0 - share)).sqrt();
        (count as f64 - all as f64 * share).abs() < 5.0 * deviation
    }

    #[test]
    fn sections_nest_as_traced() {
        let all = drawn(TRACED, 100, 16);
        let held: Vec<usize> = all.tasks.iter().flatten().map(|access| 1 + access.inner.len()).collect();
        let count = |least: usize, most: usize| held.iter().filter(|held| (least..=most).contains(held)).count();
        let all_held = held.len();
        assert_eq!((all_held, count(1, 6)), (5_000, 5_000));
        assert!(is_share(count(1, 1), all_held, 0.83) && is_share(count(2, 2), all_held, 0.13), "{}", count(2, 2));
        assert!(is_share(count(3, 6), all_held, 0.04) && count(6, 6) > 0);
        assert!(!is_share(count(2, 2), all_held, 0.17), "negative control");
        for access in all.tasks.iter().flatten() {
            let chain: Vec<u16> = std::iter::once(access.resource).chain(access.inner.iter().copied()).collect();
            assert!(chain.is_sorted_by(|one, next| one < next), "{chain:?}");
        }
        // With two resources a section holds at most two.
        let few = drawn(Sections { sharing: Sharing::Accesses { accesses: 1, degree: 10 }, ..TRACED }, 20, 1);
        assert!(few.resources == 2 && few.tasks.iter().flatten().all(|access| access.inner.len() < 2));
    }

    #[test]
    fn shares_of_nesting_may_be_less_than_a_percent() {
        // Those of memcached in docs/trends.md.
        let nesting = Nesting { one: 665, deeper: 7, deepest: 4 };
        let sharing = Sharing::Accesses { accesses: 500, degree: 50 };
        let all = drawn(Sections { sharing, nesting, ..TRACED }, 100, 16);
        let held: Vec<usize> = all.tasks.iter().flatten().map(|access| 1 + access.inner.len()).collect();
        let count = |least: usize, most: usize| held.iter().filter(|held| (least..=most).contains(held)).count();
        assert!(is_share(count(2, 2), held.len(), 0.0665) && is_share(count(3, 4), held.len(), 0.0007));
        assert!(count(3, 4) > 0 && !is_share(count(2, 2), held.len(), 0.06), "negative control: {}", count(2, 2));
    }

    #[test]
    fn lengths_and_resources_are_uniform() {
        let plain = Sections { nesting: Nesting::NONE, ..TRACED };
        let all = drawn(plain, 100, 16);
        let accesses: Vec<&Access> = all.tasks.iter().flatten().collect();
        assert!(accesses.iter().all(|access| (1_000..=15_000).contains(&access.length.as_ns())));
        let below = accesses.iter().filter(|access| access.length.as_ns() < 8_000).count();
        assert!(is_share(below, accesses.len(), 0.5), "{below}");
        // 50 * 100 / (2 * 16), rounded.
        assert_eq!(all.resources, 156);
        let first = accesses.iter().filter(|access| access.resource < 39).count();
        assert!(is_share(first, accesses.len(), 0.25), "{first}");
        assert!(accesses.iter().all(|access| usize::from(access.resource) < 156 && access.inner.is_empty()));
    }

    #[test]
    fn the_number_of_resources_follows_sharing() {
        let of = |accesses, degree, tasks, cpus| Sharing::Accesses { accesses, degree }.resources(tasks, cpus);
        assert_eq!((of(5, 1, 50, 4), of(5, 2, 50, 4), of(1, 2, 3, 4)), (Ok(63), Ok(31), Ok(1)));
        assert_eq!((of(9, 1, 100, 4), of(9, 1, 120, 4)), (Ok(225), Err(Impossible::Resources { count: 270 })));
        let example = Sharing::Resources { resources: 12, probability: 0.25, requests: 5 };
        let all = drawn(Sections { sharing: example, ..TRACED }, 400, 4);
        let counts = |task: &Vec<Access>, resource| task.iter().filter(|a| a.resource == resource).count();
        let plain = drawn(Sections { sharing: example, nesting: Nesting::NONE, ..TRACED }, 400, 4);
        let users = plain.tasks.iter().filter(|task| counts(task, 7) > 0).count();
        assert!(is_share(users, 400, 0.25), "{users}");
        let requests: Vec<usize> = plain.tasks.iter().map(|task| counts(task, 7)).collect();
        assert!((1..=5).all(|count| requests.contains(&count)) && !requests.contains(&6));
        assert_eq!(all.resources, 12);
    }

    #[test]
    fn a_share_of_the_sections_reads() {
        let of = |reads| drawn(Sections { reads, ..TRACED }, 100, 16);
        let (none, some, more) = (of(0.0), of(0.3), of(0.7));
        let reading = |drawn: &DrawnSections| {
            drawn.tasks.iter().flatten().map(|access| access.mode == Mode::Read).collect::<Vec<_>>()
        };
        let count = |drawn: &DrawnSections| reading(drawn).iter().filter(|reads| **reads).count();
        assert_eq!((count(&none), count(&of(1.0))), (0, 5_000));
        assert!(is_share(count(&some), 5_000, 0.3) && is_share(count(&more), 5_000, 0.7), "{}", count(&some));
        assert!(reading(&some).iter().zip(reading(&more)).all(|(few, many)| *few <= many));
        let written = |mut drawn: DrawnSections| {
            drawn.tasks.iter_mut().flatten().for_each(|access| access.mode = Mode::Write);
            drawn
        };
        assert_eq!(written(some), none);
    }

    #[test]
    fn groups_join_what_is_nested() {
        let access = |resource, inner: &[u16]| Access {
            resource,
            mode: Mode::Write,
            length: Duration::from_us(1),
            inner: inner.to_vec(),
        };
        let tasks = vec![vec![access(1, &[4]), access(0, &[])], vec![access(2, &[]), access(4, &[5])]];
        let grouped = DrawnSections { resources: 6, tasks }.grouped();
        // 1, 4 and 5 are one lock.
        assert_eq!(grouped.resources, 4);
        let numbers: Vec<u16> = grouped.tasks.iter().flatten().map(|access| access.resource).collect();
        assert_eq!(numbers, [1, 0, 2, 1]);
        assert!(grouped.tasks.iter().flatten().all(|access| access.inner.is_empty()));
    }
}
