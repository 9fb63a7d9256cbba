//! Scripted stalls: a processor executes no task for some time.

use lockwright_model::{CpuId, Duration, Event, Instant, Priority, Protocol, Resource, ResourceId, Step, System, Task};
use lockwright_sim::{Config, Simulation, Stall, Taken};

const R: ResourceId = ResourceId::new(0);

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

fn task(name: &str, cpu: usize, priority: u32, offset: u64, body: Vec<Step>) -> Task {
    let wcet = body.iter().map(|step| if let Step::Run(time) = step { *time } else { Duration::ZERO }).sum();
    Task {
        name: name.into(),
        cpu: CpuId::new(cpu),
        priority: Priority::base(priority),
        period: ns(1_000),
        deadline: ns(1_000),
        jitter: Duration::ZERO,
        offset: ns(offset),
        wcet,
        body,
    }
}

fn stall(at: u64, cpu: usize, length: u64) -> Stall {
    Stall { at: Instant::from_ns(at), cpu: CpuId::new(cpu), length: ns(length) }
}

/// The finish of each task's first job, in ns.
fn finishes(tasks: &[Task], stalls: &[Stall]) -> Vec<u64> {
    let mut resource = Resource::new("r");
    resource.protocol = Some(Protocol::Msrp);
    let system = System::new("s".into(), 2, None, vec![resource], tasks.to_vec()).expect("valid");
    let mut taken = Taken::default();
    taken.stalls = stalls.to_vec();
    let mut simulation = Simulation::new(&system, &Config::default().with_taken(taken), Vec::new());
    simulation.run_until(Instant::from_ns(900));
    let records = simulation.into_tracer();
    let finish = |id| records.iter().find(|record| record.task == id && record.event == Event::Finish);
    system.task_ids().map(|id| finish(id).expect("it finishes").at.since(Instant::ZERO).as_ns()).collect()
}

#[test]
fn a_stalled_processor_executes_nothing() {
    let run = |length| vec![Step::Run(ns(length))];
    let tasks = [task("low", 0, 1, 0, run(10)), task("high", 0, 2, 6, run(4)), task("other", 1, 1, 0, run(10))];
    assert_eq!(finishes(&tasks, &[]), [14, 10, 10]);
    // It stalls while the low job executes, and the high one arrives meanwhile.
    assert_eq!(finishes(&tasks, &[stall(3, 0, 5)]), [19, 12, 10]);
    // It stalls twice, the second time before the first stall has ended. The order of the script does not count.
    assert_eq!(finishes(&tasks, &[stall(5, 0, 2), stall(3, 0, 5)]), [21, 14, 10]);
    // It stalls before the first release, and while it is idle.
    assert_eq!(finishes(&tasks, &[stall(0, 1, 7), stall(100, 0, 50)]), [14, 10, 17]);
}

/// The job on the stalled processor holds the resource for longer, and the other one spins.
#[test]
fn a_stall_lengthens_the_section_that_executes() {
    let section = || vec![Step::Lock(R), Step::Run(ns(10)), Step::Unlock(R)];
    let tasks = [task("owner", 0, 1, 0, section()), task("spins", 1, 1, 2, section())];
    assert_eq!(finishes(&tasks, &[]), [10, 20]);
    assert_eq!(finishes(&tasks, &[stall(4, 0, 30)]), [40, 50]);
    // Where the spinning job's processor stalls, it gets the resource, and uses it later.
    assert_eq!(finishes(&tasks, &[stall(4, 1, 30)]), [10, 44]);
}
