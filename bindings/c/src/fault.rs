//! What went wrong with a task set: a number for the program, words for a person.

use crate::argument;
use crate::errno::of_sys;
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{LockError, MachineError, TaskError};
use lockwright_protocol::Refusal;
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call of `lw_taskset_*` or `lw_task_*` failed.
#[derive(Debug)]
pub enum Fault {
    /// The number, and all there is to say.
    Plain(c_int, &'static str),
    /// The same, put together; not on the way of a job.
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
        TaskError::NotBegun => libc::EPERM,
        TaskError::NotAUser => libc::EACCES,
        TaskError::Machine(
            MachineError::TooFewCpus { .. }
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
        TaskError::Lock(LockError::Deadlock | LockError::Refused(Refusal::AlreadyHeld)) => libc::EDEADLK,
        TaskError::Lock(LockError::OwnerDied) => libc::ESRCH,
        TaskError::Lock(LockError::Refused(Refusal::NotHeld)) => libc::EPERM,
        TaskError::Lock(LockError::Refused(Refusal::Nested)) => libc::ENOTSUP,
        TaskError::Lock(LockError::Refused(Refusal::TooDeep)) => libc::EAGAIN,
        TaskError::Lock(LockError::Refused(Refusal::AboveCeiling)) => libc::EINVAL,
        TaskError::Lock(LockError::Sys(error)) => of_sys(*error),
        _ => libc::EIO,
    }
}

thread_local! {
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Keeps it for the calling thread. Not in a signal handler that came while it is read.
fn keep(fault: Option<Fault>) {
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = fault));
}

/// Nothing has failed yet: what comes next need not free the words of what failed before.
pub fn forget() {
    keep(None);
}

/// Calls `body`; its fault is kept, and answered as a number. A panic in it, which is a fault of this library, is EIO.
pub fn told(body: impl FnOnce() -> Result<(), Fault>) -> c_int {
    let panicked = || Err(Fault::Plain(libc::EIO, "a fault of Lockwright; please report it"));
    match catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| panicked()) {
        Ok(()) => 0,
        Err(fault) => {
            let errno = fault.errno();
            keep(Some(fault));
            errno
        }
    }
}

/// A buffer of C's: what does not fit is dropped, at the end of a character, and there is room for the 0 behind it.
struct Buffer<'a> {
    bytes: &'a mut [u8],
    length: usize,
    is_cut: bool,
}

impl Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // Names out of a file are not let at the terminal.
            let shown = if character.is_control() && character != '\n' { '\u{fffd}' } else { character };
            let end = self.length + shown.len_utf8();
            self.is_cut |= end >= self.bytes.len();
            if self.is_cut {
                return Ok(());
            }
            shown.encode_utf8(&mut self.bytes[self.length..end]);
            self.length = end;
        }
        Ok(())
    }
}

/// Says why the calling thread's last `lw_taskset_…` or `lw_task_…` that failed did, and what to do: UTF-8 and a 0 behind it, into the `capacity` bytes
/// at `text`. Faults of a file have a line each, with its path, line and column. The text is empty where nothing has failed since `lw_task_join` and
/// `lw_task_begin`, which forget what did.
///
/// ERANGE: there is not room for all; the rest is cut. EINVAL: no room at all. Neither changes what is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_task_error(text: *mut c_char, capacity: size_t) -> c_int {
    crate::errno::guarded(|| {
        // SAFETY: the header's head asks for it. A 0 at first, so that it is a text whatever happens.
        if capacity == 0 || !unsafe { argument::write(text, 0) } || isize::try_from(capacity).is_err() {
            return libc::EINVAL;
        }
        // SAFETY: as above. Nobody else uses it during the call.
        unsafe { text.write_bytes(0, capacity) };
        // SAFETY: as above, and initialised just now.
        let bytes = unsafe { std::slice::from_raw_parts_mut(text.cast::<u8>(), capacity) };
        let mut buffer = Buffer { bytes, length: 0, is_cut: false };
        let _ = LAST.try_with(|last| match last.try_borrow() {
            Ok(last) => last.as_ref().map_or(Ok(()), |fault| write!(buffer, "{fault}")),
            Err(_) => Ok(()),
        });
        if buffer.is_cut { libc::ERANGE } else { 0 }
    })
}
