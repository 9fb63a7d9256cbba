//! The word of a mutex, and what may become of it: pure transitions. `raw` carries them out.
//!
//! ```text
//!   word               meaning                                 lock                         unlock
//!   0                  free                                    -> tid                       -
//!   tid                owned, nobody waits                     -> tid | WAITERS, wait       -> 0
//!   tid | WAITERS      owned, somebody may wait                wait                         parallel: -> 0, wake one
//!                                                                                           serial: -> HANDED, wake one
//!   HANDED             belongs to the waiter that was woken    wait; who was woken: -> tid | WAITERS   -
//!   DIED, DIED|WAITERS the owner ended (set by the kernel)     -> tid (| WAITERS)           -
//! ```
//!
//! Under priority inheritance the kernel changes the word wherever somebody waits, and hands over the way its own documentation says:
//! `0`, `tid`, `tid | WAITERS`, and DIED beside them. Thread ids are below 2^30.
//!
//! HANDED names nobody, as FREE does: where a thread ends that was about to take or give back a robust mutex, and finds nobody's name in
//! the word, the kernel wakes another waiter, to whom it then belongs.

/// Free.
pub(crate) const FREE: u32 = 0;
/// Somebody may wait in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// The owner ended while it held the mutex.
pub(crate) const DIED: u32 = 0x4000_0000;
/// Given to the waiter that was woken, and to no other.
pub(crate) const HANDED: u32 = WAITERS;
const TID: u32 = 0x3fff_ffff;

/// The owner's thread id; 0 where there is none.
#[inline]
pub(crate) const fn owner(word: u32) -> u32 {
    word & TID
}

/// What somebody who asks does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Exchanges the word for this one, and owns the mutex; whether its owner had ended.
    Take {
        /// The word to be.
        word: u32,
        /// Whether the owner before ended.
        died: bool,
    },
    /// Exchanges the word for this one, which says that somebody waits, and asks again.
    Announce(u32),
    /// Waits while the word stays so.
    Wait,
}

/// For `me`, which has waited before or not, and was woken or not just now.
#[inline]
pub(crate) const fn ask(word: u32, me: u32, has_waited: bool, was_woken: bool) -> Ask {
    // Who has waited does not know whether it was the last: it says that somebody waits.
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

/// What the owner does to give back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GiveBack {
    /// Exchanges the word for FREE: nobody waits.
    Free,
    /// Writes FREE and wakes one, who asks like everybody else.
    Wake,
    /// Writes this and wakes one, who has the mutex.
    Hand(u32),
}

/// For an owner that gives back one after the other (`serial`) or to whoever comes first.
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
                assert_eq!(handed, if was_woken { taken } else { Ask::Wait }, "nobody else takes it");
            }
        }
    }

    #[test]
    fn who_gives_back_wakes_where_somebody_may_wait() {
        assert_eq!([false, true].map(|serial| give_back(ME, serial)), [GiveBack::Free; 2]);
        assert_eq!(give_back(ME | WAITERS, false), GiveBack::Wake);
        assert_eq!(give_back(ME | WAITERS, true), GiveBack::Hand(HANDED));
        assert_eq!(owner(HANDED), 0, "it has no owner to lend a priority to, or to find dead");
    }
}
