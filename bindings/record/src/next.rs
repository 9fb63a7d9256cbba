//! The next functions of the names that this library defines: the C library's, or those of another preloaded library.
//!
//! They are looked up when the library is loaded, because a lookup may wait for another thread.

use libc::{
    ENOSYS, c_char, c_int, c_long, c_uint, c_void, clockid_t, cpu_set_t, epoll_event, fd_set, iovec, itimerspec,
    mmsghdr, msghdr, nfds_t, pid_t, pollfd, pthread_attr_t, pthread_t, sched_param, sem_t, siginfo_t, sigset_t, size_t,
    sockaddr, socklen_t, ssize_t, timespec, timeval,
};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A mutex, condition variable, lock or barrier of the next library: only its address and the kind of a mutex matter.
pub(crate) type Opaque = *mut c_void;
/// The function that a thread executes.
pub(crate) type Body = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// The function that a thread of C11 executes.
pub(crate) type Body11 = extern "C-unwind" fn(*mut c_void) -> c_int;

/// A function of the libraries loaded after this one.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static str) -> Self {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("a name ends with a zero") };
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the function's address, or null if there is no such function.
    #[inline(always)]
    pub(crate) fn get(&self) -> *mut c_void {
        // ORDERING: Relaxed: a function's address, which is the same for all threads.
        let found = self.found.load(Ordering::Relaxed);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let name: *const c_char = self.name.as_ptr();
        // SAFETY: the name is a constant string with a final zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
        // ORDERING: Relaxed: see `get`.
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines the functions. Each has an answer for the case that the libraries do not have it.
macro_rules! next {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty = $missing:expr;)*) => {
        #[allow(non_camel_case_types)]
        enum Function { $($name),* }

        static FUNCTIONS: [Next; [$(stringify!($name)),*].len()] = [$(Next::new(concat!(stringify!($name), "\0"))),*];

        $(
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> $answer {
                let found = FUNCTIONS[Function::$name as usize].get();
                if found.is_null() {
                    return $missing;
                }
                // SAFETY: `dlsym` found the function of this name, whose type in the C library is this one. The caller
                // passes arguments that this function accepts.
                unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $answer>(found)(
                        $($argument),*
                    )
                }
            }
        )*
    };
}

/// The answer of a function without one.
fn nothing() {}

/// Sets the error number, and returns the answer of a system call that failed.
#[cold]
fn missing() -> i8 {
    // SAFETY: the C library returns the address of the calling thread's own error number.
    unsafe { *libc::__errno_location() = ENOSYS };
    -1
}

next! {
    pthread_mutex_init(mutex: Opaque, attributes: *const c_void) -> c_int = ENOSYS;
    pthread_mutex_lock(mutex: Opaque) -> c_int = ENOSYS;
    pthread_mutex_trylock(mutex: Opaque) -> c_int = ENOSYS;
    pthread_mutex_timedlock(mutex: Opaque, time: *const timespec) -> c_int = ENOSYS;
    pthread_mutex_clocklock(mutex: Opaque, clock: clockid_t, time: *const timespec) -> c_int = ENOSYS;
    pthread_mutex_unlock(mutex: Opaque) -> c_int = ENOSYS;
    pthread_mutex_setprioceiling(mutex: Opaque, ceiling: c_int, old: *mut c_int) -> c_int = ENOSYS;
    pthread_mutex_getprioceiling(mutex: Opaque, ceiling: *mut c_int) -> c_int = ENOSYS;
    mtx_init(mutex: Opaque, kind: c_int) -> c_int = 2;
    pthread_cond_init(cond: Opaque, attributes: *const c_void) -> c_int = ENOSYS;
    pthread_cond_wait(cond: Opaque, mutex: Opaque) -> c_int = ENOSYS;
    pthread_cond_timedwait(cond: Opaque, mutex: Opaque, time: *const timespec) -> c_int = ENOSYS;
    pthread_cond_clockwait(cond: Opaque, mutex: Opaque, clock: clockid_t, time: *const timespec) -> c_int = ENOSYS;
    pthread_cond_signal(cond: Opaque) -> c_int = ENOSYS;
    pthread_cond_broadcast(cond: Opaque) -> c_int = ENOSYS;
    pthread_rwlock_init(lock: Opaque, attributes: *const c_void) -> c_int = ENOSYS;
    pthread_rwlock_rdlock(lock: Opaque) -> c_int = ENOSYS;
    pthread_rwlock_tryrdlock(lock: Opaque) -> c_int = ENOSYS;
    pthread_rwlock_timedrdlock(lock: Opaque, time: *const timespec) -> c_int = ENOSYS;
    pthread_rwlock_clockrdlock(lock: Opaque, clock: clockid_t, time: *const timespec) -> c_int = ENOSYS;
    pthread_rwlock_wrlock(lock: Opaque) -> c_int = ENOSYS;
    pthread_rwlock_trywrlock(lock: Opaque) -> c_int = ENOSYS;
    pthread_rwlock_timedwrlock(lock: Opaque, time: *const timespec) -> c_int = ENOSYS;
    pthread_rwlock_clockwrlock(lock: Opaque, clock: clockid_t, time: *const timespec) -> c_int = ENOSYS;
    pthread_rwlock_unlock(lock: Opaque) -> c_int = ENOSYS;
    pthread_spin_init(lock: Opaque, shared: c_int) -> c_int = ENOSYS;
    pthread_spin_lock(lock: Opaque) -> c_int = ENOSYS;
    pthread_spin_trylock(lock: Opaque) -> c_int = ENOSYS;
    pthread_spin_unlock(lock: Opaque) -> c_int = ENOSYS;
    sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int = missing().into();
    sem_wait(semaphore: *mut sem_t) -> c_int = missing().into();
    sem_trywait(semaphore: *mut sem_t) -> c_int = missing().into();
    sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int = missing().into();
    sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int = missing().into();
    sem_post(semaphore: *mut sem_t) -> c_int = missing().into();
    pthread_barrier_init(barrier: Opaque, attributes: *const c_void, count: c_uint) -> c_int = ENOSYS;
    pthread_barrier_wait(barrier: Opaque) -> c_int = ENOSYS;
    clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int = ENOSYS;
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int = missing().into();
    usleep(us: c_uint) -> c_int = missing().into();
    sleep(s: c_uint) -> c_uint = s;
    thrd_sleep(time: *const timespec, left: *mut timespec) -> c_int = -2;
    timerfd_create(clock: clockid_t, flags: c_int) -> c_int = missing().into();
    timerfd_settime(descriptor: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int
        = missing().into();
    close(descriptor: c_int) -> c_int = missing().into();
    read(descriptor: c_int, to: *mut c_void, bytes: size_t) -> ssize_t = missing().into();
    __read_chk(descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t) -> ssize_t = missing().into();
    readv(descriptor: c_int, to: *const iovec, count: c_int) -> ssize_t = missing().into();
    recv(descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t = missing().into();
    __recv_chk(descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t, flags: c_int) -> ssize_t
        = missing().into();
    recvfrom(
        descriptor: c_int, to: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t
    ) -> ssize_t = missing().into();
    __recvfrom_chk(
        descriptor: c_int, to: *mut c_void, bytes: size_t, room: size_t, flags: c_int, from: *mut sockaddr,
        length: *mut socklen_t
    ) -> ssize_t = missing().into();
    recvmmsg(descriptor: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, time: *mut timespec) -> c_int
        = missing().into();
    recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = missing().into();
    accept(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int = missing().into();
    accept4(descriptor: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = missing().into();
    poll(descriptors: *mut pollfd, count: nfds_t, ms: c_int) -> c_int = missing().into();
    __poll_chk(descriptors: *mut pollfd, count: nfds_t, ms: c_int, room: size_t) -> c_int = missing().into();
    ppoll(descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t) -> c_int
        = missing().into();
    __ppoll_chk(
        descriptors: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t, room: size_t
    ) -> c_int = missing().into();
    epoll_wait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int) -> c_int = missing().into();
    epoll_pwait(epoll: c_int, events: *mut epoll_event, room: c_int, ms: c_int, signals: *const sigset_t) -> c_int
        = missing().into();
    epoll_pwait2(
        epoll: c_int, events: *mut epoll_event, room: c_int, time: *const timespec, signals: *const sigset_t
    ) -> c_int = missing().into();
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *mut timeval) -> c_int
        = missing().into();
    pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, time: *const timespec,
        signals: *const sigset_t
    ) -> c_int = missing().into();
    sigwait(signals: *const sigset_t, signal: *mut c_int) -> c_int = ENOSYS;
    sigwaitinfo(signals: *const sigset_t, info: *mut siginfo_t) -> c_int = missing().into();
    sigtimedwait(signals: *const sigset_t, info: *mut siginfo_t, time: *const timespec) -> c_int = missing().into();
    mq_receive(queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint) -> ssize_t = missing().into();
    mq_timedreceive(
        queue: c_int, to: *mut c_char, bytes: size_t, priority: *mut c_uint, time: *const timespec
    ) -> ssize_t = missing().into();
    pthread_create(thread: *mut pthread_t, attributes: *const pthread_attr_t, body: Body, argument: *mut c_void)
        -> c_int = ENOSYS;
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int = ENOSYS;
    pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, time: *const timespec) -> c_int = ENOSYS;
    thrd_create(thread: *mut pthread_t, body: Body11, argument: *mut c_void) -> c_int = 2;
    thrd_join(thread: pthread_t, result: *mut c_int) -> c_int = 2;
    thrd_yield() -> c_int = 0;
    pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param) -> c_int = ENOSYS;
    pthread_setschedprio(thread: pthread_t, level: c_int) -> c_int = ENOSYS;
    pthread_setaffinity_np(thread: pthread_t, bytes: size_t, cpus: *const cpu_set_t) -> c_int = ENOSYS;
    sched_setscheduler(process: pid_t, policy: c_int, param: *const sched_param) -> c_int = missing().into();
    sched_setparam(process: pid_t, param: *const sched_param) -> c_int = missing().into();
    sched_setattr(process: pid_t, attributes: *mut c_void, flags: c_uint) -> c_int = missing().into();
    sched_setaffinity(process: pid_t, bytes: size_t, cpus: *const cpu_set_t) -> c_int = missing().into();
    setpriority(which: c_uint, who: c_uint, value: c_int) -> c_int = missing().into();
    sched_yield() -> c_int = missing().into();
    syscall(
        number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long
    ) -> c_long = missing().into();
    ros_trace_callback_start(callback: *const c_void, is_within_process: bool) -> () = nothing();
    ros_trace_callback_end(callback: *const c_void) -> () = nothing();
    ros_trace_rclcpp_callback_register(callback: *const c_void, name: *const c_char) -> () = nothing();
    _exit(status: c_int) -> c_int = status;
}

/// Looks all functions up.
pub(crate) fn warm_up() {
    for function in &FUNCTIONS {
        function.get();
    }
}

/// Returns the address of the next `syscall`.
pub(crate) fn syscall_address() -> *mut c_void {
    FUNCTIONS[Function::syscall as usize].get()
}
