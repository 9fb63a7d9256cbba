//! The bounds of each protocol for several processors, as `analyse` uses them for a system.

use super::delay::{Charge, Delay, DelayBounds, Platform};
use super::dflp::Dflp;
use super::dpcp::Dpcp;
use super::fmlp::{FmlpPlus, Sections};
use super::fmlp_long::{self, FmlpLong};
use super::lock_free::{self, LockFree, WaitFree};
use super::mpcp::{CarryIn, Mpcp, Waiting};
use super::mrsp::system::Mrsp;
use super::msrp;
use super::readers_writers::Spinning;
use super::spin::Fifo;
use crate::rows::bound::Unbounded;
use crate::rows::failure::Failure;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::Sharing;
use crate::rows::tables::Tables;
use lockwright_model::{Protocol, System, TaskId};

/// The bounds of a protocol for a system.
pub(crate) struct Bounds {
    kind: Kind,
    /// The response times, for the mutant that omits jobs which arrived before the window.
    without_carry_in: Option<Vec<u64>>,
}

/// Values from which later evaluations of the bounds start, for some execution times and response times.
pub(crate) enum Known {
    FmlpLong(fmlp_long::Known),
    LockFree(lock_free::Known),
}

enum Kind {
    FmlpLong(Box<FmlpLong>),
    Dpcp(Box<Dpcp>),
    Dflp(Box<Dflp>),
    FmlpPlus(Box<FmlpPlus>),
    LockFree(Box<LockFree>),
    Other(Box<dyn DelayBounds>),
}

impl Kind {
    fn get(&self) -> &dyn DelayBounds {
        match self {
            Self::FmlpLong(protocol) => &**protocol,
            Self::Dpcp(protocol) => &**protocol,
            Self::Dflp(protocol) => &**protocol,
            Self::FmlpPlus(protocol) => &**protocol,
            Self::LockFree(protocol) => &**protocol,
            Self::Other(protocol) => &**protocol,
        }
    }

    fn get_mut(&mut self) -> &mut dyn DelayBounds {
        match self {
            Self::FmlpLong(protocol) => &mut **protocol,
            Self::Dpcp(protocol) => &mut **protocol,
            Self::Dflp(protocol) => &mut **protocol,
            Self::FmlpPlus(protocol) => &mut **protocol,
            Self::LockFree(protocol) => &mut **protocol,
            Self::Other(protocol) => &mut **protocol,
        }
    }
}

impl Bounds {
    /// Wraps the bounds of `protocol`.
    #[cfg(feature = "lp")]
    pub(crate) fn of(tables: &Tables<'_>, protocol: impl DelayBounds + 'static) -> Self {
        Self::of_kind(tables, Kind::Other(Box::new(protocol)))
    }

    /// Creates the bounds of `protocol`, or returns why there are none for this system.
    pub(crate) fn new(tables: &Tables<'_>, protocol: Protocol, sharing: &Sharing) -> Result<Self, Unbounded> {
        let bounds = match protocol {
            Protocol::MpcpVs => {
                refuse_fixed_ceilings(tables, Protocol::MpcpVs)?;
                boxed(Mpcp::new(sharing, Waiting::Virtual, CarryIn::Response))
            }
            Protocol::Dpcp => Dpcp::new(sharing, &tables.homes()).map(|bounds| Kind::Dpcp(Box::new(bounds))),
            Protocol::Dflp => Dflp::new(sharing, &tables.homes()).map(|bounds| Kind::Dflp(Box::new(bounds))),
            Protocol::FmlpLong => FmlpLong::new(tables, sharing).map(|bounds| Kind::FmlpLong(Box::new(bounds))),
            // A holder can be preempted by a holder whose request was earlier.
            Protocol::FmlpPlus => {
                FmlpPlus::new(sharing, Sections::Preemptive).map(|bounds| Kind::FmlpPlus(Box::new(bounds)))
            }
            Protocol::Msrp => {
                refuse_fixed_ceilings(tables, Protocol::Icpp)?;
                boxed(msrp::protocol(sharing, None))
            }
            Protocol::Mrsp => {
                refuse_equal_priorities(tables)?;
                boxed(Mrsp::new(tables, sharing))
            }
            Protocol::LockFree => Ok(Kind::LockFree(Box::new(LockFree::new(tables, sharing)))),
            Protocol::WaitFree => Ok(boxed_plain(WaitFree)),
            Protocol::PhaseFair | Protocol::TaskFair => Ok(boxed_plain(Spinning::new(tables, protocol, sharing))),
            // FIFO spinlocks for all resources, including those of one processor, and the partitioned OMLP, whose
            // waits are the same.
            _ => boxed(Fifo::new(sharing, Platform::partitioned(sharing))),
        };
        // The system is valid, but its numbers do not fit.
        bounds.map(|bounds| Self::of_kind(tables, bounds)).map_err(|_| Unbounded::BeyondPeriod)
    }

    fn of_kind(tables: &Tables<'_>, kind: Kind) -> Self {
        Self { kind, without_carry_in: tables.is_mutant(Mutant::RemoteCarryIn).then(Vec::new) }
    }

    /// Takes over the execution times of these tasks from a system and its requests, which differ from the former ones
    /// in these alone. Returns `false` and does nothing if the bounds of the protocol must be created anew.
    pub(crate) fn set_tasks(&mut self, system: &System, sharing: &Sharing, tasks: &[TaskId]) -> bool {
        match &mut self.kind {
            Kind::FmlpLong(protocol) => protocol.set_tasks(system, tasks),
            Kind::Dpcp(protocol) => protocol.set_lengths(sharing, tasks),
            Kind::Dflp(protocol) => protocol.set_lengths(sharing, tasks),
            Kind::FmlpPlus(protocol) => protocol.set_lengths(sharing, tasks),
            Kind::LockFree(protocol) => protocol.set_tasks(sharing, tasks),
            Kind::Other(_) => return false,
        }
        true
    }

    /// Returns what is known of the present execution times and response times, if the protocol's bounds can use it.
    pub(crate) fn known(&self) -> Option<Known> {
        match &self.kind {
            Kind::FmlpLong(protocol) => Some(Known::FmlpLong(protocol.known().clone())),
            Kind::LockFree(protocol) => Some(Known::LockFree(protocol.known().clone())),
            _ => None,
        }
    }

    /// Continues from what was known of a system that differs in execution times alone.
    pub(crate) fn recall(&mut self, known: &Known) {
        match (&mut self.kind, known) {
            (Kind::FmlpLong(protocol), Known::FmlpLong(known)) => protocol.recall(known),
            (Kind::LockFree(protocol), Known::LockFree(known)) => protocol.recall(known),
            _ => {}
        }
    }
}

impl DelayBounds for Bounds {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        if let Some(kept) = &mut self.without_carry_in {
            *kept = responses.to_vec();
        }
        self.kind.get_mut().set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let Some(kept) = &self.without_carry_in else { return self.kind.get_mut().delays(delays) };
        let mut all = vec![Delay::default(); delays.len()];
        for (task, delay) in delays.iter_mut().enumerate() {
            // The jobs of others count as if each finished at once.
            let alone: Vec<u64> = (0..kept.len()).map(|other| if other == task { kept[task] } else { 0 }).collect();
            self.kind.get_mut().set_responses(&alone)?;
            self.kind.get_mut().delays(&mut all)?;
            *delay = all[task];
        }
        Ok(())
    }

    fn delays_in(&mut self, cluster: u16, delays: &mut [Delay]) -> Result<(), Failure> {
        match self.without_carry_in {
            Some(_) => self.delays(delays),
            None => self.kind.get_mut().delays_in(cluster, delays),
        }
    }

    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        match self.without_carry_in {
            Some(_) => marked.fill(true),
            None => self.kind.get().mark_changed(before, marked),
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        match self.without_carry_in {
            Some(_) => self.delays(delays),
            None => self.kind.get_mut().delays_again(marked, delays),
        }
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        self.kind.get().charge(delay)
    }
}

/// Returns an error for a resource under `ruling` whose ceiling is set explicitly, as the bounds assume the ceilings of
/// the users.
fn refuse_fixed_ceilings(tables: &Tables<'_>, ruling: Protocol) -> Result<(), Unbounded> {
    let system = tables.system;
    let by_hand = |&id: &_| tables.protocol(id) == ruling && system.resource(id).ceiling.is_some();
    system.resource_ids().find(by_hand).map_or(Ok(()), |resource| Err(Unbounded::Ceiling { resource }))
}

/// Returns an error if two tasks of one processor have the same priority. Interrupts may: they have no requests.
fn refuse_equal_priorities(tables: &Tables<'_>) -> Result<(), Unbounded> {
    let system = tables.system;
    for tasks in &tables.cpus {
        let equal = |pair: &&[TaskId]| {
            system.task(pair[0]).priority == system.task(pair[1]).priority
                && !pair.iter().all(|&id| system.is_interrupt(id))
        };
        if let Some(pair) = tasks.windows(2).find(equal) {
            return Err(Unbounded::Equals { one: pair[0], other: pair[1] });
        }
    }
    Ok(())
}

fn boxed_plain(bounds: impl DelayBounds + 'static) -> Kind {
    Kind::Other(Box::new(bounds))
}

fn boxed<P: DelayBounds + 'static>(bounds: Result<P, Failure>) -> Result<Kind, Failure> {
    bounds.map(boxed_plain)
}

#[cfg(test)]
mod tests {
    use super::super::delay::once;
    use super::*;
    use crate::rows::random;
    use fastrand::Rng;

    /// Returns whether the bounds of `after` differ from those of `before`. Bounds that take over the lengths of
    /// `tasks` must equal those that are created anew.
    fn differs<P: DelayBounds>(
        (before, after, tasks): (&Sharing, &Sharing, &[TaskId]),
        new: impl Fn(&Sharing) -> P,
        set_lengths: impl Fn(&mut P, &Sharing, &[TaskId]),
    ) -> bool {
        let count = before.tasks.len();
        let (mut bounds, known) = (new(before), once(&mut new(after), count).unwrap());
        let stale = once(&mut bounds, count).unwrap();
        set_lengths(&mut bounds, after, tasks);
        assert_eq!(once(&mut bounds, count).unwrap(), known, "{tasks:?}");
        set_lengths(&mut bounds, before, tasks);
        assert_eq!(once(&mut bounds, count).unwrap(), stale, "{tasks:?}");
        stale != known
    }

    #[test]
    fn lengths_taken_over_give_the_bounds_of_new_tables() {
        let mut random = Rng::with_seed(7);
        let mut different = [0; 4];
        for round in 0..300 {
            let before = random::sharing(&mut random, 4, 30, 6);
            let homes: Vec<u16> = (0..6).map(|_| random.u16(..5)).collect();
            let count = before.tasks.len();
            let tasks: Vec<TaskId> = (0..count).filter(|_| random.u8(..6) == 0).map(TaskId::new).collect();
            let mut after = before.clone();
            // Some sums do not fit into the blocks of short numbers.
            let unit = if round % 3 == 0 { 1 << 30 } else { 1 };
            for task in &tasks {
                let requests = &mut after.tasks[task.index()].requests;
                requests.iter_mut().for_each(|request| request.length = random.u64(1..50) * unit);
            }
            let change = (&before, &after, &tasks[..]);
            let dpcp = differs(change, |sharing| Dpcp::new(sharing, &homes).unwrap(), Dpcp::set_lengths);
            let dflp = differs(change, |sharing| Dflp::new(sharing, &homes).unwrap(), Dflp::set_lengths);
            let plus = |sharing: &Sharing| FmlpPlus::new(sharing, Sections::Preemptive).unwrap();
            let fmlp = differs(change, plus, FmlpPlus::set_lengths);
            let in_clusters = |sharing: &Sharing| Fifo::in_clusters(sharing, |_| 2, true).unwrap();
            let fifo = differs(change, in_clusters, Fifo::set_lengths);
            for (count, is_different) in different.iter_mut().zip([dpcp, dflp, fmlp, fifo]) {
                *count += usize::from(is_different);
            }
        }
        assert!(different.iter().all(|&count| count > 200), "{different:?}");
    }
}
