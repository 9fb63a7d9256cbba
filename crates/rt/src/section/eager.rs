//! Eager sections: the thread rises above all tasks, and falls back when it leaves.
//!
//! ```text
//!   depth   raised   meaning                            enter               leave
//!   0       no       outside                            rise, depth 1       -
//!   n       yes      inside, n deep                     depth n + 1         depth n - 1; at 0 fall back
//!   n       no       inside, at the level by itself     depth n + 1         depth n - 1
//!   0       yes      the kernel refused the fall        depth 1             -
//! ```

use super::error::SectionError;
use crate::levels::SECTION_LEVEL;
use lockwright_sys::SysError;
use lockwright_sys::sched::{self, ME, Scheduling};
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Whether this thread has a handle.
    static HAS_HANDLE: Cell<bool> = const { Cell::new(false) };
}

/// Highest level of SCHED_FIFO.
const LEVEL_MAX: u8 = 99;

/// The right of the calling thread to enter eager sections. Make it at set-up, use it in jobs.
///
/// Inside, the thread is under SCHED_FIFO (or SCHED_RR, if it was) at level 98: above the 97 levels tasks have, below a watchdog at 99.
/// No thread of a lower level preempts it, whether it knows of sections or not. Threads of level 98 do not preempt each other;
/// a thread that has that level or a higher one by itself stays where it is, and entering costs it nothing.
///
/// The thread falls back to the policy and level it had when the handle was made. Make a new handle after you change those.
/// A thread that somebody else puts under the ordinary policy meanwhile stays there. A child of `fork` may use the handle it has a
/// copy of; forked inside a section, it begins inside.
///
/// # Bound
/// Whoever is more urgent than the thread waits for at most one section of those less urgent: the one it finds.
///
/// # Examples
/// ```
/// use lockwright::section::Eager;
///
/// match Eager::new() {
///     Ok(thread) => {
///         let _section = thread.enter()?;
///         // Nobody below level 98 comes between.
///     }
///     Err(error) => eprintln!("{error}"),
/// }
/// # Ok::<(), lockwright::section::SectionError>(())
/// ```
#[derive(Debug)]
pub struct Eager {
    /// Outside sections.
    pub(super) base: Scheduling,
    /// Inside sections.
    level: u8,
    pub(super) depth: Cell<u64>,
    is_raised: Cell<bool>,
    /// Neither `Send` nor `Sync`: it is about this thread.
    here: PhantomData<*mut ()>,
}

impl Eager {
    /// For the calling thread, at the level above all tasks. Rises and falls back once, to see whether it may.
    ///
    /// # Errors
    /// [`SectionError::NoPermission`] says what to grant; [`SectionError::Deadline`] and [`SectionError::SecondHandle`]
    /// where the thread cannot have one; [`SectionError::Sys`] where the kernel refuses otherwise.
    pub fn new() -> Result<Self, SectionError> {
        Self::at(SECTION_LEVEL)
    }

    /// As [`Eager::new`], with sections at another level. Threads above it preempt them.
    ///
    /// # Errors
    /// Those of [`Eager::new`], and [`SectionError::BadLevel`] for a level that is not among 1 to 99.
    pub fn at(level: u8) -> Result<Self, SectionError> {
        if !(1..=LEVEL_MAX).contains(&level) {
            return Err(SectionError::BadLevel { level });
        }
        let base = sched::scheduling(ME).map_err(SectionError::Sys)?;
        if base.is_deadline() {
            return Err(SectionError::Deadline);
        }
        if HAS_HANDLE.replace(true) {
            return Err(SectionError::SecondHandle);
        }
        // From here on its drop gives the place back.
        let handle = Self { base, level, depth: Cell::new(0), is_raised: Cell::new(false), here: PhantomData };
        handle.enter()?.leave()?;
        Ok(handle)
    }

    /// Rises, unless the thread is inside a section already: then it costs nothing, and the section lasts until all are left.
    ///
    /// # Errors
    /// [`SectionError::NoPermission`] where the permission was taken away since the handle was made; [`SectionError::Sys`] where
    /// the thread was put under another policy since. The thread is as it was then.
    #[inline]
    pub fn enter(&self) -> Result<EagerSection<'_>, SectionError> {
        if self.depth.get() == 0 {
            self.rise()?;
        }
        self.depth.set(self.depth.get() + 1);
        Ok(EagerSection(self))
    }

    fn rise(&self) -> Result<(), SectionError> {
        if self.is_raised.get() || self.base.level >= self.level {
            return Ok(());
        }
        let risen = if self.base.has_level() {
            // Fails where the thread was put under the ordinary policy meanwhile: nobody climbs back by it.
            sched::set_level(ME, self.level)
        } else {
            sched::set_scheduling(ME, self.base.fifo(self.level))
        };
        risen.map_err(|error| match error.is_permission() {
            true => SectionError::NoPermission { level: self.level, error },
            false => SectionError::Sys(error),
        })?;
        self.is_raised.set(true);
        Ok(())
    }

    /// Falls back, if it rose.
    fn fall(&self) -> Result<(), SectionError> {
        if !self.is_raised.get() {
            return Ok(());
        }
        let fallen = if self.base.has_level() {
            sched::set_level(ME, self.base.level)
        } else {
            sched::set_scheduling(ME, self.base)
        };
        match fallen {
            // Under another policy meanwhile: it is not where it rose to.
            Err(SysError { errno: libc::EINVAL, .. }) if self.is_demoted() => {}
            fallen => fallen.map_err(SectionError::Sys)?,
        }
        self.is_raised.set(false);
        Ok(())
    }

    fn is_demoted(&self) -> bool {
        sched::scheduling(ME).is_ok_and(|now| !now.has_level())
    }

    fn leave(&self) -> Result<(), SectionError> {
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() == 0 { self.fall() } else { Ok(()) }
    }
}

impl Drop for Eager {
    /// Falls back if a section was forgotten, or its end refused.
    fn drop(&mut self) {
        // The last of three places that try; who wants to know asks `EagerSection::leave`.
        let _ = self.fall();
        HAS_HANDLE.set(false);
    }
}

/// Inside an eager section, until dropped; in a panic too.
///
/// The kernel has no reason to refuse that a thread falls back. If it does, [`EagerSection::leave`] says so, and the thread stays
/// raised until the end of its next section, or of its handle, succeeds. A section that is forgotten (`std::mem::forget`) ends with the handle;
/// where the handle is forgotten too, the thread stays raised.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct EagerSection<'a>(&'a Eager);

impl EagerSection<'_> {
    /// As dropping it, and says whether it succeeded.
    ///
    /// # Errors
    /// [`SectionError::Sys`] where the kernel refused; the thread is still raised then.
    pub fn leave(self) -> Result<(), SectionError> {
        let handle = self.0;
        std::mem::forget(self);
        handle.leave()
    }
}

impl Drop for EagerSection<'_> {
    fn drop(&mut self) {
        // Tried again later: see above.
        let _ = self.0.leave();
    }
}
