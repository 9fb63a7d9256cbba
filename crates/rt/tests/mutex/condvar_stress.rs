//! No signal gets lost, beside deadlines, interruptions and other signals.

use crate::support::*;
use lockwright::mutex::{Builder, Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time after which a token beside a waiter counts as a lost signal.
const LOST_AFTER: Duration = Duration::from_secs(3);

struct Store {
    tokens: Mutex<u64>,
    filled: Condvar,
    taken: AtomicU64,
    /// The tokens that were there for that time without a signal to their waiter.
    lost: AtomicU64,
}

impl Store {
    /// Creates the state in memory that children share.
    fn new(kind: Builder, condvar: Condvar) -> Shared<Self> {
        let (taken, lost) = (AtomicU64::new(0), AtomicU64::new(0));
        Shared::new(Self { tokens: kind.build(0), filled: condvar, taken, lost })
    }

    /// Consumes tokens until all of `tokens` are consumed, patiently or with deadlines that race with the signals. A
    /// lost signal leaves a token beside a waiter, which shows if all waiters are patient.
    fn consume(&self, seed: u64, is_patient: bool, tokens: u64) {
        let mut chance = Chance::new(seed + 3);
        loop {
            let mut left = self.tokens.lock().expect("the lock succeeds");
            // ORDERING: Relaxed, here and below: the mutex orders them.
            if self.taken.load(Ordering::Relaxed) == tokens || self.lost.load(Ordering::Relaxed) > 0 {
                return;
            }
            if *left == 0 {
                let limit = if is_patient { LOST_AFTER } else { Duration::from_micros(chance.below(150)) };
                let start = Instant::now();
                left = self.filled.wait_for(left, limit).expect("the wait succeeds").0;
                // The return value of the wait is not used: a wait may also return "woken" if the signal woke another
                // waiter, or none.
                let is_lost = start.elapsed() >= LOST_AFTER && *left > 0;
                self.lost.fetch_add(u64::from(is_lost), Ordering::Relaxed);
            }
            if *left > 0 {
                *left -= 1;
                if self.taken.fetch_add(1, Ordering::Relaxed) + 1 == tokens {
                    self.filled.broadcast();
                }
            }
        }
    }

    /// Adds a token and signals, alternately with and without the mutex.
    fn produce(&self, seed: u64, tokens: u64) {
        let mut chance = Chance::new(seed + 17);
        for _ in 0..tokens {
            let mut left = self.tokens.lock().expect("the lock succeeds");
            *left += 1;
            if chance.below(2) == 0 {
                self.filled.signal();
                drop(left);
            } else {
                drop(left);
                self.filled.signal();
            }
            match chance.below(4) {
                0 => spin(Duration::from_micros(chance.below(80))),
                1 => std::thread::yield_now(),
                _ => {}
            }
        }
    }

    #[track_caller]
    fn is_empty_after(&self, tokens: u64, kind: Builder) {
        assert_eq!(self.lost.load(Ordering::Relaxed), 0, "{kind:?}: a signal was lost");
        assert_eq!(self.taken.load(Ordering::Relaxed), tokens, "{kind:?}");
        assert_eq!(*self.tokens.lock().expect("the lock succeeds"), 0, "{kind:?}");
    }
}

const TOKENS: u64 = 300;
const PRODUCERS: u64 = 2;
const CONSUMERS: u64 = 4;

/// Between threads of one process.
fn tokens_pass(kind: Builder, condvar: Condvar) {
    let store = Store::new(kind, condvar);
    let ours = store.0;
    let consumers = (0..CONSUMERS).map(|seed| Player::enter(None, move || ours.consume(seed, seed % 2 == 0, TOKENS)));
    let consumers: Vec<_> = consumers.collect();
    let producers = (0..PRODUCERS).map(|seed| Player::enter(None, move || ours.produce(seed, TOKENS / PRODUCERS)));
    producers.collect::<Vec<_>>().into_iter().chain(consumers).for_each(Player::end);
    ours.is_empty_after(TOKENS, kind);
}

#[test]
fn no_signal_gets_lost() {
    let Some(_stage) = Stage::beside_others() else { return };
    for kind in kinds() {
        tokens_pass(kind, Condvar::new());
    }
    for kind in kinds().into_iter().step_by(5) {
        tokens_pass(kind, Condvar::shared());
    }
}

/// Several processes signal at the same time while others wait: each token reaches one of them.
#[test]
fn no_signal_between_processes_gets_lost() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds().into_iter().filter(|kind| format!("{kind:?}").contains("shared: true")).step_by(4) {
        let store = Store::new(kind, Condvar::shared());
        let begin = Shared::new(AtomicU64::new(0));
        let child = |body: &dyn Fn()| {
            Child::start(|| {
                // ORDERING: Relaxed: only so that they begin together.
                begin.0.fetch_add(1, Ordering::Relaxed);
                until("all begin", || begin.0.load(Ordering::Relaxed) == PRODUCERS + CONSUMERS);
                body();
                true
            })
        };
        let consumers = (0..CONSUMERS).map(|seed| child(&|| store.0.consume(seed, true, TOKENS)));
        let producers = (0..PRODUCERS).map(|seed| child(&|| store.0.produce(seed, TOKENS / PRODUCERS)));
        let children: Vec<_> = consumers.chain(producers).collect();
        let failed = children.iter().filter(|child| !child.end()).count();
        store.0.is_empty_after(TOKENS, kind);
        assert_eq!(failed, 0, "{kind:?}: processes");
    }
}

/// Each side waits for the other without a deadline, so one lost signal stops the test.
#[test]
fn two_threads_wait_for_each_other() {
    const ROUNDS: u64 = 400;
    let Some(_stage) = Stage::beside_others() else { return };
    for kind in kinds() {
        let table = Arc::new((kind.build(0_u64), [Condvar::new(), Condvar::new()]));
        let players = [0, 1].map(|parity| {
            let table = Arc::clone(&table);
            Player::enter(None, move || {
                for _ in 0..ROUNDS {
                    let mut turn = table.0.lock().expect("the lock succeeds");
                    while *turn % 2 != parity {
                        turn = table.1[parity as usize].wait(turn).expect("the wait succeeds");
                    }
                    *turn += 1;
                    if *turn % 3 == 0 {
                        drop(turn);
                    }
                    table.1[1 - parity as usize].signal();
                }
            })
        });
        players.into_iter().for_each(Player::end);
        assert_eq!(*table.0.lock().expect("the lock succeeds"), 2 * ROUNDS, "{kind:?}");
    }
}

/// Signals of the operating system end waits, and have no other effect.
#[test]
fn interruptions_only_end_waits() {
    let Some(_stage) = Stage::set() else { return };
    let_interrupt(libc::SIGUSR2);
    for kind in kinds() {
        let store = Arc::new((kind.build(0_u64), Condvar::new()));
        let ours = Arc::clone(&store);
        let waiter = Player::enter(None, move || {
            let mut rounds = 0_u64;
            let mut guard = ours.0.lock().expect("the lock succeeds");
            while *guard < 40 {
                guard = ours.1.wait(guard).expect("the wait succeeds");
                assert!(matches!(ours.0.try_lock(), Err(lockwright::mutex::LockError::Busy)), "{kind:?}");
                rounds += 1;
            }
            rounds
        });
        for _ in 0..40 {
            // SAFETY: the thread ends only after the last of the increments below.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiter.tid, libc::SIGUSR2) };
            let mut guard = store.0.lock().expect("the lock succeeds");
            *guard += 1;
            store.1.signal();
        }
        assert!(waiter.end() <= 81, "{kind:?}");
        assert!(store.0.try_lock().is_ok(), "{kind:?}");
    }
}

/// A waiter leaves and its mutex is unmapped while a thread that does not hold it signals. An access to the mutex
/// afterwards would end the process.
#[test]
fn a_signal_does_not_access_an_unmapped_mutex() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        let (condvar, over) = (Arc::new(Condvar::new()), Arc::new(AtomicU64::new(0)));
        let signals = Player::enter(None, {
            let (condvar, over) = (Arc::clone(&condvar), Arc::clone(&over));
            move || {
                while over.load(Ordering::Relaxed) == 0 {
                    condvar.signal();
                    condvar.broadcast();
                }
            }
        });
        let mut chance = Chance::new(3);
        for _ in 0..4_000 {
            let shared = Shared::new(Mutex::builder().protocol(protocol).build(()));
            let guard = shared.0.lock().expect("the mutex is free");
            let (guard, _) =
                condvar.wait_for(guard, Duration::from_micros(chance.below(30))).expect("the wait succeeds");
            drop(guard);
        }
        over.store(1, Ordering::Relaxed);
        signals.end();
    }
}
