//! Who waits for a section and who does not, and what becomes of those that nobody leaves.

use super::*;
use crate::mutex::{LockError, Mutex, Protocol};
use crate::process::{exit_at_once, holds_in_child};
use crate::section::SectionError;
use crate::section::lazy::Cpu;
use lockwright_sys::pi_word::PiError;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

fn looks(thread: &Lazy) {
    assert_eq!(thread.look(), Ok(true), "it came upon a section");
}

/// A managed thread of level 10 that does `inside` in a section, tells, leaves, and tells.
fn holder(stage: &Stage, story: &Story, inside: impl FnOnce(&Lazy) + Send + 'static) -> JoinHandle<()> {
    let (cpu, story) = (stage.cpu, story.clone());
    stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("this CPU");
        let section = thread.enter().expect("a section");
        inside(&thread);
        story.tell("low leaves");
        drop(section);
        story.tell("low goes on");
    })
}

#[test]
fn a_release_waits_for_the_section_and_lends_it_its_priority() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (high_gate, high) = stage.released(30, &story, "high begins", looks);
    // Each would come before a thread of level 10. One is managed: it does not get as far as to look.
    let (medium_gate, medium) = stage.unmanaged(20, &story, "medium begins");
    let (other_gate, other) = stage.released(15, &story, "other begins", |thread| {
        assert_eq!(thread.look(), Ok(false), "the section is over");
    });
    let low = holder(&stage, &story, move |_| {
        [high_gate, medium_gate, other_gate].iter().for_each(Gate::open);
        burn(MS);
    });
    join([low, high, medium, other]);
    assert_eq!(story.told(), ["low leaves", "high begins", "medium begins", "other begins", "low goes on"]);
}

/// If these waited, the test above would say nothing.
#[test]
fn who_does_not_look_does_not_wait() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (high_gate, high) = stage.released(30, &story, "high begins", |_| {});
    let (medium_gate, medium) = stage.unmanaged(20, &story, "medium begins");
    let low = holder(&stage, &story, move |_| {
        [high_gate, medium_gate].iter().for_each(Gate::open);
        burn(MS);
    });
    join([low, high, medium]);
    assert_eq!(story.told(), ["high begins", "medium begins", "low leaves", "low goes on"]);
}

#[test]
fn several_releases_go_in_order_of_priority() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (first_gate, first) = stage.released(20, &story, "20 begins", looks);
    let (second_gate, second) = stage.released(40, &story, "40 begins", |thread| {
        looks(thread);
        // The word passes through the hands of those who still wait, once each.
        for _ in 0..10 {
            let _section = thread.enter().expect("a section");
        }
    });
    let (third_gate, third) = stage.released(30, &story, "30 begins", looks);
    let low = holder(&stage, &story, move |_| [first_gate, second_gate, third_gate].iter().for_each(Gate::open));
    join([low, first, second, third]);
    assert_eq!(story.told(), ["low leaves", "40 begins", "30 begins", "20 begins", "low goes on"]);
}

/// Two managed threads and an unmanaged one.
#[test]
fn an_unmanaged_thread_preempts_and_lets_no_other_in() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (high_gate, high) = stage.released(30, &story, "high inside", |thread| {
        let _section = thread.enter().expect("a section");
        assert_eq!(thread.look(), Ok(false), "it is inside itself");
    });
    let (stranger_gate, stranger) = stage.unmanaged(40, &story, "stranger begins");
    let low = holder(&stage, &story, move |_| {
        stranger_gate.open();
        high_gate.open();
        burn(MS);
    });
    join([low, high, stranger]);
    assert_eq!(story.told(), ["stranger begins", "low leaves", "high inside", "low goes on"]);
}

/// As after I/O in mid-job.
#[test]
fn who_resumes_without_a_look_goes_on_beside_the_section_and_not_into_one() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (gate, high) = stage.released(30, &story, "high inside", {
        let story = story.clone();
        move |thread| {
            story.tell("high goes on");
            let section = thread.enter().expect("a section");
            assert_eq!(section.leave(), Ok(()));
        }
    });
    let low = holder(&stage, &story, move |_| {
        gate.open();
        burn(MS);
    });
    join([low, high]);
    assert_eq!(story.told(), ["high goes on", "low leaves", "high inside", "low goes on"]);
}

#[test]
fn a_nested_section_ends_with_the_last() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (gate, high) = stage.released(30, &story, "high begins", looks);
    let low = holder(&stage, &story, {
        let story = story.clone();
        move |thread| {
            let (second, third) = (thread.enter().expect("a section"), thread.enter().expect("a section"));
            gate.open();
            drop(second);
            story.tell("one left");
            assert_eq!(third.leave(), Ok(()));
            story.tell("two left");
        }
    });
    join([low, high]);
    assert_eq!(story.told(), ["one left", "two left", "low leaves", "high begins", "low goes on"]);
}

#[test]
fn a_panic_leaves() {
    let Some(stage) = Stage::set() else { return };
    let (story, before) = (Story::default(), Lazy::abandoned(stage.cpu));
    let (gate, high) = stage.released(30, &story, "high begins", looks);
    let low = holder(&stage, &story, move |thread| {
        let _nested = thread.enter().expect("a section");
        gate.open();
        panic!("a test of what follows");
    });
    assert!(low.join().is_err());
    high.join().expect("high");
    assert_eq!(story.told(), ["high begins"]);
    assert!(Cpu::get(stage.cpu).expect("this CPU").word.is_free());
    assert_eq!(Lazy::abandoned(stage.cpu), before, "it was left");
}

#[test]
fn a_section_is_no_place_to_sleep() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("this CPU");
        let release = Instant::now() + Duration::from_millis(2);
        {
            let _section = thread.enter().expect("a section");
            assert_eq!(thread.sleep_until(release), Err(SectionError::Inside));
        }
        assert_eq!(thread.sleep_until(release), Ok(false));
        assert!(Instant::now() >= release);
        assert_eq!(thread.sleep_until(release), Ok(false), "past already");
    });
    thread.join().expect("a thread");
}

#[test]
fn handles_that_cannot_be_are_refused() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        for cpu in [1_023, 1_024, usize::MAX] {
            assert!(matches!(Lazy::manage(cpu), Err(SectionError::NoCpu { .. })), "{cpu}");
        }
        let first = Lazy::manage(cpu).expect("this CPU");
        assert_eq!(Lazy::manage(cpu).err(), Some(SectionError::SecondHandle));
        drop(first);
        assert!(Lazy::manage(cpu).is_ok());
    });
    thread.join().expect("a thread");
}

/// How a thread can end without leaving its section.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// The guard is forgotten.
    Guard,
    /// Guard and handle are.
    Both,
    /// Nobody gets to do anything.
    AtOnce,
}

/// A thread of `level` that does `inside` in a section it never leaves. Returns when it has ended.
fn dies_inside(stage: &Stage, level: u8, end: End, inside: impl FnOnce() + Send + 'static) {
    let (cpu, tid) = (stage.cpu, Arc::new(AtomicU32::new(0)));
    let thread = stage.thread(level, {
        let tid = Arc::clone(&tid);
        move || {
            tid.store(sched::gettid().0, Ordering::Release);
            let thread = Lazy::manage(cpu).expect("this CPU");
            std::mem::forget(thread.enter().expect("a section"));
            inside();
            match end {
                End::Guard => {}
                End::Both => std::mem::forget(thread),
                End::AtOnce => exit_at_once(),
            }
        }
    });
    if end != End::AtOnce {
        return thread.join().expect("it ends in the usual way");
    }
    // std would miss the result of a thread that ended at once.
    drop(thread);
    let is_alive = || match tid.load(Ordering::Acquire) {
        0 => true,
        tid => std::fs::exists(format!("/proc/self/task/{tid}")).expect("proc"),
    };
    // BOUND: the watchdog.
    while is_alive() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_thread_that_ends_inside_keeps_nobody_out() {
    let Some(stage) = Stage::set() else { return };
    for end in [End::Guard, End::Both, End::AtOnce] {
        for enters in [true, false] {
            let before = Lazy::abandoned(stage.cpu);
            dies_inside(&stage, 10, end, || {});
            let cpu = stage.cpu;
            let word = &Cpu::get(cpu).expect("this CPU").word;
            if end == End::AtOnce {
                // A lock that does not inherit stays shut.
                assert_eq!(word.lock(sched::gettid()), Err(PiError::OwnerDied));
            } else {
                assert!(word.is_free(), "{end:?}: the id may be given again");
            }
            let next = stage.thread(20, move || {
                // Looks, too.
                let thread = Lazy::manage(cpu).expect("this CPU");
                if enters {
                    drop(thread.enter().expect("a section"));
                }
            });
            join([next]);
            assert!(word.is_free(), "{end:?}");
            assert_eq!(Lazy::abandoned(cpu), before + 1, "{end:?}");
        }
    }
}

#[test]
fn a_thread_that_ends_inside_lets_those_go_who_wait() {
    let Some(stage) = Stage::set() else { return };
    for end in [End::Guard, End::Both, End::AtOnce] {
        let (story, before) = (Story::default(), Lazy::abandoned(stage.cpu));
        let (high_gate, high) = stage.released(30, &story, "high begins", |thread| {
            looks(thread);
            drop(thread.enter().expect("a section"));
        });
        let (medium_gate, medium) = stage.released(20, &story, "medium inside", |thread| {
            drop(thread.enter().expect("a section"));
        });
        dies_inside(&stage, 10, end, move || {
            medium_gate.open();
            high_gate.open();
        });
        join([high, medium]);
        assert_eq!(story.told(), ["high begins", "medium inside"], "{end:?}");
        assert!(Cpu::get(stage.cpu).expect("this CPU").word.is_free(), "{end:?}");
        assert_eq!(Lazy::abandoned(stage.cpu), before + 1, "{end:?}");
    }
}

/// The kernel gave the word to a waiter, which a third thread keeps from executing for `kept_ms`; meanwhile somebody more urgent
/// asks. Returns its answer.
fn asks_before_the_heir(stage: &Stage, kept_ms: u64) -> Result<bool, SectionError> {
    let (cpu, story, answer) = (stage.cpu, Story::default(), Arc::new(Mutex::new(Ok(false))));
    let (heir_gate, heir) = stage.released(5, &story, "heir", looks);
    let (high_gate, high) = stage.released(60, &story, "high", {
        let answer = Arc::clone(&answer);
        move |thread| *answer.lock().unwrap() = thread.look()
    });
    let (ready, between_gate) = (Gate::default(), Gate::default());
    let between = stage.thread(20, {
        let (ready, gate) = (ready.clone(), between_gate.clone());
        move || {
            ready.open();
            gate.pass();
            high_gate.open();
            burn(kept_ms * MS);
        }
    });
    ready.pass();
    dies_inside(stage, 50, End::AtOnce, move || {
        heir_gate.open();
        // So that the heir gets to wait.
        while !Cpu::get(cpu).expect("this CPU").word.has_waiters() {
            clock::sleep_until(clock::now_ns() + MS).expect("a sleep");
        }
        between_gate.open();
    });
    join([heir, high, between]);
    assert!(Cpu::get(cpu).expect("this CPU").word.is_free());
    *answer.lock().unwrap()
}

#[test]
fn who_asks_before_the_heir_executed_lets_it_execute_or_gives_up() {
    let Some(stage) = Stage::set() else { return };
    let before = Lazy::abandoned(stage.cpu);
    assert_eq!(asks_before_the_heir(&stage, 2), Ok(true));
    assert_eq!(asks_before_the_heir(&stage, 100), Err(SectionError::OwnerDied));
    assert_eq!(Lazy::abandoned(stage.cpu), before + 2);
}

/// A thread that ended inside had the id that this one was given.
#[test]
fn an_id_that_is_used_again_inherits_the_section() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        let (me, before, word) = (sched::gettid(), Lazy::abandoned(cpu), &Cpu::get(cpu).expect("this CPU").word);
        word.lock(me).expect("it is free");
        let thread = Lazy::manage(cpu).expect("this CPU");
        assert!(word.is_free());
        word.lock(me).expect("it is free");
        drop(thread.enter().expect("a section"));
        assert!(word.is_free());
        assert_eq!(Lazy::abandoned(cpu), before + 2);
    });
    thread.join().expect("a thread");
}

/// What two more urgent threads saw that come upon the sections of a third.
///
/// ORDERING: Relaxed throughout: all execute on one processor, and the counts are read after they are joined.
#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    inside: AtomicU32,
    sections: AtomicU64,
    releases: AtomicU64,
    waits: AtomicU64,
    violations: AtomicU64,
}

/// Half a second of releases every 71 and 97 us, beside a thread that is inside most of its time.
fn releases_beside_sections(stage: &Stage, looks: bool) -> Arc<Seen> {
    let (cpu, seen) = (stage.cpu, Arc::new(Seen::default()));
    let count = |counter: &AtomicU64| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let highs = [(30, 71), (50, 97)].map(|(level, period_us)| {
        let seen = Arc::clone(&seen);
        stage.thread(level, move || {
            let thread = Lazy::manage(cpu).expect("this CPU");
            let mut release = Instant::now();
            while !seen.is_over.load(Ordering::Relaxed) {
                release += Duration::from_micros(period_us);
                if looks {
                    if thread.sleep_until(release).expect("a sleep and a look") {
                        count(&seen.waits);
                    }
                } else {
                    std::thread::sleep(release.saturating_duration_since(Instant::now()));
                }
                count(&seen.releases);
                if seen.inside.load(Ordering::Relaxed) != 0 {
                    count(&seen.violations);
                }
                if looks {
                    // Its own section excludes those of the others, too.
                    let _section = thread.enter().expect("a section");
                    if seen.inside.fetch_add(1, Ordering::Relaxed) != 0 {
                        count(&seen.violations);
                    }
                    burn(US);
                    seen.inside.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })
    });
    let low = stage.thread(10, {
        let seen = Arc::clone(&seen);
        move || {
            let thread = Lazy::manage(cpu).expect("this CPU");
            let end = Instant::now() + Duration::from_millis(500);
            while Instant::now() < end {
                let _section = thread.enter().expect("a section");
                seen.inside.store(1, Ordering::Relaxed);
                burn(8 * US);
                seen.inside.store(0, Ordering::Relaxed);
                count(&seen.sections);
            }
            seen.is_over.store(true, Ordering::Relaxed);
        }
    });
    join([low]);
    join(highs);
    let [sections, releases, waits, violations] =
        [&seen.sections, &seen.releases, &seen.waits, &seen.violations].map(|count| count.load(Ordering::Relaxed));
    println!("looks {looks}: {sections} sections, {releases} releases, {waits} waited, {violations} violations");
    seen
}

#[test]
fn thousands_of_releases_meet_no_section() {
    let Some(stage) = Stage::set() else { return };
    let seen = releases_beside_sections(&stage, true);
    assert_eq!(seen.violations.load(Ordering::Relaxed), 0);
    assert!(seen.waits.load(Ordering::Relaxed) > 100, "a test of waiting without any");
    assert!(Cpu::get(stage.cpu).expect("this CPU").word.is_free());
}

/// If none of these met one, the test above would say nothing.
#[test]
fn releases_that_do_not_look_meet_sections() {
    let Some(stage) = Stage::set() else { return };
    let seen = releases_beside_sections(&stage, false);
    assert!(seen.violations.load(Ordering::Relaxed) > 100);
}

#[test]
fn a_child_process_has_words_of_its_own() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let inside = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("this CPU");
        let mut section = Some(thread.enter().expect("a section"));
        let word = &Cpu::get(cpu).expect("this CPU").word;
        // Forked inside, the child is outside, and its copy of the section says so.
        let held = holds_in_child(|| {
            let free = word.is_free();
            free && section.take().is_some_and(|section| section.leave().is_err())
                && thread.enter().is_ok()
                && word.is_free()
        });
        let still = word.is_owned_by(sched::gettid());
        (held, still)
    });
    assert_eq!(inside.join().expect("holds"), (true, true));
    let outside = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("this CPU");
        holds_in_child(|| {
            let _section = thread.enter().expect("a section");
            Cpu::get(cpu).expect("this CPU").word.is_owned_by(sched::gettid())
        })
    });
    assert!(outside.join().expect("holds"), "the word carries the child's id");
}

/// A managed thread of level 10 that holds a mutex of ceiling 20 while `others` are released.
fn beside_a_ceiling(others: &'static [(u8, &'static str)], before: fn(&Lazy)) -> Option<Vec<&'static str>> {
    let stage = Stage::set()?;
    let story = Story::default();
    let threads: Vec<_> = others.iter().map(|&(level, name)| stage.released(level, &story, name, before)).collect();
    let (gates, threads): (Vec<Gate>, Vec<JoinHandle<()>>) = threads.into_iter().unzip();
    let cpu = stage.cpu;
    let holder = stage.thread(10, {
        let story = story.clone();
        move || {
            let _thread = Lazy::manage(cpu).expect("this CPU");
            let mutex = Mutex::builder().protocol(Protocol::Protect(20)).build(());
            {
                let _guard = mutex.lock().expect("is free");
                assert_eq!(level_of_me(), 10, "it is said, not risen to");
                gates.iter().for_each(Gate::open);
                story.tell("held");
            }
            story.tell("given back");
        }
    });
    holder.join().expect("the holder's body holds");
    threads.into_iter().for_each(|thread| thread.join().expect("the thread's body holds"));
    Some(story.told())
}

#[test]
fn managed_threads_do_not_come_between_up_to_a_ceiling() {
    let Some(told) = beside_a_ceiling(&[(15, "below"), (20, "at"), (25, "above")], |thread| {
        thread.look().expect("a look");
    }) else {
        return;
    };
    assert_eq!(told, ["above", "held", "at", "below", "given back"]);
    // The twin: who does not look comes between.
    let told = beside_a_ceiling(&[(15, "below"), (20, "at")], |_| {});
    assert_eq!(told, Some(vec!["below", "at", "held", "given back"]));
}

#[test]
fn ceilings_of_managed_threads_nest_and_are_kept() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let task = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("this CPU");
        let of = |ceiling| Mutex::builder().protocol(Protocol::Protect(ceiling)).build(());
        let (low, same, high) = (of(20), of(20), of(30));
        let held = |level| Cpu::get(cpu).expect("this CPU").above(level).filter(|word| !word.is_free()).count();
        let (first, second) = (low.lock().expect("is free"), same.lock().expect("is free"));
        assert_eq!((held(20), held(21)), (1, 0), "one ceiling, one word");
        let third = high.lock().expect("is free");
        assert_eq!((held(20), held(30)), (2, 1));
        drop(first);
        assert_eq!(held(20), 2, "the other of the same ceiling is held");
        drop((second, third));
        assert_eq!(held(1), 0);
        assert!(matches!(of(9).lock(), Err(LockError::PriorityAboveCeiling)));
        assert_eq!((held(1), thread.look()), (0, Ok(false)));
        drop(thread);
        // Not managed any more, it rises.
        let guard = low.lock().expect("is free");
        assert_eq!((level_of_me(), held(1)), (20, 0));
        drop(guard);
        assert_eq!(level_of_me(), 10);
    });
    task.join().expect("the body holds");
}
