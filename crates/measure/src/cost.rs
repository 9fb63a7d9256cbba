//! What a lock costs that nobody else wants.

use super::pace::LEVEL;
use super::pace::Pace;
use super::subject::{ALL, Candidate, Subject, read_nothing};
use lockwright_engine::raw::{become_realtime, spawn};
use lockwright_engine::{Control, RunError};
use lockwright_locks::Slot;
use lockwright_sys::{SysError, cycles, sched, signal};

/// Readings a turn: the locks take turns, so that what happens to the machine happens to all.
const TURN: usize = 100;

/// Lock and unlock of every lock, without contention.
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// Cycles of the time-stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// Median cycles of a reading of nothing with warm caches, subtracted from the warm readings.
    pub harness_cycles: u64,
    /// The same with cold caches, subtracted from the cold readings; 0 where there are none.
    pub cold_harness_cycles: u64,
    /// Whether the readings were taken under SCHED_FIFO; without, anything may come between.
    pub realtime: bool,
    /// Each lock, warm, and then each cold where caches can be emptied.
    pub costs: Vec<Cost>,
}

/// The readings of one lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Its name.
    pub lock: &'static str,
    /// Whether the lock came from memory each time, rather than from the nearest cache.
    pub cold: bool,
    /// Cycles for lock and unlock together, ascending, not empty; the harness is subtracted.
    pub cycles: Vec<u64>,
}

impl Costs {
    /// How many readings each has.
    #[must_use]
    pub fn readings(&self) -> usize {
        self.costs.first().map_or(0, |cost| cost.cycles.len())
    }
}

impl Cost {
    /// The reading that a share of all readings does not exceed: 0 is the least, 1 the greatest.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let last = self.cycles.len() - 1;
        self.cycles[((share * last as f64).round() as usize).min(last)]
    }
}

/// Takes `readings` readings (at least one) of each lock, warm and cold, on one CPU. Where `control` is stopped, it takes no more.
///
/// # Errors
/// When the thread for it cannot be started or bound. Without the right to real-time priorities it measures all the same.
pub fn cost(readings: usize, control: &Control) -> Result<Costs, RunError> {
    cost_of(&ALL, readings, control)
}

pub(super) fn cost_of<S: Subject + ?Sized>(
    all: &'static [Candidate<S>],
    readings: usize,
    control: &Control,
) -> Result<Costs, RunError> {
    let control = control.clone();
    let thread = signal::with_all_blocked(|| spawn("measure", move || measure(all, readings.max(1), &control)))?;
    thread.join().map_err(|_| RunError::SetUp)?
}

fn measure<S: Subject + ?Sized>(
    candidates: &[Candidate<S>],
    readings: usize,
    control: &Control,
) -> Result<Costs, RunError> {
    // The last CPU: the first serves most interrupts.
    let cpu = sched::affinity()?.last().copied().unwrap_or(0);
    let realtime = become_measuring(cpu)?;
    let cycles_per_ns = cycles::per_ns();
    let slot = Slot::claim().ok_or(RunError::NoSlot)?;
    let pace = Pace::new(0);

    let mut costs = Vec::new();
    let mut harnesses = [0; 2];
    for cold in [false, true] {
        if cold && (!cycles::CAN_FLUSH || control.is_stopped()) {
            break;
        }
        let locks: Vec<Box<S>> = candidates.iter().map(|candidate| (candidate.new)()).collect();
        let mut all: Vec<Vec<u64>> = candidates.iter().map(|_| vec![0; readings]).collect();
        let mut nothing = vec![0; readings];
        let mut taken = 0;
        for from in (0..readings).step_by(TURN) {
            if taken > 0 && control.is_stopped() {
                break;
            }
            pace.rest();
            let turn = from..(from + TURN).min(readings);
            read_nothing(&mut nothing[turn.clone()], cold);
            for (lock, cycles) in locks.iter().zip(&mut all) {
                lock.read(&slot, cpu, &mut cycles[turn.clone()], cold);
            }
            taken = turn.end;
        }
        nothing.truncate(taken);
        nothing.sort_unstable();
        let harness = nothing[taken / 2];
        harnesses[usize::from(cold)] = harness;
        costs.extend(candidates.iter().zip(all).map(|(candidate, mut cycles)| {
            cycles.truncate(taken);
            cycles.iter_mut().for_each(|reading| *reading = reading.saturating_sub(harness));
            cycles.sort_unstable();
            Cost { lock: candidate.name, cold, cycles }
        }));
    }
    let [harness_cycles, cold_harness_cycles] = harnesses;
    Ok(Costs { cycles_per_ns, harness_cycles, cold_harness_cycles, realtime, costs })
}

/// Binds the calling thread to this CPU, above everything else if it may be. Says whether it may.
pub(super) fn become_measuring(cpu: usize) -> Result<bool, SysError> {
    let realtime = become_realtime(LEVEL, &[cpu]).is_ok();
    if !realtime {
        sched::set_affinity(sched::gettid(), &[cpu])?;
    }
    Ok(realtime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::all_slots;

    fn cost_of(cycles: &[u64]) -> Cost {
        Cost { lock: "lock", cold: false, cycles: cycles.to_vec() }
    }

    #[test]
    fn quantiles_are_readings() {
        let cost = cost_of(&(1..=1001).collect::<Vec<_>>());
        assert_eq!([0.0, 0.5, 0.999, 1.0].map(|share| cost.quantile(share)), [1, 501, 1000, 1001]);
        assert_eq!([0.0, 0.5, 1.0].map(|share| cost_of(&[7]).quantile(share)), [7; 3]);
    }

    #[test]
    fn each_lock_is_read_as_often_as_asked_for() {
        let _slots = all_slots();
        let costs = cost(250, &Control::new()).expect("needs no permission");
        assert!(costs.cycles_per_ns > 0.0);
        let warm: Vec<&Cost> = costs.costs.iter().filter(|cost| !cost.cold).collect();
        assert_eq!(warm.len(), ALL.len());
        assert!(costs.costs.iter().all(|cost| cost.cycles.len() == 250 && cost.cycles.is_sorted()));
    }

    #[test]
    fn stopped_it_says_what_it_has() {
        let control = Control::new();
        control.stop();
        let _slots = all_slots();
        let costs = cost(10 * TURN, &control).expect("needs no permission");
        assert!(costs.costs.iter().all(|cost| !cost.cold && cost.cycles.len() == TURN));
    }
}
