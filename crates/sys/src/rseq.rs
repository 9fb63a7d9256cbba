//! Restartable sequences, as registered by the C library.
//!
//! A sequence is a few instructions on one processor. It either completes without a preemption, a signal or a
//! migration, or it is aborted.
//!
//! ```text
//!   thread pointer + __rseq_offset:  [ cpu_id_start ] [ cpu_id ] [ rseq_cs: the current sequence ] ...
//! ```
//!
//! The kernel reads `rseq_cs` before it resumes the thread after any of these events. If the thread is inside the
//! sequence that `rseq_cs` points to, it resumes at the sequence's abort handler.

use crate::error::SysError;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// How a sequence ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// The value was stored.
    Stored,
    /// The compared word had another value.
    Differs,
    /// The thread was interrupted before it could store.
    Aborted,
    /// The thread is on another processor than `home`.
    Elsewhere,
}

/// Where the C library registered the threads of this process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registered {
    offset: isize,
}

/// Commands of the system call `membarrier`.
const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;

fn membarrier(command: i32) -> Result<(), SysError> {
    // SAFETY: the call takes integers only, and a barrier changes no memory of this program.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(SysError::last("membarrier")),
    }
}

/// Announces that the process will call [`abort_all`]. Must be called once in each process; further calls are harmless.
///
/// # Errors
/// The kernel has no such barrier, or a filter forbids the call.
pub fn prepare_to_abort() -> Result<(), SysError> {
    membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ)
}

/// Aborts every sequence of this process that is in progress. The stores of completed sequences are visible to the
/// caller afterwards.
///
/// # Errors
/// EPERM if the process has not called [`prepare_to_abort`], and the errors of that function.
#[inline]
pub fn abort_all() -> Result<(), SysError> {
    membarrier(PRIVATE_EXPEDITED_RSEQ)
}

/// Aborts the process. If sequences in progress can be neither aborted nor waited for, a thread that continued would
/// lose updates. Allocates nothing, because the caller may be in a signal handler.
#[cold]
pub fn give_up() -> ! {
    const MESSAGE: &[u8] =
        b"lockwright: ics: the kernel refuses membarrier, so a thread on another processor cannot continue; aborted\n";
    // SAFETY: the message is a constant, so the pointer is valid for its length.
    unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    std::process::abort()
}

/// The address of the area that the C library registered for the calling thread, and its size in bytes.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub(crate) fn registered_area() -> Option<(usize, usize)> {
    Registered::find_sized().map(|(found, size)| (found.area(), size as usize))
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
impl Registered {
    /// Returns `None`: restartable sequences are not implemented for this processor or C library.
    pub fn find() -> Option<Self> {
        None
    }

    /// Returns `None`: there is no registration.
    pub fn cpu(self) -> Option<u32> {
        None
    }

    pub fn store_if(self, _: &AtomicU32, _: &AtomicU64, _: u64, _: &AtomicU64, _: u64) -> Ended {
        Ended::Elsewhere
    }
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
impl Registered {
    /// Finds the registration. Returns `None` if the C library is too old, was told not to register
    /// (`glibc.pthread.rseq=0`), or was refused by the kernel.
    pub fn find() -> Option<Self> {
        Self::find_sized().map(|(found, _)| found)
    }

    /// Finds the registration and its size in bytes.
    fn find_sized() -> Option<(Self, u32)> {
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: the name is a constant string with a final zero.
            let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!place.is_null()).then_some(place)
        };
        // SAFETY: since 2.35 the C library has constants with these names: an `unsigned int` and a `ptrdiff_t`.
        let (size, offset) = unsafe {
            let size = symbol(c"__rseq_size")?.cast::<u32>().read();
            (size, symbol(c"__rseq_offset")?.cast::<isize>().read())
        };
        let found = Self { offset };
        (size != 0 && found.cpu().is_some()).then_some((found, size))
    }

    /// The address of the calling thread's registered area.
    #[inline]
    fn area(self) -> usize {
        let pointer: usize;
        // SAFETY: by the convention of the processor's ABI, the first word at the thread pointer is its own address.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer.wrapping_add_signed(self.offset)
    }

    /// The processor on which the calling thread executes; it may migrate at any time.
    #[inline]
    pub fn cpu(self) -> Option<u32> {
        let cpu: i32;
        // SAFETY: the area was registered for this thread and holds the processor's number at offset 4; the kernel
        // changes it.
        unsafe {
            std::arch::asm!("mov {cpu:e}, [{area} + 4]", area = in(reg) self.area(), cpu = out(reg) cpu, options(nostack, preserves_flags, readonly));
        }
        u32::try_from(cpu).ok()
    }

    /// Stores `new` in `*word` if `*seen_at` is `seen` and the thread is on processor `*home`. No other thread executes
    /// on that processor in between.
    #[inline]
    pub fn store_if(self, home: &AtomicU32, seen_at: &AtomicU64, seen: u64, word: &AtomicU64, new: u64) -> Ended {
        // SAFETY: the area was registered for this thread. The sequence is `2:` to `3:`. It writes nothing before its
        // last instruction. If the kernel aborts it, the thread resumes at `4:`, which follows the signature that the C
        // library registered. Nothing else in the area is written. `rseq_cs` may still point to a sequence that the
        // thread has left; the kernel clears it in that case.
        unsafe {
            std::arch::asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "5:",
                ".long 0, 0",
                ".quad 2f, (3f - 2f), 4f",
                ".popsection",
                "lea rax, [rip + 5b]",
                "mov qword ptr [{area} + 8], rax",
                "2:",
                "mov eax, dword ptr [{home}]",
                "cmp eax, dword ptr [{area} + 4]",
                "jne {elsewhere}",
                "cmp qword ptr [{seen_at}], {seen}",
                "jne {differs}",
                "mov qword ptr [{word}], {new}",
                "3:",
                ".pushsection __rseq_failure, \"ax\"",
                // The signature is the operand of an undefined instruction, so that execution cannot run into it.
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "4:",
                "jmp {aborted}",
                ".popsection",
                area = in(reg) self.area(),
                home = in(reg) home.as_ptr(),
                seen_at = in(reg) seen_at.as_ptr(),
                seen = in(reg) seen,
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                out("rax") _,
                elsewhere = label { return Ended::Elsewhere },
                differs = label { return Ended::Differs },
                aborted = label { return Ended::Aborted },
                options(nostack),
            );
        }
        Ended::Stored
    }
}
