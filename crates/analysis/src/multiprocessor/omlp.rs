//! The O(m) locking protocol (OMLP), suspension counted as execution.
//!
//! Brandenburg, Anderson, Optimality results for multiprocessor real-time locking, RTSS 2010 (global, partitioned), and Real-time resource-sharing
//! under clustered scheduling: mutex, reader-writer, and k-exclusion locks, EMSOFT 2011 (clustered, by priority donation).
//!
//! ```text
//! global: remote = sum over q of the longest requests of others for q:
//!           where at most m + 1 tasks use q: at most N_{i,q} of each; else at most 2 N_{i,q} of each, (2m - 1) N_{i,q} in all
//! partitioned, clustered: as a FIFO spinlock, the longest span being that of a donor (see spin)
//! k units of a resource: of the same requests at most (ceil(m / k) - 1) N_{i,q} in all
//! readers and writers: as a phase-fair lock
//! ```
//! All of it adds to execution.

use super::fmlp::of_resources;
use super::spin::{self, ReadersWriters, at_arrival, candidates, longest_limited};
use super::tables::{Grouping, Saturates, Tables, Tally};
use super::{Delay, Platform, fitting};
use crate::{Failure, Sharing};

/// Under the global OMLP on so many processors, in the order of the tasks. Clusters and priorities do not matter.
///
/// # Errors
/// [`Failure::Overload`] without processors; [`Failure::Overflow`].
pub fn global(sharing: &Sharing, processors: u16) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    if processors == 0 && !tasks.is_empty() {
        return Err(Failure::Overload);
    }
    let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
    let m = usize::from(processors);
    let delays = of_resources(&tables, |users, issued| {
        if users <= m + 1 { (None, issued) } else { (Some((2 * m as u64 - 1) * issued), 2 * issued) }
    });
    fitting(&delays)?;
    Ok(delays)
}

/// Under the clustered OMLP, in the order of the tasks; with clusters of one processor, the partitioned one.
///
/// # Errors
/// As [`spin::fifo`].
pub fn clustered(sharing: &Sharing, platform: Platform) -> Result<Vec<Delay>, Failure> {
    spin::fifo(sharing, platform)
}

/// Under the clustered reader-writer OMLP, in the order of the tasks.
///
/// # Errors
/// As [`spin::fifo`].
pub fn clustered_readers_writers(sharing: &ReadersWriters, platform: Platform) -> Result<Vec<Delay>, Failure> {
    spin::phase_fair(sharing, platform)
}

/// Under the clustered k-exclusion OMLP, in the order of the tasks. `units` has how many units of each resource there are; one of those it does not name.
///
/// # Errors
/// As [`spin::fifo`]; [`Failure::Unsupported`] where a task asks for a resource of no unit.
pub fn clustered_k_exclusion(sharing: &Sharing, platform: Platform, units: &[u32]) -> Result<Vec<Delay>, Failure> {
    platform.holds(&sharing.tasks)?;
    let tasks = &sharing.tasks;
    let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
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
                return Err(Failure::Unsupported { task, what: "it asks for a resource of which there is no unit" });
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
