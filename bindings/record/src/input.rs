//! Waits for timers and data: `read`, `recv`, `poll` and their relatives.
//!
//! Each call is recorded, because it is not known in advance whether it will wait; a call that must not wait is not
//! recorded.

use crate::clock;
use crate::entry::{entries, entries_of_seven, entries_of_six};
use crate::load;
use crate::next;
use crate::sleep::ns;
use crate::thread::current;
use crate::wait::{waits, waits_for};
use libc::{
    CLOCK_MONOTONIC, MSG_DONTWAIT, TFD_TIMER_ABSTIME, c_char, c_int, c_uint, c_void, clockid_t, epoll_event, fd_set,
    iovec, itimerspec, mmsghdr, msghdr, nfds_t, pollfd, siginfo_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t,
    timespec, timeval,
};
use lockwright_record::file::format::event;
use std::sync::atomic::{AtomicU8, Ordering};

/// Stands for the descriptor where a call waits for several descriptors, or for a signal.
const SEVERAL: c_int = -1;
/// Descriptors above this are never known to be timers.
const DESCRIPTORS_MAX: usize = 65536;

/// For each descriptor that is a timer, one more than the number of its clock; 0 for the others.
static TIMERS: [AtomicU8; DESCRIPTORS_MAX] = [const { AtomicU8::new(0) }; DESCRIPTORS_MAX];

fn place(descriptor: c_int) -> Option<&'static AtomicU8> {
    TIMERS.get(usize::try_from(descriptor).ok()?)
}

/// The clock of a timer. `None` if the descriptor is no timer.
fn clock_of(descriptor: c_int) -> Option<clockid_t> {
    // ORDERING: Relaxed: the program orders its use of a descriptor itself.
    let number = place(descriptor)?.load(Ordering::Relaxed);
    Some(clockid_t::from(number.checked_sub(1)?))
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn timerfd_create(clock: clockid_t, flags: c_int) -> c_int {
    // SAFETY: the call takes two integers.
    let descriptor = unsafe { next::timerfd_create(clock, flags) };
    if let (Some(place), Ok(clock)) = (place(descriptor), u8::try_from(clock))
        && load::has_descriptors_of_program()
    {
        place.store(clock.saturating_add(1), Ordering::Relaxed);
    }
    descriptor
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn timerfd_settime(
    descriptor: c_int,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let call = || unsafe { next::timerfd_settime(descriptor, flags, new, old) };
    // SAFETY: the program passes null, which the next function refuses, or settings that stay valid during the call.
    let (Some(ring), Some(clock), Some(set)) = (current(), clock_of(descriptor), unsafe { new.as_ref() }) else {
        return call();
    };
    // SAFETY: both times are inside the settings.
    let (value, interval) = unsafe { (ns(&raw const set.it_value), ns(&raw const set.it_interval)) };
    // A stopped timer has no first expiration.
    let (clock, first) = match value {
        0 => (clock, 0),
        _ if flags & TFD_TIMER_ABSTIME != 0 => (clock, value),
        _ => (CLOCK_MONOTONIC, clock::now_ns(CLOCK_MONOTONIC).saturating_add(value)),
    };
    let timer = u64::from(descriptor as u32);
    // It is recorded before the first expiration can be read.
    ring.put(event::TIMER_SET, [timer | u64::from(clock as u32) << 32, first, interval]);
    let answer = call();
    if answer != 0 {
        // The timer expires as it did before, which is not known any more.
        ring.put(event::TIMER_SET, [timer, 0, 0]);
    }
    answer
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(descriptor: c_int) -> c_int {
    if clock_of(descriptor).is_some()
        && let Some(place) = place(descriptor)
        && load::has_descriptors_of_program()
    {
        place.store(0, Ordering::Relaxed);
    }
    // SAFETY: the call takes an integer, and the program closes its own descriptor.
    unsafe { next::close(descriptor) }
}

/// Records a wait for a descriptor, if the call may wait.
#[inline(always)]
fn input<T>(kind: u8, descriptor: c_int, may_wait: bool, site: usize, call: impl FnOnce() -> T) -> T {
    if !may_wait {
        return call();
    }
    // The reader takes the lower half as a signed number.
    waits(kind, u64::from(descriptor as u32), site as u64, call)
}

/// Records a read. If the descriptor is a timer, `count` returns the number of expirations after a successful call.
#[inline(always)]
fn reads(descriptor: c_int, site: usize, call: impl FnOnce() -> ssize_t, count: impl FnOnce() -> u64) -> ssize_t {
    if clock_of(descriptor).is_none() {
        return input(event::INPUT, descriptor, true, site, call);
    }
    waits_for(event::TIMER, u64::from(descriptor as u32), site as u64, call, |ring, &answer| {
        if answer == size_of::<u64>() as ssize_t {
            ring.put(event::EXPIRED, [count()]);
        }
    })
}

unsafe extern "C-unwind" fn plain_read(descriptor: c_int, to: *mut c_void, bytes: size_t, site: usize) -> ssize_t {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns. The
    // count is read if the call wrote as many bytes.
    unsafe { reads(descriptor, site, || next::read(descriptor, to, bytes), || to.cast::<u64>().read_unaligned()) }
}

unsafe extern "C-unwind" fn checked_read(
    descriptor: c_int,
    to: *mut c_void,
    bytes: size_t,
    room: size_t,
    site: usize,
) -> ssize_t {
    let count = || {
        // SAFETY: the call wrote as many bytes.
        unsafe { to.cast::<u64>().read_unaligned() }
    };
    // SAFETY: as for `plain_read`.
    reads(descriptor, site, || unsafe { next::__read_chk(descriptor, to, bytes, room) }, count)
}

unsafe extern "C-unwind" fn vector_read(descriptor: c_int, to: *const iovec, count: c_int, site: usize) -> ssize_t {
    let expirations = || {
        let mut bytes = [0; size_of::<u64>()];
        let mut known = 0;
        for index in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the program passed `count` parts, which the call filled in order with as many bytes.
            unsafe {
                let part = &*to.add(index);
                let length = part.iov_len.min(bytes.len() - known);
                std::ptr::copy_nonoverlapping(part.iov_base.cast::<u8>(), bytes[known..].as_mut_ptr(), length);
                known += length;
            }
        }
        u64::from_ne_bytes(bytes)
    };
    // SAFETY: as for `plain_read`.
    reads(descriptor, site, || unsafe { next::readv(descriptor, to, count) }, expirations)
}

/// Defines functions that wait: the kind of the event, their arguments, the descriptor, and whether they may wait.
macro_rules! inputs {
    ($kind:expr; $(
        $name:ident = $next:ident($($argument:ident: $type:ty),*) -> $answer:ty, $descriptor:expr, $may_wait:expr;
    )*) => {$(
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name($($argument: $type,)* site: usize) -> $answer {
            // SAFETY: the program called this function with these arguments, so what they point to may be read, and
            // they are valid for the C library's function until it returns.
            unsafe { input($kind, $descriptor, $may_wait, site, || next::$next($($argument),*)) }
        }
    )*};
}

inputs! {
    event::INPUT;
    receive = recv(descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t,
        descriptor, flags & MSG_DONTWAIT == 0;
    checked_receive = __recv_chk(descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t, flags: c_int)
        -> ssize_t, descriptor, flags & MSG_DONTWAIT == 0;
    receive_from = recvfrom(
        descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t
    ) -> ssize_t, descriptor, flags & MSG_DONTWAIT == 0;
    receive_message = recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t,
        descriptor, flags & MSG_DONTWAIT == 0;
    receive_messages = recvmmsg(
        descriptor: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, time: *mut timespec
    ) -> c_int, descriptor, flags & MSG_DONTWAIT == 0;
    checked_receive_from = __recvfrom_chk(
        descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t, flags: c_int, from: *mut sockaddr,
        length: *mut socklen_t
    ) -> ssize_t, descriptor, flags & MSG_DONTWAIT == 0;
    accept3 = accept(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int, descriptor, true;
    accept_with = accept4(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int,
        descriptor, true;
    signal = sigwait(signals: *const sigset_t, signal: *mut c_int) -> c_int, SEVERAL, true;
    signal_info = sigwaitinfo(signals: *const sigset_t, info: *mut siginfo_t) -> c_int, SEVERAL, true;
    signal_until = sigtimedwait(signals: *const sigset_t, info: *mut siginfo_t, time: *const timespec) -> c_int,
        SEVERAL, !is_zero(time);
    message = mq_receive(queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint) -> ssize_t, queue, true;
    message_until = mq_timedreceive(
        queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint, time: *const timespec
    ) -> ssize_t, queue, true;
}

inputs! {
    event::POLL;
    poll3 = poll(descriptors: *mut pollfd, count: nfds_t, ms: c_int) -> c_int, only(descriptors, count), ms != 0;
    checked_poll = __poll_chk(descriptors: *mut pollfd, count: nfds_t, ms: c_int, room: size_t) -> c_int,
        only(descriptors, count), ms != 0;
    poll4 = ppoll(descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t) -> c_int,
        only(descriptors, count), !is_zero(time);
    checked_poll5 = __ppoll_chk(
        descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t, room: size_t
    ) -> c_int, only(descriptors, count), !is_zero(time);
    epoll4 = epoll_wait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int) -> c_int, epoll, ms != 0;
    epoll5 = epoll_pwait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int, signals: *const sigset_t)
        -> c_int, epoll, ms != 0;
    epoll5_by_time = epoll_pwait2(
        epoll: c_int, events: *mut epoll_event, room: c_int, time: *const timespec, signals: *const sigset_t
    ) -> c_int, epoll, !is_zero(time);
    select5 = select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *mut timeval)
        -> c_int, SEVERAL, !is_zero_time(time);
    select6 = pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *const timespec,
        signals: *const sigset_t
    ) -> c_int, SEVERAL, !is_zero(time);
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
    "r9" recvmmsg = receive_messages;
    "rcx" accept = accept3;
    "r8" accept4 = accept_with;
    "rcx" poll = poll3;
    "r8" __poll_chk = checked_poll;
    "r8" ppoll = poll4;
    "r9" __ppoll_chk = checked_poll5;
    "r8" epoll_wait = epoll4;
    "r9" epoll_pwait = epoll5;
    "r9" epoll_pwait2 = epoll5_by_time;
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

entries_of_seven! {
    __recvfrom_chk = checked_receive_from;
}
