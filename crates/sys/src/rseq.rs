//! Restartable sequences, as the C library has registered them: a few instructions that are executed on one processor without a preemption, a signal or a migration in
//! between, or not to their end.
//!
//! ```text
//!   thread pointer + __rseq_offset:  [ cpu_id_start ] [ cpu_id ] [ rseq_cs: the sequence under way ] ...
//! ```
//! The kernel looks at `rseq_cs` before the thread goes on after any of those: where it points to a sequence that the thread stands in, the thread goes on at the
//! sequence's other end instead.

use crate::error::SysError;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// How a sequence ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It stored.
    Stored,
    /// The word was another.
    Differs,
    /// The thread was interrupted before it could store.
    Aborted,
    /// The thread is on another processor.
    Elsewhere,
}

/// That the C library registers threads, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    offset: isize,
}

/// Numbers of the system call of barriers.
const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;

fn membarrier(command: i32) -> Result<(), SysError> {
    // SAFETY: takes integers.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(SysError::last("membarrier")),
    }
}

/// Announces that the process will call [`abort_all`]. Once a process; again does no harm.
pub fn prepare_to_abort() -> Result<(), SysError> {
    membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ)
}

/// Every sequence of this process that is under way is aborted, and what those that are not have stored is seen from here on.
#[inline]
pub fn abort_all() -> Result<(), SysError> {
    membarrier(PRIVATE_EXPEDITED_RSEQ)
}

/// Sequences under way can neither be aborted nor waited for: whoever went on would lose updates. Allocates nothing: it may be in a signal handler.
#[cold]
pub fn give_up() -> ! {
    const MESSAGE: &[u8] =
        b"lockwright: ics: the kernel refuses membarrier, so a thread on another processor cannot go on; aborted\n";
    // SAFETY: the place and length of a constant.
    unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    std::process::abort()
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
impl Registered {
    /// `None`: not written for this processor or C library.
    pub fn find() -> Option<Self> {
        None
    }

    /// The processor the calling thread is on.
    pub fn cpu(self) -> Option<u32> {
        None
    }

    pub fn store_if(self, _: &AtomicU32, _: &AtomicU64, _: u64, _: &AtomicU64, _: u64) -> Ended {
        Ended::Elsewhere
    }
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
impl Registered {
    /// `None` where the C library is too old, was told not to (`glibc.pthread.rseq=0`), or the kernel refused.
    pub fn find() -> Option<Self> {
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: the name ends with a zero.
            let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!place.is_null()).then_some(place)
        };
        // SAFETY: the C library's constants of these names, since 2.35: an `unsigned int` and a `ptrdiff_t`.
        let (size, offset) = unsafe {
            let size = symbol(c"__rseq_size")?.cast::<u32>().read();
            (size, symbol(c"__rseq_offset")?.cast::<isize>().read())
        };
        let found = Self { offset };
        (size != 0 && found.cpu().is_some()).then_some(found)
    }

    /// Of the calling thread.
    #[inline]
    fn area(self) -> usize {
        let pointer: usize;
        // SAFETY: the first word at the thread pointer is its own address: that is the processor's convention.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer.wrapping_add_signed(self.offset)
    }

    /// The processor the calling thread is on, or was just now.
    #[inline]
    pub fn cpu(self) -> Option<u32> {
        let cpu: i32;
        // SAFETY: the area was registered for this thread, and has the processor's number at 4; the kernel changes it.
        unsafe {
            std::arch::asm!("mov {cpu:e}, [{area} + 4]", area = in(reg) self.area(), cpu = out(reg) cpu, options(nostack, preserves_flags, readonly));
        }
        u32::try_from(cpu).ok()
    }

    /// `*word = new` if `*seen_at` is `seen` and the thread is on processor `*home`, with nobody on that processor in between.
    #[inline]
    pub fn store_if(self, home: &AtomicU32, seen_at: &AtomicU64, seen: u64, word: &AtomicU64, new: u64) -> Ended {
        // SAFETY: the area was registered for this thread. The sequence is `2:` to `3:`; it writes nothing before its last instruction, and where the kernel aborts it the
        // thread goes on at `4:`, before which the signature is that the C library registered. Nothing else of the area is touched. `rseq_cs` may go on pointing to
        // a sequence the thread has left: the kernel clears it then.
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
                // An undefined instruction, so that nobody comes here by chance.
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
