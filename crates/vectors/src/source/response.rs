//! Response times and blocking, computed alternately, under partitioned fixed priorities.

use lockwright_analysis::Sharing;
use serde_json::{Value, json};

/// The remote and the local blocking of each task.
pub(super) type Blocking = Vec<(u64, u64)>;

/// Iterates from R = C until nothing changes, and returns the result in the shape of the examples.
pub(super) fn joint(mut set: Sharing, blocking: impl Fn(&Sharing) -> Option<Blocking>) -> Value {
    let refused = || json!({ "schedulable": false });
    for task in &mut set.tasks {
        task.response = task.cost;
    }
    let mut order: Vec<usize> = (0..set.tasks.len()).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(set.tasks[task].priority));
    // BOUND: responses only grow, and end at the deadline.
    for round in 1_u32.. {
        let Some(blocked) = blocking(&set) else { return refused() };
        let before: Vec<u64> = set.tasks.iter().map(|task| task.response).collect();
        for &i in &order {
            let (own, mut response) = (&set.tasks[i], 0);
            let next = |response: u64| {
                let mut demand = own.cost + blocked[i].0 + blocked[i].1;
                for (h, task) in set.tasks.iter().enumerate() {
                    if h != i && task.cluster == own.cluster && task.priority >= own.priority {
                        let jitter = if blocked[h].0 > 0 { task.response - task.cost } else { 0 };
                        demand += (response + jitter).div_ceil(task.period) * task.cost;
                    }
                }
                demand
            };
            while response <= own.deadline && next(response) != response {
                response = next(response);
            }
            if response > own.deadline {
                return refused();
            }
            set.tasks[i].response = response.max(before[i]);
        }
        if set.tasks.iter().map(|task| task.response).eq(before) {
            let responses: Vec<u64> = set.tasks.iter().map(|task| task.response).collect();
            return json!({ "schedulable": true, "response_times": responses, "outer_iterations": round });
        }
    }
    refused()
}

/// Returns blocking in the shape of the examples.
pub(super) fn told(blocking: Option<Blocking>) -> Value {
    let Some(blocking) = blocking else { return json!({ "failure": "no optimum was found" }) };
    let term = |&(remote, local): &(u64, u64)| json!({ "total": remote + local, "total_count": 0, "remote": remote, "local": local, "arrival": 0 });
    json!({ "per_task": blocking.iter().map(term).collect::<Vec<_>>() })
}
