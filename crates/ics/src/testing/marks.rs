//! Late helpers: a thread that performs a commit marks it long after the next commit, or continues while the writer
//! is in its next section.
//!
//! A late mark needs two helpers in the middle of their work at the same time, and therefore two processors.
//! On one processor, a helper continues only after the writer's section, which `search` covers.

use crate::mutation::Mutation;
use crate::sync::{AtomicU64, fence};
use crate::{Commit, Ics, Locked, Stop, Transaction, Var, Word};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, AtomicU64 as Count, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{LocalKey, Scope, ScopedJoinHandle, scope, yield_now};
use std::time::{Duration, Instant};

const LEFT: Var<u64> = Var::new(0);
const RIGHT: Var<u64> = Var::new(1);

/// The limit of each wait, so that a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);

type Delay = Option<(Sender<()>, Receiver<()>)>;

std::thread_local! {
    /// The next mark of this thread waits before its check of the head, or between the check and the change.
    /// The thread signals that it has arrived, and continues on a signal.
    static BEFORE: RefCell<Delay> = const { RefCell::new(None) };
    static BETWEEN: RefCell<Delay> = const { RefCell::new(None) };
    /// The next change of a locator by this thread waits.
    static PERFORM: RefCell<Delay> = const { RefCell::new(None) };
    /// The random state for the delays of this thread's marks under stress; 0 means no delays.
    static CHANCE: Cell<u64> = const { Cell::new(0) };
}

fn wait_at(delay: &'static LocalKey<RefCell<Delay>>) {
    if let Some((there, goes_on)) = delay.take() {
        there.send(()).expect("the test receives");
        goes_on.recv_timeout(PATIENCE).expect("the test sends");
    }
}

fn chance() -> u64 {
    let mut chance = CHANCE.get();
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    CHANCE.set(chance);
    chance
}

fn jitter() {
    match chance() % 16 {
        1..=3 => yield_now(),
        4..=7 => (0..chance() % 400).for_each(|_| core::hint::spin_loop()),
        _ => {}
    }
}

/// [`Locked`] with delays of marks and of changes of locators.
struct Delayed;

// SAFETY: it executes the operations of `Locked` in the same order.
#[allow(unsafe_code)]
unsafe impl Commit for Delayed {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        // A mark is the head itself. A locator that equals the head by chance is also delayed.
        if new != seen {
            wait_at(&PERFORM);
            return Locked.perform(head, seen, word, old, new);
        }
        wait_at(&BEFORE);
        jitter();
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == seen {
            wait_at(&BETWEEN);
            jitter();
            let _ = word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        }
    }
}

type Object<const WRITERS: usize, const WRITES: usize> = Ics<[Word; 2], WRITERS, WRITES, Delayed>;

/// Starts a thread whose next step waits at `delay`. Returns when it waits.
fn start<'s>(
    threads: &'s Scope<'s, '_>,
    delay: &'static LocalKey<RefCell<Delay>>,
    work: impl FnOnce() + Send + 's,
) -> (ScopedJoinHandle<'s, ()>, Sender<()>) {
    let ((there, is_there), (goes_on, told)) = (channel(), channel());
    let thread = threads.spawn(move || {
        delay.set(Some((there, told)));
        work();
    });
    is_there.recv_timeout(PATIENCE).expect("the thread comes there");
    (thread, goes_on)
}

/// A writer commits twice, and each commit has a helper.
///
/// The first helper marks its commit while the second is about to mark the other, and fails.
/// Returns what other threads read during the next section of the writer, which is cancelled, and after it.
fn late_mark() -> [(u64, u64); 2] {
    let ics = Object::<2, 1>::with([Word::new(0), Word::new(0)], Delayed);
    let ics = &ics;
    let read = || ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))).expect("a query");
    let (mut writer, mut other) = (ics.writer().expect("two writers"), ics.writer().expect("two writers"));
    assert_eq!(writer.update(|section| section.write(LEFT, 1)), Ok(()));
    scope(|threads| {
        let (first, first_goes_on) = start(threads, &BETWEEN, || {
            // This entry only helps.
            assert_eq!(ics.query(|_| Err::<(), _>(Stop::Cancelled)), Err(Stop::Cancelled));
        });
        assert_eq!(writer.update(|section| section.write(LEFT, 2)), Ok(()));
        let second_work = move || assert_eq!(other.update(|section| section.write(RIGHT, 5)), Ok(()));
        let (second, second_goes_on) = start(threads, &BEFORE, second_work);
        first_goes_on.send(()).expect("the thread waits");
        first.join().expect("the thread ends");
        second_goes_on.send(()).expect("the thread waits");
        second.join().expect("the thread ends");
    });
    let mut meanwhile = (0, 0);
    let cancelled: Result<(), _> = writer.attempt(|section| {
        section.write(LEFT, 99)?;
        meanwhile = scope(|threads| threads.spawn(read).join()).expect("the thread reads");
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(Stop::Cancelled));
    [meanwhile, read()]
}

#[test]
fn a_late_mark_does_no_harm() {
    assert_eq!(late_mark(), [(2, 5); 2]);
}

#[test]
fn without_the_own_mark_a_cancelled_write_is_seen() {
    let read = Mutation::NoOwnMark.during(late_mark);
    assert_ne!(read, [(2, 5); 2], "the mutant is not caught");
}

/// A helper continues with the second write of a commit while the writer is in its next section, which is cancelled.
/// Returns what another thread reads then.
fn late_helper() -> (u64, u64) {
    let ics = Object::<1, 2>::with([Word::new(0), Word::new(0)], Delayed);
    let ics = &ics;
    let read = || ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))).expect("a query");
    let mut writer = ics.writer().expect("a writer");
    let both = |section: &mut Transaction<'_, [Word; 2], 1, 2, Delayed>, left, right| {
        section.write(LEFT, left)?;
        section.write(RIGHT, right)
    };
    assert_eq!(writer.update(|section| both(section, 1, 2)), Ok(()));
    let mut seen = (0, 0);
    scope(|threads| {
        let (helper, goes_on) = start(threads, &PERFORM, || {
            // This entry only helps.
            assert_eq!(ics.query(|_| Err::<(), _>(Stop::Cancelled)), Err(Stop::Cancelled));
        });
        let cancelled: Result<(), _> = writer.attempt(|section| {
            both(section, 98, 99)?;
            goes_on.send(()).expect("the thread waits");
            helper.join().expect("the thread ends");
            seen = scope(|threads| threads.spawn(read).join()).expect("the thread reads");
            Err(Stop::Cancelled)
        });
        assert_eq!(cancelled, Err(Stop::Cancelled));
    });
    seen
}

#[test]
fn a_late_helper_does_no_harm() {
    assert_eq!(late_helper(), (1, 2));
}

#[test]
fn a_write_into_the_posted_page_is_seen() {
    assert_ne!(Mutation::OnePage.during(late_helper), (1, 2), "the mutant is not caught");
}

/// Three threads write and two read, with delays of their marks, until a read is inconsistent or time is up.
///
/// Returns the inconsistent reads, the sections, and both words at the end.
fn stress(mutation: Option<Mutation>, longest: Duration) -> (u64, u64, (u64, u64)) {
    let ics = Object::<3, 2>::with([Word::new(0), Word::new(0)], Delayed);
    let (over, torn, done) = (AtomicBool::new(false), Count::new(0), Count::new(0));
    let work = |index: u64| {
        CHANCE.set(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index + 1));
        let mut writer = if index < 3 { ics.writer() } else { None };
        while !over.load(Ordering::Relaxed) {
            let Some(writer) = &mut writer else {
                let is_same = ics.query(|view| Ok(view.read(LEFT)? == view.read(RIGHT)?));
                torn.fetch_add(u64::from(is_same != Ok(true)), Ordering::Relaxed);
                continue;
            };
            for _ in 0..=chance() % 6 {
                let is_same = writer.update(|section| {
                    let (left, right) = (section.read(LEFT)?, section.read(RIGHT)?);
                    section.write(LEFT, left + 1)?;
                    section.write(RIGHT, right + 1)?;
                    Ok(left == right)
                });
                torn.fetch_add(u64::from(is_same != Ok(true)), Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            }
            jitter();
        }
    };
    scope(|threads| {
        let work = &work;
        for index in 0..5 {
            threads.spawn(move || match mutation {
                Some(mutation) => mutation.during(|| work(index)),
                None => work(index),
            });
        }
        let start = Instant::now();
        while start.elapsed() < longest && torn.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
    });
    let words = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))).expect("a query");
    (torn.into_inner(), done.into_inner(), words)
}

#[test]
#[cfg_attr(miri, ignore = "runs for a fixed time, in which Miri executes little")]
fn stress_of_late_marks_tears_no_read() {
    let (torn, done, words) = stress(None, Duration::from_secs(6));
    assert_eq!((torn, words), (0, (done, done)));
}

#[test]
#[cfg_attr(miri, ignore = "runs for a fixed time, in which Miri executes little")]
fn stress_without_the_own_mark_tears_a_read() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        std::println!("skipped: two helpers in the middle of their work need two processors");
        return;
    }
    let (torn, done, words) = stress(Some(Mutation::NoOwnMark), Duration::from_secs(60));
    assert!(torn != 0 || words != (done, done), "the mutant is not caught in {done} sections");
}
