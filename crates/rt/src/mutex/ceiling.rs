//! Ceilings: while a thread holds a mutex that protects, it has at least the ceiling's level.
//!
//! ```text
//!   held          the thread's level
//!   none          its own
//!   some          the highest of its own and of the ceilings of what it holds
//! ```
//!
//! Two changes of the level where one rises above one's own, none where a ceiling held already is as high.
//!
//! A thread that is managed (see [`Lazy`](crate::section::Lazy)) does not rise: it says in a word of its processor that it holds something of this
//! ceiling, which other managed threads look at when their jobs are released, unless they are above it. Two atomic operations.

use super::error::RawError;
use crate::section::{CEILINGS_MAX, LazyCeiling};
use lockwright_sys::pi_word::PiError;
use lockwright_sys::sched::{self, ME, Scheduling};
use lockwright_sys::{KeepErrno, SysError, fork};
use std::cell::Cell;

/// Highest level of SCHED_FIFO.
const LEVEL_MAX: usize = 99;

/// What the calling thread holds. Small: a library that is loaded late shares what little memory the loader keeps for such as this.
struct Held {
    /// How many of each ceiling.
    count: [Cell<u16>; LEVEL_MAX + 1],
    /// The highest of them; 0 where there is none.
    top: Cell<u8>,
    /// The words of those that are said, not risen to.
    lazy: [Cell<Option<LazyCeiling>>; CEILINGS_MAX],
    /// How the thread is scheduled by itself; while `top` is not 0.
    own: Cell<Option<Scheduling>>,
}

thread_local! {
    static HELD: Held = const { Held { count: [const { Cell::new(0) }; LEVEL_MAX + 1], lazy: [const { Cell::new(None) }; CEILINGS_MAX], top: Cell::new(0), own: Cell::new(None) } };
}

/// Whether it is a level of SCHED_FIFO.
pub(super) fn is_level(level: u8) -> bool {
    (1..=LEVEL_MAX).contains(&usize::from(level))
}

pub(super) fn scheduling_of_caller() -> Result<Scheduling, SysError> {
    sched::scheduling(ME)
}

/// What is asked of the system once, asked for before the first ceiling.
pub(super) fn warm_up() {
    fork::in_child(forget);
}

/// Before the caller takes a mutex of this ceiling.
///
/// # Errors
/// [`RawError::AboveCeiling`] where the caller is more urgent by itself; [`RawError::Sys`] where the kernel refuses to raise it. It is as it was then.
pub(super) fn rise(ceiling: u8) -> Result<(), RawError> {
    warm_up();
    HELD.with(|held| {
        if let Some((word, level)) = LazyCeiling::of_caller(ceiling)
            && let Some(place) = held.said(ceiling).or_else(|| held.lazy.iter().find(|place| place.get().is_none()))
        {
            return held.rise_lazily(place, word, level);
        }
        let _errno = KeepErrno::now();
        let own = match held.own.get() {
            Some(own) => own,
            None => sched::scheduling(ME).map_err(RawError::Sys)?,
        };
        if own.is_deadline() || own.has_level() && own.level > ceiling {
            return Err(RawError::AboveCeiling);
        }
        let count = held.count.get(usize::from(ceiling)).ok_or(RawError::BadKind)?;
        let more = count.get().checked_add(1).ok_or(RawError::TooOften)?;
        if ceiling > held.top.get() {
            // A thread that is at this level by itself stays there.
            if raises(own, ceiling) {
                set(own, ceiling).map_err(RawError::Sys)?;
            }
            held.top.set(ceiling);
        }
        held.own.set(Some(own));
        count.set(more);
        Ok(())
    })
}

/// After the caller gave back a mutex of this ceiling.
pub(super) fn fall(ceiling: u8) {
    HELD.with(|held| {
        let Some(count) = held.count.get(usize::from(ceiling)) else { return };
        count.set(count.get().saturating_sub(1));
        if count.get() == 0
            && let Some(word) = held.said(ceiling).and_then(Cell::take)
        {
            // The kernel has no reason to refuse; who finds the word in the name of a thread that ended inherits it.
            let _ = word.fall();
        }
        let Some(own) = held.own.get() else { return };
        if ceiling < held.top.get() || count.get() > 0 {
            return;
        }
        // BOUND: the levels.
        let top = (1..usize::from(ceiling)).rev().find(|&level| held.count[level].get() > 0).unwrap_or(0) as u8;
        held.top.set(top);
        if top == 0 {
            held.own.set(None);
        }
        if raises(own, ceiling) {
            let _errno = KeepErrno::now();
            // The kernel has no reason to refuse; a thread that was put under the ordinary policy meanwhile stays there.
            let _ = set(own, top);
        }
    });
}

/// Whether a thread that is scheduled like `own` by itself has another level at this ceiling.
fn raises(own: Scheduling, ceiling: u8) -> bool {
    !own.has_level() || own.level < ceiling
}

impl Held {
    /// Where the word of a ceiling is, if it is said.
    fn said(&self, ceiling: u8) -> Option<&Cell<Option<LazyCeiling>>> {
        self.lazy.iter().find(|place| place.get().is_some_and(|word| word.level() == ceiling))
    }

    fn rise_lazily(&self, place: &Cell<Option<LazyCeiling>>, word: LazyCeiling, level: u8) -> Result<(), RawError> {
        let ceiling = word.level();
        if level > ceiling {
            return Err(RawError::AboveCeiling);
        }
        let count = self.count.get(usize::from(ceiling)).ok_or(RawError::BadKind)?;
        let more = count.get().checked_add(1).ok_or(RawError::TooOften)?;
        if count.get() == 0 {
            word.rise().map_err(|error| match error {
                PiError::Deadlock => RawError::Deadlock(None),
                PiError::OwnerDied => RawError::Sys(SysError { call: "raising a ceiling", errno: libc::EAGAIN }),
                PiError::Sys(error) => RawError::Sys(error),
            })?;
            place.set(Some(word));
        }
        count.set(more);
        Ok(())
    }
}

/// In a child process: its thread holds nothing. What its parent's thread held is the parent's.
extern "C" fn forget() {
    HELD.with(|held| {
        held.count.iter().for_each(|count| count.set(0));
        // Words of processors are those of the child, where nobody has them.
        held.lazy.iter().for_each(|word| word.set(None));
        held.top.set(0);
        if let Some(own) = held.own.take() {
            // A thread whose children do not inherit its policy has an ordinary one here, and no level to change.
            let _ = set(own, 0);
        }
    });
}

/// The level of `own`, or of the ceiling where that is higher.
fn set(own: Scheduling, ceiling: u8) -> Result<(), SysError> {
    if own.has_level() {
        return sched::set_level(ME, own.level.max(ceiling));
    }
    sched::set_scheduling(ME, if ceiling == 0 { own } else { own.fifo(ceiling) })
}

/// Another level for the calling thread by itself, wherever ceilings hold it above that. Says whether it was noted here, and nothing
/// is left to do.
pub fn note_own(level: u8) -> bool {
    HELD.with(|held| match held.own.get() {
        Some(own) => {
            held.own.set(Some(own.at(level)));
            level <= held.top.get()
        }
        _ => false,
    })
}

/// Policy and level of the calling thread by itself, ceilings not counted.
///
/// # Errors
/// What the kernel says.
pub fn own_scheduling() -> Result<(i32, u8), SysError> {
    let own = match HELD.with(|held| held.own.get()) {
        Some(own) => own,
        None => sched::scheduling(ME)?,
    };
    Ok((own.policy(), own.level))
}

/// Another policy and level for the calling thread by itself, while ceilings hold it: it has the higher of level and ceilings.
/// `None` while none does: then nothing was done.
///
/// # Errors
/// What the kernel says: all is as it was.
pub fn set_own_scheduling(policy: i32, level: u8) -> Option<Result<(), SysError>> {
    HELD.with(|held| {
        let own = held.own.get()?;
        let wanted = own.under(policy, level);
        Some(set_policy(wanted, held.top.get()).map(|()| held.own.set(Some(wanted))))
    })
}

/// As [`set`], where the policy may be another than the kernel has.
fn set_policy(own: Scheduling, ceiling: u8) -> Result<(), SysError> {
    if own.has_level() {
        return sched::set_scheduling(ME, own.at(own.level.max(ceiling)));
    }
    // Asked first: it is refused before anything changed.
    sched::set_scheduling(ME, own)?;
    set(own, ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loader keeps some 1,600 bytes for all thread-locals of libraries that are loaded late.
    #[test]
    fn what_each_thread_has_is_small() {
        assert!(size_of::<Held>() <= 384, "{}", size_of::<Held>());
    }
}
