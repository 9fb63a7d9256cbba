//! Initialisation that happens once, while waiters lend their priority to the thread that performs it.
//!
//! The first caller executes the initialiser. A thread that calls meanwhile waits for that thread, which executes with
//! at least the priority of each thread that waits for it. So an urgent thread's first use of a value never waits for
//! threads of intermediate priority.
//!
//! Once the initialiser has returned, a call is one load. Nothing spins, and nothing allocates.
//!
//! # Failures
//! - An initialiser that panics has not initialised: the panic goes to its caller, and the next caller executes its own
//!   initialiser. The same holds if the thread ends inside, or is cancelled there.
//! - An initialiser that calls the same `Once` would wait for itself and gets [`OnceError::Deadlock`], as does one that
//!   closes a cycle of initialisers, or of initialisers and mutexes that inherit.
//! - In a child of `fork`, the initialisers that other threads of the parent were executing count as not begun. If the
//!   forking thread itself was inside an initialiser, the child may continue it, and another thread of the child may
//!   execute it as well.
//!
//! # Bound
//! A waiter waits until the initialiser has returned and the more urgent waiters have executed a few instructions each.
//! A thread that begins to wait while the initialiser returns may wait for another initialiser, for at most 10 ms.
//!
//! # Limits
//! At most 64 initialisers of a process execute at once, those nested in each other included.
//!
//! # Examples
//! ```
//! use lockwright::once::{Once, OnceError};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! static TABLE: Once = Once::new();
//! static LINES: AtomicU32 = AtomicU32::new(0);
//!
//! for _ in 0..2 {
//!     TABLE.call(|| _ = LINES.fetch_add(100, Ordering::Relaxed))?;
//! }
//! assert_eq!(LINES.load(Ordering::Relaxed), 100);
//! assert_eq!(TABLE.call(|| unreachable!()), Ok(()));
//! # Ok::<(), OnceError>(())
//! ```

mod error;
mod runs;
#[cfg(test)]
mod walk;

pub use error::OnceError;

use crate::mutex::{Limit, nap};
use lockwright_sys::KeepErrno;
use lockwright_sys::sched::{Tid, gettid};
use runs::RunSlot;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nobody has begun, or the initialiser did not return. The C library also has zero for this.
const NEW: u32 = 0;
/// A thread executes the initialiser. Its slot is above these bits.
const RUNS: u32 = 1;
/// The initialiser has returned. The C library also has 2 for this.
const DONE: u32 = 2;
const STEP: u32 = 3;
const SLOT: u32 = 4;

/// How often a wait must close a cycle before that counts as a deadlock. The first time, the slot may have passed to
/// another initialiser since it was read.
const CYCLES_MAX: u32 = 3;
/// Nanoseconds between two such waits.
const CYCLE_NAP_NS: u64 = 1_000_000;

/// A word that records whether an initialisation has been performed.
///
/// # Bound
/// See the [module](self).
#[repr(transparent)]
pub struct Once {
    state: AtomicU32,
}

/// The right to execute the initialiser of a [`Once`].
#[derive(Clone, Copy, Debug)]
#[must_use = "other callers wait until the initialiser ends"]
pub struct Run {
    slot: RunSlot,
}

impl Once {
    /// Creates a `Once` whose initialiser has yet to execute.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(NEW) }
    }

    /// Whether an initialiser has returned.
    #[inline]
    pub fn is_done(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `end`.
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Executes `initialise`, unless an initialiser has returned already. Waits for one that executes.
    ///
    /// After `Ok`, the effects of an initialiser that has returned are visible.
    ///
    /// # Errors
    /// [`OnceError::Deadlock`], [`OnceError::TooMany`], [`OnceError::Sys`]. `initialise` was not called then.
    #[inline]
    pub fn call(&self, initialise: impl FnOnce()) -> Result<(), OnceError> {
        if self.is_done() { Ok(()) } else { self.call_first(initialise) }
    }

    #[cold]
    fn call_first(&self, initialise: impl FnOnce()) -> Result<(), OnceError> {
        /// Lets the next caller try if the initialiser unwinds.
        struct Trial<'a>(&'a Once, Run);
        impl Drop for Trial<'_> {
            fn drop(&mut self) {
                self.0.abandon(self.1);
            }
        }
        if let Some(run) = self.begin()? {
            let trial = Trial(self, run);
            initialise();
            std::mem::forget(trial);
            self.end(run);
        }
        Ok(())
    }

    /// First part of a call: waits until the caller may execute the initialiser, or returns `None` if one has returned.
    ///
    /// The caller calls [`Once::end`] or [`Once::abandon`] afterwards. If its thread ends without that, the next caller
    /// executes the initialiser.
    ///
    /// # Errors
    /// Those of [`Once::call`].
    pub fn begin(&self) -> Result<Option<Run>, OnceError> {
        let _errno = KeepErrno::now();
        let me = gettid();
        let mut cycles = 0;
        // BOUND: the end of the initialiser. A round ends with it, or after the time that `RunSlot::wait` states;
        // CYCLES_MAX naps in a deadlock.
        loop {
            // ORDERING: Acquire pairs with the Release in `end`.
            let state = self.state.load(Ordering::Acquire);
            let slot = match state & STEP {
                DONE => return Ok(None),
                NEW => match self.try_begin(state, me)? {
                    Some(run) => return Ok(Some(run)),
                    None => continue,
                },
                _ => RunSlot::of(state / SLOT).ok_or(OnceError::TooMany)?,
            };
            if slot.is_used_by(me) {
                if slot.is_for(self.address()) {
                    return Err(OnceError::Deadlock);
                }
                // The caller uses the slot for another initialiser, so this one executes nowhere: its thread is one of
                // the parent process.
                match self.try_begin(state, me)? {
                    Some(run) => return Ok(Some(run)),
                    None => continue,
                }
            }
            match slot.wait(me) {
                // The slot says that this initialiser executes, and belongs to the caller: the thread that executed it
                // has ended, or was a thread of the parent process.
                Ok(true) if self.state.load(Ordering::Acquire) == state => {
                    return Ok(Some(Run { slot: slot.begin(self.address()) }));
                }
                Ok(true) => slot.leave(me),
                Ok(false) => {}
                Err(OnceError::Deadlock) if cycles < CYCLES_MAX => {
                    cycles += 1;
                    nap(CYCLE_NAP_NS, Limit::Never);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins with a new slot, unless the state has changed.
    fn try_begin(&self, state: u32, me: Tid) -> Result<Option<Run>, OnceError> {
        let slot = RunSlot::enter(me).ok_or(OnceError::TooMany)?;
        let runs = RUNS + slot.number() * SLOT;
        // ORDERING: Acquire: as the load in `begin`.
        if self.state.compare_exchange(state, runs, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Ok(Some(Run { slot: slot.begin(self.address()) }));
        }
        slot.leave(me);
        Ok(None)
    }

    /// Returns the address by which a slot identifies its once.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Last part of a call: the initialiser has returned.
    pub fn end(&self, run: Run) {
        let _errno = KeepErrno::now();
        // ORDERING: Release pairs with the Acquire of callers. The state comes before the slot, so that a waiter which
        // gets the slot sees it.
        self.state.store(DONE, Ordering::Release);
        Self::leave(run);
    }

    /// Last part of a call: the initialiser did not return. The next caller executes it.
    pub fn abandon(&self, run: Run) {
        let _errno = KeepErrno::now();
        // In a child process, another thread may have taken the initialiser over: its state stays. ORDERING: as in
        // `end`.
        let runs = RUNS + run.slot.number() * SLOT;
        let _ = self.state.compare_exchange(runs, NEW, Ordering::Release, Ordering::Relaxed);
        Self::leave(run);
    }

    fn leave(run: Run) {
        run.slot.end();
        run.slot.leave(gettid());
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("is_done", &self.is_done()).finish()
    }
}
