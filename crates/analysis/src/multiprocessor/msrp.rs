//! The multiprocessor stack resource policy (MSRP).
//!
//! Partitioned; resources of one processor under the stack resource policy, the others under non-preemptive FIFO spinlocks. Gai, Lipari, Di
//! Natale, Minimizing memory utilization of real-time task sets in single and multi-processor systems-on-a-chip, RTSS 2001.
//!
//! ```text
//! classic:  remote = sum over q of N_{i,q} * sum over other processors p of the longest section on p for q
//! holistic: as a FIFO spinlock: what all requests of a job wait for together
//! ```
//! In both: arrival = the longest of the spans of other tasks on the processor that are no more urgent (one request's wait and own section), and of their
//! sections for resources of this processor with a ceiling of at least i's priority.
//!
//! [`original`] is the response-time form with one length c_q for all sections of q, e_q = c_q times the processors that use q:
//!
//! ```text
//! R = C' + sum of N_{i,q} e_q + max e_q + sum of ceil(R / T_h) (C'_h + sum of N_{h,q} e_q)    over h on i's processor more urgent
//! ```
//! C' without sections; the max is over resources that a less urgent task there uses, those of one processor with a ceiling of at least i's.

use super::mrsp::{Answer, Boosted, inflated};
use super::spin::{Fifo, at_arrival, ceilings};
use super::tables::{Grouping, Saturates, Tables, Tally};
use super::{Delay, fitting, once};
use crate::{Failure, Sharing};

/// The holistic bounds, in the order of the tasks. [`Delay::arrival`] is once a job, [`Delay::remote`] is executed. `interrupts`: a processor that
/// executes no jobs.
///
/// # Errors
/// [`Failure::Overflow`]; [`Failure::Unsupported`] for sets that are none.
pub fn holistic(sharing: &Sharing, interrupts: Option<u16>) -> Result<Vec<Delay>, Failure> {
    once(&mut protocol(sharing, interrupts)?, sharing.tasks.len())
}

/// The same for [`joint`](super::joint).
///
/// # Errors
/// As [`holistic`].
pub fn protocol(sharing: &Sharing, interrupts: Option<u16>) -> Result<Fifo, Failure> {
    Fifo::with_ceilings(sharing, interrupts)
}

/// The classic bounds, in the order of the tasks: the same whatever the response times. [`Delay::remote`] is executed.
///
/// # Errors
/// As [`holistic`].
pub fn classic(sharing: &Sharing) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
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

/// Response times in the original form.
///
/// # Errors
/// As [`mrsp::original`](super::mrsp::original).
pub fn original(sharing: &Sharing) -> Result<Answer, Failure> {
    inflated(sharing, Boosted::AboveAll)
}
