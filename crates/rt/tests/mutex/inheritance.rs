//! Figure 7 of the fusyn paper on real threads: an owner has the priority of its most urgent waiter, whatever happens
//! to that waiter.

use crate::support::*;
use lockwright::mutex::{Builder, LockError, Mutex, MutexProtocol};
use std::sync::Arc;
use std::time::Duration;

fn inherits() -> [Builder; 4] {
    let kind = Mutex::builder();
    [kind, kind.check_deadlocks(false), kind.robustly(true), kind.kernel_owned(true).shared(true)]
}

/// Starts a thread that locks `mutex` and holds it until its gate opens.
fn keeper(stage: &Stage, level: u8, mutex: &Arc<Mutex<()>>) -> (Player<()>, Gate) {
    let (gate, has, mutex) = (Gate::default(), Gate::default(), Arc::clone(mutex));
    let player = stage.thread(level, {
        let (gate, has) = (gate.clone(), has.clone());
        move || {
            let guard = mutex.lock().expect("the mutex is free");
            has.open();
            gate.pass();
            drop(guard);
        }
    });
    has.pass();
    (player, gate)
}

/// Starts a thread that waits for `mutex` for at most `time`, and returns whether it got it.
fn waiter(stage: &Stage, level: u8, mutex: &Arc<Mutex<()>>, time: Duration) -> Player<bool> {
    let ours = Arc::clone(mutex);
    let player = stage.thread(level, move || match ours.lock_for(time) {
        Ok(_guard) => true,
        Err(LockError::TimedOut) => false,
        Err(error) => panic!("{error}"),
    });
    until_waiting(player.tid, mutex.inside());
    player
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn an_owner_has_the_level_of_its_most_urgent_waiter() {
    let Some(stage) = Stage::set() else { return };
    for kind in inherits() {
        let mutex = Arc::new(kind.build(()));
        let (owner, give_back) = keeper(&stage, 10, &mutex);
        assert_eq!(level(owner.tid), 10);
        let second = waiter(&stage, 30, &mutex, LONG);
        assert_eq!(level(owner.tid), 30, "boosted by its waiter");
        let first = waiter(&stage, 50, &mutex, LONG);
        assert_eq!(level(owner.tid), 50, "boosted by the more urgent waiter");
        set_fifo(first.tid, 40);
        assert_eq!(level(owner.tid), 40, "lowered with its waiter, at once");
        set_fifo(first.tid, 20);
        assert_eq!(level(owner.tid), 30, "lowered to the other waiter");
        set_fifo(second.tid, 45);
        assert_eq!(level(owner.tid), 45, "raised with its waiter, at once");
        set_other(second.tid);
        assert_eq!(level(owner.tid), 20, "a waiter that is not real-time any more lends nothing");
        set_fifo(owner.tid, 25);
        assert_eq!(level(owner.tid), 25, "its own level also counts");
        set_fifo(owner.tid, 15);
        assert_eq!(level(owner.tid), 20, "the lent level counts again");
        give_back.open();
        assert!(first.end() && second.end());
        owner.end();
    }
}

/// The mutant: without inheritance no priority is lent.
#[test]
fn without_inheritance_no_priority_is_lent() {
    let Some(stage) = Stage::set() else { return };
    let mutex = Arc::new(Mutex::builder().protocol(MutexProtocol::None).build(()));
    let (owner, give_back) = keeper(&stage, 10, &mutex);
    let other = waiter(&stage, 30, &mutex, LONG);
    assert_eq!(level(owner.tid), 10);
    give_back.open();
    assert!(other.end());
    owner.end();
}

#[test]
fn a_waiter_that_gives_up_takes_its_level_back() {
    let Some(stage) = Stage::set() else { return };
    for kind in inherits() {
        let mutex = Arc::new(kind.build(()));
        let (owner, give_back) = keeper(&stage, 10, &mutex);
        let brief = waiter(&stage, 40, &mutex, ms(30));
        assert_eq!(level(owner.tid), 40);
        assert!(!brief.end(), "the waiter gave up");
        assert_eq!(level(owner.tid), 10);
        give_back.open();
        owner.end();
    }
}

/// The levels at the unlock decide which waiter is served, not those at the beginning of the wait.
#[test]
fn the_most_urgent_waiter_at_the_unlock_is_served() {
    let Some(stage) = Stage::set() else { return };
    for kind in inherits() {
        let mutex = Arc::new(kind.build(Vec::new()));
        let guard = mutex.lock().expect("the mutex is free");
        let players: Vec<_> = [11_u8, 12, 13, 14]
            .into_iter()
            .map(|own| {
                let ours = Arc::clone(&mutex);
                let player = stage.thread(own, move || ours.lock().expect("the lock succeeds").push(own));
                until_waiting(player.tid, mutex.inside());
                player
            })
            .collect();
        // 11 becomes the most urgent, 14 the least.
        set_fifo(players[0].tid, 30);
        set_fifo(players[3].tid, 5);
        drop(guard);
        players.into_iter().for_each(Player::end);
        assert_eq!(*mutex.lock().expect("the lock succeeds"), [11, 13, 12, 14]);
    }
}

/// Thread k holds mutex k and waits for mutex k − 1. The priority of the last waiter reaches the first owner, and
/// leaves it when the waiter does.
#[test]
fn a_chain_of_owners_passes_levels_on() {
    let Some(stage) = Stage::set() else { return };
    for length in 1..=16_usize {
        let kind = inherits()[length % 3];
        let mutexes: Vec<_> = (0..length).map(|_| Arc::new(kind.build(()))).collect();
        let (first, give_back) = keeper(&stage, 10, &mutexes[0]);
        let mut owners = vec![first];
        for place in 1..length {
            let (own, next) = (Arc::clone(&mutexes[place]), Arc::clone(&mutexes[place - 1]));
            let owner = stage.thread(10 + place as u8, move || {
                let _own = own.lock().expect("the mutex is free");
                drop(next.lock().expect("the lock succeeds"));
            });
            until_waiting(owner.tid, mutexes[place - 1].inside());
            owners.push(owner);
        }
        let levels = |owners: &[Player<()>]| owners.iter().map(|owner| level(owner.tid)).collect::<Vec<_>>();
        let top = 9 + length as i32;
        assert_eq!(levels(&owners), vec![top; length], "the last owner's level, before another thread waits");
        let last = waiter(&stage, 60, &mutexes[length - 1], LONG);
        assert_eq!(levels(&owners), vec![60; length], "boosted all along a chain of {length}");
        set_fifo(last.tid, 40);
        assert_eq!(levels(&owners), vec![40; length]);
        set_fifo(last.tid, 5);
        assert_eq!(levels(&owners), vec![top; length], "lowered all along a chain of {length}");
        give_back.open();
        owners.into_iter().for_each(Player::end);
        assert!(last.end());
        assert!(mutexes.iter().all(|mutex| mutex.try_lock().is_ok()));
    }
}

/// Chains in which the level of the middle thread changes.
#[test]
fn the_level_of_an_owner_in_the_middle_counts() {
    let Some(stage) = Stage::set() else { return };
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let (owner, give_back) = keeper(&stage, 10, &a);
    let middle = stage.thread(20, {
        let (a, b) = (Arc::clone(&a), Arc::clone(&b));
        move || {
            let _b = b.lock().expect("the mutex is free");
            drop(a.lock().expect("the lock succeeds"));
        }
    });
    until_waiting(middle.tid, a.inside());
    let last = waiter(&stage, 30, &b, LONG);
    assert_eq!((level(owner.tid), level(middle.tid)), (30, 30));
    set_fifo(middle.tid, 45);
    assert_eq!((level(owner.tid), level(middle.tid)), (45, 45));
    set_fifo(middle.tid, 15);
    assert_eq!((level(owner.tid), level(middle.tid)), (30, 30));
    give_back.open();
    owner.end();
    middle.end();
    assert!(last.end());
}

/// An owner unlocks the mutex that was waited for first, and keeps the priority that the other waiters lend.
#[test]
fn levels_follow_the_order_of_release() {
    let Some(stage) = Stage::set() else { return };
    for first_released in [0, 1] {
        let mutexes = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
        let gates = [Gate::default(), Gate::default()];
        let owner = stage.thread(10, {
            let (mutexes, gates) = (mutexes.clone(), gates.clone());
            move || {
                let mut guards = mutexes.each_ref().map(|mutex| Some(mutex.lock().expect("the mutex is free")));
                for (gate, place) in gates.iter().zip([first_released, 1 - first_released]) {
                    gate.pass();
                    guards[place] = None;
                }
            }
        });
        until("the owner holds both", || mutexes.iter().all(|mutex| mutex.inside().owner() == owner.tid));
        let waiters = [waiter(&stage, 30, &mutexes[0], LONG), waiter(&stage, 40, &mutexes[1], LONG)];
        assert_eq!(level(owner.tid), 40);
        gates[0].open();
        let [low, high] = waiters;
        if first_released == 0 {
            assert!(low.end());
            assert_eq!(level(owner.tid), 40);
            gates[1].open();
            assert!(high.end());
        } else {
            assert!(high.end());
            assert_eq!(level(owner.tid), 30);
            gates[1].open();
            assert!(low.end());
        }
        owner.end();
    }
}
