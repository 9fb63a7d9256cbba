//! The C library's mutex and semaphore, for comparison in measurements.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;

/// The attributes of a mutex.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NativeAttributes {
    /// Whether it has priority inheritance.
    pub inherits: bool,
    /// Whether it is robust, so that it can be locked after its owner has died.
    pub robust: bool,
    /// The ceiling, if it has one.
    pub ceiling: Option<u8>,
}

/// A mutex of the C library.
#[derive(Debug)]
pub struct NativeMutex(ManuallyDrop<Box<UnsafeCell<libc::pthread_mutex_t>>>);

// SAFETY: the C library's functions synchronise threads that use one `pthread_mutex_t`, and nothing else accesses it.
unsafe impl Sync for NativeMutex {}
// SAFETY: the mutex is in a box, so it keeps its address when `Self` moves to another thread, and any thread may lock
// it.
unsafe impl Send for NativeMutex {}

const PRIO_INHERIT: i32 = 1;
const PRIO_PROTECT: i32 = 2;

unsafe extern "C" {
    fn pthread_mutexattr_setprioceiling(attributes: *mut libc::pthread_mutexattr_t, ceiling: i32) -> i32;
}

impl NativeMutex {
    /// Initialises a mutex. Returns `None` if the C library refuses these attributes.
    pub fn new(wanted: NativeAttributes) -> Option<Self> {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the attributes are initialised before they are used; they and the boxed mutex are valid until the
        // calls return.
        let made = unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            if wanted.inherits {
                libc::pthread_mutexattr_setprotocol(&raw mut attributes, PRIO_INHERIT);
            }
            if let Some(ceiling) = wanted.ceiling {
                libc::pthread_mutexattr_setprotocol(&raw mut attributes, PRIO_PROTECT);
                pthread_mutexattr_setprioceiling(&raw mut attributes, i32::from(ceiling));
            }
            if wanted.robust {
                libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            }
            let made = libc::pthread_mutex_init(mutex.get(), &raw const attributes);
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            made
        };
        (made == 0).then_some(Self(ManuallyDrop::new(mutex)))
    }

    /// The memory of the mutex.
    #[inline]
    pub fn memory(&self) -> &UnsafeCell<libc::pthread_mutex_t> {
        &self.0
    }

    /// Locks it. Returns false if the C library refuses.
    #[inline]
    pub fn lock(&self) -> bool {
        // SAFETY: `new` initialised the mutex, which stays in its box as long as `self`.
        unsafe { libc::pthread_mutex_lock(self.0.get()) == 0 }
    }

    /// Unlocks it. The caller must be the owner.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: `new` initialised the mutex, which stays in its box as long as `self`. For the measured kinds, an
        // unlock by another thread has a defined result.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for NativeMutex {
    /// Frees the memory, unless the mutex is locked: the C library then still has its address in a list of the owner.
    /// It is not freed either if this thread may not lock it, as above its ceiling.
    fn drop(&mut self) {
        // SAFETY: `new` initialised the mutex, and nobody else uses it: this thread alone has `self`. The box is taken
        // once, after an unlock by the thread that has just locked.
        unsafe {
            let locked = libc::pthread_mutex_trylock(self.0.get());
            // EOWNERDEAD: this thread has it as well. Unlocked like this, it can be destroyed and not locked.
            if [0, libc::EOWNERDEAD].contains(&locked) {
                libc::pthread_mutex_unlock(self.0.get());
                libc::pthread_mutex_destroy(self.0.get());
                ManuallyDrop::drop(&mut self.0);
            }
        }
    }
}

/// A semaphore of the C library with an initial count of 1.
#[derive(Debug)]
pub struct NativeSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: the C library's functions synchronise threads that use one `sem_t`, and nothing else accesses it.
unsafe impl Sync for NativeSemaphore {}
// SAFETY: the semaphore is in a box, so it keeps its address when `Self` moves to another thread, and it has no owner.
unsafe impl Send for NativeSemaphore {}

impl NativeSemaphore {
    /// Initialises a semaphore. Returns `None` if the C library refuses.
    pub fn new() -> Option<Self> {
        // SAFETY: all zeros are valid contents of a `sem_t`, which is initialised below.
        let semaphore = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed::<libc::sem_t>() }));
        // SAFETY: the box owns the memory, and no other thread knows it yet.
        let made = unsafe { libc::sem_init(semaphore.get(), 0, 1) };
        (made == 0).then_some(Self(semaphore))
    }

    /// Waits for it. Returns false if the C library refuses or a signal interrupts the wait.
    #[inline]
    pub fn wait(&self) -> bool {
        // SAFETY: `new` initialised the semaphore, which stays in its box as long as `self`.
        unsafe { libc::sem_wait(self.0.get()) == 0 }
    }

    /// Posts it.
    #[inline]
    pub fn post(&self) {
        // SAFETY: `new` initialised the semaphore, which stays in its box as long as `self`.
        unsafe { libc::sem_post(self.0.get()) };
    }
}
