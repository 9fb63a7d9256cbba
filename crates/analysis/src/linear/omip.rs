//! OMIP: clusters, global FIFO queues over queues of each cluster, migratory priority inheritance, and suspensions
//! counted as execution.
//!
//! Symbols: m is the number of processors, c that of a cluster, N(i,q) the number of requests of one job of i for q,
//! and u(q) the number of tasks on the cluster of i that use q. The requests for each resource q that delay a job of i
//! are limited:
//! - in total to N(i,q) * (2 m - 1);
//! - of each other cluster to N(i,q) * u(q) if u(q) <= 2 c, else to N(i,q) * (c + m);
//! - of each other task of the same cluster to N(i,q) if u(q) <= 2 c, else to 2 N(i,q).
//!
//! The constraints are nested. The longest requests within these limits are therefore the optimum.
//!
//! # Reference
//! B. Brandenburg, "A fully preemptive multiprocessor semaphore protocol for latency-sensitive real-time applications",
//! ECRTS 2013.

use super::sum;
use super::view::{View, add_product, product};
use crate::{Failure, Sharing};

/// Returns bounds on the suspension-oblivious blocking of one job of each task under the OMIP, on `processors`
/// processors in clusters of `cluster_size`, in the order of the tasks.
///
/// The source is Brandenburg, ECRTS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn omip(sharing: &Sharing, processors: u16, cluster_size: u16) -> Result<Vec<u64>, Failure> {
    let view = View::new(sharing, &[])?;
    let (m, c) = (u64::from(processors), u64::from(cluster_size));
    let mut jobs = Vec::new();
    let mut own = Vec::new();
    let mut all = Vec::with_capacity(view.tasks());
    for i in 0..view.tasks() {
        view.jobs_of_all(i, &mut jobs)?;
        view.own_counts(i, &mut own)?;
        let mut users = vec![0; view.resources];
        for entry in view.entries.iter().filter(|entry| view.is_local(i, entry.task)) {
            users[entry.resource] += 1;
        }
        let mut of_all = own.iter().map(|&n| product(n, (2 * m).saturating_sub(1))).collect::<Result<Vec<_>, _>>()?;
        let mut of_cluster = Vec::with_capacity(view.clusters * view.resources);
        for _ in 0..view.clusters {
            for (&n, &users) in own.iter().zip(&users) {
                of_cluster.push(product(n, if users <= 2 * c { users } else { c + m })?);
            }
        }
        let mut delay = 0;
        for entry in view.entries.iter().filter(|entry| entry.task != i && own[entry.resource] > 0) {
            let q = entry.resource;
            let issued = product(entry.count, jobs[entry.task])?;
            let taken = if view.is_local(i, entry.task) {
                issued.min(product(own[q], if users[q] > 2 * c { 2 } else { 1 })?).min(of_all[q])
            } else {
                let of_cluster = &mut of_cluster[view.rows[entry.task].cluster * view.resources + q];
                let taken = issued.min(*of_cluster).min(of_all[q]);
                *of_cluster -= taken;
                taken
            };
            of_all[q] -= taken;
            add_product(&mut delay, taken, entry.length)?;
        }
        all.push(sum(delay, 0)?);
    }
    Ok(all)
}
