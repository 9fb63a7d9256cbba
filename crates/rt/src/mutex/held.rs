//! What a thread counts of the mutexes it holds (`lockwright_sys::held`), as the mutexes tell it.

use crate::mutex::{Builder, Limit, Protocol};
use lockwright_sys::held::holds_two;

/// Whether a thread that holds nothing is counted so: one mutex makes one, and another two.
fn counts_from_none() -> bool {
    let [one, other] = [Builder::new(), Builder::new()].map(|kind| kind.build_raw());
    drop(one.lock(Limit::Never));
    let holds_one = !holds_two();
    drop(other.lock(Limit::Never));
    let is_right = holds_one && holds_two();
    drop(other.unlock());
    drop(one.unlock());
    is_right
}

/// Whether a thread that takes these, in order, then holds two.
fn two_of(kinds: &[Builder]) -> bool {
    let mutexes: Vec<_> = kinds.iter().map(|kind| kind.build_raw()).collect();
    std::thread::scope(|scope| {
        let counts = scope.spawn(|| {
            assert!(!holds_two(), "a thread begins with none");
            mutexes.iter().for_each(|mutex| drop(mutex.lock(Limit::Never)));
            let two = holds_two();
            mutexes.iter().for_each(|mutex| drop(mutex.unlock()));
            assert!(!holds_two(), "all are given back");
            assert!(counts_from_none(), "and none is counted still, or twice");
            two
        });
        counts.join().expect("a thread")
    })
}

#[test]
fn each_thread_counts_what_inherits() {
    let (inherits, none) = (Builder::new(), Builder::new().protocol(Protocol::None));
    // SAFETY: all are unlocked before the vector they are in is dropped or changed.
    let [robust, plain_robust] = [inherits, none].map(|kind| unsafe { kind.robust(true) });
    let owned = inherits.kernel_owned(true);
    for kind in [inherits, robust, owned] {
        assert!(!two_of(&[kind]) && !two_of(&[none, kind]) && !two_of(&[plain_robust, kind]), "{kind:?}");
        assert!([inherits, robust, owned].iter().all(|other| two_of(&[kind, *other]) && two_of(&[none, kind, *other])));
    }
    assert!(!two_of(&[none, none]));
}
