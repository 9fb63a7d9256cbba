//! The attributes of a mutex, as bits. The lowest two bits are its type.
//!
//! # Examples
//! ```
//! use lockwright::mutex::{Acquired, Limit, RawError, RawMutex, attributes};
//!
//! // SAFETY: it is not robust, so it may be dropped in any state.
//! let mutex = unsafe { RawMutex::new(attributes::RECURSIVE | attributes::INHERIT, 0) };
//! assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
//! assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
//! mutex.unlock()?;
//! mutex.unlock()?;
//! assert_eq!(mutex.unlock(), Err(RawError::NotOwner));
//! # Ok::<(), RawError>(())
//! ```

/// An owner that locks it again waits for itself, or is refused if the mutex is [`CHECKED`].
pub const NORMAL: u32 = 0;
/// The owner may lock it again, and unlocks it as often as it locked it.
pub const RECURSIVE: u32 = 1;
/// Misuse returns an error.
pub const ERROR_CHECK: u32 = 2;
/// Like [`NORMAL`]: glibc spins for these, and Lockwright does not.
pub const ADAPTIVE: u32 = 3;
/// The mask of the type.
pub const TYPE: u32 = 3;
/// The mutex survives the end of its owner.
pub const ROBUST: u32 = 1 << 4;
/// The owner inherits the priority of the most urgent waiter.
pub const INHERIT: u32 = 1 << 5;
/// The owner runs at least at the ceiling's level.
pub const PROTECT: u32 = 1 << 6;
/// The mutex is for the threads of all processes that map it.
pub const SHARED: u32 = 1 << 7;
/// An unlock hands the mutex to the first waiter.
pub const SERIAL: u32 = 1 << 16;
/// Serial if a real-time thread waits, otherwise parallel.
pub const AUTO: u32 = 1 << 17;
/// Every lock and unlock goes through the kernel.
pub const KERNEL_OWNED: u32 = 1 << 18;
/// Before a thread waits, it checks whether it would wait for itself.
pub const CHECKED: u32 = 1 << 19;

/// A thread has unlocked the mutex for another one, so the owner is not necessarily the thread that will unlock it. An
/// unlock sets this bit.
pub const BY_OTHERS: u32 = 1 << 20;

/// What threads do with the mutex is counted, once [`count_mutexes`](crate::statistics::count_mutexes) was called.
pub const COUNTED: u32 = 1 << 21;

/// Whether only the owner can unlock a mutex with these attributes.
#[must_use]
pub fn is_unlocked_by_owner(attributes: u32) -> bool {
    attributes & (ROBUST | INHERIT | PROTECT) != 0 || matches!(attributes & TYPE, RECURSIVE | ERROR_CHECK)
}

/// The attributes for which an exchange of the word is not enough.
pub(super) const SLOW: u32 = ROBUST | PROTECT | KERNEL_OWNED | COUNTED;
