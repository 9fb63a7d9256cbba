//! The word of a mutex and its transitions, as pure functions. `lock`, `unlock` and `wait` carry them out.
//!
//! ```text
//!   word                 meaning                                lock                      unlock
//!   0                    free                                   -> tid                    -
//!   tid                  owned, nobody waits                    -> tid | WAITERS, wait    -> 0
//!   tid | WAITERS        owned, a thread may wait               wait                      parallel: -> 0, wake one
//!                                                                                         serial: -> HANDED, wake one
//!   HANDED               belongs to the waiter that was woken   wait;                     -
//!                                                               the heir: -> tid | WAITERS
//!                        robust, parallel: free, a thread may   -> tid | WAITERS          -
//!                        wait
//!   DIED, DIED|WAITERS   the owner ended (set by the kernel)    -> tid (| WAITERS)        -
//! ```
//!
//! The word of a robust mutex keeps WAITERS as long as a thread waits; see `robust/pass`.
//!
//! Under priority inheritance the kernel changes the word whenever a thread waits, and hands the mutex over as its own
//! documentation describes: `0`, `tid`, `tid | WAITERS`, and DIED in addition. Thread ids are below 2^30.
//!
//! HANDED contains no thread id, like FREE. If a thread ends while it is about to lock or unlock a robust mutex, and
//! the word contains no id, the kernel wakes another waiter, which is then the heir.

/// The mutex is free.
pub(crate) const FREE: u32 = 0;
/// A thread may wait in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// The owner ended while it held the mutex.
pub(crate) const DIED: u32 = 0x4000_0000;
/// The mutex belongs to the waiter that was woken, and to no other thread.
pub(crate) const HANDED: u32 = WAITERS;
const TID: u32 = 0x3fff_ffff;

/// Returns the owner's thread id, or 0 if there is no owner.
#[inline]
pub(crate) const fn owner(word: u32) -> u32 {
    word & TID
}

/// The next step of a thread that requests the mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Exchange the word for this one; the caller then owns the mutex.
    Take {
        /// The new word.
        word: u32,
        /// Whether the previous owner ended.
        died: bool,
    },
    /// Exchange the word for this one, which announces a waiter, and request again.
    Announce(u32),
    /// Wait while the word stays as it is.
    Wait,
}

/// Returns the next step of `me`, given whether it has waited before and whether it has just been woken.
#[inline]
pub(crate) const fn ask(word: u32, me: u32, has_waited: bool, was_woken: bool) -> Ask {
    // A thread that has waited does not know whether it was the only waiter, so it keeps announcing one.
    let kept = if has_waited { WAITERS } else { word & WAITERS };
    if word == HANDED {
        if was_woken { Ask::Take { word: me | WAITERS, died: false } } else { Ask::Wait }
    } else if word & !(WAITERS | DIED) == 0 {
        Ask::Take { word: me | kept, died: word & DIED != 0 }
    } else if word & WAITERS == 0 {
        Ask::Announce(word | WAITERS)
    } else {
        Ask::Wait
    }
}

/// The owner's step to unlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GiveBack {
    /// Exchange the word for FREE: nobody waits.
    Free,
    /// Write FREE and wake one waiter, which requests like any other thread.
    Wake,
    /// Write this word and wake one waiter, which then owns the mutex.
    Hand(u32),
}

/// Returns the step of an owner that hands the mutex to the first waiter (`serial`) or frees it.
#[inline]
pub(crate) const fn give_back(word: u32, serial: bool) -> GiveBack {
    if word & WAITERS == 0 {
        GiveBack::Free
    } else if serial {
        GiveBack::Hand(HANDED)
    } else {
        GiveBack::Wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 7;
    const OTHER: u32 = 9;

    #[test]
    fn only_free_dead_and_handed_words_are_taken() {
        for has_waited in [false, true] {
            for was_woken in [false, true] {
                let take = |word, died| {
                    let kept = if has_waited { WAITERS } else { word & WAITERS };
                    assert_eq!(ask(word, ME, has_waited, was_woken), Ask::Take { word: ME | kept, died });
                };
                take(FREE, false);
                take(DIED, true);
                take(DIED | WAITERS, true);
                assert_eq!(ask(OTHER, ME, has_waited, was_woken), Ask::Announce(OTHER | WAITERS));
                assert_eq!(ask(OTHER | WAITERS, ME, has_waited, was_woken), Ask::Wait);
                let handed = ask(HANDED, ME, has_waited, was_woken);
                let taken = Ask::Take { word: ME | WAITERS, died: false };
                assert_eq!(handed, if was_woken { taken } else { Ask::Wait }, "only the heir takes it");
            }
        }
    }

    #[test]
    fn an_unlock_wakes_a_waiter_if_one_may_wait() {
        assert_eq!([false, true].map(|serial| give_back(ME, serial)), [GiveBack::Free; 2]);
        assert_eq!(give_back(ME | WAITERS, false), GiveBack::Wake);
        assert_eq!(give_back(ME | WAITERS, true), GiveBack::Hand(HANDED));
        assert_eq!(owner(HANDED), 0, "a handed mutex has no owner that could inherit a priority or be found dead");
    }
}
