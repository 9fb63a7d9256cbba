//! A slot is at one place at a time: what users write into a wait (`Deadline`, `Relax`) neither asks from it again nor loses a lock by a panic.

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
    /// What the next look in vain of this thread does.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

fn next_look(hook: impl FnOnce() + 'static) {
    HOOK.set(Some(Box::new(hook)));
}

/// A `Relax` that does what the test says.
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

/// Tests of this file take turns: one of them claims every slot.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot() -> Slot {
    Slot::claim().expect("fewer than 64 are taken")
}

/// What a panic said; `None` without one.
fn said(what: impl FnOnce()) -> Option<String> {
    let said = catch_unwind(AssertUnwindSafe(what)).err()?;
    Some(
        said.downcast::<String>()
            .map_or_else(|said| String::from(*said.downcast::<&str>().expect("words")), |said| *said),
    )
}

fn is_refused(what: impl FnOnce()) -> bool {
    said(what).is_some_and(|said| said.contains("waits already"))
}

/// Whether one that waits, and asks for the same lock from `second` at its first look in vain, is refused.
fn asking_again_is_refused<A: Algorithm + Send + Sync + 'static>(second: fn(&Rc<Slot>) -> Rc<Slot>) -> bool {
    let lock = Arc::new(SpinLock::<A, u32>::new(0));
    let (mine, here) = (slot(), Arc::clone(&lock));
    let held = lock.lock_with(A::request(&mine, Priority(0)));
    let (releases, told) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let (first, refused) = (Rc::new(slot()), Rc::new(RefCell::new(false)));
        let (lock, again, result) = (Arc::clone(&here), second(&first), Rc::clone(&refused));
        next_look(move || {
            // Should it wait now, it is to get the lock.
            next_look(move || releases.send(()).expect("the holder listens"));
            *result.borrow_mut() = is_refused(|| std::mem::forget(lock.lock_with(A::request(&again, Priority(0)))))
                && is_refused(|| drop(lock.try_lock_with(A::request(&again, Priority(0)))))
                && is_refused(|| drop(SpinLock::<Mcs<64>, ()>::new(()).lock_with(&again)));
        });
        // The look after a refused one has the holder release the lock.
        *here.lock_with(A::request(&first, Priority(0))) += 1;
        refused.take()
    });
    told.recv().expect("the waiter says when");
    drop(held);
    let refused = waiter.join().expect("a waiter that gets it");
    if refused {
        // All is as it would be without.
        assert_eq!(*lock.try_lock_with(A::request(&mine, Priority(0))).expect("it is free"), 1);
    }
    refused
}

#[test]
fn who_waits_asks_for_nothing() {
    let _turn = turn();
    fn is_refused<A: Algorithm + Send + Sync + 'static>() {
        assert!(asking_again_is_refused::<A>(Rc::clone), "{}", std::any::type_name::<A>());
    }
    is_refused::<Anderson<64, Hooked>>();
    is_refused::<Mcs<64, Hooked>>();
    is_refused::<Clh<64, Hooked>>();
    is_refused::<Markatos<64, Hooked>>();
    is_refused::<JohnsonHarathi<64, Hooked>>();
    is_refused::<Bpl<64, u64, Hooked>>();
    is_refused::<Batched<64, u64, Hooked>>();
}

/// Twin: two slots of one number. This is what would happen: the lock comes to the second request, and the first takes it for its own.
#[test]
fn two_slots_of_one_number_are_caught() {
    let _turn = turn();
    // SAFETY: the promise is broken on purpose; what both get into is one number, reached by one thread.
    let second = |first: &Rc<Slot>| Rc::new(unsafe { Slot::new(first.index()) });
    assert!(!asking_again_is_refused::<Mcs<64, Hooked>>(second));
}

/// The lock is held; a waiter's deadline asks again, panics by that, and leaves.
fn a_deadline_that_asks_again<A: Abortable>() {
    let (one, two) = (slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let held = lock.lock_with(A::request(&one, Priority(0)));
    let request = A::request(&two, Priority(0));
    assert!(is_refused(|| {
        let second = lock.lock_until(request, || lock.lock_until(request, || true).is_none());
        assert!(second.is_none(), "two hold it");
    }));
    // It has left, and may ask again.
    assert!(lock.lock_until(request, || true).is_none());
    drop(held);
    drop(lock.lock_with(request));
    drop(lock.try_lock_with(A::request(&one, Priority(0))).expect("it is free"));
}

#[test]
fn a_deadline_that_asks_again_is_refused() {
    let _turn = turn();
    a_deadline_that_asks_again::<Bpl<64, u64>>();
    a_deadline_that_asks_again::<Batched<64, u64>>();
}

/// A deadline panics: at a look in vain, and after the lock came.
fn a_deadline_that_panics<A: Abortable>() {
    let (one, two, three) = (slot(), slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let request = A::request(&two, Priority(0));
    for lets_go in [false, true] {
        let mut held = Some(lock.lock_with(A::request(&one, Priority(0))));
        let panics = || {
            if lets_go {
                held = None;
            }
            panic!("no time")
        };
        assert_eq!(said(|| drop(lock.lock_until(request, panics))).as_deref(), Some("no time"));
        drop(held);
        for slot in [&three, &one, &two] {
            drop(lock.try_lock_with(A::request(slot, Priority(0))).expect("it is free"));
        }
    }
}

#[test]
fn who_panics_in_a_deadline_has_left() {
    let _turn = turn();
    a_deadline_that_panics::<Bpl<64, u64>>();
    a_deadline_that_panics::<Batched<64, u64>>();
}

/// A `relax` panics: the request stays where nobody can give it up, and so does the slot.
fn a_relax_that_panics<A: Algorithm>() {
    let (one, two) = (slot(), slot());
    let lock = SpinLock::<A, u32>::new(0);
    let held = lock.lock_with(A::request(&one, Priority(0)));
    next_look(|| panic!("no time"));
    assert_eq!(said(|| drop(lock.lock_with(A::request(&two, Priority(0))))).as_deref(), Some("no time"));
    assert!(is_refused(|| drop(lock.try_lock_with(A::request(&two, Priority(0))))));
    assert!(is_refused(|| drop(SpinLock::<Mcs<64>, ()>::new(()).lock_with(&two))));
    drop(held);
    let number = two.index();
    drop(two);
    let others: Vec<Slot> = iter::from_fn(Slot::claim).collect();
    assert!(others.iter().all(|other| other.index() != number), "its number is given to another");
    for other in [&one, &others[0]] {
        assert!(lock.try_lock_with(A::request(other, Priority(0))).is_none(), "it came to nobody, and is free");
    }
}

#[test]
fn who_panics_while_it_waits_waits_for_ever() {
    let _turn = turn();
    a_relax_that_panics::<Anderson<64, Hooked>>();
    a_relax_that_panics::<Mcs<64, Hooked>>();
    a_relax_that_panics::<Clh<64, Hooked>>();
    a_relax_that_panics::<Markatos<64, Hooked>>();
    a_relax_that_panics::<JohnsonHarathi<64, Hooked>>();
}
