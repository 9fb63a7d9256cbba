//! Tests of task sets on real threads, and of what is refused.

use super::*;
use crate::machine::require_realtime;
use crate::process::holds_in_child;
use crate::tasks::Section;
use lockwright_model::{CpuId, Priority, Resource, Step, Task};
use lockwright_sys::SysError;
use std::sync::atomic::AtomicU64;

mod edf;
mod measured;

/// Four tasks, spread over the available CPUs (at most two), and one counter.
fn set(protocol: Protocol) -> (TaskSet, ResourceId) {
    let cpus = sched::affinity().expect("a CPU set").len().min(2) as u16;
    let mut builder = TaskSet::builder(protocol);
    let counter = builder.resource_at("counter", cpus - 1);
    for index in 0..4 {
        builder.task(&format!("t{index}"), index % cpus, 10 + index, &[counter]);
    }
    (builder.build().expect("a task set"), counter)
}

/// Lets all tasks of the set lock the counter, `jobs` times each, and count. Detects two tasks inside at a time.
fn count_together(set: &TaskSet, counter: ResourceId, jobs: u64) {
    let protocol = set.system().protocol_or_default();
    let (count, inside) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for task in set.system().task_ids() {
            let (count, inside) = (&count, &inside);
            scope.spawn(move || {
                let me = set.join(task).expect("permission was checked");
                for _ in 0..jobs {
                    // The sleep leaves the CPU idle in between, because throttled real-time threads would stop the
                    // others.
                    clock::sleep_until(clock::now_ns() + 20_000).expect("the sleep succeeds");
                    let job = me.begin().expect("the last job has ended");
                    let section = job.lock(counter).expect("the task is a user");
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "{protocol}: two tasks are inside");
                    let seen = count.load(Ordering::Relaxed);
                    std::hint::spin_loop();
                    count.store(seen + 1, Ordering::Relaxed);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    section.end().expect("the section was held");
                    job.end().expect("the job had begun");
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), set.system().tasks().len() as u64 * jobs, "{protocol}");
}

#[test]
fn one_holder_at_a_time_under_every_protocol() {
    let Some(_machine) = require_realtime() else { return };
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()) {
        let (set, counter) = set(protocol);
        count_together(&set, counter, 300);
    }
}

/// Two tasks on two CPUs read. Only under protocols with readers are both inside at a time, and a writer never is.
#[test]
fn readers_share_a_resource_where_the_protocol_has_readers() {
    let Some(_machine) = require_realtime() else { return };
    if sched::affinity().expect("a CPU set").len() < 2 {
        return;
    }
    for (protocol, share) in [(Protocol::PhaseFair, true), (Protocol::TaskFair, true), (Protocol::Msrp, false)] {
        let (set, counter) = set(protocol);
        for mode in [Mode::Read, Mode::Write] {
            let (ready, inside, met) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for task in [TaskId(0), TaskId(1)] {
                    let (set, ready, inside, met) = (&set, &ready, &inside, &met);
                    scope.spawn(move || {
                        let me = set.join(task).expect("permission was checked");
                        let job = me.begin().expect("no job has begun");
                        // The first one would keep the other from its CPU.
                        ready.fetch_add(1, Ordering::Relaxed);
                        let begun = std::time::Instant::now();
                        // BOUND: ten seconds.
                        while ready.load(Ordering::Relaxed) < 2 {
                            assert!(begun.elapsed().as_secs() < 10, "the other task does not join");
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                        let own = if task == TaskId(0) { mode } else { Mode::Read };
                        let section = job.lock_in(counter, own).expect("the task is a user");
                        inside.fetch_add(1, Ordering::Relaxed);
                        let end = clock::now_ns() + 200_000_000;
                        // BOUND: 200 ms, if the other task does not come.
                        while clock::now_ns() < end && met.load(Ordering::Relaxed) == 0 {
                            if inside.load(Ordering::Relaxed) == 2 {
                                met.store(1, Ordering::Relaxed);
                            }
                        }
                        inside.fetch_sub(1, Ordering::Relaxed);
                        section.end().expect("the section was held");
                    });
                }
            });
            let together = met.into_inner() == 1;
            assert_eq!(together, share && mode == Mode::Read, "{protocol}: a reader beside {mode:?}");
        }
    }
}

/// In a cluster of two CPUs: one owner at a time, and no request is lost.
#[test]
fn one_holder_at_a_time_in_a_cluster() {
    let Some(_machine) = require_realtime() else { return };
    if sched::affinity().expect("a CPU set").len() < 2 {
        return;
    }
    let mut builder = TaskSet::builder(Protocol::Omlp);
    let counter = builder.resource("counter");
    for index in 0..5 {
        builder.task_in_cluster(&format!("t{index}"), &[0, 1], 10 + index, &[counter]);
    }
    let set = builder.build().expect("a task set");
    count_together(&set, counter, 300);
    // A task of a cluster may execute on all of its CPUs, which other protocols do not support.
    let mut builder = TaskSet::builder(Protocol::Mpcp);
    let bus = builder.resource("bus");
    builder.task_in_cluster("a", &[0, 1], 1, &[bus]);
    assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
}

#[test]
fn forgotten_sections_end_with_their_job_and_the_thread_is_restored() {
    let Some(_machine) = require_realtime() else { return };
    let (set, counter) = set(Protocol::Dpcp);
    let before = (sched::scheduling(ME).expect("a thread has a policy"), sched::affinity().expect("a CPU set"));
    let me = set.join(TaskId(0)).expect("permission was checked");
    assert_eq!(set.join(TaskId(1)).err(), Some(TaskError::Taken), "this thread is already a task");
    let job = me.begin().expect("the first job begins");
    assert_eq!(me.begin().err(), Some(TaskError::Begun));
    std::mem::forget(job.lock(counter).expect("the task is a user"));
    assert_eq!(job.lock(ResourceId(7)).err(), Some(TaskError::NotAUser));
    drop(job);
    let job = me.begin().expect("the first job has ended");
    assert!(!job.lock(counter).expect("the resource was unlocked").waited());
    std::mem::forget(job);
    drop(me);
    let after = (sched::scheduling(ME).expect("a thread has a policy"), sched::affinity().expect("a CPU set"));
    assert_eq!(before, after);
    assert!(set.join(TaskId(0)).is_ok(), "the task is free again");
}

#[test]
fn leaving_reports_what_the_kernel_refuses() {
    let Some(_machine) = require_realtime() else { return };
    let (set, counter) = set(Protocol::Pip);
    let cpus = sched::affinity().expect("a CPU set");
    let me = set.join(TaskId(0)).expect("permission was checked");
    let job = me.begin().expect("the first job begins");
    drop(job.lock(counter).expect("the task is a user"));
    job.end().expect("the job had begun");
    assert_eq!(me.leave(), Ok(()));
    assert_eq!(sched::affinity().expect("a CPU set"), cpus);
    let mut me = set.join(TaskId(0)).expect("the task is free again");
    let before = me.before.as_mut().expect("the thread has not left");
    // No thread can be bound to no CPU.
    before.1.clear();
    let refused = SysError { call: "sched_setaffinity", errno: libc::EINVAL };
    assert_eq!(me.leave(), Err(TaskError::Machine(MachineError::Sys(refused))));
    sched::set_affinity(ME, &cpus).expect("the CPUs from before");
    let scheduling = sched::scheduling(ME).expect("a thread has a policy");
    let me = set.join(TaskId(0)).expect("the thread has left all the same");
    drop(me);
    assert_eq!(sched::scheduling(ME).expect("a thread has a policy"), scheduling);
}

/// A child process has copies of the values of a task, of its job and of its section.
#[test]
fn a_child_of_fork_leaves_the_tasks_of_its_parent_as_they_are() {
    let Some(_machine) = require_realtime() else { return };
    let mut builder = TaskSet::builder(Protocol::Icpp);
    let counter = builder.resource("counter");
    let low = builder.task("low", 0, 10, &[counter]);
    let high = builder.task("high", 0, 20, &[counter]);
    let set = builder.build().expect("a task set");
    let seen = || (sched::scheduling(ME).expect("a thread has a policy"), sched::affinity().expect("a CPU set"));
    // In the child, each of these takes a copy. The parent's value remains.
    let mut me = Some(set.join(low).expect("permission was checked"));
    let here = me.as_ref().expect("it is kept");
    let outside = seen();
    let mut job = Some(here.begin().expect("the first job begins"));
    let mut section = Some(job.as_ref().expect("it is kept").lock(counter).expect("the task is a user"));
    let inside = seen();
    assert_ne!(inside, outside, "the section has the ceiling of the other task");
    assert!(holds_in_child(|| {
        drop(section.take());
        true
    }));
    assert_eq!(seen(), inside, "a copy of the section ended");
    assert!(holds_in_child(|| {
        let errors = [
            here.unlock(counter).err(),
            here.lock(counter, Mode::Write).err(),
            here.end_job().err(),
            here.begin().err(),
            section.take().and_then(|section| section.end().err()),
        ];
        errors.iter().all(|error| *error == Some(TaskError::InChild))
    }));
    assert_eq!(seen(), inside, "a child called all methods");
    section.expect("it is kept").end().expect("the section was held");
    assert_eq!(seen(), outside);
    assert!(holds_in_child(|| {
        drop(job.take());
        true
    }));
    job.expect("it is kept").end().expect("the job had begun");
    assert!(holds_in_child(|| me.take().is_some_and(|me| me.leave() == Err(TaskError::InChild))));
    assert_eq!(seen(), outside, "a child left");
    // A child that has left is a thread like any other, and can be another task, but not one of its parent.
    assert!(holds_in_child(|| {
        drop(me.take());
        set.join(low).err() == Some(TaskError::Taken) && set.join(high).is_ok()
    }));
    assert_eq!(seen(), outside, "a child joined");
    assert_eq!(me.expect("it is kept").leave(), Ok(()));
    assert!(!sched::scheduling(ME).expect("a thread has a policy").has_level());
}

/// A thread joins while a less urgent task keeps the CPU busy. Ordinary threads get a small share of each second there,
/// so one attempt proves nothing.
#[test]
fn a_busy_task_does_not_delay_a_more_urgent_one_that_joins() {
    const ATTEMPTS: usize = 6;
    let Some(_machine) = require_realtime() else { return };
    let cpus = sched::affinity().expect("a CPU set");
    let Some(&other) = cpus.get(1) else { return };
    let attempt = || {
        let mut builder = TaskSet::builder(Protocol::Icpp);
        let (low, high) = (builder.task("low", 0, 10, &[]), builder.task("high", 0, 20, &[]));
        let set = builder.build().expect("a task set");
        let (has_joined, (begins, begun)) = (AtomicBool::new(false), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let (set, has_joined) = (&set, &has_joined);
            scope.spawn(move || {
                sched::set_affinity(ME, &[other]).expect("the CPU is allowed");
                begun.recv().expect("the other thread begins");
                let me = set.join(high).expect("permission was checked");
                has_joined.store(true, Ordering::Relaxed);
                drop(me);
            });
            let busy = scope.spawn(move || {
                let _me = set.join(low).expect("permission was checked");
                begins.send(()).expect("the other thread waits");
                let end = clock::now_ns() + 300_000_000;
                // BOUND: 300 ms.
                while clock::now_ns() < end && !has_joined.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                has_joined.load(Ordering::Relaxed)
            });
            busy.join().expect("it does not panic")
        })
    };
    let joined = (0..ATTEMPTS).filter(|_| attempt()).count();
    assert!(joined >= ATTEMPTS - 1, "the more urgent task joined in {joined} of {ATTEMPTS} attempts");
}

/// A thread joins a task of a free CPU from one that another thread keeps busy. There, a thread at the level of the
/// task gets nothing.
#[test]
fn a_busy_cpu_does_not_delay_a_thread_that_joins_elsewhere() {
    let Some(_machine) = require_realtime() else { return };
    let cpus = sched::affinity().expect("a CPU set");
    let Some(&busy) = cpus.get(1) else { return };
    let mut builder = TaskSet::builder(Protocol::Icpp);
    let task = builder.task("t", 0, 10, &[]);
    let set = builder.build().expect("a task set");
    let (has_joined, (begins, begun)) = (AtomicBool::new(false), std::sync::mpsc::channel());
    let joined = std::thread::scope(|scope| {
        let (set, has_joined) = (&set, &has_joined);
        let burner = scope.spawn(move || {
            sched::set_affinity(ME, &[busy]).expect("the CPU is allowed");
            sched::set_fifo(ME, 50).expect("permission was checked");
            begins.send(()).expect("the other thread waits");
            let end = clock::now_ns() + 4_000_000_000;
            // BOUND: 4 s.
            while clock::now_ns() < end && !has_joined.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            has_joined.load(Ordering::Relaxed)
        });
        scope.spawn(move || {
            begun.recv().expect("the other thread begins");
            sched::set_fifo(ME, 60).expect("permission was checked");
            sched::set_affinity(ME, &[busy]).expect("the CPU is allowed");
            let me = set.join(task).expect("permission was checked");
            has_joined.store(true, Ordering::Relaxed);
            drop(me);
        });
        burner.join().expect("it does not panic")
    });
    assert!(joined, "the thread joined only after the end of the other one");
}

/// Some of these would wait for ever in the lock alone.
#[test]
fn every_protocol_refuses_invalid_nesting() {
    let Some(_machine) = require_realtime() else { return };
    let refused = |refusal| Some(TaskError::Lock(ResourceError::from(refusal)));
    let cpus = sched::affinity().expect("a CPU set").len().min(2) as u16;
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()) {
        let mut builder = TaskSet::builder(protocol);
        let ids: Vec<_> = (0..=NESTING_MAX).map(|index| builder.resource(&format!("r{index}"))).collect();
        let task = builder.task("a", 0, 10, &ids);
        // On another CPU, if there is one: otherwise all resources are under `icpp` if the protocol is for several
        // CPUs.
        builder.task("b", cpus - 1, 20, &ids);
        let set = builder.build().expect("a task set");
        let nests = set.system().protocol_of(ids[0], protocol).has_nesting();
        let me = set.join(task).expect("permission was checked");
        assert_eq!(me.lock(ids[0], Mode::Write).err(), Some(TaskError::NotBegun), "{protocol}");
        assert_eq!(me.end_job().err(), Some(TaskError::NotBegun), "{protocol}");
        let job = me.begin().expect("the first job begins");
        assert_eq!(me.unlock(ids[0]).err(), refused(Refusal::NotHeld), "{protocol}");
        let first = job.lock(ids[0]).expect("the task is a user");
        assert_eq!(job.lock(ids[0]).err(), refused(Refusal::AlreadyHeld), "{protocol}");
        if nests {
            let sections: Vec<_> = ids[1..NESTING_MAX].iter().map(|&id| job.lock(id)).collect();
            assert!(sections.iter().all(Result::is_ok), "{protocol}: {sections:?}");
            assert_eq!(job.lock(ids[NESTING_MAX]).err(), refused(Refusal::TooDeep), "{protocol}");
            // In reverse order.
            sections.into_iter().rev().for_each(drop);
        } else {
            assert_eq!(job.lock(ids[1]).err(), refused(Refusal::Nested), "{protocol}");
        }
        first.end().expect("the section was held");
        job.lock(ids[1]).expect("no resource is held").end().expect("the section was held");
        job.end().expect("the job had begun");
    }
}

#[test]
fn interruptible_sections_are_refused_with_a_pointer_to_their_module() {
    for protocol in [Protocol::Ics, Protocol::IcsLock, Protocol::LockFree, Protocol::WaitFree] {
        let mut builder = TaskSet::builder(protocol);
        let bus = builder.resource("bus");
        builder.task("a", 0, 1, &[bus]);
        let error = builder.build().expect_err("interruptible sections are not locks");
        assert_eq!(error, TaskError::Machine(MachineError::Interruptible { resource: bus }));
        let text = error.to_string();
        assert!(
            text.contains("lockwright::ics") && text.contains("lw_ics_") && text.contains("lockwright::objects"),
            "{text}"
        );
    }
}

#[test]
fn other_schedulers_are_refused() {
    let (set, _) = set(Protocol::Icpp);
    for scheduler in Scheduler::ALL {
        let known = matches!(scheduler, Scheduler::PFp | Scheduler::CFp | Scheduler::PEdf);
        let system = set.system().clone().under(scheduler);
        let error = TaskSet::new(&system, Protocol::Icpp).err();
        let refused = error == Some(TaskError::Machine(MachineError::Scheduler(scheduler)));
        assert_eq!(refused, !known, "{scheduler}: {error:?}");
    }
}

#[test]
fn deadlines_by_the_time_of_day_keep_their_distance() {
    let at = |at_ns| by_monotonic_clock(Deadline { clock: Clock::Realtime, at_ns }, 500, 9_000);
    assert_eq!((at(9_000), at(9_100), at(8_900), at(8_400)), (500, 600, 400, 0));
    assert_eq!(at(u64::MAX), u64::MAX - 9_000 + 500);
    assert_eq!(by_monotonic_clock(Deadline::monotonic(7), 500, 9_000), 7);
}

#[test]
fn invalid_task_sets_are_refused() {
    let mut builder = TaskSet::builder(Protocol::Mpcp);
    builder.task("a", 0, 1, &[ResourceId(3)]);
    assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
    let mut builder = TaskSet::builder(Protocol::Mpcp);
    builder.task("a", 4_000, 1, &[]);
    assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
    let (set, _) = set(Protocol::Mpcp);
    assert_eq!(set.join(TaskId(9)).err(), Some(TaskError::NoTask));
    assert_eq!((set.task("t3"), set.resource("counter"), set.task("x")), (Some(TaskId(3)), Some(ResourceId(0)), None));
}

/// A reader-writer protocol refuses a mode that the task set does not declare: its bounds do not hold for it.
#[test]
fn a_job_reads_and_writes_only_as_declared() {
    let Some(_machine) = require_realtime() else { return };
    let builder = set(Protocol::Icpp).0;
    let mut tasks = builder.system().tasks().to_vec();
    let (counter, run) = (ResourceId::new(0), Step::Run(Duration::from_ns(1)));
    tasks[0].body = vec![run, Step::Lock(counter), run, Step::Unlock(counter)];
    tasks[1].body = vec![run, Step::Read(counter), run, Step::Unlock(counter)];
    tasks[..2].iter_mut().for_each(|task| task.wcet = Duration::from_ns(2));
    let system = builder.system().with_tasks(tasks).expect("a valid system");
    for protocol in [Protocol::PhaseFair, Protocol::TaskFair, Protocol::FmlpShort] {
        let declared = TaskSet::new(&system, protocol).expect("a task set");
        let is_told = protocol.has_readers();
        for (task, writes) in [(0, true), (1, false)] {
            let me = declared.join(TaskId(task)).expect("permission was checked");
            let job = me.begin().expect("the first job begins");
            let refused = |section: Result<Section<'_>, TaskError>| section.err() == Some(TaskError::NotAUser);
            assert_eq!(refused(job.lock(counter)), is_told && !writes, "{protocol}");
            assert_eq!(refused(job.read(counter)), is_told && writes, "{protocol}");
        }
        // A builder declares both.
        let (both, counter) = set(protocol);
        let me = both.join(TaskId(0)).expect("permission was checked");
        let job = me.begin().expect("the first job begins");
        drop(job.lock(counter).expect("a builder declares writing"));
        drop(job.read(counter).expect("a builder declares reading"));
    }
}
