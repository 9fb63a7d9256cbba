//! Nested spin locks in FIFO order without preemption, under partitioned fixed priorities: delay of a job as in
//! [`spin_fifo`](super::spin_fifo()), inner sections included.
//!
//! Letters: a section c of task x is inside `outer(c)`, or outermost; inner resources have greater numbers. In the time
//! of one job of i a remote task has ceil((R_i + R_x) / T_x) jobs, a local one of higher priority ceil(R_i / T_x), of
//! lower priority one. Variables, of each section: how many of its instances delay directly (d) and by being inside one
//! that delays (n). The program is: the most of the lengths times d + n, over remote tasks and local ones of lower
//! priority, where
//! - d + n is at most the jobs; n at most d + n of the outer section, 0 of an outermost one;
//! - of local tasks of lower priority one section in all delays directly, none for a local resource whose ceiling is
//!   below i;
//! - on each remote processor p, for each resource q and set S of resources that serialize (one resource, or all that
//!   are held around some section): direct delay by sections for q inside all of S at most as often as something waits
//!   for q outside all of S: local sections directly, sections not on p as inner ones that can have been reached
//!   without S.
//!
//! The relaxation: variables need not be whole.
//!
//! # Reference
//! A. Wieder, B. Brandenburg, as SchedCAT has it (`lp_nested_fifo_spinlock_bounds`); the writing-up it refers to is not
//! published.

use super::program::Program;
use super::view::View;
use crate::{Failure, Sharing};

/// A critical section of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// For which resource.
    pub resource: u16,
    /// How long at most, inner sections not included.
    pub length: u64,
    /// The section it is directly inside, by its place among the sections of the task.
    pub outer: Option<usize>,
}

/// Most resources of [`spin_fifo_nested`].
pub const NESTED_RESOURCES_MAX: usize = 128;

/// A set of resources.
type Set = u128;

/// One section, laid out.
struct Part {
    task: usize,
    resource: usize,
    length: u64,
    outer: Option<usize>,
    /// All resources held around it.
    around: Set,
    /// Instances.
    jobs: u64,
    /// Resources passed on every way to it; see [`reached`].
    passed: Set,
}

/// Bounds on the delay of one job of each task; `sections` are those of one job of each, `requests` of the tasks are
/// not read.
///
/// # Errors
/// [`Failure::Unsupported`] where a period is 0, a section is inside one that does not come before it or whose resource
/// has not a smaller number, or there are too many resources; [`Failure::Overflow`].
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
            // Sets of smaller numbers only.
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

/// For each remote inner section, resources that are held somewhere on every way from a job of `i` to it; what is not
/// known is left out.
fn reached(view: &View, i: usize, parts: &mut [Part], resources: usize) {
    // By resource: held on every way to a request for it.
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
                // BOUND: outer sections come before inner ones.
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
