//! Sections of three priorities under every schedule of one processor.

use super::broken::{Blind, LooksFirst};
use super::nested::{Explored, Task, explore};
use crate::left_out::{Part, leaving_out};
use crate::{Commit, Ics, Locked, Stop, Var, Word};
use core::cell::Cell;
use std::rc::Rc;

const LEFT: Var<u64> = Var::new(0);
const RIGHT: Var<u64> = Var::new(1);
const THIRD: Var<u64> = Var::new(2);

/// A section: what it adds to the two words that are always the same, or else to the third.
#[derive(Clone, Copy, Debug)]
enum Adds {
    Both(u64),
    Third(u64),
}
use Adds::{Both, Third};

/// The sections of each task, the least urgent first.
type Script = [&'static [Adds]];

/// What the words have at first: so that a commit that adds and another that takes away lead back.
const FIRST: u64 = 10;
/// One that leads back to the value before, so that a value alone says nothing.
const BACK: u64 = u64::MAX;

/// Two words that are the same, and a third.
type Sums = (u64, u64);

fn added((both, third): Sums, adds: Adds) -> Sums {
    match adds {
        Both(add) => (both.wrapping_add(add), third),
        Third(add) => (both, third.wrapping_add(add)),
    }
}

type Object<C> = Ics<[Word; 3], 3, 2, C>;

/// As the slot of this number. Says what the sums are then.
fn section<C: Commit>(ics: &Object<C>, slot: usize, adds: Adds) -> Sums {
    // SAFETY: each task has a number of its own, and takes over from the dead when all have ended.
    #[allow(unsafe_code)]
    let mut slot = unsafe { ics.shared_slot(slot) }.expect("three slots");
    let done = slot.update(|section| {
        let left = section.read(LEFT)?;
        let third = section.read(THIRD)?;
        let right = section.read(RIGHT)?;
        assert_eq!(left, right, "a state that never was");
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
    done.expect("nothing but conflicts stops it")
}

fn sums<C: Commit>(ics: &Object<C>) -> Sums {
    let read = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?, view.read(THIRD)?)));
    let (left, right, third) = read.expect("nothing but conflicts stops it");
    assert_eq!(left, right, "a state that never was");
    (left, third)
}

/// Executes a script in all schedules: what was added is there, once. Whoever is killed has added or not, and harms nobody.
fn hold<C: Commit + 'static>(commit: fn() -> C, script: &Script, kills: usize, enough: usize) -> Explored {
    explore(kills, enough, || {
        let ics = Rc::new(Object::with([Word::new(FIRST), Word::new(FIRST), Word::new(FIRST)], commit()));
        let expected = Rc::new(Cell::new((FIRST, FIRST)));
        let begun: Rc<Cell<[Option<Adds>; 3]>> = Rc::new(Cell::new([None; 3]));
        let task = |(slot, adds): (usize, &&'static [Adds])| {
            let (ics, expected, begun) = (Rc::clone(&ics), Rc::clone(&expected), Rc::clone(&begun));
            let (next, adds) = (Cell::new(0), *adds);
            let change = move |to: Option<Adds>| {
                let mut all = begun.get();
                all[slot] = to;
                begun.set(all);
            };
            let comes = move || {
                let adds = adds[next.replace(next.get() + 1)];
                change(Some(adds));
                section(&ics, slot, adds);
                change(None);
                expected.set(added(expected.get(), adds));
            };
            Rc::new(comes) as Task
        };
        let tasks = script.iter().enumerate().map(|(slot, adds)| (adds.len(), task((slot, adds)))).collect();
        let check = move |dead: &[bool]| {
            let mut may_be = std::vec![expected.get()];
            for slot in (0..dead.len()).filter(|&slot| dead[slot]) {
                if let Some(adds) = begun.get()[slot] {
                    may_be.push(added(may_be[0], adds));
                }
            }
            let mut now = sums(&ics);
            let mut holds = may_be.contains(&now);
            // Whoever takes over the slots goes on with them.
            for (slot, adds) in [0, 1, 2, 2, 1, 0].into_iter().zip([Both(1), Third(1)].into_iter().cycle()) {
                now = added(now, adds);
                holds &= section(&ics, slot, adds) == now && sums(&ics) == now;
            }
            holds
        };
        (tasks, check)
    })
}

/// What every part is searched by.
const SCRIPTS: [&Script; 3] = [
    &[&[Both(1), Third(1)], &[Both(BACK), Third(1), Both(2)]],
    &[&[Both(1)], &[Both(1)], &[Both(BACK), Third(1)]],
    &[&[Third(1), Both(1)], &[Both(1)], &[Third(BACK)]],
];

#[test]
fn nothing_is_lost_nor_done_twice() {
    for script in SCRIPTS {
        let explored = hold(|| Locked, script, 0, 1);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p lockwright-ics search -- --ignored --nocapture"]
fn nor_in_longer_scripts() {
    for script in
        [&[&[Both(1), Third(1)][..], &[Both(1)], &[Both(BACK), Third(1)]] as &Script, &[&[Both(1); 3], &[Third(1); 3]]]
    {
        let explored = hold(|| Locked, script, 0, 1);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
    let explored = hold(|| Locked, &[&[Both(1)], &[Third(1)], &[Both(BACK)]], 1, 1);
    std::println!("one killed: {} schedules", explored.schedules);
    assert_eq!(explored.wrong, 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn nor_without_the_lock_prefix() {
    // SAFETY: the tasks of a search execute on one thread.
    #[allow(unsafe_code)]
    let plain = || unsafe { crate::Plain::new() };
    assert_eq!(hold(plain, SCRIPTS[0], 0, 1).wrong, 0);
}

/// Somebody is killed in these.
const KILLED: [&Script; 2] = [&[&[Both(1), Third(1)], &[Both(BACK)]], &[&[Both(1), Third(1), Both(1)]]];

#[test]
fn who_is_killed_harms_nobody() {
    for script in KILLED {
        let explored = hold(|| Locked, script, 1, 1);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

/// Whether one of the scripts shows it.
fn shows<C: Commit + 'static>(commit: fn() -> C) -> bool {
    SCRIPTS.iter().any(|script| hold(commit, script, 0, 1).wrong > 0)
}

#[test]
fn a_commit_that_looks_at_no_version_loses_updates() {
    assert!(shows(|| Blind));
}

#[test]
fn a_late_helper_that_only_looks_first_undoes_what_came_after() {
    assert!(shows(|| LooksFirst));
}

#[test]
fn each_part_is_needed() {
    for part in [Part::StaleHelper, Part::Validation, Part::SecondPage] {
        assert!(leaving_out(Some(part), || shows(|| Locked)), "{part:?} left out goes unnoticed");
    }
}

#[test]
fn what_is_pending_is_noted_before_and_forgotten_after() {
    for part in [Part::NoteBefore, Part::SettleBefore] {
        let wrong = || KILLED.iter().any(|script| hold(|| Locked, script, 1, 1).wrong > 0);
        assert!(leaving_out(Some(part), wrong), "{part:?} left out goes unnoticed");
    }
}

/// Cancelled or panicking, a section leaves nothing behind.
#[test]
fn who_gives_up_changes_nothing() {
    let ics = Ics::<_, 2, 1>::new([Word::new(1), Word::new(2)]);
    let mut slot = ics.slot().expect("two slots");
    let cancelled: Result<(), Stop> = slot.update(|section| {
        section.write(LEFT, 7)?;
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(Stop::Cancelled));
    assert_eq!(slot.update(|section| section.write(LEFT, 7).and(section.write(RIGHT, 7))), Err(Stop::Full));
    assert_eq!(slot.update(|section| section.write(Var::<u64>::new(2), 7)), Err(Stop::NoSuchWord));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        slot.update(|section| -> Result<(), Stop> {
            section.write(LEFT, 7)?;
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))), Ok((1, 2)));
    assert_eq!(slot.update(|section| section.write(LEFT, 3)), Ok(()));
    assert_eq!(ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))), Ok((3, 2)));
    assert_eq!((slot.stats().commits, slot.stats().entries), (1, 5));
}

/// A slot that somebody has when it is reserved is given to nobody after it.
#[test]
fn what_is_reserved_is_given_to_nobody() {
    let ics = Ics::<_, 2, 1>::new([Word::new(0)]);
    let slot = ics.slot().expect("two slots");
    ics.reserve(0);
    assert_eq!(slot.index(), 0);
    drop(slot);
    let other = ics.slot().expect("the other one");
    assert_eq!(other.index(), 1);
    // SAFETY: nobody else uses it.
    #[allow(unsafe_code)]
    let shared = unsafe { ics.shared_slot(0) };
    assert!(shared.is_some() && ics.slot().is_none());
    drop(other);
    assert_eq!(ics.slot().map(|slot| slot.index()), Some(1));
}

/// A body that takes a conflict for a value: what it makes of two states is not a result, neither of a query nor of a section that writes nothing.
#[test]
fn a_conflict_that_a_body_swallows_is_none_of_its_results() {
    let ics = Ics::<_, 3, 2>::new([Word::new(0), Word::new(0)]);
    let (mut reads, mut writes) = (ics.slot().expect("three slots"), ics.slot().expect("three slots"));
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
