//! Lazy sections: those who come ask whether somebody is inside.
//!
//! Each processor has a word with an owner (see [`PiWord`] for its states): the id of the managed thread that is inside a section there.
//! To enter and to leave is one compare-and-swap each. A managed thread looks at the word when its job is released, and if
//! another thread is inside it locks the word by the kernel, which lends that thread its priority:
//!
//! ```text
//!   L, less urgent                     H, released meanwhile
//!   enter: 0 -> L
//!   ...            preempted by        wakes up, looks: L is inside
//!                                      locks the word: suspended, L inherits
//!   ...            at H's priority
//!   leave: L -> H, by the kernel
//!                                      H -> 0, begins its job
//! ```
//!
//! It is the non-preemptive section of LITMUS^RT on a stock kernel: there too a flag says that a thread is inside, and the
//! scheduler, which here are the threads themselves, looks at it at releases.
//!
//! The compare-and-swaps are those of std, which also hold where threads of one word execute on two processors: after
//! somebody bound a managed thread elsewhere, or took the processor offline. (On x86-64 a `cmpxchg` without its LOCK prefix would do as long
//! as nobody does that, and could lose a waiter for ever if somebody did. It was measured to be no faster.)

use super::error::SectionError;
use lockwright_sys::pi_word::{Locked, PiError, PiWord};
use lockwright_sys::sched::{self, ME, Tid, gettid};
use lockwright_sys::{SysError, clock, fork};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// Most processors that have a word.
const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;
/// Most ceilings of a processor that have a word; others rise the eager way.
pub(crate) const CEILINGS_MAX: usize = 8;

/// One for each processor, by its Linux number. Two libraries of one process meet here without knowing of each other, if they are linked
/// with one copy of this crate.
static CPUS: [Cpu; CPUS_MAX] = [const { Cpu::new() }; CPUS_MAX];

/// Aligned so that processors do not meet.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Cpu {
    /// Who is inside.
    pub(super) word: PiWord,
    /// Sections that were never left.
    abandoned: AtomicU64,
    /// Who holds a mutex of which ceiling; the first ones are in use.
    ceilings: [CeilingWord; CEILINGS_MAX],
}

/// As the word of a processor, for one ceiling: threads above it need not look.
#[derive(Debug)]
struct CeilingWord {
    /// 0 while nobody has used it.
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

    /// Takes the word. Says whether another had it.
    #[inline]
    fn lock(&self, me: Tid) -> Result<bool, PiError> {
        let locked = self.word.lock_or_inherit(me)?;
        if locked == Locked::Inherited {
            self.note_abandoned();
        }
        Ok(locked != Locked::Free)
    }

    /// The word for a ceiling; `None` where the processor has as many others already.
    ///
    /// BOUND: CEILINGS_MAX.
    fn ceiling(&self, level: u8) -> Option<&CeilingWord> {
        let is_for = |ceiling: &&CeilingWord| match ceiling.level.load(Ordering::Relaxed) {
            // ORDERING: Relaxed, here and in `above`: the level alone is meant, and never changes again.
            0 => match ceiling.level.compare_exchange(0, level, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(other) => other == level,
            },
            other => other == level,
        };
        self.ceilings.iter().find(is_for)
    }

    /// The words of ceilings that a thread of this level must not come between.
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
            // Who finds the word in the name of a thread that ended inherits it.
            let _ = self.word.unlock(me);
        }
    }

    fn note_abandoned(&self) {
        // ORDERING: Relaxed: a count, for people.
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the thread's section with the thread, where both guard and handle were forgotten.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some((cpu, _)) = PLACE.take() {
            cpu.mend(gettid());
        }
    }
}

/// In a child process: its one thread is in no section, and those of the parent's threads are not its.
extern "C" fn forget_sections() {
    for cpu in &CPUS {
        cpu.word.reset();
        cpu.ceilings.iter().for_each(|ceiling| ceiling.word.reset());
    }
}

thread_local! {
    /// Where the thread is managed, and its level. Read by locks, so it has no end of its own: the C library allocates for those.
    static PLACE: Cell<Option<(&'static Cpu, u8)>> = const { Cell::new(None) };
    static AT_END: AtEnd = const { AtEnd };
}

/// The calling thread as a managed one: it may enter lazy sections of its processor, and looks before it begins a job.
///
/// While a managed thread is inside, every other managed thread of its processor that looks waits, whatever its priority, and
/// lends the one inside its own. No two managed threads of a processor are inside at once.
///
/// # What a managed thread does
///
/// - It looks whenever it goes on after it was suspended: at the release of each job ([`Lazy::sleep_until`] does that), and when
///   it resumes in mid-job, after I/O or a lock that suspends ([`Lazy::look`]). A thread that does not preempts the section it comes
///   upon, as an unmanaged thread does. It cannot enter one of its own beside it: [`Lazy::enter`] waits for that.
/// - It is under SCHED_FIFO. Under SCHED_RR, or the ordinary policy, threads of one level preempt each other without a release: of such
///   threads a processor may have one managed.
/// - It stays on its processor. Bound elsewhere, by itself, a cpuset, or the end of the processor, it still looks at the word of the old one.
/// - It does not suspend inside a section, nor with a mutex that protects.
/// - It keeps the level it had when the handle was made. Make a new handle after you change it.
///
/// # What it costs
///
/// Two atomic operations a section, a load a look. Each managed thread released meanwhile delays the section by two switches (it wakes
/// up, looks, and suspends), and so whoever spins for a lock that is held inside.
///
/// # What it cannot exclude
///
/// Threads that are not managed, and all that [no section can exclude](super#what-neither-kind-can-exclude).
///
/// # A thread that ends inside
///
/// Its section ends with the handle, or with the thread where that was forgotten. After an end without warning, by the system
/// call itself, the next managed thread that looks or enters takes the word over. [`Lazy::abandoned`] counts all these. (If after such an
/// end the same thread id was given to a new thread before anybody looked, they wait until that one ends.)
///
/// # A child of `fork`
///
/// It may use the handle it has a copy of, and meets nobody but threads of its own process. Do not fork inside a section: the child's
/// copy of it is left with an error, and nothing else.
///
/// # Examples
/// ```
/// use lockwright::section::Lazy;
/// use std::time::{Duration, Instant};
///
/// # let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
/// # let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
/// # let cpu = allowed.trim().split(['-', ',']).next().unwrap().parse().unwrap();
/// let thread = Lazy::manage(cpu)?;
/// let mut release = Instant::now();
/// for _job in 0..3 {
///     release += Duration::from_millis(1);
///     thread.sleep_until(release)?;
///     // No managed thread of this processor is inside a section now.
///     let _section = thread.enter()?;
///     // No managed thread of this processor begins a job now.
/// }
/// # Ok::<(), lockwright::section::SectionError>(())
/// ```
#[derive(Debug)]
pub struct Lazy {
    cpu: &'static Cpu,
    /// The thread's own.
    level: u8,
    depth: Cell<u64>,
    /// Neither `Send` nor `Sync`: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

impl Lazy {
    /// Binds the calling thread to a processor, by its Linux number, and looks. The thread stays bound when the handle is gone.
    ///
    /// # Errors
    /// [`SectionError::Deadline`] for a thread under SCHED_DEADLINE, [`SectionError::NoCpu`] where the thread cannot be bound,
    /// [`SectionError::SecondHandle`] where it is managed already, and
    /// those of [`Lazy::look`].
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
        // From here on its drop gives the place back.
        let handle = Self { cpu: word, level, depth: Cell::new(0), here: PhantomData };
        sched::set_affinity(ME, &[cpu]).map_err(no_cpu)?;
        handle.look()?;
        Ok(handle)
    }

    /// Enters a section, unless the thread is inside already: then that one lasts until all are left.
    ///
    /// # Errors
    /// [`SectionError::Deadlock`] where the thread inside waits for a lock the caller holds; [`SectionError::OwnerDied`] where a thread ended
    /// inside and its heir is kept from executing; [`SectionError::Sys`] where the kernel refuses futexes with priority
    /// inheritance, or is short of memory. The thread is not inside then.
    ///
    /// # Bound
    /// A thread that looked when it was last suspended finds nobody inside. One that did not waits for the rest of one section, which
    /// executes at its priority. Where less urgent threads were kept from their jobs by an earlier section and have not executed
    /// since, the word passes through their hands: two switches for each of them, once.
    #[inline]
    pub fn enter(&self) -> Result<LazySection<'_>, SectionError> {
        if self.depth.get() == 0 {
            self.cpu.lock(gettid())?;
        }
        self.depth.set(self.depth.get() + 1);
        Ok(LazySection(self))
    }

    /// Waits while another managed thread of the processor is inside a section, or holds a mutex of a
    /// [ceiling](crate::mutex::Protocol::Protect) that is not below the caller's level, and lends it the caller's priority. Says whether it had to.
    ///
    /// Inside a section of its own there is nothing to wait for.
    ///
    /// # Errors
    /// Those of [`Lazy::enter`].
    ///
    /// # Bound
    /// The rest of one section: more urgent threads do not begin theirs meanwhile but in jobs that delay the caller anyway, and less
    /// urgent ones do not execute.
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

    /// Sleeps until the release of the next job, and looks. Says whether it had to wait after the release.
    ///
    /// # Errors
    /// [`SectionError::Inside`] inside a section, where a thread must not suspend; and those of [`Lazy::look`].
    ///
    /// # Bound
    /// The release, then that of [`Lazy::look`].
    pub fn sleep_until(&self, release: Instant) -> Result<bool, SectionError> {
        if self.depth.get() > 0 {
            return Err(SectionError::Inside);
        }
        // BOUND: a round more for each time the thread was preempted between its two looks at the clock.
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

    /// How many sections of a processor were never left, because their thread ended or forgot them, since the process began.
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

/// Inside a lazy section, until dropped; in a panic too.
///
/// The kernel has no reason to refuse the end of a section. If it does, [`LazySection::leave`] says so, others wait, and the thread's next
/// look, section, or end mends it. A section that is forgotten (`std::mem::forget`) ends with the handle.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct LazySection<'a>(&'a Lazy);

impl LazySection<'_> {
    /// As dropping it, and says whether it succeeded.
    ///
    /// # Errors
    /// [`SectionError::Sys`] where the kernel refused; others still wait then.
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
        // Mended later: see above.
        let _ = self.0.leave();
    }
}

/// What a ceiling is, to a managed thread: a word of its processor.
#[derive(Clone, Copy)]
pub(crate) struct LazyCeiling(&'static CeilingWord);

impl LazyCeiling {
    /// Of the calling thread, with its own level; `None` where it is not managed, or the processor has no word left.
    #[inline]
    pub(crate) fn of_caller(ceiling: u8) -> Option<(Self, u8)> {
        let (cpu, level) = PLACE.get()?;
        Some((Self(cpu.ceiling(ceiling)?), level))
    }

    pub(crate) fn level(self) -> u8 {
        // ORDERING: Relaxed: it never changes again.
        self.0.level.load(Ordering::Relaxed)
    }

    /// From now on threads that are not above the ceiling wait when they look.
    #[inline]
    pub(crate) fn rise(self) -> Result<(), PiError> {
        self.0.word.lock_or_inherit(gettid()).map(|_| ())
    }

    /// No more.
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
