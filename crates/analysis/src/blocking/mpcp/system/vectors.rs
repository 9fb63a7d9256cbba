//! The published form of the bound, exactly as SchedCAT computes it: with R = T for every task.

use super::{Remote, boosted};
use crate::rows::mutant::Omission;
use crate::rows::tables::Tables;
use lockwright_model::{
    CpuId, Duration, Priority, Protocol, Request, Resource, ResourceId, System, Task, TaskId, place_requests,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    id: String,
    virtual_spinning: bool,
    tasks: Vec<VectorTask>,
    expected: Vec<Expected>,
}

#[derive(Deserialize)]
struct VectorTask {
    period: u64,
    priority: u32,
    cluster: u16,
    cost: u64,
    response: u64,
    requests: Vec<VectorRequest>,
}

#[derive(Deserialize)]
struct VectorRequest {
    count: u32,
    length: u64,
    resource: u16,
}

#[derive(Deserialize)]
struct Expected {
    remote: u64,
    local: u64,
}

/// The source's representation of "unbounded".
const UNBOUNDED: u64 = u32::MAX as u64;

fn system(vector: &Vector) -> System {
    let last = vector.tasks.iter().flat_map(|task| &task.requests).map(|request| request.resource).max();
    let resources: Vec<Resource> = (0..=last.unwrap_or(0)).map(|index| Resource::new(format!("r{index}"))).collect();
    let task = |(index, task): (usize, &VectorTask)| {
        let requests: Vec<Request> = task
            .requests
            .iter()
            .map(|request| Request {
                resource: ResourceId(request.resource),
                count: request.count,
                length: Duration::from_ns(request.length),
                mode: lockwright_model::Mode::Write,
            })
            .collect();
        // Some vectors omit the cost, which the blocking terms do not use.
        let inside: u64 = task.requests.iter().map(|request| u64::from(request.count) * request.length).sum();
        let wcet = Duration::from_ns(task.cost.max(inside).max(1));
        Task {
            name: format!("t{index}"),
            cpu: CpuId(task.cluster),
            // In the source, a smaller number is more urgent.
            priority: Priority::base(10_000 - task.priority),
            period: Duration::from_ns(task.period),
            deadline: Duration::from_ns(task.period),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet,
            body: place_requests(wcet, &requests).unwrap(),
        }
    };
    let tasks = vector.tasks.iter().enumerate().map(task).collect();
    System::new(vector.id.clone(), 64, None, resources, tasks).unwrap()
}

#[test]
fn the_published_terms_are_reproduced_exactly() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../../../data/mpcp_blocking.json")).unwrap();
    assert_eq!(vectors.len(), 26);
    let mut compared = 0;
    for vector in &vectors {
        let system = system(vector);
        let mut tables = Tables::new(&system, Protocol::Mpcp, Omission::NOTHING);
        // The source treats every resource as shared across processors.
        tables.protocols.fill(Protocol::Mpcp);
        for id in system.task_ids() {
            tables.suspensions[id.index()] = system.requests(id).iter().map(|r| u64::from(r.count)).sum();
        }
        let remote = Remote::new(&tables).unwrap();
        let period = |id: TaskId| Some(vector.tasks[id.index()].period);
        for (id, expected) in system.task_ids().zip(&vector.expected) {
            let known = &vector.tasks[id.index()];
            // The source stops when a wait exceeds this value.
            let limit = known.response.max(known.period);
            let suspended = system.requests(id).iter().try_fold(0, |sum, request| {
                let wait = remote.wait(&tables, id, request.resource, period, limit).ok()?;
                Some(sum + wait.total * u64::from(request.count))
            });
            assert_eq!(suspended.unwrap_or(UNBOUNDED), expected.remote, "{} {id:?} remote", vector.id);
            let occasions = if vector.virtual_spinning { 1 } else { 1 + tables.suspensions[id.index()] };
            let local: u64 = boosted(&tables, id).map(|section| section.length).sum::<u64>() * occasions;
            assert_eq!(local, expected.local, "{} {id:?} local", vector.id);
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} tasks were compared");
}
