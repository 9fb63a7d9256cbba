//! Errors of task sets: a number for the program and a text for people.

use crate::argument::Mut;
use crate::errno::of_sys;
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{MachineError, ResourceError, TaskError};
use lockwright_protocol::Refusal;
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call of `lw_taskset_*` or `lw_task_*` failed.
#[derive(Debug)]
pub enum Fault {
    /// The number, and the complete text.
    Plain(c_int, &'static str),
    /// The number, and a text put together for this error. Never occurs inside a job.
    Told(c_int, String),
    Task(TaskError),
}

impl From<TaskError> for Fault {
    fn from(error: TaskError) -> Self {
        Self::Task(error)
    }
}

impl Fault {
    fn errno(&self) -> c_int {
        match self {
            Self::Plain(errno, _) | Self::Told(errno, _) => *errno,
            Self::Task(error) => of_task(error),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_, text) => f.write_str(text),
            Self::Told(_, text) => f.write_str(text),
            Self::Task(error) => error.fmt(f),
        }
    }
}

fn of_task(error: &TaskError) -> c_int {
    match error {
        TaskError::Invalid(_) | TaskError::NoTask => libc::EINVAL,
        TaskError::Taken | TaskError::Begun => libc::EBUSY,
        TaskError::NotBegun | TaskError::InChild => libc::EPERM,
        TaskError::NotAUser => libc::EACCES,
        TaskError::Machine(
            MachineError::TooFewCpus { .. }
            | MachineError::SplitCpus { .. }
            | MachineError::TooManyPriorities { .. }
            | MachineError::TooManyTasks { .. },
        ) => libc::ERANGE,
        TaskError::Machine(
            MachineError::Scheduler(_)
            | MachineError::Nested { .. }
            | MachineError::Clusters { .. }
            | MachineError::Interruptible { .. },
        ) => libc::ENOTSUP,
        TaskError::Machine(MachineError::NoPermission(error) | MachineError::Sys(error)) => of_sys(*error),
        TaskError::Lock(ResourceError::Deadlock | ResourceError::Refused(Refusal::AlreadyHeld)) => libc::EDEADLK,
        TaskError::Lock(ResourceError::OwnerDied) => libc::ESRCH,
        TaskError::Lock(ResourceError::Refused(Refusal::NotHeld)) => libc::EPERM,
        TaskError::Lock(ResourceError::Refused(Refusal::Nested)) => libc::ENOTSUP,
        TaskError::Lock(ResourceError::Refused(Refusal::TooDeep)) => libc::EAGAIN,
        TaskError::Lock(ResourceError::Refused(Refusal::AboveCeiling)) => libc::EINVAL,
        TaskError::Lock(ResourceError::Sys(error)) => of_sys(*error),
        _ => libc::EIO,
    }
}

thread_local! {
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Keeps the fault for the calling thread. Does nothing in a signal handler that interrupts a reader of the last fault.
fn keep(fault: Option<Fault>) {
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = fault));
}

/// Forgets the last fault. Later calls then need not free its text.
pub fn forget() {
    keep(None);
}

/// Calls `body`, keeps its fault and returns the fault's number. A panic, which is a fault of this library, becomes
/// EIO.
pub fn told(body: impl FnOnce() -> Result<(), Fault>) -> c_int {
    let panicked = || Err(Fault::Plain(libc::EIO, "an internal error of Lockwright; please report it"));
    match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| panicked()) {
        Ok(()) => 0,
        Err(fault) => {
            let errno = fault.errno();
            keep(Some(fault));
            errno
        }
    }
}

/// A buffer of C's caller. Text that does not fit is dropped at a character boundary, and one byte is kept for the
/// final 0.
pub struct Buffer<'a> {
    bytes: &'a mut [MaybeUninit<c_char>],
    length: usize,
    /// Whether text was dropped.
    pub is_cut: bool,
}

impl<'a> Buffer<'a> {
    /// Returns an empty buffer of `capacity` bytes at `text`, or `None` if there is no room.
    ///
    /// # Safety
    /// Unless `capacity` is 0 or `text` is null, `capacity` bytes stand there, which no other thread uses during the
    /// call.
    pub unsafe fn at(text: Mut<'a, c_char>, capacity: size_t) -> Option<Self> {
        if capacity == 0 {
            return None;
        }
        // SAFETY: the contract of this function.
        let bytes = unsafe { text.room(capacity) }?;
        bytes.fill(MaybeUninit::new(0));
        Some(Self { bytes, length: 0, is_cut: false })
    }
}

impl Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // Control characters from names in a file must not reach the terminal.
            let shown = if character.is_control() && character != '\n' { '\u{fffd}' } else { character };
            let end = self.length + shown.len_utf8();
            self.is_cut |= end >= self.bytes.len();
            if self.is_cut {
                return Ok(());
            }
            for (place, byte) in self.bytes[self.length..end].iter_mut().zip(shown.encode_utf8(&mut [0; 4]).bytes()) {
                place.write(byte as c_char);
            }
            self.length = end;
        }
        Ok(())
    }
}

/// Describes the calling thread's last failed call of `lw_taskset_…` or `lw_task_…`: what is wrong, and what to do.
///
/// Writes a UTF-8 text and a final 0 to the `capacity` bytes at `text`. Faults of a task-set file have one line each,
/// with path, line and column. The text is empty if no call has failed, or if `lw_task_join` or `lw_task_begin` has
/// succeeded since the last failure. Calling this function does not change the description.
///
/// Returns:
/// - 0: success.
/// - ERANGE: the text did not fit, and was cut.
/// - EINVAL: `capacity` is 0, or `text` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_error(text: Mut<'_, c_char>, capacity: size_t) -> c_int {
    crate::panic::guarded(|| {
        // SAFETY: the header requires room for `capacity` bytes, which no other thread uses during the call.
        let Some(mut buffer) = (unsafe { Buffer::at(text, capacity) }) else { return libc::EINVAL };
        let _ = LAST.try_with(|last| match last.try_borrow() {
            Ok(last) => last.as_ref().map_or(Ok(()), |fault| write!(buffer, "{fault}")),
            Err(_) => Ok(()),
        });
        if buffer.is_cut { libc::ERANGE } else { 0 }
    })
}
