//! The C library's own functions of the names that this library defines.
//!
//! They serve objects that several processes share: another process may use the same object without this library. They
//! are looked up when the library is loaded, because a lookup may wait for another thread.

use crate::attributes::RwLockAttributes;
use libc::{ENOSYS, c_char, c_int, c_uint, c_void, pthread_t, sched_param, timespec};
use lockwright::mutex::{RawCondvar, RawMutex};
use lockwright::once::Once;
use lockwright::rwlock::RawRwLock;
use lockwright::semaphore::Semaphore;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the program that initialises something.
pub(crate) type Routine = unsafe extern "C-unwind" fn();

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
    pub(crate) fn get(&self) -> *mut c_void {
        // ORDERING: Relaxed: a function's address, which is the same for all threads.
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            let name: *const c_char = self.name.as_ptr();
            // SAFETY: the name is a constant string with a final zero.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
            self.found.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// Defines the functions. Each returns ENOSYS if the C library does not have it.
macro_rules! next {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[allow(non_camel_case_types)]
        enum Function { $($name),* }

        static FUNCTIONS: [Next; [$(stringify!($name)),*].len()] = [$(Next::new(concat!(stringify!($name), "\0"))),*];

        $(
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                let found = FUNCTIONS[Function::$name as usize].get();
                if found.is_null() {
                    return ENOSYS;
                }
                // SAFETY: `dlsym` found the function of this name, whose type in the C library is this one. The caller
                // passes arguments that this function accepts.
                unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> c_int>(found)($($argument),*)
                }
            }
        )*
    };
}

next! {
    pthread_mutex_init(mutex: *mut RawMutex, attributes: *const u32);
    pthread_mutex_destroy(mutex: *mut RawMutex);
    pthread_mutex_lock(mutex: *const RawMutex);
    pthread_mutex_trylock(mutex: *const RawMutex);
    pthread_mutex_clocklock(mutex: *const RawMutex, clock: c_int, time: *const timespec);
    pthread_mutex_unlock(mutex: *const RawMutex);
    pthread_mutex_consistent(mutex: *const RawMutex);
    pthread_mutex_getprioceiling(mutex: *const RawMutex, ceiling: *mut c_int);
    pthread_mutex_setprioceiling(mutex: *mut RawMutex, ceiling: c_int, before: *mut c_int);
    pthread_cond_init(cond: *mut RawCondvar, attributes: *const u32);
    pthread_cond_destroy(cond: *mut RawCondvar);
    pthread_cond_wait(cond: *mut RawCondvar, mutex: *mut RawMutex);
    pthread_cond_timedwait(cond: *mut RawCondvar, mutex: *mut RawMutex, time: *const timespec);
    pthread_cond_clockwait(cond: *mut RawCondvar, mutex: *mut RawMutex, clock: c_int, time: *const timespec);
    pthread_cond_signal(cond: *mut RawCondvar);
    pthread_cond_broadcast(cond: *mut RawCondvar);
    pthread_rwlock_init(rwlock: *mut RawRwLock, attributes: *const RwLockAttributes);
    pthread_rwlock_destroy(rwlock: *mut RawRwLock);
    pthread_rwlock_rdlock(rwlock: *mut RawRwLock);
    pthread_rwlock_tryrdlock(rwlock: *mut RawRwLock);
    pthread_rwlock_clockrdlock(rwlock: *mut RawRwLock, clock: c_int, time: *const timespec);
    pthread_rwlock_wrlock(rwlock: *mut RawRwLock);
    pthread_rwlock_trywrlock(rwlock: *mut RawRwLock);
    pthread_rwlock_clockwrlock(rwlock: *mut RawRwLock, clock: c_int, time: *const timespec);
    pthread_rwlock_unlock(rwlock: *mut RawRwLock);
    pthread_once(once: *mut Once, routine: Routine);
    sem_init(sem: *mut Semaphore, is_shared: c_int, value: c_uint);
    sem_destroy(sem: *mut Semaphore);
    sem_wait(sem: *mut Semaphore);
    sem_timedwait(sem: *mut Semaphore, time: *const timespec);
    sem_clockwait(sem: *mut Semaphore, clock: c_int, time: *const timespec);
    sem_trywait(sem: *mut Semaphore);
    sem_post(sem: *mut Semaphore);
    sem_getvalue(sem: *mut Semaphore, value: *mut c_int);
    pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param);
    pthread_setschedprio(thread: pthread_t, level: c_int);
    pthread_getschedparam(thread: pthread_t, policy: *mut c_int, param: *mut sched_param);
}

/// Looks all functions up.
pub(crate) fn warm_up() {
    for function in &FUNCTIONS {
        function.get();
    }
}
