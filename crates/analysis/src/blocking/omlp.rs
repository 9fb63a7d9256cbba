//! The O(m) locking protocol (OMLP), with suspension counted as execution.
//!
//! The sources are Brandenburg, Anderson, *Optimality results for multiprocessor real-time locking*, RTSS 2010 (global,
//! partitioned), and *Real-time resource-sharing under clustered scheduling: mutex, reader-writer, and k-exclusion
//! locks*, EMSOFT 2011 (clustered, by priority donation).
//!
//! ```text
//! global: remote = sum over q of the longest requests of others for q:
//!           at most N(i,q) of each if at most m + 1 tasks use q;
//!           else at most 2 N(i,q) of each, (2m - 1) N(i,q) in all
//! partitioned, clustered: as a FIFO spinlock, where the longest span is that of a donor (see spin)
//! k units of a resource: of the same requests at most (ceil(m / k) - 1) N(i,q) in all
//! readers and writers: as a phase-fair lock
//! ```
//! All delays add to execution. Times are in the unit of the input.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::omlp;
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
//! assert_eq!(omlp::global(&sharing, 2)?[0].remote, Some(5));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Delay, Platform, fitting};
use super::fmlp::of_resources;
use super::spin::{self, ReadersWriters, at_arrival, candidates, longest_limited};
use crate::rows::requests::{Grouping, RequestTables};
use crate::rows::tally::{Saturates, Tally};
use crate::{Failure, Sharing};

/// Returns bounds on the blocking of one job of each task under the global OMLP on `processors` processors, in the
/// order of the tasks.
///
/// Clusters and priorities do not matter. The source is in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overload`] without processors, [`Failure::Unsupported`] for a period of 0 or a resource that a
/// task names twice, and [`Failure::Overflow`] if a number does not fit.
pub fn global(sharing: &Sharing, processors: u16) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    if processors == 0 && !tasks.is_empty() {
        return Err(Failure::Overload);
    }
    let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
    let m = usize::from(processors);
    let delays = of_resources(&tables, |users, issued| {
        if users <= m + 1 { (None, issued) } else { (Some((2 * m as u64 - 1) * issued), 2 * issued) }
    });
    fitting(&delays)?;
    Ok(delays)
}

/// Returns bounds on the blocking of one job of each task under the clustered OMLP, in the order of the tasks.
///
/// With clusters of one processor, this is the partitioned OMLP. The source is in the [module](self).
///
/// # Errors
/// Returns the errors of [`spin::fifo`].
pub fn clustered(sharing: &Sharing, platform: Platform) -> Result<Vec<Delay>, Failure> {
    spin::fifo(sharing, platform)
}

/// Returns bounds on the blocking of one job of each task under the clustered reader-writer OMLP, in the order of the
/// tasks.
///
/// The source is in the [module](self).
///
/// # Errors
/// Returns the errors of [`spin::fifo`].
pub fn clustered_readers_writers(sharing: &ReadersWriters, platform: Platform) -> Result<Vec<Delay>, Failure> {
    spin::phase_fair(sharing, platform)
}

/// Returns bounds on the blocking of one job of each task under the clustered k-exclusion OMLP, in the order of the
/// tasks.
///
/// `units` contains the number of units of each resource. A resource beyond its end has one unit. The source is in the
/// [module](self).
///
/// # Errors
/// Returns the errors of [`spin::fifo`], and [`Failure::Unsupported`] for a request for a resource with no unit.
pub fn clustered_k_exclusion(sharing: &Sharing, platform: Platform, units: &[u32]) -> Result<Vec<Delay>, Failure> {
    platform.holds(&sharing.tasks)?;
    let tasks = &sharing.tasks;
    let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
    let processors = u64::from(platform.clusters) * u64::from(platform.processors);
    let processors = processors.saturating_sub(u64::from(platform.interrupts.is_some()));
    let mut delays = Vec::with_capacity(tasks.len());
    let mut spans = Vec::with_capacity(tasks.len());
    let parallel = spin::processors(&tables, platform);
    let mut limited = Vec::new();
    for (task, sharer) in tasks.iter().enumerate() {
        let window = tables.window(task);
        let (mut remote, mut span) = (Tally::default(), Tally::default());
        let demands = sharer.requests.iter().filter(|demand| demand.count > 0);
        for (demand, asked) in demands.zip(tables.asked(task)) {
            let k = u64::from(units.get(usize::from(demand.resource)).copied().unwrap_or(1));
            if k == 0 {
                return Err(Failure::Unsupported { task, what: "it has a request for a resource with no unit" });
            }
            let before = processors.div_ceil(k).saturating_sub(1);
            let issued = u64::from(asked.count);
            candidates(&tables, &parallel, window, task, asked.resource, issued, &mut limited);
            remote.add(longest_limited(&mut limited, before.saturating_mul(issued)));
            candidates(&tables, &parallel, window, task, asked.resource, 1, &mut limited);
            let mut once = longest_limited(&mut limited, before);
            once.count::<Saturates>(1, asked.length);
            span = span.max(once);
        }
        delays.push(Delay::new(remote, Tally::default(), Tally::default()));
        spans.push(span);
    }
    at_arrival(&tables, &spans, &mut delays);
    fitting(&delays)?;
    Ok(delays)
}
