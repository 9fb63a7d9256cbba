//! The bounds against their definition.

use super::*;
use crate::rows::mutant::Omission;
use crate::rows::sharing::sharing_of;
use fastrand::Rng;
use lockwright_model::{CpuId, DURATION_MAX, Duration, Resource, ResourceId, Step, Task};

/// A small system with short times in a unit.
pub(in crate::blocking) fn drawn(random: &mut Rng, unit: u64) -> System {
    let time = |ns: u64| Duration::from_ns(ns * unit);
    let resource = |index: usize| {
        let mut resource = Resource::new(format!("r{index}"));
        resource.protocol = (index == 3).then_some(Protocol::Icpp);
        resource
    };
    let task = |index: usize, random: &mut Rng| {
        let mut body = vec![Step::Run(time(1))];
        let cpu = random.usize(0..3);
        for _ in 0..random.usize(0..=2) {
            let resource = ResourceId::new(if cpu == 0 { random.usize(0..4) } else { random.usize(0..3) });
            body.extend([Step::Lock(resource), Step::Run(time(random.u64(1..5))), Step::Unlock(resource)]);
        }
        let runs = body.iter().filter_map(|step| if let Step::Run(time) = step { Some(*time) } else { None });
        Task {
            name: format!("t{index}"),
            cpu: CpuId::new(cpu),
            priority: Priority::base(random.u32(1..8)),
            period: time(random.u64(60..400)),
            deadline: time(60),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: runs.sum(),
            body,
        }
    };
    let tasks = (0..random.usize(3..10)).map(|index| task(index, random)).collect();
    System::new("drawn".into(), 3, None, (0..4).map(resource).collect(), tasks).expect("a valid system")
}

/// The definition.
fn expected(tables: &Tables<'_>, responses: &[u64], id: TaskId) -> (Option<u64>, u64) {
    let (system, task) = (tables.system, tables.system.task(id));
    let top = |resource| match tables.protocol(resource) {
        Protocol::FmlpLong => system.highest_user(resource),
        _ => system.ceiling(resource),
    };
    let is_global = |resource| tables.protocol(resource) == Protocol::FmlpLong;
    let (mut remote, mut count) = (Some(0), 0);
    for request in system.requests(id).iter().filter(|request| is_global(request.resource)) {
        let users = || system.users(request.resource).iter().copied().filter(|&user| user != id);
        let length = |user| system.requests(user).iter().find(|its| its.resource == request.resource).unwrap().length;
        let sections: u64 = users().map(|user| length(user).as_ns()).sum();
        let is_near = |other: TaskId| users().any(|user| system.task(user).cpu == system.task(other).cpu);
        let work = |other: TaskId| {
            let rising = system.requests(other).iter().filter(|its| top(its.resource) >= task.priority);
            match system.task(other).priority >= task.priority {
                true => system.task(other).wcet.as_ns(),
                false => rising.map(|its| its.length.as_ns() * u64::from(its.count)).sum(),
            }
        };
        let others: Vec<TaskId> = system.task_ids().filter(|&other| other != id && is_near(other)).collect();
        let all = |window: u64| {
            let jobs = |other: TaskId| {
                (window + responses[other.index()]).div_ceil(system.task(other).period.as_ns()) * work(other)
            };
            sections + others.iter().map(|&other| jobs(other)).sum::<u64>()
        };
        let mut window = sections;
        while sections > 0 && window <= (task.period - task.wcet).as_ns() && all(window) > window {
            window = all(window);
        }
        let fits = sections == 0 || window <= (task.period - task.wcet).as_ns();
        remote = remote.filter(|_| fits).map(|sum| sum + window * u64::from(request.count));
        count += u64::from(request.count);
    }
    let longest = |&lesser: &TaskId| {
        let its = system.requests(lesser).iter();
        let its = its.filter(|its| is_global(its.resource) && top(its.resource) >= task.priority);
        its.map(|its| its.length.as_ns()).max().unwrap_or(0)
    };
    (remote, tables.lesser(id).iter().map(longest).sum::<u64>() * (1 + count))
}

/// Bounds that continue from what is known are those of the definition, for execution times and response times
/// that grow or shrink.
#[test]
fn continued_bounds_are_those_of_the_definition() {
    let mut random = Rng::with_seed(5);
    let (mut bounded, mut unbounded) = (0, 0);
    for round in 0..600 {
        let unit = if round % 3 == 0 { 1 << 26 } else { 1 };
        let mut system = drawn(&mut random, unit);
        let tables = Tables::new(&system, Protocol::FmlpLong, Omission::NOTHING);
        let sharing =
            sharing_of(&system, |demand| tables.protocols[usize::from(demand.resource)] == Protocol::FmlpLong);
        let mut bounds = FmlpLong::new(&tables, &sharing).expect("short times");
        let mut responses: Vec<u64> = system.tasks().iter().map(|task| task.wcet.as_ns()).collect();
        let mut kept: Vec<(Known, Vec<u64>)> = Vec::new();
        for step in 0..20 {
            if random.bool() {
                let id = TaskId::new(random.usize(..responses.len()));
                let mut body = system.task(id).body.clone();
                for step in &mut body {
                    if let Step::Run(time) = step {
                        let longer = time.as_ns() + random.u64(1..3) * unit;
                        *time = Duration::from_ns((longer - random.u64(0..2) * unit).max(unit));
                    }
                }
                system.set_body(id, body).expect("a valid body");
                bounds.set_tasks(&system, &[id]);
                if random.bool()
                    && let Some((known, then)) = kept.get(random.usize(..kept.len().max(1)))
                {
                    bounds.recall(known);
                    responses.clone_from(then);
                }
            }
            for response in &mut responses {
                match random.u8(..8) {
                    0 => *response += random.u64(1..100) * unit,
                    1 if step % 4 == 0 => *response = (*response / 2).max(1),
                    _ => {}
                }
            }
            let tables = Tables::new(&system, Protocol::FmlpLong, Omission::NOTHING);
            let mut delays = vec![Delay::default(); responses.len()];
            bounds.set_responses(&responses).expect("short times");
            bounds.delays(&mut delays).expect("short times");
            for (id, delay) in system.task_ids().zip(&delays) {
                let expected = expected(&tables, &responses, id);
                assert_eq!((delay.remote, delay.local), expected, "{round}, {step}: {id:?} in {system:?}");
                *(if expected.0.is_some() { &mut bounded } else { &mut unbounded }) += 1;
            }
            kept.push((bounds.known().clone(), responses.clone()));
        }
    }
    assert!(bounded > 10_000 && unbounded > 20, "{bounded}, {unbounded}");
}

/// Sets these response times and compares all bounds with the definition.
fn check(bounds: &mut FmlpLong, tables: &Tables<'_>, responses: &[u64]) {
    let mut delays = vec![Delay::default(); responses.len()];
    bounds.set_responses(responses).expect("short times");
    bounds.delays(&mut delays).expect("short times");
    for (id, delay) in tables.system.task_ids().zip(&delays) {
        assert_eq!((delay.remote, delay.local), expected(tables, responses, id), "{id:?} in {:?}", tables.system);
    }
}

/// However often response times rise, bounds are those of the definition. The longest response times rise so often
/// that their sum would not fit.
#[test]
fn rises_do_not_add_up_beyond_their_range() {
    let mut random = Rng::with_seed(6);
    for _ in 0..20 {
        let system = drawn(&mut random, 1);
        let tables = Tables::new(&system, Protocol::FmlpLong, Omission::NOTHING);
        let sharing =
            sharing_of(&system, |demand| tables.protocols[usize::from(demand.resource)] == Protocol::FmlpLong);
        let mut bounds = FmlpLong::new(&tables, &sharing).expect("short times");
        let least: Vec<u64> = system.tasks().iter().map(|task| task.wcet.as_ns()).collect();
        let longest = vec![DURATION_MAX.as_ns(); least.len()];
        for _ in 0..u64::MAX / DURATION_MAX.as_ns() + 2 {
            bounds.set_responses(&least).expect("short times");
            bounds.set_responses(&longest).expect("rises that fit");
        }
        check(&mut bounds, &tables, &least);
        // Response times that never fall. The works are those of the last level.
        bounds.known.rises.fill(u64::MAX - 1);
        bounds.known.rising_rises.fill(u64::MAX - 1);
        let longer: Vec<u64> = least.iter().map(|response| response + 3).collect();
        check(&mut bounds, &tables, &longer);
        assert!(bounds.known.rises.iter().chain(&bounds.known.rising_rises).all(|&rises| rises <= RISES_MAX));
    }
}

/// `busy` may execute instead of `owner`, and the number of its jobs rests on its response time. It has no requests.
#[test]
fn a_task_without_a_bound_that_delays_an_owner_takes_the_bound_of_the_waiter() {
    let system = |cost: u64| {
        let ns = Duration::from_ns;
        let task = |name: &str, cpu, priority, period, body: Vec<Step>| Task {
            name: name.into(),
            cpu: CpuId::new(cpu),
            priority: Priority::base(priority),
            period: ns(period),
            deadline: ns(period),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum(),
            body,
        };
        let (r, run) = (ResourceId::new(0), |time| Step::Run(ns(time)));
        let section = || vec![Step::Lock(r), run(10), Step::Unlock(r)];
        let tasks = vec![
            task("waiter", 0, 8, 100_000, section()),
            task("first", 1, 10, 100, vec![run(50)]),
            task("busy", 1, 9, 65, vec![run(cost)]),
            task("owner", 1, 1, 100_000, section()),
        ];
        System::new("kept".into(), 2, None, vec![Resource::new("r")], tasks).expect("a valid system")
    };
    let bounds = |cost| crate::analyse(&system(cost), Protocol::FmlpLong).tasks;
    // With 30, its response time of 80 is beyond its period, although the processor has time left.
    let [short, long] = [bounds(10), bounds(30)];
    assert!(short.iter().all(|task| task.response.is_some()), "{short:?}");
    assert_eq!(long[2].unbounded, Some(crate::Unbounded::BeyondPeriod));
    assert_eq!(long[0].unbounded, Some(crate::Unbounded::DependsOn { task: TaskId::new(2) }));
}
