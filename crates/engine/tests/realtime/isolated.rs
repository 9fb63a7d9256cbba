//! CPUs that the kernel keeps apart (`isolcpus`): it moves jobs among them, and among the others, but not between.

use crate::judge::tell;
use crate::machine::{Machine, require_realtime};
use crate::support::{OwnCpus, R, run_us, scale, system, task};
use lockwright::tasks::{MachineError, TaskError, TaskSet};
use lockwright_engine::{Control, RunConfig, RunError, run};
use lockwright_model::{CpuId, Duration, Event, Protocol, Scheduler, Step, System};
use lockwright_sys::sched::{self, ME};

/// Two isolated CPUs, and two others of this process, if there are so many.
fn require_isolated() -> Option<(Machine, OwnCpus, [usize; 2], [usize; 2])> {
    let machine = require_realtime()?;
    let (isolated, own) = (sched::isolated(), sched::affinity().expect("a set of CPUs"));
    let others: Vec<usize> = own.iter().copied().filter(|cpu| !isolated.contains(cpu)).collect();
    if let (&[first, second, ..], &[other, another, ..]) = (&isolated[..], &others[..]) {
        return Some((machine, OwnCpus(own), [first, second], [other, another]));
    }
    tell("skipped: the test is for two CPUs in `isolcpus` and two others");
    None
}

/// Two CPUs for four tasks whose jobs arrive at the same times: again and again, a job gets a CPU where it was not.
fn moving() -> System {
    let ms = |ms: u64| 1_000 * ms * scale();
    let of = |index: usize| {
        let body = vec![run_us(ms(4)), Step::Lock(R), run_us(ms(1)), Step::Unlock(R)];
        task(&format!("t{index}"), 0, 1 + index as u32, ms(100), body)
    };
    system(2, 1, (0..4).map(of).collect())
}

#[test]
fn tasks_share_cpus_of_one_kind() {
    let Some((_machine, _back, [first, second], [other, another])) = require_isolated() else { return };
    let by_deadline = moving().under(Scheduler::GEdf);
    let clustered = moving().in_clusters(&[0b11; 4]).expect("one cluster");
    let mut apart = moving().tasks().to_vec();
    apart[1].cpu = CpuId(1);
    let apart = moving().with_tasks(apart).expect("a valid system");
    let config = |protocol| RunConfig::new(protocol, Duration::from_ms(300 * scale()));
    let shared = [(&by_deadline, Protocol::FmlpShort), (&clustered, Protocol::Omlp)];

    let refusal = MachineError::SplitCpus { isolated: first, other };
    sched::set_affinity(ME, &[first, other]).expect("the CPUs are there");
    for (system, protocol) in shared {
        let refused = run(system, &config(protocol), &Control::new());
        assert_eq!(refused.err(), Some(RunError::Machine(refusal)), "{protocol}");
    }
    assert_eq!(TaskSet::new(&clustered, Protocol::Omlp).err(), Some(TaskError::Machine(refusal)));
    run(&apart, &config(Protocol::Msrp), &Control::new()).expect("no task is on two CPUs");
    TaskSet::new(&apart, Protocol::Msrp).expect("no task is on two CPUs");

    for cpus in [[first, second], [other, another]] {
        sched::set_affinity(ME, &cpus).expect("the CPUs are there");
        TaskSet::new(&clustered, Protocol::Omlp).expect("the CPUs are of one kind");
        for (system, protocol) in shared {
            let moves = || {
                let outcome = run(system, &config(protocol), &Control::new()).expect("the CPUs are of one kind");
                let moved = outcome.records.iter().filter(|record| matches!(record.event, Event::Migrate(_)));
                // The first move can be to where the thread began.
                let tasks: Vec<_> = moved.map(|record| record.task).collect();
                system.task_ids().any(|id| tasks.iter().filter(|&&task| task == id).count() > 1)
            };
            assert!((0..5).any(|_| moves()), "{protocol} on {cpus:?}: no job was moved in five runs");
        }
    }
}
