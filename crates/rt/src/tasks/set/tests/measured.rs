//! The counters of jobs, tested on real threads.

use super::*;
use crate::tasks::{Statistics, TaskStatistics};
use lockwright_model::Event;

const MS: u64 = 1_000_000;

fn statistics(set: &TaskSet) -> Statistics {
    set.statistics().expect("the set is measured")
}

/// Waits until `flag` is set, without using the CPU.
fn await_flag(flag: &AtomicBool) {
    // BOUND: ten seconds.
    let end = clock::now_ns() + 10_000 * MS;
    while !flag.load(Ordering::Acquire) {
        assert!(clock::now_ns() < end, "the other task has not come so far");
        clock::sleep_until(clock::now_ns() + 100_000).expect("the sleep succeeds");
    }
}

/// `urgent` on processor `cpu` requests the bus while `logging` holds it, which then executes for 5 ms.
fn contended_under(protocol: Protocol, cpu: u16, measure: impl Fn(&TaskSet, TaskId)) -> (TaskSet, TaskId, TaskId) {
    let mut builder = TaskSet::builder(protocol);
    let bus = builder.resource("bus");
    let logging = builder.task("logging", 0, 10, &[bus]);
    let urgent = builder.task("urgent", cpu, 20, &[bus]);
    builder.deadline(urgent, Duration::from_ms(1));
    let set = builder.build().expect("a task set");
    measure(&set, urgent);
    let (is_locked, asks) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let me = set.join(logging).expect("permission was checked");
            let job = me.begin().expect("no job has begun");
            let section = job.lock(bus).expect("the task is a user");
            is_locked.store(true, Ordering::Release);
            await_flag(&asks);
            let end = clock::now_ns() + 5 * MS;
            // BOUND: 5 ms.
            while clock::now_ns() < end {
                std::hint::spin_loop();
            }
            section.end().expect("the section was held");
        });
        scope.spawn(|| {
            let me = set.join(urgent).expect("permission was checked");
            await_flag(&is_locked);
            let job = me.begin().expect("no job has begun");
            // From here on `logging`, if it is on the same CPU, executes only while this thread waits.
            asks.store(true, Ordering::Release);
            let section = job.lock(bus).expect("the task is a user");
            assert!(section.waited() || matches!(protocol, Protocol::Dpcp | Protocol::Dflp));
        });
    });
    (set, logging, urgent)
}

/// Both are on one processor, under `pip`.
fn contended(measure: impl Fn(&TaskSet, TaskId)) -> (TaskSet, TaskId, TaskId) {
    contended_under(Protocol::Pip, 0, measure)
}

#[test]
fn a_wait_for_another_processor_is_counted_under_every_protocol() {
    let Some(_machine) = require_realtime() else { return };
    if sched::affinity().expect("a CPU set").len() < 2 {
        return;
    }
    use Protocol::{Dflp, Dpcp, FmlpLong, FmlpPlus, FmlpShort, Mpcp, MpcpVs, Mrsp, Msrp, Omlp, Pip};
    for protocol in [Pip, Mpcp, MpcpVs, Dpcp, Dflp, FmlpLong, FmlpPlus, FmlpShort, Msrp, Mrsp, Omlp] {
        let (set, logging, urgent) = contended_under(protocol, 1, |set, _| set.measure());
        let found = statistics(&set);
        let wait = &found.tasks[urgent.index()].resources[0];
        assert_eq!((wait.sections, wait.waits, wait.holder), (1, 1, Some(logging)), "{protocol}: {found}");
        assert!(wait.longest_wait >= Duration::from_ms(4), "{protocol}: {found}");
    }
}

#[test]
fn a_wait_is_counted_with_its_holder() {
    let Some(_machine) = require_realtime() else { return };
    let (set, logging, urgent) = contended(|set, urgent| {
        set.measure();
        set.set_bound(urgent, Duration::from_ms(2)).expect("the task exists");
    });
    let found = statistics(&set);
    let of = |task: TaskId| -> &TaskStatistics { &found.tasks[task.index()] };
    let (low, high) = (of(logging), of(urgent));
    assert_eq!((high.jobs, high.misses, high.above_bound, high.worst_job), (1, 1, 1, 1), "{found}");
    assert_eq!((low.jobs, low.misses, low.deadline, low.bound), (1, 0, None, None), "{found}");
    assert!(high.worst >= Duration::from_ms(5) && high.mean == high.worst, "{found}");
    assert_eq!(high.percentile(50.0), Some(high.worst), "{found}");
    let wait = &high.resources[0];
    assert_eq!((wait.sections, wait.waits, wait.holder), (1, 1, Some(logging)), "{found}");
    assert!(wait.longest_wait >= Duration::from_ms(5) && wait.total_wait == wait.longest_wait, "{found}");
    assert!(wait.longest_section < wait.longest_wait, "{found}");
    assert_eq!((low.resources[0].waits, low.resources[0].holder), (0, None), "{found}");
    assert!(low.resources[0].longest_section >= Duration::from_ms(5), "{found}");
}

#[test]
fn nothing_is_counted_before_it_is_asked_for() {
    let Some(_machine) = require_realtime() else { return };
    let (set, logging, _) = contended(|_, _| ());
    assert_eq!(set.statistics(), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let me = set.join(logging).expect("permission was checked");
            let job = me.begin().expect("no job has begun");
            set.measure();
            drop(job.lock(ResourceId(0)).expect("the task is a user"));
            job.end().expect("the job had begun");
            // The job had begun before.
            assert!(statistics(&set).tasks.iter().all(|task| task.jobs == 0 && task.resources.is_empty()));
            me.begin().expect("no job has begun").end().expect("the job had begun");
            assert_eq!(statistics(&set).tasks[logging.index()].jobs, 1);
        });
    });
}

#[test]
fn a_job_with_a_deadline_counts_from_its_release() {
    let Some(_machine) = require_realtime() else { return };
    let mut builder = TaskSet::builder(Protocol::Pip);
    let with = builder.task("with", 0, 10, &[]);
    let without = builder.task("without", 0, 10, &[]);
    builder.deadline(with, Duration::from_ms(400));
    let set = builder.build().expect("a task set");
    set.measure();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for task in [with, without] {
                let me = set.join(task).expect("permission was checked");
                // Released 300 ms ago, and then one whose deadline has passed.
                for due in [clock::now_ns() + 100 * MS, clock::now_ns() - 1] {
                    let job = me.begin_due(Deadline { clock: Clock::Monotonic, at_ns: due });
                    job.expect("no job has begun").end().expect("the job had begun");
                }
                me.leave().expect("the kernel restores the thread");
            }
        });
    });
    let found = statistics(&set);
    let (with, without) = (&found.tasks[with.index()], &found.tasks[without.index()]);
    assert_eq!((with.jobs, with.misses, with.worst_job), (2, 1, 2), "{found}");
    assert!(with.worst >= Duration::from_ms(400) && with.mean >= Duration::from_ms(350), "{found}");
    assert_eq!((without.jobs, without.misses), (2, 0), "{found}");
    assert!(without.worst < Duration::from_ms(300), "{found}");
}

/// A job holds `a` and requests `b`, whose holder waits for `a`: the kernel refuses that. The statistics contain the
/// job's other section, and no trace of what was refused.
#[test]
fn what_is_refused_is_not_counted() {
    let Some(_machine) = require_realtime() else { return };
    let mut builder = TaskSet::builder(Protocol::Pip);
    let [a, b, other] = ["a", "b", "other"].map(|name| builder.resource(name));
    let low = builder.task("low", 0, 10, &[a, b]);
    let high = builder.task("high", 0, 20, &[a, b]);
    let set = builder.build().expect("a task set");
    set.measure();
    let (is_locked, asks) = (AtomicBool::new(false), AtomicBool::new(false));
    let start = clock::now_ns();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let me = set.join(low).expect("permission was checked");
            me.begin_job().expect("no job has begun");
            clock::sleep_until(clock::now_ns() + 5 * MS).expect("the sleep succeeds");
            assert!(matches!(me.begin_job(), Err(TaskError::Begun)));
            assert!(matches!(me.lock(other, Mode::Write), Err(TaskError::NotAUser)));
            me.lock(a, Mode::Write).expect("the task is a user");
            let again = me.lock(a, Mode::Write);
            assert!(matches!(again, Err(TaskError::Lock(ResourceError::Refused(Refusal::AlreadyHeld)))));
            is_locked.store(true, Ordering::Release);
            await_flag(&asks);
            let circle = me.lock(b, Mode::Write);
            assert!(matches!(circle, Err(TaskError::Lock(ResourceError::Deadlock))), "{circle:?}");
            me.unlock(a).expect("the job holds it");
            assert!(me.unlock(a).is_err());
            me.end_job().expect("the job had begun");
            assert!(matches!(me.end_job(), Err(TaskError::NotBegun)));
        });
        scope.spawn(|| {
            let me = set.join(high).expect("permission was checked");
            await_flag(&is_locked);
            let job = me.begin().expect("no job has begun");
            let outer = job.lock(b).expect("the task is a user");
            // From here on `low`, which is on the same CPU, executes only while this thread waits.
            asks.store(true, Ordering::Release);
            assert!(job.lock(a).expect("the task is a user").waited());
            drop(outer);
        });
    });
    let all = Duration::from_ns(clock::now_ns() - start);
    let found = statistics(&set);
    let (low, high) = (&found.tasks[low.index()], &found.tasks[high.index()]);
    let sections = |task: &TaskStatistics| -> Vec<(ResourceId, u64, u64)> {
        task.resources.iter().map(|one| (one.resource, one.sections, one.waits)).collect()
    };
    // The refused begin did not move the release of the job.
    assert!(low.jobs == 1 && low.worst >= Duration::from_ms(5) && low.worst <= all, "{found}");
    assert_eq!(sections(low), [(a, 1, 0)], "{found}");
    assert!(low.resources[0].longest_section <= low.worst, "{found}");
    assert_eq!((high.jobs, sections(high)), (1, vec![(a, 1, 1), (b, 1, 0)]), "{found}");
}

/// The times of a trace are those from which the statistics are computed.
#[test]
fn a_trace_has_the_jobs_and_locks_that_are_counted() {
    let Some(_machine) = require_realtime() else { return };
    let (set, logging, urgent) = contended(|set, _| {
        set.measure();
        set.trace(100).expect("there is memory");
    });
    let (found, trace) = (statistics(&set), set.traced().expect("it is traced"));
    assert_eq!(trace.dropped, 0);
    let bus = ResourceId(0);
    for task in [logging, urgent] {
        let of = &found.tasks[task.index()];
        let at = |wanted: Event| -> Vec<Instant> {
            let records = trace.records.iter().filter(|record| record.task == task && record.event == wanted);
            records.map(|record| record.at).collect()
        };
        let times = |from: Event, to: Event| -> Vec<Duration> {
            let (from, to) = (at(from), at(to));
            assert_eq!(from.len(), to.len(), "{trace:?}");
            to.iter().zip(&from).map(|(to, from)| Duration::from_ns(to.as_ns() - from.as_ns())).collect()
        };
        assert_eq!(times(Event::Arrive, Event::Finish), [of.worst], "{task:?}: {trace:?}");
        assert_eq!(at(Event::Run).len(), at(Event::Stop).len(), "{task:?}: {trace:?}");
        let resource = &of.resources[0];
        assert_eq!(times(Event::Request(bus), Event::Acquire(bus)), [resource.total_wait], "{task:?}: {trace:?}");
        assert_eq!(times(Event::Acquire(bus), Event::Release(bus)), [resource.longest_section], "{task:?}: {trace:?}");
        assert_eq!(at(Event::Stop).len() as u64, 1 + resource.waits, "a task that waits does not execute: {trace:?}");
    }
    assert!(trace.records.is_sorted_by_key(|record| record.at), "{trace:?}");
    // Only one of the tasks has a deadline.
    assert_eq!((set.deadline(logging), set.deadline(urgent)), (None, Some(Duration::from_ms(1))));
}

#[test]
fn a_trace_drops_what_does_not_fit_and_is_off_by_default() {
    let Some(_machine) = require_realtime() else { return };
    let (set, ..) = contended(|set, _| set.trace(2).expect("there is memory"));
    let trace = set.traced().expect("it is traced");
    // Of the six events of each task, two fit, and a job without its end is not shown.
    assert_eq!((trace.dropped, trace.records.len(), set.statistics()), (12, 0, None), "{trace:?}");
    assert_eq!(contended(|set, _| set.measure()).0.traced(), None);
}

/// The deadline of the job is 600 ms away, and the relative one 400 ms: the job begins before its release.
#[test]
fn a_job_before_its_release_is_traced_in_order() {
    let Some(_machine) = require_realtime() else { return };
    let mut builder = TaskSet::builder(Protocol::Pip);
    let early = builder.task("early", 0, 10, &[]);
    builder.deadline(early, Duration::from_ms(400));
    let set = builder.build().expect("a task set");
    set.trace(100).expect("there is memory");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let me = set.join(early).expect("permission was checked");
            let due = Deadline { clock: Clock::Monotonic, at_ns: clock::now_ns() + 600 * MS };
            me.begin_due(due).expect("no job has begun").end().expect("the job had begun");
            me.leave().expect("the kernel restores the thread");
        });
    });
    let events = set.traced().expect("it is traced").records.into_iter().map(|record| record.event);
    assert_eq!(events.collect::<Vec<_>>(), [Event::Arrive, Event::Run, Event::Finish, Event::Stop]);
}

#[test]
#[should_panic(expected = "at most")]
fn a_trace_has_a_greatest_size() {
    set(Protocol::Pip).0.trace(TRACE_EVENTS_MAX + 1).expect("there is memory");
}
