//! How commits are decided on Linux.

use lockwright_ics::{Commit, Locked};
use lockwright_sys::rseq::{self, Ended, Registered};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Not a processor: all use compare-and-swap, for all time.
const SHARED: u32 = 0x8000_0000;
/// Not a processor: it is becoming [`SHARED`]; sequences may still be under way.
const LEAVES: u32 = 0x8000_0001;

/// Commits by restartable sequences of Linux: a comparison and a store, which the kernel aborts if anybody comes between. For the threads of one processor, and of one process.
///
/// A thread that enters on another processor, or is moved in the middle, is noticed at the store. From then on the object is everybody's: all
/// use the compare-and-swap of [`Locked`], for all time. That needs the system call `membarrier`: where the kernel refuses it then, as by a seccomp filter that was set after
/// [`Rseq::new`], the process is aborted with a message, for updates would get lost.
///
/// ```text
///   home     meaning                                      next
///   cpu      sequences on that processor                  LEAVES, by who finds itself elsewhere
///   LEAVES   sequences may be under way still             SHARED, after the kernel has aborted those of all processors
///   SHARED   compare-and-swap                             -
/// ```
///
/// # Bound
/// An attempt more for each preemption and signal in the middle of a store. A system call for each thread at most when the home is left.
#[derive(Debug)]
pub struct Rseq {
    home: AtomicU32,
    registered: Registered,
    aborted: AtomicU64,
    elsewhere: AtomicU64,
}

/// How often the kernel is asked to abort sequences before the process is given up.
const ABORT_TRIES: u32 = 100;

impl Rseq {
    /// For the threads of a processor (by its Linux number). `None` where there are no restartable sequences here: on other processors than x86-64, with C libraries other
    /// than glibc since 2.35, where they are switched off, and with kernels before 5.10.
    #[must_use]
    pub fn new(cpu: u32) -> Option<Self> {
        let registered = Registered::find()?;
        rseq::prepare_to_abort().ok()?;
        (cpu < SHARED).then(|| Self {
            home: AtomicU32::new(cpu),
            registered,
            aborted: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
        })
    }

    /// Whether it is still decided by sequences.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        // ORDERING: Relaxed: for people.
        self.home.load(Ordering::Relaxed) < SHARED
    }

    /// How many stores were begun anew because of a preemption or a signal in their middle.
    #[must_use]
    pub fn aborted(&self) -> u64 {
        // ORDERING: Relaxed: a count, for people.
        self.aborted.load(Ordering::Relaxed)
    }

    /// How many threads found themselves on another processor before the object was everybody's.
    #[must_use]
    pub fn elsewhere(&self) -> u64 {
        // ORDERING: Relaxed: a count, for people.
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Stores by a sequence. `None`: the object is everybody's.
    ///
    /// BOUND: an attempt for each preemption or signal in the middle, and for each change of the home, of which there are two.
    #[inline]
    fn store_if(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, new: u64) -> Option<bool> {
        loop {
            // ORDERING: Acquire pairs with the Release of `leave`: sequences before that are seen.
            if self.home.load(Ordering::Acquire) == SHARED {
                return None;
            }
            match self.registered.store_if(&self.home, head, seen, word, new) {
                Ended::Stored => return Some(true),
                Ended::Differs => return Some(false),
                // ORDERING: Relaxed: counts.
                Ended::Aborted => _ = self.aborted.fetch_add(1, Ordering::Relaxed),
                Ended::Elsewhere => self.leave(),
            }
        }
    }

    /// Makes it everybody's.
    #[cold]
    fn leave(&self) {
        let home = self.home.load(Ordering::Relaxed);
        if home == SHARED {
            return;
        }
        // ORDERING: Relaxed: a count.
        self.elsewhere.fetch_add(1, Ordering::Relaxed);
        // ORDERING: SeqCst, with the barrier of the system call below: a sequence that begins after it sees this.
        let _ = self.home.compare_exchange(home, LEAVES, Ordering::SeqCst, Ordering::Relaxed);
        // Those that began before are aborted, unless they have stored; both are seen from here on. The kernel has no reason to refuse: the process is prepared, or is
        // the child of one that was, which is prepared here; memory may be short for a while.
        // BOUND: ABORT_TRIES.
        for _ in 0..ABORT_TRIES {
            match rseq::abort_all() {
                Ok(()) => {
                    // ORDERING: Release pairs with the Acquire of `store_if`.
                    self.home.store(SHARED, Ordering::Release);
                    return;
                }
                Err(_) => _ = rseq::prepare_to_abort(),
            }
        }
        rseq::give_up();
    }
}

// SAFETY: at home, both are a store that happens only if the head is `seen` at that instant and the thread on the home's processor, where nobody comes between; a word is
// changed for a head as long as that is the head, and always to the same. Elsewhere they are those of `Locked`, which nobody uses before the last sequence has ended. On x86-64 a
// store releases, and loads are seen in the order of the text.
#[allow(unsafe_code)]
unsafe impl Commit for Rseq {
    #[inline]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        match self.store_if(head, seen, head, new) {
            Some(is_posted) => is_posted,
            None => Locked.post(head, seen, new),
        }
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        if self.store_if(head, seen, word, new).is_none() {
            Locked.perform(head, seen, word, old, new);
        }
    }
}

/// Which one a [`Strategy`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The processor's compare-and-swap.
    Locked,
    /// The same without its LOCK prefix.
    Plain,
    /// Restartable sequences.
    Rseq,
}

/// One of the strategies, chosen when the program starts.
#[derive(Debug)]
pub struct Strategy(Choice);

#[derive(Debug)]
enum Choice {
    Locked,
    #[cfg(target_arch = "x86_64")]
    Plain(lockwright_ics::Uniprocessor),
    Rseq(Rseq),
}

impl Strategy {
    /// The best one for threads of a processor that is right wherever they are: restartable sequences where there are some, else [`Locked`].
    #[must_use]
    pub fn for_cpu(cpu: u32) -> Self {
        Rseq::new(cpu).map_or_else(Self::locked, |rseq| Self(Choice::Rseq(rseq)))
    }

    /// For threads of several processors, or processes.
    #[must_use]
    pub const fn locked() -> Self {
        Self(Choice::Locked)
    }

    /// Without the LOCK prefix; on other processors than x86-64, [`Strategy::locked`].
    ///
    /// # Safety
    /// All threads that enter the object, to write or to query, are bound to one processor, and nobody moves them while they are inside.
    #[must_use]
    #[allow(unsafe_code)] // A promise of the caller's.
    pub const unsafe fn plain() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the caller's promise.
            Self(Choice::Plain(unsafe { lockwright_ics::Uniprocessor::new() }))
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::locked()
    }

    /// Which one it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.0 {
            Choice::Locked => Kind::Locked,
            #[cfg(target_arch = "x86_64")]
            Choice::Plain(_) => Kind::Plain,
            Choice::Rseq(_) => Kind::Rseq,
        }
    }

    /// The sequences, if it is that.
    #[must_use]
    pub const fn rseq(&self) -> Option<&Rseq> {
        match &self.0 {
            Choice::Rseq(rseq) => Some(rseq),
            _ => None,
        }
    }
}

// SAFETY: an object has one of them for all its life, and each keeps the promise.
#[allow(unsafe_code)]
unsafe impl Commit for Strategy {
    #[inline]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        match &self.0 {
            Choice::Locked => Locked.post(head, seen, new),
            #[cfg(target_arch = "x86_64")]
            Choice::Plain(plain) => plain.post(head, seen, new),
            Choice::Rseq(rseq) => rseq.post(head, seen, new),
        }
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        match &self.0 {
            Choice::Locked => Locked.perform(head, seen, word, old, new),
            #[cfg(target_arch = "x86_64")]
            Choice::Plain(plain) => plain.perform(head, seen, word, old, new),
            Choice::Rseq(rseq) => rseq.perform(head, seen, word, old, new),
        }
    }
}
