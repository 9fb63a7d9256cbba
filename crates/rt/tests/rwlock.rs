//! Reader-writer locks on real threads and processes, through the public interface.
//!
//! Tests that need levels of SCHED_FIFO print the reason and pass if the permission is missing; with
//! LOCKWRIGHT_REQUIRE_RT set they fail. Each has a watchdog above all its threads.

#[path = "../../sys/tests/support/machine.rs"]
mod machine;
#[path = "mutex/support.rs"]
#[allow(dead_code, reason = "for the other tests of mutexes")]
mod support;

use lockwright::mutex::{Limit, Mutex, RawError};
use lockwright::rwlock::{RawRwLock, RwLock, RwLockError};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};
use support::*;

const LONG: Duration = Duration::from_secs(20);

/// Waits until a thread is suspended at a word of this lock.
#[track_caller]
fn until_waiting_in<T>(tid: u32, lock: &T) {
    let begin = std::ptr::from_ref(lock).addr();
    until("a thread waits for the lock", || {
        let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap_or_default();
        let mut fields = call.split_whitespace();
        let is_futex = fields.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex);
        let first = fields.next().and_then(|first| usize::from_str_radix(first.trim_start_matches("0x"), 16).ok());
        is_futex && first.is_some_and(|first| (begin..begin + size_of::<T>()).contains(&first))
    });
}

/// How the threads of a stress lock.
#[derive(Clone, Copy)]
struct Locking {
    read: fn(&RawRwLock, Limit) -> Result<(), RawError>,
    write: fn(&RawRwLock, Limit) -> Result<(), RawError>,
    unlock_read: fn(&RawRwLock) -> Result<(), RawError>,
    unlock_write: fn(&RawRwLock) -> Result<(), RawError>,
}

const LOCKS: Locking = Locking {
    read: RawRwLock::read,
    write: RawRwLock::write,
    unlock_read: RawRwLock::unlock_read,
    unlock_write: RawRwLock::unlock_write,
};

/// The mutant: readers exclude nobody.
const LOCKS_NOT: Locking = Locking { read: |_, _| Ok(()), unlock_read: |_| Ok(()), ..LOCKS };

/// Threads of all levels on all processors read and write a pair of equal numbers, and give up now and then. Returns
/// whether no reader saw different numbers and no increment was lost.
fn stress(locking: Locking, threads: u64, rounds: u64) -> bool {
    let Some(_stage) = Stage::set_for(Duration::from_secs(120)) else { return true };
    let lock = Arc::new((RawRwLock::new(false, 0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)));
    let cpus = cpus();
    let players: Vec<_> = (0..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            let cpu = cpus[index as usize % cpus.len()];
            Player::enter(Some((10 + index as u8, cpu)), move || {
                let (raw, one, other, written) = &*lock;
                let mut chance = Chance::new(index + 1);
                let mut is_right = true;
                for _ in 0..rounds {
                    let limit = match chance.below(8) {
                        0 => Limit::Now,
                        1 => Limit::At(lockwright::mutex::Deadline::after(Duration::from_micros(chance.below(60)))),
                        _ => Limit::Never,
                    };
                    // ORDERING: Relaxed, here and below: the lock orders them.
                    if chance.below(4) == 0 {
                        match (locking.write)(raw, limit) {
                            Ok(()) => {
                                one.store(one.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                                spin(Duration::from_micros(chance.below(4)));
                                other.store(other.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                                (locking.unlock_write)(raw).expect("the caller writes");
                                written.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => is_right &= matches!(error, RawError::Busy | RawError::TimedOut),
                        }
                    } else {
                        match (locking.read)(raw, limit) {
                            Ok(()) => {
                                let seen = one.load(Ordering::Relaxed);
                                spin(Duration::from_micros(chance.below(4)));
                                is_right &= other.load(Ordering::Relaxed) == seen;
                                is_right &= one.load(Ordering::Relaxed) == seen;
                                (locking.unlock_read)(raw).expect("the caller reads");
                            }
                            Err(error) => is_right &= matches!(error, RawError::Busy | RawError::TimedOut),
                        }
                    }
                    if chance.below(16) == 0 {
                        std::thread::sleep(Duration::from_micros(chance.below(100)));
                    }
                }
                is_right
            })
        })
        .collect();
    let are_right: Vec<bool> = players.into_iter().map(Player::end).collect();
    let (raw, one, other, written) = &*lock;
    let count = written.load(Ordering::Relaxed);
    !are_right.contains(&false)
        && !raw.is_in_use()
        && [one, other].map(|number| number.load(Ordering::Relaxed)) == [count; 2]
}

#[test]
fn readers_and_writers_exclude_each_other() {
    assert!(stress(LOCKS, 8, 4_000));
    assert!(stress(LOCKS, 3, 10_000));
}

#[test]
fn readers_that_exclude_nobody_are_noticed() {
    if Stage::set().is_some() {
        assert!(!stress(LOCKS_NOT, 8, 4_000));
    }
}

/// Starts a thread that locks as `lock` does, and holds until its gate opens.
fn holder(stage: &Stage, level: u8, raw: &Arc<RawRwLock>, writes: bool) -> (Player<()>, Gate) {
    let (gate, has, raw) = (Gate::default(), Gate::default(), Arc::clone(raw));
    let player = stage.thread(level, {
        let (gate, has) = (gate.clone(), has.clone());
        move || {
            let lock = if writes { RawRwLock::write } else { RawRwLock::read };
            lock(&raw, Limit::Never).expect("the lock is free");
            has.open();
            gate.pass();
            let unlock = if writes { RawRwLock::unlock_write } else { RawRwLock::unlock_read };
            unlock(&raw).expect("the caller holds it");
        }
    });
    has.pass();
    (player, gate)
}

/// Starts a thread that waits for the lock for at most `time`, and returns how that ended.
fn waiter(
    stage: &Stage,
    level: u8,
    raw: &Arc<RawRwLock>,
    writes: bool,
    time: Duration,
    entered: impl FnOnce() + Send + 'static,
) -> Player<Result<(), RawError>> {
    let ours = Arc::clone(raw);
    let player = stage.thread(level, move || {
        let limit = Limit::At(lockwright::mutex::Deadline::after(time));
        if writes { ours.write(limit) } else { ours.read(limit) }?;
        entered();
        if writes { ours.unlock_write() } else { ours.unlock_read() }
    });
    until_waiting_in(player.tid, &**raw);
    player
}

fn raw() -> Arc<RawRwLock> {
    Arc::new(RawRwLock::new(false, 0))
}

#[test]
fn a_writer_has_the_level_of_its_most_urgent_waiter() {
    let Some(stage) = Stage::set() else { return };
    for shared in [false, true] {
        let lock = Arc::new(RawRwLock::new(shared, 0));
        let (writer, give_back) = holder(&stage, 10, &lock, true);
        assert_eq!(level(writer.tid), 10);
        let reader = waiter(&stage, 30, &lock, false, LONG, || ());
        assert_eq!(level(writer.tid), 30, "boosted by a reader");
        let others: Vec<_> = (0..6).map(|more| waiter(&stage, 31 + more, &lock, false, LONG, || ())).collect();
        assert_eq!(level(writer.tid), 36, "boosted by the most urgent of more readers than gates");
        let next = waiter(&stage, 50, &lock, true, LONG, || ());
        assert_eq!(level(writer.tid), 50, "boosted by a writer");
        set_fifo(next.tid, 20);
        assert_eq!(level(writer.tid), 36, "lowered with it");
        set_fifo(reader.tid, 60);
        assert_eq!(level(writer.tid), 60, "raised with a reader");
        give_back.open();
        writer.end();
        others.into_iter().chain([reader, next]).for_each(|player| assert_eq!(player.end(), Ok(())));
        assert!(!lock.is_in_use());
    }
}

/// The documented limit: a writer that waits for readers lends them nothing.
#[test]
fn a_reader_keeps_its_own_level() {
    let Some(stage) = Stage::set() else { return };
    let lock = raw();
    let (reader, give_back) = holder(&stage, 10, &lock, false);
    let writer = waiter(&stage, 50, &lock, true, LONG, || ());
    assert_eq!(level(reader.tid), 10);
    give_back.open();
    assert_eq!(writer.end(), Ok(()));
    reader.end();
}

#[test]
fn readers_enter_between_writers_and_writers_by_priority() {
    let Some(stage) = Stage::set() else { return };
    for lock in (0..10).map(|_| raw()) {
        let order = Arc::new(StdMutex::new(Vec::new()));
        let (writer, give_back) = holder(&stage, 5, &lock, true);
        let wanted = [(20, true), (15, false), (40, true), (25, false), (30, true), (12, false), (30, true)];
        let players: Vec<_> = wanted
            .into_iter()
            .enumerate()
            .map(|(index, (level, writes))| {
                let order = Arc::clone(&order);
                waiter(&stage, level, &lock, writes, LONG, move || order.lock().expect("no panic").push(index))
            })
            .collect();
        give_back.open();
        players.into_iter().for_each(|player| assert_eq!(player.end(), Ok(())));
        writer.end();
        let mut order = order.lock().expect("no panic").clone();
        // The readers are one phase.
        order[..3].sort_unstable();
        assert_eq!(order, [1, 3, 5, 2, 4, 6, 0]);
    }
}

#[test]
fn later_readers_wait_for_a_writer_that_waits() {
    let Some(stage) = Stage::set() else { return };
    let lock = raw();
    let (reader, give_back) = holder(&stage, 10, &lock, false);
    assert_eq!(lock.read(Limit::Now), Ok(()), "readers share");
    assert_eq!(lock.unlock_read(), Ok(()));
    assert_eq!(lock.write(Limit::Now), Err(RawError::Busy));
    let entered = Gate::default();
    let writer = waiter(&stage, 20, &lock, true, LONG, {
        let entered = entered.clone();
        move || entered.open()
    });
    assert_eq!(lock.read(Limit::Now), Err(RawError::Busy));
    assert_eq!(lock.read_nested(Limit::Now), Ok(()), "beside the writer");
    let late = waiter(&stage, 30, &lock, false, LONG, {
        let entered = entered.clone();
        move || assert!(entered.is_open(), "the writer comes first")
    });
    give_back.open();
    reader.end();
    assert!(!entered.is_open(), "the nested reader is inside");
    assert_eq!(lock.unlock_read(), Ok(()));
    assert_eq!(writer.end(), Ok(()));
    assert_eq!(late.end(), Ok(()));
    assert_eq!(lock.unlock_read(), Err(RawError::NotOwner));
    assert_eq!(lock.unlock_write(), Err(RawError::NotOwner));
}

#[test]
fn a_writer_that_gives_up_lets_readers_in() {
    let Some(stage) = Stage::set() else { return };
    let lock = raw();
    let (reader, give_back) = holder(&stage, 10, &lock, false);
    let start = Instant::now();
    let writer = waiter(&stage, 20, &lock, true, ms(200), || ());
    let late: Vec<_> = (0..6).map(|more| waiter(&stage, 30 + more, &lock, false, LONG, || ())).collect();
    let hasty = waiter(&stage, 40, &lock, false, ms(20), || ());
    assert_eq!(hasty.end(), Err(RawError::TimedOut));
    assert_eq!(writer.end(), Err(RawError::TimedOut));
    assert!(start.elapsed() >= ms(200));
    late.into_iter().for_each(|player| assert_eq!(player.end(), Ok(())));
    assert_eq!(lock.write(Limit::Now), Err(RawError::Busy), "the first reader is inside");
    give_back.open();
    reader.end();
    assert_eq!(lock.write(Limit::Now), Ok(()));
    assert_eq!(lock.unlock_write(), Ok(()));
    assert!(!lock.is_in_use());
}

#[test]
fn all_readers_of_a_phase_are_inside_together() {
    const READERS: usize = 11;
    let Some(stage) = Stage::set() else { return };
    let lock = raw();
    let inside = Arc::new(AtomicUsize::new(0));
    let (writer, give_back) = holder(&stage, 5, &lock, true);
    let readers: Vec<_> = (0..READERS)
        .map(|index| {
            let inside = Arc::clone(&inside);
            waiter(&stage, 10 + (index * 7 % READERS) as u8, &lock, false, LONG, move || {
                // ORDERING: Relaxed: a count.
                inside.fetch_add(1, Ordering::Relaxed);
                until("all are inside", || inside.load(Ordering::Relaxed) == READERS);
            })
        })
        .collect();
    give_back.open();
    readers.into_iter().for_each(|player| assert_eq!(player.end(), Ok(())));
    writer.end();
}

#[test]
fn readers_do_not_starve_a_writer() {
    let Some(stage) = Stage::set() else { return };
    let lock = Arc::new(RwLock::new(0));
    let over = Gate::default();
    let cpus = cpus();
    let readers: Vec<_> = (0..4)
        .map(|index: usize| {
            let (lock, over) = (Arc::clone(&lock), over.clone());
            Player::enter(Some((10, cpus[index % cpus.len()])), move || {
                while !over.is_open() {
                    let _guard = lock.read().expect("no reader fails");
                    std::thread::sleep(Duration::from_micros(200));
                }
            })
        })
        .collect();
    let writer = stage.thread(5, {
        let lock = Arc::clone(&lock);
        move || (0..100).for_each(|_| *lock.write_for(LONG).expect("in time") += 1)
    });
    writer.end();
    over.open();
    readers.into_iter().for_each(Player::end);
    assert_eq!(*lock.read().expect("free"), 100);
}

#[test]
fn a_thread_that_would_wait_for_itself_is_refused() {
    let lock = RwLock::new(());
    let guard = lock.write().expect("free");
    assert_eq!(lock.write().unwrap_err(), RwLockError::Deadlock);
    assert_eq!(lock.read().unwrap_err(), RwLockError::Deadlock);
    assert_eq!(lock.read_nested().unwrap_err(), RwLockError::Deadlock);
    assert_eq!(lock.try_write().unwrap_err(), RwLockError::Busy);
    assert_eq!(lock.try_read().unwrap_err(), RwLockError::Busy);
    drop(guard);
    assert!(lock.try_write().is_ok());
}

#[test]
fn the_kernel_finds_cycles_through_writers() {
    let Some(stage) = Stage::set() else { return };
    let both = Arc::new((RwLock::new(()), Mutex::new(())));
    for reads in [false, true] {
        let (waits, has) = (Gate::default(), Gate::default());
        let other = stage.thread(10, {
            let (both, waits, has) = (Arc::clone(&both), waits.clone(), has.clone());
            move || {
                let _writes = both.0.write().expect("free");
                has.open();
                waits.pass();
                let _guard = both.1.lock().expect("the other one gives up");
            }
        });
        let one = stage.thread(11, {
            let (both, tid) = (Arc::clone(&both), other.tid);
            move || {
                has.pass();
                let _guard = both.1.lock().expect("free");
                waits.open();
                until_waiting_in(tid, &both.1);
                if reads { both.0.read().err() } else { both.0.write().err() }
            }
        });
        assert_eq!(one.end(), Some(RwLockError::Deadlock), "reads: {reads}");
        other.end();
    }
    assert!(both.0.try_write().is_ok());
}

#[test]
fn a_writer_that_ends_is_reported() {
    let Some(stage) = Stage::set() else { return };
    let lock = raw();
    let (holds, leave) = (Gate::default(), Gate::default());
    let writer = stage.thread(10, {
        let (lock, holds, leave) = (Arc::clone(&lock), holds.clone(), leave.clone());
        move || {
            lock.write(Limit::Never).expect("free");
            holds.open();
            leave.pass();
        }
    });
    holds.pass();
    let waiters = [false, false, true].map(|writes| waiter(&stage, 20, &lock, writes, LONG, || ()));
    leave.open();
    writer.end();
    let is_ended = |error: &RawError| matches!(error, RawError::Sys(error) if error.errno == libc::ESRCH);
    for waiter in waiters {
        assert!(waiter.end().is_err_and(|error| is_ended(&error)));
    }
    assert!(lock.read(Limit::Never).is_err_and(|error| is_ended(&error)));
    assert!(lock.write(Limit::Never).is_err_and(|error| is_ended(&error)));
}

/// A request between the end of the writer and the first execution of its heir, which the kernel answers with EINVAL.
#[test]
fn a_request_before_the_heir_of_a_writer_executes_gets_the_same_error() {
    let Some(_stage) = Stage::set() else { return };
    let (lock, cpu) = (raw(), cpus()[0]);
    let (holds, leave) = (Gate::default(), Gate::default());
    let requests = |level, parks: bool| {
        let lock = Arc::clone(&lock);
        Player::enter(Some((level, cpu)), move || {
            if parks {
                std::thread::park();
            }
            lock.write(Limit::Never)
        })
    };
    // On one processor: when the writer has ended, the more urgent request is made before the heir executes.
    let urgent = requests(20, true);
    let writer = Player::enter(Some((30, cpu)), {
        let (lock, holds, leave, urgent) = (Arc::clone(&lock), holds.clone(), leave.clone(), urgent.thread().clone());
        move || {
            lock.write(Limit::Never).expect("free");
            holds.open();
            leave.pass();
            urgent.unpark();
        }
    });
    holds.pass();
    let heir = requests(10, false);
    until_waiting_in(heir.tid, &*lock);
    leave.open();
    writer.end();
    for request in [urgent, heir] {
        let told = request.end();
        let is_ended = matches!(told, Err(RawError::Sys(error)) if error.errno == libc::ESRCH);
        assert!(is_ended, "{told:?}");
    }
}

/// The writer is preempted between two steps of its unlock: it has admitted a more urgent thread, and still accesses
/// the lock. When the unlock of that thread returns, the writer has made its last access, with the priority of the
/// thread.
#[test]
fn a_thread_that_unlocks_lends_its_priority_to_a_writer_that_still_unlocks() {
    let Some(stage) = Stage::set() else { return };
    for (shared, writes) in [(false, false), (true, false), (false, true), (true, true)] {
        let lock = Arc::new(RawRwLock::new(shared, 0));
        let (writer, give_back) = holder(&stage, 10, &lock, true);
        let is_over = Gate::default();
        let middle = stage.thread(20, {
            let is_over = is_over.clone();
            move || {
                std::thread::park();
                spin(ms(100));
                is_over.open();
            }
        });
        let last = stage.thread(30, {
            let (lock, middle, is_over) = (Arc::clone(&lock), middle.thread().clone(), is_over.clone());
            move || {
                if writes { lock.write(Limit::Never) } else { lock.read(Limit::Never) }.expect("the writer unlocks");
                middle.unpark();
                if writes { lock.unlock_write() } else { lock.unlock_read() }.expect("the caller holds it");
                (lock.is_in_use(), is_over.is_open())
            }
        });
        until_waiting_in(last.tid, &*lock);
        give_back.open();
        assert_eq!(last.end(), (false, false), "in use, behind the middle thread");
        middle.end();
        writer.end();
    }
}

#[test]
fn processes_share_a_lock() {
    const ROUNDS: u64 = 20_000;
    let _watchdog = watch(Duration::from_secs(60));
    let shared = Shared::new(RwLock::shared((0_u64, 0_u64)));
    let work = |lock: &RwLock<(u64, u64)>| {
        for _ in 0..ROUNDS {
            let mut pair = lock.write().expect("the lock works");
            pair.0 += 1;
            pair.1 += 1;
            drop(pair);
            let pair = lock.read().expect("the lock works");
            assert_eq!(pair.0, pair.1);
        }
        true
    };
    let children = [Child::start(|| work(shared.0)), Child::start(|| work(shared.0))];
    assert!(children.iter().all(Child::end));
    assert_eq!(*shared.0.read().expect("free"), (2 * ROUNDS, 2 * ROUNDS));
}
