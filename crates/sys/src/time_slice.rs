//! The kernel's time slice extension: a thread asks to be preempted some microseconds later.
//!
//! Linux 7.0 and later have it, if built with CONFIG_RSEQ_SLICE_EXTENSION. The thread asks in the area of its
//! restartable sequences (see [`rseq`](crate::rseq)):
//!
//! ```text
//!   area:  [ 0: cpu_id_start ] ... [ 28: request ] [ 29: granted ] ... [ 32: end of the original area ]
//!
//!   request  granted  meaning
//!   1        0        asked; the kernel has not wanted the processor since
//!   0        1        the kernel wants the processor, and waits until a timer ends
//!   0        0        not asked; or the thread was switched out since, or made a system call with the grant, or
//!                     another thread aborted restartable sequences by `membarrier`
//! ```
//!
//! The kernel looks at the request when it returns to the thread from an interrupt and has to switch. The timer ends
//! after `/sys/kernel/debug/rseq/slice_ext_nsec`: 5 µs by default, at most 50 µs.
//!
//! Only the thread and, in interrupts of the thread, the kernel access the two bytes. A processor sees its own accesses
//! in the order of the program, and an interrupt falls between two instructions. So only the compiler has to keep the
//! order, as between a thread and its signal handler, also if the thread moves to another processor.

#![cfg_attr(not(all(target_arch = "x86_64", target_env = "gnu")), allow(dead_code))] // Nothing can be enabled there.

use crate::error::{KeepErrno, SysError};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence};

/// Why a thread cannot ask for an extension of its time slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NoExtension {
    /// The kernel was built without it.
    Kernel,
    /// The kernel was booted without it.
    Boot,
    /// The C library registered the thread's area with its original size, for which the kernel refuses it.
    Library,
    /// Neither the C library nor Lockwright registered the thread's area, so its address is unknown.
    Elsewhere,
    /// Lockwright does not implement it for this processor or C library.
    Platform,
    /// A system call failed.
    Sys(SysError),
}

impl fmt::Display for NoExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str(
                "the kernel cannot extend time slices; use Linux 7.0 or later, built with CONFIG_RSEQ_SLICE_EXTENSION",
            ),
            Self::Boot => f.write_str(
                "the kernel was booted without extensions of time slices; remove rseq_slice_ext=0 from its command \
                 line",
            ),
            Self::Library => f.write_str(
                "the C library registered restartable sequences of the original size, for which the kernel extends no \
                 time slices; use glibc 2.41 or later, or start the program with GLIBC_TUNABLES=glibc.pthread.rseq=0",
            ),
            Self::Elsewhere => f.write_str(
                "another library registered the restartable sequences of this thread, and only that library can ask \
                 for an extension of its time slices; leave the registration to the C library",
            ),
            Self::Platform => f.write_str(
                "extensions of time slices are implemented for x86-64 with glibc only; use another kind of section",
            ),
            Self::Sys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoExtension {}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Withdrawn {
    /// The kernel did not want the processor.
    Unused,
    /// The kernel waited for the processor, and has it back.
    Granted,
    /// Neither the request nor a grant is left. Most often, the thread was switched out or made a system call.
    Lost,
}

/// The right of the calling thread to ask for extensions of its time slice.
#[derive(Debug)]
pub struct Extension {
    control: NonNull<Control>,
    /// The area, if the C library registered none.
    _own: Option<Own>,
}

/// The bytes of the area with which the thread asks and the kernel answers.
#[repr(C)]
#[derive(Debug)]
struct Control {
    request: AtomicU8,
    granted: AtomicU8,
}

/// Where [`Control`] is in the area.
const CONTROL: usize = 28;
/// The size of the area before the kernel extended it, in bytes. A larger area is one with extensions.
const ORIGINAL: usize = 32;

const PR_RSEQ_SLICE_EXTENSION: i32 = 79;
const GET: libc::c_ulong = 1;
const SET: libc::c_ulong = 2;
const ENABLE: libc::c_ulong = 1;
const SYS_RSEQ_SLICE_YIELD: libc::c_long = 471;
/// The kernel's own ENOTSUPP, which it should not show.
const ENOTSUPP: i32 = 524;

fn prctl(command: libc::c_ulong, value: libc::c_ulong) -> Result<(), SysError> {
    let none: libc::c_ulong = 0;
    // SAFETY: the call takes integers only.
    match unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, command, value, none, none) } {
        0.. => Ok(()),
        _ => Err(SysError::last("prctl")),
    }
}

impl Extension {
    /// Enables extensions for the calling thread. They stay enabled until the thread ends, or until this value is
    /// dropped if the C library registered no area; that changes nothing for a thread that does not ask.
    ///
    /// Allocates an area if the C library registered none.
    ///
    /// # Errors
    /// All of [`NoExtension`].
    pub fn enable() -> Result<Self, NoExtension> {
        prctl(GET, 0).map_err(|error| match error.errno {
            libc::EINVAL | libc::EOPNOTSUPP | ENOTSUPP => NoExtension::Kernel,
            _ => NoExtension::Sys(error),
        })?;
        let enabled = Self::of_caller()?;
        prctl(SET, ENABLE).map_err(|error| match error.errno {
            libc::EOPNOTSUPP | ENOTSUPP => NoExtension::Boot,
            libc::ENXIO => NoExtension::Elsewhere,
            _ => NoExtension::Sys(error),
        })?;
        // A filter of system calls that ends the process does so now, rather than at the end of some section.
        give_back()?;
        Ok(enabled)
    }

    #[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
    fn of_caller() -> Result<Self, NoExtension> {
        Err(NoExtension::Platform)
    }

    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn of_caller() -> Result<Self, NoExtension> {
        let (area, own) = match crate::rseq::registered_area() {
            Some((area, size)) if size > ORIGINAL => (area, None),
            Some(_) => return Err(NoExtension::Library),
            None => {
                let own = Own::register()?;
                (own.area.as_ptr().addr(), Some(own))
            }
        };
        let control = std::ptr::with_exposed_provenance_mut(area + CONTROL);
        Ok(Self { control: NonNull::new(control).ok_or(NoExtension::Elsewhere)?, _own: own })
    }

    fn control(&self) -> &Control {
        // SAFETY: the area belongs to this thread, which this value cannot leave. It is part of the thread's own
        // storage, or `_own`, and contains these bytes: it is larger than the original one, which ends behind them.
        unsafe { self.control.as_ref() }
    }

    /// Asks for an extension from now on. Returns false, and changes nothing, if a request or a grant is there already.
    #[inline]
    pub fn request(&self) -> bool {
        let control = self.control();
        // ORDERING: Relaxed: see the file's description.
        let is_free = control.request.load(Ordering::Relaxed) | control.granted.load(Ordering::Relaxed) == 0;
        if is_free {
            control.request.store(1, Ordering::Relaxed);
        }
        // What follows is not moved to before the request.
        compiler_fence(Ordering::SeqCst);
        is_free
    }

    /// Ends the request of this thread, and gives the processor back if the kernel waits for it.
    #[inline]
    pub fn withdraw(&self) -> Withdrawn {
        // What precedes is not moved to after the end of the request.
        compiler_fence(Ordering::SeqCst);
        let control = self.control();
        // ORDERING: Relaxed: see the file's description.
        let asks = control.request.load(Ordering::Relaxed);
        control.request.store(0, Ordering::Relaxed);
        // From here on, the kernel grants nothing new. A look before that could miss a grant.
        compiler_fence(Ordering::SeqCst);
        if control.granted.load(Ordering::Relaxed) != 0 {
            let _errno = KeepErrno::now();
            // It was tried when extensions were enabled. If it fails, the kernel's timer takes the processor.
            let _ = give_back();
            Withdrawn::Granted
        } else if asks == 0 {
            Withdrawn::Lost
        } else {
            Withdrawn::Unused
        }
    }
}

/// Gives the processor to the thread that waits for it. Does nothing if there is none, or if the timer ended meanwhile.
#[cold]
fn give_back() -> Result<(), NoExtension> {
    // SAFETY: the call takes no arguments.
    match unsafe { libc::syscall(SYS_RSEQ_SLICE_YIELD) } {
        0.. => Ok(()),
        _ => Err(NoExtension::Sys(SysError::last("rseq_slice_yield"))),
    }
}

/// An area that this crate registered for the calling thread.
#[derive(Debug)]
struct Own {
    area: NonNull<u8>,
    layout: Layout,
}

impl Own {
    /// The C library's own, so that its sequences would work with this area too.
    const SIGNATURE: u32 = 0x5305_3053;
    const UNREGISTER: i32 = 1;

    fn register() -> Result<Self, NoExtension> {
        const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
        const AT_RSEQ_ALIGN: libc::c_ulong = 28;
        // SAFETY: the calls take integers only.
        let [size, align] = [AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN].map(|kind| unsafe { libc::getauxval(kind) } as usize);
        let layout = Layout::from_size_align(size.max(ORIGINAL + 1), align.max(ORIGINAL));
        let layout = layout.map_err(|_| NoExtension::Kernel)?.pad_to_align();
        // SAFETY: the size is not 0.
        let area = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let own = Self { area, layout };
        match own.call(0) {
            Ok(()) => Ok(own),
            Err(error) => {
                own.free();
                std::mem::forget(own);
                Err(match error.errno {
                    libc::EINVAL | libc::EBUSY => NoExtension::Elsewhere,
                    _ => NoExtension::Sys(error),
                })
            }
        }
    }

    fn call(&self, flags: i32) -> Result<(), SysError> {
        let (area, size) = (self.area.as_ptr().expose_provenance(), self.layout.size());
        // SAFETY: the kernel writes to the area from the registration to its end, and the area is not freed before.
        match unsafe { libc::syscall(libc::SYS_rseq, area, size as u32, flags, Self::SIGNATURE) } {
            0 => Ok(()),
            _ => Err(SysError::last("rseq")),
        }
    }

    fn free(&self) {
        // SAFETY: `register` allocated it with this layout, and the kernel does not write to it. Each caller is the
        // last one to use it.
        unsafe { dealloc(self.area.as_ptr(), self.layout) };
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Memory to which the kernel still writes is not freed.
        if self.call(Self::UNREGISTER).is_ok() {
            self.free();
        }
    }
}
