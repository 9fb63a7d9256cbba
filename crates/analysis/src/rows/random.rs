//! Random task sets for tests.

use crate::{Demand, Sharer, Sharing};
use fastrand::Rng;

/// Returns up to `tasks` tasks on up to `clusters` processors, with distinct priorities and requests for up to
/// `resources` resources.
pub(crate) fn sharing(random: &mut Rng, clusters: u16, tasks: usize, resources: u16) -> Sharing {
    let count = random.usize(1..=tasks);
    let mut priorities: Vec<u32> = (0..count as u32).collect();
    random.shuffle(&mut priorities);
    let tasks = priorities
        .into_iter()
        .map(|priority| {
            let period = random.u64(20..300);
            let cost = random.u64(1..=period / 4);
            let mut requests = Vec::new();
            for resource in 0..resources {
                if random.u8(..3) == 0 {
                    requests.push(Demand { resource, count: random.u32(1..4), length: random.u64(1..6) });
                }
            }
            Sharer {
                cost,
                period,
                deadline: period,
                response: random.u64(cost..=period),
                priority,
                cluster: random.u16(..clusters),
                requests,
            }
        })
        .collect();
    Sharing { tasks }
}
