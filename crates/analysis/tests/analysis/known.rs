//! Systems whose response times are known.

#[cfg(feature = "lp")]
use lockwright_analysis::Proof;
use lockwright_analysis::{Analysis, Cause, Growth, Sensitivity, Unbounded, analyse, explain, sensitivity};
use lockwright_model::format::parse_system;
use lockwright_model::{
    CpuId, Duration, Overheads, Priority, Protocol, Request, Resource, ResourceId, Step, System, Task, TaskId,
    place_requests,
};
use serde::Deserialize;

fn pathfinder() -> System {
    parse_system(include_str!("../../../../examples/pathfinder.toml")).expect("the example is valid")
}

fn responses(analysis: &Analysis) -> Vec<Option<Duration>> {
    analysis.tasks.iter().map(|task| task.response).collect()
}

fn task(system: &System, name: &str) -> TaskId {
    system.task_ids().find(|&id| system.task(id).name == name).expect("the system has this task")
}

#[test]
fn mars_pathfinder_meets_every_deadline_under_pip_and_icpp() {
    let system = pathfinder();
    let expected: Vec<_> = [10, 43, 73, 83, 93, 183, 183].map(|ms| Some(Duration::from_ms(ms))).to_vec();
    for protocol in [Protocol::Pip, Protocol::Icpp, Protocol::Mpcp] {
        let analysis = analyse(&system, protocol);
        assert_eq!(responses(&analysis), expected, "{protocol}");
        assert!(analysis.schedulable());
        let (worst, slack) = analysis.worst_slack(&system).unwrap();
        assert_eq!((system.task(worst).name.as_str(), slack), ("distribution_donnees", 7_000_000));
    }
}

#[test]
fn without_a_protocol_mars_pathfinder_has_inversions() {
    let system = pathfinder();
    let analysis = analyse(&system, Protocol::None);
    assert!(!analysis.schedulable());
    assert_eq!(analysis.worst_slack(&system), None);
    // The most urgent task shares no resource.
    assert_eq!(responses(&analysis), [vec![Some(Duration::from_ms(10))], vec![None; 6]].concat());
    let bus = analysis.task(task(&system, "distribution_donnees"));
    let Some(Unbounded::Inversion { holder, between, .. }) = &bus.unbounded else { panic!("{bus:?}") };
    assert_eq!(system.task(*holder).name, "tache_meteo");
    for name in ["tache_radio", "tache_camera"] {
        assert!(between.contains(&task(&system, name)), "{name}");
    }
    let radio = analysis.task(task(&system, "tache_radio")).unbounded.clone().unwrap();
    assert!(radio.describe(&system).contains("`distribution_donnees`"), "{}", radio.describe(&system));
    // As an error, the reason has ids in place of names.
    let error: Box<dyn std::error::Error> = Box::new(radio);
    let by = task(&system, "distribution_donnees");
    assert!(error.to_string().starts_with(&format!("the more urgent task {} can itself", by.0)), "{error}");
}

#[test]
fn under_lock_free_a_late_task_takes_bounds_of_no_more_urgent_task() {
    let system = pathfinder();
    let analysis = analyse(&system, Protocol::LockFree);
    // A job of each task that uses the bus, 10 ms long, makes one attempt of each less urgent user fail.
    let expected = [10, 20, 40, 50, 80].map(|ms| Some(Duration::from_ms(ms)));
    assert_eq!(responses(&analysis), [expected.as_slice(), &[None, None]].concat());
}

/// `brother` has no bound, and executes beside `slow`, which has the same priority: nobody knows how often the remote
/// task commits during one operation of `slow`.
#[test]
fn under_lock_free_a_bound_needs_those_of_equal_priority() {
    let text = |brother: &str| {
        format!(
            r#"
name = "equals"
protocol = "lock_free"
platform = {{ cpus = 2, priorities = "explicit" }}
resource = [{{ name = "object" }}]

[[task]]
name = "slow"
cpu = 0
priority = 1
period = "1 s"
wcet = "6 ms"
requests = [{{ resource = "object", length = "3 ms" }}]

[[task]]
name = "brother"
cpu = 0
priority = 1
period = "10 ms"
wcet = "{brother}"

[[task]]
name = "remote"
cpu = 1
priority = 2
period = "20 ms"
wcet = "1 ms"
requests = [{{ resource = "object", length = "1 ms" }}]
"#
        )
    };
    let bounded = |brother: &str| {
        let system = parse_system(&text(brother)).expect("is valid");
        let analysis = analyse(&system, Protocol::LockFree);
        ["slow", "brother"].map(|name| analysis.task(task(&system, name)).response.is_some())
    };
    assert_eq!(bounded("1 ms"), [true, true]);
    assert_eq!(bounded("5 ms"), [false, false]);
}

#[test]
fn every_explanation_sums_to_its_bound() {
    let robot = parse_system(include_str!("../../../../examples/robot.toml")).unwrap();
    let mut bounded = 0;
    for (system, protocol) in
        [pathfinder(), robot].iter().flat_map(|system| Protocol::ALL.map(|protocol| (system, protocol)))
    {
        let analysis = analyse(system, protocol);
        if analysis.tasks.iter().any(|task| task.response.is_none()) {
            continue;
        }
        bounded += 1;
        for id in system.task_ids() {
            let bound = analysis.task(id);
            let terms = explain(system, &analysis, id);
            let sum: Duration = terms.iter().map(|term| term.total).sum();
            assert_eq!(Some(sum), bound.response, "{} under {protocol}: {terms:#?}", system.task(id).name);
            let of = |causes: &[Cause]| -> Duration {
                terms.iter().filter(|term| causes.contains(&term.cause)).map(|term| term.total).sum()
            };
            let blocking = bound.blocking.unwrap();
            assert_eq!(of(&[Cause::Local]), blocking.local);
            assert_eq!(of(&[Cause::Boosted]), blocking.boosted);
            let waits = of(&[Cause::Waiting, Cause::Holder, Cause::Urgent]);
            // If waiting counts as execution, the waits of more urgent tasks are part of their interference.
            let oblivious = matches!(protocol, Protocol::MpcpVs | Protocol::Omlp);
            assert!(waits == blocking.remote || oblivious && waits < blocking.remote, "{protocol}");
        }
    }
    // All protocols except `none` and `lock_free` on one processor; all multiprocessor protocols on two.
    assert_eq!(bounded, 17 + 14);
}

/// Another task has a lower bound by a program, which the classic bound of `t1` does not use.
#[cfg(feature = "lp")]
#[test]
fn a_classic_explanation_beside_a_program_sums_to_its_bound() {
    let task = |(name, period, cpu, priority, body): (&str, u64, u32, u32, &str)| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\ncpu = {cpu}\npriority = {priority}\nbody = [{body}]\n"
        )
    };
    let section = |resource: &str, rest: &str| {
        format!("{{ lock = \"{resource}\" }}, {{ run = \"1 ns\" }}, {{ unlock = \"{resource}\" }}{rest}")
    };
    let (alone, rest) = (section("r1", ""), section("r1", ", { run = \"1 ns\" }"));
    let (more, other) = (section("r1", ", { run = \"2 ns\" }"), section("r0", ""));
    let twice = format!("{}, {other}", section("r0", ", { run = \"2 ns\" }"));
    let late = format!("{{ run = \"1 ns\" }}, {}", section("r0", ", { run = \"4 ns\" }"));
    let tasks = [
        ("t0", 114, 0, 1, &*twice),
        ("t1", 37, 1, 5, &*rest),
        ("t2", 41, 1, 6, &*more),
        ("t3", 49, 1, 6, "{ run = \"3 ns\" }"),
        ("t4", 25, 1, 6, &*alone),
        ("t5", 24, 1, 5, &*other),
        ("t6", 55, 0, 5, &*late),
    ];
    let head =
        "[platform]\ncpus = 2\npriorities = \"explicit\"\n[[resource]]\nname = \"r0\"\n[[resource]]\nname = \"r1\"\n";
    let text: String = std::iter::once(head.to_owned()).chain(tasks.map(task)).collect();
    let system = parse_system(&text).expect("a valid task set");
    let (analysis, uncovered) = lockwright_analysis::best(&system, Protocol::Mpcp);
    assert!(uncovered.is_none());
    let proofs: Vec<Proof> = analysis.tasks.iter().map(|bound| bound.proof).collect();
    assert!(proofs.contains(&Proof::Classic) && proofs.contains(&Proof::Program), "{proofs:?}");
    for id in system.task_ids() {
        let sum: Duration = explain(&system, &analysis, id).iter().map(|term| term.total).sum();
        assert_eq!(Some(sum), analysis.task(id).response, "{}", system.task(id).name);
    }
}

fn grown(system: &System, protocol: Protocol) -> Sensitivity {
    sensitivity(system, &Overheads::default(), protocol, |_, _| true).expect("it is not interrupted")
}

#[test]
fn sensitivity_finds_the_last_factor_that_holds() {
    let system = pathfinder();
    let found = grown(&system, Protocol::Icpp);
    let Growth::Permille(all) = found.all else { panic!("{found:?}") };
    // tache_camera is the first to miss its deadline: 93 ms grow to at most 100 ms.
    assert_eq!(all, 1075);
    let (_, Growth::Permille(buffer)) = found.resources[0] else { panic!("{found:?}") };
    // Again tache_camera: 10 of its own, 20 + 10 of others, 23 f of blocking, and 20 f + 10 f of the users above it.
    assert_eq!(buffer, 1132, "40 + 53 f <= 100");
    // The 20 ms of tache_mesures are one section, and tache_camera has room for 23 + 7 ms of it.
    assert_eq!(found.tasks[5].1, Growth::Permille(1500));
    let tolerated: Vec<u64> = found.tolerated.iter().map(|(_, most)| most.unwrap().as_ns() / 1_000_000).collect();
    // distribution_donnees has room for 7 ms within its 50, whichever task before it is blocked. Two jobs of the first
    // two tasks delay tache_camera.
    assert_eq!(tolerated[..5], [3, 3, 7, 7, 7]);
    assert_eq!(grown(&system, Protocol::None).all, Growth::Broken);
    assert!(grown(&system, Protocol::None).tolerated.iter().all(|(_, most)| most.is_none()));
}

#[test]
fn one_nanosecond_more_than_is_tolerated_breaks_a_deadline() {
    // a: b has 2, and 3 + x for each of two jobs within its 20 ms. b: 2 + x, and 3 twice.
    let source = r#"
        [[task]]
        name = "a"
        period = "10 ms"
        wcet = "3 ms"
        [[task]]
        name = "b"
        period = "20 ms"
        wcet = "2 ms"
    "#;
    let found = grown(&parse_system(source).unwrap(), Protocol::Icpp);
    let ms = |most: Option<Duration>| most.map(|most| most.as_ns() as f64 / 1e6);
    assert_eq!((ms(found.tolerated[0].1), ms(found.tolerated[1].1)), (Some(6.0), Some(12.0)));
}

#[test]
fn sensitivity_can_be_interrupted() {
    let mut asked = 0;
    let stopped = sensitivity(&pathfinder(), &Overheads::default(), Protocol::Icpp, |done, whole| {
        assert!(done < whole);
        asked += 1;
        asked < 5
    });
    assert_eq!((stopped, asked), (None, 5));
}

#[test]
fn an_overloaded_processor_has_no_bound_for_the_least_urgent() {
    let source = r#"
        [[task]]
        name = "a"
        period = "10 ms"
        wcet = "6 ms"
        [[task]]
        name = "b"
        period = "20 ms"
        wcet = "9 ms"
    "#;
    let system = parse_system(source).unwrap();
    let analysis = analyse(&system, Protocol::Icpp);
    assert_eq!(analysis.tasks[0].response, Some(Duration::from_ms(6)));
    assert_eq!((analysis.tasks[1].response, analysis.tasks[1].schedulable), (None, false));
    assert_eq!(analysis.tasks[1].unbounded, Some(Unbounded::BeyondPeriod));
    // The execution times must shrink to 20 / 21.
    assert_eq!(grown(&system, Protocol::Icpp).all, Growth::Permille(952));
}

#[test]
fn shared_resources_point_to_mpcp() {
    let source = r#"
        [platform]
        cpus = 2
        [[resource]]
        name = "bus"
        [[task]]
        name = "a"
        cpu = 0
        period = "10 ms"
        wcet = "2 ms"
        requests = [{ resource = "bus", length = "1 ms" }]
        [[task]]
        name = "b"
        cpu = 1
        period = "20 ms"
        wcet = "2 ms"
        requests = [{ resource = "bus", length = "1 ms" }]
    "#;
    let system = parse_system(source).unwrap();
    for protocol in [Protocol::None, Protocol::Pip, Protocol::Icpp] {
        for bound in analyse(&system, protocol).tasks {
            assert_eq!(bound.response, None);
            assert!(bound.unbounded.unwrap().describe(&system).contains("`mpcp`"));
        }
    }
    // Each waits for one section of the other: R = 2 + 1 if the other is less urgent, and one job of a precedes b.
    let analysis = analyse(&system, Protocol::Mpcp);
    assert_eq!(responses(&analysis), [Some(Duration::from_ms(3)), Some(Duration::from_ms(3))]);
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    tasks: Vec<VectorTask>,
    expected: Expected,
}

#[derive(Deserialize)]
struct VectorTask {
    period: u64,
    cost: u64,
    deadline: u64,
    partition: u16,
    priority: u32,
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
    schedulable: bool,
    response_times: Option<Vec<u64>>,
}

/// An end-to-end comparison with SchedCAT's MPCP. Our bound counts fewer carried-in jobs, and treats local resources as
/// such, so it is never looser.
#[test]
fn mpcp_is_never_looser_than_published() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../data/mpcp_response.json")).unwrap();
    assert_eq!(vectors.len(), 8);
    let (mut equal, mut tighter) = (0, 0);
    for vector in &vectors {
        let last = vector.tasks.iter().flat_map(|task| &task.requests).map(|request| request.resource).max();
        let resources = (0..=last.unwrap_or(0)).map(|index| Resource::new(format!("r{index}"))).collect();
        let tasks = vector.tasks.iter().enumerate().map(|(index, task)| {
            let request = |request: &VectorRequest| Request {
                resource: ResourceId(request.resource),
                count: request.count,
                length: Duration::from_ns(request.length),
                mode: lockwright_model::Mode::Write,
            };
            let requests: Vec<Request> = task.requests.iter().map(request).collect();
            let wcet = Duration::from_ns(task.cost);
            Task {
                name: format!("t{index}"),
                cpu: CpuId(task.partition),
                priority: Priority::base(10_000 - task.priority),
                period: Duration::from_ns(task.period),
                deadline: Duration::from_ns(task.deadline),
                jitter: Duration::ZERO,
                offset: Duration::ZERO,
                wcet,
                body: place_requests(wcet, &requests).unwrap(),
            }
        });
        let system = System::new(vector.id.clone(), 64, None, resources, tasks.collect()).unwrap();
        let analysis = analyse(&system, Protocol::Mpcp);
        assert!(analysis.schedulable() || !vector.expected.schedulable, "{}", vector.id);
        for (bound, published) in analysis.tasks.iter().zip(vector.expected.response_times.iter().flatten()) {
            let ours = bound.response.unwrap().as_ns();
            assert!(ours <= *published, "{}: {ours} > {published}", vector.id);
            if ours == *published { equal += 1 } else { tighter += 1 }
        }
    }
    println!("{equal} response times equal, {tighter} tighter");
    assert!(equal + tighter > 20);
}

/// Returns a thousand tasks, each with sections on this number of resources.
fn crowd(resources: usize) -> System {
    let list = (0..resources).map(|index| Resource::new(format!("r{index}"))).collect();
    let second = Duration::from_ms(1_000);
    let body: Vec<Step> = (0..resources)
        .map(ResourceId::new)
        .flat_map(|id| [Step::Lock(id), Step::Run(Duration::from_ns(1)), Step::Unlock(id)])
        .collect();
    let task = |index: usize| Task {
        name: format!("t{index}"),
        cpu: CpuId(0),
        priority: Priority::base(index as u32),
        period: second,
        deadline: second,
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: Duration::from_ns(resources as u64),
        body: body.clone(),
    };
    System::new("crowd".into(), 1, None, list, (0..1_024).map(task).collect()).expect("the system is valid")
}

/// The analysis pairs each job with each section of less urgent tasks: 97 million steps with 185 resources, 101 million
/// with 192.
#[test]
fn interruptible_sections_are_within_the_steps_of_an_analysis() {
    let bounded = analyse(&crowd(185), Protocol::Ics);
    let least = bounded.tasks.first().unwrap();
    // Each of the others executes once, and restarts a section of each resource, or of each task below.
    let again: u64 = (1..1_024).map(|below| below.min(185)).sum();
    assert_eq!(least.response, Some(Duration::from_ns(1_024 * 185 + again)));
    let refused = analyse(&crowd(192), Protocol::Ics);
    assert!(refused.tasks.iter().all(|task| task.response.is_none() && task.unbounded == Some(Unbounded::Unsettled)));
}
