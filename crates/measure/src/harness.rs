//! The harness of all measurements: their threads, the turns they take, and their readings.

use super::pace::{LEVEL, Pace};
use lockwright::raw::WATCHDOG_LEVEL;
use lockwright_engine::raw::{END_NS, Ends, Gate, Muster, Place, become_realtime, spawn, wait_for_ends};
use lockwright_engine::{Control, RunError};
use lockwright_model::TaskId;
use lockwright_sys::sched::{self, ME};
use lockwright_sys::{SysError, clock, signal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Readings in ascending order; there is at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Readings(Vec<u64>);

impl Readings {
    /// Sorts `readings`. Returns `None` if there are none.
    #[must_use]
    pub fn new(mut readings: Vec<u64>) -> Option<Self> {
        readings.sort_unstable();
        (!readings.is_empty()).then_some(Self(readings))
    }

    /// The number of readings.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The least reading that at least this share of all readings does not exceed: 0 gives the least, 1 the greatest.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        // A product such as 0.07 * 100 is a little above the whole number.
        self.ranked((share * self.0.len() as f64 - 1e-6).ceil())
    }

    /// The reading with this rank, which begins with 1, or the nearest one.
    fn ranked(&self, rank: f64) -> u64 {
        self.0[(rank as usize).clamp(1, self.0.len()) - 1]
    }

    /// The mean, rounded up.
    #[must_use]
    pub fn mean(&self) -> u64 {
        mean(&self.0)
    }

    /// The mean and the greatest of all readings without the top 1 %, which interrupts and the host may have disturbed.
    #[must_use]
    pub fn usual(&self) -> (u64, u64) {
        let kept = &self.0[..(self.0.len() * 99).div_ceil(100).max(1)];
        (mean(kept), kept[kept.len() - 1])
    }

    /// The width of the 95 % confidence interval of the median: the distance of two readings, one on each side of it.
    fn median_width(&self) -> u64 {
        // The number of readings below the true median is binomial, with a standard deviation of sqrt(n) / 2.
        let count = self.0.len() as f64;
        let (middle, half) = (count / 2.0, 0.98 * count.sqrt());
        self.ranked((middle + half + 1.0).ceil()) - self.ranked((middle - half).floor())
    }
}

/// The mean of a list that is not empty, rounded up.
fn mean(readings: &[u64]) -> u64 {
    let sum: u128 = readings.iter().map(|&reading| u128::from(reading)).sum();
    u64::try_from(sum.div_ceil(readings.len() as u128)).unwrap_or(u64::MAX)
}

/// Readings of batches: each is the time of a batch of operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batches {
    /// The number of operations in each batch.
    pub count: u64,
    /// The times of the batches.
    pub total: Readings,
    /// The step of the clock that took the times.
    pub step: u64,
}

impl Batches {
    /// The least number of batches with a 95 % confidence interval of the median: of five, all are below it or above it
    /// with a probability of 1/16.
    pub const INTERVAL: usize = 6;

    /// The time of one operation in the batch that a share of all batches does not exceed.
    #[must_use]
    pub fn each(&self, share: f64) -> f64 {
        self.total.quantile(share) as f64 / self.count as f64
    }

    /// Half the width of the 95 % confidence interval of the median time of one operation, with the step of the clock.
    /// Of fewer than [`Batches::INTERVAL`] batches, there is none, and this is half the width of all of them.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.total.median_width().saturating_add(self.step) as f64 / (2 * self.count) as f64
    }
}

/// Something whose batches are timed: its description, the number of operations in a batch, and the function that
/// executes a batch and returns its time.
pub(super) struct Timed<'a, D> {
    pub(super) what: D,
    pub(super) count: u64,
    pub(super) batch: Box<dyn FnMut() -> u64 + 'a>,
}

/// Takes `readings` readings (at least one) of each of `all`, or fewer if `control` is stopped. They take turns, so
/// that a disturbance of the machine affects all of them. No batch is longer than `longest_ns`.
pub(super) fn in_turns<D>(
    mut all: Vec<Timed<'_, D>>,
    step: u64,
    readings: usize,
    longest_ns: u64,
    control: &Control,
) -> Vec<(D, Batches)> {
    let pace = Pace::new(longest_ns);
    let mut taken: Vec<Vec<u64>> = all.iter().map(|_| Vec::with_capacity(readings)).collect();
    for _ in 0..readings.max(1) {
        for (timed, taken) in all.iter_mut().zip(&mut taken) {
            pace.rest();
            taken.push((timed.batch)());
        }
        if control.is_stopped() {
            break;
        }
    }
    let batches = |(timed, taken): (Timed<'_, D>, Vec<u64>)| {
        Some((timed.what, Batches { count: timed.count, total: Readings::new(taken)?, step }))
    };
    all.into_iter().zip(taken).filter_map(batches).collect()
}

/// The CPU of measurements on one CPU: the last one, as the first serves most interrupts.
pub(super) fn one_cpu() -> Result<usize, RunError> {
    sched::affinity()?.last().copied().ok_or(RunError::SetUp)
}

/// Executes `body` on a thread of its own on this CPU, with all signals blocked, at the level of measurements if it has
/// permission. `body` learns whether it has, and looks for a stop. A thread that does not end is left behind.
///
/// BOUND: that of [`Muster::wait`], and that of `body`. If a thread of another program keeps the CPU: END_NS after a
/// stop.
pub(super) fn measuring<T: Send + 'static, E: From<RunError> + Send + 'static>(
    cpu: usize,
    control: &Control,
    body: impl FnOnce(bool) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    const ALONE: TaskId = TaskId::new(0);
    let (muster, gate, ends) = (Arc::default(), Arc::new(Gate::default()), Arc::new(Ends::new(1)));
    let place = Place::new(&muster);
    let (entrance, end, bell) = (Arc::clone(&gate), Arc::clone(&ends), control.clone());
    let whole = move || {
        let set_up = become_measuring(cpu);
        place.answer(set_up.map(drop).map_err(RunError::from));
        let Ok(realtime) = set_up else { return };
        if !entrance.pass() {
            return;
        }
        let measured = catch_unwind(AssertUnwindSafe(|| {
            if realtime {
                sched::set_level(ME, LEVEL).map_err(RunError::from)?;
            }
            body(realtime)
        }));
        end.leave(ALONE, measured.ok(), &bell);
    };
    let thread = signal::with_all_blocked(|| spawn("measure", whole))?;
    if let Err(error) = muster.wait(control) {
        gate.abandon();
        return Err(error.into());
    }
    gate.open();
    // This thread sleeps until the bell, because each look would be an interruption of the measurement.
    let ended = ends.wait(control, u64::MAX / 4, || control.is_stopped())
        || ends.wait(control, clock::now_ns() + END_NS, || false);
    if !ended {
        return Err(RunError::Stuck { tasks: vec![ALONE] }.into());
    }
    wait_for_ends(&[thread]);
    ends.take(ALONE).flatten().ok_or(RunError::SetUp)?
}

/// Binds the calling thread to this CPU, above all other threads if it has permission. Returns whether it has.
fn become_measuring(cpu: usize) -> Result<bool, SysError> {
    let realtime = become_realtime(WATCHDOG_LEVEL, &[cpu]).is_ok();
    if !realtime {
        sched::set_affinity(ME, &[cpu])?;
    }
    Ok(realtime)
}

/// Real-time threads of one measurement, which start together. If it is dropped before their start, they end unused.
pub(super) struct Crew<T> {
    muster: Arc<Muster>,
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<Option<T>>>,
}

impl<T: Send + 'static> Crew<T> {
    pub(super) fn new() -> Self {
        Self { muster: Arc::default(), gate: Arc::default(), threads: Vec::new() }
    }

    /// Adds a thread of this level on `cpus`, with all signals blocked.
    pub(super) fn add(
        &mut self,
        level: u8,
        cpus: &[usize],
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(), RunError> {
        let (gate, place, cpus) = (Arc::clone(&self.gate), Place::new(&self.muster), cpus.to_vec());
        let whole = move || {
            // A busy thread of another program may keep a thread of this level from executing.
            place.answer(become_realtime(WATCHDOG_LEVEL, &cpus).map_err(RunError::from));
            (gate.pass() && sched::set_level(ME, level).is_ok()).then(body)
        };
        self.threads.push(signal::with_all_blocked(|| spawn("measure", whole))?);
        Ok(())
    }

    /// Waits until all threads are set up, and starts them. Leaves threads behind that are not ready in time.
    ///
    /// BOUND: that of [`Muster::wait`].
    pub(super) fn start(&mut self, control: &Control) -> Result<(), RunError> {
        let ready = self.muster.wait(control);
        match ready {
            Ok(()) => self.gate.open(),
            Err(RunError::NotReady) => {
                self.gate.abandon();
                self.threads.clear();
            }
            Err(_) => {}
        }
        ready
    }

    /// Whether all threads have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the ends of the threads, which have been started and have no work left. Returns their results, in the
    /// order of addition. If some do not end, all are left behind.
    ///
    /// BOUND: that of [`wait_for_ends`].
    pub(super) fn join(mut self) -> Result<Vec<T>, RunError> {
        let threads = std::mem::take(&mut self.threads);
        let stuck = wait_for_ends(&threads);
        if !stuck.is_empty() {
            return Err(RunError::Stuck { tasks: stuck.into_iter().map(TaskId::new).collect() });
        }
        let ends: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
        ends.into_iter().map(|end| end.ok().flatten().ok_or(RunError::SetUp)).collect()
    }

    /// Leaves the threads behind, which do not end.
    pub(super) fn leave(mut self) {
        self.threads.clear();
    }
}

impl<T> Drop for Crew<T> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.gate.abandon();
            wait_for_ends(&self.threads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{alone, require_realtime};
    use std::time::{Duration, Instant};

    #[test]
    fn quantiles_are_readings() {
        let readings = Readings::new((1..=1001).collect()).expect("not empty");
        assert_eq!([0.0, 0.5, 0.999, 1.0].map(|share| readings.quantile(share)), [1, 501, 1000, 1001]);
        let few = Readings::new(vec![1, 2, 3, 4]).expect("not empty");
        assert_eq!([0.25, 0.26, 0.5, 0.75, 0.9].map(|share| few.quantile(share)), [1, 2, 2, 3, 4]);
        let hundred = Readings::new((1..=100).collect()).expect("not empty");
        assert!((1..=100).all(|rank| hundred.quantile(rank as f64 / 100.0) == rank));
        assert_eq!(Readings::new(vec![7]).map(|one| [0.0, 0.5, 1.0].map(|share| one.quantile(share))), Some([7; 3]));
    }

    #[test]
    fn the_top_percent_is_left_out() {
        let readings = Readings::new((1..=200).rev().collect()).expect("not empty");
        assert_eq!(
            (readings.count(), readings.quantile(0.0), readings.quantile(1.0), readings.mean()),
            (200, 1, 200, 101)
        );
        assert_eq!(readings.usual(), (100, 198));
        assert_eq!(Readings::new(vec![7]).map(|one| one.usual()), Some((7, 7)));
        assert_eq!(Readings::new(Vec::new()), None);
    }

    #[test]
    fn half_widths_have_the_spread_and_the_step() {
        let half_width = |total: Vec<u64>, step| {
            let total = Readings::new(total).expect("not empty");
            Batches { count: 10, total, step }.half_width()
        };
        // Of 10,000 readings, the interval has the ranks from 4,902 to 5,099: 98 on each side of the two middle ones.
        assert_eq!(half_width((1..=10_000).collect(), 4), (197.0 + 4.0) / 20.0);
        assert_eq!(half_width(vec![7; 100], 26), 1.3);
        assert_eq!(half_width(vec![1, 5], 2), 0.3, "few readings: all of them");
    }

    /// A thread of another program keeps the CPU of the measurement, above its level.
    #[test]
    fn a_stop_ends_the_set_up_of_a_measurement() {
        let Some(_machine) = require_realtime() else { return };
        let cpu = one_cpu().expect("a CPU set");
        if cpu == sched::affinity().expect("a CPU set")[0] {
            return;
        }
        let (begins, begun) = std::sync::mpsc::channel();
        let burner = std::thread::spawn(move || {
            become_realtime(WATCHDOG_LEVEL, &[cpu]).expect("permission was checked");
            begins.send(()).expect("the test waits");
            let until = Instant::now() + Duration::from_secs(4);
            // BOUND: `until`.
            while Instant::now() < until {}
        });
        begun.recv().expect("the thread begins");
        let control = Control::new();
        control.stop();
        let result = measuring(cpu, &control, |_| Ok::<_, RunError>(()));
        let burns = !burner.is_finished();
        burner.join().expect("it does not panic");
        assert_eq!((result, burns), (Err(RunError::NotReady), true));
    }

    #[test]
    fn a_measurement_that_does_not_end_is_left_after_a_stop() {
        let _machine = alone();
        let control = Control::new();
        let (begins, stop) = (Instant::now(), control.clone());
        let result = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                stop.stop();
            });
            measuring(one_cpu().expect("a CPU set"), &control, |_| {
                std::thread::sleep(Duration::from_nanos(END_NS) + Duration::from_secs(2));
                Ok::<_, RunError>(())
            })
        });
        assert_eq!(result, Err(RunError::Stuck { tasks: vec![TaskId::new(0)] }));
        assert!(begins.elapsed() < Duration::from_nanos(END_NS) + Duration::from_secs(1));
    }

    #[test]
    fn everything_timed_has_its_turns() {
        let timed = |what: u64| Timed { what, count: 10, batch: Box::new(move || what) };
        let control = Control::new();
        let seen = in_turns(vec![timed(3), timed(4)], 1, 5, 0, &control);
        let each: Vec<_> = seen.iter().map(|(what, all)| (*what, all.total.count(), all.each(0.5))).collect();
        assert_eq!(each, [(3, 5, 0.3), (4, 5, 0.4)]);
        control.stop();
        assert_eq!(in_turns(vec![timed(3)], 1, 5, 0, &control)[0].1.total.count(), 1, "one of each at least");
    }
}
