//! The locks one by one: the levels set in the kernel, and the refusals.

use super::*;
use crate::levels::SECTION_LEVEL;
use crate::machine::require_realtime;
use crate::process::holds_in_child;
use crate::tasks::priorities::Levels;
use lockwright_model::{Duration, Resource, Step, Task};
use lockwright_protocol::Refusal;
use lockwright_sys::sched;

const ME: TaskId = TaskId(0);
const LOCAL: ResourceId = ResourceId(0);
const GLOBAL: ResourceId = ResourceId(1);

/// Tasks with base priorities 1 and 2 on CPU 0 and 3 on CPU 1; one resource local to CPU 0, and one global resource.
fn locks(protocol: Protocol) -> Locks {
    let task = |name: &str, cpu, priority, resources: &[ResourceId]| {
        let run = Duration::from_us(10);
        let section = |&resource| [Step::Lock(resource), Step::Run(run), Step::Unlock(resource)];
        let body: Vec<Step> = resources.iter().flat_map(section).collect();
        Task {
            name: name.into(),
            cpu: CpuId(cpu),
            priority: Priority::base(priority),
            period: Duration::from_ms(10),
            deadline: Duration::from_ms(10),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_us(10 * resources.len() as u64),
            body,
        }
    };
    let tasks =
        vec![task("me", 0, 1, &[LOCAL, GLOBAL]), task("local", 0, 2, &[LOCAL]), task("remote", 1, 3, &[GLOBAL])];
    // Under `ics_lock` all tasks lock.
    let resource = |name: &str| {
        let mut resource = Resource::new(name);
        resource.cutoff = Some(Priority::base(9));
        resource
    };
    let system = System::new("s".into(), 2, None, vec![resource("l"), resource("g")], tasks).expect("valid");
    let levels = Levels::of(&system, protocol, &[]).expect("few levels");
    let cpus = sched::affinity().expect("a CPU set");
    let cpus = [cpus[0], cpus[1 % cpus.len()]];
    Locks::new(&system, protocol, levels, &cpus)
}

/// Runs `body` on a SCHED_FIFO thread in the seat of `ME`.
fn as_me(protocol: Protocol, body: impl FnOnce(&Locks) + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let locks = locks(protocol);
        locks.executor.seat(ME).sit();
        locks.executor.prepare();
        sched::set_affinity(sched::gettid(), &[sched::affinity().expect("a CPU set")[0]]).expect("the CPU is allowed");
        sched::set_fifo(sched::gettid(), SECTION_LEVEL).expect("permission was checked");
        locks.executor.take_level(ME).expect("permission was checked");
        body(&locks);
    });
    thread.join().expect("the thread does not panic");
}

/// The priority of a task may change before its thread takes its level.
#[test]
fn a_thread_takes_the_present_level_of_its_task() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Pip, |locks| {
        locks.executor.depart(ME);
        let high = Priority::base(3);
        locks.executor.set_base(ME, high).expect("nobody has a level to change");
        assert_ne!(level_of_me(), i32::from(locks.executor.level(high)));
        locks.executor.take_level(ME).expect("permission was checked");
        assert_eq!(level_of_me(), i32::from(locks.executor.level(high)));
    });
}

/// A thread id of 0 would mean the caller, who has no level.
#[test]
fn a_task_without_a_thread_has_no_level() {
    let executor = locks(Protocol::Mpcp).executor;
    assert_eq!(executor.rise(ME, Priority::base(2)), Ok(()));
    assert_eq!(executor.asked(ME), Ok(()));
}

fn level_of_me() -> i32 {
    level_of(sched::gettid())
}

/// A child process has a copy of its parent's tasks, with the ids of the parent's threads.
#[test]
fn a_child_of_fork_neither_changes_nor_moves_a_thread_of_its_parent() {
    let Some(_machine) = require_realtime() else { return };
    for (protocol, resource) in [(Protocol::Icpp, LOCAL), (Protocol::Dpcp, GLOBAL)] {
        as_me(protocol, move |locks| {
            let seen = || (level_of_me(), sched::affinity().expect("a CPU set"));
            let before = seen();
            assert!(holds_in_child(|| locks.lock(ME, resource).is_ok()), "{protocol}");
            assert_eq!(seen(), before, "{protocol}");
            locks.lock(ME, resource).expect("the resource is free");
            assert_ne!(seen(), before, "{protocol}: the task itself is raised or moved");
            locks.unlock(ME, resource).expect("the task holds the resource");
            assert_eq!(seen(), before, "{protocol}");
        });
    }
}

#[test]
fn the_kernel_has_the_highest_of_all_ceilings() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Mpcp, |locks| {
        let level = |priority| i32::from(locks.executor.level(priority));
        let (base, local, global) =
            (level(Priority::base(1)), level(Priority::base(2)), level(Priority::base(3).boosted()));
        assert!(base < local && local < global);
        assert_eq!(level_of_me(), base);
        // Nested locks, unlocked in both orders.
        for first_back in [LOCAL, GLOBAL] {
            assert_eq!(locks.lock(ME, LOCAL), Ok(false));
            assert_eq!(level_of_me(), local);
            assert_eq!(locks.lock(ME, GLOBAL), Ok(false));
            assert_eq!(level_of_me(), global);
            assert_eq!(locks.unlock(ME, first_back), Ok(()));
            let last_back = if first_back == LOCAL { GLOBAL } else { LOCAL };
            assert_eq!(level_of_me(), if last_back == GLOBAL { global } else { local });
            assert_eq!(locks.unlock(ME, last_back), Ok(()));
            assert_eq!(level_of_me(), base);
        }
    });
}

#[test]
fn a_base_priority_changes_below_a_ceiling_and_shows_after_it() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Icpp, |locks| {
        let level = |level| i32::from(locks.executor.level(Priority::base(level)));
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(locks.set_base(ME, Priority::base(0)), Ok(()));
        assert_eq!(level_of_me(), level(2));
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(level_of_me(), level(0));
        assert_eq!(locks.set_base(ME, Priority::base(2)), Ok(()));
        assert_eq!(level_of_me(), level(2));
    });
}

#[test]
fn a_refusal_leaves_the_priority_unchanged() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Icpp, |locks| {
        let before = level_of_me();
        assert_eq!(locks.unlock(ME, LOCAL), Err(ResourceError::Refused(Refusal::NotHeld)));
        assert_eq!(locks.set_base(ME, Priority::base(3)), Ok(()));
        assert_eq!(locks.lock(ME, LOCAL), Err(ResourceError::Refused(Refusal::AboveCeiling)));
        assert_eq!(locks.set_base(ME, Priority::base(1)), Ok(()));
        assert_eq!(level_of_me(), before);
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(locks.lock(ME, LOCAL), Err(ResourceError::Refused(Refusal::AlreadyHeld)));
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(level_of_me(), before);
    });
}

#[test]
fn the_kernel_refuses_a_task_that_would_wait_for_itself() {
    let locks = locks(Protocol::Pip);
    assert_eq!(locks.lock(ME, LOCAL), Ok(false));
    assert_eq!(locks.lock(ME, LOCAL), Err(ResourceError::Deadlock));
    assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
}

/// Prints costs and tests nothing: `cargo test -p lockwright costs -- --ignored --nocapture`.
#[test]
#[ignore = "prints costs"]
fn costs() {
    const ROUNDS: u64 = 20_000;
    let Some(_machine) = require_realtime() else { return };
    for protocol in Protocol::ALL {
        as_me(protocol, move |locks| {
            locks.arrive(ME, Instant::ZERO).expect("the first job begins");
            let start = lockwright_sys::clock::now_ns();
            for _ in 0..ROUNDS {
                let _ = locks.lock(ME, GLOBAL);
                let _ = locks.unlock(ME, GLOBAL);
            }
            println!("{protocol}: {} ns per pair", (lockwright_sys::clock::now_ns() - start) / ROUNDS);
        });
    }
    as_me(Protocol::Icpp, |locks| {
        locks.lock(ME, GLOBAL).expect("it is free");
        let start = lockwright_sys::clock::now_ns();
        for _ in 0..ROUNDS {
            let _ = locks.lock(ME, LOCAL);
            let _ = locks.unlock(ME, LOCAL);
        }
        println!("icpp, already at its ceiling: {} ns per pair", (lockwright_sys::clock::now_ns() - start) / ROUNDS);
    });
}

#[test]
fn a_decision_waits_only_for_users_of_its_resources() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Icpp, |locks| {
        assert_eq!(locks.machines.len(), 2, "one for shared resources, and one for each CPU with local ones");
        // The guard of the resources shared across CPUs is held: if the local one used it as well, the request would
        // deadlock.
        let Lock::Managed(shared, _) = &locks.locks[GLOBAL.index()] else { panic!("icpp has a machine") };
        let _held = locks.machines[*shared].hold();
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
    });
}

/// A task with a section on the local resource.
fn user(name: &str) -> Task {
    let run = Duration::from_us(10);
    Task {
        name: name.into(),
        cpu: CpuId(0),
        priority: Priority::base(1),
        period: Duration::from_ms(10),
        deadline: Duration::from_ms(10),
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: run,
        body: vec![Step::Lock(LOCAL), Step::Run(run), Step::Unlock(LOCAL)],
    }
}

/// Under `g-edf`, two schedulers would let different jobs execute.
#[test]
fn one_machine_schedules_all_cpus_whatever_resources_without_users_name() {
    for unused in Protocol::ALL {
        let mut resources = vec![Resource::new("used"), Resource::new("unused")];
        resources[1].protocol = Some(unused);
        let system = System::new("s".into(), 2, None, resources, vec![user("me")]).expect("valid");
        let system = system.under(Scheduler::GEdf);
        for protocol in [Protocol::FmlpShort, Protocol::FmlpLong] {
            let levels = Levels::of(&system, protocol, &[]).expect("few levels");
            let locks = Locks::new(&system, protocol, levels, &[0, 1]);
            assert_eq!(locks.machines.len(), 1, "{unused}");
        }
    }
}

/// Three jobs on two CPUs: the first two have the places, and sleep although their scheduler does not know that. The
/// last one requests: it sleeps until the first job is done, and then waits for the section of the second one, if that
/// lasts longer. Without the first job, it only waits for the section.
#[test]
fn a_request_tells_whether_its_task_slept_and_whether_it_spun() {
    let Some(_machine) = require_realtime() else { return };
    let ms = std::time::Duration::from_millis;
    let tasks = ["first", "second", "last"].map(user).to_vec();
    let system = System::new("s".into(), 2, None, vec![Resource::new("r")], tasks).expect("valid");
    let system = system.under(Scheduler::GEdf);
    let cpus = sched::affinity().expect("a CPU set");
    let cpus = [cpus[0], cpus[1 % cpus.len()]];
    // How long the first job and the section of the second one last after the request.
    let waited = |first: Option<u64>, section: Option<u64>| {
        let levels = Levels::of(&system, Protocol::FmlpShort, &[]).expect("few levels");
        let locks = &Locks::new(&system, Protocol::FmlpShort, levels, &cpus);
        let ready = &std::sync::Barrier::new(3);
        let job = |index: u16, body: &dyn Fn(TaskId) -> Waited| {
            let task = TaskId(index);
            locks.executor.seat(task).sit();
            locks.executor.prepare();
            sched::set_affinity(sched::gettid(), &cpus).expect("the CPUs are allowed");
            let level = locks.executor.level(Priority::NON_PREEMPTIVE);
            sched::set_fifo(sched::gettid(), level).expect("permission was checked");
            let waited = body(task);
            sched::set_other(sched::gettid()).expect("permission was checked");
            waited
        };
        let arrive = |task: TaskId| locks.arrive(task, Instant::from_ns(task.0.into())).expect("the job begins");
        let finish = |task| locks.finish(task).expect("the job ends");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                job(0, &|task| {
                    first.is_some().then(|| arrive(task));
                    ready.wait();
                    first.into_iter().for_each(|time| std::thread::sleep(ms(time)));
                    first.is_some().then(|| finish(task));
                    Waited::No
                })
            });
            scope.spawn(|| {
                job(1, &|task| {
                    arrive(task);
                    section.is_some().then(|| locks.lock(task, LOCAL).expect("it is free"));
                    ready.wait();
                    section.into_iter().for_each(|time| std::thread::sleep(ms(time)));
                    section.is_some().then(|| locks.unlock(task, LOCAL).expect("it is held"));
                    finish(task);
                    Waited::No
                })
            });
            let last = scope.spawn(|| {
                job(2, &|task| {
                    ready.wait();
                    arrive(task);
                    let waited = locks.lock_in(Mode::Write, task, LOCAL).expect("the task is a user");
                    locks.unlock(task, LOCAL).expect("it is held");
                    finish(task);
                    waited
                })
            });
            last.join().expect("the thread does not panic")
        })
    };
    assert_eq!(waited(None, None), Waited::No);
    assert_eq!(waited(None, Some(50)), Waited::Spun);
    assert_eq!(waited(Some(100), Some(50)), Waited::Slept);
    let before = lockwright_sys::clock::now_ns();
    let Waited::SleptThenSpun { woken_ns } = waited(Some(50), Some(100)) else { panic!("it sleeps, and then spins") };
    let [to, from] = [woken_ns - before, lockwright_sys::clock::now_ns() - woken_ns];
    assert!(to > 50_000_000 && from > 30_000_000, "it slept for about {to} ns, and spun for {from} ns");
}

#[test]
fn a_task_that_cannot_rise_locks_nothing() {
    let Some(_machine) = require_realtime() else { return };
    for protocol in [Protocol::Icpp, Protocol::IcsLock] {
        as_me(protocol, |locks| {
            // Another thread takes SCHED_FIFO away without notice.
            let me = sched::gettid();
            sched::set_other(me).expect("permission was checked");
            for _ in 0..2 {
                assert!(matches!(locks.lock(ME, LOCAL), Err(ResourceError::Sys(_))));
            }
            sched::set_fifo(me, locks.executor.level(Priority::base(1))).expect("permission was checked");
            assert_eq!(locks.lock(ME, LOCAL), Ok(false), "the resource is free");
            assert_eq!(level_of_me(), i32::from(locks.executor.level(Priority::base(2))));
            assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
            assert_eq!(level_of_me(), i32::from(locks.executor.level(Priority::base(1))));
        });
    }
}

#[test]
fn an_invalidated_section_stays_inside_until_it_is_committed_or_given_up() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::Ics, |locks| {
        // The two tasks never wait, so one thread can act as both.
        const OTHER: TaskId = TaskId(1);
        let restarts = |task| {
            locks.end_interruptible(task, LOCAL).expect("the section is interruptible").map(|ending| ending.restarts)
        };
        let commit = || {
            assert_eq!(locks.lock(OTHER, LOCAL), Ok(false));
            assert_eq!(restarts(OTHER), Ok(false));
        };
        let before = level_of_me();
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(level_of_me(), before);
        commit();
        commit();
        assert_eq!(restarts(ME), Ok(true));
        assert_eq!(locks.lock(ME, LOCAL), Err(ResourceError::Refused(Refusal::AlreadyHeld)));
        assert_eq!(restarts(ME), Ok(false), "one restart after any number of commits");
        assert_eq!(restarts(ME), Err(ResourceError::Refused(Refusal::NotHeld)));
        // Invalidated and given up.
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        commit();
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(locks.unlock(ME, LOCAL), Err(ResourceError::Refused(Refusal::NotHeld)));
    });
    as_me(Protocol::Icpp, |locks| {
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(locks.end_interruptible(ME, LOCAL), None);
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()), "nothing has happened");
    });
}

#[test]
fn tasks_at_or_above_the_cutoff_do_not_lock() {
    let Some(_machine) = require_realtime() else { return };
    as_me(Protocol::IcsLock, |locks| {
        let level = |level| i32::from(locks.executor.level(Priority::base(level)));
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(level_of_me(), level(2), "the ceiling of the tasks that lock");
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(locks.set_base(ME, Priority::base(9)), Ok(()));
        let before = level_of_me();
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(level_of_me(), before);
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(locks.set_base(ME, Priority::base(1)), Ok(()));
        assert_eq!(locks.lock(ME, LOCAL), Ok(false));
        assert_eq!(level_of_me(), level(2));
        assert_eq!(locks.unlock(ME, LOCAL), Ok(()));
        assert_eq!(level_of_me(), level(1));
    });
}

/// The kernel's level of a thread, without inheritance.
fn level_of(thread: sched::Tid) -> i32 {
    sched::scheduling(thread).map_or(-1, |scheduling| i32::from(scheduling.level))
}

/// The calls for a thread under SCHED_DEADLINE put it there again.
#[test]
fn a_thread_is_demoted_once() {
    let locks = locks(Protocol::Pip);
    let mut calls = 0;
    for _ in 0..2 {
        let leave = |_| {
            calls += 1;
            Ok(())
        };
        assert_eq!(locks.executor.demote(ME, leave), Ok(()));
    }
    assert_eq!(calls, 1);
}
