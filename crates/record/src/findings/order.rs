//! Orders of locking that can deadlock.
//!
//! Threads deadlock if each holds a lock and requests one that the next thread holds, in a circle. A recording without
//! a deadlock shows that this can happen: each thread requested its lock while it held another, and no lock that two
//! of them held at these times keeps them apart (the algorithm Goodlock).

use crate::event::Mode;
use crate::held::Held;
use crate::recording::{ObjectId, SiteId, ThreadIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The greatest number of locks in a cycle that is found.
const LOCKS_MAX: usize = 4;
/// The greatest number of cycles that are found.
const CYCLES_MAX: usize = 100;
/// The greatest number of chains of one length that are continued; programs with more orders of locks may have cycles
/// that are not found.
const CHAINS_MAX: usize = 100_000;

/// A circle of locks that can deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// The steps of the circle: each thread holds a lock and requests that of the next step.
    pub steps: Vec<CycleStep>,
}

/// One thread of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// All locks that the thread held, except those for reading.
    held: Vec<ObjectId>,
}

/// Returns the cycles, shorter ones first, without two cycles of the same locks.
pub(super) fn cycles(sections: &[Vec<Held>]) -> Vec<Cycle> {
    let mut edges: BTreeSet<Edge> = BTreeSet::new();
    for (thread, sections) in (0..).zip(sections) {
        edges.extend(
            sections.iter().enumerate().flat_map(|(index, section)| edges_to(thread, sections, index, section)),
        );
    }
    // One of the places of each order is enough.
    let mut edges: Vec<Edge> = edges.into_iter().collect();
    edges.dedup_by(|one, other| {
        (one.step.thread, one.step.holds, one.step.requests, &one.held)
            == (other.step.thread, other.step.holds, other.step.requests, &other.held)
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
                let mut locks: Vec<ObjectId> = chain.iter().map(|edge| edge.step.holds).collect();
                locks.sort_unstable();
                if found.len() < CYCLES_MAX && locks_of_found.insert(locks) {
                    found.push(chain);
                }
            }
        }
        chains = longer;
    }
    found.into_iter().map(|chain| Cycle { steps: chain.into_iter().map(|edge| edge.step).collect() }).collect()
}

/// The orders that end in one section: from each section that is open at its begin.
fn edges_to(thread: ThreadIndex, sections: &[Held], index: usize, section: &Held) -> Vec<Edge> {
    let mut open: Vec<&Held> = Vec::new();
    let mut around = section.parent;
    // BOUND: the depth of nesting.
    while let Some(parent) = around {
        let is_open = sections[parent].last.is_none_or(|last| last > sections[index].first);
        if is_open {
            open.push(&sections[parent]);
        }
        around = sections[parent].parent;
    }
    let mut held: Vec<ObjectId> =
        open.iter().filter(|outer| outer.mode == Mode::Write).map(|outer| outer.object).collect();
    held.sort_unstable();
    let step = |outer: &&Held| CycleStep { thread, holds: outer.object, requests: section.object, site: section.site };
    // Two readers do not wait for each other.
    let waits = |outer: &&&Held| outer.mode == Mode::Write || section.mode == Mode::Write;
    open.iter().filter(waits).map(|outer| Edge { step: step(outer), held: held.clone() }).collect()
}

/// Whether the edge, which holds the lock that the last one of the chain requests, continues the chain: it is of
/// another thread, and no lock keeps it apart from the others. The first lock of a chain is the least, so that each
/// circle is walked once.
fn continues(chain: &[&Edge], edge: &Edge) -> bool {
    chain[0].step.holds < edge.step.holds
        && chain.iter().all(|other| {
            other.step.thread != edge.step.thread && other.held.iter().all(|lock| !edge.held.contains(lock))
        })
}
