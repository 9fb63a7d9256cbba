//! Orders of locking that can deadlock.
//!
//! Threads deadlock if each holds a lock and requests one that the next thread holds, in a cycle. A recording without
//! a deadlock shows that this can happen: each thread requested its lock while it held another, and no lock that two
//! of them held at these times keeps them apart (the algorithm Goodlock).
//!
//! An attempt (`pthread_mutex_trylock`) does not wait. Two readers of a lock neither wait for each other nor keep
//! each other apart. Locks that let a reader wait behind a waiting writer can deadlock in more ways, which are not
//! found.

use crate::held::Held;
use crate::recording::{ObjectId, SiteId, ThreadIndex};
use lockwright_model::Mode;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The greatest number of locks in a cycle that is found.
const LOCKS_MAX: usize = 4;
/// The greatest number of cycles that are found.
const CYCLES_MAX: usize = 100;
/// The greatest number of chains of one length that are continued; programs with more orders of locks may have cycles
/// that are not found.
const CHAINS_MAX: usize = 100_000;

/// The greatest number of locks around a lock whose order is looked at.
pub(super) const AROUND_MAX: usize = 64;

/// A circle of locks that can deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// The steps of the circle: each thread holds a lock and requests that of the next step.
    pub steps: Vec<CycleStep>,
}

/// One thread of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct CycleStep {
    /// The thread.
    pub thread: ThreadIndex,
    /// The lock that it holds.
    pub holds: ObjectId,
    /// The lock that it requests.
    pub requests: ObjectId,
    /// The place of the request.
    pub site: SiteId,
}

/// A lock requested while another was held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    step: CycleStep,
    /// How it holds the lock that it holds.
    holds_mode: Mode,
    /// How it requests the lock that it requests.
    requests_mode: Mode,
    /// All locks that the thread held.
    held: Rc<[(ObjectId, Mode)]>,
}

impl Edge {
    /// Whether the thread waits for the thread of the next edge: it requests the lock that this one holds, and they do
    /// not both read it.
    fn waits_for(&self, next: &Self) -> bool {
        self.step.requests == next.step.holds && excludes(self.requests_mode, next.holds_mode)
    }

    /// Whether a lock that both threads held keeps them apart.
    fn is_apart(&self, other: &Self) -> bool {
        let excluded = |&(lock, mode): &(ObjectId, Mode)| {
            other.held.iter().any(|&(its, its_mode)| its == lock && excludes(mode, its_mode))
        };
        self.held.iter().any(excluded)
    }
}

/// Whether a thread that holds a lock in one mode makes a thread wait that requests it in the other.
fn excludes(one: Mode, other: Mode) -> bool {
    one == Mode::Write || other == Mode::Write
}

/// Returns the cycles, shorter ones first, without two cycles of the same locks; and the number of locks that had more
/// than [`AROUND_MAX`] others around them.
pub(super) fn cycles(sections: &[Vec<Held>]) -> (Vec<Cycle>, u64) {
    let mut edges: BTreeSet<Edge> = BTreeSet::new();
    let mut left_out = 0;
    for (thread, sections) in (0..).zip(sections) {
        let mut open: Vec<&Held> = Vec::new();
        for section in sections {
            open.retain(|outer| outer.last.is_none_or(|last| last > section.first));
            match section.tried {
                // An attempt ends no order.
                true => {}
                false if open.len() > AROUND_MAX => left_out += 1,
                false => edges.extend(edges_to(thread, &open, section)),
            }
            open.push(section);
        }
    }
    // One of the places of each order is enough.
    let mut edges: Vec<Edge> = edges.into_iter().collect();
    edges.dedup_by(|one, other| {
        let order = |edge: &Edge| (edge.step.thread, edge.step.holds, edge.step.requests, edge.requests_mode);
        order(one) == order(other) && one.held == other.held
    });
    let mut found: Vec<Vec<&Edge>> = Vec::new();
    let mut locks_of_found: BTreeSet<Vec<ObjectId>> = BTreeSet::new();
    let mut chains: Vec<Vec<&Edge>> = edges.iter().map(|edge| vec![edge]).collect();
    let mut by_lock: BTreeMap<ObjectId, Vec<&Edge>> = BTreeMap::new();
    for edge in &edges {
        by_lock.entry(edge.step.holds).or_default().push(edge);
    }
    // BOUND: the length of a cycle.
    for _ in 1..LOCKS_MAX {
        let mut longer = Vec::new();
        for chain in chains.iter().take(CHAINS_MAX) {
            let next = chain.last().and_then(|last| by_lock.get(&last.step.requests));
            for edge in next.into_iter().flatten().copied().filter(|edge| continues(chain, edge)) {
                let chain: Vec<&Edge> = chain.iter().copied().chain([edge]).collect();
                if edge.step.requests != chain[0].step.holds {
                    longer.push(chain);
                    continue;
                }
                if !edge.waits_for(chain[0]) {
                    continue;
                }
                let mut locks: Vec<ObjectId> = chain.iter().map(|edge| edge.step.holds).collect();
                locks.sort_unstable();
                if found.len() < CYCLES_MAX && locks_of_found.insert(locks) {
                    found.push(chain);
                }
            }
        }
        chains = longer;
    }
    let cycle = |chain: Vec<&Edge>| Cycle { steps: chain.into_iter().map(|edge| edge.step).collect() };
    (found.into_iter().map(cycle).collect(), left_out)
}

/// The orders that end in one section: from each section that is open at its begin.
fn edges_to(thread: ThreadIndex, open: &[&Held], section: &Held) -> impl Iterator<Item = Edge> {
    let mut held: Vec<(ObjectId, Mode)> = open.iter().map(|outer| (outer.object, outer.mode)).collect();
    held.sort_unstable();
    let held: Rc<[_]> = held.into();
    open.iter().map(move |outer| Edge {
        step: CycleStep { thread, holds: outer.object, requests: section.object, site: section.site },
        holds_mode: outer.mode,
        requests_mode: section.mode,
        held: Rc::clone(&held),
    })
}

/// Whether the edge continues the chain: the last one of the chain waits for it, it is of another thread than all of
/// them, and no lock keeps it apart from them. The first lock of a chain is the least, so that each circle is walked
/// once.
fn continues(chain: &[&Edge], edge: &Edge) -> bool {
    chain[0].step.holds < edge.step.holds
        && chain.last().is_some_and(|last| last.waits_for(edge))
        && chain.iter().all(|other| other.step.thread != edge.step.thread && !other.is_apart(edge))
}
