//! The costs of operations on non-blocking objects, which replace the lengths of sections.
//!
//! A section on a resource under `lock_free` or `wait_free` is one operation. If the resource has a kind of object, and
//! the overheads have the cost of this kind, the section takes as long as the cost for the number of tasks that use the
//! resource.

use super::body::runs;
use lockwright_model::{
    Duration, Invalid, ObjectKind, Overheads, Progress, Protocol, ResourceId, Step, Subject, System,
};
use std::borrow::Cow;

/// Returns the system with the costs of operations as the lengths of their sections, if `protocol` governs the resources
/// that name none.
///
/// # Errors
/// Returns an error if more tasks use an object than its cost was measured for, or if a time does not fit.
pub(super) fn with_operations<'a>(
    system: &'a System,
    overheads: &Overheads,
    protocol: Protocol,
) -> Result<Cow<'a, System>, Invalid> {
    let cost = |id: ResourceId| cost(system, overheads, protocol, id);
    let costs = system.resource_ids().map(cost).collect::<Result<Vec<Option<Duration>>, Invalid>>()?;
    if costs.iter().all(Option::is_none) {
        return Ok(Cow::Borrowed(system));
    }
    let mut tasks = system.tasks().to_vec();
    for task in &mut tasks {
        task.body = replaced(&task.body, |id| costs[id.index()]);
        task.wcet = runs(&task.body).ok_or_else(|| {
            let message = "a time that the costs of objects lengthen does not fit";
            Invalid::new(Subject::System, None, message.to_owned(), "check the units of the overheads")
        })?;
    }
    system.with_tasks(tasks).map(Cow::Owned)
}

/// Returns the cost of an operation on the resource, or `None` if its sections keep their lengths.
fn cost(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    id: ResourceId,
) -> Result<Option<Duration>, Invalid> {
    let progress = match system.protocol_of(id, protocol) {
        Protocol::LockFree => Progress::LockFree,
        Protocol::WaitFree => Progress::WaitFree,
        _ => return Ok(None),
    };
    let Some(kind) = system.resource(id).object else { return Ok(None) };
    let Some(cost) = overheads.object(kind, progress) else { return Ok(None) };
    let users = u32::try_from(system.users(id).len()).unwrap_or(u32::MAX);
    if !cost.covers(users) {
        return Err(unmeasured(system, id, (kind, progress), users));
    }
    // A section has some length.
    Ok(Some(cost.with(users as usize).max(Duration::from_ns(1))))
}

fn unmeasured(system: &System, id: ResourceId, (kind, progress): (ObjectKind, Progress), users: u32) -> Invalid {
    let name = &system.resource(id).name;
    let message = format!("{users} tasks use `{name}`, more than `{progress}` in [object.{kind}] covers");
    Invalid::new(Subject::Resource(id), None, message, "measure the cost for as many tasks")
}

/// Returns the body with these lengths of sections. A section with a length contains no other.
fn replaced(body: &[Step], length: impl Fn(ResourceId) -> Option<Duration>) -> Vec<Step> {
    let mut inside = false;
    let mut longer = Vec::with_capacity(body.len());
    for &step in body {
        match step {
            Step::Run(_) if inside => continue,
            Step::Lock(id) | Step::Read(id) => {
                longer.push(step);
                longer.extend(length(id).map(Step::Run));
                inside |= length(id).is_some();
                continue;
            }
            Step::Unlock(id) if length(id).is_some() => inside = false,
            Step::Run(_) | Step::Unlock(_) => {}
        }
        longer.push(step);
    }
    longer
}

#[cfg(test)]
mod tests {
    use crate::{charge, charge_by_deadline, scheduled};
    use lockwright_model::format::{parse_overheads, parse_system};
    use lockwright_model::{Protocol, Scheduler, TaskId};

    const TWO: &str = r#"
        [platform]
        cpus = 2
        [[resource]]
        name = "q"
        object = "heap"
        [[task]]
        name = "a"
        cpu = 0
        period = "1 us"
        body = [{ run = "10 ns" }, { lock = "q" }, { run = "5 ns" }, { run = "1 ns" }, { unlock = "q" }, { run = "1 ns" }]
        [[task]]
        name = "b"
        cpu = 1
        period = "2 us"
        body = [{ lock = "q" }, { run = "7 ns" }, { unlock = "q" }]
    "#;

    #[test]
    fn sections_take_as_long_as_operations() {
        let system = parse_system(TWO).expect("valid");
        let overheads = "[object.heap]\nlock_free = [[2, \"40 ns\"], [8, \"90 ns\"]]\nwait_free = [[1, \"60 ns\"]]\n";
        let overheads = parse_overheads(overheads).expect("valid");
        let length = |protocol| {
            let charged = charge(&system, &overheads, protocol).expect("covered");
            let task = |id| (charged.requests(TaskId(id))[0].length.as_ns(), charged.task(TaskId(id)).wcet.as_ns());
            (task(0), task(1))
        };
        assert_eq!(length(Protocol::LockFree), ((40, 51), (40, 40)));
        assert_eq!(length(Protocol::FmlpShort), ((6, 17), (7, 7)), "the length of the file");
        let beyond = charge(&system, &overheads, Protocol::WaitFree).expect_err("two tasks").message;
        assert!(beyond.contains("2 tasks use `q`, more than `wait_free` in [object.heap] covers"), "{beyond}");
        for scheduler in [Scheduler::PEdf, Scheduler::GEdf, Scheduler::GFp] {
            let of = |protocol| system.clone().under(scheduler).with_protocol(protocol);
            let charged = charge_by_deadline(&of(Protocol::LockFree), &overheads).expect("covered");
            assert_eq!(charged.task(TaskId(0)).wcet.as_ns(), 51, "{scheduler}");
            assert!(scheduled(&of(Protocol::LockFree), &overheads).is_ok_and(|found| found.schedulable), "{scheduler}");
            assert!(charge_by_deadline(&of(Protocol::WaitFree), &overheads).is_err(), "{scheduler}");
            assert!(scheduled(&of(Protocol::WaitFree), &overheads).is_err(), "{scheduler}");
        }
    }
}
