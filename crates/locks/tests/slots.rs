//! A slot is in one place at a time.
//!
//! User code in a wait ([`Deadline`](lockwright_locks::Deadline), `Relax`) neither makes another request from the slot,
//! nor loses a lock by a panic.

#![cfg(not(any(lockwright_loom, lockwright_shuttle)))]

use lockwright_locks::{
    Abortable, Algorithm, Anderson, Batched, Bpl, Clh, JohnsonHarathi, Markatos, Mcs, Priority, Relax, Slot, SpinLock,
};
use std::cell::RefCell;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The hook of the next unsuccessful check of this thread.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn next_check(hook: impl FnOnce() + 'static) {
    HOOK.set(Some(Box::new(hook)));
}

/// A `Relax` that executes the hook.
#[derive(Default)]
struct Hooked;

impl Relax for Hooked {
    fn relax(&mut self) {
        if let Some(hook) = HOOK.take() {
            hook();
        }
        thread::yield_now();
    }
}

/// Tests of this file take turns, because one of them claims every slot.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot() -> Slot {
    Slot::claim().expect("fewer than 64 slots are claimed")
}

/// Returns the message of a panic, if there is one.
fn said(what: impl FnOnce()) -> Option<String> {
    let said = catch_unwind(AssertUnwindSafe(what)).err()?;
    Some(
        said.downcast::<String>()
            .map_or_else(|said| String::from(*said.downcast::<&str>().expect("a message")), |said| *said),
    )
}

fn is_refused(what: impl FnOnce()) -> bool {
    said(what).is_some_and(|said| said.contains("while it waits"))
}

/// Whether a waiter that requests the same lock from `second`, at its first unsuccessful check, is refused.
fn a_second_request_is_refused<A: Algorithm + Send + Sync + 'static>(second: fn(&Rc<Slot>) -> Rc<Slot>) -> bool {
    let lock = Arc::new(SpinLock::<A, u32>::new(0));
    let (mine, here) = (slot(), Arc::clone(&lock));
    let held = lock.lock_with(A::request(&mine, Priority::new(0)));
    let (releases, told) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let (first, refused) = (Rc::new(slot()), Rc::new(RefCell::new(false)));
        let (lock, again, result) = (Arc::clone(&here), second(&first), Rc::clone(&refused));
        next_check(move || {
            // If the request waits now, it gets the lock.
            next_check(move || releases.send(()).expect("the holder receives"));
            *result.borrow_mut() =
                is_refused(|| std::mem::forget(lock.lock_with(A::request(&again, Priority::new(0)))))
                    && is_refused(|| drop(lock.try_lock_with(A::request(&again, Priority::new(0)))))
                    && is_refused(|| drop(SpinLock::<Mcs<64>, ()>::new(()).lock_with(&again)));
        });
        // At the check after a refused request, the holder releases the lock.
        *here.lock_with(A::request(&first, Priority::new(0))) += 1;
        refused.take()
    });
    told.recv().expect("the waiter sends");
    drop(held);
    let refused = waiter.join().expect("the waiter ends");
    if refused {
        // The refused requests had no effect.
        assert_eq!(*lock.try_lock_with(A::request(&mine, Priority::new(0))).expect("the lock is free"), 1);
    }
    refused
}

#[test]
fn a_waiting_slot_is_refused() {
    let _turn = turn();
    fn is_refused<A: Algorithm + Send + Sync + 'static>() {
        assert!(a_second_request_is_refused::<A>(Rc::clone), "{}", std::any::type_name::<A>());
    }
    is_refused::<Anderson<64, Hooked>>();
    is_refused::<Mcs<64, Hooked>>();
    is_refused::<Clh<64, Hooked>>();
    is_refused::<Markatos<64, Hooked>>();
    is_refused::<JohnsonHarathi<64, Hooked>>();
    is_refused::<Bpl<64, u64, Hooked>>();
    is_refused::<Batched<64, u64, Hooked>>();
}

/// The mutant has two slots of one number: the lock is granted to the second request, and the first takes it for its
/// own.
#[cfg_attr(miri, ignore = "the mutant breaks a contract, which Miri reports")]
#[test]
fn two_slots_of_one_number_are_caught() {
    let _turn = turn();
    // SAFETY: the contract is broken on purpose; one thread accesses the value, which is an integer.
    let second = |first: &Rc<Slot>| Rc::new(unsafe { Slot::new(first.index()) });
    assert!(!a_second_request_is_refused::<Mcs<64, Hooked>>(second));
}

/// The lock is held. The deadline of a waiter requests it again, which panics, and the waiter leaves.
fn a_deadline_with_a_request<A: Abortable>() {
    let (one, two) = (slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let held = lock.lock_with(A::request(&one, Priority::new(0)));
    let request = A::request(&two, Priority::new(0));
    assert!(is_refused(|| {
        let second = lock.lock_until(request, || lock.lock_until(request, || true).is_none());
        assert!(second.is_none(), "two slots hold the lock");
    }));
    // The waiter has left and may request the lock again.
    assert!(lock.lock_until(request, || true).is_none());
    drop(held);
    drop(lock.lock_with(request));
    drop(lock.try_lock_with(A::request(&one, Priority::new(0))).expect("the lock is free"));
}

#[test]
fn a_deadline_with_a_request_is_refused() {
    let _turn = turn();
    a_deadline_with_a_request::<Bpl<64, u64>>();
    a_deadline_with_a_request::<Batched<64, u64>>();
}

/// A deadline panics: at an unsuccessful check, and after the lock was granted.
fn a_deadline_that_panics<A: Abortable>() {
    let (one, two, three) = (slot(), slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let request = A::request(&two, Priority::new(0));
    for lets_go in [false, true] {
        let mut held = Some(lock.lock_with(A::request(&one, Priority::new(0))));
        let panics = || {
            if lets_go {
                held = None;
            }
            panic!("no time")
        };
        assert_eq!(said(|| drop(lock.lock_until(request, panics))).as_deref(), Some("no time"));
        drop(held);
        for slot in [&three, &one, &two] {
            drop(lock.try_lock_with(A::request(slot, Priority::new(0))).expect("the lock is free"));
        }
    }
}

#[test]
fn a_panic_in_a_deadline_gives_up() {
    let _turn = turn();
    a_deadline_that_panics::<Bpl<64, u64>>();
    a_deadline_that_panics::<Batched<64, u64>>();
}

/// A `relax` panics: the request and the slot stay in a queue that has no way to give up.
fn a_relax_that_panics<A: Algorithm>() {
    let (one, two) = (slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let held = lock.lock_with(A::request(&one, Priority::new(0)));
    next_check(|| panic!("no time"));
    assert_eq!(said(|| drop(lock.lock_with(A::request(&two, Priority::new(0))))).as_deref(), Some("no time"));
    assert!(is_refused(|| drop(lock.try_lock_with(A::request(&two, Priority::new(0))))));
    assert!(is_refused(|| drop(SpinLock::<Mcs<64>, ()>::new(()).lock_with(&two))));
    drop(held);
    let number = two.index();
    drop(two);
    let others: Vec<Slot> = iter::from_fn(Slot::claim).collect();
    assert!(others.iter().all(|other| other.index() != number), "the number is claimed again");
    for other in [&one, &others[0]] {
        assert!(
            lock.try_lock_with(A::request(other, Priority::new(0))).is_none(),
            "the lock was granted to no slot, and is free"
        );
    }
}

#[test]
fn a_panic_in_relax_leaves_the_slot_waiting() {
    let _turn = turn();
    a_relax_that_panics::<Anderson<64, Hooked>>();
    a_relax_that_panics::<Mcs<64, Hooked>>();
    a_relax_that_panics::<Clh<64, Hooked>>();
    a_relax_that_panics::<Markatos<64, Hooked>>();
    a_relax_that_panics::<JohnsonHarathi<64, Hooked>>();
}
