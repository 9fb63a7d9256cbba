//! The answers of other programs, with their defects and without.
//!
//! Some examples have a wrong expectation because of a defect in their source. This module has the analyses of those
//! sources, written from the papers and from the structure of the sources, without code of the library. Each is
//! computed once with its defect, which must give the expectation of the example, and once without, which must give
//! the answer of the library. So a test finds an example that the defect does not explain, and a wrong value of the
//! library in an example that it explains. The analyses are written to be obvious, not fast.

mod dpcp;
mod guan_yi;
mod lock_free;
mod mpcp;
mod omip;
mod program;
mod prsb;
mod response;
mod spin;

use crate::{Input, Malformed};
use lockwright_analysis::{Sharer, Sharing};
use serde_json::Value;

/// The expectation of an example, and the correct result.
pub(crate) struct Answers {
    /// The answer of the source, with its defect.
    pub published: Value,
    /// The answer without the defect.
    pub corrected: Value,
}

/// A defect of a source: the answer of its program to any input, and the correct answer.
pub(crate) struct Defect {
    /// The analyses whose examples show it.
    pub analyses: &'static [&'static str],
    /// The description of the defect.
    pub why: &'static str,
    pub answers: fn(&Input) -> Result<Answers, Malformed>,
}

pub(crate) const DEFECTS: &[Defect] = &[
    Defect {
        analyses: &["blocking.mpcp.lp_rtas13"],
        why: "the iteration for the longest wait of a request stops before its fixed point where it exceeds the response time, \
              and starts at 1, which can be taken for a fixed point by accident",
        answers: mpcp::blocking,
    },
    Defect {
        analyses: &["rta.p_fp.with_blocking.mpcp.lp"],
        why: "the same defect, and response times computed with it",
        answers: mpcp::responses,
    },
    Defect {
        analyses: &["blocking.dpcp.lp_rtas13"],
        why: "lower priorities delay a request directly once, but indirectly as often as they have requests; and the iteration for waits stops as under the MPCP",
        answers: dpcp::blocking,
    },
    Defect {
        analyses: &["rta.p_fp.with_blocking.dpcp.lp"],
        why: "the same defect, and response times computed with it",
        answers: dpcp::responses,
    },
    Defect {
        analyses: &["blocking.omip.lp_ecrts13"],
        why: "the number of all processors is used instead of the cluster's to decide whether a local task can precede a request twice",
        answers: omip::blocking,
    },
    Defect {
        analyses: &["blocking.spin.unordered.lp_rtss13"],
        why: "the iteration for the longest wait for a preemptable lock starts with all execution of higher priority \
              while the job is pending, so its fixed point can be above the least one",
        answers: spin::blocking,
    },
    Defect {
        analyses: &["response.global_prsb.lp"],
        why: "indirect delay is not limited by direct delay if the wait for a resource that the task does not use \
              has no bound",
        answers: prsb::blocking,
    },
    Defect {
        analyses: &["schedulable.p_edf.lockfree_nonpreemptable_commit.lp"],
        why: "the loop that blocks at the start is repeated only if its task has jobs due, which is never the case",
        answers: lock_free::schedulable,
    },
    Defect {
        analyses: &["rta.edf.uniprocessor.guan_yi_exact"],
        why: "the function ends without a verdict, which was recorded as not schedulable",
        answers: guan_yi::exact,
    },
    Defect {
        analyses: &["rta.edf.uniprocessor.guan_yi_approx"],
        why: "the same defect",
        answers: guan_yi::approximate,
    },
];

/// Returns the number of requests of `x` for one resource while
/// one job of `i` is pending, if each job makes `count` of them.
fn issued(set: &Sharing, x: usize, interval: u64, count: u32) -> u64 {
    let task = &set.tasks[x];
    u64::from(count) * (interval + task.response).div_ceil(task.period)
}

fn asked(task: &Sharer, resource: u16) -> u64 {
    task.requests.iter().filter(|request| request.resource == resource).map(|request| u64::from(request.count)).sum()
}

/// Returns the other tasks, by number.
fn others(set: &Sharing, i: usize) -> impl Iterator<Item = usize> + Clone {
    let count = set.tasks.len();
    (0..count).filter(move |&x| x != i)
}

/// Returns the fixed point to which `start` leads, or `None` if it leads beyond `most`.
fn fixed_point(start: u64, most: u64, next: impl Fn(u64) -> u64) -> Option<u64> {
    let mut value = start;
    while value <= most {
        let following = next(value);
        if following == value {
            return Some(value);
        }
        value = following;
    }
    None
}

/// Returns the value at which the sources of the MPCP and the DPCP stop: a fixed point, the last value before one
/// beyond `most`, or `first` if `start` is beyond `most` or equal to `first` by accident.
fn left_early(first: u64, start: u64, most: u64, next: impl Fn(u64) -> u64) -> u64 {
    let (mut value, mut following) = (first, start);
    while following <= most && following != value {
        value = following;
        following = next(value);
    }
    value
}
