//! Tests on real threads that know when the machine disturbed them.
//!
//! Other threads, interrupts and the host take CPUs from the tasks of a run. An attempt that shows what it should has shown it. One
//! that does not is a failure if the tasks had their CPUs, and says nothing otherwise: it is made again.

use lockwright_engine::observe::{Gap, losses};
use lockwright_engine::{Outcome, Taker};
use lockwright_model::{Duration, System};
use std::time::{Duration as Wall, Instant as Clock};

/// For so long attempts are made again. Ordinary threads get their share of a CPU each second, and a busy host is busy for some.
const LIMIT: Wall = Wall::from_secs(60);
/// Before the second attempt, twice as long before each further one, and at most [`LONGEST_PAUSE`].
const PAUSE: Wall = Wall::from_millis(100);
const LONGEST_PAUSE: Wall = Wall::from_secs(2);
/// Who took CPUs is told of so many.
const SHOWN: usize = 4;

/// What an attempt has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// What it should.
    Holds,
    /// Something else, and nothing disturbed it.
    Fails(String),
    /// Something else, and the tasks did not have their CPUs.
    Disturbed { fault: String, by: String },
}

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    Holds,
    Fails(String),
    NotJudged(String),
}

/// Attempts until one can be judged.
///
/// BOUND: [`LIMIT`], and one attempt.
pub fn judge(name: &str, mut attempt: impl FnMut() -> Attempt) -> Judgement {
    let (began, mut pause) = (Clock::now(), PAUSE);
    for number in 1.. {
        match attempt() {
            Attempt::Holds => return Judgement::Holds,
            Attempt::Fails(fault) => return Judgement::Fails(fault),
            Attempt::Disturbed { fault, by } => {
                eprintln!("{name}, attempt {number}: not judged, disturbed by {by}\n  {fault}");
                if began.elapsed() > LIMIT {
                    let limit = LIMIT.as_secs();
                    let text = format!("{name}: not judged within {limit} s: disturbed by {by}\n  {fault}");
                    return Judgement::NotJudged(text);
                }
            }
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    unreachable!("a test ends by its limit")
}

/// Panics unless an attempt holds. What could not be judged is a failure where real time is required, and told aloud elsewhere.
pub fn require(name: &str, attempt: impl FnMut() -> Attempt) {
    match judge(name, attempt) {
        Judgement::Holds => {}
        Judgement::Fails(fault) => panic!("{name}: {fault}"),
        Judgement::NotJudged(why) => {
            assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{why}");
            eprintln!("{why}");
        }
    }
}

/// A wake-up takes less than this.
const WAKE_UP: Duration = Duration::from_us(100);
/// A CPU that has a job to execute is not idle for this long, nor do ordinary threads have it, whose share is 50 ms of a second: the job was not woken.
const FORGOTTEN: Duration = Duration::from_ms(100);

/// What tasks that could have executed lost to others.
#[derive(Debug)]
pub struct Lost {
    /// On all CPUs together.
    pub total: Duration,
    /// The same without what wake-ups and ticks take: of each time a CPU was lost, what is above [`WAKE_UP`].
    pub stalls: Duration,
    /// The longest time, in one piece, for which a CPU was idle or had other threads.
    pub away: Duration,
    /// In words: to whom, the most first.
    pub by: String,
}

impl Lost {
    /// In the whole of a run.
    pub fn of(system: &System, outcome: &Outcome) -> Self {
        let gaps = losses(system, &outcome.records);
        let total = gaps.iter().map(Gap::length).sum();
        let stalls = gaps.iter().map(|gap| gap.length().saturating_sub(WAKE_UP)).sum();
        let Some(occupancy) = &outcome.occupancy else {
            let by = format!("what took {total} (the kernel does not tell this user who)");
            return Self { total, stalls, away: Duration::ZERO, by };
        };
        let away = |gap: &Gap| -> Duration {
            let takers = occupancy.takers([gap]).into_iter();
            takers.filter(|(taker, _)| matches!(taker, Taker::Idle | Taker::Thread(_))).map(|(_, time)| time).sum()
        };
        let away = gaps.iter().map(away).max().unwrap_or_default();
        let takers = occupancy.takers(&gaps);
        let takers: Vec<String> = takers.iter().take(SHOWN).map(|(taker, time)| format!("{taker} {time}")).collect();
        Self { total, stalls, away, by: format!("{} ({total} in all)", takers.join(", ")) }
    }

    /// A job could have executed for long on a CPU that was idle or had ordinary threads: no disturbance explains that.
    pub fn forgotten(&self) -> Option<String> {
        (self.away > FORGOTTEN)
            .then(|| format!("a job could have executed, and its CPU did something else for {}", self.away))
    }
}
