//! Task sets under `p-edf`.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

const R: ResourceId = ResourceId(0);

/// Tasks with these CPUs and relative deadlines in milliseconds, which use one resource.
fn by_deadline(tasks: &[(usize, u64)]) -> TaskSet {
    by_deadline_under(Protocol::Icpp, tasks)
}

/// As [`by_deadline`], with a protocol for the resource.
fn by_deadline_under(protocol: Protocol, tasks: &[(usize, u64)]) -> TaskSet {
    let run = Step::Run(Duration::from_us(10));
    let task = |(index, &(cpu, deadline)): (usize, &(usize, u64))| Task {
        name: format!("t{index}"),
        cpu: CpuId::new(cpu),
        // Against the order of deadlines, so that it would be noticed.
        priority: Priority::base(deadline as u32),
        period: Duration::from_ms(deadline),
        deadline: Duration::from_ms(deadline),
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: Duration::from_us(10),
        body: vec![Step::Lock(R), run, Step::Unlock(R)],
    };
    let cpus = tasks.iter().map(|task| task.0 + 1).max().unwrap_or(1);
    let resource = Resource::new("r");
    let tasks = tasks.iter().enumerate().map(task).collect();
    let system = System::new("s".into(), cpus, None, vec![resource], tasks).expect("valid").under(Scheduler::PEdf);
    TaskSet::new(&system, protocol).expect("a task set")
}

fn level() -> u8 {
    sched::scheduling(ME).expect("a thread has a policy").level
}

/// Waits for a condition, asleep.
fn doze_until(condition: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if condition() {
            return;
        }
        clock::sleep_until(clock::now_ns() + 1_000_000).expect("the sleep succeeds");
    }
    panic!("the condition does not hold within five seconds");
}

#[test]
fn a_task_is_above_all_jobs_except_in_its_own() {
    let Some(_machine) = require_realtime() else { return };
    let set = by_deadline(&[(0, 100), (0, 10), (0, 20)]);
    let me = set.join(TaskId(0)).expect("permission was checked");
    for _ in 0..2 {
        // Three places, and one level above them.
        assert_eq!(level(), 4);
        let job = me.begin().expect("no job has begun");
        assert_eq!(level(), 1);
        let section = job.lock(R).expect("the task is a user");
        assert_eq!(level(), 1, "srp changes no priority");
        std::mem::forget(section);
        drop(job);
    }
    drop(me);
    let me = set.join(TaskId(2)).expect("permission was checked");
    assert_eq!(level(), 4);
    drop(me.begin().expect("no job has begun"));
}

#[test]
fn one_holder_at_a_time() {
    let Some(_machine) = require_realtime() else { return };
    let last = sched::affinity().expect("a CPU set").len().min(2) - 1;
    for (protocol, cpus) in
        [(Protocol::Icpp, [0; 5]), (Protocol::Icpp, [0, 0, 0, last, last]), (Protocol::FmlpLong, [0, 0, 0, last, last])]
    {
        let tasks = [(cpus[0], 5), (cpus[1], 9), (cpus[2], 20), (cpus[3], 7), (cpus[4], 7)];
        count_together(&by_deadline_under(protocol, &tasks), R, 300);
    }
}

/// The first task owns the resource while the others arrive. The second one is held until the section ends. The third
/// one gives its job a later deadline than that of the first, and the fourth one has such a deadline.
#[test]
fn jobs_execute_by_deadlines_and_are_held_by_sections() {
    let Some(_machine) = require_realtime() else { return };
    let set = by_deadline(&[(0, 10_000), (0, 1_000), (0, 2_000), (0, 30_000)]);
    let (order, owns, arrived) = (Mutex::new(Vec::with_capacity(8)), AtomicBool::new(false), AtomicU32::new(0));
    let note = |what| order.lock().expect("nobody panics").push(what);
    std::thread::scope(|scope| {
        let (set, owns, arrived, note) = (&set, &owns, &arrived, &note);
        scope.spawn(move || {
            let me = set.join(TaskId(0)).expect("permission was checked");
            let job = me.begin().expect("no job has begun");
            let section = job.lock(R).expect("the task is a user");
            owns.store(true, Ordering::Relaxed);
            let end = clock::now_ns() + 5_000_000_000;
            while arrived.load(Ordering::Relaxed) < 3 && clock::now_ns() < end {
                std::hint::spin_loop();
            }
            // The last to arrive is above this job, so it has decided by now.
            note("section ends");
            section.end().expect("the section was held");
            note("first");
            job.end().expect("the job had begun");
        });
        for (task, name) in [(1, "second"), (2, "third"), (3, "fourth")] {
            scope.spawn(move || {
                let me = set.join(TaskId(task)).expect("permission was checked");
                doze_until(|| owns.load(Ordering::Relaxed));
                arrived.fetch_add(1, Ordering::Relaxed);
                let far = Deadline::after(std::time::Duration::from_secs(20));
                let job = if task == 2 { me.begin_due(far) } else { me.begin() };
                let job = job.expect("no job has begun");
                assert!(!job.lock(R).expect("the task is a user").waited());
                note(name);
                job.end().expect("the job had begun");
            });
        }
    });
    let order = order.into_inner().expect("nobody panicked");
    assert_eq!(order, ["section ends", "second", "first", "third", "fourth"]);
}

/// The section of `0` holds the job of `1`, whose response includes that time. No request waits under `srp`.
#[test]
fn jobs_by_deadlines_are_counted_with_the_time_for_which_they_are_held() {
    const MS: u64 = 1_000_000;
    let Some(_machine) = require_realtime() else { return };
    let set = by_deadline(&[(0, 10_000), (0, 2_000)]);
    set.measure();
    let (owns, arrived) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let me = set.join(TaskId(0)).expect("permission was checked");
            let job = me.begin().expect("no job has begun");
            let section = job.lock(R).expect("the task is a user");
            owns.store(true, Ordering::Release);
            doze_until(|| arrived.load(Ordering::Acquire));
            let end = clock::now_ns() + 5 * MS;
            // BOUND: 5 ms.
            while clock::now_ns() < end {
                std::hint::spin_loop();
            }
            section.end().expect("the section was held");
        });
        scope.spawn(|| {
            let me = set.join(TaskId(1)).expect("permission was checked");
            doze_until(|| owns.load(Ordering::Acquire));
            // The task is above all jobs until its own begins, so it is held before the section goes on.
            arrived.store(true, Ordering::Release);
            let job = me.begin().expect("no job has begun");
            drop(job.lock(R).expect("the task is a user"));
            job.end().expect("the job had begun");
            // Its deadline has passed.
            let job = me.begin_due(Deadline { clock: Clock::Monotonic, at_ns: clock::now_ns() - 1 });
            job.expect("no job has begun").end().expect("the job had begun");
        });
    });
    let found = set.statistics().expect("the set is measured");
    let (low, high) = (&found.tasks[0], &found.tasks[1]);
    assert_eq!((low.jobs, low.misses, low.deadline), (1, 0, Some(Duration::from_ms(10_000))), "{found}");
    assert_eq!((high.jobs, high.misses, high.worst_job), (2, 1, 2), "{found}");
    // The second job was released two seconds before its deadline; the mean contains the first one, which was held.
    assert!(high.worst >= Duration::from_ms(2_000), "{found}");
    assert!(high.mean.as_ns() * 2 >= high.worst.as_ns() + 5 * MS - 1, "{found}");
    for task in [low, high] {
        assert_eq!((task.resources[0].sections, task.resources[0].waits), (1, 0), "{found}");
    }
    assert!(low.resources[0].longest_section >= Duration::from_ms(5), "{found}");
}

/// The medians of decisions that touch no other job, by turns of a hundred.
#[test]
#[ignore = "prints costs"]
fn costs() {
    let Some(_machine) = require_realtime() else { return };
    let set = by_deadline(&[(0, 100), (0, 10), (0, 20), (0, 30)]);
    let me = set.join(TaskId(0)).expect("permission was checked");
    let (mut jobs, mut sections) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let start = clock::now_ns();
        for _ in 0..100 {
            drop(me.begin().expect("no job has begun"));
        }
        jobs.push((clock::now_ns() - start) / 100);
        let job = me.begin().expect("no job has begun");
        let start = clock::now_ns();
        for _ in 0..100 {
            drop(job.lock(R).expect("the task is a user"));
        }
        sections.push((clock::now_ns() - start) / 100);
        drop(job);
        clock::sleep_until(clock::now_ns() + 1_000_000).expect("the sleep succeeds");
    }
    for (what, mut times) in [("begin and end of a job", jobs), ("lock and unlock", sections)] {
        times.sort_unstable();
        println!("{what}: {} ns (90 %: {} to {} ns)", times[100], times[10], times[190]);
    }
}
