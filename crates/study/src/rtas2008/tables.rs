//! The published overheads: tables 1 and 2 of the paper. All values are in nanoseconds.

use lockwright_model::{Cost, Duration, Overhead, Overheads, Protocol};

/// Whether deadlines must hold, with the worst overheads, or only tardiness is bounded, with average overheads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Demand {
    /// Hard real time.
    Hard,
    /// Soft real time.
    Soft,
}

/// The scheduler of the study.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Edf {
    /// Global EDF.
    Global,
    /// Partitioned EDF.
    Partitioned,
}

/// Returns table 1, with the costs of 4 KiB of working set. The top 1 % of the measurements were dropped.
#[must_use]
pub fn table_1(demand: Demand, scheduler: Edf) -> Overheads {
    let pick = |average: u64, worst: u64| if demand == Demand::Hard { worst } else { average };
    let time = |average, worst| Cost::constant(Duration::from_ns(pick(average, worst)));
    // The worst value grows with the number of tasks.
    let growing = |average: u64, worst: u64, each: u64| match demand {
        Demand::Soft => Cost::constant(Duration::from_ns(average)),
        Demand::Hard => {
            let at = |tasks: u32| (tasks, Duration::from_ns(worst + each * u64::from(tasks)));
            Cost::through(vec![at(0), at(1_000)]).unwrap_or_default()
        }
    };
    let mut overheads = Overheads::default();
    overheads.tick_period = Duration::from_ms(1);
    match scheduler {
        Edf::Partitioned => {
            overheads.set(Overhead::CacheRefill, time(15_700, 42_000));
            overheads.set(Overhead::ContextSwitch, time(2_650, 9_250));
            overheads.set(Overhead::Schedule, time(2_880, 11_380));
            overheads.set(Overhead::Tick, time(4_450, 9_540));
        }
        Edf::Global => {
            // The cost of a migration, which exceeds that of a preemption.
            overheads.set(Overhead::CacheRefill, time(15_800, 44_000));
            overheads.set(Overhead::ContextSwitch, time(2_500, 9_030));
            overheads.set(Overhead::Schedule, growing(4_310, 22_960, 75));
            overheads.set(Overhead::Tick, growing(4_340, 8_030, 67));
        }
    }
    overheads.set(Overhead::LeaveSection, time(500, 4_120));
    overheads.set(Overhead::SyscallIn, time(310, 340));
    overheads.set(Overhead::SyscallOut, time(540, 890));
    for (protocol, lock, unlock) in [
        (Protocol::FmlpLong, time(1_020, 5_040), time(950, 12_710)),
        (Protocol::Srp, time(1_070, 4_480), time(1_290, 8_010)),
        (Protocol::FmlpShort, time(170, 2_000), time(90, 870)),
    ] {
        overheads.set_under(Overhead::Lock, protocol, lock);
        overheads.set_under(Overhead::Unlock, protocol, unlock);
    }
    overheads
}

/// A type of shared object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Object {
    /// A buffer of ten words.
    Buffer,
    /// A FIFO queue.
    Queue,
    /// A priority queue.
    Heap,
}

impl Object {
    /// All objects.
    pub const ALL: [Self; 3] = [Self::Buffer, Self::Queue, Self::Heap];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Queue => "queue",
            Self::Heap => "heap",
        }
    }
}

/// An implementation of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// The sequential object below a spinlock.
    Spinning,
    /// Lock-free: one attempt.
    LockFree,
    /// Wait-free.
    WaitFree,
}

/// Returns table 2: the time of an operation, or of one attempt, on an object that `tasks` tasks share.
#[must_use]
pub fn table_2(object: Object, algorithm: Algorithm, demand: Demand, tasks: usize) -> u64 {
    let (mean, worst) = match (object, algorithm) {
        (Object::Buffer, Algorithm::Spinning) => ((380, 0), (670, 0)),
        (Object::Buffer, Algorithm::LockFree) => ((840, 0), (1_120, 10)),
        (Object::Buffer, Algorithm::WaitFree) => ((2_620, 10), (5_430, 200)),
        (Object::Queue, Algorithm::Spinning) => ((320, 0), (580, 0)),
        (Object::Queue, Algorithm::LockFree) => ((660, 0), (1_250, 0)),
        (Object::Queue, Algorithm::WaitFree) => ((11_970, 0), (13_490, 680)),
        (Object::Heap, Algorithm::Spinning) => ((1_040, 0), (2_600, 0)),
        (Object::Heap, Algorithm::LockFree) => ((11_310, 40), (19_430, 90)),
        (Object::Heap, Algorithm::WaitFree) => ((16_280, 80), (34_220, 2_490)),
    };
    let (base, each) = if demand == Demand::Hard { worst } else { mean };
    base + each * tasks as u64
}

/// The overheads of a study, for all demands and schedulers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    hard: [Overheads; 2],
    soft: [Overheads; 2],
}

/// The working set of the paper's own costs, in KiB.
pub(super) const WORKING_SET: u32 = 4;

/// The times to fill caches again, by KiB of working set: worst and average, in nanoseconds. The paper does not contain
/// them. These are ours, measured on a virtual machine (AMD EPYC): the time to write every line of the working set
/// after 48 MiB of other memory were written, less the time with warm caches, without the top 1 %.
const OWN_CACHE_DELAYS: [(u32, u64, u64); 3] = [(4, 1_530, 820), (32, 3_160, 2_160), (64, 3_940, 3_010)];

impl Machine {
    /// Returns the machine of the paper: table 1, and costs of our own for larger working sets.
    #[must_use]
    pub fn published() -> Self {
        let both = |demand| {
            [Edf::Global, Edf::Partitioned].map(|scheduler| {
                let mut overheads = table_1(demand, scheduler);
                let delay = |(kib, worst, average)| {
                    (kib, Duration::from_ns(if demand == Demand::Hard { worst } else { average }))
                };
                overheads.cache_delay = Cost::through(OWN_CACHE_DELAYS.map(delay).into()).unwrap_or_default();
                overheads
            })
        };
        Self { hard: both(Demand::Hard), soft: both(Demand::Soft) }
    }

    /// Returns whether the overheads have costs of larger working sets.
    #[must_use]
    pub fn has_working_sets(&self) -> bool {
        let covers = |overheads: &Overheads| overheads.cache_delay.points().last().is_some_and(|&(kib, _)| kib >= 64);
        self.hard.iter().chain(&self.soft).all(covers)
    }

    /// Returns this machine with tasks of this working set, in KiB: a refill of caches takes longer by the difference
    /// of the delays.
    pub(super) fn with_working_set(&self, kib: u32) -> Self {
        let mut machine = self.clone();
        for overheads in machine.hard.iter_mut().chain(&mut machine.soft) {
            let delay = |kib: u32| overheads.cache_delay.with(kib as usize);
            let more = delay(kib).saturating_sub(delay(WORKING_SET));
            let refill = overheads.cost(Overhead::CacheRefill);
            let raised = refill
                .points()
                .iter()
                .map(|&(tasks, time)| (tasks, Duration::from_ns(time.as_ns().saturating_add(more.as_ns()))))
                .collect();
            let raised = Cost::through(raised).unwrap_or_else(|| Cost::constant(more));
            overheads.set(Overhead::CacheRefill, raised);
        }
        machine
    }

    /// Returns another machine, with its worst and its average overheads, which are the same under both schedulers.
    #[must_use]
    pub fn measured(worst: Overheads, average: Overheads) -> Self {
        Self { hard: [worst.clone(), worst], soft: [average.clone(), average] }
    }

    /// Returns the overheads of one test.
    #[must_use]
    pub fn overheads(&self, demand: Demand, scheduler: Edf) -> &Overheads {
        let both = if demand == Demand::Hard { &self.hard } else { &self.soft };
        &both[scheduler as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_costs_grow_with_the_number_of_tasks() {
        let of = |demand, of| table_1(demand, Edf::Global).cost(of).with(40).as_ns();
        assert_eq!(of(Demand::Hard, Overhead::Schedule), 22_960 + 75 * 40);
        assert_eq!(of(Demand::Hard, Overhead::Tick), 8_030 + 67 * 40);
        assert_eq!(of(Demand::Soft, Overhead::Schedule), 4_310);
        let lock = |protocol| table_1(Demand::Soft, Edf::Partitioned).cost_under(Overhead::Lock, protocol).with(9);
        assert_eq!((lock(Protocol::FmlpLong).as_ns(), lock(Protocol::FmlpShort).as_ns()), (1_020, 170));
        assert_eq!(table_2(Object::Heap, Algorithm::WaitFree, Demand::Hard, 10), 34_220 + 24_900);
        let machine = Machine::published();
        for (demand, scheduler) in [(Demand::Soft, Edf::Partitioned), (Demand::Hard, Edf::Global)] {
            let mut own = machine.overheads(demand, scheduler).clone();
            own.cache_delay = Cost::default();
            assert_eq!(own, table_1(demand, scheduler));
        }
    }

    #[test]
    fn larger_working_sets_fill_caches_longer() {
        let refill = |machine: &Machine, demand, kib| {
            let machine = machine.with_working_set(kib);
            machine.overheads(demand, Edf::Global).cost(Overhead::CacheRefill).with(7).as_ns()
        };
        let published = Machine::published();
        let of = |demand| [4, 32, 64].map(|kib| refill(&published, demand, kib));
        assert_eq!(of(Demand::Soft), [15_800, 15_800 + 1_340, 15_800 + 2_190]);
        assert_eq!(of(Demand::Hard), [44_000, 44_000 + 1_630, 44_000 + 2_410]);
        let mut measured = Overheads::default();
        measured.cache_delay = Cost::through(vec![(0, Duration::ZERO), (64, Duration::from_us(64))]).expect("ascends");
        let machine = Machine::measured(Overheads::default(), measured.clone());
        assert!(published.has_working_sets() && !machine.has_working_sets(), "the worst costs have none");
        let machine = Machine::measured(measured.clone(), measured);
        assert!(machine.has_working_sets());
        assert_eq!([4, 32, 64].map(|kib| refill(&machine, Demand::Soft, kib)), [0, 28_000, 60_000]);
    }

    /// In the table, sequential objects are faster than lock-free ones, and these faster than wait-free ones.
    #[test]
    fn algorithms_are_in_order() {
        for object in Object::ALL {
            for demand in [Demand::Hard, Demand::Soft] {
                let of = |algorithm| table_2(object, algorithm, demand, 2);
                assert!(of(Algorithm::Spinning) < of(Algorithm::LockFree), "{object:?} {demand:?}");
                assert!(of(Algorithm::LockFree) < of(Algorithm::WaitFree), "{object:?} {demand:?}");
            }
        }
    }
}
