//! Waits for timers and data: `read`, `recv`, `poll` and their relatives.
//!
//! Each call is recorded, because it is not known in advance whether it will wait; a call that must not wait is not
//! recorded.

use crate::entry::{entries, entries_of_six};
use crate::next;
use crate::wait::waits;
use libc::{
    MSG_DONTWAIT, c_char, c_int, c_uint, c_void, clockid_t, epoll_event, fd_set, iovec, msghdr, nfds_t, pollfd,
    siginfo_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};
use lockwright_record::file::format::event;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stands for the descriptor where a call waits for several descriptors, or for a signal.
const SEVERAL: c_int = -1;
/// Descriptors above this are never known to be timers.
const DESCRIPTORS_MAX: usize = 65536;

/// A bit for each descriptor that is a timer.
static TIMERS: [AtomicU64; DESCRIPTORS_MAX / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64];

fn bit(descriptor: c_int) -> Option<(&'static AtomicU64, u64)> {
    let index = usize::try_from(descriptor).ok()?;
    Some((TIMERS.get(index / 64)?, 1 << (index % 64)))
}

fn is_timer(descriptor: c_int) -> bool {
    // ORDERING: Relaxed: the program orders its use of a descriptor itself.
    bit(descriptor).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn timerfd_create(clock: clockid_t, flags: c_int) -> c_int {
    // SAFETY: the call takes two integers.
    let descriptor = unsafe { next::timerfd_create(clock, flags) };
    if let Some((word, bit)) = bit(descriptor) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
    descriptor
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(descriptor: c_int) -> c_int {
    if is_timer(descriptor)
        && let Some((word, bit)) = bit(descriptor)
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
    // SAFETY: the call takes an integer, and the program closes its own descriptor.
    unsafe { next::close(descriptor) }
}

/// Records a wait for a descriptor, if the call may wait.
#[inline(always)]
fn input<T>(descriptor: c_int, may_wait: bool, site: usize, call: impl FnOnce() -> T) -> T {
    if !may_wait {
        return call();
    }
    let kind = if is_timer(descriptor) { event::TIMER } else { event::INPUT };
    // The reader takes the lower half as a signed number.
    waits(kind, u64::from(descriptor as u32), site as u64, call)
}

/// Defines functions that wait: their arguments, the descriptor, and whether they may wait.
macro_rules! inputs {
    ($(
        $name:ident = $next:ident($($argument:ident: $type:ty),*) -> $answer:ty, $descriptor:expr, $may_wait:expr;
    )*) => {$(
        unsafe extern "C-unwind" fn $name($($argument: $type,)* site: usize) -> $answer {
            // SAFETY: the program called this function with these arguments, so what they point to may be read, and
            // they are valid for the C library's function until it returns.
            unsafe { input($descriptor, $may_wait, site, || next::$next($($argument),*)) }
        }
    )*};
}

inputs! {
    plain_read = read(descriptor: c_int, to: *mut c_void, bytes: size_t) -> ssize_t, descriptor, true;
    checked_read = __read_chk(descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t) -> ssize_t,
        descriptor, true;
    vector_read = readv(descriptor: c_int, to: *const iovec, count: c_int) -> ssize_t, descriptor, true;
    receive = recv(descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t,
        descriptor, flags & MSG_DONTWAIT == 0;
    checked_receive = __recv_chk(descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t, flags: c_int)
        -> ssize_t, descriptor, flags & MSG_DONTWAIT == 0;
    receive_from = recvfrom(
        descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t
    ) -> ssize_t, descriptor, flags & MSG_DONTWAIT == 0;
    receive_message = recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t,
        descriptor, flags & MSG_DONTWAIT == 0;
    accept3 = accept(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int, descriptor, true;
    accept_with = accept4(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int,
        descriptor, true;
    poll3 = poll(descriptors: *mut pollfd, count: nfds_t, ms: c_int) -> c_int, only(descriptors, count), ms != 0;
    checked_poll = __poll_chk(descriptors: *mut pollfd, count: nfds_t, ms: c_int, room: size_t) -> c_int,
        only(descriptors, count), ms != 0;
    poll4 = ppoll(descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t) -> c_int,
        only(descriptors, count), !is_zero(time);
    epoll4 = epoll_wait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int) -> c_int, epoll, ms != 0;
    epoll5 = epoll_pwait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int, signals: *const sigset_t)
        -> c_int, epoll, ms != 0;
    select5 = select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *mut timeval)
        -> c_int, SEVERAL, !is_zero_time(time);
    select6 = pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *const timespec,
        signals: *const sigset_t
    ) -> c_int, SEVERAL, !is_zero(time);
    signal = sigwait(signals: *const sigset_t, signal: *mut c_int) -> c_int, SEVERAL, true;
    signal_info = sigwaitinfo(signals: *const sigset_t, info: *mut siginfo_t) -> c_int, SEVERAL, true;
    signal_until = sigtimedwait(signals: *const sigset_t, info: *mut siginfo_t, time: *const timespec) -> c_int,
        SEVERAL, !is_zero(time);
    message = mq_receive(queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint) -> ssize_t, queue, true;
    message_until = mq_timedreceive(
        queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint, time: *const timespec
    ) -> ssize_t, queue, true;
}

/// The descriptor, if there is only one.
///
/// # Safety
/// `descriptors` points to `count` elements.
unsafe fn only(descriptors: *const pollfd, count: nfds_t) -> c_int {
    // SAFETY: the caller passes an array of `count` elements, here one.
    if count == 1 { unsafe { (*descriptors).fd } } else { SEVERAL }
}

/// Whether the call may not wait; null means for ever.
///
/// # Safety
/// `time` is null or points to a time.
unsafe fn is_zero(time: *const timespec) -> bool {
    // SAFETY: the caller passes null or a time.
    unsafe { time.as_ref() }.is_some_and(|time| time.tv_sec == 0 && time.tv_nsec == 0)
}

/// Like [`is_zero`].
///
/// # Safety
/// `time` is null or points to a time.
unsafe fn is_zero_time(time: *const timeval) -> bool {
    // SAFETY: the caller passes null or a time.
    unsafe { time.as_ref() }.is_some_and(|time| time.tv_sec == 0 && time.tv_usec == 0)
}

entries! {
    "rcx" read = plain_read;
    "r8" __read_chk = checked_read;
    "rcx" readv = vector_read;
    "r8" recv = receive;
    "r9" __recv_chk = checked_receive;
    "rcx" recvmsg = receive_message;
    "rcx" accept = accept3;
    "r8" accept4 = accept_with;
    "rcx" poll = poll3;
    "r8" __poll_chk = checked_poll;
    "r8" ppoll = poll4;
    "r8" epoll_wait = epoll4;
    "r9" epoll_pwait = epoll5;
    "r9" select = select5;
    "rdx" sigwait = signal;
    "rdx" sigwaitinfo = signal_info;
    "rcx" sigtimedwait = signal_until;
    "r8" mq_receive = message;
    "r9" mq_timedreceive = message_until;
}

entries_of_six! {
    recvfrom = receive_from;
    pselect = select6;
}
