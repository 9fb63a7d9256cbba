//! Detects that a CPU stood still during a test.

use crate::judge::scale;
use crate::machine::require_realtime;
use lockwright_sys::sched;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The level of the threads: above all tasks under SCHED_FIFO, and their sections.
const LEVEL: u8 = 99;

/// A thread on each CPU that the process may use, which wakes up again and again. If it wakes up late, the CPU stood
/// still: a host took it, or lost its timer. Its tasks could not execute then, and were not forgotten.
///
/// Tasks under SCHED_DEADLINE are above these threads and delay them as well.
pub struct Heartbeat {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Heartbeat {
    fn period() -> Duration {
        Duration::from_millis(5 * scale())
    }

    /// Returns when all threads have begun.
    pub fn start() -> Self {
        let mut this = Self { is_over: Arc::default(), threads: Vec::new() };
        let (begun, begins) = mpsc::channel();
        for cpu in sched::affinity().expect("a set of CPUs") {
            let (over, begun) = (Arc::clone(&this.is_over), begun.clone());
            this.threads.push(std::thread::spawn(move || beat(cpu, &over, begun)));
        }
        drop(begun);
        // Ends when each thread has dropped its sender.
        begins.iter().for_each(|()| ());
        this
    }

    /// Returns by how much a heartbeat was late at most.
    ///
    /// BOUND: a period, and the time for which a CPU stands still.
    pub fn stop(mut self) -> Duration {
        self.end();
        let late = std::mem::take(&mut self.threads).into_iter().map(|thread| thread.join().expect("a delay"));
        late.max().unwrap_or_default()
    }

    fn end(&self) {
        // ORDERING: Relaxed: the flag publishes nothing.
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end();
    }
}

fn beat(cpu: usize, is_over: &AtomicBool, begun: Sender<()>) -> Duration {
    let me = sched::gettid();
    // In this order, a busy CPU does not delay the beginning.
    sched::set_fifo(me, LEVEL).expect("permission was checked");
    sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
    drop(begun);
    let (period, mut last, mut late) = (Heartbeat::period(), Instant::now(), Duration::ZERO);
    // BOUND: the attempt, which is bounded.
    // ORDERING: Relaxed: as in `end`.
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(period);
        let now = Instant::now();
        late = late.max((now - last).saturating_sub(period));
        last = now;
    }
    late
}

#[test]
fn a_cpu_that_stands_still_is_noticed() {
    let Some(_machine) = require_realtime() else { return };
    // How late a heartbeat was while a thread at its level kept a CPU for this long.
    let late = |time: Duration| {
        let heartbeat = Heartbeat::start();
        let cpu = sched::affinity().expect("a set of CPUs")[0];
        let occupy = move || {
            let me = sched::gettid();
            sched::set_fifo(me, LEVEL).expect("permission was checked");
            sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
            let began = Instant::now();
            // BOUND: `time`.
            while began.elapsed() < time {}
        };
        std::thread::spawn(occupy).join().expect("it ends");
        heartbeat.stop()
    };
    let long = 10 * Heartbeat::period();
    assert!(late(long) >= long - Heartbeat::period());
    // One undisturbed attempt is enough.
    assert!((0..100).any(|_| late(Duration::ZERO) < Heartbeat::period()));
}
