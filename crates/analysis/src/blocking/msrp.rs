//! The multiprocessor stack resource policy (MSRP).
//!
//! Scheduling is partitioned. Resources of one processor are under the stack resource policy, and the others under
//! non-preemptive FIFO spinlocks. The source is Gai, Lipari, Di Natale, *Minimizing memory utilization of real-time
//! task sets in single and multi-processor systems-on-a-chip*, RTSS 2001.
//!
//! ```text
//! classic:  remote = sum over q of N(i,q) * sum over other processors p of the longest section on p for q
//! holistic: remote = that of a FIFO spinlock, for all requests of a job together
//! ```
//! In both, arrival is the longest of the spans of other tasks on the processor that are no more urgent (the wait and
//! the section of one request), and of their sections on resources of this processor with a ceiling of at least i's
//! priority.
//!
//! [`original`] is the response-time form, with one length c_q for all sections on q, and e_q = c_q times the number of
//! processors that use q:
//!
//! ```text
//! R = C' + sum of N(i,q) e_q + max e_q + sum over h of ceil(R / T_h) (C'_h + sum of N(h,q) e_q)
//! ```
//! C' is the execution time without sections, and h ranges over the more urgent tasks on i's processor. The maximum is
//! over the resources that a less urgent task there uses; those of one processor count if their ceiling is at least i's
//! priority.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::msrp;
//! # use lockwright_analysis::{Demand, Sharer, Sharing};
//! let task = |cluster, priority, length| Sharer {
//!     cost: 10,
//!     period: 100,
//!     deadline: 100,
//!     response: 20,
//!     priority,
//!     cluster,
//!     requests: vec![Demand { resource: 0, count: 1, length }],
//! };
//! let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
//! assert_eq!(msrp::classic(&sharing)?[0].remote, Some(5));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Delay, fitting, once};
use super::mrsp::{Answer, Boosted, inflated};
use super::spin::{Fifo, at_arrival, ceilings};
use crate::rows::requests::{Grouping, RequestTables};
use crate::rows::tally::{Saturates, Tally};
use crate::{Failure, Sharing};

/// Returns the holistic bounds on the blocking of one job of each task under MSRP, with partitioned fixed priorities,
/// in the order of the tasks.
///
/// [`Delay::arrival`] occurs once per job, and [`Delay::remote`] is executed. `interrupts` is a processor that executes
/// no jobs, if there is one. Times are in the unit of the input. The sources are in the [module](self) and in
/// [`spin`](super::spin).
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit, and [`Failure::Unsupported`] for a period of 0 or a resource
/// that a task names twice.
pub fn holistic(sharing: &Sharing, interrupts: Option<u16>) -> Result<Vec<Delay>, Failure> {
    once(&mut protocol(sharing, interrupts)?, sharing.tasks.len())
}

/// Returns the bounds of [`holistic`] as a function of response times, for [`joint`](super::joint).
///
/// # Errors
/// Returns the errors of [`holistic`].
pub fn protocol(sharing: &Sharing, interrupts: Option<u16>) -> Result<Fifo, Failure> {
    Fifo::with_ceilings(sharing, interrupts)
}

/// Returns the classic bounds on the blocking of one job of each task under MSRP, with partitioned fixed priorities, in
/// the order of the tasks.
///
/// They do not depend on response times. [`Delay::remote`] is executed. Times are in the unit of the input. The source
/// is in the [module](self).
///
/// # Errors
/// Returns the errors of [`holistic`].
pub fn classic(sharing: &Sharing) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
    let mut delays = Vec::with_capacity(tasks.len());
    let mut spans = Vec::with_capacity(tasks.len());
    for (task, row) in tables.rows.iter().enumerate() {
        let (mut remote, mut span) = (Tally::default(), Tally::default());
        for asked in tables.asked(task) {
            let groups = tables.groups(asked.resource);
            if groups.len() == 1 {
                continue;
            }
            let others = groups.iter().filter(|group| group.cluster != row.cluster);
            let wait = others.fold(0_u64, |sum, group| sum.saturating_add(tables.entries(*group)[0].length));
            remote.count::<Saturates>(u64::from(asked.count), wait);
            let length = wait.saturating_add(asked.length);
            span = span.max(Tally { length, requests: 0 });
        }
        delays.push(Delay::new(remote, Tally::default(), Tally::default()));
        spans.push(span);
    }
    at_arrival(&tables, &spans, &mut delays);
    for (delay, ceiling) in delays.iter_mut().zip(ceilings(&tables)) {
        delay.requests = delay.requests.saturating_add(u64::from(ceiling > 0));
        delay.arrival = delay.arrival.max(ceiling);
    }
    fitting(&delays)?;
    Ok(delays)
}

/// Returns the response times under MSRP and partitioned fixed priorities, in the original form.
///
/// Times are in the unit of the input. The source is in the [module](self).
///
/// # Errors
/// Returns the errors of [`mrsp::original`](super::mrsp::original).
pub fn original(sharing: &Sharing) -> Result<Answer, Failure> {
    inflated(sharing, Boosted::AboveAll)
}
