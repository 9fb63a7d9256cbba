//! What kind of mutex it is: bits. The first two are a type.
//!
//! # Examples
//! ```
//! use lockwright::mutex::{Acquired, Limit, RawError, RawMutex, kind};
//!
//! // SAFETY: it is not robust, so it may be dropped in any state.
//! let mutex = unsafe { RawMutex::new(kind::RECURSIVE | kind::INHERIT, 0) };
//! assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
//! assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
//! mutex.unlock()?;
//! mutex.unlock()?;
//! assert_eq!(mutex.unlock(), Err(RawError::NotOwner));
//! # Ok::<(), RawError>(())
//! ```

/// Asked for by its owner, it waits for itself, or is refused where deadlocks are looked for.
pub const NORMAL: u32 = 0;
/// Its owner may take it again, and gives it back as often.
pub const RECURSIVE: u32 = 1;
/// Misuse is answered with an error.
pub const ERROR_CHECK: u32 = 2;
/// As normal: glibc spins for these, and we do not.
pub const ADAPTIVE: u32 = 3;
/// The bits of a type.
pub const TYPE: u32 = 3;
/// Survives the end of its owner.
pub const ROBUST: u32 = 1 << 4;
/// The owner has the priority of the most urgent waiter.
pub const INHERIT: u32 = 1 << 5;
/// The owner has the ceiling's priority.
pub const PROTECT: u32 = 1 << 6;
/// For threads of all processes that map it.
pub const SHARED: u32 = 1 << 7;
/// Given back, it belongs to the first waiter at once.
pub const SERIAL: u32 = 1 << 16;
/// Serial where a real-time thread waits, else parallel.
pub const AUTO: u32 = 1 << 17;
/// Every lock and unlock goes through the kernel.
pub const KERNEL_OWNED: u32 = 1 << 18;
/// Before it waits, a thread looks whether it would wait for itself.
pub const CHECKED: u32 = 1 << 19;

/// A thread has unlocked it for another one, so its owner need not be the one that unlocks it. Set by unlocking.
pub const BY_OTHERS: u32 = 1 << 20;

/// Whether only its owner can unlock a mutex of this kind.
#[must_use]
pub fn is_unlocked_by_owner(kind: u32) -> bool {
    kind & (ROBUST | INHERIT | PROTECT) != 0 || matches!(kind & TYPE, RECURSIVE | ERROR_CHECK)
}

/// Those that need more than an exchange of the word.
pub(super) const SLOW: u32 = ROBUST | PROTECT | KERNEL_OWNED;
