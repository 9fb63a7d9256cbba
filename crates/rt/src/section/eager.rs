//! Eager sections: the thread rises above all tasks, and falls back when it leaves.
//!
//! ```text
//!   depth   raised   meaning                            enter               leave
//!   0       no       outside                            rise, depth 1       -
//!   n       yes      inside, n deep                     depth n + 1         depth n - 1; at 0 fall back
//!   n       no       inside, at the thread's own level  depth n + 1         depth n - 1
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

/// A handle with which the calling thread enters eager sections. Make it at set-up and use it in jobs.
///
/// Inside a section, the thread is under SCHED_FIFO (or SCHED_RR, if it was before) at level 98. That is above the 97
/// levels of tasks and below a watchdog at 99. No thread of a lower level preempts it, whether that thread uses
/// sections or not. Threads of level 98 do not preempt each other. A thread whose own level is 98 or higher keeps its
/// level, and entering costs it nothing.
///
/// The thread falls back to the policy and level that it had when the handle was made. Make a new handle after you
/// change those. A thread that was put under the ordinary policy meanwhile stays there. A child of `fork` may use its
/// copy of the handle; if it was forked inside a section, it begins inside.
///
/// # Bound
/// A more urgent thread waits for at most one section of less urgent ones: the one in progress at its release.
///
/// # Examples
/// ```no_run
/// use lockwright::section::Eager;
///
/// match Eager::new() {
///     Ok(thread) => {
///         let _section = thread.enter()?;
///         // No thread below level 98 preempts this one here.
///     }
///     Err(error) => eprintln!("{error}"),
/// }
/// # Ok::<(), lockwright::section::SectionError>(())
/// ```
#[derive(Debug)]
pub struct Eager {
    /// The scheduling outside sections.
    pub(super) base: Scheduling,
    /// The level inside sections.
    level: u8,
    pub(super) depth: Cell<u64>,
    is_raised: Cell<bool>,
    /// Makes the handle neither `Send` nor `Sync`: it belongs to this thread.
    here: PhantomData<*mut ()>,
}

impl Eager {
    /// Creates a handle for the calling thread, with sections above all tasks. Rises and falls back once, to check the
    /// permission.
    ///
    /// # Errors
    /// [`SectionError::NoPermission`] describes the permission to grant; [`SectionError::Deadline`] and
    /// [`SectionError::SecondHandle`] if the thread cannot have a handle; [`SectionError::Sys`] if the kernel refuses
    /// for another reason.
    pub fn new() -> Result<Self, SectionError> {
        Self::at(SECTION_LEVEL)
    }

    /// Creates a handle like [`Eager::new`], with sections at another level. Threads above that level preempt them.
    ///
    /// # Errors
    /// Those of [`Eager::new`], and [`SectionError::BadLevel`] for a level outside 1 to 99.
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
        // From here on, dropping the handle clears `HAS_HANDLE`.
        let handle = Self { base, level, depth: Cell::new(0), is_raised: Cell::new(false), here: PhantomData };
        handle.enter()?.leave()?;
        Ok(handle)
    }

    /// Enters a section: raises the thread, unless it is already inside one. Then entering costs nothing, and the
    /// section lasts until all are left.
    ///
    /// # Errors
    /// [`SectionError::NoPermission`] if the permission was withdrawn since the handle was made; [`SectionError::Sys`]
    /// if the thread was put under another policy since. After an error the thread is unchanged.
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
            // Fails if the thread was put under the ordinary policy meanwhile, so a section does not undo that.
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

    /// Lowers the thread again, if it was raised.
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
            // The thread was put under another policy meanwhile, so it is not raised any more.
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
    /// Lowers the thread if a section was forgotten, or if its end was refused.
    fn drop(&mut self) {
        // The last of three attempts; `EagerSection::leave` reports errors.
        let _ = self.fall();
        HAS_HANDLE.set(false);
    }
}

/// An eager section, which ends when this value is dropped, even during a panic.
///
/// The kernel has no reason to refuse to lower a thread. If it does, [`EagerSection::leave`] returns the error, and the
/// thread stays raised until the end of its next section or of its handle succeeds. A section that is forgotten
/// (`std::mem::forget`) ends with the handle. If the handle is also forgotten, the thread stays raised.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct EagerSection<'a>(&'a Eager);

impl EagerSection<'_> {
    /// Leaves the section like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`SectionError::Sys`] if the kernel refused; the thread is then still raised.
    pub fn leave(self) -> Result<(), SectionError> {
        let handle = self.0;
        std::mem::forget(self);
        handle.leave()
    }
}

impl Drop for EagerSection<'_> {
    fn drop(&mut self) {
        // A failure is retried later: see above.
        let _ = self.0.leave();
    }
}
