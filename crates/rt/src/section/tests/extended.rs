//! What the kernel does for extended sections, where it extends time slices, and that it is refused in words elsewhere.
//!
//! A thread of the same processor wakes up every 100 µs and looks whether the other one is inside a section: then it
//! has preempted that section. Most extensions end before an emulated processor has completed the section, even with
//! the 50 µs that the lab sets. So these tests expect of the kernel that it holds off the other thread sometimes, and
//! of a section that it gives the processor back each time.

use super::*;
use crate::process::holds_in_child;
use crate::section::{NoExtension, SectionError};
use lockwright_sys::probe;
use lockwright_sys::time_slice::{Extension, Withdrawn};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::process::parent_id;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Calls `body` where the kernel extends time slices. Where only the C library stands in the way, a process in which it
/// does not executes `test` of this file again.
fn where_extended(test: &str, body: impl FnOnce(&Stage)) {
    const TUNABLES: &str = "GLIBC_TUNABLES";
    match spawn(|| Extended::new().map(drop)).join().expect("no panic") {
        Ok(()) => {
            if let Some(stage) = Stage::set() {
                body(&stage);
            }
        }
        Err(SectionError::NoExtension(NoExtension::Library)) if std::env::var_os(TUNABLES).is_none() => {
            let mut again = Command::new(std::env::current_exe().expect("this program has a path"));
            again.args(["--exact", &format!("section::tests::extended::{test}"), "--nocapture"]);
            let ended = again.env(TUNABLES, "glibc.pthread.rseq=0").output().expect("this program starts");
            say(&format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr)));
            assert!(ended.status.success() && String::from_utf8_lossy(&ended.stdout).contains("1 passed"));
        }
        Err(SectionError::NoExtension(why)) => say(&format!("skipped: {test}: {why}")),
        Err(error) => panic!("{error}"),
    }
}

/// Tells it although the test passes.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// What two threads of one processor know of each other.
#[derive(Default)]
struct Pair {
    /// The number of the section that the first one is in, or 0.
    inside: AtomicU64,
    /// How often the second one woke up.
    woken: AtomicU64,
    /// How many sections it has preempted, or for how many lazy ones it had to wait.
    preempted: AtomicU64,
    is_over: AtomicBool,
}

impl Pair {
    // ORDERING: Relaxed everywhere: the threads share a processor, and each value stands for itself.
    fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }

    fn preempted(&self) -> u64 {
        self.preempted.load(Ordering::Relaxed)
    }

    /// The second thread, which may be one that checks for lazy sections.
    fn watch(&self, lazy: Option<&Lazy>) {
        let mut last = 0;
        // BOUND: until the first thread has ended.
        while !self.is_over.load(Ordering::Relaxed) {
            clock::sleep_until(clock::now_ns() + 100 * US).expect("it sleeps");
            let inside = self.inside.load(Ordering::Relaxed);
            let finds_section = match lazy {
                Some(lazy) => lazy.look().expect("the check succeeds"),
                None => inside != 0 && inside != last,
            };
            if finds_section {
                self.preempted.fetch_add(1, Ordering::Relaxed);
                last = inside;
            }
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends the second thread with the first one, also if that panics.
struct End(Arc<Pair>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// The work of a section: less than a microsecond, and some microseconds of an emulated processor.
fn work() {
    (0..50_u32).for_each(|step| _ = black_box(step));
}

/// The first thread, which executes sections.
struct Sections<'a> {
    pair: &'a Pair,
    thread: &'a Extended,
    last: u64,
}

impl Sections<'_> {
    /// Executes sections until the other thread has woken up `times`. They ask for extensions, or not, and do `work`.
    /// Returns how many were preempted, and how many ended with the processor given back of how many that had a grant.
    fn execute(&mut self, times: u64, asks: bool, work: impl Fn()) -> Sum {
        let (pair, thread) = (self.pair, self.thread);
        let (until, preempted, lost) = (pair.woken() + times, pair.preempted(), thread.lost());
        let mut sum = Sum::default();
        // BOUND: until the other thread has woken up, or the watchdog aborts.
        while pair.woken() < until {
            self.last += 1;
            let section = asks.then(|| thread.enter());
            pair.inside.store(self.last, Ordering::Relaxed);
            work();
            pair.inside.store(0, Ordering::Relaxed);
            let (woken, granted) = (pair.woken(), thread.granted());
            drop(section);
            if thread.granted() > granted {
                sum.granted += 1;
                sum.given_back += u64::from(pair.woken() > woken);
            }
        }
        sum.preempted = pair.preempted() - preempted;
        sum.lost = thread.lost() - lost;
        sum
    }
}

/// What became of some sections.
#[derive(Default, Debug)]
struct Sum {
    granted: u64,
    /// Of these, how many were followed at once by the thread that had waited.
    given_back: u64,
    lost: u64,
    preempted: u64,
}

impl Sum {
    /// Fewer sections were preempted than without a request, and not by chance.
    fn is_better_than(&self, other: &Self) {
        assert!(self.granted >= 10, "the kernel grants extensions");
        assert!(self.preempted + self.granted / 2 < other.preempted, "as many sections were preempted as before");
    }
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, more: Self) {
        self.granted += more.granted;
        self.given_back += more.given_back;
        self.lost += more.lost;
        self.preempted += more.preempted;
    }
}

/// The two threads of a test.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Threads {
    Ordinary,
    RealTime,
    /// The same, in lazy sections.
    Lazy,
}

/// Executes `body` on a thread beside one that wakes up again and again.
fn beside<T: Send + 'static>(
    stage: &Stage,
    threads: Threads,
    body: impl FnOnce(&mut Sections<'_>) -> T + Send + 'static,
) -> T {
    let pair = Arc::new(Pair::default());
    let ordinary = move || {
        if threads == Threads::Ordinary {
            sched::set_other(sched::gettid()).expect("always allowed");
        }
    };
    let cpu = stage.cpu;
    let watch = stage.thread(30, {
        let pair = Arc::clone(&pair);
        move || {
            ordinary();
            let lazy = (threads == Threads::Lazy).then(|| Lazy::manage(cpu).expect("the CPU is allowed"));
            pair.watch(lazy.as_ref());
        }
    });
    let sections = stage.thread(10, move || {
        let end = End(pair);
        ordinary();
        let thread = Extended::new().expect("the kernel extends time slices");
        body(&mut Sections { pair: &end.0, thread: &thread, last: 0 })
    });
    let done = sections.join();
    watch.join().expect("the thread that watches does not panic");
    done.expect("the sections are as expected")
}

/// Whether a timer wakes up other threads by a real-time thread of the kernel, which preempts at once.
fn skips_preempt_rt() -> bool {
    let is_there = probe::is_preempt_rt();
    if is_there {
        say("skipped: under PREEMPT_RT, threads that a timer wakes up are not held off");
    }
    is_there
}

/// Sections that ask, and as many that do not, in turns.
fn compared(stage: &Stage, threads: Threads) -> [Sum; 2] {
    let cpu = stage.cpu;
    let sums = beside(stage, threads, move |sections| {
        let lazy = (threads == Threads::Lazy).then(|| Lazy::manage(cpu).expect("the CPU is allowed"));
        let work = || {
            let _section = lazy.as_ref().map(|lazy| lazy.enter().expect("the section is entered"));
            work();
        };
        let mut sums = [Sum::default(), Sum::default()];
        for _ in 0..20 {
            sums[0] += sections.execute(20, true, work);
            sums[1] += sections.execute(20, false, work);
        }
        sums
    });
    eprintln!("{threads:?}: those that ask {:?}, those that do not {:?}", sums[0], sums[1]);
    sums
}

#[test]
fn a_kernel_without_extensions_is_refused_in_words() {
    let refused = |_| match Extended::new() {
        Ok(_) => None,
        Err(error) => Some((matches!(error, SectionError::NoExtension(_)), error.to_string())),
    };
    let [first, second] = [0, 1].map(refused);
    assert_eq!(first, second, "a handle that was refused or dropped is in nobody's way");
    if let Some((is_typed, text)) = first {
        assert!(is_typed && text.starts_with("a section cannot be extended: "), "{text}");
    }
}

#[test]
fn each_refusal_says_what_to_do() {
    for (why, remedy) in [
        (NoExtension::Kernel, "CONFIG_RSEQ_SLICE_EXTENSION"),
        (NoExtension::Boot, "remove rseq_slice_ext=0"),
        (NoExtension::Library, "GLIBC_TUNABLES=glibc.pthread.rseq=0"),
        (NoExtension::Elsewhere, "leave the registration to the C library"),
        (NoExtension::Platform, "use another kind of section"),
    ] {
        let text = SectionError::NoExtension(why).to_string();
        assert!(text.contains(remedy), "{text}");
    }
}

/// Without PREEMPT_RT, the second of these threads preempts fewer sections that ask, or finds fewer of them.
fn is_held_off(test: &str, threads: Threads) {
    where_extended(test, |stage| {
        if !skips_preempt_rt() {
            let [asked, did_not] = compared(stage, threads);
            asked.is_better_than(&did_not);
        }
    });
}

#[test]
fn ordinary_threads_preempt_fewer_sections() {
    is_held_off("ordinary_threads_preempt_fewer_sections", Threads::Ordinary);
}

#[test]
fn real_time_threads_wait_except_under_preempt_rt() {
    where_extended("real_time_threads_wait_except_under_preempt_rt", |stage| {
        let [asked, did_not] = compared(stage, Threads::RealTime);
        if probe::is_preempt_rt() {
            assert_eq!(asked.granted, 0, "the kernel begins to hold off real-time threads");
            assert!(asked.lost > 0);
        } else {
            asked.is_better_than(&did_not);
            assert!(asked.given_back * 10 >= asked.granted * 9, "the other thread is next");
        }
    });
}

/// A job that is released in the lazy section begins after it, without a wait.
#[test]
fn a_lazy_section_inside_is_found_less_often() {
    is_held_off("a_lazy_section_inside_is_found_less_often", Threads::Lazy);
}

#[test]
fn a_system_call_inside_ends_the_extension_and_no_more() {
    where_extended("a_system_call_inside_ends_the_extension_and_no_more", |stage| {
        if skips_preempt_rt() {
            return;
        }
        beside(stage, Threads::Ordinary, |sections| {
            let parent = parent_id();
            let before = ended_by_calls();
            let called = sections.execute(400, true, || {
                work();
                assert_eq!(parent_id(), parent, "the call does its work");
            });
            let ended = ended_by_calls().zip(before).map(|(after, before)| after - before);
            let later = sections.execute(400, true, work);
            match ended {
                Some(ended) => assert!(ended > 0, "a call ends an extension: {called:?}"),
                None => say("not judged: this kernel does not show how many extensions ended by a call"),
            }
            assert!(later.granted > 0, "later sections get extensions");
        });
    });
}

/// How many extensions of all threads the kernel has ended because of a system call, if it shows that (Linux with
/// CONFIG_RSEQ_STATS, to root).
fn ended_by_calls() -> Option<u64> {
    let stats = std::fs::read_to_string("/sys/kernel/debug/rseq/stats").ok()?;
    stats.lines().find_map(|line| line.strip_prefix("sabort:")?.trim().parse().ok())
}

/// A thread that nobody preempts, except for an instant: one attempt of several succeeds.
fn in_some_attempt(stage: &Stage, mut holds: impl FnMut(&Extended) -> bool + Send + 'static) {
    let thread = stage.thread(50, move || {
        let thread = Extended::new().expect("the kernel extends time slices");
        assert!((0..100).any(|_| holds(&thread)));
    });
    join([thread]);
}

#[test]
fn a_request_lasts_from_the_outermost_section_to_its_end() {
    where_extended("a_request_lasts_from_the_outermost_section_to_its_end", |stage| {
        in_some_attempt(stage, |thread| {
            let outer = thread.enter();
            drop(thread.enter());
            let still_asks = !thread.extension.request();
            drop(outer);
            let asks_anew = thread.extension.request();
            still_asks && asks_anew && thread.extension.withdraw() == Withdrawn::Unused
        });
    });
}

#[test]
fn a_second_handle_is_refused_and_a_forgotten_section_ends_with_the_handle() {
    where_extended("a_second_handle_is_refused_and_a_forgotten_section_ends_with_the_handle", |stage| {
        let thread = stage.thread(50, || {
            for _ in 0..3 {
                let thread = Extended::new().expect("the one before is dropped");
                assert_eq!(Extended::new().err(), Some(SectionError::SecondHandle));
                // What another copy of this crate would find.
                let other = Extension::enable().map(drop);
                assert!(matches!(other, Ok(()) | Err(NoExtension::Elsewhere)), "{other:?}");
                std::mem::forget(thread.enter());
            }
            let thread = Extended::new().expect("the one before is dropped");
            assert!(thread.extension.request(), "no request is left");
            assert_ne!(thread.extension.withdraw(), Withdrawn::Granted);
        });
        join([thread]);
    });
}

#[test]
fn a_child_process_asks_for_itself() {
    where_extended("a_child_process_asks_for_itself", |stage| {
        in_some_attempt(stage, |thread| {
            holds_in_child(|| {
                let section = thread.enter();
                let asks = !thread.extension.request();
                drop(section);
                asks && thread.lost() == 0
            })
        });
    });
}
