//! Ceilings: while a thread holds a mutex with a ceiling, it runs at least at the ceiling's level.
//!
//! ```text
//!   held          the thread's level
//!   none          its own
//!   some          the highest of its own and of the ceilings of the mutexes it holds
//! ```
//!
//! A lock and unlock change the level twice if the ceiling is above the thread's level, and not at all while the thread
//! holds a ceiling that is at least as high.
//!
//! A managed thread (see [`Lazy`](crate::section::Lazy)) does not rise. It marks this ceiling as held in a word of its
//! processor, and the other managed threads check that word when their jobs are released, unless they are above the
//! ceiling. This takes two atomic operations.

use super::error::RawError;
use crate::section::{CEILINGS_MAX, LazyCeiling};
use lockwright_sys::pi_word::PiError;
use lockwright_sys::sched::{self, ME, Scheduling};
use lockwright_sys::{KeepErrno, SysError, fork};
use std::cell::Cell;

/// Highest level of SCHED_FIFO.
const LEVEL_MAX: usize = 99;

/// The ceilings that the calling thread holds. This is small, because the loader keeps little memory for the
/// thread-locals of a library that is loaded late.
struct Held {
    /// The number of mutexes held with each ceiling.
    count: [Cell<u16>; LEVEL_MAX + 1],
    /// The highest ceiling held, or 0 if none is.
    top: Cell<u8>,
    /// The words of the ceilings that are marked as held without a change of level.
    lazy: [Cell<Option<LazyCeiling>>; CEILINGS_MAX],
    /// The thread's own scheduling, without ceilings, while `top` is not 0.
    own: Cell<Option<Scheduling>>,
}

thread_local! {
    static HELD: Held = const { Held { count: [const { Cell::new(0) }; LEVEL_MAX + 1], lazy: [const { Cell::new(None) }; CEILINGS_MAX], top: Cell::new(0), own: Cell::new(None) } };
}

/// Whether `level` is a level of SCHED_FIFO.
pub(super) fn is_level(level: u8) -> bool {
    (1..=LEVEL_MAX).contains(&usize::from(level))
}

/// Registers the fork handler, before the first ceiling does.
pub(super) fn warm_up() {
    fork::in_child(forget);
}

/// Raises the caller before it locks a mutex with this ceiling.
///
/// # Errors
/// [`RawError::AboveCeiling`] if the caller's own level is higher; [`RawError::TooOften`] if it holds too many mutexes
/// with this ceiling; [`RawError::Inapplicable`] if the ceiling is not a level; [`RawError::Sys`] if the kernel refuses
/// to raise it. For a managed thread also [`RawError::Deadlock`], and [`RawError::Busy`] if it may not wait and another
/// managed thread holds the ceiling. After an error nothing has changed.
///
/// # Bound
/// A managed thread that may wait waits for the rest of a section with this ceiling, at its own priority. Other threads
/// do not wait.
pub(super) fn rise(ceiling: u8, may_wait: bool) -> Result<(), RawError> {
    warm_up();
    HELD.with(|held| {
        if let Some((word, level)) = LazyCeiling::of_caller(ceiling)
            && let Some(place) = held.said(ceiling).or_else(|| held.lazy.iter().find(|place| place.get().is_none()))
        {
            return held.rise_lazily(place, word, level, may_wait);
        }
        let _errno = KeepErrno::now();
        let own = match held.own.get() {
            Some(own) => own,
            None => sched::scheduling(ME).map_err(RawError::Sys)?,
        };
        if own.is_deadline() || own.has_level() && own.level > ceiling {
            return Err(RawError::AboveCeiling);
        }
        let count = held.count.get(usize::from(ceiling)).ok_or(RawError::Inapplicable)?;
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

/// Lowers the caller after it unlocked a mutex with this ceiling.
pub(super) fn fall(ceiling: u8) {
    HELD.with(|held| {
        let Some(count) = held.count.get(usize::from(ceiling)) else { return };
        count.set(count.get().saturating_sub(1));
        if count.get() == 0
            && let Some(word) = held.said(ceiling).and_then(Cell::take)
        {
            // The kernel has no reason to refuse. A thread that finds an ended owner in the word takes the word over.
            let _ = word.fall();
        }
        let Some(own) = held.own.get() else { return };
        if ceiling < held.top.get() || count.get() > 0 {
            return;
        }
        // BOUND: one round for each level.
        let top = (1..usize::from(ceiling)).rev().find(|&level| held.count[level].get() > 0).unwrap_or(0) as u8;
        held.top.set(top);
        if top == 0 {
            held.own.set(None);
        }
        if raises(own, ceiling) {
            let _errno = KeepErrno::now();
            // The kernel has no reason to refuse. A thread that was put under the ordinary policy meanwhile stays
            // there.
            let _ = set(own, top);
        }
    });
}

/// Whether a thread that is scheduled like `own` by itself has another level at this ceiling.
fn raises(own: Scheduling, ceiling: u8) -> bool {
    !own.has_level() || own.level < ceiling
}

impl Held {
    /// Returns the place of the word of this ceiling, if it is marked as held.
    fn said(&self, ceiling: u8) -> Option<&Cell<Option<LazyCeiling>>> {
        self.lazy.iter().find(|place| place.get().is_some_and(|word| word.level() == ceiling))
    }

    fn rise_lazily(
        &self,
        place: &Cell<Option<LazyCeiling>>,
        word: LazyCeiling,
        level: u8,
        may_wait: bool,
    ) -> Result<(), RawError> {
        let ceiling = word.level();
        if level > ceiling {
            return Err(RawError::AboveCeiling);
        }
        let count = self.count.get(usize::from(ceiling)).ok_or(RawError::Inapplicable)?;
        let more = count.get().checked_add(1).ok_or(RawError::TooOften)?;
        if count.get() == 0 {
            if !word.try_rise() {
                if !may_wait {
                    return Err(RawError::Busy);
                }
                word.rise().map_err(|error| match error {
                    PiError::Deadlock => RawError::Deadlock(None),
                    PiError::OwnerDied => RawError::Sys(SysError { call: "raising a ceiling", errno: libc::EAGAIN }),
                    PiError::Sys(error) => RawError::Sys(error),
                })?;
            }
            place.set(Some(word));
        }
        count.set(more);
        Ok(())
    }
}

/// Forgets all ceilings in a child process: they are held by the parent's thread.
extern "C" fn forget() {
    HELD.with(|held| {
        held.count.iter().for_each(|count| count.set(0));
        // The words belong to the processors of the child, where no thread holds them.
        held.lazy.iter().for_each(|word| word.set(None));
        held.top.set(0);
        if let Some(own) = held.own.take() {
            // A thread with the flag that resets a child's policy has the ordinary policy here, and no level to change.
            let _ = set(own, 0);
        }
    });
}

/// Sets the caller to its own level or the ceiling, whichever is higher.
fn set(own: Scheduling, ceiling: u8) -> Result<(), SysError> {
    if own.has_level() {
        return sched::set_level(ME, own.level.max(ceiling));
    }
    sched::set_scheduling(ME, if ceiling == 0 { own } else { own.fifo(ceiling) })
}

/// Sets the calling thread's own level, if ceilings held hide it. Returns whether the new level is recorded and not
/// above the ceilings, so that nothing is left to do.
pub fn note_own(level: u8) -> bool {
    HELD.with(|held| match held.own.get() {
        Some(own) => {
            held.own.set(Some(own.at(level)));
            level <= held.top.get()
        }
        _ => false,
    })
}

/// Returns the calling thread's own policy and level, without ceilings.
///
/// # Errors
/// The error of the kernel.
pub fn own_scheduling() -> Result<(i32, u8), SysError> {
    let own = match HELD.with(|held| held.own.get()) {
        Some(own) => own,
        None => sched::scheduling_separately(ME)?,
    };
    Ok((own.policy(), own.level))
}

/// Sets the calling thread's own policy and level while it holds ceilings: it then runs at the higher of the level and
/// the ceilings. Returns `None`, and does nothing, if it holds no ceiling.
///
/// # Errors
/// The error of the kernel; then nothing has changed.
pub fn set_own_scheduling(policy: i32, level: u8) -> Option<Result<(), SysError>> {
    HELD.with(|held| {
        let own = held.own.get()?;
        let wanted = own.under(policy, level);
        Some(set_policy(wanted, held.top.get()).map(|()| held.own.set(Some(wanted))))
    })
}

/// Like [`set`], for a policy that may differ from the current one.
fn set_policy(own: Scheduling, ceiling: u8) -> Result<(), SysError> {
    if own.has_level() {
        return sched::set_scheduling(ME, own.at(own.level.max(ceiling)));
    }
    // Asked first, so that a refusal leaves everything unchanged.
    sched::set_scheduling(ME, own)?;
    set(own, ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loader keeps some 1,600 bytes for the thread-locals of all libraries that are loaded late.
    #[test]
    fn the_thread_local_state_is_small() {
        assert!(size_of::<Held>() <= 384, "{}", size_of::<Held>());
    }
}
