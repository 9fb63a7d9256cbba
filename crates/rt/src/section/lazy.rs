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

use super::SectionError;
use crate::pi_word::{Locked, PiError, PiWord};
use crate::sys::sched::{self, ME, Tid, gettid};
use crate::sys::{SysError, clock, fork};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Most processors that have a word.
const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

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
}

impl Cpu {
    const fn new() -> Self {
        Self { word: PiWord::new(), abandoned: AtomicU64::new(0) }
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

/// Where the thread is managed. Ends its section with the thread, where both guard and handle were forgotten.
struct Place(Cell<Option<&'static Cpu>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(cpu) = self.0.get() {
            cpu.mend(gettid());
        }
    }
}

/// In a child process: its one thread is in no section, and those of the parent's threads are not its.
extern "C" fn forget_sections() {
    for cpu in &CPUS {
        cpu.word.reset();
    }
}

thread_local! {
    static PLACE: Place = const { Place(Cell::new(None)) };
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
/// - It does not suspend inside a section.
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
        if sched::scheduling(ME).map_err(SectionError::Sys)?.is_deadline() {
            return Err(SectionError::Deadline);
        }
        let no_cpu = |error| SectionError::NoCpu { cpu, error };
        let unknown = SysError { call: "finding the CPU", errno: libc::EINVAL };
        let word = Cpu::get(cpu).ok_or(no_cpu(unknown))?;
        static FORGET: Once = Once::new();
        FORGET.call_once(|| fork::in_child(forget_sections));
        // A thread whose thread-locals are gone is about to end.
        let is_first = PLACE.try_with(|place| match place.0.get() {
            None => place.0.replace(Some(word)).is_none(),
            Some(_) => false,
        });
        if !is_first.unwrap_or(false) {
            return Err(SectionError::SecondHandle);
        }
        // From here on its drop gives the place back.
        let handle = Self { cpu: word, depth: Cell::new(0), here: PhantomData };
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

    /// Waits while another managed thread of the processor is inside a section, and lends it the caller's priority. Says whether it had to.
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
        if self.cpu.word.is_free() || self.depth.get() > 0 { Ok(false) } else { self.wait() }
    }

    #[cold]
    fn wait(&self) -> Result<bool, SectionError> {
        let waited = self.cpu.lock(gettid())?;
        self.cpu.word.unlock(gettid())?;
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
        // Where thread-locals are gone already, the thread is managed no more.
        let _ = PLACE.try_with(|place| place.0.set(None));
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

impl From<PiError> for SectionError {
    fn from(error: PiError) -> Self {
        match error {
            PiError::Deadlock => Self::Deadlock,
            PiError::OwnerDied => Self::OwnerDied,
            PiError::Sys(error) => Self::Sys(error),
        }
    }
}
