//! How commits are decided on Linux.

use lockwright_ics::{Commit, Locked, Work};
use lockwright_sys::rseq::{self, Ended, Registered};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Not a processor: all threads use compare-and-swap, permanently.
const SHARED: u32 = 0x8000_0000;
/// Not a processor: the object is becoming [`SHARED`], and sequences may still be in progress.
const LEAVES: u32 = 0x8000_0001;

/// Commits by restartable sequences of Linux: a comparison and a store, which the kernel aborts if another thread
/// executes in between. For the threads of one processor and one process.
///
/// A thread that enters on another processor, or migrates in the middle, detects this at the store. From then on the
/// object is shared: all threads use the compare-and-swap of [`Locked`], permanently. The change needs the system call
/// `membarrier`. If the kernel then refuses it, for example because of a seccomp filter set after [`Rseq::new`], the
/// process is aborted with a message, because updates would be lost.
///
/// ```text
///   home     meaning                                      next
///   cpu      sequences on that processor                  LEAVES, by a thread that is on another processor
///   LEAVES   sequences may still be in progress           SHARED, after the kernel has aborted those of all processors
///   SHARED   compare-and-swap                             -
/// ```
///
/// # Bound
/// One more attempt for each preemption and signal in the middle of a store. At most one change of home for each
/// thread, which takes a system call.
#[derive(Debug)]
pub struct Rseq {
    home: AtomicU32,
    registered: Registered,
    aborted: AtomicU64,
    elsewhere: AtomicU64,
}

/// How often the kernel is asked to abort sequences before the process is aborted.
const ABORT_TRIES: u32 = 100;

impl Rseq {
    /// Creates the strategy for the threads of a processor, by its Linux number. Returns `None` if restartable
    /// sequences are not available: on architectures other than x86-64, without glibc 2.35 or later, if they are
    /// switched off, and on kernels before 5.10.
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

    /// Whether commits are still decided by sequences.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        // ORDERING: Relaxed: a statistic.
        self.home.load(Ordering::Relaxed) < SHARED
    }

    /// Returns how many stores were restarted because of a preemption or a signal in their middle.
    #[must_use]
    pub fn aborted(&self) -> u64 {
        // ORDERING: Relaxed: a statistic.
        self.aborted.load(Ordering::Relaxed)
    }

    /// Returns how many threads found themselves on another processor before the object was shared.
    #[must_use]
    pub fn elsewhere(&self) -> u64 {
        // ORDERING: Relaxed: a statistic.
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Stores by a sequence. Returns `None` if the object is shared.
    ///
    /// BOUND: one attempt for each preemption or signal in the middle, and for each of the two changes of the home.
    #[inline]
    fn store_if(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, new: u64) -> Option<bool> {
        loop {
            // ORDERING: Acquire pairs with the Release of `leave`, so that earlier sequences are visible.
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

    /// Makes the object shared.
    #[cold]
    fn leave(&self) {
        let home = self.home.load(Ordering::Relaxed);
        if home == SHARED {
            return;
        }
        // ORDERING: Relaxed: a count.
        self.elsewhere.fetch_add(1, Ordering::Relaxed);
        // ORDERING: SeqCst, with the barrier of the system call below: a sequence that begins after the barrier sees
        // this.
        let _ = self.home.compare_exchange(home, LEAVES, Ordering::SeqCst, Ordering::Relaxed);
        // Sequences that began before are aborted, unless they have already stored; both are visible from here on. The
        // kernel has no reason to refuse, except for a temporary lack of memory: the process is prepared, or is the
        // child of a prepared one and is prepared here.
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

// SAFETY: at home, both methods are a store that happens only if the head is `seen` at that instant and the thread is
// on the home's processor, where no other thread executes in between. A word is changed only while its head stands, and
// always to the same value. When shared, the methods are those of `Locked`, which no thread uses before the last
// sequence has ended. On x86-64 a store releases, and loads are visible in program order.
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

/// The kinds of [`Strategy`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The processor's compare-and-swap.
    Locked,
    /// The compare-and-swap without its LOCK prefix.
    Uniprocessor,
    /// Restartable sequences.
    Rseq,
}

/// A strategy for commits, chosen when the program starts.
#[derive(Debug)]
pub struct Strategy(Choice);

#[derive(Debug)]
enum Choice {
    Locked,
    #[cfg(target_arch = "x86_64")]
    Uniprocessor(lockwright_ics::Uniprocessor),
    Rseq(Rseq),
}

impl Strategy {
    /// Creates the fastest strategy for threads of a processor that is correct on any processor: restartable sequences
    /// if they are available, otherwise [`Locked`].
    #[must_use]
    pub fn for_cpu(cpu: u32) -> Self {
        Rseq::new(cpu).map_or_else(Self::locked, |rseq| Self(Choice::Rseq(rseq)))
    }

    /// Creates the strategy for threads of several processors or processes.
    #[must_use]
    pub const fn locked() -> Self {
        Self(Choice::Locked)
    }

    /// Creates the strategy without the LOCK prefix. On architectures other than x86-64 this is [`Strategy::locked`].
    ///
    /// # Safety
    /// All threads that enter the object, to write or to query, are bound to one processor, and are not moved while
    /// they are inside.
    #[must_use]
    #[allow(unsafe_code)] // The caller makes a promise.
    pub const unsafe fn uniprocessor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: the contract is that of `Uniprocessor::new`: all threads that enter the object are bound to one
            // processor.
            Self(Choice::Uniprocessor(unsafe { lockwright_ics::Uniprocessor::new() }))
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::locked()
    }

    /// Returns the kind of this strategy.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.0 {
            Choice::Locked => Kind::Locked,
            #[cfg(target_arch = "x86_64")]
            Choice::Uniprocessor(_) => Kind::Uniprocessor,
            Choice::Rseq(_) => Kind::Rseq,
        }
    }

    /// Returns the restartable sequences, if this strategy uses them.
    #[must_use]
    pub const fn rseq(&self) -> Option<&Rseq> {
        match &self.0 {
            Choice::Rseq(rseq) => Some(rseq),
            _ => None,
        }
    }
}

// SAFETY: an object uses one strategy for all its life. Each method only calls that strategy, and each strategy is a
// `Commit`.
#[allow(unsafe_code)]
unsafe impl Commit for Strategy {
    #[inline(always)]
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        match &self.0 {
            Choice::Locked => Locked.post(head, seen, new),
            #[cfg(target_arch = "x86_64")]
            Choice::Uniprocessor(direct) => direct.post(head, seen, new),
            Choice::Rseq(rseq) => post_by_sequence(rseq, head, seen, new),
        }
    }

    #[inline]
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        match &self.0 {
            Choice::Locked => Locked.perform(head, seen, word, old, new),
            #[cfg(target_arch = "x86_64")]
            Choice::Uniprocessor(direct) => direct.perform(head, seen, word, old, new),
            Choice::Rseq(rseq) => rseq.perform(head, seen, word, old, new),
        }
    }

    #[inline(always)]
    fn calls(&self) -> bool {
        matches!(self.0, Choice::Rseq(_))
    }

    #[inline(always)]
    fn chosen(&self, work: impl Work) {
        match &self.0 {
            Choice::Locked => work.with(&Locked),
            #[cfg(target_arch = "x86_64")]
            Choice::Uniprocessor(direct) => work.with(direct),
            Choice::Rseq(rseq) => work.with(rseq),
        }
    }
}

/// It stays out of line: it calls other functions and so saves registers, and the exchanges of the other strategies
/// would wait for these stores.
#[inline(never)]
fn post_by_sequence(rseq: &Rseq, head: &AtomicU64, seen: u64, new: u64) -> bool {
    rseq.post(head, seen, new)
}
