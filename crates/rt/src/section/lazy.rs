//! Lazy sections: a thread whose job is released checks whether another thread is inside one.
//!
//! Each processor has a word with an owner (see [`PiWord`] for its states): the id of the managed thread that is inside
//! a section there. Entering and leaving are one compare-and-swap each. A managed thread checks the word when its job
//! is released. If another thread is inside, it locks the word through the kernel, which lends that thread its
//! priority:
//!
//! ```text
//!   L, less urgent                     H, released meanwhile
//!   enter: 0 -> L
//!   ...            preempted by        wakes up, checks: L is inside
//!                                      locks the word: suspended, L inherits
//!   ...            at H's priority
//!   leave: L -> H, by the kernel
//!                                      H -> 0, begins its job
//! ```
//!
//! This is the non-preemptive section of LITMUS^RT on a stock kernel. LITMUS^RT also marks a thread that is inside by a
//! flag. Its scheduler checks the flag at releases; here the threads themselves do.
//!
//! The compare-and-swaps are those of std, which also work if threads of one word execute on two processors: after a
//! managed thread was bound elsewhere, or the processor was taken offline. (On x86-64 a `cmpxchg` without its LOCK
//! prefix would work only if neither happens, and could otherwise lose a waiter for ever. It was measured to be no
//! faster.)

use super::error::SectionError;
use lockwright_sys::pi_word::{Locked, PiError, PiWord};
use lockwright_sys::sched::{self, ME, Tid, gettid};
use lockwright_sys::{SysError, clock, fork};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// The number of processors that have a word.
const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;
/// The number of ceilings of a processor that have a word. A thread rises to further ceilings by a change of its level.
pub(crate) const CEILINGS_MAX: usize = 8;

/// The words of each processor, by its Linux number. Two libraries of one process share them if they are linked with
/// one copy of this crate.
static CPUS: [Cpu; CPUS_MAX] = [const { Cpu::new() }; CPUS_MAX];

/// The words of one processor, aligned so that those of two processors share no cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Cpu {
    /// The thread that is inside a section.
    pub(super) word: PiWord,
    /// The number of sections that were never left.
    abandoned: AtomicU64,
    /// The holder of each ceiling. The words in use come first.
    ceilings: [CeilingWord; CEILINGS_MAX],
}

/// Like the word of a processor, for one ceiling: threads above the ceiling need not check it.
#[derive(Debug)]
struct CeilingWord {
    /// The ceiling, or 0 while the word is unused.
    level: AtomicU8,
    word: PiWord,
}

impl Cpu {
    const fn new() -> Self {
        let ceilings = [const { CeilingWord { level: AtomicU8::new(0), word: PiWord::new() } }; CEILINGS_MAX];
        Self { word: PiWord::new(), abandoned: AtomicU64::new(0), ceilings }
    }

    pub(super) fn get(cpu: usize) -> Option<&'static Self> {
        CPUS.get(cpu)
    }

    /// Locks the word. Returns whether another thread owned it.
    #[inline]
    fn lock(&self, me: Tid) -> Result<bool, PiError> {
        let locked = self.word.lock_or_inherit(me)?;
        if locked == Locked::Inherited {
            self.note_abandoned();
        }
        Ok(locked != Locked::Free)
    }

    /// Returns the word for a ceiling, or `None` if all words of the processor are used for other ceilings.
    ///
    /// BOUND: CEILINGS_MAX.
    fn ceiling(&self, level: u8) -> Option<&CeilingWord> {
        let is_for = |ceiling: &&CeilingWord| match ceiling.level.load(Ordering::Relaxed) {
            // ORDERING: Relaxed, here and in `above`: the level alone matters, and never changes again.
            0 => match ceiling.level.compare_exchange(0, level, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(other) => other == level,
            },
            other => other == level,
        };
        self.ceilings.iter().find(is_for)
    }

    /// Returns the words of the ceilings that hold off a thread of this level.
    pub(super) fn above(&self, level: u8) -> impl Iterator<Item = &PiWord> {
        let used = self.ceilings.iter().map(|ceiling| (ceiling.level.load(Ordering::Relaxed), &ceiling.word));
        used.take_while(|&(ceiling, _)| ceiling != 0)
            .filter(move |&(ceiling, _)| ceiling >= level)
            .map(|(_, word)| word)
    }

    /// Ends a section that `me` did not leave, if there is one.
    fn mend(&self, me: Tid) {
        if self.word.is_owned_by(me) {
            self.note_abandoned();
            // A thread that finds an ended owner in the word takes the word over.
            let _ = self.word.unlock(me);
        }
    }

    fn note_abandoned(&self) {
        // ORDERING: Relaxed: a statistic.
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the thread's section with the thread, if both guard and handle were forgotten.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some((cpu, _)) = PLACE.take() {
            cpu.mend(gettid());
        }
    }
}

/// Frees all words in a child process: its only thread is in no section, and the parent's threads do not exist there.
extern "C" fn forget_sections() {
    for cpu in &CPUS {
        cpu.word.reset();
        cpu.ceilings.iter().for_each(|ceiling| ceiling.word.reset());
    }
}

thread_local! {
    /// The processor on which the thread is managed, and its level. Locks read this, so it has no destructor: the C
    /// library allocates to register one.
    static PLACE: Cell<Option<(&'static Cpu, u8)>> = const { Cell::new(None) };
    static AT_END: AtEnd = const { AtEnd };
}

/// A handle that makes the calling thread a managed one: it may enter lazy sections of its processor, and checks for
/// other sections before it begins a job.
///
/// While a managed thread is inside, every other managed thread of its processor that checks waits, whatever its
/// priority, and lends its priority to the thread inside. No two managed threads of a processor are inside at once.
///
/// # What a managed thread does
///
/// - It checks whenever it continues after a suspension: at the release of each job ([`Lazy::sleep_until`] does that),
///   and when it resumes in mid-job, after I/O or a suspending lock ([`Lazy::look`]). A thread that does not check
///   preempts a section in progress, like an unmanaged thread. It still cannot enter a section of its own meanwhile:
///   [`Lazy::enter`] waits for the other one.
/// - It is under SCHED_FIFO. Under SCHED_RR or the ordinary policy, threads of one level preempt each other without a
///   release. A processor may have at most one managed thread under those.
/// - It stays on its processor. If it is bound elsewhere, by itself, by a cpuset, or because the processor goes
///   offline, it still checks the word of the old one.
/// - It does not suspend inside a section, nor while it holds a mutex with a ceiling.
/// - It keeps the level that it had when the handle was made. Make a new handle after you change it.
///
/// # What it costs
///
/// Two atomic operations for each section, and a load for each check. Each managed thread that is released meanwhile
/// delays the section by two switches (it wakes up, checks, and suspends). That also delays any thread that spins for a
/// lock held inside.
///
/// # What it cannot exclude
///
/// Threads that are not managed, and everything that [no section can exclude](super#what-no-kind-can-exclude).
///
/// # A thread that ends inside
///
/// Its section ends with the handle, or with the thread if the handle was forgotten. If the thread ended by the raw
/// system call, the next managed thread that checks or enters takes the word over. [`Lazy::abandoned`] counts all
/// these. (If a new thread was given the same id after such an end, before any thread checked, the others wait until
/// that thread ends.)
///
/// # A child of `fork`
///
/// It may use its copy of the handle, and shares the words only with threads of its own process. Do not fork inside a
/// section: leaving the child's copy of the section returns an error and does nothing else.
///
/// # Examples
/// ```no_run
/// use lockwright::section::Lazy;
/// use std::time::{Duration, Instant};
///
/// # let allowed = std::fs::read_to_string("/proc/self/status")?;
/// # let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
/// # let cpu = allowed.trim().split(['-', ',']).next().unwrap_or("0").parse()?;
/// let thread = Lazy::manage(cpu)?;
/// let mut release = Instant::now();
/// for _job in 0..3 {
///     release += Duration::from_millis(1);
///     thread.sleep_until(release)?;
///     // No managed thread of this processor is inside a section now.
///     let _section = thread.enter()?;
///     // No managed thread of this processor begins a job now.
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lazy {
    cpu: &'static Cpu,
    /// The thread's own level.
    level: u8,
    depth: Cell<u64>,
    /// Makes the handle neither `Send` nor `Sync`: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

impl Lazy {
    /// Binds the calling thread to a processor, by its Linux number, and waits for a section in progress there. The
    /// thread stays bound after the handle is dropped.
    ///
    /// # Errors
    /// [`SectionError::Deadline`] for a thread under SCHED_DEADLINE, [`SectionError::NoCpu`] if the thread cannot be
    /// bound, [`SectionError::SecondHandle`] if it is managed already, and those of [`Lazy::look`].
    pub fn manage(cpu: usize) -> Result<Self, SectionError> {
        let scheduling = sched::scheduling(ME).map_err(SectionError::Sys)?;
        if scheduling.is_deadline() {
            return Err(SectionError::Deadline);
        }
        let level = scheduling.level;
        let no_cpu = |error| SectionError::NoCpu { cpu, error };
        let unknown = SysError { call: "finding the CPU", errno: libc::EINVAL };
        let word = Cpu::get(cpu).ok_or(no_cpu(unknown))?;
        fork::in_child(forget_sections);
        // A thread whose thread-locals are gone is about to end.
        if AT_END.try_with(|_| {}).is_err() || PLACE.get().is_some() {
            return Err(SectionError::SecondHandle);
        }
        PLACE.set(Some((word, level)));
        // From here on, dropping the handle clears `PLACE`.
        let handle = Self { cpu: word, level, depth: Cell::new(0), here: PhantomData };
        sched::set_affinity(ME, &[cpu]).map_err(no_cpu)?;
        handle.look()?;
        Ok(handle)
    }

    /// Enters a section. If the thread is already inside one, that section lasts until all are left.
    ///
    /// # Errors
    /// [`SectionError::Deadlock`] if the thread inside waits for a lock that the caller holds;
    /// [`SectionError::OwnerDied`] if a thread ended inside and its heir could not execute; [`SectionError::Sys`] if
    /// the kernel refuses futexes with priority inheritance, or is short of memory. After an error the thread is not
    /// inside.
    ///
    /// # Bound
    /// A thread that checked after its last suspension finds no other thread inside. One that did not waits for the
    /// rest of one section, which executes at its priority. If less urgent threads were held off by an earlier section
    /// and have not executed since, each of them owns the word once in turn, at the cost of two switches.
    #[inline]
    pub fn enter(&self) -> Result<LazySection<'_>, SectionError> {
        if self.depth.get() == 0 {
            self.cpu.lock(gettid())?;
        }
        self.depth.set(self.depth.get() + 1);
        Ok(LazySection(self))
    }

    /// Waits while another managed thread of the processor is inside a section, or holds a mutex whose
    /// [ceiling](crate::mutex::MutexProtocol::Protect) is not below the caller's level, and lends it the caller's
    /// priority. Returns whether the caller had to wait.
    ///
    /// Returns at once inside a section of the caller's own.
    ///
    /// # Errors
    /// Those of [`Lazy::enter`].
    ///
    /// # Bound
    /// The rest of one section. More urgent threads begin further sections only in jobs that delay the caller anyway,
    /// and less urgent ones do not execute.
    #[inline]
    pub fn look(&self) -> Result<bool, SectionError> {
        let is_clear = self.cpu.word.is_free() && self.cpu.above(self.level).all(PiWord::is_free);
        if is_clear || self.depth.get() > 0 { Ok(false) } else { self.wait() }
    }

    #[cold]
    fn wait(&self) -> Result<bool, SectionError> {
        let me = gettid();
        let mut waited = false;
        if !self.cpu.word.is_free() {
            waited = self.cpu.lock(me)?;
            self.cpu.word.unlock(me)?;
        }
        for word in self.cpu.above(self.level).filter(|word| !word.is_free() && !word.is_owned_by(me)) {
            waited |= word.lock_or_inherit(me)? != Locked::Free;
            word.unlock(me)?;
        }
        Ok(waited)
    }

    /// Sleeps until the release of the next job, and then calls [`Lazy::look`]. Returns whether the caller had to wait
    /// after the release.
    ///
    /// # Errors
    /// [`SectionError::Inside`] inside a section, where a thread must not suspend; and those of [`Lazy::look`].
    ///
    /// # Bound
    /// Until the release, and then the bound of [`Lazy::look`].
    pub fn sleep_until(&self, release: Instant) -> Result<bool, SectionError> {
        if self.depth.get() > 0 {
            return Err(SectionError::Inside);
        }
        // BOUND: one more round for each time the thread was preempted between its two readings of the clock.
        loop {
            // In this order the sleep ends early, not late, if the thread is preempted in between.
            let now_ns = clock::now_ns();
            let left = release.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.look();
            }
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            clock::sleep_until(now_ns.saturating_add(left_ns)).map_err(SectionError::Sys)?;
        }
    }

    /// Returns how many sections of a processor were never left since the process began, because their thread ended or
    /// forgot them.
    #[must_use]
    pub fn abandoned(cpu: usize) -> u64 {
        // ORDERING: Relaxed: see `note_abandoned`.
        Cpu::get(cpu).map_or(0, |cpu| cpu.abandoned.load(Ordering::Relaxed))
    }

    #[inline]
    fn leave(&self) -> Result<(), SectionError> {
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() == 0 { Ok(self.cpu.word.unlock(gettid())?) } else { Ok(()) }
    }
}

impl Drop for Lazy {
    /// Ends a section that was forgotten.
    fn drop(&mut self) {
        self.cpu.mend(gettid());
        PLACE.set(None);
    }
}

/// A lazy section, which ends when this value is dropped, even during a panic.
///
/// The kernel has no reason to refuse the end of a section. If it does, [`LazySection::leave`] returns the error and
/// other threads keep waiting. The next check, section, or end of this thread then repairs it. A section that is
/// forgotten (`std::mem::forget`) ends with the handle.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct LazySection<'a>(&'a Lazy);

impl LazySection<'_> {
    /// Leaves the section like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`SectionError::Sys`] if the kernel refused; other threads then still wait.
    #[inline]
    pub fn leave(self) -> Result<(), SectionError> {
        let handle = self.0;
        std::mem::forget(self);
        handle.leave()
    }
}

impl Drop for LazySection<'_> {
    #[inline]
    fn drop(&mut self) {
        // A failure is repaired later: see above.
        let _ = self.0.leave();
    }
}

/// A ceiling as a managed thread uses it: a word of its processor.
#[derive(Clone, Copy)]
pub(crate) struct LazyCeiling(&'static CeilingWord);

impl LazyCeiling {
    /// Returns the word for a ceiling on the calling thread's processor, and the thread's own level. Returns `None` if
    /// the thread is not managed, or the processor has no word left.
    #[inline]
    pub(crate) fn of_caller(ceiling: u8) -> Option<(Self, u8)> {
        let (cpu, level) = PLACE.get()?;
        Some((Self(cpu.ceiling(ceiling)?), level))
    }

    pub(crate) fn level(self) -> u8 {
        // ORDERING: Relaxed: it never changes again.
        self.0.level.load(Ordering::Relaxed)
    }

    /// Marks the ceiling as held: from now on, threads that are not above it wait when they check.
    #[inline]
    pub(crate) fn rise(self) -> Result<(), PiError> {
        self.0.word.lock_or_inherit(gettid()).map(|_| ())
    }

    /// The same, unless another thread holds it. Returns whether it is marked.
    #[inline]
    pub(crate) fn try_rise(self) -> bool {
        self.0.word.try_lock(gettid())
    }

    /// Marks the ceiling as free.
    #[inline]
    pub(crate) fn fall(self) -> Result<(), PiError> {
        self.0.word.unlock(gettid())
    }
}

impl From<PiError> for SectionError {
    fn from(error: PiError) -> Self {
        match error {
            PiError::Deadlock => Self::Deadlock,
            PiError::OwnerDied => Self::OwnerDied,
            PiError::Sys(error) => Self::Sys(error),
        }
    }
}
