//! What programs of others answer, with their defects and without.
//!
//! Some examples hold what a defect of their source made of them. Here are the analyses of those sources, written down from the papers and the
//! sources' own structure and sharing no code with the library: each once with its defect, which has to answer what the example expects, and once
//! without, which has to answer what the library does. So an example that the defect does not explain is noticed, and so is a wrong value of the
//! library in one that it explains. They are written to be obvious, not fast.

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

/// What an example expects, and what is right.
pub(crate) struct Answers {
    /// What the source answers, with its defect.
    pub published: Value,
    /// What it would answer without.
    pub corrected: Value,
}

/// A defect of a source: what its program answers to any input, and what is right.
pub(crate) struct Defect {
    /// The analyses whose examples have it.
    pub analyses: &'static [&'static str],
    /// What it is.
    pub why: &'static str,
    pub answers: fn(&Input) -> Result<Answers, Malformed>,
}

pub(crate) const DEFECTS: &[Defect] = &[
    Defect {
        analyses: &["blocking.mpcp.lp_rtas13"],
        why: "the longest wait of a request is taken from a fixed point that is left before it is one, where it exceeds the response time, and that \
              starts at 1, which can be one by accident",
        answers: mpcp::blocking,
    },
    Defect {
        analyses: &["rta.p_fp.with_blocking.mpcp.lp"],
        why: "the same, and response times with it",
        answers: mpcp::responses,
    },
    Defect {
        analyses: &["blocking.dpcp.lp_rtas13"],
        why: "lower priorities delay a request directly once, but indirectly as often as they have requests; and waits are left as under the MPCP",
        answers: dpcp::blocking,
    },
    Defect {
        analyses: &["rta.p_fp.with_blocking.dpcp.lp"],
        why: "the same, and response times with it",
        answers: dpcp::responses,
    },
    Defect {
        analyses: &["blocking.omip.lp_ecrts13"],
        why: "the number of processors is taken for that of a cluster where it is decided whether a local task can precede a request twice",
        answers: omip::blocking,
    },
    Defect {
        analyses: &["blocking.spin.unordered.lp_rtss13"],
        why: "the longest wait for a preemptable lock is taken from a fixed point that starts with all that executes \
              before while the job is pending, so that it can be above the least one",
        answers: spin::blocking,
    },
    Defect {
        analyses: &["response.global_prsb.lp"],
        why: "indirect delay is not limited by direct delay where the wait for a resource that the task does not use \
              has no bound",
        answers: prsb::blocking,
    },
    Defect {
        analyses: &["schedulable.p_edf.lockfree_nonpreemptable_commit.lp"],
        why: "the loop that delays at the start is repeated only where its task has jobs due, so never",
        answers: lock_free::schedulable,
    },
    Defect {
        analyses: &["rta.edf.uniprocessor.guan_yi_exact"],
        why: "the function ends without a verdict, which was written down as no",
        answers: guan_yi::exact,
    },
    Defect { analyses: &["rta.edf.uniprocessor.guan_yi_approx"], why: "the same", answers: guan_yi::approximate },
];

/// Requests of `x` for one resource while one job of `i` is pending, in which `count` are asked for by each job.
fn issued(set: &Sharing, x: usize, interval: u64, count: u32) -> u64 {
    let task = &set.tasks[x];
    u64::from(count) * (interval + task.response).div_ceil(task.period)
}

fn asked(task: &Sharer, resource: u16) -> u64 {
    task.requests.iter().filter(|request| request.resource == resource).map(|request| u64::from(request.count)).sum()
}

/// The other tasks, by number.
fn others(set: &Sharing, i: usize) -> impl Iterator<Item = usize> + Clone {
    let count = set.tasks.len();
    (0..count).filter(move |&x| x != i)
}

/// The fixed point that `start` leads to; none where it leads beyond `most`.
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

/// Where the sources of the MPCP and the DPCP leave it: before what is beyond `most`, and after `first` where that is
/// `start` by accident.
fn left_early(first: u64, start: u64, most: u64, next: impl Fn(u64) -> u64) -> u64 {
    let (mut value, mut following) = (first, start);
    while following <= most && following != value {
        value = following;
        following = next(value);
    }
    value
}
