//! The attributes of a mutex, as bits. The lowest two bits are its type.
//!
//! [`Attributes`] has the same names. A [`RawMutex`](super::RawMutex) stores the bits, and the libraries for C combine
//! them with their own.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The attributes of a [`RawMutex`](super::RawMutex): one of the types [`NORMAL`](Self::NORMAL),
/// [`RECURSIVE`](Self::RECURSIVE), [`ERROR_CHECK`](Self::ERROR_CHECK) and [`ADAPTIVE`](Self::ADAPTIVE), and any number
/// of the others. The types are numbers: two of them do not combine.
///
/// # Examples
/// ```
/// use lockwright::mutex::{Acquired, Attributes, Limit, RawError, RawMutex};
///
/// // SAFETY: it is not robust, so it may be dropped in any state.
/// let mutex = unsafe { RawMutex::new(Attributes::RECURSIVE | Attributes::INHERIT, 0) };
/// assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
/// assert_eq!(mutex.lock(Limit::Never)?, Acquired::Clean);
/// mutex.unlock()?;
/// mutex.unlock()?;
/// assert_eq!(mutex.unlock(), Err(RawError::NotOwner));
/// # Ok::<(), RawError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Attributes(u32);

/// Defines each attribute as a constant of [`Attributes`] and as bits.
macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident = $bits:expr;)*) => {
        impl Attributes {
            $($(#[$doc])* pub const $name: Self = Self($bits);)*
        }

        $($(#[$doc])* pub const $name: u32 = $bits;)*
    };
}

attributes! {
    /// An owner that locks it again waits for itself, or is refused if the mutex is `CHECKED`.
    NORMAL = 0;
    /// The owner may lock it again, and unlocks it as often as it locked it.
    RECURSIVE = 1;
    /// Misuse returns an error.
    ERROR_CHECK = 2;
    /// Like `NORMAL`: glibc spins for these, and Lockwright does not.
    ADAPTIVE = 3;
    /// The mutex survives the end of its owner.
    ROBUST = 1 << 4;
    /// The owner inherits the priority of the most urgent waiter.
    INHERIT = 1 << 5;
    /// The owner runs at least at the ceiling's level.
    PROTECT = 1 << 6;
    /// The mutex is for the threads of all processes that map it.
    SHARED = 1 << 7;
    /// An unlock hands the mutex to the first waiter.
    SERIAL = 1 << 16;
    /// Serial if a real-time thread waits, otherwise parallel.
    AUTO = 1 << 17;
    /// Every lock and unlock goes through the kernel.
    KERNEL_OWNED = 1 << 18;
    /// Before a thread waits, it checks whether it would wait for itself.
    CHECKED = 1 << 19;
    /// What threads do with the mutex is counted, once [`count_mutexes`](crate::statistics::count_mutexes) was called.
    COUNTED = 1 << 21;
}

/// The mask of the type.
pub const TYPE: u32 = 3;

/// A thread has unlocked the mutex for another one, so the owner is not necessarily the thread that will unlock it. An
/// unlock sets this bit.
pub const BY_OTHERS: u32 = 1 << 20;

impl Attributes {
    /// The attributes with these bits. Bits without a name are kept.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bits, as the mutex stores them.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Attributes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Formats the bits as a number.
macro_rules! formats {
    ($($base:ident),*) => {$(
        impl fmt::$base for Attributes {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$base::fmt(&self.0, f)
            }
        }
    )*};
}

formats!(Binary, LowerHex, Octal, UpperHex);

/// Whether only the owner can unlock a mutex with these attributes.
#[must_use]
pub fn is_unlocked_by_owner(attributes: u32) -> bool {
    attributes & (ROBUST | INHERIT | PROTECT) != 0 || matches!(attributes & TYPE, RECURSIVE | ERROR_CHECK)
}

/// The attributes for which an exchange of the word is not enough.
pub(super) const SLOW: u32 = ROBUST | PROTECT | KERNEL_OWNED | COUNTED;
