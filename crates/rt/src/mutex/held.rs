//! The count of locks with inheritance that a thread holds (`lockwright_sys::held`), as lock and unlock keep it.

use crate::mutex::{Builder, FifoMutex, Limit, MutexProtocol};
use crate::once::Once;
use lockwright_sys::held::holds_two;

/// Whether the calling thread, which holds nothing, counts one mutex as one and a second as two.
fn counts_from_none() -> bool {
    let [one, other] = [Builder::new(), Builder::new()].map(|builder| builder.build_raw());
    drop(one.lock(Limit::Never));
    let holds_one = !holds_two();
    drop(other.lock(Limit::Never));
    let is_right = holds_one && holds_two();
    drop(other.unlock());
    drop(one.unlock());
    is_right
}

/// Whether a thread that locks these in order then counts two.
fn two_of(kinds: &[Builder]) -> bool {
    let mutexes: Vec<_> = kinds.iter().map(|builder| builder.build_raw()).collect();
    std::thread::scope(|scope| {
        let counts = scope.spawn(|| {
            assert!(!holds_two(), "a new thread holds none");
            mutexes.iter().for_each(|mutex| drop(mutex.lock(Limit::Never)));
            let two = holds_two();
            mutexes.iter().for_each(|mutex| drop(mutex.unlock()));
            assert!(!holds_two(), "all are unlocked");
            assert!(counts_from_none(), "no mutex is still counted, or counted twice");
            two
        });
        counts.join().expect("the thread does not panic")
    })
}

#[test]
fn each_thread_counts_what_inherits() {
    let (inherits, none) = (Builder::new(), Builder::new().protocol(MutexProtocol::None));
    // SAFETY: every mutex is unlocked before its vector is dropped or changed.
    let [robust, plain_robust] = [inherits, none].map(|builder| unsafe { builder.robust(true) });
    let owned = inherits.kernel_owned(true);
    for builder in [inherits, robust, owned] {
        assert!(!two_of(&[builder]) && !two_of(&[none, builder]) && !two_of(&[plain_robust, builder]), "{builder:?}");
        assert!(
            [inherits, robust, owned]
                .iter()
                .all(|other| two_of(&[builder, *other]) && two_of(&[none, builder, *other]))
        );
    }
    assert!(!two_of(&[none, none]));
}

#[test]
fn fifo_mutexes_and_initialisers_count() {
    let (mutex, fifo) = (Builder::new().build_raw(), FifoMutex::<_>::new(()));
    let counts = || {
        drop(mutex.lock(Limit::Never));
        assert!(!holds_two());
        let [locked, tried] = [fifo.lock().map(|_guard| holds_two()), fifo.try_lock().map(|_guard| holds_two())];
        let mut called = false;
        Once::new().call(|| called = holds_two()).expect("it returns");
        let counted = [locked.expect("it is free"), tried.expect("it is free"), called];
        assert!(!holds_two(), "all are unlocked");
        drop(mutex.unlock());
        assert!(counts_from_none(), "nothing is still counted, or counted twice");
        counted
    };
    // An initialiser that panics has ended as well.
    let panics = || {
        let once = Once::new();
        let call = std::panic::AssertUnwindSafe(|| once.call(|| panic!("as the test demands")));
        assert!(std::panic::catch_unwind(call).is_err());
        counts_from_none()
    };
    let thread = std::thread::spawn(panics);
    assert!(thread.join().expect("the thread does not panic"), "nothing is counted after a panic");
    std::thread::scope(|scope| {
        assert_eq!(scope.spawn(counts).join().expect("the thread does not panic"), [true; 3]);
    });
}
