//! Barriers.

use crate::support::*;
use lockwright::barrier::Barrier;
use lockwright::mutex::Destroyed;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

/// Threads of all levels on all processors meet again and again. Returns whether each thread saw the arrivals of all in
/// every round, and each round had one leader.
fn stress(meet: fn(&Barrier) -> bool, threads: u32, rounds: u32) -> bool {
    let Some(_stage) = Stage::set_for(Duration::from_secs(120)) else { return true };
    let shared = Arc::new((Barrier::new(threads), AtomicU32::new(0), AtomicU32::new(0)));
    let cpus = cpus();
    let players: Vec<_> = (0..threads)
        .map(|index| {
            let shared = Arc::clone(&shared);
            Player::enter(Some((10 + index as u8, cpus[index as usize % cpus.len()])), move || {
                let (barrier, arrivals, leaders) = &*shared;
                let mut chance = Chance::new(u64::from(index) + 1);
                let mut is_right = true;
                for round in 1..=rounds {
                    spin(Duration::from_micros(chance.below(4)));
                    // ORDERING: Relaxed: the barrier orders them.
                    arrivals.fetch_add(1, Ordering::Relaxed);
                    leaders.fetch_add(u32::from(meet(barrier)), Ordering::Relaxed);
                    let arrived = arrivals.load(Ordering::Relaxed);
                    is_right &= arrived >= round * threads && arrived < (round + 1) * threads;
                }
                is_right
            })
        })
        .collect();
    let are_right: Vec<bool> = players.into_iter().map(Player::end).collect();
    !are_right.contains(&false) && shared.2.load(Ordering::Relaxed) == rounds
}

fn meet(barrier: &Barrier) -> bool {
    barrier.wait().expect("the kernel lets threads wait")
}

#[test]
fn threads_meet_and_each_round_has_one_leader() {
    assert!(stress(meet, 2, 5_000));
    assert!(stress(meet, 7, 2_000));
}

/// The mutant: a thread does not wait now and then.
#[test]
fn a_thread_that_does_not_wait_is_noticed() {
    static TURN: AtomicU32 = AtomicU32::new(0);
    if Stage::set().is_some() {
        assert!(!stress(|barrier| TURN.fetch_add(1, Ordering::Relaxed) < 300 && meet(barrier), 2, 500));
    }
}

#[test]
fn the_most_urgent_thread_continues_first() {
    let Some(stage) = Stage::set() else { return };
    let barrier = Arc::new(Barrier::new(6));
    let order = Arc::new(StdMutex::new(Vec::new()));
    let enter = |index: usize, level: u8| {
        let (barrier, order) = (Arc::clone(&barrier), Arc::clone(&order));
        stage.thread(level, move || {
            let leads = meet(&barrier);
            order.lock().expect("no panic").push(index);
            leads
        })
    };
    let players: Vec<_> = [20, 40, 30, 40, 10]
        .into_iter()
        .enumerate()
        .map(|(index, level)| {
            let player = enter(index, level);
            until_waiting_in(player.tid, &*barrier);
            player
        })
        .collect();
    assert!(enter(5, 50).end(), "the last one leads");
    assert!(!players.into_iter().any(Player::end));
    assert_eq!(*order.lock().expect("no panic"), [5, 1, 3, 2, 0, 4]);
}

#[test]
fn a_barrier_of_one_or_none_stops_nobody() {
    for count in [0, 1] {
        let barrier = Barrier::new(count);
        assert!(meet(&barrier) && meet(&barrier));
        assert_eq!(barrier.destroy(), Destroyed::Done);
    }
}

#[test]
fn a_signal_does_not_end_a_wait() {
    let _watchdog = watch(Duration::from_secs(60));
    let_interrupt(libc::SIGUSR1);
    let barrier = Arc::new(Barrier::new(2));
    let player = Player::enter(None, {
        let barrier = Arc::clone(&barrier);
        move || meet(&barrier)
    });
    until_waiting_in(player.tid, &*barrier);
    assert_eq!(barrier.destroy(), Destroyed::InUse);
    for _ in 0..20 {
        // SAFETY: the call takes integers. The thread has not been joined, so the id is its own.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), player.tid, libc::SIGUSR1) };
        std::thread::sleep(ms(1));
    }
    assert!(!player.is_over());
    assert!(meet(&barrier));
    assert!(!player.end());
}

/// Each round, one thread destroys the barrier and unmaps it as soon as it has returned. Returns whether the process
/// survives.
fn survives_freeing(destroy: fn(&Barrier) -> bool, leader_frees: bool) -> bool {
    const ROUNDS: usize = 5_000;
    let child = Child::start(|| {
        let (send, receive) = std::sync::mpsc::sync_channel::<&'static Barrier>(0);
        let other = std::thread::spawn(move || {
            receive.iter().for_each(|barrier| {
                if meet(barrier) != leader_frees && destroy(barrier) {
                    unmap(barrier);
                }
            });
        });
        for round in 0..ROUNDS {
            let barrier = std::mem::ManuallyDrop::new(Shared::new(Barrier::new(2))).0;
            send.send(barrier).expect("the other thread receives");
            spin(Duration::from_micros(round as u64 % 8));
            if meet(barrier) != leader_frees && destroy(barrier) {
                unmap(barrier);
            }
        }
        drop(send);
        other.join().is_ok()
    });
    child.status() == 0
}

fn unmap(barrier: &'static Barrier) {
    // SAFETY: `Shared` mapped it, and no thread uses it any more.
    unsafe { libc::munmap(std::ptr::from_ref(barrier).cast_mut().cast(), size_of::<Barrier>()) };
}

#[test]
fn a_thread_that_returned_may_free_the_memory() {
    let _watchdog = watch(Duration::from_secs(100));
    for leader_frees in [false, true] {
        assert!(survives_freeing(|barrier| barrier.destroy() == Destroyed::Done, leader_frees));
    }
    // The mutant does not wait for the others. It fails only where both threads execute at the same time.
    assert!((0..50).any(|_| !survives_freeing(|_| true, true)));
}

#[test]
fn processes_share_a_barrier() {
    const ROUNDS: u32 = 10_000;
    let _watchdog = watch(Duration::from_secs(60));
    let shared = Shared::new((Barrier::shared(3), AtomicU32::new(0)));
    let work = || {
        let (barrier, leaders) = shared.0;
        (0..ROUNDS).for_each(|_| _ = leaders.fetch_add(u32::from(meet(barrier)), Ordering::Relaxed));
        true
    };
    let children = [Child::start(work), Child::start(work)];
    assert!(work());
    assert!(children.iter().all(Child::end));
    assert_eq!(shared.0.1.load(Ordering::Relaxed), ROUNDS);
}

/// A process is killed while it leaves: its place is never left.
#[test]
fn a_barrier_whose_thread_is_gone_stays_in_use() {
    let _watchdog = watch(Duration::from_secs(60));
    let shared = Shared::new(Barrier::shared(2));
    let child = Child::start(|| shared.0.wait().is_ok());
    until_waiting_in_child(child.0);
    // SAFETY: the call takes integers. The child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.0, libc::SIGSTOP) };
    assert!(meet(shared.0));
    child.kill();
    child.status();
    let start = Instant::now();
    assert_eq!(shared.0.destroy(), Destroyed::InUse);
    assert!(start.elapsed() >= ms(900));
}

fn until_waiting_in_child(child: i32) {
    until("the child waits", || {
        let call = std::fs::read_to_string(format!("/proc/{child}/syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_futex))
    });
}
