//! Extended sections: the kernel lets the thread finish its section before it switches, for a few microseconds.
//!
//! ```text
//!   thread             kernel, in an interrupt            the other thread
//!   enter: asks
//!   ...                wants to switch: grants            waits
//!   ...                sets a timer, returns
//!   leave: the grant
//!     is there,
//!     gives back       switches                           executes
//! ```
//!
//! Without a grant, entering and leaving are a few instructions that only this thread sees.

use super::error::SectionError;
use lockwright_sys::time_slice::{Extension, Withdrawn};
use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// Whether this thread has a handle.
    static HAS_HANDLE: Cell<bool> = const { Cell::new(false) };
}

/// A handle with which the calling thread enters extended sections. Make it at set-up and use it in jobs. The thread
/// may have any policy.
///
/// Inside a section, the thread asks the kernel for an extension of its time slice (`rseq_slice_ctrl`, Linux 7.0). If
/// an interrupt would preempt the thread there, the kernel may let it continue instead, for at most the time in
/// `/sys/kernel/debug/rseq/slice_ext_nsec` (5 µs by default, at most 50 µs). At the end of such a section, the thread
/// gives the processor to the other one at once (`rseq_slice_yield`).
///
/// # What it promises
///
/// A hint, and nothing else. The kernel grants one extension for each section, and none if a signal or other work waits
/// for the thread. A section excludes no other thread, and no bound on waiting may count on it.
/// It delays each thread that it holds off by at most the kernel's limit, so that limit is part of every thread's
/// scheduling latency, whether you use these sections or not. There is one exception. If another thread of the process
/// aborts restartable sequences meanwhile (`membarrier`, as some allocators and [interruptible sections](crate::ics)
/// do), Linux 7.2 forgets both the extension and the thread that waits. That thread then waits for the next tick, or
/// under SCHED_FIFO until the processor is scheduled for another reason.
///
/// # Where it helps
///
/// - Between ordinary threads that share a spinlock: its holder is preempted less often in the few microseconds of a
///   section, and other processors spin less often for the whole time slice of some other thread.
/// - Between real-time threads of a kernel without PREEMPT_RT: around a [lazy section](super::Lazy), it often spares a
///   job that is released meanwhile the two switches of its check. Enter this section first and leave it last.
/// - Hardly on a kernel with PREEMPT_RT: real-time threads preempt at once in spite of it. Those of the kernel do, too,
///   and they wake up the ordinary threads whose timers end.
///
/// # What ends an extension
///
/// The kernel's timer; a second interrupt that would preempt the thread; and every system call of the thread, which
/// gives the processor to the other thread first and then does its work. The section usually continues without an
/// extension then, also after it is preempted once. A section that is longer than the kernel's limit gains nothing.
///
/// In the kernel's debug mode (`rseq_debug=1`), a system call inside a section can end the process by SIGSEGV.
///
/// # Signals, `fork`, other processors
///
/// A signal handler may use the handle of the thread it interrupts, but not make or drop one. A child of `fork` may use
/// its copy of the handle; if it was forked inside a section, it begins inside, and does not ask there. A thread may
/// move to another processor.
///
/// # Examples
/// ```no_run
/// use lockwright::section::{Extended, SectionError};
///
/// // Without the kernel's support, the sections are left out.
/// let thread = match Extended::new() {
///     Ok(thread) => Some(thread),
///     Err(SectionError::NoExtension(why)) => {
///         eprintln!("{why}");
///         None
///     }
///     Err(error) => return Err(error),
/// };
/// {
///     let _section = thread.as_ref().map(Extended::enter);
///     // A microsecond or two with a spinlock.
/// }
/// # Ok::<(), SectionError>(())
/// ```
#[derive(Debug)]
pub struct Extended {
    pub(super) extension: Extension,
    depth: Cell<u64>,
    /// Whether the section that the thread is in asks.
    asks: Cell<bool>,
    granted: Cell<u64>,
    lost: Cell<u64>,
}

impl Extended {
    /// Creates a handle for the calling thread, and enables extensions for it. They stay enabled; that changes nothing
    /// while the thread does not ask.
    ///
    /// If the C library registered no area for restartable sequences (`GLIBC_TUNABLES=glibc.pthread.rseq=0`), this
    /// allocates and registers one for the life of the handle.
    ///
    /// # Errors
    /// [`SectionError::NoExtension`] says why the kernel extends no time slice of this thread, and what to do;
    /// [`SectionError::SecondHandle`] if the thread has a handle already.
    pub fn new() -> Result<Self, SectionError> {
        if HAS_HANDLE.get() {
            return Err(SectionError::SecondHandle);
        }
        let extension = Extension::enable().map_err(SectionError::NoExtension)?;
        HAS_HANDLE.set(true);
        let zero = || Cell::new(0);
        Ok(Self { extension, depth: zero(), asks: Cell::new(false), granted: zero(), lost: zero() })
    }

    /// Enters a section: asks for an extension, unless the thread is inside one already. Then the section lasts until
    /// all are left. Makes no system call, and allocates nothing.
    ///
    /// # Bound
    /// Seven memory accesses.
    #[inline]
    pub fn enter(&self) -> ExtendedSection<'_> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        // A signal handler in between finds itself inside, and neither asks nor ends the request below.
        compiler_fence(Ordering::SeqCst);
        if depth == 0 {
            self.asks.set(self.extension.request());
        }
        ExtendedSection(self)
    }

    #[inline]
    fn leave(&self) {
        let depth = self.depth.get();
        if depth == 1 && self.asks.replace(false) {
            let ended = self.extension.withdraw();
            if ended != Withdrawn::Unused {
                self.count(ended);
            }
        }
        // A signal handler before this finds itself inside: see `enter`.
        compiler_fence(Ordering::SeqCst);
        self.depth.set(depth - 1);
    }

    #[cold]
    fn count(&self, ended: Withdrawn) {
        let count = if ended == Withdrawn::Granted { &self.granted } else { &self.lost };
        count.set(count.get().wrapping_add(1));
    }

    /// Returns how many sections ended with an extension, and gave the processor to the thread that waited for it.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted.get()
    }

    /// Returns how many sections ended without the request or the extension that they began with: most were preempted,
    /// or lost the extension by its timer or by a system call.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

impl Drop for Extended {
    /// Ends the request of a section that was forgotten.
    fn drop(&mut self) {
        if self.asks.replace(false) {
            self.extension.withdraw();
        }
        HAS_HANDLE.set(false);
    }
}

/// An extended section, which ends when this value is dropped, even during a panic. One that is forgotten
/// (`std::mem::forget`) ends with the handle.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct ExtendedSection<'a>(&'a Extended);

impl Drop for ExtendedSection<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}
