//! The answers of other programs, with their defects and without.
//!
//! Some examples have a wrong expectation because of a defect in their source. This module has the analyses of those
//! sources, written from the papers and from the structure of the sources, without code of the library. Each is
//! computed once with its defect, which must give the expectation of the example, and once without, which must give
//! the answer of the library. So a test finds an example that the defect does not explain, and a wrong value of the
//! library in an example that it explains. The analyses are written to be obvious, not fast.

mod answers;
mod dpcp;
mod guan_yi;
mod lock_free;
mod mpcp;
mod omip;
mod program;
mod prsb;
mod requests;
mod response;
mod spin;

pub(crate) use answers::Answers;

use crate::input::{Input, Malformed};

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
              and starts at 1, which can be taken for a fixed point by accident; sections that preempt owners on the task's own processor \
              are not counted",
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
