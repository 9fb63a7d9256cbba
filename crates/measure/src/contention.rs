//! Locks that all CPUs want.
//!
//! One task a CPU, of distinct priorities, under SCHED_FIFO above everything that is not this measurement. Each waits for its next
//! arrival, asks for the lock, holds it for a section, and only then draws the next arrival: a closed source, as a core is.
//!
//! The locks take turns, SLICES of them, so that what happens to the machine happens to all; all meet the same arrivals. A request
//! that waited longer than sections explain met something else (an interrupt, the host, a share of the CPU that the
//! kernel keeps for others): such requests are counted, and left out of the means.

use super::pace::Pace;
use super::squad::{Duty, Orders, squad};
use super::subject::{ALL, Candidate, FIFO, Wanted};
use lockwright_engine::{Control, RunError};
use lockwright_locks::{Priority, SLOTS_MAX, Slot};
use lockwright_model::Duration;
use lockwright_sys::{clock, sched};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often each lock has its turn.
const SLICES: usize = 10;
/// How long a wait may be beyond the sections that ended meanwhile, if that is more than one section.
const SLACK_NS: u64 = 20_000;
/// A squad that does not get on for so long, and PATIENCE_GAPS mean gaps between arrivals, is stuck.
const PATIENCE_NS: u64 = 5_000_000_000;
const PATIENCE_GAPS: f64 = 50.0;

/// How often each task asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// All equally often.
    Equal,
    /// The less important, the more often: rates as 1 : 2 : … : m from the most important on.
    Rising,
}

impl Arrivals {
    /// The share of all arrivals that the `task` most important of `tasks` have.
    fn share_up_to(self, task: usize, tasks: usize) -> f64 {
        match self {
            Self::Equal => task as f64 / tasks as f64,
            Self::Rising => (task * (task + 1)) as f64 / (tasks * (tasks + 1)) as f64,
        }
    }

    /// How many of `requests` the task makes.
    fn requests_of(self, task: usize, tasks: usize, requests: usize) -> usize {
        let up_to = |task| (self.share_up_to(task, tasks) * requests as f64).round() as usize;
        up_to(task + 1) - up_to(task)
    }
}

/// What is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionConfig {
    /// Length of a critical section.
    pub section: Duration,
    /// Requests of all tasks of a lock together, for each rate and kind of arrivals.
    pub requests: usize,
    /// Arrival rates of all tasks together, as shares of the service rate, which is one section a section's length. Those that are not
    /// positive numbers are left out.
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
    pub requests: u64,
    /// Those of them that met more than sections; they are in no mean.
    pub disturbed: u64,
    /// Mean wait of each task, weighted from m for the most important to 1, in nanoseconds.
    pub weighted_delay_ns: f64,
    /// The same over that of the FIFO lock in this run.
    pub weighted_delay_over_fifo: Option<OverFifo>,
    /// Mean wait of the most important task, in nanoseconds, if it asked.
    pub top_delay_ns: Option<f64>,
    /// The same over that of the FIFO lock in this run.
    pub top_delay_over_fifo: Option<OverFifo>,
    /// Mean number of sections that ended between a request and its section.
    pub mean_sections_waited: f64,
    /// The greatest such number. The bound of a FIFO or batched lock is `tasks - 1`; what an interrupt puts between the count and the
    /// request adds to it.
    pub max_sections_waited: u64,
}

/// A delay over that under the FIFO lock, turn by turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OverFifo {
    /// Half of the turns are below.
    pub median: f64,
    /// A quarter of the turns is below.
    pub low: f64,
    /// A quarter of the turns is above.
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

/// Measures every lock with every rate and kind of arrivals. `progress` is told how many of how many parts are done. Where
/// `control` is stopped, the rates that were not measured to their end are left out.
///
/// # Errors
/// Without the right to real-time priorities; when threads cannot be started; when a lock does not come back.
pub fn contention(
    config: &ContentionConfig,
    control: &Control,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Contended>, RunError> {
    let cpus: Vec<usize> = sched::affinity()?.into_iter().take(SLOTS_MAX).collect();
    let section_ns = config.section.as_ns().max(1);
    // Who asks last waits for all others.
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

/// What one task saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Waits {
    requests: u64,
    disturbed: u64,
    /// Of those that were not disturbed.
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

/// Mean of the tasks' mean waits, weighted by importance; tasks without requests are left out, weight and all.
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

/// One lock's turns, held against those of the FIFO lock.
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

/// What all tasks of one turn share.
struct Arena {
    lock: Box<dyn Wanted>,
    section_ns: u64,
    /// Of each task.
    requests: Vec<usize>,
    mean_gap_ns: Vec<f64>,
    seed: u64,
    pace: Pace,
    start_ns: u64,
    /// Sections that have ended.
    ended: AtomicU64,
}

impl Arena {
    /// Time for all tasks to get to their first arrival.
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

    /// Waits for an arrival, and sleeps through the part of each second that is not this measurement's: by so much the arrival is
    /// later. Says when it was; `None` where there is to be an end.
    ///
    /// BOUND: the arrival, or the end.
    fn wait_until(&self, arrival: f64, orders: &Orders) -> Option<f64> {
        let mut arrival = arrival;
        loop {
            let now = clock::now_ns();
            if orders.is_stopped() {
                return None;
            } else if let Some(next) = self.pace.spent(now) {
                arrival += (next - now) as f64;
                // Refused, the arrival is late all the same, and nothing more is added to it: the share is not spent then.
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

    /// One task: 0 is the most important.
    ///
    /// BOUND: its requests, each after its gap.
    fn serve(&self, task: usize, slot: &Slot, orders: &Orders) -> Waits {
        let mut random = fastrand::Rng::with_seed(self.seed.wrapping_add(task as u64));
        let mut waits = Waits::default();
        let priority = Priority::new((self.requests.len() - task) as u32);
        let mut arrival = self.start_ns as f64;
        for _ in 0..self.requests[task] {
            arrival += -self.mean_gap_ns[task] * (1.0 - random.f64()).ln();
            let Some(arrived) = self.wait_until(arrival, orders) else { break };
            let asked = clock::now_ns();
            // ORDERING: Relaxed, here and below: counts alone, which the lock orders inside sections.
            let before = self.ended.load(Ordering::Relaxed);
            self.lock.section(slot, priority, &mut || {
                let entered = clock::now_ns();
                waits.note(entered - asked, self.ended.load(Ordering::Relaxed) - before, self.section_ns);
                while clock::now_ns() < entered + self.section_ns {
                    std::hint::spin_loop();
                }
                self.ended.fetch_add(1, Ordering::Relaxed);
            });
            orders.got_on();
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
    fn requests_are_shared_out_by_rate_and_none_is_lost() {
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
        // Two sections ended meanwhile, and what was left of a third.
        let fine = waits(&[(0, 0), (SECTION, 0), (3 * SECTION, 2)], SECTION);
        assert_eq!((fine.requests, fine.disturbed, fine.sum_ns), (3, 0, 4 * SECTION));
        let twin = waits(&[(0, 0), (SECTION + 1, 0), (3 * SECTION + 1, 2)], SECTION);
        assert_eq!((twin.requests, twin.disturbed, twin.sum_ns), (3, 2, 0));
        assert_eq!((twin.sections, twin.sections_max), (2, 2), "they count as waits for sections");
        assert_eq!(waits(&[(SLACK_NS, 0)], 100).disturbed, 0, "short sections leave room for a hand-over");
        assert_eq!(waits(&[(u64::MAX, u64::MAX)], u64::MAX).disturbed, 0, "no overflow");
    }

    #[test]
    fn the_weighted_delay_leaves_out_who_never_asked() {
        let (short, long, none) = (waits(&[(10, 0)], 70_000), waits(&[(40, 0)], 70_000), Waits::default());
        // (2 * 10 + 1 * 40) / 3
        assert_eq!(weighted_ns(&[short, long]), Some(20.0));
        assert_eq!(weighted_ns(&[none, long]), Some(40.0));
        assert_eq!((weighted_ns(&[none]), weighted_ns(&[])), (None, None));
        assert_eq!((top_ns(&[short, long]), top_ns(&[none, long])), (Some(10.0), None));
    }

    #[test]
    fn turns_are_held_against_the_same_turns_of_fifo() {
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
    fn rates_that_are_none_are_left_out() {
        let config = ContentionConfig {
            section: Duration::from_us(1),
            requests: 10,
            rates: vec![0.0, -1.0, f64::NAN, f64::INFINITY],
            seed: 1,
        };
        assert_eq!(contention(&config, &Control::new(), &mut |_, _| panic!("nothing is done")), Ok(Vec::new()));
    }
}
