//! Late marks: who performed a commit says so long after the next one. That needs two helpers at a time that are in the middle of something, so two processors.

use crate::left_out::{Part, leaving_out};
use crate::sync::{AtomicU64, fence};
use crate::{Commit, Ics, Locked, Stop, Var, Word};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, AtomicU64 as Count, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{LocalKey, Scope, ScopedJoinHandle, scope, yield_now};
use std::time::{Duration, Instant};

const LEFT: Var<u64> = Var::new(0);
const RIGHT: Var<u64> = Var::new(1);

/// No wait is longer: the tests fail then, and do not hang.
const PATIENCE: Duration = Duration::from_secs(20);

type Delay = Option<(Sender<()>, Receiver<()>)>;

std::thread_local! {
    /// Where the next mark of this thread waits: before its look at the head, and between that and its change. It says that it is there, and goes on when told.
    static BEFORE: RefCell<Delay> = const { RefCell::new(None) };
    static BETWEEN: RefCell<Delay> = const { RefCell::new(None) };
    /// How marks of this thread are delayed in a storm; 0: not at all.
    static CHANCE: Cell<u64> = const { Cell::new(0) };
}

fn wait_at(delay: &'static LocalKey<RefCell<Delay>>) {
    if let Some((there, goes_on)) = delay.take() {
        there.send(()).expect("the test waits");
        goes_on.recv_timeout(PATIENCE).expect("the test goes on");
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

/// `Locked`, with delays where marks are made.
struct Delayed;

// SAFETY: it does what `Locked` does, in the same order.
#[allow(unsafe_code)]
unsafe impl Commit for Delayed {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        // A mark is the head itself. A locator may be by chance: it is delayed then, too.
        if new != seen {
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

type Object<const SLOTS: usize, const WRITES: usize> = Ics<[Word; 2], SLOTS, WRITES, Delayed>;

/// A thread whose next mark waits there. Back when it waits.
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
    is_there.recv_timeout(PATIENCE).expect("it marks");
    (thread, goes_on)
}

/// A slot commits twice; of two helpers, the one of the first commit marks it while the one of the second is about to mark that, and fails. Says what others
/// read while the slot is in a section that it cancels then, and after it.
fn late_mark() -> [(u64, u64); 2] {
    let ics = Object::<2, 1>::with([Word::new(0), Word::new(0)], Delayed);
    let ics = &ics;
    let read = || ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))).expect("nothing stops it");
    let (mut slot, mut other) = (ics.slot().expect("two slots"), ics.slot().expect("two slots"));
    assert_eq!(slot.update(|section| section.write(LEFT, 1)), Ok(()));
    scope(|threads| {
        let (first, first_goes_on) = start(threads, &BETWEEN, || {
            // It only enters.
            assert_eq!(ics.query(|_| Err::<(), _>(Stop::Cancelled)), Err(Stop::Cancelled));
        });
        assert_eq!(slot.update(|section| section.write(LEFT, 2)), Ok(()));
        let second_work = move || assert_eq!(other.update(|section| section.write(RIGHT, 5)), Ok(()));
        let (second, second_goes_on) = start(threads, &BEFORE, second_work);
        first_goes_on.send(()).expect("it waits");
        first.join().expect("it ends");
        second_goes_on.send(()).expect("it waits");
        second.join().expect("it ends");
    });
    let mut meanwhile = (0, 0);
    let cancelled: Result<(), _> = slot.attempt(|section| {
        section.write(LEFT, 99)?;
        meanwhile = scope(|threads| threads.spawn(read).join()).expect("it reads");
        Err(Stop::Cancelled)
    });
    assert_eq!(cancelled, Err(Stop::Cancelled));
    [meanwhile, read()]
}

#[test]
fn a_late_mark_harms_nobody() {
    assert_eq!(late_mark(), [(2, 5); 2]);
}

#[test]
fn without_the_own_mark_a_late_one_makes_a_cancelled_write_seen() {
    let read = leaving_out(Some(Part::OwnMark), late_mark);
    assert_ne!(read, [(2, 5); 2], "left out, it goes unnoticed");
}

/// Three that write and two that look, with delays at their marks, until something is torn. How often it was; how many sections there were; and what both words are then.
fn storm(part: Option<Part>, longest: Duration) -> (u64, u64, (u64, u64)) {
    let ics = Object::<3, 2>::with([Word::new(0), Word::new(0)], Delayed);
    let (over, torn, done) = (AtomicBool::new(false), Count::new(0), Count::new(0));
    let blow = |index: u64| {
        CHANCE.set(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index + 1));
        let mut slot = if index < 3 { ics.slot() } else { None };
        while !over.load(Ordering::Relaxed) {
            let Some(slot) = &mut slot else {
                let is_same = ics.query(|view| Ok(view.read(LEFT)? == view.read(RIGHT)?));
                torn.fetch_add(u64::from(is_same != Ok(true)), Ordering::Relaxed);
                continue;
            };
            for _ in 0..=chance() % 6 {
                let is_same = slot.update(|section| {
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
        let blow = &blow;
        for index in 0..5 {
            threads.spawn(move || leaving_out(part, || blow(index)));
        }
        let start = Instant::now();
        while start.elapsed() < longest && torn.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
    });
    let words = ics.query(|view| Ok((view.read(LEFT)?, view.read(RIGHT)?))).expect("nothing stops it");
    (torn.into_inner(), done.into_inner(), words)
}

#[test]
fn storms_of_late_marks_tear_nothing() {
    let (torn, done, words) = storm(None, Duration::from_secs(6));
    assert_eq!((torn, words), (0, (done, done)));
}

#[test]
fn a_storm_without_the_own_mark_tears() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        std::println!("not seen: two helpers in the middle of something need two processors");
        return;
    }
    let (torn, done, words) = storm(Some(Part::OwnMark), Duration::from_secs(60));
    assert!(torn != 0 || words != (done, done), "left out, it goes unnoticed in {done} sections");
}
