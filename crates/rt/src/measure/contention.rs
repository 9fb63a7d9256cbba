//! Locks that all CPUs want.
//!
//! One task a CPU, of distinct priorities, under SCHED_FIFO above everything that is not this measurement. Each waits for its next
//! arrival, asks for the lock, holds it for a section, and only then draws the next arrival: a closed source, as a core is.

use super::subject::{ALL, Candidate, FIFO, Subject};
use super::{BUSY_NS, SECOND_NS, become_realtime};
use crate::priorities::WATCHDOG_LEVEL;
use crate::run::{Control, RunError};
use crate::sys::{SysError, clock, sched};
use lockwright_locks::{Priority, SLOTS_MAX, Slot};
use lockwright_model::{Duration, TaskId};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};

/// How often each task asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// All equally often.
    Equal,
    /// The less important, the more often: rates as 1 : 2 : … : m from the most important on.
    Rising,
}

/// What is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionConfig {
    /// Length of a critical section.
    pub section: Duration,
    /// Requests of all tasks of a lock together, for each rate and kind of arrivals.
    pub requests: usize,
    /// Arrival rates of all tasks together, as shares of the service rate, which is one section a section's length. Positive.
    pub rates: Vec<f64>,
    /// Of the arrivals: the same for every lock.
    pub seed: u64,
}

/// One lock at one rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Contended {
    /// Its name.
    pub lock: &'static str,
    /// How often each task asked.
    pub arrivals: Arrivals,
    /// Rate of all tasks over the service rate.
    pub rate: f64,
    /// Tasks, one a CPU.
    pub tasks: usize,
    /// Requests that were served.
    pub requests: usize,
    /// Mean wait of each task, weighted from m for the most important to 1, in nanoseconds.
    pub weighted_delay_ns: f64,
    /// The same over that of the FIFO lock in this run.
    pub weighted_delay_over_fifo: f64,
    /// Mean wait of the most important task, in nanoseconds.
    pub top_delay_ns: f64,
    /// The same over that of the FIFO lock in this run.
    pub top_delay_over_fifo: f64,
    /// Mean number of sections that ended between a request and its section.
    pub mean_sections_waited: f64,
    /// The greatest such number. The bound of a FIFO or batched lock is `tasks - 1`; what an interrupt puts between the count and the
    /// request adds to it.
    pub max_sections_waited: u64,
}

/// Measures every lock with every rate and kind of arrivals. `progress` is told how many of how many parts are done.
///
/// # Errors
/// Without the right to real-time priorities; when threads cannot be started; when a lock does not come back.
pub fn contention(
    config: &ContentionConfig,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Contended>, RunError> {
    let cpus: Vec<usize> = sched::affinity()?.into_iter().take(SLOTS_MAX).collect();
    let parts = 2 * config.rates.len() * ALL.len();
    let mut results: Vec<Contended> = Vec::new();
    for arrivals in [Arrivals::Equal, Arrivals::Rising] {
        for &rate in &config.rates {
            let from = results.len();
            for candidate in &ALL {
                if control.is_stopped() {
                    results.truncate(from);
                    return Ok(results);
                }
                results.push(one(candidate, arrivals, rate, config, &cpus)?);
                progress(results.len(), parts);
            }
            over_fifo(&mut results[from..]);
        }
    }
    Ok(results)
}

fn over_fifo(results: &mut [Contended]) {
    let fifo = results.iter().find(|result| result.lock == FIFO);
    let Some((weighted, top)) = fifo.map(|fifo| (fifo.weighted_delay_ns, fifo.top_delay_ns)) else { return };
    for result in results {
        result.weighted_delay_over_fifo = result.weighted_delay_ns / weighted;
        result.top_delay_over_fifo = result.top_delay_ns / top;
    }
}

/// What all tasks of one measurement share.
struct Arena {
    lock: Box<dyn Subject>,
    section_ns: u64,
    /// Requests left to make.
    left: AtomicUsize,
    /// Sections that have ended.
    ended: AtomicU64,
    /// When it began, by the clock.
    start_ns: AtomicU64,
    ready: Barrier,
    tids: Vec<AtomicU32>,
}

#[derive(Clone, Copy, Default)]
struct Waits {
    requests: usize,
    sum_ns: u64,
    sections: u64,
    sections_max: u64,
}

fn one(
    candidate: &Candidate,
    arrivals: Arrivals,
    rate: f64,
    config: &ContentionConfig,
    cpus: &[usize],
) -> Result<Contended, RunError> {
    let tasks = cpus.len();
    let section_ns = config.section.as_ns().max(1);
    let arena = Arc::new(Arena {
        lock: (candidate.new)(),
        section_ns,
        left: AtomicUsize::new(config.requests),
        ended: AtomicU64::new(0),
        start_ns: AtomicU64::new(0),
        ready: Barrier::new(tasks + 1),
        tids: cpus.iter().map(|_| AtomicU32::new(0)).collect(),
    });
    let (done, results) = mpsc::channel();
    for (task, &cpu) in cpus.iter().enumerate() {
        let (arena, done) = (Arc::clone(&arena), done.clone());
        let weight = match arrivals {
            Arrivals::Equal => 1.0 / tasks as f64,
            Arrivals::Rising => 2.0 * (task + 1) as f64 / (tasks * (tasks + 1)) as f64,
        };
        let mean_gap_ns = section_ns as f64 / (rate * weight);
        let seed = config.seed.wrapping_add(task as u64);
        let started = std::thread::Builder::new().name(format!("measure {task}")).spawn(move || {
            // ORDERING: Relaxed: the barrier orders it.
            arena.tids[task].store(sched::gettid().0, Ordering::Relaxed);
            let here = become_realtime(cpu);
            let slot = Slot::claim();
            arena.ready.wait();
            let result = match (here, slot) {
                (Err(error), _) => Err(RunError::from(error)),
                (Ok(()), None) => Err(RunError::SetUp),
                (Ok(()), Some(slot)) => Ok(serve(&arena, &slot, task, mean_gap_ns, seed)),
            };
            let _ = done.send((task, result));
        });
        if let Err(error) = started {
            // Those that have started wait at the barrier for ever: they are told to serve nobody.
            let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
            return Err(SysError { call: "starting a thread", errno }.into());
        }
    }
    arena.ready.wait();
    collect(candidate, arrivals, rate, config, &arena, &results)
}

/// Waits for the tasks, above them; a task that does not come back is put under the ordinary policy and left.
fn collect(
    candidate: &Candidate,
    arrivals: Arrivals,
    rate: f64,
    config: &ContentionConfig,
    arena: &Arena,
    results: &mpsc::Receiver<(usize, Result<Waits, RunError>)>,
) -> Result<Contended, RunError> {
    let tasks = arena.tids.len();
    let me = sched::gettid();
    let _ = sched::set_fifo(me, WATCHDOG_LEVEL);
    // All requests one after the other, each after the mean gap of the rarest task, in the busy part of each second, and again as much.
    let each_ns = arena.section_ns as f64 * (1.0 + tasks as f64 * tasks as f64 / rate);
    let limit_ns = 2.0 * config.requests as f64 * each_ns * (SECOND_NS as f64 / BUSY_NS as f64) + 5e9;
    let until = clock::now_ns() + limit_ns.min(1e15) as u64;
    let mut waits = vec![None; tasks];
    let mut failure = None;
    while failure.is_none() && waits.iter().any(Option::is_none) {
        let left = std::time::Duration::from_nanos(until.saturating_sub(clock::now_ns()));
        match results.recv_timeout(left) {
            Ok((task, Ok(result))) => waits[task] = Some(result),
            Ok((_, Err(error))) => failure = Some(error),
            Err(_) => {
                let stuck = (0..tasks).filter(|&task| waits[task].is_none());
                let tasks: Vec<TaskId> = stuck.map(|task| TaskId(task as u16)).collect();
                for task in &tasks {
                    let tid = arena.tids[task.index()].load(Ordering::Relaxed);
                    let _ = sched::set_other(sched::Tid(tid));
                }
                failure = Some(RunError::Stuck { tasks });
            }
        }
    }
    let _ = sched::set_other(me);
    match failure {
        Some(error) => Err(error),
        None => Ok(summary(candidate.name, arrivals, rate, &waits.into_iter().flatten().collect::<Vec<_>>())),
    }
}

fn summary(lock: &'static str, arrivals: Arrivals, rate: f64, waits: &[Waits]) -> Contended {
    let tasks = waits.len();
    let mean = |waits: &Waits| if waits.requests == 0 { 0.0 } else { waits.sum_ns as f64 / waits.requests as f64 };
    let requests: usize = waits.iter().map(|waits| waits.requests).sum();
    let weighted: f64 = waits.iter().enumerate().map(|(task, waits)| (tasks - task) as f64 * mean(waits)).sum();
    let sections: u64 = waits.iter().map(|waits| waits.sections).sum();
    Contended {
        lock,
        arrivals,
        rate,
        tasks,
        requests,
        weighted_delay_ns: weighted / (tasks * (tasks + 1) / 2) as f64,
        weighted_delay_over_fifo: 1.0,
        top_delay_ns: waits.first().map_or(0.0, mean),
        top_delay_over_fifo: 1.0,
        mean_sections_waited: sections as f64 / requests.max(1) as f64,
        max_sections_waited: waits.iter().map(|waits| waits.sections_max).max().unwrap_or(0),
    }
}

/// One task: 0 is the most important.
///
/// BOUND: the requests left, each after its gap.
fn serve(arena: &Arena, slot: &Slot, task: usize, mean_gap_ns: f64, seed: u64) -> Waits {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut waits = Waits::default();
    let priority = Priority((arena.tids.len() - task) as u32);
    // ORDERING: Relaxed: the first who comes says when it began, and all take that.
    let now = clock::now_ns();
    let start = arena
        .start_ns
        .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
        .map_or_else(|start| start, |_| now);
    let mut arrival = start as f64;
    while arena.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        arrival += -mean_gap_ns * (1.0 - random.f64()).ln();
        arrival = wait_until(arrival, start);
        let before = arena.ended.load(Ordering::Relaxed);
        let asked = clock::now_ns();
        arena.lock.section(slot, priority, &mut || {
            let entered = clock::now_ns();
            let sections = arena.ended.load(Ordering::Relaxed) - before;
            waits.requests += 1;
            waits.sum_ns += entered - asked;
            waits.sections += sections;
            waits.sections_max = waits.sections_max.max(sections);
            while clock::now_ns() < entered + arena.section_ns {
                std::hint::spin_loop();
            }
            arena.ended.fetch_add(1, Ordering::Relaxed);
        });
        arrival = arrival.max(clock::now_ns() as f64);
    }
    waits
}

/// Waits for an arrival, and sleeps through the part of each second that is not this measurement's: by so much the arrival is later.
/// Says when it was.
fn wait_until(arrival: f64, start: u64) -> f64 {
    let mut arrival = arrival;
    loop {
        let now = clock::now_ns();
        let into_second = (now - start) % SECOND_NS;
        if into_second >= BUSY_NS {
            let next = now - into_second + SECOND_NS;
            arrival += (next - now) as f64;
            // A sleep that fails is one that was not needed.
            let _ = clock::sleep_until(next);
        } else if now as f64 >= arrival {
            return arrival;
        } else {
            std::hint::spin_loop();
        }
    }
}
