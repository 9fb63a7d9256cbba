//! The OMIP: Brandenburg, ECRTS 2013. The constraints nest, so the optimum takes the longest requests first.

use super::answers::Answers;
use super::requests::{asked, issued, others};
use crate::{Input, Malformed};
use lockwright_analysis::Sharing;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn blocking(input: &Input) -> Result<Answers, Malformed> {
    let set = crate::linear::sharing(input)?;
    let (processors, cluster) = (input.number("num_cpus")?, input.number("cluster_size")?);
    let told = |of_cluster| {
        let term = |i| json!({ "total": bound(&set, i, processors, cluster, of_cluster), "total_count": 0, "remote": 0, "local": 0, "arrival": 0 });
        json!({ "per_task": (0..set.tasks.len()).map(term).collect::<Vec<Value>>() })
    };
    // The source uses the number of all processors to decide on local tasks.
    Ok(Answers { published: told(processors), corrected: told(cluster) })
}

/// Returns the bound. `local` is the number of processors that
/// decides whether a local task can precede a request twice.
fn bound(set: &Sharing, i: usize, processors: u64, cluster: u64, local: u64) -> u64 {
    let own = &set.tasks[i];
    let resources: BTreeSet<u16> = own.requests.iter().map(|request| request.resource).collect();
    let mut total = 0;
    for resource in resources {
        let count = asked(own, resource);
        let users =
            set.tasks.iter().filter(|task| task.cluster == own.cluster && asked(task, resource) > 0).count() as u64;
        let mut left = count * (2 * processors - 1);
        let elsewhere = count * if users <= 2 * cluster { users } else { cluster + processors };
        let mut of_cluster: BTreeMap<u16, u64> = BTreeMap::new();
        let mut requests: Vec<_> = others(set, i)
            .flat_map(|x| set.tasks[x].requests.iter().map(move |request| (x, request)))
            .filter(|(_, request)| request.resource == resource)
            .collect();
        requests.sort_by_key(|(_, request)| std::cmp::Reverse(request.length));
        for (x, request) in requests {
            let most = issued(set, x, own.response, request.count).min(left);
            let taken = if set.tasks[x].cluster == own.cluster {
                most.min(count * if users > 2 * local { 2 } else { 1 })
            } else {
                let of_cluster = of_cluster.entry(set.tasks[x].cluster).or_insert(elsewhere);
                let taken = most.min(*of_cluster);
                *of_cluster -= taken;
                taken
            };
            left -= taken;
            total += taken * request.length;
        }
    }
    total
}
