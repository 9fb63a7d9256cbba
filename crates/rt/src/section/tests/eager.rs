//! The levels that eager sections set in the kernel, and the threads that they hold off.

use super::*;
use crate::levels::{SECTION_LEVEL, TASK_LEVELS_MAX};
use crate::process::holds_in_child;
use crate::section::SectionError;

const INSIDE: i32 = SECTION_LEVEL as i32;

/// Runs `body` on a SCHED_FIFO thread of level 10.
fn as_task(body: impl FnOnce() + Send + 'static) {
    let Some(stage) = Stage::set() else { return };
    stage.thread(10, body).join().expect("the body holds");
}

#[test]
fn a_thread_is_raised_inside_and_only_there() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        assert_eq!(level_of_me(), 10);
        {
            let _section = thread.enter().expect("the section is entered");
            assert_eq!(level_of_me(), INSIDE);
        }
        assert_eq!(level_of_me(), 10);
        let section = thread.enter().expect("the section is entered");
        assert_eq!(section.leave(), Ok(()));
        assert_eq!(level_of_me(), 10);
    });
}

#[test]
fn nested_sections_end_with_the_last() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        let outer = thread.enter().expect("the section is entered");
        let inner = thread.enter().expect("the section is entered");
        drop(outer);
        assert_eq!(level_of_me(), INSIDE);
        drop(inner);
        assert_eq!(level_of_me(), 10);
    });
}

#[test]
fn a_panic_leaves_the_section() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _sections = (thread.enter(), thread.enter());
            panic!("a deliberate panic inside a section");
        }));
        assert!(panicked.is_err());
        assert_eq!(level_of_me(), 10);
    });
}

#[test]
fn a_forgotten_section_ends_with_the_handle() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        std::mem::forget(thread.enter());
        assert_eq!(level_of_me(), INSIDE);
        drop(thread);
        assert_eq!(level_of_me(), 10);
        assert!(Eager::new().is_ok());
    });
}

#[test]
fn an_ordinary_thread_returns_to_its_policy() {
    as_task(|| {
        let me = sched::gettid();
        sched::set_other(me).expect("always allowed");
        let before = sched::scheduling(me).expect("its own");
        let thread = Eager::new().expect("permission was checked");
        {
            let _section = thread.enter().expect("the section is entered");
            assert_eq!(sched::scheduling(me), Ok(before.fifo(SECTION_LEVEL)));
        }
        assert_eq!(sched::scheduling(me), Ok(before));
    });
}

#[test]
fn a_thread_that_is_urgent_enough_keeps_its_level() {
    as_task(|| {
        sched::set_fifo(sched::gettid(), WATCHDOG_LEVEL).expect("permission was checked");
        let thread = Eager::new().expect("permission was checked");
        drop(thread.enter().expect("the section is entered"));
        let _section = thread.enter().expect("the section is entered");
        assert_eq!(level_of_me(), i32::from(WATCHDOG_LEVEL));
    });
}

#[test]
fn sections_have_the_requested_level() {
    as_task(|| {
        for level in [0, 100] {
            assert_eq!(Eager::at(level).err(), Some(SectionError::BadLevel { level }));
        }
        let thread = Eager::at(40).expect("permission was checked");
        let _section = thread.enter().expect("the section is entered");
        assert_eq!(level_of_me(), 40);
    });
}

#[test]
fn a_second_handle_is_refused_and_the_first_one_stays() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        let _section = thread.enter().expect("the section is entered");
        assert_eq!(Eager::new().err(), Some(SectionError::SecondHandle));
        assert_eq!(level_of_me(), INSIDE);
    });
}

/// Another thread, such as a watchdog, takes SCHED_FIFO away.
#[test]
fn a_thread_that_was_demoted_inside_stays_demoted() {
    as_task(|| {
        let me = sched::gettid();
        let thread = Eager::new().expect("permission was checked");
        let section = thread.enter().expect("the section is entered");
        sched::set_other(me).expect("always allowed");
        assert_eq!(section.leave(), Ok(()));
        assert!(!sched::scheduling(me).expect("its own").has_level());
        assert!(matches!(thread.enter(), Err(SectionError::Sys(_))), "a section does not undo the change of policy");
        assert!(!sched::scheduling(me).expect("its own").has_level());
    });
}

#[test]
fn a_refused_fall_is_reported_and_retried() {
    as_task(|| {
        let mut thread = Eager::new().expect("permission was checked");
        std::mem::forget(thread.enter());
        thread.depth.set(0);
        // The kernel has no such level.
        let base = thread.base;
        thread.base.level = 100;
        let section = thread.enter().expect("raised already");
        assert!(matches!(section.leave(), Err(SectionError::Sys(_))));
        assert_eq!(level_of_me(), INSIDE);
        thread.base = base;
        drop(thread.enter());
        assert_eq!(level_of_me(), 10);
    });
}

/// A thread of level 10 releases the most urgent task possible, `inside` a section or not. Returns the order of events.
fn story_of_a_release(stage: &Stage, inside: bool) -> Vec<&'static str> {
    let story = Story::default();
    let (gate, high) = stage.unmanaged(TASK_LEVELS_MAX as u8, &story, "high begins");
    let low = stage.thread(10, {
        let story = story.clone();
        move || {
            let thread = Eager::new().expect("permission was checked");
            let section = inside.then(|| thread.enter().expect("the section is entered"));
            gate.open();
            burn(MS);
            story.tell("low leaves");
            drop(section);
            story.tell("low goes on");
        }
    });
    low.join().expect("low");
    high.join().expect("high");
    story.told()
}

#[test]
fn the_most_urgent_task_waits_for_the_section() {
    let Some(stage) = Stage::set() else { return };
    assert_eq!(story_of_a_release(&stage, true), ["low leaves", "high begins", "low goes on"]);
}

/// The control for the test above: without a section the more urgent task executes first.
#[test]
fn without_a_section_the_most_urgent_task_does_not_wait() {
    let Some(stage) = Stage::set() else { return };
    assert_eq!(story_of_a_release(&stage, false), ["high begins", "low leaves", "low goes on"]);
}

#[test]
fn a_child_process_raises_itself() {
    as_task(|| {
        let thread = Eager::new().expect("permission was checked");
        let parent = sched::gettid();
        let held = holds_in_child(|| {
            let before = (level_of_me(), level_of(parent));
            let _section = thread.enter().expect("the section is entered");
            before == (10, 10) && (level_of_me(), level_of(parent)) == (INSIDE, 10)
        });
        assert!(held, "the child rises, not its parent");
        assert_eq!(level_of_me(), 10);
        assert!(!holds_in_child(|| sched::gettid() == parent), "a child has an id of its own");
    });
}
