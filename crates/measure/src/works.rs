//! The costs of the machine and its kernel.

use super::harness::{Crew, Readings};
use super::pace::LEVEL;
use lockwright::section::Lazy;
use lockwright_engine::{Control, RunError};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::sched::{self, ME};
use lockwright_sys::{SysError, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The number of readings in a turn. Protocols take turns, so that a disturbance of the machine affects all of them.
pub(super) const TURN: usize = 50;
/// The number of lazy sections in a reading; one is too short.
pub(super) const BATCH: u64 = 100;

/// The reading that is charged, of many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The mean without the top 1 %.
    Average,
    /// The greatest without the top 1 %.
    Worst,
    /// For the latency of releases and for interruptions, the greatest of all readings; for other operations, as
    /// `Worst`. Without the top 1 %, no interrupt is charged twice: once as an interruption and once in another
    /// reading.
    Latest,
}

impl Pick {
    pub(super) fn of(self, readings: &Readings) -> u64 {
        match self {
            Self::Average => readings.usual().0,
            Self::Worst | Self::Latest => readings.usual().1,
        }
    }

    pub(super) fn lateness(self, readings: &Readings) -> u64 {
        if self == Self::Latest { readings.quantile(1.0) } else { self.of(readings) }
    }
}

/// An operation of the machine and its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Work {
    /// A system call that does nothing, in and out.
    SystemCall,
    /// A change of the calling thread's priority.
    PriorityChange,
    /// A yield while no other thread of the level is ready.
    Yield,
    /// A yield to another thread of the same level.
    ContextSwitch,
    /// From waking a more urgent thread of the same processor until it executes.
    WakeHere,
    /// From waking a thread of another, idle processor until it executes.
    WakeThere,
    /// From the time until which a thread sleeps to its execution.
    ReleaseLatency,
    /// The time that the release of a more urgent thread takes from the running one: the interrupt, two switches, and
    /// the system call with which the released thread goes to sleep again.
    Release,
    /// An interruption of a running thread by the kernel, such as a tick of its timer.
    Tick,
    /// A migration to another processor.
    MigrationTo,
    /// The migration back.
    MigrationBack,
    /// A non-preemptive section by two priority changes, in and out.
    EagerSection,
    /// A non-preemptive section by the lazy word, in and out.
    LazySection,
    /// From the end of a section by priority changes to the execution of a more urgent thread that became ready in it.
    LeaveSection,
}

impl Work {
    /// All operations.
    pub const ALL: [Self; 14] = [
        Self::SystemCall,
        Self::PriorityChange,
        Self::Yield,
        Self::ContextSwitch,
        Self::WakeHere,
        Self::WakeThere,
        Self::ReleaseLatency,
        Self::Release,
        Self::Tick,
        Self::MigrationTo,
        Self::MigrationBack,
        Self::EagerSection,
        Self::LazySection,
        Self::LeaveSection,
    ];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SystemCall => "system call",
            Self::PriorityChange => "priority change",
            Self::Yield => "yield to nobody",
            Self::ContextSwitch => "yield to another",
            Self::WakeHere => "wake, same CPU",
            Self::WakeThere => "wake, other CPU",
            Self::ReleaseLatency => "release, lateness",
            Self::Release => "release, of another",
            Self::Tick => "tick",
            Self::MigrationTo => "migrate to",
            Self::MigrationBack => "migrate back",
            Self::EagerSection => "section, eager",
            Self::LazySection => "section, lazy",
            Self::LeaveSection => "leave, preempted",
        }
    }
}

/// The interruptions of a thread that has the highest priority, in one or more observations.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Interruptions {
    looks: Vec<Look>,
}

/// One observation: its length, and the begin (from its own begin) and the length of each interruption.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Look {
    length_ns: u64,
    taken: Vec<(u64, u64)>,
}

impl Interruptions {
    /// Returns the median time from the begin of one interruption to that of the next.
    #[must_use]
    pub fn period_ns(&self) -> Option<u64> {
        let pairs = self.looks.iter().flat_map(|look| look.taken.windows(2));
        Some(Readings::new(pairs.map(|pair| pair[1].0 - pair[0].0).collect())?.quantile(0.5))
    }

    /// Returns the time that was lost in windows of this length. Each window begins with an interruption, or is the
    /// last of its observation.
    fn within(&self, window_ns: u64) -> Option<Readings> {
        let windows = self.looks.iter().flat_map(|look| {
            let last = look.length_ns.checked_sub(window_ns);
            let from = look.taken.iter().filter_map(move |&(at, _)| Some(at.min(last?)));
            from.map(move |from| {
                let until = from + window_ns;
                let first = look.taken.partition_point(|&(at, took)| at + took <= from);
                let inside = look.taken[first..].iter().take_while(|&&(at, _)| at < until);
                inside.map(|&(at, took)| (at + took).min(until) - at.max(from)).sum()
            })
        });
        Readings::new(windows.collect())
    }

    /// Returns a period and the charge in each period, in nanoseconds. No window of that length lost more, within
    /// `pick`. A longer window therefore lost at most the charge in each period that it touches.
    pub(super) fn charged(&self, pick: Pick) -> Option<(u64, u64)> {
        if pick == Pick::Average {
            let period = self.period_ns()?;
            let taken: u128 = self.looks.iter().flat_map(|look| &look.taken).map(|&(_, took)| u128::from(took)).sum();
            let looked: u128 = self.looks.iter().map(|look| u128::from(look.length_ns)).sum();
            let share = (taken * u128::from(period)).div_ceil(looked.max(1));
            return Some((period, u64::try_from(share).ok()?));
        }
        let windows = WINDOWS_NS.into_iter().filter_map(|window| Some((window, pick.lateness(&self.within(window)?))));
        // The least share of a processor counts. Of equal shares it is that of the shorter window, which is more
        // precise for short times.
        windows.min_by_key(|&(window, taken)| u128::from(taken) * u128::from(WINDOWS_NS[WINDOWS_NS.len() - 1] / window))
    }
}

/// The readings of the machine and its kernel. One thread takes them, with a helper on its own or another processor.
pub(super) struct Works {
    cpus: Vec<usize>,
    control: Control,
    readings: Vec<Vec<u64>>,
    interruptions: Interruptions,
    turns: usize,
}

/// Gaps shorter than this are due to the clock itself.
const GAP_NS: u64 = 1_000;
/// The sleeps of a turn, after which the latency is measured.
const SLEEPS_NS: [u64; 10] =
    [50_000, 50_000, 100_000, 100_000, 200_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000];
/// The length of an observation of interruptions.
const LOOK_NS: u64 = 16_000_000;
/// The most interruptions in an observation: one in two microseconds.
const LOOK_INTERRUPTIONS: usize = 1 << 13;
/// The lengths of the windows in which interruptions are added up. Each divides the last one, which is the longest.
const WINDOWS_NS: [u64; 5] = [500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000];

impl Works {
    pub(super) fn new(cpus: &[usize], control: &Control) -> Self {
        Self {
            cpus: cpus.to_vec(),
            control: control.clone(),
            readings: vec![Vec::new(); Work::ALL.len()],
            interruptions: Interruptions::default(),
            turns: 0,
        }
    }

    fn note(&mut self, work: Work, ns: u64) {
        self.readings[work as usize].push(ns);
    }

    /// Notes the time of `operation`, without that of a reading of the clock.
    #[inline(always)]
    fn timed<T>(&mut self, work: Work, clock_ns: u64, operation: impl FnOnce() -> T) -> T {
        let before = clock::now_ns();
        let done = operation();
        let took = clock::now_ns() - before;
        self.note(work, took.saturating_sub(clock_ns));
        done
    }

    /// Takes TURN readings of each operation. Afterwards the thread is on the first processor.
    pub(super) fn turn(&mut self, clock_ns: u64) -> Result<(), RunError> {
        sched::set_affinity(ME, &[self.cpus[0]])?;
        for index in 0..TURN {
            self.timed(Work::SystemCall, clock_ns, sched::null_call);
            self.timed(Work::PriorityChange, clock_ns, || sched::set_level(ME, LEVEL + (index % 2) as u8))?;
            self.timed(Work::Yield, clock_ns, sched::yield_now);
        }
        sched::set_level(ME, LEVEL)?;
        if let [first, second, ..] = self.cpus[..] {
            for _ in 0..TURN / 5 {
                self.timed(Work::MigrationTo, clock_ns, || sched::set_affinity(ME, &[second]))?;
                self.timed(Work::MigrationBack, clock_ns, || sched::set_affinity(ME, &[first]))?;
            }
        }
        self.releases()?;
        self.sections(clock_ns);
        self.ticks(clock_ns);
        self.helped(clock_ns)
    }

    /// Measures the latency of releases. The thread sleeps as a task does until its next job, on each processor, and
    /// for long enough that the processor and its host become idle.
    fn releases(&mut self) -> Result<(), SysError> {
        let cpu = self.cpus[self.turns % self.cpus.len()];
        self.turns += 1;
        sched::set_affinity(ME, &[cpu])?;
        let word = AtomicU32::new(0);
        for sleep_ns in SLEEPS_NS {
            let at = clock::now_ns() + sleep_ns;
            // BOUND: `at`.
            while clock::now_ns() < at {
                futex::wait(Scope::Private, &word, 0, Some(Deadline::monotonic(at))).or_panic();
            }
            self.note(Work::ReleaseLatency, clock::now_ns().saturating_sub(at));
        }
        sched::set_affinity(ME, &[self.cpus[0]])
    }

    fn sections(&mut self, clock_ns: u64) {
        if let Ok(eager) = lockwright::section::Eager::new() {
            for _ in 0..TURN {
                self.timed(Work::EagerSection, clock_ns, || drop(eager.enter()));
            }
        }
        if let Ok(lazy) = Lazy::manage(self.cpus[0]) {
            for _ in 0..4 {
                let before = clock::now_ns();
                for _ in 0..BATCH {
                    drop(lazy.enter());
                }
                let after = clock::now_ns();
                self.note(Work::LazySection, (after - before) / BATCH);
            }
        }
    }

    fn ticks(&mut self, clock_ns: u64) {
        let start = clock::now_ns();
        let (mut last, mut taken) = (start, Vec::with_capacity(LOOK_INTERRUPTIONS));
        // BOUND: LOOK_NS and one interruption.
        while last - start < LOOK_NS {
            let now = clock::now_ns();
            let took = (now - last).saturating_sub(clock_ns);
            if took > GAP_NS && taken.len() < LOOK_INTERRUPTIONS {
                taken.push((last - start, took));
            }
            last = now;
        }
        taken.shrink_to_fit();
        taken.iter().for_each(|&(_, took)| self.note(Work::Tick, took));
        self.interruptions.looks.push(Look { length_ns: last - start, taken });
    }

    /// Measures the operations that need another thread.
    fn helped(&mut self, clock_ns: u64) -> Result<(), RunError> {
        let here = self.cpus[0];
        self.rounds(Work::ContextSwitch, Partner::Yields, here, LEVEL, clock_ns)?;
        self.rounds(Work::WakeHere, Partner::Sleeps, here, LEVEL + 1, clock_ns)?;
        if let Some(&there) = self.cpus.get(1) {
            self.rounds(Work::WakeThere, Partner::Sleeps, there, LEVEL + 1, clock_ns)?;
        }
        self.rounds(Work::LeaveSection, Partner::Delayed, here, LEVEL + 1, clock_ns)?;
        self.rounds(Work::Release, Partner::Released, here, LEVEL + 1, clock_ns)
    }

    /// Notes the readings of `partner`, less what each of them contains of other work.
    fn rounds(
        &mut self,
        work: Work,
        partner: Partner,
        cpu: usize,
        level: u8,
        contained_ns: u64,
    ) -> Result<(), RunError> {
        let seen = self.against(partner, cpu, level)?;
        seen.into_iter().for_each(|ns| self.note(work, ns.saturating_sub(contained_ns)));
        Ok(())
    }

    /// Executes the rounds of `partner` with a thread of this level on that processor. Returns what one of the two saw.
    fn against(&self, partner: Partner, cpu: usize, level: u8) -> Result<Vec<u64>, RunError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let mut crew = Crew::new();
        crew.add(level, &[cpu], move || partner.serve(&theirs))?;
        crew.start(&self.control)?;
        let own = partner.meet(&shared);
        let theirs = crew.join()?.concat();
        Ok(if own.is_empty() { theirs } else { own })
    }

    pub(super) fn end(self) -> (Vec<(Work, Readings)>, Interruptions) {
        let readings = Work::ALL.into_iter().zip(self.readings);
        let readings = readings.filter_map(|(work, ns)| Some((work, Readings::new(ns)?))).collect();
        (readings, self.interruptions)
    }
}

/// The behaviour of a helper.
#[derive(Clone, Copy)]
enum Partner {
    /// The helper and the caller yield to each other in turn.
    Yields,
    /// The helper sleeps until the caller wakes it.
    Sleeps,
    /// The helper sleeps until times of its own, and preempts the caller.
    Released,
    /// The helper becomes ready while the caller is in a section, and executes after the section.
    Delayed,
}

#[derive(Default)]
struct Shared {
    /// When the caller last did what the helper waits for.
    at_ns: AtomicU64,
    /// Until when the helper sleeps in this round.
    due_ns: AtomicU64,
    round: AtomicU32,
    answered: AtomicU32,
    done: AtomicBool,
}

/// The number of rounds with a helper in a turn.
const ROUNDS: u32 = 10;
/// The time from the begin of a section until the helper is ready, and from there to the end of the section.
const SECTION_NS: u64 = 60_000;
/// The longest wait of a helper.
const ROUND_NS: u64 = 100_000_000;

impl Shared {
    /// Begins a round of the caller.
    fn begin(&self, round: u32) {
        self.round.store(round, Ordering::SeqCst);
    }

    /// Wakes the helper, which sleeps until this round.
    fn wake(&self) {
        futex::wake(Scope::Private, &self.round, 1);
    }

    /// Sleeps until the caller begins the round, but no longer than ROUND_NS.
    fn sleep_until(&self, round: u32) {
        let until = clock::now_ns() + ROUND_NS;
        while self.round.load(Ordering::SeqCst) < round && clock::now_ns() < until {
            futex::wait(Scope::Private, &self.round, round - 1, Some(Deadline::monotonic(until))).or_panic();
        }
    }

    /// Yields until the helper has answered the round, or until `end`.
    fn await_answer(&self, round: u32, end: u64) {
        // BOUND: `end`.
        while self.answered.load(Ordering::SeqCst) < round && clock::now_ns() < end {
            sched::yield_now();
        }
    }
}

impl Partner {
    /// The rounds of the helper. Returns its readings.
    ///
    /// ORDERING: SeqCst throughout: the two threads take turns, and none of these accesses is in a reading.
    fn serve(self, shared: &Shared) -> Vec<u64> {
        let mut seen = Vec::with_capacity(ROUNDS as usize);
        for round in 1..=ROUNDS {
            match self {
                Self::Yields => {
                    // BOUND: the caller's next round, or its end.
                    while shared.round.load(Ordering::SeqCst) < round && !shared.done.load(Ordering::SeqCst) {
                        sched::yield_now();
                    }
                }
                Self::Sleeps => shared.sleep_until(round),
                Self::Released => _ = clock::sleep_until(clock::now_ns() + 200_000),
                Self::Delayed => {
                    shared.sleep_until(round);
                    let _ = clock::sleep_until(shared.due_ns.load(Ordering::SeqCst));
                }
            }
            let now = clock::now_ns();
            // If a delayed helper woke before the section had begun, there is no reading; a released one has none.
            let at_ns = shared.at_ns.swap(0, Ordering::SeqCst);
            seen.extend((at_ns > 0).then(|| now.saturating_sub(at_ns)));
            shared.answered.store(round, Ordering::SeqCst);
        }
        shared.done.store(true, Ordering::SeqCst);
        seen
    }

    /// The rounds of the caller. Returns its readings.
    fn meet(self, shared: &Shared) -> Vec<u64> {
        let end = clock::now_ns() + ROUND_NS;
        if matches!(self, Self::Released) {
            return gaps(shared, end);
        }
        let section = lockwright::section::Eager::new();
        for round in 1..=ROUNDS {
            match self {
                Self::Delayed => {
                    let due = clock::now_ns() + SECTION_NS;
                    shared.due_ns.store(due, Ordering::SeqCst);
                    shared.begin(round);
                    shared.wake();
                    let inside = section.as_ref().map(|section| section.enter());
                    // BOUND: twice the time of a section.
                    while clock::now_ns() < due + SECTION_NS {}
                    if inside.is_ok() {
                        shared.at_ns.store(clock::now_ns(), Ordering::SeqCst);
                    }
                    drop(inside);
                }
                Self::Sleeps => {
                    // The helper must be asleep, which takes time on another processor.
                    let _ = clock::sleep_until(clock::now_ns() + 30_000);
                    shared.at_ns.store(clock::now_ns(), Ordering::SeqCst);
                    shared.begin(round);
                    shared.wake();
                }
                Self::Yields | Self::Released => {
                    shared.at_ns.store(clock::now_ns(), Ordering::SeqCst);
                    shared.begin(round);
                    sched::yield_now();
                }
            }
            shared.await_answer(round, end);
        }
        shared.done.store(true, Ordering::SeqCst);
        Vec::new()
    }
}

/// Returns the interruptions of the calling thread until the helper has ended, or until `end`.
fn gaps(shared: &Shared, end: u64) -> Vec<u64> {
    let mut gaps = Vec::new();
    let mut last = clock::now_ns();
    // BOUND: `end`.
    while !shared.done.load(Ordering::SeqCst) && last < end {
        let now = clock::now_ns();
        if now - last > GAP_NS {
            gaps.push(now - last);
        }
        last = now;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_added_up_in_windows() {
        let us = |us: u64| us * 1_000;
        // A tick of 5 us each 4 ms, and one burst of three interruptions of 100 us within a millisecond.
        let ticks = || (0..4).map(|tick| (us(100 + tick * 4_000), us(5)));
        let burst = [(us(5_000), us(100)), (us(5_300), us(100)), (us(5_900), us(100))];
        let look = |taken: Vec<(u64, u64)>| Look { length_ns: us(16_000), taken };
        let mut all: Vec<(u64, u64)> = ticks().chain(burst).collect();
        all.sort_unstable();
        let quiet = Interruptions { looks: vec![look(ticks().collect())] };
        assert_eq!(quiet.period_ns(), Some(us(4_000)));
        // Two ticks in 8 ms are no greater share than one in 4 ms.
        assert_eq!(quiet.charged(Pick::Latest), Some((us(4_000), us(5))));
        assert_eq!(quiet.charged(Pick::Average), Some((us(4_000), us(5))));
        let bursts = Interruptions { looks: vec![look(all.clone()), look(ticks().collect())] };
        let most = |window| bursts.within(us(window)).map(|readings| readings.quantile(1.0));
        assert_eq!([500, 1_000, 4_000, 8_000].map(most), [200, 300, 305, 310].map(|taken| Some(us(taken))));
        assert_eq!(bursts.charged(Pick::Latest), Some((us(8_000), us(310))));
        // The last window of an observation counts. An observation shorter than a window has no window.
        let late = [(us(12_500), us(100)), (us(12_800), us(100)), (us(13_400), us(100))];
        let late = Interruptions { looks: vec![look(late.to_vec()), look(ticks().collect())] };
        assert_eq!(late.charged(Pick::Latest), Some((us(8_000), us(300))));
        assert_eq!(late.within(us(16_001)), None);
        assert_eq!(Interruptions::default().charged(Pick::Latest), None);
        assert_eq!(Interruptions::default().period_ns(), None);
        // No window of any length loses more than the charge in the periods that it touches.
        let (period, charged) = bursts.charged(Pick::Latest).expect("something was taken");
        for from in 0..160 {
            for length in 1..(160 - from) {
                let (from, until) = (us(from * 100), us((from + length) * 100));
                let inside = all.iter().filter(|(at, _)| (from..until).contains(at));
                let lost: u64 = inside.map(|&(at, took)| took.min(until - at)).sum();
                assert!(lost <= (until - from).div_ceil(period) * charged, "{from} {until}");
            }
        }
    }
}
