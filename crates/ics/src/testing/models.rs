//! Sections on the atomics of a model.
//!
//! Loom explores all interleavings of two threads with a limited number of preemptions, in the memory model of the
//! language.
//! Shuttle samples interleavings of three threads.

use super::mutants::{Blind, CheckThenStore};
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

fn add_to_both<C: Commit>(ics: &Object<C>, writer: usize, add: u64) {
    // SAFETY: each thread has its own number.
    #[allow(unsafe_code)]
    let mut writer = unsafe { ics.shared_writer(writer) }.expect("three writers");
    let done = writer.update(|section| {
        let left = section.read(LEFT)?;
        let right = section.read(RIGHT)?;
        assert_eq!(left, right, "the state never existed");
        section.write(LEFT, left.wrapping_add(add))?;
        section.write(RIGHT, right.wrapping_add(add))
    });
    assert_eq!(done, Ok(()));
}

fn add_to_third<C: Commit>(ics: &Object<C>, writer: usize, add: u64) {
    // SAFETY: each thread has its own number.
    #[allow(unsafe_code)]
    let mut writer = unsafe { ics.shared_writer(writer) }.expect("three writers");
    let done = writer.update(|section| {
        let third = section.read(THIRD)?;
        section.write(THIRD, third + add)
    });
    assert_eq!(done, Ok(()));
}

fn sums<C: Commit>(ics: &Object<C>) -> (u64, u64) {
    let read = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?, view.read(THIRD)?)));
    let (left, right, third) = read.expect("a query");
    assert_eq!(left, right, "the state never existed");
    (left, third)
}

fn object<C: Commit>(commit: C) -> Arc<Object<C>> {
    Arc::new(Object::with([Word::new(10), Word::new(10), Word::new(0)], commit))
}

/// One thread finds a posted commit of the other thread, which continues.
fn two<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    // This commit is posted and not performed.
    add_to_both(&ics, 0, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_both(&ics, 1, u64::MAX);
            add_to_third(&ics, 1, 1);
        })
    };
    add_to_third(&ics, 0, 1);
    other.join().expect("the thread ends");
    assert_eq!(sums(&ics), (10, 2));
}

/// One thread only reads, and the other one continues.
fn one_reads<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
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
    other.join().expect("the thread ends");
    assert_eq!(sums(&ics), (12, 1));
}

fn three<C: Commit + Send + Sync + 'static>(commit: fn() -> C) {
    let ics = object(commit());
    let others: Vec<_> = (1..3)
        .map(|writer| {
            let ics = Arc::clone(&ics);
            thread::spawn(move || {
                for round in 0..3 {
                    add_to_both(&ics, writer, if round == 1 { u64::MAX } else { 1 });
                    add_to_third(&ics, writer, 1);
                }
            })
        })
        .collect();
    for _ in 0..3 {
        add_to_third(&ics, 0, 1);
        add_to_both(&ics, 0, 2);
        sums(&ics);
    }
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    assert_eq!(sums(&ics), (10 + 6 + 2, 9));
}

/// Posts without an order.
struct Unordered;

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl Commit for Unordered {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        head.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        Locked.perform(head, seen, word, old, new);
    }
}

/// Whether a check fails. A failure at a limit of the model does not count.
fn fails(work: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    let Err(why) = std::panic::catch_unwind(work) else { return false };
    let text = why.downcast_ref::<std::string::String>().map(std::string::String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(!text.contains("exceeded"), "the model reached its limit: {text}");
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
    explore(|| one_reads(|| Locked));
}

#[cfg(lockwright_shuttle)]
#[test]
fn three_threads() {
    explore(|| three(|| Locked));
}

#[test]
fn a_blind_commit_is_caught() {
    assert!(fails(|| explore(|| two(|| Blind))));
}

#[test]
fn a_helper_that_checks_and_then_stores_is_caught() {
    #[cfg(lockwright_loom)]
    assert!(fails(|| explore(|| two(|| CheckThenStore))));
    #[cfg(lockwright_shuttle)]
    assert!(fails(|| explore(|| three(|| CheckThenStore))));
}

/// The memory of shuttle is sequentially consistent.
#[cfg(lockwright_loom)]
#[test]
fn an_unordered_commit_is_caught() {
    assert!(fails(|| explore(|| two(|| Unordered))) || fails(|| explore(|| one_reads(|| Unordered))));
}

/// One thread reads while the other one commits twice, so that places are rewritten.
#[cfg(lockwright_loom)]
fn one_reads_long() {
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
    other.join().expect("the thread ends");
    assert_eq!(sums(&ics), (14, 0));
}

#[cfg(lockwright_loom)]
#[test]
fn a_query_and_a_writer_that_continues() {
    explore(one_reads_long);
}

/// One thread finds a record and helps. Its owner continues until it rewrites that page, and then cancels.
#[cfg(lockwright_loom)]
fn one_helps_long() {
    let ics = object(Locked);
    add_to_both(&ics, 1, 1);
    let other = {
        let ics = Arc::clone(&ics);
        thread::spawn(move || {
            add_to_both(&ics, 1, 1);
            // SAFETY: each thread has its own number.
            #[allow(unsafe_code)]
            let mut writer = unsafe { ics.shared_writer(1) }.expect("three writers");
            let cancelled: Result<(), _> = writer.attempt(|section| {
                section.write(THIRD, 99_u64)?;
                Err(crate::Stop::Cancelled)
            });
            assert_eq!(cancelled, Err(crate::Stop::Cancelled));
        })
    };
    let (both, third) = sums(&ics);
    assert!((11..=12).contains(&both) && third == 0, "{both} {third}");
    other.join().expect("the thread ends");
    assert_eq!(sums(&ics), (12, 0));
}

#[cfg(lockwright_loom)]
#[test]
fn a_helper_and_an_owner_that_continues() {
    explore(one_helps_long);
}

/// Each fence is needed: without one of them a check fails.
#[cfg(lockwright_loom)]
#[test]
fn each_fence_is_needed() {
    use crate::sync::fences::{sites, without};

    let checks: [fn(); 2] = [one_reads_long, one_helps_long];
    let sites = sites(|| checks.into_iter().for_each(explore));
    assert_eq!(sites.len(), 3, "one of a writer, one of a reader, and one of a helper");
    for site in sites {
        let is_caught = checks.into_iter().any(|check| without(site, || fails(move || explore(check))));
        assert!(is_caught, "the mutant without the fence at {site} is not caught");
    }
}
