//! The sections on a model's atomics: all interleavings of two threads with a bound of preemptions and the memory order of the language (loom); many of three,
//! by chance (shuttle).

use super::broken::{Blind, LooksFirst};
use crate::sync::AtomicU64;
use crate::{Commit, Ics, Locked, Var, Word};
use core::sync::atomic::Ordering;
#[cfg(lockwright_loom)]
use loom::{sync::Arc, thread};
#[cfg(lockwright_shuttle)]
use shuttle::{sync::Arc, thread};
use std::vec::Vec;

const LEFT: Var<u64> = Var::new(0);
const RIGHT: Var<u64> = Var::new(1);
const THIRD: Var<u64> = Var::new(2);

type Object<C> = Ics<[Word; 3], 3, 2, C>;

fn add_to_both<C: Commit>(ics: &Object<C>, slot: usize, add: u64) {
    // SAFETY: each thread has a number of its own.
    #[allow(unsafe_code)]
    let mut slot = unsafe { ics.shared_slot(slot) }.expect("three slots");
    let done = slot.update(|section| {
        let left = section.read(LEFT)?;
        let right = section.read(RIGHT)?;
        assert_eq!(left, right, "a state that never was");
        section.write(LEFT, left.wrapping_add(add))?;
        section.write(RIGHT, right.wrapping_add(add))
    });
    assert_eq!(done, Ok(()));
}

fn add_to_third<C: Commit>(ics: &Object<C>, slot: usize, add: u64) {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    let mut slot = unsafe { ics.shared_slot(slot) }.expect("three slots");
    let done = slot.update(|section| {
        let third = section.read(THIRD)?;
        section.write(THIRD, third + add)
    });
    assert_eq!(done, Ok(()));
}

fn sums<C: Commit>(ics: &Object<C>) -> (u64, u64) {
    let read = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?, view.read(THIRD)?)));
    let (left, right, third) = read.expect("nothing but conflicts stops it");
    assert_eq!(left, right, "a state that never was");
    (left, third)
}

fn object<C: Commit>(commit: C) -> Arc<Object<C>> {
    Arc::new(Object::with([Word::new(10), Word::new(10), Word::new(0)], commit))
}

/// One finds what another has posted, and the other goes on.
fn two<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    // Something is posted and not performed.
    add_to_both(&ics, 0, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_both(&ics, 1, u64::MAX);
            add_to_third(&ics, 1, 1);
        })
    };
    add_to_third(&ics, 0, 1);
    other.join().expect("it ends");
    assert_eq!(sums(&ics), (10, 2));
}

/// One only looks, while the other goes on.
fn one_looks<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    add_to_both(&ics, 1, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_third(&ics, 1, 1);
            add_to_both(&ics, 1, 1);
        })
    };
    let (both, third) = sums(&ics);
    assert!((both, third) == (11, 0) || (both, third) == (11, 1) || (both, third) == (12, 1), "{both} {third}");
    other.join().expect("it ends");
    assert_eq!(sums(&ics), (12, 1));
}

fn three<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    let others: Vec<_> = (1..3)
        .map(|slot| {
            let ics = Arc::clone(&ics);
            thread::spawn(move || {
                for round in 0..3 {
                    add_to_both(&ics, slot, if round == 1 { u64::MAX } else { 1 });
                    add_to_third(&ics, slot, 1);
                }
            })
        })
        .collect();
    for _ in 0..3 {
        add_to_third(&ics, 0, 1);
        add_to_both(&ics, 0, 2);
        sums(&ics);
    }
    others.into_iter().for_each(|other| other.join().expect("it ends"));
    assert_eq!(sums(&ics), (10 + 6 + 2, 9));
}

/// Publishes nothing.
struct Unordered;

// SAFETY: it breaks its promise; the tests it is for must fail, on data that bears it.
#[allow(unsafe_code)]
unsafe impl Commit for Unordered {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        head.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        Locked.perform(head, seen, word, old, new);
    }
}

/// Whether a check of this file fails; a model's own limits do not count.
fn fails(work: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    let Err(why) = std::panic::catch_unwind(work) else { return false };
    let text = why.downcast_ref::<std::string::String>().map(std::string::String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(!text.contains("exceeded"), "the model gave up: {text}");
    true
}

#[cfg(lockwright_loom)]
fn explore(check: fn()) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 20_000;
    model.check(check);
}

#[cfg(lockwright_shuttle)]
fn explore(check: fn()) {
    shuttle::check_random(check, 20_000);
    shuttle::check_pct(check, 20_000, 3);
}

#[test]
fn two_threads() {
    explore(|| two(|| Locked));
}

#[test]
fn a_query_and_a_writer() {
    explore(|| one_looks(|| Locked));
}

#[cfg(lockwright_shuttle)]
#[test]
fn three_threads() {
    explore(|| three(|| Locked));
}

#[test]
fn a_commit_that_looks_at_no_version_is_caught() {
    assert!(fails(|| explore(|| two(|| Blind))));
}

#[test]
fn a_late_helper_that_only_looks_first_is_caught() {
    #[cfg(lockwright_loom)]
    assert!(fails(|| explore(|| two(|| LooksFirst))));
    #[cfg(lockwright_shuttle)]
    assert!(fails(|| explore(|| three(|| LooksFirst))));
}

/// Shuttle's memory is sequentially consistent.
#[cfg(lockwright_loom)]
#[test]
fn a_commit_that_publishes_nothing_is_caught() {
    assert!(fails(|| explore(|| two(|| Unordered))) || fails(|| explore(|| one_looks(|| Unordered))));
}

/// One looks while the other goes on twice: so that places are written anew.
#[cfg(lockwright_loom)]
fn one_looks_long() {
    let ics = object(Locked);
    add_to_both(&ics, 1, 1);
    add_to_both(&ics, 1, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_both(&ics, 1, 1);
            add_to_both(&ics, 1, 1);
        })
    };
    let (both, third) = sums(&ics);
    assert!((12..=14).contains(&both) && third == 0, "{both} {third}");
    other.join().expect("it ends");
    assert_eq!(sums(&ics), (14, 0));
}

#[cfg(lockwright_loom)]
#[test]
fn a_query_and_a_writer_who_goes_on() {
    explore(one_looks_long);
}

/// One finds a record and helps, while its owner goes on until it writes that page anew, and gives up then.
#[cfg(lockwright_loom)]
fn one_helps_long<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    add_to_both(&ics, 1, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_both(&ics, 1, 1);
            // SAFETY: each thread has a number of its own.
            #[allow(unsafe_code)]
            let mut slot = unsafe { ics.shared_slot(1) }.expect("three slots");
            let cancelled: Result<(), _> = slot.attempt(|section| {
                section.write(THIRD, 99_u64)?;
                Err(crate::Stop::Cancelled)
            });
            assert_eq!(cancelled, Err(crate::Stop::Cancelled));
        })
    };
    let (both, third) = sums(&ics);
    assert!((11..=12).contains(&both) && third == 0, "{both} {third}");
    other.join().expect("it ends");
    assert_eq!(sums(&ics), (12, 0));
}

#[cfg(lockwright_loom)]
#[test]
fn a_helper_and_an_owner_who_goes_on() {
    explore(|| one_helps_long(|| Locked));
}

/// Helps without a fence.
#[cfg(lockwright_loom)]
struct Unfenced;

// SAFETY: as above.
#[cfg(lockwright_loom)]
#[allow(unsafe_code)]
unsafe impl Commit for Unfenced {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        if head.load(Ordering::Relaxed) == seen {
            let _ = word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        }
    }
}

#[cfg(lockwright_loom)]
#[test]
fn a_helper_without_a_fence_is_caught() {
    assert!(fails(|| explore(|| one_helps_long(|| Unfenced))));
}

/// The fences of readers and writers, each alone.
#[cfg(lockwright_loom)]
#[test]
fn each_fence_is_needed() {
    use crate::left_out::{Part, leaving_out};
    for part in [Part::WriterFence, Part::ReaderFence] {
        assert!(leaving_out(Some(part), || fails(|| explore(one_looks_long))), "{part:?} left out goes unnoticed");
    }
}
