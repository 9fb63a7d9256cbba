//! Robust mutexes of the C library and of Lockwright in one thread's list: a thread locks and unlocks them in all
//! orders, and ends with the rest.

use crate::support::*;
use lockwright::mutex::{Acquired, Limit, RawError, RawMutex, attributes};
use std::cell::UnsafeCell;
use std::thread;

/// A robust mutex of the C library. It stays where it is.
struct Native(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: the C library's functions synchronise the threads that use a mutex, and nothing else accesses it.
unsafe impl Sync for Native {}

impl Native {
    fn new(inherits: bool) -> Self {
        let native = Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: the attributes are initialised before they are used, and all pointers are valid.
        let made = unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, i32::from(inherits));
            libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(native.0.get(), &raw const attributes)
        };
        assert_eq!(made, 0);
        native
    }
}

/// The result of a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Came {
    Clean,
    OwnerDied,
    Not,
}

enum Either {
    Ours(Box<RawMutex>),
    Native(Native),
}

impl Either {
    fn try_lock(&self) -> Came {
        match self {
            Self::Ours(mutex) => match mutex.lock(Limit::Now) {
                Ok(Acquired::Clean) => Came::Clean,
                Ok(Acquired::OwnerDied) => Came::OwnerDied,
                Err(RawError::Busy) => Came::Not,
                Err(error) => panic!("{error:?}"),
            },
            // SAFETY: the mutex was initialised.
            Self::Native(native) => match unsafe { libc::pthread_mutex_trylock(native.0.get()) } {
                0 => Came::Clean,
                libc::EOWNERDEAD => Came::OwnerDied,
                libc::EBUSY => Came::Not,
                errno => panic!("{errno}"),
            },
        }
    }

    /// Unlocks. The caller holds the mutex.
    fn unlock(&self, came: Came) {
        match self {
            Self::Ours(mutex) => {
                if came == Came::OwnerDied {
                    assert_eq!(mutex.make_consistent(), Ok(()));
                }
                assert_eq!(mutex.unlock(), Ok(()));
            }
            // SAFETY: the mutex was initialised, and the caller holds it.
            Self::Native(native) => unsafe {
                if came == Came::OwnerDied {
                    assert_eq!(libc::pthread_mutex_consistent(native.0.get()), 0);
                }
                assert_eq!(libc::pthread_mutex_unlock(native.0.get()), 0);
            },
        }
    }
}

fn ours(kind: u32) -> Either {
    Either::Ours(Box::new(raw_mutex(kind, 0)))
}

/// All sequences of `length` different numbers below `of`.
fn sequences(of: usize, length: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let longer = |one: Vec<usize>| {
            let left: Vec<usize> = (0..of).filter(|next| !one.contains(next)).collect();
            left.into_iter().map(move |next| [&one[..], &[next]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// A thread locks the mutexes in each order, unlocks some in each order, and ends. Returns for how many of them the
/// next thread got a wrong result.
fn lies(mutexes: &[Either]) -> usize {
    let mut lies = 0;
    let givings: Vec<Vec<usize>> = (0..=mutexes.len()).flat_map(|some| sequences(mutexes.len(), some)).collect();
    for taken in sequences(mutexes.len(), mutexes.len()) {
        for given in &givings {
            thread::scope(|scope| {
                let owner = scope.spawn(|| {
                    taken.iter().for_each(|&at| assert_eq!(mutexes[at].try_lock(), Came::Clean, "{taken:?}"));
                    given.iter().for_each(|&at| mutexes[at].unlock(Came::Clean));
                });
                // A joined thread has ended for the kernel as well.
                owner.join().expect("the owner does not panic");
            });
            for (at, mutex) in mutexes.iter().enumerate() {
                let came = mutex.try_lock();
                let expected = if given.contains(&at) { Came::Clean } else { Came::OwnerDied };
                lies += usize::from(came != expected);
                if came == Came::Not {
                    // The mutex can never be locked again.
                    return lies;
                }
                mutex.unlock(came);
            }
        }
    }
    lies
}

#[test]
fn both_libraries_share_the_list_of_a_thread() {
    let Some(_stage) = Stage::set() else { return };
    for (one, other) in [(0, 0), (attributes::INHERIT, attributes::INHERIT), (0, attributes::INHERIT)] {
        let natives = [one, other].map(|kind| Either::Native(Native::new(kind != 0)));
        let [a, b] = natives;
        assert_eq!(
            lies(&[ours(attributes::ROBUST | one), a, ours(attributes::ROBUST | other), b]),
            0,
            "{one:x} {other:x}"
        );
    }
}

/// The mutant: a mutex that is in no list gives a wrong result.
#[test]
fn an_unlinked_mutex_is_detected() {
    let Some(_stage) = Stage::set() else { return };
    assert_eq!(lies(&[ours(attributes::ROBUST), Either::Native(Native::new(false)), ours(attributes::NORMAL)]), 1);
}
