//! Burning CPU time: executes for exactly the demanded time, however often the thread is interrupted.
//!
//! The clock is read in a loop. A short step between two readings counts as execution. A long step is a *gap*: the
//! thread did not execute, because of a preemption, an interrupt or the host. A gap does not count, and is logged as
//! Stop at its start and Run at its end.

use crate::calibrate::Calibration;
use crate::control::Control;
use crate::log::Log;
use lockwright::raw::Waited;
use lockwright_model::{CpuId, Event};
use lockwright_sys::{clock, sched};
use std::sync::atomic::{AtomicU32, Ordering};

/// The execution of one thread.
#[derive(Debug)]
pub(crate) struct Burner<'a> {
    /// The CPU the thread was last sent to, and the CPU that was last logged.
    places: Option<(&'a AtomicU32, u32)>,
    /// The Linux numbers of the system's processors, if the kernel chooses among several; else empty.
    cluster: &'a [usize],
    gap_ns: u64,
    call_gap_ns: u64,
    /// The last reading of the clock while executing.
    last_ns: u64,
    /// Execution beyond the demand so far. It arises because the last step is never split, and counts for the next
    /// demand.
    ahead_ns: u64,
    pub(crate) log: Log,
}

impl<'a> Burner<'a> {
    pub(crate) fn new(calibration: &Calibration, log: Log) -> Self {
        let (gap_ns, call_gap_ns) = (calibration.gap.as_ns(), calibration.call_gap.as_ns());
        Self { places: None, cluster: &[], gap_ns, call_gap_ns, last_ns: 0, ahead_ns: 0, log }
    }

    /// Also logs each change of the processor on which the thread executes.
    pub(crate) fn at(self, places: &'a AtomicU32) -> Self {
        // ORDERING: Relaxed, here and in `note_place`: the value is only logged.
        Self { places: Some((places, places.load(Ordering::Relaxed))), ..self }
    }

    /// The kernel chooses where the thread executes; `cpus` are the Linux numbers of the system's processors.
    pub(crate) fn anywhere(self, cpus: &'a [usize]) -> Self {
        Self { cluster: cpus, ..self }
    }

    fn note_place(&mut self, at_ns: u64) {
        if let Some((places, known)) = &mut self.places {
            if !self.cluster.is_empty()
                && let Some(cpu) = sched::current_cpu()
                && let Some(place) = self.cluster.iter().position(|&known| known == cpu)
            {
                // The position is less than CPUS_MAX.
                places.store(place as u32, Ordering::Relaxed);
            }
            let now = places.load(Ordering::Relaxed);
            if now != *known {
                *known = now;
                self.log.push(at_ns, Event::Migrate(CpuId::new(now as usize)));
            }
        }
    }

    /// Continues after an intended wait. Returns the time.
    pub(crate) fn begin(&mut self) -> u64 {
        self.last_ns = clock::now_ns();
        self.ahead_ns = 0;
        self.note_place(self.last_ns);
        self.log.push(self.last_ns, Event::Run);
        self.last_ns
    }

    /// Logs an intended wait, which begins at the last reading of the clock.
    pub(crate) fn end(&mut self) {
        self.log.push(self.last_ns, Event::Stop);
    }

    /// The time, while executing.
    pub(crate) fn now(&mut self) -> u64 {
        self.step(self.gap_ns);
        self.last_ns
    }

    /// The time after a call that does not wait for a resource.
    pub(crate) fn after_call(&mut self) -> u64 {
        self.after_gap(self.call_gap_ns)
    }

    /// The time after a request that waited in this way.
    pub(crate) fn after_request(&mut self, waited: Waited) -> u64 {
        match waited {
            Waited::No => self.after_call(),
            Waited::Slept => self.after_gap(0),
            Waited::Spun => self.after_spinning(),
            Waited::SleptThenSpun { woken_ns } => {
                self.step_to(woken_ns, 0);
                self.after_spinning()
            }
        }
    }

    fn after_gap(&mut self, gap_ns: u64) -> u64 {
        self.step(gap_ns);
        // A migration within a call leaves no gap.
        self.note_place(self.last_ns);
        self.last_ns
    }

    /// Records a time that was read within a lock operation, later than the last reading.
    pub(crate) fn called(&mut self, at_ns: u64) {
        self.step_to(at_ns, self.call_gap_ns);
        self.note_place(at_ns);
    }

    /// The time after a wait that counts as execution.
    fn after_spinning(&mut self) -> u64 {
        self.last_ns = clock::now_ns();
        self.note_place(self.last_ns);
        self.last_ns
    }

    /// Executes for `demand_ns`. Returns false if the run was stopped before that.
    ///
    /// BOUND: one reading of the clock per step, until the demand is met or the run is stopped.
    pub(crate) fn burn(&mut self, demand_ns: u64, control: &Control) -> bool {
        let mut left = demand_ns.saturating_sub(self.ahead_ns);
        self.ahead_ns = self.ahead_ns.saturating_sub(demand_ns);
        while left > 0 {
            if control.is_stopped() {
                return false;
            }
            let step = self.step(self.gap_ns);
            self.ahead_ns += step.saturating_sub(left);
            left = left.saturating_sub(step);
        }
        true
    }

    /// Reads the clock. Returns the execution time since the last reading, or 0 if that was more than `gap_ns` ago.
    #[inline]
    fn step(&mut self, gap_ns: u64) -> u64 {
        self.step_to(clock::now_ns(), gap_ns)
    }

    #[inline]
    fn step_to(&mut self, now: u64, gap_ns: u64) -> u64 {
        let step = now - self.last_ns;
        let executed = if step > gap_ns {
            self.log.push(self.last_ns, Event::Stop);
            self.note_place(now);
            self.log.push(now, Event::Run);
            0
        } else {
            step
        };
        self.last_ns = now;
        executed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{Duration, Instant, TaskId};

    fn burner() -> Burner<'static> {
        let calibration = Calibration {
            clock_read: Duration::from_ns(30),
            priority_change: Duration::from_ns(900),
            gap: Duration::from_us(20),
            call_gap: Duration::from_us(50),
        };
        Burner::new(&calibration, Log::new(10_000))
    }

    #[test]
    fn gaps_do_not_count_as_execution() {
        let mut burner = burner();
        let start = burner.begin();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(burner.burn(3_000_000, &Control::new()));
        burner.end();
        let mut executed = 0;
        let mut since = None;
        for record in burner.log.records(TaskId(0), start) {
            match (record.event, since) {
                (Event::Run, None) => since = Some(record.at),
                (Event::Stop, Some(from)) => {
                    executed += record.at.since(from).as_ns();
                    since = None;
                }
                other => panic!("Run and Stop do not alternate: {other:?}"),
            }
        }
        assert!((3_000_000..3_000_000 + 20_000).contains(&executed), "{executed}");
        let first: Vec<_> = burner.log.records(TaskId(0), start).take(3).collect();
        assert_eq!(first[1].at, Instant::ZERO, "the sleep is a gap that begins at the start");
        assert!(first[2].at >= Instant::from_ns(2_000_000));
    }

    /// Only the sleep is no execution.
    #[test]
    fn a_request_is_recorded_as_it_waited() {
        let slept = |waited: fn(u64) -> Waited| {
            let mut burner = burner();
            let start = burner.begin();
            std::thread::sleep(std::time::Duration::from_millis(1));
            let woken_ns = clock::now_ns();
            std::thread::sleep(std::time::Duration::from_millis(1));
            let got = burner.after_request(waited(woken_ns));
            let records = burner.log.records(TaskId(0), start).skip(1);
            let gaps: Vec<_> = records.map(|record| (record.event, start + record.at.as_ns())).collect();
            (gaps, [start, woken_ns, got])
        };
        let gap = |from, until| [(Event::Stop, from), (Event::Run, until)];
        let (gaps, [start, _, got]) = slept(|_| Waited::Slept);
        assert_eq!(gaps, gap(start, got));
        assert_eq!(slept(|_| Waited::Spun).0, []);
        let (gaps, [start, woken, _]) = slept(|woken_ns| Waited::SleptThenSpun { woken_ns });
        assert_eq!(gaps, gap(start, woken));
        // A call that takes so long is a gap, although it did not wait.
        let (gaps, [start, _, got]) = slept(|_| Waited::No);
        assert_eq!(gaps, gap(start, got));
    }

    #[test]
    fn a_stopped_run_burns_nothing_more() {
        let control = Control::new();
        control.stop();
        let mut burner = burner();
        burner.begin();
        assert!(!burner.burn(u64::MAX, &control));
    }
}
