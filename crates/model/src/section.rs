//! Critical sections: derived from the body of a task, or laid out into a body.

use crate::{Duration, Mode, ResourceId, Step};
use alloc::vec::Vec;

impl Mode {
    /// Returns the step that acquires a resource in this mode.
    #[must_use]
    pub const fn step(self, resource: ResourceId) -> Step {
        match self {
            Self::Write => Step::Lock(resource),
            Self::Read => Step::Read(resource),
        }
    }
}

/// One critical section of one job.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// The resource that is held.
    pub resource: ResourceId,
    /// The execution time from the lock to its unlock, including inner sections.
    pub length: Duration,
    /// The index, in the same list, of the innermost section around this one. `None` for an outermost section.
    pub parent: Option<usize>,
    /// Whether the resource is only read.
    pub mode: Mode,
}

/// All requests of one job for one resource, in the form that the analysis needs.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// The resource that is requested.
    pub resource: ResourceId,
    /// The number of requests that one job makes.
    pub count: u32,
    /// The length of the longest of the sections.
    pub length: Duration,
    /// The access of the sections to the resource.
    pub mode: Mode,
}

/// Returns the critical sections of a body, in the order of their locks. The body must be well nested.
#[must_use]
pub fn sections_of(body: &[Step]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for step in body {
        match *step {
            Step::Run(time) => open.iter().for_each(|&section| sections[section].length += time),
            Step::Lock(resource) | Step::Read(resource) => {
                let mode = if matches!(step, Step::Read(_)) { Mode::Read } else { Mode::Write };
                sections.push(Section { resource, length: Duration::ZERO, parent: open.last().copied(), mode });
                open.push(sections.len() - 1);
            }
            Step::Unlock(_) => {
                open.pop();
            }
        }
    }
    sections
}

/// Lays requests out into a body of `wcet` execution time. This is the placement rule of the `requests` form.
///
/// The sections follow one another in the order given, and each request is repeated `count` times in a row. The
/// remaining execution time is split evenly before, between and after the sections. A remainder of r nanoseconds goes
/// to the first r gaps, one nanosecond each.
///
/// Returns `None` if the sections together are longer than `wcet`, or if there are too many of them for a body of
/// [`STEPS_MAX`](crate::STEPS_MAX) steps.
///
/// # Examples
/// ```
/// use lockwright_model::{place_requests, Duration, Mode, Request, ResourceId, Step};
/// let bus = Request { resource: ResourceId(0), count: 1, length: Duration::from_ns(4), mode: Mode::Write };
/// let body = place_requests(Duration::from_ns(9), &[bus]).expect("it fits");
/// assert_eq!(
///     body,
///     [
///         Step::Run(Duration::from_ns(3)),
///         Step::Lock(ResourceId(0)),
///         Step::Run(Duration::from_ns(4)),
///         Step::Unlock(ResourceId(0)),
///         Step::Run(Duration::from_ns(2)),
///     ]
/// );
/// ```
#[must_use]
pub fn place_requests(wcet: Duration, requests: &[Request]) -> Option<Vec<Step>> {
    let mut count: u64 = 0;
    let mut inside = Duration::ZERO;
    for request in requests {
        count = count.checked_add(u64::from(request.count))?;
        inside = inside.checked_add(request.length.checked_mul(u64::from(request.count))?)?;
    }
    let outside = wcet.checked_sub(inside)?;
    // Each section has three steps. A run may come before each section and after the last.
    if count.checked_mul(4)?.checked_add(1)? > crate::STEPS_MAX as u64 {
        return None;
    }
    let gap = outside.as_ns() / (count + 1);
    let mut extra = outside.as_ns() % (count + 1);
    let mut body = Vec::new();
    let mut run_gap = |body: &mut Vec<Step>| {
        let ns = gap + u64::from(extra > 0);
        extra = extra.saturating_sub(1);
        if ns > 0 {
            body.push(Step::Run(Duration::from_ns(ns)));
        }
    };
    for request in requests {
        for _ in 0..request.count {
            run_gap(&mut body);
            body.push(request.mode.step(request.resource));
            body.push(Step::Run(request.length));
            body.push(Step::Unlock(request.resource));
        }
    }
    run_gap(&mut body);
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ResourceId = ResourceId(0);
    const B: ResourceId = ResourceId(1);

    fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    #[test]
    fn an_outer_section_includes_inner_sections() {
        let body = [
            Step::Run(ns(1)),
            Step::Lock(A),
            Step::Run(ns(2)),
            Step::Lock(B),
            Step::Run(ns(4)),
            Step::Unlock(B),
            Step::Run(ns(8)),
            Step::Unlock(A),
        ];
        assert_eq!(
            sections_of(&body),
            [
                Section { resource: A, length: ns(14), parent: None, mode: Mode::Write },
                Section { resource: B, length: ns(4), parent: Some(0), mode: Mode::Write }
            ]
        );
    }

    #[test]
    fn placed_requests_fill_the_execution_time_exactly() {
        for wcet in 6..40 {
            let requests = [
                Request { resource: A, count: 2, length: ns(1), mode: Mode::Write },
                Request { resource: B, count: 1, length: ns(4), mode: Mode::Write },
            ];
            let body = place_requests(ns(wcet), &requests).unwrap();
            let total: Duration =
                body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum();
            assert_eq!(total, ns(wcet));
            assert_eq!(sections_of(&body).len(), 3);
        }
        assert_eq!(place_requests(ns(5), &[Request { resource: A, count: 6, length: ns(1), mode: Mode::Write }]), None);
        assert_eq!(
            place_requests(ns(5), &[Request { resource: A, count: u32::MAX, length: ns(0), mode: Mode::Write }]),
            None
        );
    }
}
