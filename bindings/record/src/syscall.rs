//! `syscall`: futex calls, by which Rust's standard library and parking_lot wait, and changes of scheduling. All other
//! calls go on to the next `syscall` as they are.

use crate::entry::call_with_seventh;
use crate::next;
use crate::scheduling;
use crate::thread::current;
use crate::wait::waits;
use libc::{c_int, c_long, c_void};
use lockwright_record::file::format::{DETAIL_SHIFT, class, event};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of the next `syscall`, or of `find` before the first call.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(find as *mut c_void);

/// Looks the next `syscall` up, and goes on to it.
#[unsafe(naked)]
unsafe extern "C-unwind" fn find() {
    // The stack is aligned for the call by seven words.
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {look_up}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        look_up = sym look_up,
    )
}

extern "C" fn look_up() -> *mut c_void {
    let found = next::syscall_address();
    // ORDERING: Relaxed: a function's address, which is the same for all threads.
    NEXT.store(found, Ordering::Relaxed);
    found
}

/// As in the C library. The site is the eighth argument of the functions that record.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall() {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {futex}",
        "je 2f",
        "cmp rdi, {attributes}",
        "je 3f",
        "cmp rdi, {scheduler}",
        "je 3f",
        "cmp rdi, {param}",
        "je 3f",
        "cmp rdi, {affinity}",
        "je 3f",
        "jmp qword ptr [rip + {next}]",
        "2:",
        "lea rax, [rip + {futex_call}]",
        "jmp 4f",
        "3:",
        "lea rax, [rip + {scheduling_call}]",
        "4:",
        call_with_seventh!("rax"),
        ".cfi_endproc",
        futex = const libc::SYS_futex,
        attributes = const libc::SYS_sched_setattr,
        scheduler = const libc::SYS_sched_setscheduler,
        param = const libc::SYS_sched_setparam,
        affinity = const libc::SYS_sched_setaffinity,
        next = sym NEXT,
        futex_call = sym futex_call,
        scheduling_call = sym scheduling_call,
    )
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn futex_call(
    number: c_long,
    word: c_long,
    operation: c_long,
    value: c_long,
    time: c_long,
    other: c_long,
    last: c_long,
    site: usize,
) -> c_long {
    // SAFETY: the program made this system call with these arguments, so it answers for them as without the recorder.
    let call = || unsafe { next::syscall(number, word, operation, value, time, other, last) };
    let Some(ring) = current().filter(|ring| !ring.is_inside()) else { return call() };
    let place = site as u64 | u64::from(class::FUTEX) << DETAIL_SHIFT;
    match operation as c_int & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            waits(event::FUTEX, word as u64, place, call)
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET | libc::FUTEX_UNLOCK_PI => {
            ring.put(event::SIGNAL, [word as u64, place]);
            call()
        }
        _ => call(),
    }
}

/// As `FUTEX_LOCK_PI`, by another clock.
const FUTEX_LOCK_PI2: c_int = 13;

#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn scheduling_call(
    number: c_long,
    thread: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
    _site: usize,
) -> c_long {
    // SAFETY: the program made this system call with these arguments, so it answers for them as without the recorder.
    let answer = unsafe { next::syscall(number, thread, b, c, d, e, f) };
    if answer == 0 {
        scheduling::changed_by(number, thread);
    }
    answer
}
