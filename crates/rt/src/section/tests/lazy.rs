//! Which threads a lazy section holds off, and what happens to sections that are never left.

use super::*;
use crate::mutex::{LockError, Mutex, MutexProtocol};
use crate::process::{exit_at_once, holds_in_child};
use crate::section::SectionError;
use crate::section::lazy::Cpu;
use lockwright_sys::pi_word::PiError;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

fn looks(thread: &Lazy) {
    assert_eq!(thread.look(), Ok(true), "it had to wait for a section");
}

/// A managed thread of level 10 that calls `inside` in a section, records "low leaves", leaves, and records "low goes
/// on".
fn holder(stage: &Stage, story: &Story, inside: impl FnOnce(&Lazy) + Send + 'static) -> JoinHandle<()> {
    let (cpu, story) = (stage.cpu, story.clone());
    stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        let section = thread.enter().expect("the section is entered");
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
    // Each of these is more urgent than level 10. The managed one of level 15 does not even get to its check.
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

/// The control for the test above: threads that do not check preempt the section.
#[test]
fn a_thread_that_does_not_check_does_not_wait() {
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
        // The first time, the word passes through the remaining waiters, once each.
        for _ in 0..10 {
            let _section = thread.enter().expect("the section is entered");
        }
    });
    let (third_gate, third) = stage.released(30, &story, "30 begins", looks);
    let low = holder(&stage, &story, move |_| [first_gate, second_gate, third_gate].iter().for_each(Gate::open));
    join([low, first, second, third]);
    assert_eq!(story.told(), ["low leaves", "40 begins", "30 begins", "20 begins", "low goes on"]);
}

/// An unmanaged thread beside two managed ones.
#[test]
fn an_unmanaged_thread_preempts_but_admits_no_managed_one() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (high_gate, high) = stage.released(30, &story, "high inside", |thread| {
        let _section = thread.enter().expect("the section is entered");
        assert_eq!(thread.look(), Ok(false), "it is inside a section itself");
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
fn a_thread_that_resumes_without_a_check_cannot_enter_a_second_section() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (gate, high) = stage.released(30, &story, "high inside", {
        let story = story.clone();
        move |thread| {
            story.tell("high goes on");
            let section = thread.enter().expect("the section is entered");
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
fn nested_sections_end_with_the_last() {
    let Some(stage) = Stage::set() else { return };
    let story = Story::default();
    let (gate, high) = stage.released(30, &story, "high begins", looks);
    let low = holder(&stage, &story, {
        let story = story.clone();
        move |thread| {
            let (second, third) =
                (thread.enter().expect("the section is entered"), thread.enter().expect("the section is entered"));
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
fn a_panic_leaves_the_section() {
    let Some(stage) = Stage::set() else { return };
    let (story, before) = (Story::default(), Lazy::abandoned(stage.cpu));
    let (gate, high) = stage.released(30, &story, "high begins", looks);
    let low = holder(&stage, &story, move |thread| {
        let _nested = thread.enter().expect("the section is entered");
        gate.open();
        panic!("a deliberate panic inside a section");
    });
    assert!(low.join().is_err());
    high.join().expect("high");
    assert_eq!(story.told(), ["high begins"]);
    assert!(Cpu::get(stage.cpu).expect("the CPU is allowed").word.is_free());
    assert_eq!(Lazy::abandoned(stage.cpu), before, "the panic left the section");
}

#[test]
fn sleeping_inside_a_section_is_refused() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        let release = Instant::now() + Duration::from_millis(2);
        {
            let _section = thread.enter().expect("the section is entered");
            assert_eq!(thread.sleep_until(release), Err(SectionError::Inside));
        }
        assert_eq!(thread.sleep_until(release), Ok(false));
        assert!(Instant::now() >= release);
        assert_eq!(thread.sleep_until(release), Ok(false), "the release has already passed");
    });
    thread.join().expect("the thread does not panic");
}

#[test]
fn invalid_handles_are_refused() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        for cpu in [1_023, 1_024, usize::MAX] {
            assert!(matches!(Lazy::manage(cpu), Err(SectionError::NoCpu { .. })), "{cpu}");
        }
        let first = Lazy::manage(cpu).expect("the CPU is allowed");
        assert_eq!(Lazy::manage(cpu).err(), Some(SectionError::SecondHandle));
        drop(first);
        assert!(Lazy::manage(cpu).is_ok());
    });
    thread.join().expect("the thread does not panic");
}

/// How a thread can end without leaving its section.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// The guard is forgotten.
    Guard,
    /// Guard and handle are forgotten.
    Both,
    /// The thread ends by the raw system call, without destructors.
    AtOnce,
}

/// A thread of `level` that calls `inside` in a section that it never leaves. Returns when the thread has ended.
fn dies_inside(stage: &Stage, level: u8, end: End, inside: impl FnOnce() + Send + 'static) {
    let (cpu, tid) = (stage.cpu, Arc::new(AtomicU32::new(0)));
    let thread = stage.thread(level, {
        let tid = Arc::clone(&tid);
        move || {
            tid.store(sched::gettid().0, Ordering::Release);
            let thread = Lazy::manage(cpu).expect("the CPU is allowed");
            std::mem::forget(thread.enter().expect("the section is entered"));
            inside();
            match end {
                End::Guard => {}
                End::Both => std::mem::forget(thread),
                End::AtOnce => exit_at_once(),
            }
        }
    });
    if end != End::AtOnce {
        return thread.join().expect("the thread returns normally");
    }
    // Joining would panic: std misses the result of a thread that ended by the raw system call.
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
fn a_thread_that_ends_inside_does_not_block_later_threads() {
    let Some(stage) = Stage::set() else { return };
    for end in [End::Guard, End::Both, End::AtOnce] {
        for enters in [true, false] {
            let before = Lazy::abandoned(stage.cpu);
            dies_inside(&stage, 10, end, || {});
            let cpu = stage.cpu;
            let word = &Cpu::get(cpu).expect("the CPU is allowed").word;
            if end == End::AtOnce {
                // A lock attempt that does not take over an ended owner's word fails.
                assert_eq!(word.lock(sched::gettid()), Err(PiError::OwnerDied));
            } else {
                assert!(word.is_free(), "{end:?}: the section ended with the thread");
            }
            let next = stage.thread(20, move || {
                // This also checks the word.
                let thread = Lazy::manage(cpu).expect("the CPU is allowed");
                if enters {
                    drop(thread.enter().expect("the section is entered"));
                }
            });
            join([next]);
            assert!(word.is_free(), "{end:?}");
            assert_eq!(Lazy::abandoned(cpu), before + 1, "{end:?}");
        }
    }
}

#[test]
fn a_thread_that_ends_inside_releases_its_waiters() {
    let Some(stage) = Stage::set() else { return };
    for end in [End::Guard, End::Both, End::AtOnce] {
        let (story, before) = (Story::default(), Lazy::abandoned(stage.cpu));
        let (high_gate, high) = stage.released(30, &story, "high begins", |thread| {
            looks(thread);
            drop(thread.enter().expect("the section is entered"));
        });
        let (medium_gate, medium) = stage.released(20, &story, "medium inside", |thread| {
            drop(thread.enter().expect("the section is entered"));
        });
        dies_inside(&stage, 10, end, move || {
            medium_gate.open();
            high_gate.open();
        });
        join([high, medium]);
        assert_eq!(story.told(), ["high begins", "medium inside"], "{end:?}");
        assert!(Cpu::get(stage.cpu).expect("the CPU is allowed").word.is_free(), "{end:?}");
        assert_eq!(Lazy::abandoned(stage.cpu), before + 1, "{end:?}");
    }
}

/// The kernel gave the word to a waiter, which a third thread keeps from executing for `kept_ms`. Meanwhile a more
/// urgent thread checks the word. Returns the result of that check.
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
        // Lets the heir begin to wait.
        while !Cpu::get(cpu).expect("the CPU is allowed").word.has_waiters() {
            clock::sleep_until(clock::now_ns() + MS).expect("the sleep succeeds");
        }
        between_gate.open();
    });
    join([heir, high, between]);
    assert!(Cpu::get(cpu).expect("the CPU is allowed").word.is_free());
    *answer.lock().unwrap()
}

#[test]
fn a_check_before_the_heir_executed_lets_it_execute_or_gives_up() {
    let Some(stage) = Stage::set() else { return };
    let before = Lazy::abandoned(stage.cpu);
    assert_eq!(asks_before_the_heir(&stage, 2), Ok(true));
    assert_eq!(asks_before_the_heir(&stage, 100), Err(SectionError::OwnerDied));
    assert_eq!(Lazy::abandoned(stage.cpu), before + 2);
}

/// A thread that ended inside had the same id as this one.
#[test]
fn a_reused_thread_id_inherits_the_section() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        let (me, before, word) =
            (sched::gettid(), Lazy::abandoned(cpu), &Cpu::get(cpu).expect("the CPU is allowed").word);
        word.lock(me).expect("the word is free");
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        assert!(word.is_free());
        word.lock(me).expect("the word is free");
        drop(thread.enter().expect("the section is entered"));
        assert!(word.is_free());
        assert_eq!(Lazy::abandoned(cpu), before + 2);
    });
    thread.join().expect("the thread does not panic");
}

/// The observations of two more urgent threads of the sections of a third.
///
/// ORDERING: Relaxed throughout: all execute on one processor, and the counts are read after the threads are joined.
#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    inside: AtomicU32,
    sections: AtomicU64,
    releases: AtomicU64,
    waits: AtomicU64,
    violations: AtomicU64,
}

/// Half a second of releases every 71 and 97 µs, beside a thread that is inside a section most of the time.
fn releases_beside_sections(stage: &Stage, looks: bool) -> Arc<Seen> {
    let (cpu, seen) = (stage.cpu, Arc::new(Seen::default()));
    let count = |counter: &AtomicU64| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let highs = [(30, 71), (50, 97)].map(|(level, period_us)| {
        let seen = Arc::clone(&seen);
        stage.thread(level, move || {
            let thread = Lazy::manage(cpu).expect("the CPU is allowed");
            let mut release = Instant::now();
            while !seen.is_over.load(Ordering::Relaxed) {
                release += Duration::from_micros(period_us);
                if looks {
                    if thread.sleep_until(release).expect("the sleep and the check succeed") {
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
                    // Its own section also excludes those of the others.
                    let _section = thread.enter().expect("the section is entered");
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
            let thread = Lazy::manage(cpu).expect("the CPU is allowed");
            let end = Instant::now() + Duration::from_millis(500);
            while Instant::now() < end {
                let _section = thread.enter().expect("the section is entered");
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
    assert!(seen.waits.load(Ordering::Relaxed) > 100, "too few releases waited to test anything");
    assert!(Cpu::get(stage.cpu).expect("the CPU is allowed").word.is_free());
}

/// The control for the test above: releases that do not check meet sections.
#[test]
fn releases_that_do_not_check_meet_sections() {
    let Some(stage) = Stage::set() else { return };
    let seen = releases_beside_sections(&stage, false);
    assert!(seen.violations.load(Ordering::Relaxed) > 100);
}

#[test]
fn a_child_process_has_words_of_its_own() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let inside = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        let mut section = Some(thread.enter().expect("the section is entered"));
        let word = &Cpu::get(cpu).expect("the CPU is allowed").word;
        // The child was forked inside a section but is outside, and its copy of the section returns an error.
        let held = holds_in_child(|| {
            let free = word.is_free();
            free && section.take().is_some_and(|section| section.leave().is_err())
                && thread.enter().is_ok()
                && word.is_free()
        });
        let still = word.is_owned_by(sched::gettid());
        (held, still)
    });
    assert_eq!(inside.join().expect("the thread does not panic"), (true, true));
    let outside = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        holds_in_child(|| {
            let _section = thread.enter().expect("the section is entered");
            Cpu::get(cpu).expect("the CPU is allowed").word.is_owned_by(sched::gettid())
        })
    });
    assert!(outside.join().expect("the thread does not panic"), "the word carries the child's id");
}

/// A managed thread of level 10 holds a mutex of ceiling 20 while `others` are released. Returns the order of events.
fn beside_a_ceiling(others: &'static [(u8, &'static str)], before: fn(&Lazy)) -> Option<Vec<&'static str>> {
    let stage = Stage::set()?;
    let story = Story::default();
    let threads: Vec<_> = others.iter().map(|&(level, name)| stage.released(level, &story, name, before)).collect();
    let (gates, threads): (Vec<Gate>, Vec<JoinHandle<()>>) = threads.into_iter().unzip();
    let cpu = stage.cpu;
    let holder = stage.thread(10, {
        let story = story.clone();
        move || {
            let _thread = Lazy::manage(cpu).expect("the CPU is allowed");
            let mutex = Mutex::builder().protocol(MutexProtocol::Protect(20)).build(());
            {
                let _guard = mutex.lock().expect("the mutex is free");
                assert_eq!(level_of_me(), 10, "the ceiling is marked, the level unchanged");
                gates.iter().for_each(Gate::open);
                story.tell("held");
            }
            story.tell("unlocked");
        }
    });
    holder.join().expect("the holder's body holds");
    threads.into_iter().for_each(|thread| thread.join().expect("the thread's body holds"));
    Some(story.told())
}

#[test]
fn managed_threads_up_to_the_ceiling_do_not_preempt_its_holder() {
    let Some(told) = beside_a_ceiling(&[(15, "below"), (20, "at"), (25, "above")], |thread| {
        thread.look().expect("the check succeeds");
    }) else {
        return;
    };
    assert_eq!(told, ["above", "held", "at", "below", "unlocked"]);
    // The control: threads that do not check preempt the holder.
    let told = beside_a_ceiling(&[(15, "below"), (20, "at")], |_| {});
    assert_eq!(told, Some(vec!["below", "at", "held", "unlocked"]));
}

#[test]
fn ceilings_of_managed_threads_nest_and_are_enforced() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let task = stage.thread(10, move || {
        let thread = Lazy::manage(cpu).expect("the CPU is allowed");
        let of = |ceiling| Mutex::builder().protocol(MutexProtocol::Protect(ceiling)).build(());
        let (low, same, high) = (of(20), of(20), of(30));
        let held =
            |level| Cpu::get(cpu).expect("the CPU is allowed").above(level).filter(|word| !word.is_free()).count();
        let (first, second) = (low.lock().expect("the mutex is free"), same.lock().expect("the mutex is free"));
        assert_eq!((held(20), held(21)), (1, 0), "one ceiling, one word");
        let third = high.lock().expect("the mutex is free");
        assert_eq!((held(20), held(30)), (2, 1));
        drop(first);
        assert_eq!(held(20), 2, "the other mutex of the same ceiling is still held");
        drop((second, third));
        assert_eq!(held(1), 0);
        assert!(matches!(of(9).lock(), Err(LockError::PriorityAboveCeiling)));
        assert_eq!((held(1), thread.look()), (0, Ok(false)));
        drop(thread);
        // The thread is not managed any more, so it rises.
        let guard = low.lock().expect("the mutex is free");
        assert_eq!((level_of_me(), held(1)), (20, 0));
        drop(guard);
        assert_eq!(level_of_me(), 10);
    });
    task.join().expect("the body holds");
}
