//! Simulated systems are recorded, inferred, and compared with themselves.

use super::testing::{Script, ms};
use super::{Choices, Inferred, Regularity, infer};
use crate::event::{Clock, Event, EventKind, Policy, Stop, Wait};
use crate::findings::Findings;
use crate::recording::{ObjectId, Recording, SiteId, Thread};
use crate::schedule::of_schedule;
use lockwright_model::format::parse_system;
use lockwright_model::{Duration, Instant, Mode, Protocol, ResourceId, Scheduler, Section, System, TaskId};
use lockwright_sim::{Config, Execution, Offsets, Simulation};
use lockwright_study::{Shape, generate};
use std::collections::BTreeMap;

const SYSTEMS: u64 = 400;

/// A system with sections that read if the protocol distinguishes them. Spinning counts as execution time, so that
/// system has one CPU.
fn system(seed: u64, protocol: Protocol) -> System {
    let mut random = fastrand::Rng::with_seed(seed);
    let has_readers = protocol.has_readers();
    let cpus = if has_readers { 1 } else { random.usize(1..=3) };
    let (nested, reads) = if has_readers { (0, 50) } else { (30, 0) };
    let shape = Shape { jitter: 0, shuffled: 0, own_ceiling: 0, nested, reads, ..Shape::usual(cpus, 3 * cpus, 3) };
    generate(&mut random, &shape)
}

fn recorded(system: &System, seed: u64, protocol: Protocol, execution: Execution) -> Recording {
    let config = Config::default()
        .with_protocol(protocol)
        .with_offsets(Offsets::Random)
        .with_execution(execution)
        .with_seed(seed);
    let longest = system.tasks().iter().map(|task| task.period).max().expect("has tasks");
    let mut simulation = Simulation::new(system, &config, Vec::new());
    simulation.run_until(Instant::from_ns(8 * longest.as_ns()));
    of_schedule(system, protocol, &simulation.into_tracer())
}

/// The properties of a task that a recording shows: everything except the deadline and the offset. Sections are named
/// by their resources.
#[derive(PartialEq, Eq, Debug)]
struct Shown {
    period: Duration,
    wcet: Duration,
    cpu: u16,
    priority: u32,
    sections: Vec<(String, Duration, Option<usize>, Mode)>,
}

fn shown(system: &System) -> BTreeMap<String, Shown> {
    let name = |id: ResourceId| system.resource(id).name.clone();
    let of = |id: TaskId| {
        let task = system.task(id);
        let sections = system.sections(id).iter();
        let shown = Shown {
            period: task.period,
            wcet: task.wcet,
            cpu: task.cpu.0,
            priority: task.priority.level(),
            sections: sections
                .map(|section| (name(section.resource), section.length, section.parent, section.mode))
                .collect(),
        };
        (task.name.clone(), shown)
    };
    system.task_ids().map(of).collect()
}

/// The users of each resource that is used.
fn users(system: &System) -> BTreeMap<String, Vec<String>> {
    let used = system.resource_ids().filter(|&id| !system.users(id).is_empty());
    let of = |id: ResourceId| {
        let mut names: Vec<String> = system.users(id).iter().map(|&user| system.task(user).name.clone()).collect();
        names.sort();
        (system.resource(id).name.clone(), names)
    };
    used.map(of).collect()
}

fn inferred(recording: &Recording) -> Inferred {
    infer(recording, &Choices::default())
}

#[test]
fn a_simulated_system_is_inferred() {
    let protocols = [Protocol::None, Protocol::Pip, Protocol::Icpp, Protocol::Mpcp, Protocol::PhaseFair];
    let (mut compared, mut nested, mut reading) = (0, 0, 0);
    for seed in 0..SYSTEMS {
        let protocol = protocols[seed as usize % protocols.len()];
        let system = system(seed, protocol);
        if system.refused_nesting(protocol).is_some() {
            continue;
        }
        let recording = recorded(&system, seed, protocol, Execution::Worst);
        let found = inferred(&recording);
        // Under overload, a task may finish too few jobs.
        if found.tasks.len() < system.tasks().len() {
            assert!(found.left_out.iter().all(|out| out.reason.contains("at least 3 jobs")), "{:?}", found.left_out);
            continue;
        }
        let own = found.system.as_ref().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(shown(own), shown(&system), "seed {seed}");
        assert_eq!(users(own), users(&system), "seed {seed}");
        assert!(found.tasks.iter().all(|task| task.regularity == Regularity::Exact), "seed {seed}");
        assert!(found.tasks.iter().all(|task| task.suspensions == (0, 0)), "seed {seed}");
        let file = found.file(&recording).expect("there is a system");
        assert_eq!(parse_system(&file).as_ref(), Ok(own), "seed {seed}: {file}");
        compared += 1;
        let has = |is_meant: &dyn Fn(&Section) -> bool| own.task_ids().any(|id| own.sections(id).iter().any(is_meant));
        nested += usize::from(has(&|section| section.parent.is_some()));
        reading += usize::from(has(&|section| section.mode == Mode::Read));
    }
    assert!(compared > SYSTEMS / 2, "{compared} systems were compared");
    assert!(nested > 20 && reading > 20, "{nested} systems with nesting, {reading} with readers");
}

#[test]
fn random_execution_is_inferred_from_below() {
    for seed in 0..SYSTEMS / 4 {
        let system = system(seed, Protocol::Pip);
        let recording = recorded(&system, seed, Protocol::Pip, Execution::Random);
        let found = inferred(&recording);
        let Ok(own) = &found.system else { continue };
        let truth = shown(&system);
        for (name, task) in shown(own) {
            let wanted = &truth[&name];
            assert!(task.wcet <= wanted.wcet && task.period == wanted.period, "seed {seed}: {task:?}");
            for ((_, length, ..), (_, most, ..)) in task.sections.iter().zip(&wanted.sections) {
                assert!(length <= most, "seed {seed}: {task:?}");
            }
        }
    }
}

/// Changes one event of a recording.
type Mutation = fn(&mut Recording) -> bool;

const READS: &str = "reads are recorded as writes";

#[test]
fn every_change_of_a_recording_is_noticed() {
    let mutations: [(&str, Mutation); 7] = [
        ("a release is a nanosecond later", |recording| {
            change(recording, |kind| match kind {
                EventKind::Wait { wait: Wait::SleepUntil { at_ns, clock }, site } => {
                    Some(EventKind::Wait { wait: Wait::SleepUntil { at_ns: at_ns + 1, clock }, site })
                }
                _ => None,
            })
        }),
        ("the locks of one resource are not recorded", |recording| {
            for event in &mut recording.events {
                if matches!(event.kind, EventKind::Locked { object: 0, .. }) {
                    event.kind = EventKind::Resumed;
                }
            }
            true
        }),
        ("an unlock is not recorded", |recording| {
            change(recording, |kind| matches!(kind, EventKind::Unlock { .. }).then_some(EventKind::Resumed))
        }),
        ("preemptions are not recorded", |recording| {
            for event in &mut recording.events {
                if event.kind == EventKind::SwitchOut(Stop::Preempted) {
                    event.kind = EventKind::Boost { priority: 0 };
                }
            }
            true
        }),
        ("all priorities are higher", |recording| {
            let mut changed = false;
            for event in &mut recording.events {
                if let EventKind::Scheduling(Policy::Fifo(priority)) = &mut event.kind {
                    *priority += 1;
                    changed = true;
                }
            }
            changed
        }),
        ("all threads are bound elsewhere", |recording| {
            let mut changed = false;
            for event in &mut recording.events {
                if let EventKind::Affinity(cpus) = &mut event.kind {
                    *cpus <<= 1;
                    changed = true;
                }
            }
            changed
        }),
        (READS, |recording| {
            let mut changed = false;
            for event in &mut recording.events {
                if let EventKind::Locked { mode: mode @ Mode::Read, .. } = &mut event.kind {
                    *mode = Mode::Write;
                    changed = true;
                }
            }
            changed
        }),
    ];
    for (what, mutate) in mutations {
        let noticed = (0..20).filter(|&seed| {
            let protocol = if what == READS { Protocol::PhaseFair } else { Protocol::Pip };
            let system = system(seed, protocol);
            let mut recording = recorded(&system, seed, protocol, Execution::Worst);
            let is_whole = inferred(&recording).system.is_ok_and(|own| shown(&own) == shown(&system));
            is_whole
                && mutate(&mut recording)
                && inferred(&recording).system.map_or(true, |own| shown(&own) != shown(&system))
        });
        assert!(noticed.count() > 0, "{what}: no comparison fails");
    }
}

/// Replaces an event in the middle of the recording for which `to` returns another one.
fn change(recording: &mut Recording, to: impl Fn(EventKind) -> Option<EventKind>) -> bool {
    let middle = recording.events.len() / 2;
    let found = recording.events[middle..].iter_mut().find_map(|event| Some((to(event.kind)?, event)));
    found.map(|(kind, event): (_, &mut Event)| event.kind = kind).is_some()
}

#[test]
fn no_inversion_is_told_under_inheritance_and_ceilings() {
    let mut plain = 0;
    for seed in 0..SYSTEMS / 2 {
        let mut random = fastrand::Rng::with_seed(seed);
        let times = Shape { utilization: (80, 90), section: u64::MAX, sections: (1, 3), ..Shape::usual(1, 5, 2) };
        let shape = Shape { jitter: 0, shuffled: 0, own_ceiling: 0, ..times };
        let system = generate(&mut random, &shape);
        for protocol in [Protocol::Pip, Protocol::Icpp] {
            let recording = recorded(&system, seed, protocol, Execution::Random);
            assert_eq!(Findings::of(&recording, None).inversions, [], "seed {seed} under {protocol}");
        }
        let recording = recorded(&system, seed, Protocol::None, Execution::Random);
        plain += Findings::of(&recording, None).inversions.len();
    }
    assert!(plain > 20, "without a protocol, only {plain} inversions are told");
}

#[test]
fn a_program_without_jobs_has_no_system() {
    let mut script = Script::new();
    let site = script.site("main");
    script.run(ms(5));
    script.wait(Wait::Input { descriptor: 0 }, site, ms(100));
    script.run(ms(5));
    let found = inferred(&script.recording());
    assert_eq!(found.system.err().as_deref(), Some("no thread has recognisable jobs"));
    assert!(found.left_out[0].reason.starts_with("none of its waits separates at least 3 jobs"));
}

/// A thread with a job every 10 ms that executes 1, 2 or 3 ms, of which 100 us hold a lock; it sleeps once inside.
fn uneven() -> Recording {
    let mut script = Script::new();
    let (tick, inner) = (script.site("tick"), script.site("inner"));
    let bus = script.mutex("bus");
    for job in 0..30 {
        let at_ns = i64::try_from(ms(10 * job)).expect("is small");
        script.wait(Wait::SleepUntil { at_ns, clock: Clock::Monotonic }, tick, script.until(ms(10 * job)));
        script.run(ms(1 + job % 3) - 100_000);
        script.lock(bus);
        script.run(100_000);
        script.unlock(bus);
        if job == 20 {
            script.wait(Wait::SleepFor { ns: 5_000 }, inner, 6_000);
        }
    }
    script.recording()
}

#[test]
fn evidence_stands_beside_each_value() {
    let recording = uneven();
    let found = infer(&recording, &Choices { margin: 10, job_at: Vec::new() });
    let system = found.system.as_ref().expect("one task");
    let task = &system.tasks()[0];
    assert_eq!((task.period, task.wcet), (Duration::from_ms(10), Duration::from_us(3_300)));
    assert_eq!(system.sections(TaskId(0))[0].length, Duration::from_us(110));
    let file = found.file(&recording).expect("there is a system");
    for text in [
        "# Execution times are lengthened by 10 %.",
        "# Warning: the jobs of `alone` waited for something that is not a recorded lock, once, up to 6 us in one job",
        "# thread 7; a job begins behind the absolute sleep at tick (29 jobs, execution times deviate by",
        "# exact: the program requests these instants\nperiod = \"10 ms\"",
        "# largest of 29 jobs, 3 ms plus 10 %; not a WCET; half of them up to 2 ms, 99.9 % up to 3 ms",
        "#   up to 3 ms: 9",
        "# SCHED_FIFO\npriority = 10",
        "# bound to it\ncpu = 0",
        "# 29 jobs: bus",
        "# inheriting mutex at 0x0\nname = \"bus\"",
    ] {
        assert!(file.contains(text), "{text}: {file}");
    }
}

#[test]
fn a_signal_is_the_release() {
    let mut script = Script::new();
    let site = script.site("wait_frame");
    let frames = script.semaphore("frames");
    for frame in 1..=20 {
        // The later the frame, the later the dispatch behind its signal.
        let dispatch = ms(10 * frame) + 100_000 * frame;
        script.wait(Wait::Semaphore { object: frames }, site, script.until(dispatch));
        script.run(ms(1));
    }
    let mut recording = script.recording();
    let distances = |recording: &Recording| {
        let task = inferred(recording).tasks.remove(0);
        (task.period_ns, task.most_ns, task.regularity)
    };
    assert_eq!(distances(&recording), (10_100_000, 10_100_000, Regularity::Periodic));
    recording.threads.push(recording.threads[0].clone());
    let signal = |frame: u64| Event { at_ns: ms(10 * frame), thread: 1, kind: EventKind::Signal { object: frames } };
    recording.events.extend((1..=20).map(signal));
    recording.events.sort_by_key(|event| event.at_ns);
    assert_eq!(distances(&recording), (ms(10), ms(10), Regularity::Periodic));
}

/// The lengths of jobs that are released every 10 ms: all of 12 ms, or one of 60 ms among many of 4 ms.
fn overloads() -> [Vec<u64>; 2] {
    let lengths = |length: &dyn Fn(u64) -> u64| (0..40).map(|job| ms(length(job))).collect();
    [lengths(&|_| 12), lengths(&|job| if job == 5 { 60 } else { 4 })]
}

/// A thread whose jobs have these lengths, the n-th released at n times 10 ms. It waits by `wait` where it is not late;
/// otherwise `late` says how the wait ends at once.
fn late(script: &mut Script, lengths: &[u64], wait: Wait, late: impl Fn(&mut Script, SiteId)) {
    let site = script.site("next");
    for (job, &length) in (1..).zip(lengths) {
        match script.until(ms(10 * job)) {
            0 => late(script, site),
            ahead => script.wait(wait, site, ahead),
        }
        script.run(length);
    }
}

/// The same with a semaphore, without its posts.
fn late_for_posts(lengths: &[u64]) -> (Recording, ObjectId) {
    let mut script = Script::new();
    let posts = script.semaphore("posts");
    let wait = Wait::Semaphore { object: posts };
    late(&mut script, lengths, wait, |script, site| script.pass(wait, site, None));
    (script.recording(), posts)
}

/// The recording with a thread that posts the semaphore every 10 ms.
fn posted(mut recording: Recording, object: ObjectId) -> Recording {
    recording.threads.push(recording.threads[0].clone());
    let post = |job: u64| Event { at_ns: ms(10 * job), thread: 1, kind: EventKind::Signal { object } };
    // A post comes before the end of the wait that takes it.
    recording.events.splice(..0, (1..=40).map(post));
    recording.events.sort_by_key(|event| event.at_ns);
    recording
}

#[test]
fn a_post_releases_a_job_that_does_not_wait() {
    for lengths in overloads() {
        let (recording, posts) = late_for_posts(&lengths);
        let task = inferred(&posted(recording, posts)).tasks.remove(0);
        assert_eq!((task.period_ns, task.most_ns), (ms(10), ms(10)));
        let mut finish = 0;
        for (number, (job, length)) in (1..).zip(task.jobs.iter().zip(&lengths)) {
            finish = ms(10 * number).max(finish) + length;
            assert_eq!((job.release_ns, job.finish_ns), (ms(10 * number).cast_signed(), finish));
            assert!(job.is_release_known);
        }
    }
}

#[test]
fn a_post_whose_stamp_is_late_is_taken() {
    let [lengths, _] = overloads();
    let (recording, posts) = late_for_posts(&lengths);
    let releases = |late_ns: u64| {
        let mut recording = posted(recording.clone(), posts);
        let mut events = recording.events.iter_mut();
        let first = events.find(|event| event.thread == 1).expect("a post");
        first.at_ns += late_ns;
        recording.events.sort_by_key(|event| event.at_ns);
        let task = inferred(&recording).tasks.remove(0);
        task.jobs[..3].iter().map(|job| job.release_ns).collect::<Vec<_>>()
    };
    let ms = |ms: i64| ms * 1_000_000;
    assert_eq!(releases(100), [ms(10), ms(20), ms(30)]);
    // The mutant: a post that comes later is another one.
    assert_eq!(releases(10_000), [ms(10), ms(10) + 10_000, ms(20)]);
}

#[test]
fn a_wait_that_times_out_takes_no_post() {
    let mut script = Script::new();
    let posts = script.semaphore("posts");
    let wait = Wait::Semaphore { object: posts };
    let site = script.site("next");
    for job in 1..=20 {
        script.wait(wait, site, script.until(ms(10 * job)));
        script.run(ms(15));
        // The job of the next instant begins late; before it, an attempt is refused.
        script.pass(wait, site, Some(EventKind::Refused { object: posts }));
        script.run(ms(1));
    }
    let recording = posted(script.recording(), posts);
    let refused = inferred(&recording).tasks.remove(0);
    assert!(refused.jobs.iter().any(|job| !job.is_release_known));
    // The mutant: the attempts take posts.
    let mut taking = recording;
    taking.events.retain(|event| !matches!(event.kind, EventKind::Refused { .. }));
    assert!(inferred(&taking).tasks.remove(0).jobs.iter().all(|job| job.is_release_known));
}

#[test]
fn an_initial_value_is_no_release() {
    let mut script = Script::new();
    let posts = script.semaphore("posts");
    script.event(EventKind::Initialised { object: posts, value: 2 });
    let wait = Wait::Semaphore { object: posts };
    let site = script.site("next");
    // The jobs begin at 5 ms, 17 ms, and so on: the first two take the initial value.
    script.run(ms(5));
    for _ in 0..20 {
        script.pass(wait, site, None);
        script.run(ms(12));
    }
    let task = inferred(&posted(script.recording(), posts)).tasks.remove(0);
    let known: Vec<Option<i64>> = task.jobs.iter().map(|job| job.is_release_known.then_some(job.release_ns)).collect();
    let ms = |ms: i64| ms * 1_000_000;
    assert_eq!(known[..4], [None, None, Some(ms(10)), Some(ms(20))]);
    assert_eq!(task.period_ns, 10_000_000);
}

/// A thread that reads a timer of 10 ms; each job is as long as its element. If it is late, a read returns all
/// expirations since the one before.
fn reader(lengths: &[u64], is_set: bool, polls: bool) -> Recording {
    let mut script = Script::new();
    let (poll, site) = (script.site("poll"), script.site("read"));
    let (first_ns, interval_ns) = (Some(ms(10).cast_signed()), ms(10));
    if is_set {
        script.event(EventKind::TimerSet { descriptor: 3, first_ns, interval_ns });
    }
    let wait = Wait::Timer { descriptor: 3 };
    let mut taken = 0;
    for &length in lengths {
        let ahead = script.until(ms(10 * (taken + 1)));
        let polled = Wait::Poll { descriptor: 5 };
        match polls {
            true if ahead > 0 => script.wait(polled, poll, ahead),
            true => script.pass(polled, poll, None),
            false => {}
        }
        script.event(EventKind::Wait { wait, site });
        if ahead > 0 && !polls {
            script.event(EventKind::SwitchOut(Stop::Suspended));
            script.run(ahead);
            script.event(EventKind::SwitchIn { cpu: 0 });
        }
        let count = (script.now_ns() - ms(10 * taken)) / ms(10);
        taken += count;
        script.event(EventKind::Expired { count });
        script.event(EventKind::Resumed);
        script.run(length);
    }
    script.recording()
}

#[test]
fn an_expiration_releases_a_job_that_does_not_wait() {
    for (lengths, skipped) in overloads().iter().zip([7, 5]) {
        for polls in [false, true] {
            let recording = reader(lengths, true, polls);
            let found = inferred(&recording);
            let task = &found.tasks[0];
            assert_eq!((task.period_ns, task.most_ns, task.regularity), (ms(10), ms(10), Regularity::Exact));
            assert!(task.jobs.iter().all(|job| job.is_release_known && job.release_ns % 10_000_000 == 0));
            assert_eq!(task.jobs.iter().map(|job| job.releases - 1).sum::<u64>(), skipped);
            let warning = format!("`alone` skipped {skipped} jobs: its timer expired again before it was read");
            assert!(found.warnings.contains(&warning), "{:?}", found.warnings);
            assert_eq!(task.suspensions, (0, 0));
            let worst = task.jobs.iter().map(|job| job.response_ns()).max();
            assert!(worst >= Some(ms(20)), "{worst:?}");
        }
    }
}

#[test]
fn a_timer_that_was_set_unseen_has_a_period_where_the_thread_waits() {
    let [always, once] = overloads();
    for polls in [false, true] {
        let task = inferred(&reader(&once, false, polls)).tasks.remove(0);
        assert_eq!((task.period_ns, task.regularity), (ms(10), Regularity::Periodic));
        let found = inferred(&reader(&always, false, polls));
        let reason = "39 of its 40 jobs did not wait for their release, so its period is unknown; a job begins behind \
                      the timer of descriptor 3 at read";
        assert_eq!(found.left_out[0].reason, reason);
    }
}

#[test]
fn jobs_that_did_not_wait_for_data_give_no_period() {
    let [always, once] = overloads();
    let wait = Wait::Input { descriptor: 0 };
    let recorded = |lengths: &[u64]| {
        let mut script = Script::new();
        late(&mut script, lengths, wait, |script, site| script.pass(wait, site, None));
        script.recording()
    };
    let found = inferred(&recorded(&always));
    assert_eq!(found.system.err().as_deref(), Some("no thread has recognisable jobs"));
    let warning = "`alone` is not a task, because 39 of its 40 jobs did not wait for their release, so its period is \
                   unknown; a job begins behind the wait for input of descriptor 0 at next: bounds do not cover its \
                   jobs";
    assert_eq!(found.warnings, [warning]);
    // The jobs behind the long one are late.
    let found = inferred(&recorded(&once));
    let task = &found.tasks[0];
    assert_eq!((task.period_ns, task.most_ns), (ms(10), ms(10)));
    let late = task.jobs.iter().filter(|job| !job.is_release_known).count();
    assert_eq!(late, 9);
    let warning = "9 jobs of `alone` began without a wait, as soon as the job before had ended: responses are longer \
                   than shown, and these beginnings do not count for the period";
    assert_eq!(found.warnings, [warning]);
}

/// A barrier opens when the last thread arrives, which does not wait.
#[test]
fn the_last_thread_at_a_barrier_releases_its_jobs() {
    let [always, _] = overloads();
    let mut script = Script::new();
    let wait = Wait::Barrier { object: script.barrier("step") };
    late(&mut script, &always, wait, |script, site| script.pass(wait, site, None));
    let found = inferred(&script.recording());
    let task = &found.tasks[0];
    assert_eq!((task.period_ns, task.most_ns), (ms(12), ms(12)));
    assert!(task.jobs.iter().all(|job| job.is_release_known));
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

/// A thread that was cancelled in a wait waits no more, so that what is left over counts as taken unseen.
#[test]
fn a_wait_without_an_end_keeps_no_post() {
    let [_, lengths] = overloads();
    let (recording, posts) = late_for_posts(&lengths);
    let (mut recording, wait) = (posted(recording, posts), Wait::Semaphore { object: posts });
    // Another thread begins to wait, and ends there, and a post was taken by a thread that was not recorded.
    recording.threads.push(recording.threads[0].clone());
    let site = recording.events.iter().find_map(|event| match event.kind {
        EventKind::Wait { site, .. } => Some(site),
        _ => None,
    });
    let of_third = |kind| Event { at_ns: 0, thread: 2, kind };
    let begins = EventKind::Wait { wait, site: site.expect("a wait") };
    let unseen = Event { at_ns: ms(12), thread: 1, kind: EventKind::Signal { object: posts } };
    recording.events.splice(..0, [of_third(begins), of_third(EventKind::End), unseen]);
    recording.events.sort_by_key(|event| event.at_ns);
    let task = inferred(&recording).tasks.remove(0);
    for (number, job) in (1..).zip(&task.jobs) {
        assert_eq!(job.release_ns, ms(10 * number).cast_signed());
    }
}

#[test]
fn without_switches_there_is_no_system() {
    let recording = Recording { switches: false, ..uneven() };
    assert!(inferred(&recording).system.is_err_and(|why| why.starts_with("switches of threads were not recorded")));
}

/// Threads beside one another, in one recording.
fn beside(threads: Vec<(&str, Recording)>) -> Recording {
    let mut all = Recording { complete: true, switches: true, ..Recording::default() };
    for (thread, (name, one)) in (0..).zip(threads) {
        all.length_ns = all.length_ns.max(one.length_ns);
        all.threads.push(Thread { name: name.into(), ..one.threads[0].clone() });
        all.sites = one.sites;
        all.events.extend(one.events.into_iter().map(|event| Event { thread, ..event }));
    }
    all.events.sort_by_key(|event| event.at_ns);
    all
}

/// A thread with a job of this length every 10 ms, which waits as `wait` says for the instant of the next one, under
/// this policy, on this CPU.
fn every_10_ms(length: u64, wait: fn(u64) -> Wait, policy: Policy, cpu: u32) -> Recording {
    let mut script = Script::new();
    let site = script.site("next");
    script.event(EventKind::Scheduling(policy));
    for job in 1..=20 {
        script.wait(wait(ms(10 * job)), site, script.until(ms(10 * job)));
        script.run(length);
    }
    let mut recording = script.recording();
    for event in &mut recording.events {
        match &mut event.kind {
            EventKind::SwitchIn { cpu: own } => *own = cpu,
            EventKind::Affinity(cpus) => *cpus = u64::MAX,
            _ => {}
        }
    }
    recording
}

fn until(at_ns: u64) -> Wait {
    Wait::SleepUntil { at_ns: at_ns.cast_signed(), clock: Clock::Monotonic }
}

fn deadline(runtime_ns: u64, period_ns: u64) -> Policy {
    Policy::Deadline { runtime_ns, deadline_ns: period_ns, period_ns }
}

/// What a thread executes between the poll and the read of the timer belongs to the job.
#[test]
fn jobs_begin_behind_the_poll() {
    let mut script = Script::new();
    let (poll, read) = (script.site("poll"), script.site("read"));
    let (first_ns, interval_ns) = (Some(ms(10).cast_signed()), ms(10));
    script.event(EventKind::TimerSet { descriptor: 3, first_ns, interval_ns });
    for job in 1..=10 {
        script.wait(Wait::Poll { descriptor: 3 }, poll, script.until(ms(10 * job)));
        script.run(ms(7));
        script.event(EventKind::Wait { wait: Wait::Timer { descriptor: 3 }, site: read });
        script.event(EventKind::Expired { count: 1 });
        script.event(EventKind::Resumed);
        script.run(ms(1));
    }
    let found = inferred(&script.recording());
    assert_eq!((&found.tasks[0].cpu_ns[..], &found.warnings[..]), (&[ms(8); 9][..], &[][..]));
}

#[test]
fn execution_outside_jobs_is_told() {
    let warnings = |start: u64| {
        let mut script = Script::new();
        let site = script.site("next");
        script.run(start);
        let first = script.now_ns();
        for job in 1..=10 {
            script.wait(until(first + ms(10 * job)), site, script.until(first + ms(10 * job)));
            script.run(ms(5));
        }
        inferred(&script.recording()).warnings
    };
    let warning = "`alone` executed at least 15 ms before its first job or behind its last one, 21 % of its CPU time: \
                   bounds do not cover this";
    assert_eq!(warnings(ms(20)), [warning]);
    // A job that began before the recording, and the one that its end cuts off.
    assert!(warnings(ms(5)).is_empty(), "{:?}", warnings(ms(5)));
}

/// A job that runs 2 ms, stops for 5 ms in a call that is not recorded, and runs 1 ms.
#[test]
fn a_stop_in_a_call_that_is_not_recorded_is_told() {
    let found = |stop: Stop, inside: &[EventKind], late_ns: u64| {
        let mut script = Script::new();
        let site = script.site("next");
        for job in 1..=10 {
            // The clock of the switches may be early.
            script.event(EventKind::SwitchOut(Stop::Suspended));
            script.run(late_ns);
            script.event(EventKind::Wait { wait: until(ms(10 * job)), site });
            script.run(script.until(ms(10 * job)));
            script.event(EventKind::SwitchIn { cpu: 0 });
            script.event(EventKind::Resumed);
            script.run(ms(2));
            inside.iter().for_each(|&kind| script.event(kind));
            script.event(EventKind::SwitchOut(stop));
            script.run(ms(5));
            script.event(EventKind::SwitchIn { cpu: 0 });
            if let [EventKind::Request { object, mode, site }] = *inside {
                script.event(EventKind::Locked { object, mode, site, tried: false });
            }
            script.run(ms(1));
            if let [EventKind::Request { object, .. }] = *inside {
                script.event(EventKind::Unlock { object });
            }
        }
        let mut recording = script.recording();
        recording.objects = uneven().objects;
        let found = inferred(&recording);
        (found.tasks[0].suspensions, found.warnings)
    };
    let warning = "the jobs of `alone` waited for something that is not a recorded lock, 9 times, up to 5 ms in one job: bounds \
                   do not cover such waits";
    assert_eq!(found(Stop::Suspended, &[], 100), ((9, ms(5)), vec![warning.to_owned()]));
    // The stop of a sleep that begins much later is another one.
    assert_eq!(found(Stop::Suspended, &[], 2_000).0.0, 18);
    // A preemption, and a wait for a lock.
    assert_eq!(found(Stop::Preempted, &[], 100), ((0, 0), vec![]));
    let request = EventKind::Request { object: 0, mode: Mode::Write, site: 0 };
    assert_eq!(found(Stop::Suspended, &[request], 100), ((0, 0), vec![]));
}

#[test]
fn the_period_of_a_deadline_thread_is_the_lesser_one() {
    let found = |wait, runtime: u64, period: u64| {
        let found = inferred(&every_10_ms(ms(4), wait, deadline(runtime, period), 0));
        let system = found.system.as_ref().expect("one task");
        let period_ns = system.tasks()[0].period.as_ns();
        (period_ns, found.warnings)
    };
    assert_eq!(found(until, ms(5), ms(10)), (ms(10), vec![]));
    assert_eq!(found(until, ms(5), ms(8)), (ms(8), vec![]));
    let close = "jobs of `alone` were released 10 ms apart, less than its period of 20 ms under SCHED_DEADLINE: the \
                 kernel may let them wait, and bounds do not cover this";
    assert_eq!(found(until, ms(5), ms(20)), (ms(10), vec![close.to_owned()]));
    let long = "a job of `alone` executed 4 ms, longer than its runtime of 3 ms under SCHED_DEADLINE: the kernel lets \
                it wait for its next period, and bounds do not cover this";
    assert_eq!(found(until, ms(3), ms(10)), (ms(10), vec![long.to_owned()]));
    // A yield lasts until the next period: the jobs behind a late dispatch only seem closer.
    assert_eq!(found(|_| Wait::Yield, ms(5), ms(11)), (ms(11), vec![]));
}

/// Three threads that execute 6 ms in each 10 ms, on CPUs 2 and 3.
#[test]
fn only_cpus_that_are_used_count_under_g_edf() {
    let thread = |cpu| every_10_ms(ms(6), until, deadline(ms(7), ms(10)), cpu);
    let recording = beside(vec![("a", thread(2)), ("b", thread(3)), ("c", thread(3))]);
    let found = inferred(&recording);
    let system = found.system.as_ref().expect("three tasks");
    assert_eq!((system.scheduler(), system.cpus()), (Scheduler::GEdf, 2));
    let file = found.file(&recording).expect("there is a system");
    assert_eq!(parse_system(&file).as_ref(), Ok(system), "{file}");
    let alone = inferred(&thread(3)).system.expect("one task");
    assert_eq!((alone.scheduler(), alone.cpus()), (Scheduler::PEdf, 4));
}

/// In cpusets of one CPU, threads under SCHED_DEADLINE are bound.
#[test]
fn bound_tasks_under_sched_deadline_are_partitioned() {
    let thread = |cpu: u32, cpus: u64| {
        let mut recording = every_10_ms(ms(3), until, deadline(ms(4), ms(10)), cpu);
        for event in &mut recording.events {
            if let EventKind::Affinity(allowed) = &mut event.kind {
                *allowed = cpus;
            }
        }
        recording
    };
    let found = inferred(&beside(vec![("a", thread(2, 4)), ("b", thread(2, 4)), ("c", thread(3, 8))]));
    let system = found.system.expect("three tasks");
    assert_eq!((system.scheduler(), system.cpus(), found.warnings), (Scheduler::PEdf, 4, vec![]));
    assert_eq!(system.tasks().iter().map(|task| task.cpu.0).collect::<Vec<_>>(), [2, 2, 3]);
    let found = inferred(&beside(vec![("a", thread(2, 4)), ("b", thread(3, 12))]));
    assert_eq!(found.system.expect("two tasks").scheduler(), Scheduler::GEdf);
    let warning = "`a` is bound to CPU 2, and others are not bound: the task set lets all tasks execute on all CPUs, so \
                   its bounds do not hold";
    assert_eq!(found.warnings, [warning]);
}

#[test]
fn a_thread_that_is_no_task_and_executes_beside_tasks_is_told() {
    let task = every_10_ms(ms(2), until, Policy::Fifo(10), 0);
    let warnings = |policy, cpu| {
        let mut script = Script::new();
        script.event(EventKind::Scheduling(policy));
        script.run(ms(3));
        script.event(EventKind::SwitchOut(Stop::Suspended));
        script.run(ms(50));
        script.event(EventKind::SwitchIn { cpu });
        script.run(ms(2));
        inferred(&beside(vec![("other", script.recording()), ("task", task.clone())])).warnings
    };
    // It executes on CPU 0 before it stops, and to the end of the recording afterwards.
    let warning = |time: &str| {
        format!(
            "`other` is not a task and executed {time} on CPUs of tasks, at a real-time priority that is not below \
             theirs: bounds do not cover this"
        )
    };
    assert_eq!(warnings(Policy::Fifo(10), 0), [warning("152 ms")]);
    assert_eq!(warnings(Policy::Fifo(11), 1), [warning("3 ms")]);
    assert_eq!(warnings(Policy::Fifo(9), 0), [""; 0]);
    assert_eq!(warnings(Policy::Fair { nice: 0 }, 0), [""; 0]);
}

/// Five waits at once that last as long as a recording can.
#[test]
fn sums_of_long_times_do_not_overflow() {
    let wait = EventKind::Wait { wait: Wait::SleepFor { ns: 1 }, site: 0 };
    let last = Event { at_ns: u64::MAX, thread: 0, kind: EventKind::Resumed };
    let mut script = Script::new();
    script.site("sleep");
    for _ in 0..5 {
        script.event(wait);
    }
    let mut recording = Recording { length_ns: u64::MAX, ..script.recording() };
    recording.events.push(last);
    assert!(inferred(&recording).system.is_err());
    // The same waits inside a job.
    let mut recording = every_10_ms(ms(1), until, Policy::Fifo(10), 0);
    let place = recording.events.iter().rposition(|event| event.kind == EventKind::Resumed).expect("a wait");
    let at_ns = recording.events[place].at_ns;
    let mut end: Vec<Event> = (0..3).map(|_| Event { at_ns, thread: 0, kind: wait }).collect();
    end.push(last);
    end.push(Event { kind: EventKind::Wait { wait: until(0), site: 0 }, ..last });
    end.push(last);
    recording.events.truncate(place + 1);
    recording.events.extend(end);
    recording.length_ns = u64::MAX;
    assert_eq!(inferred(&recording).tasks[0].suspensions, (3, u64::MAX));
}

#[test]
fn jobs_of_a_schedule_that_begins_at_once_do_not_suspend() {
    for seed in 0..20 {
        let system = system(seed, Protocol::Pip);
        let config = Config::default().with_protocol(Protocol::Pip).with_offsets(Offsets::Synchronous);
        let mut simulation = Simulation::new(&system, &config, Vec::new());
        simulation.run_until(Instant::from_ns(400_000_000));
        let found = inferred(&of_schedule(&system, Protocol::Pip, &simulation.into_tracer()));
        assert!(found.tasks.iter().all(|task| task.suspensions == (0, 0)), "seed {seed}: {:?}", found.warnings);
    }
}
