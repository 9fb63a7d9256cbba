//! How much ordinary work the CPUs of a run do besides it.
//!
//! One ordinary thread on each CPU counts its work, at first without the run and then during it. The ratio of the two
//! is what the tasks leave, by execution, spinning and the kernel. Other work of the machine disturbs both.

use crate::control::Control;
use crate::error::RunError;
use crate::run::{Outcome, RunConfig, run};
use crate::team::spawn;
use lockwright_model::{Duration, System};
use lockwright_sys::{clock, sched};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The time between two samples of a thread's work, at least.
const SAMPLE_NS: u64 = 500_000;
/// The steps of one unit of work, some microseconds.
const STEPS: u64 = 2_000;
/// The most samples of a thread: a minute, which is more than twice [`LONGEST`] and the set-up of a run.
const SAMPLES_MAX: usize = 120_000;
/// The longest duration of a run.
const LONGEST: Duration = Duration::from_ms(10_000);
/// The time between two looks at whether the run is stopped before it begins.
const GLANCE_NS: u64 = 20_000_000;

/// The work of one thread: pairs of a time and the units that were done by then.
type Work = Vec<(u64, u64)>;

/// Executes `system` as [`run`] does, beside one ordinary thread on each of its CPUs. Also returns the work of these
/// threads while jobs arrived, as a share of their work in an equally long time before the run.
///
/// # Errors
/// As [`run`]; [`RunError::TooLong`] if the duration exceeds 10 s.
pub fn run_beside(system: &System, config: &RunConfig, control: &Control) -> Result<(Outcome, f64), RunError> {
    if config.duration > LONGEST {
        return Err(RunError::TooLong);
    }
    let mut cpus = sched::affinity()?;
    cpus.truncate(system.cpus());
    let end = End::default();
    let threads: Vec<JoinHandle<Result<Work, RunError>>> = cpus
        .iter()
        .map(|&cpu| {
            let is_over = Arc::clone(&end.0);
            spawn("lockwright-beside", move || work(cpu, &is_over))
        })
        .collect::<Result<_, _>>()?;
    let idle = clock::now_ns();
    let alone_until = idle + config.duration.as_ns();
    while clock::now_ns() < alone_until && !control.is_stopped() {
        clock::sleep_until(alone_until.min(clock::now_ns() + GLANCE_NS))?;
    }
    let outcome = run(system, config, control);
    let start = control.start();
    drop(end);
    let mut all = Vec::with_capacity(threads.len());
    for thread in threads {
        all.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    let outcome = outcome?;
    let in_window = |from: u64| all.iter().map(|work| between(work, from, config.duration)).sum::<f64>();
    let (alone, beside) = (in_window(idle), start.map_or(0.0, in_window));
    Ok((outcome, if alone > 0.0 { beside / alone } else { 0.0 }))
}

/// Ends the work when it is dropped, so also after an error or a panic.
#[derive(Default)]
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        // ORDERING: Relaxed: a flag alone; the work comes with the end of the thread.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Works on this CPU until the end.
fn work(cpu: usize, is_over: &AtomicBool) -> Result<Work, RunError> {
    let me = sched::gettid();
    // A real-time thread that starts a run has threads of its own policy, which would keep the CPUs from it.
    sched::set_other(me)?;
    sched::set_affinity(me, &[cpu])?;
    let mut samples = Work::with_capacity(SAMPLES_MAX);
    let (mut done, mut next) = (0_u64, 0);
    // BOUND: until the run is over, or has failed: `End`.
    while !is_over.load(Ordering::Relaxed) {
        black_box((0..STEPS).fold(done, |sum, step| black_box(sum ^ step)));
        done += 1;
        let now = clock::now_ns();
        if now >= next && samples.len() < SAMPLES_MAX {
            samples.push((now, done));
            next = now + SAMPLE_NS;
        }
    }
    Ok(samples)
}

/// Returns the units of work in the window, with a constant speed between two samples.
fn between(work: &[(u64, u64)], from: u64, length: Duration) -> f64 {
    let by = |at: u64| {
        let next = work.partition_point(|&(time, _)| time < at);
        match (next.checked_sub(1).and_then(|before| work.get(before)), work.get(next)) {
            (Some(&(t0, w0)), Some(&(t1, w1))) => {
                w0 as f64 + (w1 - w0) as f64 * (at - t0) as f64 / (t1 - t0).max(1) as f64
            }
            (Some(&(_, done)), None) | (None, Some(&(_, done))) => done as f64,
            (None, None) => 0.0,
        }
    };
    by(from + length.as_ns()) - by(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_within_the_window() {
        let work = [(100, 10), (200, 20), (400, 22), (500, 32)];
        let of = |from, length| between(&work, from, Duration::from_ns(length));
        assert_eq!((of(100, 100), of(150, 50), of(200, 200), of(300, 150)), (10.0, 5.0, 2.0, 6.0));
        // Before the first sample and after the last one, nothing is known.
        assert_eq!((of(0, 100), of(500, 100), between(&[], 0, Duration::from_ns(5))), (0.0, 0.0, 0.0));
    }
}
