//! Sections of three priorities under every schedule of one processor.

use super::mutants::{Blind, CheckThenStore, Unchecked};
use super::nested::{Explored, SCHEDULES_MAX, Task, explore};
use crate::mutation::Mutation;
use crate::{Commit, Ics, Locked, Stop, Var, Word};
use core::cell::Cell;
use std::rc::Rc;

const LEFT: Var<u64> = Var::new(0);
const RIGHT: Var<u64> = Var::new(1);
const THIRD: Var<u64> = Var::new(2);

/// A section adds to the two words that are always equal, or to the third word.
#[derive(Clone, Copy, Debug)]
enum Adds {
    Both(u64),
    Third(u64),
}
use Adds::{Both, Third};

/// The sections of each task, the least urgent first.
type Script = [&'static [Adds]];

/// The initial value of the words.
const FIRST: u64 = 10;
/// An addend that restores the former value, so that equal values do not mean equal states.
const BACK: u64 = u64::MAX;

/// The value of the two equal words, and that of the third one.
type Sums = (u64, u64);

fn added((both, third): Sums, adds: Adds) -> Sums {
    match adds {
        Both(add) => (both.wrapping_add(add), third),
        Third(add) => (both, third.wrapping_add(add)),
    }
}

type Object<C> = Ics<[Word; 3], 3, 2, C>;

/// Executes a section with the writer of this number. Returns the sums after it.
fn section<C: Commit>(ics: &Object<C>, writer: usize, adds: Adds) -> Sums {
    // SAFETY: each task has its own number. A successor takes over the number of a killed task when all tasks have
    // ended.
    #[allow(unsafe_code)]
    let mut writer = unsafe { ics.shared_writer(writer) }.expect("three writers");
    let done = writer.update(|section| {
        let left = section.read(LEFT)?;
        let third = section.read(THIRD)?;
        let right = section.read(RIGHT)?;
        assert_eq!(left, right, "the state never existed");
        let (both, third) = added((left, third), adds);
        match adds {
            Both(_) => {
                section.write(LEFT, both)?;
                section.write(RIGHT, both)?;
                assert_eq!(section.read(LEFT), Ok(both));
            }
            Third(_) => section.write(THIRD, third)?,
        }
        Ok((both, third))
    });
    done.expect("a section or a query")
}

fn sums<C: Commit>(ics: &Object<C>) -> Sums {
    let read = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?, view.read(THIRD)?)));
    let (left, right, third) = read.expect("a section or a query");
    assert_eq!(left, right, "the state never existed");
    (left, third)
}

/// Executes a script in all schedules, and at most in `most`, and checks that each section took effect exactly once.
///
/// The section of a killed task took effect once or not at all, and does no harm to others.
fn hold<C: Commit + 'static>(commit: fn() -> C, script: &Script, kills: usize, most: usize) -> Explored {
    explore(kills, 1, most, || {
        let ics = Rc::new(Object::with([Word::new(FIRST), Word::new(FIRST), Word::new(FIRST)], commit()));
        let expected = Rc::new(Cell::new((FIRST, FIRST)));
        let begun: Rc<Cell<[Option<Adds>; 3]>> = Rc::new(Cell::new([None; 3]));
        let task = |(writer, adds): (usize, &&'static [Adds])| {
            let (ics, expected, begun) = (Rc::clone(&ics), Rc::clone(&expected), Rc::clone(&begun));
            let (next, adds) = (Cell::new(0), *adds);
            let change = move |to: Option<Adds>| {
                let mut all = begun.get();
                all[writer] = to;
                begun.set(all);
            };
            let comes = move || {
                let adds = adds[next.replace(next.get() + 1)];
                change(Some(adds));
                section(&ics, writer, adds);
                change(None);
                expected.set(added(expected.get(), adds));
            };
            Rc::new(comes) as Task
        };
        let tasks = script.iter().enumerate().map(|(writer, adds)| (adds.len(), task((writer, adds)))).collect();
        let check = move |dead: &[bool]| {
            let mut may_be = std::vec![expected.get()];
            for writer in (0..dead.len()).filter(|&writer| dead[writer]) {
                if let Some(adds) = begun.get()[writer] {
                    may_be.push(added(may_be[0], adds));
                }
            }
            let mut now = sums(&ics);
            let mut holds = may_be.contains(&now);
            // Successors take over the writers and continue.
            for (writer, adds) in [0, 1, 2, 2, 1, 0].into_iter().zip([Both(1), Third(1)].into_iter().cycle()) {
                now = added(now, adds);
                holds &= section(&ics, writer, adds) == now && sums(&ics) == now;
            }
            holds
        };
        (tasks, check)
    })
}

/// The scripts that catch every mutant.
const SCRIPTS: [&Script; 3] = [
    &[&[Both(1), Third(1)], &[Both(BACK), Third(1), Both(2)]],
    &[&[Both(1)], &[Both(1)], &[Both(BACK), Third(1)]],
    &[&[Third(1), Both(1)], &[Both(1)], &[Third(BACK)]],
];

#[test]
fn each_section_takes_effect_exactly_once() {
    for script in SCRIPTS {
        let explored = hold(|| Locked, script, 0, SCHEDULES_MAX);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

#[test]
#[ignore = "takes minutes: cargo test --release -p lockwright-ics search -- --ignored --nocapture"]
fn each_section_takes_effect_exactly_once_in_longer_scripts() {
    for script in
        [&[&[Both(1), Third(1)][..], &[Both(1)], &[Both(BACK), Third(1)]] as &Script, &[&[Both(1); 3], &[Third(1); 3]]]
    {
        let explored = hold(|| Locked, script, 0, SCHEDULES_MAX);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
    let explored = hold(|| Locked, &[&[Both(1)], &[Third(1)], &[Both(BACK)]], 1, SCHEDULES_MAX);
    std::println!("one killed: {} schedules", explored.schedules);
    assert_eq!(explored.wrong, 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn each_section_takes_effect_exactly_once_without_the_lock_prefix() {
    // SAFETY: a single thread executes all tasks of a search.
    #[allow(unsafe_code)]
    let uniprocessor = || unsafe { crate::Uniprocessor::new() };
    assert_eq!(hold(uniprocessor, SCRIPTS[0], 0, SCHEDULES_MAX).wrong, 0);
}

/// The scripts in which a task is killed.
const KILLED: [&Script; 3] =
    [&[&[Both(1), Third(1)], &[Both(BACK)]], &[&[Both(1), Third(1), Both(1)]], &[&[Both(1)], &[Third(1), Both(BACK)]]];

#[test]
fn a_killed_task_does_no_harm() {
    for script in KILLED {
        let explored = hold(|| Locked, script, 1, SCHEDULES_MAX);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

/// Whether one of the scripts catches a mutant.
fn shows<C: Commit + 'static>(commit: fn() -> C) -> bool {
    SCRIPTS.iter().any(|script| hold(commit, script, 0, usize::MAX).wrong > 0)
}

#[test]
fn a_blind_commit_is_caught() {
    assert!(shows(|| Blind));
}

#[cfg_attr(miri, ignore = "catches a mutant only after many schedules")]
#[test]
fn a_helper_that_checks_and_then_stores_is_caught() {
    assert!(shows(|| CheckThenStore));
}

#[cfg_attr(miri, ignore = "catches a mutant only after many schedules")]
#[test]
fn a_helper_that_checks_nothing_is_caught() {
    assert!(shows(|| Unchecked));
}

#[cfg_attr(miri, ignore = "catches a mutant only after many schedules")]
#[test]
fn a_section_without_validation_is_caught() {
    assert!(Mutation::NoValidation.during(|| shows(|| Locked)));
}

#[test]
fn each_mutation_of_settling_is_caught() {
    for mutation in [Mutation::LateNote, Mutation::EarlySettle] {
        let wrong = || hold(|| Locked, KILLED[1], 1, usize::MAX).wrong > 0;
        assert!(mutation.during(wrong), "{mutation:?} is not caught");
    }
}

/// A section that ends by itself leaves another head, and a helper that it preempted stores nothing more.
/// A killed one leaves the head as it was, and the helper continues with what the section wrote into the page.
#[cfg_attr(miri, ignore = "catches a mutant only after many schedules")]
#[test]
fn a_writer_of_the_posted_page_is_caught() {
    assert!(Mutation::OnePage.during(|| hold(|| Locked, KILLED[2], 1, usize::MAX).wrong > 0));
}

/// A section that is cancelled or panics leaves nothing behind.
#[test]
fn a_section_that_stops_changes_nothing() {
    let ics = Ics::<_, 2, 1>::new([Word::new(1), Word::new(2)]);
    let mut writer = ics.writer().expect("two writers");
    let cancelled: Result<(), Stop> = writer.update(|section| {
        section.write(LEFT, 7)?;
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(Stop::Cancelled));
    assert_eq!(writer.update(|section| section.write(LEFT, 7).and(section.write(RIGHT, 7))), Err(Stop::Full));
    assert_eq!(writer.update(|section| section.write(Var::<u64>::new(2), 7)), Err(Stop::NoSuchWord));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        writer.update(|section| -> Result<(), Stop> {
            section.write(LEFT, 7)?;
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))), Ok((1, 2)));
    assert_eq!(writer.update(|section| section.write(LEFT, 3)), Ok(()));
    assert_eq!(ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))), Ok((3, 2)));
    assert_eq!((writer.stats().commits, writer.stats().entries), (1, 5));
}

/// A writer that is claimed when it is reserved does not become free.
#[test]
fn a_reserved_writer_is_not_claimed() {
    let ics = Ics::<_, 2, 1>::new([Word::new(0)]);
    let writer = ics.writer().expect("two writers");
    ics.reserve(0);
    assert_eq!(writer.index(), 0);
    drop(writer);
    let other = ics.writer().expect("the other writer");
    assert_eq!(other.index(), 1);
    // SAFETY: no other user of this number is left.
    #[allow(unsafe_code)]
    let shared = unsafe { ics.shared_writer(0) };
    assert!(shared.is_some() && ics.writer().is_none());
    drop(other);
    assert_eq!(ics.writer().map(|writer| writer.index()), Some(1));
}

/// A body may ignore a conflict. Its result of two states is not returned, by a query or by a section without writes.
#[test]
fn a_body_that_ignores_a_conflict_restarts() {
    let ics = Ics::<_, 3, 2>::new([Word::new(0), Word::new(0)]);
    let (mut reads, mut writes) = (ics.writer().expect("three writers"), ics.writer().expect("three writers"));
    let mut commits = |is_first: bool| {
        let both =
            |section: &mut crate::Transaction<'_, _, 3, 2, _>| section.write(LEFT, 1).and(section.write(RIGHT, 1));
        assert_eq!(if is_first { writes.update(both) } else { Ok(()) }, Ok(()));
    };
    let mut attempts = 0;
    let read = ics.query(|view| {
        attempts += 1;
        let left = view.read(LEFT)?;
        commits(attempts == 1);
        Ok((left, view.read(RIGHT).unwrap_or(7)))
    });
    assert_eq!((read, attempts), (Ok((1, 1)), 2));
    attempts = 0;
    let read = reads.update(|section| {
        attempts += 1;
        let left = section.read(LEFT)?;
        commits(attempts == 1);
        Ok((left, section.read(RIGHT).unwrap_or(7)))
    });
    assert_eq!((read, attempts), (Ok((1, 1)), 2));
    let stats = reads.stats();
    assert_eq!((stats.entries, stats.restarts, stats.conflicts, stats.commits), (2, 1, 0, 0));
}
