//! Detects that a CPU of the machine stood still during a test.

use crate::judge::scale;
use crate::machine::require_realtime;
use lockwright::raw::WATCHDOG_LEVEL;
use lockwright_sys::sched;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread on each CPU of the machine, above all tasks and their sections, that wakes up again and again. If it does
/// not wake up in time, the CPU stood still: a host took it, or lost its timer. What its tasks did not do then proves
/// nothing.
pub struct Heartbeat {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Heartbeat {
    const PERIOD: Duration = Duration::from_millis(5);
    /// A CPU that is late by this much stood still.
    const STOOD_STILL: Duration = Duration::from_millis(20);

    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let beat = |cpu: usize| {
            let over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                let me = sched::gettid();
                sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
                sched::set_fifo(me, WATCHDOG_LEVEL).expect("permission was checked");
                let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
                // BOUND: the attempt, which is bounded.
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Self::PERIOD);
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                }
                longest
            })
        };
        let threads = sched::affinity().expect("a set of CPUs").into_iter().map(beat).collect();
        Self { is_over, threads }
    }

    /// Returns a message if a CPU stood still.
    ///
    /// BOUND: [`Heartbeat::PERIOD`], and the time for which a CPU stands still.
    pub fn stop(self) -> Option<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let longest = self.threads.into_iter().map(|thread| thread.join().expect("a longest time")).max()?;
        (longest > Self::STOOD_STILL * u32::try_from(scale()).expect("a small factor"))
            .then(|| format!("a CPU that executed nothing for {longest:?}"))
    }
}

#[test]
fn a_cpu_that_stands_still_is_noticed() {
    let Some(_machine) = require_realtime() else { return };
    let occupied = |time: Duration| {
        let heartbeat = Heartbeat::start();
        let cpu = sched::affinity().expect("a set of CPUs")[0];
        let occupy = move || {
            let me = sched::gettid();
            sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
            sched::set_fifo(me, WATCHDOG_LEVEL).expect("permission was checked");
            // The heartbeat wakes up before and after.
            std::thread::sleep(2 * Heartbeat::PERIOD);
            let began = Instant::now();
            while began.elapsed() < time {}
            std::thread::sleep(2 * Heartbeat::PERIOD);
        };
        std::thread::spawn(occupy).join().expect("it ends");
        heartbeat.stop()
    };
    let longer = 2 * Heartbeat::STOOD_STILL * u32::try_from(scale()).expect("a small factor");
    assert!(occupied(longer).is_some());
    // One undisturbed attempt is enough.
    assert!((0..100).any(|_| occupied(Duration::ZERO).is_none()));
}
