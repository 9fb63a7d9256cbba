//! Children of `fork`: the parent's mutexes stay the parent's, and the child's actions affect only the child.

use crate::support::*;
use lockwright::mutex::{Condvar, Destroyed, Limit, LockError, Mutex, MutexProtocol, RawCondvar};
use lockwright_sys::pi_word::PiWord;
use lockwright_sys::sched::gettid;
use std::time::Duration;

/// While the parent holds a private mutex, the child finds it locked, times out, and uses others freely. The parent
/// notices nothing.
#[test]
fn a_child_finds_its_parents_mutex_locked() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let (held, other) = (kind.build(1), kind.build(2));
        drop(other.lock().expect("the mutex is free"));
        let guard = held.lock().expect("the mutex is free");
        let child = Child::start(|| {
            let is_taken = matches!(held.try_lock(), Err(LockError::Busy));
            // The kernel does not wait for an owner that is a thread of another process.
            let is_late = match held.lock_for(ms(3)) {
                Err(LockError::TimedOut) => true,
                Err(LockError::Sys(error)) => error.errno == libc::ESRCH,
                _ => false,
            };
            let is_free = (0..3).all(|_| other.lock().map(|mut guard| *guard += 1).is_ok());
            let (_guard, _) =
                Condvar::new().wait_for(other.lock().expect("the mutex is free"), ms(1)).expect("the wait succeeds");
            is_taken && is_late && is_free
        });
        assert!(child.end(), "{kind:?}");
        drop(guard);
        assert_eq!(*held.lock().expect("the mutex is unchanged"), 1, "{kind:?}");
    }
}

/// At a `fork`, another thread owns a word. It has no thread in the child, which takes the word over at once, although
/// the kernel is not asked and marks no waiters.
#[test]
fn a_child_takes_over_the_word_of_a_thread_that_it_does_not_have() {
    let Some(_stage) = Stage::set() else { return };
    let word = PiWord::new();
    std::thread::scope(|scope| {
        let (is_held, may_end) = (Gate::default(), Gate::default());
        let owner = scope.spawn({
            let (word, is_held, may_end) = (&word, is_held.clone(), may_end.clone());
            move || {
                word.lock(gettid()).expect("the word is free");
                is_held.open();
                may_end.pass();
                word.unlock(gettid()).expect("the thread owns the word");
            }
        });
        is_held.pass();
        let child = Child::start(|| {
            let me = gettid();
            let locked = (0..3).all(|_| word.lock_or_inherit(me).is_ok() && word.unlock(me).is_ok());
            locked && word.is_free()
        });
        assert!(child.end());
        may_end.open();
        owner.join().expect("the owner unlocks");
    });
}

/// A child that ends with a mutex it shares with its parent is a dead owner. A child that ends while its parent holds
/// the mutex is not.
#[test]
fn a_child_that_ends_is_an_owner_of_its_own() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        let kind = Mutex::builder().protocol(protocol).robustly(true).shared(true);
        let mutex = Shared::new(kind.build(0));
        let guard = mutex.0.lock().expect("the mutex is free");
        assert!(Child::start(|| matches!(mutex.0.lock_for(ms(3)), Err(LockError::TimedOut))).end());
        drop(guard);
        assert!(mutex.0.lock().is_ok(), "{protocol:?}: the parent still held it");
        let child = Child::start(|| {
            std::mem::forget(mutex.0.lock());
            true
        });
        assert!(child.end());
        assert!(matches!(mutex.0.lock(), Err(LockError::OwnerDied(_))), "{protocol:?}");
    }
}

/// The child does not inherit the parent's robust list.
#[test]
fn a_child_does_not_end_its_parents_sections() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        let kind = Mutex::builder().protocol(protocol).robustly(true);
        let (private, shared) = (kind.build(()), Shared::new(kind.shared(true).build(())));
        let guards = (private.lock().expect("the mutex is free"), shared.0.lock().expect("the mutex is free"));
        assert!(Child::start(|| true).end());
        drop(guards);
        assert!(private.try_lock().is_ok() && shared.0.try_lock().is_ok(), "{protocol:?}");
    }
}

/// A child starts at its own level, and ceilings work there as elsewhere.
#[test]
fn a_child_holds_no_ceiling() {
    let Some(stage) = Stage::set() else { return };
    let holds = || {
        let (low, high) =
            [20, 40].map(|ceiling| Mutex::builder().protocol(MutexProtocol::Protect(ceiling)).build(())).into();
        let before = scheduling(tid());
        let guard = high.lock().expect("the mutex is free");
        let child = Child::start(|| {
            let own = scheduling(tid());
            let inside = low.lock().map(|_guard| scheduling(tid()));
            own == before && inside.is_ok_and(|(_, level)| level == 20) && scheduling(tid()) == before
        });
        let held = child.end();
        drop(guard);
        held && scheduling(tid()) == before
    };
    assert!(stage.thread(10, holds).end());
    let ordinary = move || {
        set_other(tid());
        holds()
    };
    assert!(stage.thread(10, ordinary).end());
}

/// The waiters of the parent are not in the child and never leave there. Destroying the condition variable in the child
/// returns that it is in use.
#[test]
fn a_child_cannot_destroy_a_condvar_with_waiters_of_its_parent() {
    let _watchdog = watch(Duration::from_secs(30));
    for protocol in PROTOCOLS.into_iter().take(2) {
        let (mutex, condvar) = (Mutex::builder().protocol(protocol).build_raw(), RawCondvar::new(false));
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::channel();
            let (mutex, condvar) = (&mutex, &condvar);
            let waiter = scope.spawn(move || {
                mutex.lock(Limit::Never).expect("the mutex is free");
                send.send(tid()).expect("the test waits");
                condvar.wait(mutex, None).expect("the wait succeeds");
                mutex.unlock().expect("the caller holds it");
            });
            until_waiting_at(receive.recv().expect("the waiter begins"), condvar);
            let child = Child::start(|| {
                let destroyed = condvar.destroy();
                // Nothing has changed.
                destroyed == Destroyed::InUse && condvar.is_waited_for()
            });
            let held = child.end();
            assert_eq!(condvar.destroy(), Destroyed::InUse, "the waiter still waits in the parent");
            condvar.signal();
            waiter.join().expect("the thread does not panic");
            assert!(held, "{protocol:?}");
            assert_eq!(condvar.destroy(), Destroyed::Done);
        });
    }
}
