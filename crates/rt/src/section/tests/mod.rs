//! Tests of sections on real threads of one processor. Gates force the order of events, not clocks.

mod eager;
mod extended;
mod lazy;

use super::{Eager, Extended, Lazy};
use crate::levels::WATCHDOG_LEVEL;
use crate::machine::{Machine, require_realtime};
use lockwright_sys::futex::{self, Deadline, Ended, Scope};
use lockwright_sys::{clock, sched};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// The longest time that a test may take, in nanoseconds.
const TEST_MAX_NS: u64 = 20_000 * MS;

/// A barrier that opens once.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicU32>);

impl Gate {
    /// Opens the gate. A more urgent waiter executes before this returns.
    fn open(&self) {
        // ORDERING: Release pairs with the Acquire in `passes`.
        self.0.store(1, Ordering::Release);
        futex::wake(Scope::Private, &*self.0, i32::MAX);
    }

    /// Waits for the gate. Returns whether it was opened in time.
    fn passes(&self) -> bool {
        let until_ns = clock::now_ns() + TEST_MAX_NS;
        // ORDERING: Acquire pairs with the Release in `open`.
        while self.0.load(Ordering::Acquire) == 0 {
            match futex::wait(Scope::Private, &self.0, 0, Some(Deadline::monotonic(until_ns))) {
                Ended::TimedOut => return false,
                ended => ended.or_panic(),
            }
        }
        true
    }

    fn pass(&self) {
        assert!(self.passes(), "the gate was not opened");
    }
}

/// The events in order. All threads execute on one processor, and one writes at a time.
#[derive(Clone, Default)]
struct Story(Arc<Mutex<Vec<&'static str>>>);

impl Story {
    fn tell(&self, event: &'static str) {
        self.0.lock().unwrap().push(event);
    }

    fn told(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// The machine, and a watchdog above all tasks that aborts the process if the test does not end.
struct Stage {
    cpu: usize,
    over: Gate,
    watchdog: Option<JoinHandle<()>>,
    _machine: Machine,
}

impl Stage {
    fn set() -> Option<Self> {
        let machine = require_realtime()?;
        let over = Gate::default();
        let watchdog = spawn({
            let over = over.clone();
            move || {
                sched::set_fifo(sched::gettid(), WATCHDOG_LEVEL).expect("permission was checked");
                if !over.passes() {
                    eprintln!("the watchdog aborts a test that does not end");
                    std::process::abort();
                }
            }
        });
        let cpu = sched::affinity().expect("a CPU set")[0];
        Some(Self { cpu, over, watchdog: Some(watchdog), _machine: machine })
    }

    /// Starts a thread on the stage's processor under SCHED_FIFO.
    fn thread<T: Send + 'static>(&self, level: u8, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let cpu = self.cpu;
        spawn(move || {
            let me = sched::gettid();
            // The policy comes first, because less urgent threads may occupy the processor.
            sched::set_fifo(me, level).expect("permission was checked");
            sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
            body()
        })
    }

    /// A managed thread that waits for its gate, calls `before` (which may check the word), and records `name`.
    fn released(
        &self,
        level: u8,
        story: &Story,
        name: &'static str,
        before: impl FnOnce(&Lazy) + Send + 'static,
    ) -> (Gate, JoinHandle<()>) {
        let (ready, gate, cpu) = (Gate::default(), Gate::default(), self.cpu);
        let thread = self.thread(level, {
            let (ready, gate, story) = (ready.clone(), gate.clone(), story.clone());
            move || {
                let thread = Lazy::manage(cpu).expect("the CPU is allowed");
                ready.open();
                gate.pass();
                before(&thread);
                story.tell(name);
            }
        });
        ready.pass();
        (gate, thread)
    }

    /// An unmanaged thread that waits for its gate and records `name`.
    fn unmanaged(&self, level: u8, story: &Story, name: &'static str) -> (Gate, JoinHandle<()>) {
        let (ready, gate) = (Gate::default(), Gate::default());
        let thread = self.thread(level, {
            let (ready, gate, story) = (ready.clone(), gate.clone(), story.clone());
            move || {
                ready.open();
                gate.pass();
                story.tell(name);
            }
        });
        ready.pass();
        (gate, thread)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.over.open();
        self.watchdog.take().map(JoinHandle::join);
    }
}

/// Executes for about `ns` nanoseconds of the thread's own execution.
fn burn(ns: u64) {
    let (mut left, mut last) = (ns, clock::now_ns());
    while left > 0 {
        let now = clock::now_ns();
        left = left.saturating_sub((now - last).min(MS / 10));
        last = now;
    }
}

fn join<const THREADS: usize>(threads: [JoinHandle<()>; THREADS]) {
    threads.into_iter().for_each(|thread| thread.join().expect("the thread does not panic"));
}

fn level_of_me() -> i32 {
    level_of(sched::gettid())
}

const BATCHES: usize = 101;

/// Prints the median of all batches, and the range of the middle nine tenths.
fn print(what: &str, mut batches: Vec<f64>) {
    batches.sort_by(f64::total_cmp);
    let last = batches.len() - 1;
    let [low, median, high] = [last / 20, last / 2, last - last / 20].map(|place| batches[place]);
    println!("{what}: {median:.1} ns (90 %: {low:.1} to {high:.1})");
}

fn measure(what: &str, rounds: u64, mut section: impl FnMut()) {
    let batch = |_| {
        let start = clock::now_ns();
        (0..rounds).for_each(|_| section());
        (clock::now_ns() - start) as f64 / rounds as f64
    };
    print(what, (0..BATCHES).map(batch).collect());
}

/// Prints costs and tests nothing: `cargo test -p lockwright costs -- --ignored --nocapture`.
#[test]
#[ignore = "prints costs"]
fn costs() {
    let Some(stage) = Stage::set() else { return };
    let cpu = stage.cpu;
    let thread = stage.thread(10, move || {
        let lazy = Lazy::manage(cpu).expect("the CPU is allowed");
        measure("lazy section", 20_000, || drop(lazy.enter().expect("the section is entered")));
        measure("look at a free word", 20_000, || assert!(!lazy.look().expect("the check succeeds")));
        let eager = Eager::new().expect("permission was checked");
        measure("eager section", 500, || drop(eager.enter().expect("the section is entered")));
        {
            let _outer =
                (lazy.enter().expect("the section is entered"), eager.enter().expect("the section is entered"));
            measure("lazy section, nested", 20_000, || drop(lazy.enter().expect("the section is entered")));
            measure("eager section, nested", 20_000, || drop(eager.enter().expect("the section is entered")));
        }
        drop(eager);
        sched::set_other(sched::gettid()).expect("always allowed");
        let eager = Eager::new().expect("permission was checked");
        measure("eager section of an ordinary thread", 500, || drop(eager.enter().expect("the section is entered")));
    });
    join([thread]);
    costs_of_a_release(&stage);
}

/// Releases a more urgent job in the middle of a section. Prints how long the section is interrupted, and how long both
/// take until the job is done.
fn costs_of_a_release(stage: &Stage) {
    const ROUNDS: u32 = 2_000;
    let cpu = stage.cpu;
    for looks in [true, false] {
        let (round, jobs, ready) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Gate::default());
        let high = stage.thread(30, {
            let (round, jobs, ready) = (Arc::clone(&round), Arc::clone(&jobs), ready.clone());
            move || {
                let thread = Lazy::manage(cpu).expect("the CPU is allowed");
                ready.open();
                for job in 0..ROUNDS {
                    // ORDERING: Acquire pairs with the Release below.
                    while round.load(Ordering::Acquire) == job {
                        futex::wait(
                            Scope::Private,
                            &round,
                            job,
                            Some(Deadline::monotonic(clock::now_ns() + TEST_MAX_NS)),
                        )
                        .or_panic();
                    }
                    if looks {
                        thread.look().expect("the check succeeds");
                    }
                    jobs.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // From then on the less urgent thread executes only while this one waits.
        ready.pass();
        let low = stage.thread(10, move || {
            let thread = Lazy::manage(cpu).expect("the CPU is allowed");
            let (mut inside, mut in_all) = (Vec::new(), Vec::new());
            for job in 0..ROUNDS {
                let section = thread.enter().expect("the section is entered");
                let start = clock::now_ns();
                // ORDERING: Release pairs with the Acquire above.
                round.fetch_add(1, Ordering::Release);
                futex::wake(Scope::Private, &*round, 1);
                inside.push((clock::now_ns() - start) as f64);
                assert_eq!(jobs.load(Ordering::Relaxed) > job, !looks, "the job waits if it checks the word");
                drop(section);
                in_all.push((clock::now_ns() - start) as f64);
            }
            let what = if looks { "a job that checks" } else { "a job that does not check" };
            print(&format!("release of {what}, until the section continues"), inside);
            print(&format!("release of {what}, until the job is done and the section left"), in_all);
        });
        join([low, high]);
    }
}

/// The kernel's level of a thread, without inheritance.
fn level_of(thread: sched::Tid) -> i32 {
    sched::scheduling(thread).map_or(-1, |scheduling| i32::from(scheduling.level))
}
