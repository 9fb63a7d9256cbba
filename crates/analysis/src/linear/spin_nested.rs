//! Nested non-preemptive FIFO spinlocks under partitioned fixed priorities: the delay of a job as in
//! [`spin_fifo`](super::spin_fifo()), with inner sections.
//!
//! Symbols: a section c of task x is inside `outer(c)`, or outermost. Inner resources have greater numbers. Within one
//! job of i, a remote task has ceil((R_i + R_x) / T_x) jobs, a local one of higher priority ceil(R_i / T_x), and one of
//! lower priority one. The variables of each section are d, the number of its instances that delay directly, and n, the
//! number that delay by being inside one that delays. The program maximizes the sum of the lengths times d + n, over
//! remote tasks and local ones of lower priority, where
//! - d + n is at most the number of jobs, and n at most d + n of the outer section, 0 for an outermost one;
//! - of the local tasks of lower priority, one section in total delays directly, and none on a local resource whose
//!   ceiling is below i;
//! - on each remote processor p, for each resource q and set S of resources that serialize (one resource, or all that
//!   are held around some section): direct delay by sections on q inside all of S occurs at most as often as requests
//!   wait for q outside all of S. These are the direct delays of local sections, and the inner delays of sections not
//!   on p that can have been reached without S.
//!
//! The relaxation does not require integer variables.
//!
//! # Reference
//! A. Wieder, B. Brandenburg, in the form of SchedCAT (`lp_nested_fifo_spinlock_bounds`). The description to which
//! SchedCAT refers is not published.

use super::program::Program;
use super::view::View;
use crate::{Failure, Sharing};

/// A critical section of a task.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// The resource.
    pub resource: u16,
    /// The greatest length, without inner sections.
    pub length: u64,
    /// The section that directly contains it, as an index into the sections of the task.
    pub outer: Option<usize>,
}

/// The most resources of [`spin_fifo_nested`].
pub const NESTED_RESOURCES_MAX: usize = 128;

/// A set of resources.
type Set = u128;

/// One section, prepared for the program.
struct Part {
    task: usize,
    resource: usize,
    length: u64,
    outer: Option<usize>,
    /// All resources held around it.
    around: Set,
    /// The number of instances.
    jobs: u64,
    /// The resources passed on every path to it; see [`reached`].
    passed: Set,
}

/// Returns bounds on the delay of one job of each task by nested non-preemptive FIFO spinlocks, with partitioned fixed
/// priorities, in the order of the tasks.
///
/// `sections` contains the sections of one job of each task. The `requests` of the tasks are ignored. Times are in the
/// unit of the input. The source is Wieder, Brandenburg, in the form of SchedCAT.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, if a section is inside one that does not precede it or whose
/// resource has no smaller number, or if there are more than [`NESTED_RESOURCES_MAX`] resources or more lists of
/// sections than tasks. Returns [`Failure::Overflow`] if a number does not fit.
pub fn spin_fifo_nested(sharing: &Sharing, sections: &[Vec<Section>]) -> Result<Vec<u64>, Failure> {
    let view = View::new(sharing, &[])?;
    let mut numbers: Vec<u16> = sections.iter().flatten().map(|section| section.resource).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > NESTED_RESOURCES_MAX || sections.len() > view.tasks() {
        return Err(Failure::Unsupported { task: 0, what: "there are too many resources, or sections of no task" });
    }
    let mut parts = Vec::new();
    for (task, sections) in sections.iter().enumerate() {
        let first: usize = parts.len();
        for (place, section) in sections.iter().enumerate() {
            let resource = numbers.partition_point(|&number| number < section.resource);
            let mut part = Part { task, resource, length: section.length, outer: None, around: 0, jobs: 0, passed: 0 };
            if let Some(outer) = section.outer {
                let around: Option<&Part> = if outer < place { parts.get(first + outer) } else { None };
                let Some(around) = around.filter(|outer| outer.resource < resource) else {
                    return Err(Failure::Unsupported { task, what: "a section is inside one of no smaller resource" });
                };
                part.around = around.around | 1 << around.resource;
                part.outer = Some(first + outer);
            }
            parts.push(part);
        }
    }
    (0..view.tasks()).map(|i| delay(&view, i, &mut parts, numbers.len())).collect()
}

fn delay(view: &View, i: usize, parts: &mut [Part], resources: usize) -> Result<u64, Failure> {
    let response = view.rows[i].response;
    for part in parts.iter_mut() {
        part.jobs = if !view.is_local(i, part.task) {
            view.jobs(part.task, response)?
        } else if view.is_higher(i, part.task) {
            view.jobs_fresh(part.task, response)
        } else {
            1
        };
    }
    reached(view, i, parts, resources);
    let lower = |x: usize| x != i && view.is_local(i, x) && !view.is_higher(i, x);

    let mut program = Program::default();
    let mut variables = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        let delays = lower(part.task) || !view.is_local(i, part.task);
        let weight = if delays { part.length } else { 0 };
        variables.push((program.variable(weight, part.jobs), program.variable(weight, part.jobs)));
    }
    let (direct, inner) = (|c: usize| variables[c].0, |c: usize| variables[c].1);
    let mut at_arrival = Vec::new();
    for (c, part) in parts.iter().enumerate() {
        program.at_most(vec![(direct(c), 1), (inner(c), 1)], part.jobs);
        match part.outer {
            Some(outer) => program.at_most(vec![(inner(c), 1), (direct(outer), -1), (inner(outer), -1)], 0),
            None => program.at_most(vec![(inner(c), 1)], 0),
        }
        if lower(part.task) {
            at_arrival.push((direct(c), 1));
            let users = || parts.iter().filter(|user| user.resource == part.resource).map(|user| user.task);
            let conflicts = users().any(|x| !view.is_local(i, x) || view.rows[x].priority >= view.rows[i].priority);
            if !conflicts {
                program.at_most(vec![(direct(c), 1)], 0);
            }
        }
    }
    program.at_most(at_arrival, 1);

    let mut sets: Vec<Set> = (0..resources).map(|q| 1 << q).chain(parts.iter().map(|part| part.around)).collect();
    sets.push(0);
    sets.sort_unstable();
    sets.dedup();
    for cluster in (0..view.clusters).filter(|&cluster| cluster != view.rows[i].cluster) {
        for q in 0..resources {
            // Only sets of smaller numbers.
            for &set in sets.iter().filter(|&&set| set < 1 << q) {
                let mut terms = Vec::new();
                for (c, part) in parts.iter().enumerate().filter(|(_, part)| part.resource == q) {
                    let there = view.rows[part.task].cluster == cluster;
                    if there && part.around & set == set {
                        terms.push((direct(c), 1));
                    }
                    if view.is_local(i, part.task) && part.around & set == 0 {
                        terms.push((direct(c), -1));
                    }
                    if !there && (part.around | part.passed) & set == 0 {
                        terms.push((inner(c), -1));
                    }
                }
                program.at_most(terms, 0);
            }
        }
    }
    let bound = program.bound()?;
    u64::try_from(bound.numerator / bound.denominator).map_err(|_| Failure::Overflow)
}

/// Finds, for each remote inner section, the resources that are held somewhere on every path from a job of `i` to it.
/// Unknown resources are omitted.
fn reached(view: &View, i: usize, parts: &mut [Part], resources: usize) {
    // By resource, the resources held on every path to a request for it.
    let mut ways: Vec<Set> = Vec::with_capacity(resources);
    for q in 0..resources {
        let mut way = (1 << q) - 1;
        for c in 0..parts.len() {
            if parts[c].resource != q {
                continue;
            }
            if view.is_local(i, parts[c].task) {
                way &= parts[c].around;
                parts[c].passed = 0;
            } else if parts[c].outer.is_some() {
                let mut passed = Set::MAX;
                let mut outer = parts[c].outer;
                // BOUND: outer sections precede inner ones.
                while let Some(o) = outer {
                    passed &= ways[parts[o].resource];
                    outer = parts[o].outer;
                }
                parts[c].passed = passed | parts[c].around;
                way &= parts[c].passed;
            } else {
                parts[c].passed = 0;
            }
        }
        ways.push(way);
    }
}
