//! Spinlocks under contention.
//!
//! Each CPU has one task. The tasks have distinct priorities, and execute under SCHED_FIFO above all other threads. A
//! task waits for its next arrival, locks, holds the lock for one section, and then draws its next arrival.
//!
//! The locks take turns, so that a disturbance of the machine affects all of them, and all have the same arrivals. If
//! the sections of others do not explain the wait of a request, the request was *disturbed*: by an interrupt, by the
//! host, or by the share of the CPU that the kernel keeps for ordinary threads. Disturbed requests are counted, and
//! omitted from the means.

use super::pace::Pace;
use super::squad::{Duty, Orders, squad};
use super::subject::{ALL, Candidate, FIFO, Wanted};
use lockwright_engine::{Control, RunError};
use lockwright_locks::{Priority, SLOTS_MAX, Slot};
use lockwright_model::Duration;
use lockwright_sys::{clock, sched};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of turns of each lock.
const SLICES: usize = 10;
/// The time by which a wait may exceed the sections that ended meanwhile. If a section is longer, it is one section.
const SLACK_NS: u64 = 20_000;
/// A squad without progress for this time and PATIENCE_GAPS mean gaps between arrivals is stuck.
const PATIENCE_NS: u64 = 5_000_000_000;
const PATIENCE_GAPS: f64 = 50.0;

/// How the arrivals are distributed over the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// All tasks request equally often.
    Equal,
    /// Less important tasks request more often: the rates are as 1 : 2 : … : m, from the most important task on.
    Rising,
}

impl Arrivals {
    /// Returns the share of all arrivals that belong to the `task` most important ones of `tasks`.
    fn share_up_to(self, task: usize, tasks: usize) -> f64 {
        match self {
            Self::Equal => task as f64 / tasks as f64,
            Self::Rising => (task * (task + 1)) as f64 / (tasks * (tasks + 1)) as f64,
        }
    }

    /// Returns the task's number of requests, of all `requests`.
    fn requests_of(self, task: usize, tasks: usize, requests: usize) -> usize {
        let up_to = |task| (self.share_up_to(task, tasks) * requests as f64).round() as usize;
        up_to(task + 1) - up_to(task)
    }
}

/// The configuration of the measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionConfig {
    /// The length of a critical section.
    pub section: Duration,
    /// The number of requests of all tasks together, for each lock, rate and distribution of arrivals.
    pub requests: usize,
    /// Arrival rates of all tasks together, divided by the service rate, which is one section in the length of a
    /// section. Rates that are not positive numbers are left out.
    pub rates: Vec<f64>,
    /// The seed of the arrivals, which are the same for every lock.
    pub seed: u64,
}

/// The results of one lock at one rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Contended {
    /// The name of the lock.
    pub lock: &'static str,
    /// The distribution of the arrivals.
    pub arrivals: Arrivals,
    /// The arrival rate of all tasks, divided by the service rate.
    pub rate: f64,
    /// The number of tasks, one on each CPU.
    pub tasks: usize,
    /// The number of requests that were served.
    pub requests: u64,
    /// The number of them that were disturbed. These are in no mean.
    pub disturbed: u64,
    /// The mean of the tasks' mean waits, in nanoseconds. The weights are m for the most important task, down to 1.
    pub weighted_delay_ns: f64,
    /// The weighted delay divided by that of the FIFO lock in this run.
    pub weighted_delay_over_fifo: Option<OverFifo>,
    /// The mean wait of the most important task, in nanoseconds; `None` if it made no request.
    pub top_delay_ns: Option<f64>,
    /// The top delay divided by that of the FIFO lock in this run.
    pub top_delay_over_fifo: Option<OverFifo>,
    /// The mean number of sections that ended between a request and its own section.
    pub mean_sections_waited: f64,
    /// The greatest such number. The bound of a FIFO or batched lock is `tasks - 1`, plus the sections that end while
    /// an interrupt delays a task between counting and requesting.
    pub max_sections_waited: u64,
}

/// The ratios of a delay to that under the FIFO lock, one for each turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OverFifo {
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

impl OverFifo {
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.retain(|ratio| ratio.is_finite());
        ratios.sort_by(f64::total_cmp);
        let last = ratios.len().checked_sub(1)?;
        let at = |share: f64| ratios[(share * last as f64).round() as usize];
        Some(Self { median: at(0.5), low: at(0.25), high: at(0.75) })
    }
}

/// Measures every lock at every rate with every distribution of arrivals. `progress` receives the number of finished
/// parts and the number of all parts. If `control` is stopped, incomplete rates are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, if threads cannot be started, and if a thread does not return
/// from a lock.
pub fn contention(
    config: &ContentionConfig,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Contended>, RunError> {
    let cpus: Vec<usize> = sched::affinity()?.into_iter().take(SLOTS_MAX).collect();
    let section_ns = config.section.as_ns().max(1);
    // The last request of all tasks waits for all others.
    let pace = Pace::new(section_ns.saturating_mul(cpus.len() as u64));
    let rates: Vec<f64> = config.rates.iter().copied().filter(|&rate| rate > 0.0 && rate.is_finite()).collect();
    let parts = 2 * rates.len() * SLICES * ALL.len();
    let mut done = 0;
    let mut results: Vec<Contended> = Vec::new();
    for arrivals in [Arrivals::Equal, Arrivals::Rising] {
        for &rate in &rates {
            let mut turns: Vec<Vec<Vec<Waits>>> = vec![Vec::with_capacity(SLICES); ALL.len()];
            for slice in 0..SLICES {
                let requests = config.requests * (slice + 1) / SLICES - config.requests * slice / SLICES;
                for (candidate, turns) in ALL.iter().zip(&mut turns) {
                    let seed = config.seed.wrapping_add((slice * SLOTS_MAX) as u64);
                    let arena = Arena::new(candidate, cpus.len(), (arrivals, rate), section_ns, requests, seed, pace);
                    let patience_ns = PATIENCE_NS + (PATIENCE_GAPS * section_ns as f64 / rate).min(1e15) as u64;
                    let Some(waits) = squad(arena, &cpus, patience_ns, control)? else { return Ok(results) };
                    turns.push(waits);
                    done += 1;
                    progress(done, parts);
                }
            }
            let fifo = ALL.iter().position(|candidate| candidate.name == FIFO).map_or(&[][..], |fifo| &turns[fifo]);
            let locks = ALL.iter().zip(&turns);
            results.extend(locks.map(|(candidate, turns)| summary(candidate.name, arrivals, rate, turns, fifo)));
        }
    }
    Ok(results)
}

/// The observations of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Waits {
    requests: u64,
    disturbed: u64,
    /// The sum of the waits of undisturbed requests.
    sum_ns: u64,
    sections: u64,
    sections_max: u64,
}

impl Waits {
    fn note(&mut self, wait_ns: u64, sections: u64, section_ns: u64) {
        self.requests += 1;
        self.sections += sections;
        self.sections_max = self.sections_max.max(sections);
        let explained = sections.saturating_mul(section_ns).saturating_add(section_ns.max(SLACK_NS));
        if wait_ns > explained {
            self.disturbed += 1;
        } else {
            self.sum_ns += wait_ns;
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            disturbed: self.disturbed + other.disturbed,
            sum_ns: self.sum_ns + other.sum_ns,
            sections: self.sections + other.sections,
            sections_max: self.sections_max.max(other.sections_max),
        }
    }

    fn mean_ns(&self) -> Option<f64> {
        let counted = self.requests - self.disturbed;
        (counted > 0).then(|| self.sum_ns as f64 / counted as f64)
    }
}

/// Returns the mean of the tasks' mean waits, weighted by importance. Tasks without undisturbed requests are left out
/// of the sum and of the weights.
fn weighted_ns(tasks: &[Waits]) -> Option<f64> {
    let weights = (1..=tasks.len()).rev().map(|weight| weight as f64);
    let means = weights.zip(tasks).filter_map(|(weight, waits)| Some((weight, waits.mean_ns()?)));
    let (weights, sum) =
        means.fold((0.0, 0.0), |(weights, sum), (weight, mean)| (weights + weight, sum + weight * mean));
    (weights > 0.0).then(|| sum / weights)
}

fn top_ns(tasks: &[Waits]) -> Option<f64> {
    tasks.first().and_then(Waits::mean_ns)
}

/// Summarises the turns of one lock, and compares them with those of the FIFO lock.
fn summary(lock: &'static str, arrivals: Arrivals, rate: f64, turns: &[Vec<Waits>], fifo: &[Vec<Waits>]) -> Contended {
    let tasks = turns.first().map_or(0, Vec::len);
    let of_task = |task: usize| turns.iter().fold(Waits::default(), |sum, turn| sum.and(turn[task]));
    let each: Vec<Waits> = (0..tasks).map(of_task).collect();
    let all = each.iter().fold(Waits::default(), |sum, &waits| sum.and(waits));
    let over = |of: fn(&[Waits]) -> Option<f64>| {
        OverFifo::of(turns.iter().zip(fifo).filter_map(|(turn, fifo)| Some(of(turn)? / of(fifo)?)).collect())
    };
    Contended {
        lock,
        arrivals,
        rate,
        tasks,
        requests: all.requests,
        disturbed: all.disturbed,
        weighted_delay_ns: weighted_ns(&each).unwrap_or(0.0),
        weighted_delay_over_fifo: over(weighted_ns),
        top_delay_ns: top_ns(&each),
        top_delay_over_fifo: over(top_ns),
        mean_sections_waited: all.sections as f64 / all.requests.max(1) as f64,
        max_sections_waited: all.sections_max,
    }
}

/// The state that all tasks of one turn share.
struct Arena {
    lock: Box<dyn Wanted>,
    section_ns: u64,
    /// The number of requests of each task.
    requests: Vec<usize>,
    mean_gap_ns: Vec<f64>,
    seed: u64,
    pace: Pace,
    start_ns: u64,
    /// The number of sections that have ended.
    ended: AtomicU64,
}

impl Arena {
    /// The time for all tasks to reach their first arrival.
    const START_DELAY_NS: u64 = 1_000_000;

    fn new(
        candidate: &Candidate<dyn Wanted>,
        tasks: usize,
        (arrivals, rate): (Arrivals, f64),
        section_ns: u64,
        requests: usize,
        seed: u64,
        pace: Pace,
    ) -> Self {
        let share = |task| arrivals.share_up_to(task + 1, tasks) - arrivals.share_up_to(task, tasks);
        Self {
            lock: (candidate.new)(),
            section_ns,
            requests: (0..tasks).map(|task| arrivals.requests_of(task, tasks, requests)).collect(),
            mean_gap_ns: (0..tasks).map(|task| section_ns as f64 / (rate * share(task))).collect(),
            seed,
            pace,
            start_ns: clock::now_ns() + Self::START_DELAY_NS,
            ended: AtomicU64::new(0),
        }
    }

    /// Waits for an arrival. Sleeps through the part of each second that belongs to other threads, which delays the
    /// arrival by that time. Returns the time of the arrival, or `None` if the measurement is to end.
    ///
    /// BOUND: the arrival, or the order to stop.
    fn wait_until(&self, arrival: f64, orders: &Orders) -> Option<f64> {
        let mut arrival = arrival;
        loop {
            let now = clock::now_ns();
            if orders.is_stopped() {
                return None;
            } else if let Some(next) = self.pace.spent(now) {
                arrival += (next - now) as f64;
                // If the sleep is refused, the arrival is delayed nevertheless, and by no further time.
                if clock::sleep_until(next).is_err() {
                    return Some(arrival);
                }
            } else if now as f64 >= arrival {
                return Some(arrival);
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Duty for Arena {
    type Seen = Waits;

    /// Executes one task; 0 is the most important.
    ///
    /// BOUND: the task's requests, each after its gap.
    fn serve(&self, task: usize, slot: &Slot, orders: &Orders) -> Waits {
        let mut random = fastrand::Rng::with_seed(self.seed.wrapping_add(task as u64));
        let mut waits = Waits::default();
        let priority = Priority::new((self.requests.len() - task) as u32);
        let mut arrival = self.start_ns as f64;
        for _ in 0..self.requests[task] {
            arrival += -self.mean_gap_ns[task] * (1.0 - random.f64()).ln();
            let Some(arrived) = self.wait_until(arrival, orders) else { break };
            let asked = clock::now_ns();
            // ORDERING: Relaxed, here and below: these are only counts, and the lock orders those inside sections.
            let before = self.ended.load(Ordering::Relaxed);
            self.lock.section(slot, priority, &mut || {
                let entered = clock::now_ns();
                waits.note(entered - asked, self.ended.load(Ordering::Relaxed) - before, self.section_ns);
                while clock::now_ns() < entered + self.section_ns {
                    std::hint::spin_loop();
                }
                self.ended.fetch_add(1, Ordering::Relaxed);
            });
            orders.report_progress();
            arrival = arrived.max(clock::now_ns() as f64);
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(of: &[(u64, u64)], section_ns: u64) -> Waits {
        let mut waits = Waits::default();
        of.iter().for_each(|&(wait_ns, sections)| waits.note(wait_ns, sections, section_ns));
        waits
    }

    #[test]
    fn requests_are_distributed_by_rate() {
        for tasks in 1..=64 {
            for arrivals in [Arrivals::Equal, Arrivals::Rising] {
                for requests in [0, 1, 7, 1000] {
                    let each: Vec<usize> = (0..tasks).map(|task| arrivals.requests_of(task, tasks, requests)).collect();
                    assert_eq!(each.iter().sum::<usize>(), requests, "{arrivals:?} {tasks}");
                }
            }
        }
        let each = |arrivals: Arrivals| [0, 1, 2].map(|task| arrivals.requests_of(task, 3, 600));
        assert_eq!((each(Arrivals::Equal), each(Arrivals::Rising)), ([200; 3], [100, 200, 300]));
    }

    #[test]
    fn a_wait_that_sections_do_not_explain_is_disturbed() {
        const SECTION: u64 = 70_000;
        // Two sections ended meanwhile, and the rest of a third.
        let fine = waits(&[(0, 0), (SECTION, 0), (3 * SECTION, 2)], SECTION);
        assert_eq!((fine.requests, fine.disturbed, fine.sum_ns), (3, 0, 4 * SECTION));
        let late = waits(&[(0, 0), (SECTION + 1, 0), (3 * SECTION + 1, 2)], SECTION);
        assert_eq!((late.requests, late.disturbed, late.sum_ns), (3, 2, 0));
        assert_eq!((late.sections, late.sections_max), (2, 2), "they count as waits for sections");
        assert_eq!(waits(&[(SLACK_NS, 0)], 100).disturbed, 0, "short sections leave room for a hand-over");
        assert_eq!(waits(&[(u64::MAX, u64::MAX)], u64::MAX).disturbed, 0, "no overflow");
    }

    #[test]
    fn the_weighted_delay_leaves_out_tasks_without_requests() {
        let (short, long, none) = (waits(&[(10, 0)], 70_000), waits(&[(40, 0)], 70_000), Waits::default());
        // (2 * 10 + 1 * 40) / 3
        assert_eq!(weighted_ns(&[short, long]), Some(20.0));
        assert_eq!(weighted_ns(&[none, long]), Some(40.0));
        assert_eq!((weighted_ns(&[none]), weighted_ns(&[])), (None, None));
        assert_eq!((top_ns(&[short, long]), top_ns(&[none, long])), (Some(10.0), None));
    }

    #[test]
    fn turns_are_compared_with_those_of_fifo() {
        let turns = |waits_ns: &[u64]| -> Vec<Vec<Waits>> {
            waits_ns.iter().map(|&wait| vec![waits(&[(wait, 1)], 70_000)]).collect()
        };
        let fifo = turns(&[100, 200, 400, 800]);
        let seen = summary("lock", Arrivals::Equal, 1.0, &turns(&[50, 200, 800, 1200]), &fifo);
        assert_eq!(seen.weighted_delay_over_fifo, Some(OverFifo { median: 1.5, low: 1.0, high: 1.5 }));
        assert_eq!((seen.requests, seen.weighted_delay_ns, seen.mean_sections_waited), (4, 562.5, 1.0));
        let alone = summary("lock", Arrivals::Equal, 1.0, &turns(&[0]), &turns(&[0]));
        assert_eq!(alone.weighted_delay_over_fifo, None, "nothing over nothing");
    }

    #[test]
    fn invalid_rates_are_left_out() {
        let config = ContentionConfig {
            section: Duration::from_us(1),
            requests: 10,
            rates: vec![0.0, -1.0, f64::NAN, f64::INFINITY],
            seed: 1,
        };
        assert_eq!(contention(&config, &Control::new(), &mut |_, _| panic!("nothing is done")), Ok(Vec::new()));
    }
}
