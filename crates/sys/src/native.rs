//! The C library's mutex and semaphore, to measure ours beside them.

use std::cell::UnsafeCell;

/// What kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NativeKind {
    /// With priority inheritance.
    pub inherits: bool,
    /// Survives its owner.
    pub robust: bool,
    /// With a ceiling of this level, if any.
    pub ceiling: Option<u8>,
}

/// A mutex of the C library.
pub struct NativeMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: it is made for several threads.
unsafe impl Sync for NativeMutex {}
// SAFETY: it stays where it is, in its box.
unsafe impl Send for NativeMutex {}

const PRIO_INHERIT: i32 = 1;
const PRIO_PROTECT: i32 = 2;

unsafe extern "C" {
    fn pthread_mutexattr_setprioceiling(attributes: *mut libc::pthread_mutexattr_t, ceiling: i32) -> i32;
}

impl NativeMutex {
    /// `None` where the C library has no such kind.
    pub fn new(kind: NativeKind) -> Option<Self> {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the attributes are initialised before they are used, and all pointers are valid.
        let made = unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            if kind.inherits {
                libc::pthread_mutexattr_setprotocol(&raw mut attributes, PRIO_INHERIT);
            }
            if let Some(ceiling) = kind.ceiling {
                libc::pthread_mutexattr_setprotocol(&raw mut attributes, PRIO_PROTECT);
                pthread_mutexattr_setprioceiling(&raw mut attributes, i32::from(ceiling));
            }
            if kind.robust {
                libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            }
            let made = libc::pthread_mutex_init(mutex.get(), &raw const attributes);
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            made
        };
        (made == 0).then_some(Self(mutex))
    }

    /// Where it is.
    #[inline]
    pub fn memory(&self) -> &impl Sized {
        &*self.0
    }

    /// Locks it. False where the C library refuses.
    #[inline]
    pub fn lock(&self) -> bool {
        // SAFETY: it was initialised.
        unsafe { libc::pthread_mutex_lock(self.0.get()) == 0 }
    }

    /// By who locked it.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: it was initialised; unlocked by another it does something defined for the kinds that are measured.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// A semaphore of the C library, for one at a time.
pub struct NativeSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: it is made for several threads.
unsafe impl Sync for NativeSemaphore {}
// SAFETY: it stays where it is, in its box.
unsafe impl Send for NativeSemaphore {}

impl NativeSemaphore {
    /// `None` where the C library has none.
    pub fn new() -> Option<Self> {
        // SAFETY: all zeros is memory like any other; it is initialised just now.
        let semaphore = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed::<libc::sem_t>() }));
        // SAFETY: the pointer is valid.
        let made = unsafe { libc::sem_init(semaphore.get(), 0, 1) };
        (made == 0).then_some(Self(semaphore))
    }

    /// Waits for it. False where the C library refuses, or a signal came.
    #[inline]
    pub fn wait(&self) -> bool {
        // SAFETY: it was initialised.
        unsafe { libc::sem_wait(self.0.get()) == 0 }
    }

    /// Posts it.
    #[inline]
    pub fn post(&self) {
        // SAFETY: it was initialised.
        unsafe { libc::sem_post(self.0.get()) };
    }
}
