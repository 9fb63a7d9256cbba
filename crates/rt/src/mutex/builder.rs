//! The attributes of a mutex.

use super::attributes::{self, Attributes};
use super::raw::RawMutex;

/// How a mutex prevents priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MutexProtocol {
    /// Not at all: a thread of medium priority can delay an urgent one without bound.
    None,
    /// The owner inherits the priority of the most urgent waiter, along chains of owners. Uses the kernel's PI futex.
    /// An owner under SCHED_DEADLINE inherits a deadline on Linux (seen on 6.18) only after it has used up its own
    /// runtime.
    #[default]
    Inherit,
    /// The owner runs at least at this level of SCHED_FIFO (1 to 99): immediate priority ceiling.
    Protect(u8),
}

/// How an unlock passes the mutex to a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unlock {
    /// The unlock hands the mutex to the first waiter. No other thread can lock it in between, and each hand-off costs
    /// two context switches. A mutex with [`MutexProtocol::Inherit`] always does this, except that a more urgent thread
    /// may lock it before the first waiter executes.
    Serial,
    /// The unlock frees the mutex, and a running thread may lock it before the woken waiter does.
    Parallel,
    /// Serial if a real-time thread waits, otherwise parallel.
    #[default]
    Auto,
}

/// The attributes of a mutex to be built. Get one from [`Mutex::builder`](super::Mutex::builder).
///
/// The first lock with a ceiling, and the first wait that checks for a deadlock, register a fork handler with the C
/// library once. After [`warm_up`](super::warm_up) no lock does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Builder {
    protocol: MutexProtocol,
    unlock: Unlock,
    robust: bool,
    kernel_owned: bool,
    checked: bool,
    shared: bool,
    counted: bool,
}

impl Builder {
    /// The default: priority inheritance, automatic unlock, deadlock detection, not robust, and private to the process.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            protocol: MutexProtocol::Inherit,
            unlock: Unlock::Auto,
            robust: false,
            kernel_owned: false,
            checked: true,
            shared: false,
            counted: false,
        }
    }

    /// Sets how the mutex prevents priority inversion.
    #[must_use]
    pub const fn protocol(self, protocol: MutexProtocol) -> Self {
        Self { protocol, ..self }
    }

    /// Sets how an unlock passes the mutex on.
    #[must_use]
    pub const fn unlock(self, unlock: Unlock) -> Self {
        Self { unlock, ..self }
    }

    /// Sets whether the mutex survives the end of its owner: the next owner then gets
    /// [`LockError::OwnerDied`](super::LockError::OwnerDied).
    ///
    /// # Safety
    /// A robust mutex must not move while a thread holds it. That includes a thread that forgot its guard
    /// (`std::mem::forget`) and one that ended with the mutex locked. A static meets this, and so does memory that
    /// processes share, and any mutex whose guards are dropped. The kernel and the other robust mutexes of the thread
    /// hold its address.
    #[must_use]
    pub const unsafe fn robust(self, robust: bool) -> Self {
        Self { robust, ..self }
    }

    /// Sets whether each lock goes through the kernel, so that the kernel can find every owner. This changes only
    /// mutexes with [`MutexProtocol::Inherit`].
    #[must_use]
    pub const fn kernel_owned(self, kernel_owned: bool) -> Self {
        Self { kernel_owned, ..self }
    }

    /// Sets whether a thread checks for a deadlock before it waits. The check costs about two uncontended locks for
    /// each wait, and nothing without contention.
    #[must_use]
    pub const fn check_deadlocks(self, checked: bool) -> Self {
        Self { checked, ..self }
    }

    /// Sets whether threads of several processes use the mutex, in memory that they share.
    #[must_use]
    pub const fn shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// Sets whether locks, waits and sections are counted, from
    /// [`count_mutexes`](crate::statistics::count_mutexes) on. [`Mutex::statistics`](super::Mutex::statistics) returns
    /// the counts.
    ///
    /// A counted mutex always takes the slow path, and reads the clock after a lock, before an unlock and before a
    /// wait; a lock and unlock without contention take about 100 to 200 ns longer. It is counted by its address, so do
    /// not move it after its first lock. A thread reads its own name, by a system call, once at its first lock of a
    /// counted mutex, and before each wait. Other mutexes are as fast as without this option.
    #[must_use]
    pub const fn counted(self, counted: bool) -> Self {
        Self { counted, ..self }
    }

    /// Builds the mutex without a value.
    ///
    /// # Panics
    /// Panics if the ceiling is not a level of SCHED_FIFO, 1 to 99, or if the mutex is counted and shared by processes:
    /// each process has counters of its own.
    #[must_use]
    pub const fn build_raw(self) -> RawMutex {
        let (mut bits, ceiling) = match self.protocol {
            MutexProtocol::None => (attributes::ERROR_CHECK, 0),
            MutexProtocol::Inherit => (attributes::ERROR_CHECK | attributes::INHERIT, 0),
            MutexProtocol::Protect(ceiling) => (attributes::ERROR_CHECK | attributes::PROTECT, ceiling),
        };
        assert!(
            bits & attributes::PROTECT == 0 || (ceiling >= 1 && ceiling <= 99),
            "a ceiling is a level of SCHED_FIFO, 1 to 99"
        );
        bits |= match self.unlock {
            Unlock::Serial => attributes::SERIAL,
            Unlock::Parallel => 0,
            Unlock::Auto => attributes::AUTO,
        };
        if self.robust {
            bits |= attributes::ROBUST;
        }
        if self.kernel_owned {
            bits |= attributes::KERNEL_OWNED;
        }
        if self.checked {
            bits |= attributes::CHECKED;
        }
        if self.shared {
            bits |= attributes::SHARED;
        }
        if self.counted {
            assert!(!self.shared, "a counted mutex belongs to one process, because each has counters of its own");
            bits |= attributes::COUNTED;
        }
        // SAFETY: only `Builder::robust` sets the robust bit, and its contract, that a held mutex does not move, is
        // that of `RawMutex::new`.
        unsafe { RawMutex::new(Attributes::from_bits(bits), ceiling) }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}
