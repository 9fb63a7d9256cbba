//! Overheads: the time that a machine and its kernel take in addition to the execution of the tasks.

use crate::{Duration, ObjectKind, Progress, Protocol};
use alloc::vec::Vec;

/// The overheads of a machine and its kernel: the time they take in addition to the execution of the tasks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Overheads {
    /// The time from one timer tick to the next. Zero if there are no ticks.
    pub tick_period: Duration,
    /// Whether a dedicated processor, which has no tick, takes the interrupts that release jobs.
    pub dedicated_interrupts: bool,
    /// The time to refill the caches, by the size in KiB of the working set that was in them. It is added to
    /// [`Overhead::CacheRefill`] and does not depend on the number of tasks.
    pub cache_delay: Cost,
    /// The cost of each overhead, indexed by [`Overhead`].
    costs: [Cost; Overhead::ALL.len()],
    /// The costs that apply under one protocol instead, sorted by protocol and overhead.
    by_protocol: Vec<(Protocol, Overhead, Cost)>,
    /// The costs of one attempt of an operation on an object, indexed by [`ObjectKind`] and [`Progress`].
    objects: [[Option<Cost>; Progress::ALL.len()]; ObjectKind::ALL.len()],
}

/// A source of overhead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Overhead {
    /// The interrupt of one tick.
    Tick,
    /// The interrupt that releases a job.
    Release,
    /// The delay from the instant at which a job should be released to that interrupt.
    ReleaseLatency,
    /// The scheduling decision.
    Schedule,
    /// The context switch.
    ContextSwitch,
    /// The delay of an interprocessor interrupt, from the processor that sends it to the processor that reacts.
    IpiLatency,
    /// Refilling the caches after something else executed.
    CacheRefill,
    /// Locking a free lock.
    Lock,
    /// Unlocking a lock.
    Unlock,
    /// Leaving a section in which a preemption was delayed. The delayed preemption is carried out.
    LeaveSection,
    /// Entering the kernel.
    SyscallIn,
    /// Leaving the kernel.
    SyscallOut,
}

impl Overhead {
    /// All overheads.
    pub const ALL: [Self; 12] = [
        Self::Tick,
        Self::Release,
        Self::ReleaseLatency,
        Self::Schedule,
        Self::ContextSwitch,
        Self::IpiLatency,
        Self::CacheRefill,
        Self::Lock,
        Self::Unlock,
        Self::LeaveSection,
        Self::SyscallIn,
        Self::SyscallOut,
    ];

    /// The overheads of a section. They may differ from protocol to protocol.
    pub const OF_SECTIONS: [Self; 6] =
        [Self::IpiLatency, Self::Lock, Self::Unlock, Self::LeaveSection, Self::SyscallIn, Self::SyscallOut];

    /// Returns the name, as files spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Release => "release",
            Self::ReleaseLatency => "release_latency",
            Self::Schedule => "schedule",
            Self::ContextSwitch => "context_switch",
            Self::IpiLatency => "ipi_latency",
            Self::CacheRefill => "cache_refill",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::LeaveSection => "leave_section",
            Self::SyscallIn => "syscall_in",
            Self::SyscallOut => "syscall_out",
        }
    }
}

/// A time as a function of a number: straight lines between points. The time never falls as the number grows.
///
/// The number is the number of tasks, unless stated otherwise.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cost {
    /// The numbers ascend and the times do not fall. An empty list means no time at all.
    points: Vec<(u32, Duration)>,
}

impl Cost {
    /// Returns a cost that is the same for any number.
    #[must_use]
    pub fn constant(time: Duration) -> Self {
        Self { points: alloc::vec![(0, time)] }
    }

    /// Returns the cost through these points. A time below that of a smaller number is raised to it.
    ///
    /// Returns `None` if the numbers do not ascend, or if there is no point.
    #[must_use]
    pub fn through(mut points: Vec<(u32, Duration)>) -> Option<Self> {
        let ascends = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if points.is_empty() || !ascends {
            return None;
        }
        for index in 1..points.len() {
            points[index].1 = points[index].1.max(points[index - 1].1);
        }
        Some(Self { points })
    }

    /// Returns the points, by ascending numbers.
    #[must_use]
    pub fn points(&self) -> &[(u32, Duration)] {
        &self.points
    }

    /// Returns whether the cost was given for this number: up to the last point, or for any number if it is constant.
    #[must_use]
    pub fn covers(&self, number: u32) -> bool {
        match *self.points {
            [] | [(0, _)] => true,
            [.., (last, _)] => number <= last,
        }
    }

    /// Returns the time for this number of tasks, rounded up to a nanosecond. Before the first point and beyond the
    /// last, the time of that point applies.
    #[must_use]
    pub fn with(&self, tasks: usize) -> Duration {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        let after = self.points.partition_point(|&(number, _)| number <= tasks);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (None, None) => Duration::ZERO,
            (None, Some(&(_, time))) | (Some((_, time)), None) => time,
            (Some((low, from)), Some(&(high, to))) => {
                let rise = u128::from(to.as_ns() - from.as_ns()) * u128::from(tasks - low);
                let more = rise.div_ceil(u128::from(high - low));
                // At most `to`, which is a duration.
                Duration::from_ns(from.as_ns() + u64::try_from(more).unwrap_or(0))
            }
        }
    }
}

impl Overheads {
    /// Returns whether nothing is charged to tasks.
    #[must_use]
    pub fn charges_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the cost of an overhead.
    #[must_use]
    pub fn cost(&self, of: Overhead) -> &Cost {
        &self.costs[of as usize]
    }

    /// Sets the cost of an overhead.
    pub fn set(&mut self, of: Overhead, cost: Cost) {
        self.costs[of as usize] = cost;
    }

    /// Returns the cost of an overhead in a section on a resource under `protocol`: the cost given for that protocol,
    /// or else [`Overheads::cost`].
    #[must_use]
    pub fn cost_under(&self, of: Overhead, protocol: Protocol) -> &Cost {
        self.own_cost(of, protocol).unwrap_or_else(|| self.cost(of))
    }

    /// Returns the cost of an overhead under `protocol`, or `None` if none was given for that protocol.
    #[must_use]
    pub fn own_cost(&self, of: Overhead, protocol: Protocol) -> Option<&Cost> {
        self.place(of, protocol).ok().map(|place| &self.by_protocol[place].2)
    }

    /// Sets the cost of an overhead under `protocol`. Only the
    /// overheads in [`Overhead::OF_SECTIONS`] are ever looked up.
    pub fn set_under(&mut self, of: Overhead, protocol: Protocol, cost: Cost) {
        match self.place(of, protocol) {
            Ok(place) => self.by_protocol[place].2 = cost,
            Err(place) => self.by_protocol.insert(place, (protocol, of, cost)),
        }
    }

    /// Returns the protocols with costs of their own, in the order of [`Protocol::ALL`].
    pub fn protocols(&self) -> impl Iterator<Item = Protocol> + '_ {
        Protocol::ALL.into_iter().filter(|&one| self.by_protocol.iter().any(|&(known, _, _)| known == one))
    }

    /// Returns the cost of an operation on an object, without its repetitions, as a function of the number of tasks
    /// that share the object. Returns `None` if none was given.
    #[must_use]
    pub fn object(&self, kind: ObjectKind, progress: Progress) -> Option<&Cost> {
        self.objects[kind as usize][progress as usize].as_ref()
    }

    /// Sets the cost of an operation on an object.
    pub fn set_object(&mut self, kind: ObjectKind, progress: Progress, cost: Cost) {
        self.objects[kind as usize][progress as usize] = Some(cost);
    }

    fn place(&self, of: Overhead, protocol: Protocol) -> Result<usize, usize> {
        self.by_protocol.binary_search_by_key(&(protocol as usize, of as usize), |&(protocol, of, _)| {
            (protocol as usize, of as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_never_fall() {
        let ns = Duration::from_ns;
        let cost = Cost::through(alloc::vec![(10, ns(5)), (20, ns(15)), (30, ns(7))]).unwrap();
        let at: Vec<u64> = [0, 10, 11, 15, 20, 25, 30, 99].iter().map(|&n| cost.with(n).as_ns()).collect();
        assert_eq!(at, [5, 5, 6, 10, 15, 15, 15, 15]);
        assert_eq!(Cost::through(alloc::vec![(1, ns(0)), (4, ns(1))]).unwrap().with(2), ns(1), "rounded up");
        assert_eq!(Cost::default().with(7), ns(0));
        assert!(cost.covers(30) && !cost.covers(31) && Cost::constant(ns(1)).covers(u32::MAX));
        assert!(Cost::through(alloc::vec![]).is_none());
        assert!(Cost::through(alloc::vec![(2, ns(1)), (2, ns(2))]).is_none());
    }

    #[test]
    fn overheads_are_stored_by_index() {
        let mut overheads = Overheads::default();
        for (index, of) in Overhead::ALL.into_iter().enumerate() {
            assert_eq!(of as usize, index);
            overheads.set(of, Cost::constant(Duration::from_ns(index as u64)));
        }
        assert_eq!(overheads.cost(Overhead::SyscallOut).with(3), Duration::from_ns(11));
    }

    #[test]
    fn objects_are_stored_by_index() {
        let mut overheads = Overheads::default();
        let all = || ObjectKind::ALL.into_iter().flat_map(|kind| Progress::ALL.map(|progress| (kind, progress)));
        assert!(all().all(|(kind, progress)| overheads.object(kind, progress).is_none()));
        for (number, (kind, progress)) in all().enumerate() {
            overheads.set_object(kind, progress, Cost::constant(Duration::from_ns(number as u64)));
        }
        for (number, (kind, progress)) in all().enumerate() {
            let cost = overheads.object(kind, progress).map(|cost| cost.with(4));
            assert_eq!(cost, Some(Duration::from_ns(number as u64)), "{kind} {progress}");
        }
    }

    #[test]
    fn every_cost_is_charged() {
        let ns = |ns| Cost::constant(Duration::from_ns(ns));
        let mut overheads = Overheads::default();
        assert!(overheads.charges_nothing());
        overheads.set_object(ObjectKind::ALL[0], Progress::ALL[0], ns(1));
        assert!(!overheads.charges_nothing());
        let with = |change: &dyn Fn(&mut Overheads)| {
            let mut changed = Overheads::default();
            change(&mut changed);
            changed
        };
        assert!(!with(&|changed| changed.tick_period = Duration::from_ms(1)).charges_nothing());
        assert!(!with(&|changed| changed.dedicated_interrupts = true).charges_nothing());
        assert!(!with(&|changed| changed.cache_delay = ns(1)).charges_nothing());
        assert!(!with(&|changed| changed.set(Overhead::Lock, ns(1))).charges_nothing());
        assert!(!with(&|changed| changed.set_under(Overhead::Lock, Protocol::Srp, ns(1))).charges_nothing());
    }

    #[test]
    fn protocols_fall_back_to_common_costs() {
        let ns = |ns| Cost::constant(Duration::from_ns(ns));
        let mut overheads = Overheads::default();
        overheads.set(Overhead::Lock, ns(1));
        overheads.set(Overhead::Unlock, ns(2));
        overheads.set_under(Overhead::Lock, Protocol::Srp, ns(7));
        overheads.set_under(Overhead::Lock, Protocol::None, ns(6));
        overheads.set_under(Overhead::Lock, Protocol::Srp, ns(8));
        let of = |of, protocol| overheads.cost_under(of, protocol).with(3).as_ns();
        assert_eq!((of(Overhead::Lock, Protocol::Srp), of(Overhead::Lock, Protocol::None)), (8, 6));
        assert_eq!((of(Overhead::Lock, Protocol::Mpcp), of(Overhead::Unlock, Protocol::Srp)), (1, 2));
        assert_eq!(overheads.protocols().collect::<Vec<_>>(), [Protocol::None, Protocol::Srp]);
    }
}
