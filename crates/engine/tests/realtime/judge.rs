//! Judges tests on real threads, and detects that the machine disturbed them.
//!
//! Other threads, interrupts and the host take CPUs from the tasks of a run. An attempt that shows the expected
//! behaviour passes. An attempt that does not is a failure if the tasks had their CPUs. Otherwise it proves nothing,
//! and is repeated.

use lockwright_engine::observe::{Gap, losses, unanswered_spins};
use lockwright_engine::{Outcome, Taker};
use lockwright_model::{Duration, System};
use lockwright_sys::sched;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration as Wall, Instant as Clock};

/// How many times slower than this machine's own the processors are, where the tests execute on emulated ones.
pub fn scale() -> u64 {
    std::env::var("TEST_TIME_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1)
}

/// How long attempts are repeated. Ordinary threads get their share of a CPU each second, and a host may be busy for
/// several seconds.
const LIMIT: Wall = Wall::from_secs(60);
/// The pause before the second attempt. It doubles for each further attempt, up to [`LONGEST_PAUSE`].
const PAUSE: Wall = Wall::from_millis(100);
const LONGEST_PAUSE: Wall = Wall::from_secs(2);
/// The number of takers that a message lists.
const SHOWN: usize = 4;

/// The result of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// It shows the expected behaviour.
    Holds,
    /// It shows another behaviour, and was not disturbed.
    Fails(String),
    /// It shows another behaviour, and the tasks did not have their CPUs.
    Disturbed { fault: String, by: String },
}

/// The result of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    Holds,
    Fails(String),
    NotJudged(String),
}

/// Repeats attempts until one can be judged.
///
/// BOUND: [`LIMIT`], plus one attempt.
pub fn judge(name: &str, attempt: impl FnMut() -> Attempt) -> Judgement {
    let _beats = Beats::start();
    judge_within(LIMIT, name, attempt)
}

/// Writes a line on the error output, also from a test that passes, whose output the test program discards otherwise.
pub fn tell(text: &str) {
    // Without an error output, nobody would read it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn judge_within(limit: Wall, name: &str, mut attempt: impl FnMut() -> Attempt) -> Judgement {
    let (began, mut pause) = (Clock::now(), PAUSE);
    for number in 1.. {
        match attempt() {
            Attempt::Holds => return Judgement::Holds,
            Attempt::Fails(fault) => return Judgement::Fails(fault),
            Attempt::Disturbed { fault, by } => {
                eprintln!("{name}, attempt {number}: not judged, disturbed by {by}\n  {fault}");
                if began.elapsed() > limit {
                    let text = format!("{name}: not judged within {limit:?}: disturbed by {by}\n  {fault}");
                    return Judgement::NotJudged(text);
                }
            }
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    unreachable!("the limit ends a test")
}

/// Panics unless an attempt holds. If no attempt can be judged, panics if real time is required, and else prints a
/// message.
pub fn require(name: &str, attempt: impl FnMut() -> Attempt) {
    match judge(name, attempt) {
        Judgement::Holds => {}
        Judgement::Fails(fault) => panic!("{name}: {fault}"),
        Judgement::NotJudged(why) => {
            assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{why}");
            tell(&why);
        }
    }
}

/// The longest loss of a CPU that counts as a wake-up.
const WAKE_UP: Duration = Duration::from_us(100);
/// The longest time for which a CPU with a job to execute may be idle or execute ordinary threads, whose share is 50 ms
/// of each second. If it lasts longer, the job was not woken. On emulated processors, all takes longer.
fn forgotten() -> Duration {
    Duration::from_ms(100 * scale())
}

/// The name of the threads that [`Beats`] starts.
const BEAT: &str = "beat";
/// The distance of two beats.
const BEAT_MS: u64 = 5;
/// A CPU without a beat in this time executed more urgent threads, or stood still.
const SILENCE_MS: u64 = 30;

/// Ordinary threads, one on each CPU, that execute for a moment every [`BEAT_MS`], until they are dropped.
///
/// They tell a CPU that is idle from one that the host has stopped: the kernel's record of context switches shows both
/// as idle, or with the thread that was stopped.
pub struct Beats {
    has_ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Beats {
    pub fn start() -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let beat = |cpu| {
            let has_ended = Arc::clone(&has_ended);
            let beat = move || {
                // Where the CPU is not allowed any more, no run is executed on it.
                if sched::set_affinity(sched::gettid(), &[cpu]).is_err() {
                    return;
                }
                while !has_ended.load(Ordering::Relaxed) {
                    std::thread::sleep(Wall::from_millis(BEAT_MS * scale()));
                }
            };
            Builder::new().name(BEAT.into()).spawn(beat).expect("a thread")
        };
        let threads = sched::affinity().expect("a set of CPUs").into_iter().map(beat).collect();
        Self { has_ended, threads }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A second panic would end the process.
            let _ = thread.join();
        }
    }
}

/// The parts of a gap in which a silence can be noticed.
fn parts(gap: &Gap) -> impl Iterator<Item = Gap> {
    let (gap, part) = (*gap, Duration::from_ms(SILENCE_MS * scale()));
    let starts = std::iter::successors(Some(gap.from), move |&from| Some(from + part));
    starts.take_while(move |&from| from < gap.until).map(move |from| Gap {
        from,
        until: gap.until.min(from + part),
        ..gap
    })
}

/// The CPU time that tasks could have used and lost to others.
#[derive(Debug)]
pub struct Lost {
    /// The sum over all CPUs.
    pub total: Duration,
    /// The sum without wake-ups and ticks: of each loss, the part beyond [`WAKE_UP`].
    pub stalls: Duration,
    /// The longest single loss in which a CPU was idle or executed other threads, without the parts in which no beat
    /// shows that it did not stand still.
    pub away: Duration,
    /// The stretches that the engine may not have caused: those without idle parts in which beats show that the CPU did
    /// not stand still, and those in which others had the CPU, mostly, while a job of it spun for a resource without an
    /// owner.
    #[allow(dead_code, reason = "the tests of the scenarios use it")]
    pub gaps: Vec<Gap>,
    /// The takers in words, the largest loss first.
    pub by: String,
}

impl Lost {
    /// Computes the losses of a whole run.
    pub fn of(system: &System, outcome: &Outcome) -> Self {
        let mut gaps = losses(system, &outcome.records);
        let mut total = gaps.iter().map(Gap::length).sum();
        let mut stalls = gaps.iter().map(|gap| gap.length().saturating_sub(WAKE_UP)).sum();
        let Some(occupancy) = &outcome.occupancy else {
            let by = format!("losses of {total} (the kernel does not disclose the takers to this user)");
            return Self { total, stalls, away: Duration::ZERO, gaps, by };
        };
        // The time of these takers in the parts of a gap in which beats show that the CPU did not stand still.
        let alive = |gap: &Gap, is_meant: fn(&Taker) -> bool| -> Duration {
            let alive = parts(gap).map(|part| occupancy.takers([&part]));
            let alive = alive.filter(|takers| takers.iter().any(|(taker, _)| *taker == Taker::Thread(BEAT.into())));
            alive.flatten().filter(|(taker, _)| is_meant(taker)).map(|(_, time)| time).sum()
        };
        let is_away = |taker: &Taker| matches!(taker, Taker::Idle | Taker::Thread(_));
        let away = gaps.iter().map(|gap| alive(gap, is_away)).max().unwrap_or_default();
        // A job that spins has its CPU in the kernel's record. If it is handed a resource late, no other thread has it.
        let others = |gap: &Gap| -> Duration {
            let takers = occupancy.takers([gap]).into_iter();
            takers.filter(|(taker, _)| *taker != Taker::Machine).map(|(_, time)| time).sum()
        };
        let mut spins = unanswered_spins(system, &outcome.records);
        spins.retain(|gap| others(gap) > WAKE_UP);
        total += spins.iter().map(others).sum();
        stalls += spins.iter().map(|gap| others(gap).saturating_sub(WAKE_UP)).sum();
        let takers = occupancy.takers(gaps.iter().chain(&spins));
        let takers: Vec<String> = takers.iter().take(SHOWN).map(|(taker, time)| format!("{taker} {time}")).collect();
        let by = format!("{} ({total} in all)", takers.join(", "));
        gaps.retain(|gap| alive(gap, |taker| *taker == Taker::Idle) <= WAKE_UP);
        spins.retain(|gap| others(gap).as_ns() * 2 > gap.length().as_ns());
        gaps.append(&mut spins);
        Self { total, stalls, away, gaps, by }
    }

    /// Returns a message if a job could have executed for long on a CPU that was idle or executed ordinary threads. No
    /// disturbance explains that.
    pub fn forgotten(&self) -> Option<String> {
        (self.away > forgotten())
            .then(|| format!("a job could have executed, and its CPU did not execute it for {}", self.away))
    }
}

#[test]
fn a_disturbed_attempt_is_repeated() {
    let mut attempts = 0;
    let judgement = judge_within(LIMIT, "a test", || {
        attempts += 1;
        if attempts == 1 { Attempt::Disturbed { fault: "late".into(), by: "others".into() } } else { Attempt::Holds }
    });
    assert_eq!((judgement, attempts), (Judgement::Holds, 2));
}

#[test]
fn an_undisturbed_fault_is_a_failure_at_once() {
    let mut attempts = 0;
    let judgement = judge_within(LIMIT, "a test", || {
        attempts += 1;
        Attempt::Fails("late".into())
    });
    assert_eq!((judgement, attempts), (Judgement::Fails("late".into()), 1));
}

#[test]
fn a_test_that_is_always_disturbed_does_not_pass() {
    let disturbed = || Attempt::Disturbed { fault: "late".into(), by: "others".into() };
    match judge_within(Wall::from_millis(50), "a test", disturbed) {
        Judgement::NotJudged(why) => assert!(why.contains("50ms: disturbed by others\n  late"), "{why}"),
        judgement => panic!("{judgement:?}"),
    }
}
