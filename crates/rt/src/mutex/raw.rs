//! The mutex all doors share: its layout, its fast path, and its ways through the kernel.
//!
//! | protocol | waiting | what the kernel does | what is done here |
//! |---|---|---|---|
//! | none | `FUTEX_WAIT`, the most urgent first | keeps the queue | the word; unlock modes |
//! | inherit | `FUTEX_LOCK_PI2` | queue, order, inheritance along chains, hand-off, deadlock | the word without contention |
//! | protect | as none | as none | the ceiling, see `ceiling` |
//!
//! A robust one is linked into the list that the C library registered (`sys::robust`), so the kernel marks its word when the owner ends.
//!
//! The layout is that of the C library's mutex (glibc, 64 bits), field by field, and zeros are a free one: a static initialiser of C is
//! one of ours, and code of the C library that meets one of ours locks and unlocks it, too.

use super::ceiling;
use super::cycle::{self, Cycle};
use super::word::{self, Ask, DIED, FREE, GiveBack, HANDED, WAITERS, owner};
use lockwright_sys::block::block;
use lockwright_sys::futex::{self, Clock, Deadline, Ended, Scope};
use lockwright_sys::robust::{List, Node};
use lockwright_sys::sched::{Tid, gettid};
use lockwright_sys::{KeepErrno, SysError, clock, held};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// What kind of mutex it is: bits. The first two are a type.
pub mod kind {
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

    /// Whether only its owner can give it back.
    pub(in crate::mutex) fn asks_who_has_it(kind: u32) -> bool {
        kind & (ROBUST | INHERIT | PROTECT) != 0 || matches!(kind & TYPE, RECURSIVE | ERROR_CHECK)
    }
}
use kind::*;

/// Those that need more than an exchange of the word.
const SLOW: u32 = ROBUST | PROTECT | KERNEL_OWNED;

/// `owner` field of a robust one whose last owner ended, and that is not made consistent yet; and of one that never will be.
const INCONSISTENT: u32 = 0x7fff_ffff;
const NOT_RECOVERABLE: u32 = 0x7fff_fffe;

/// How often the kernel may answer "try again" before that counts as an error.
const ATTEMPTS_MAX: u32 = 1_000;
/// Of processes: how long the waiter that was handed a mutex may take before it counts as dead, and the mutex as handed to whoever finds that: in
/// ticks since the first who found it so, whoever that was. 50 to 67 ms.
const HANDED_TICKS: u8 = 4;
const TICK_NS: u64 = 1 << 24;

/// A mutex, as memory. Never move it while anybody uses it.
#[repr(C)]
pub struct RawMutex {
    word: AtomicU32,
    /// How often its owner took it again.
    depth: AtomicU32,
    /// The states of a robust one; otherwise not used.
    state: AtomicU32,
    /// Threads that gave it back to wait for a condition, and will ask for it again.
    away: AtomicU32,
    kind: AtomicU32,
    /// Real-time threads that wait, where that is asked for.
    urgent: AtomicU16,
    ceiling: AtomicU8,
    /// Tick at which somebody found it handed to another; 0 where nobody did.
    handed_at: AtomicU8,
    node: Node,
}

// SAFETY: all but the node are atomics; the node is touched only by the thread that holds the mutex, or is about to.
unsafe impl Sync for RawMutex {}
// SAFETY: as above; a free one is in no list.
unsafe impl Send for RawMutex {}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex").field("word", &self.word).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// How long to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Until the mutex comes.
    Never,
    /// Until then.
    At(Deadline),
    /// Not at all.
    Now,
}

/// How a mutex came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// As it should.
    Clean,
    /// The owner before ended while it held the mutex: what it protects may be half done.
    OwnerDied,
}

/// Why a mutex did not come, or could not be given back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RawError {
    /// Somebody has it.
    Busy,
    /// The time has come.
    TimedOut,
    /// The caller would wait for itself; along this cycle, where it is known.
    Deadlock(Option<Box<Cycle>>),
    /// An owner died, and the next one gave back without making it consistent.
    NotRecoverable,
    /// The caller is more urgent than the ceiling.
    AboveCeiling,
    /// The caller does not have it.
    NotOwner,
    /// Its owner took it too often.
    TooOften,
    /// Not a kind that can be.
    BadKind,
    /// The kernel refused.
    Sys(SysError),
}

impl RawMutex {
    /// A free one of this kind; `ceiling` is a level of SCHED_FIFO, for those that protect.
    ///
    /// # Safety
    /// A [robust](kind::ROBUST) one stays where it is, and what it is, while a thread has it, also one that forgot to give it back or ended with it: the
    /// kernel and the thread's other robust mutexes know its address.
    #[must_use]
    pub const unsafe fn new(kind: u32, ceiling: u8) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            depth: AtomicU32::new(0),
            state: AtomicU32::new(0),
            away: AtomicU32::new(0),
            kind: AtomicU32::new(kind),
            urgent: AtomicU16::new(0),
            ceiling: AtomicU8::new(ceiling),
            handed_at: AtomicU8::new(0),
            node: Node::new(),
        }
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> u32 {
        // ORDERING: Relaxed: set before anybody else knows the mutex.
        self.kind.load(Ordering::Relaxed)
    }

    /// Adds to what it is, for one that others initialised: before anybody takes it. Says whether it was still of kind `before`.
    ///
    /// # Safety
    /// That of [`RawMutex::new`], for what it becomes.
    pub unsafe fn add_to_kind(&self, before: u32, more: u32) -> bool {
        // ORDERING: Relaxed: of those who ask first one changes it, and all see that, for it is one word.
        self.kind.compare_exchange(before, before | more, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether it survives its owners.
    pub fn is_robust(&self) -> bool {
        self.kind() & ROBUST != 0
    }

    /// Whether nobody has it, waits for it, or ended with it.
    pub fn is_free(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        self.word.load(Ordering::Relaxed) == FREE
    }

    /// Whether somebody has it, waits for it, or will after a wait for a condition.
    pub fn is_in_use(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        !self.is_free() || self.away.load(Ordering::Relaxed) > 0
    }

    /// The caller, which has it, gives it back to wait for a condition.
    pub(super) fn go_away(&self) {
        // ORDERING: Relaxed, here and below: only counted.
        self.away.fetch_add(1, Ordering::Relaxed);
    }

    /// It has come back.
    pub(super) fn come_back(&self) {
        self.away.fetch_sub(1, Ordering::Relaxed);
    }

    /// In a child process: what `thread` of the parent had is the caller's, which came from it. Says whether it had this.
    ///
    /// For those that are neither robust nor protect, of this process alone.
    pub fn take_over(&self, thread: u32) -> bool {
        // ORDERING: Relaxed: nobody else in this process knows of it as taken.
        let word = self.word.load(Ordering::Relaxed);
        // The parent's threads wait in the parent.
        thread != 0
            && owner(word) == thread
            && self.word.compare_exchange(word, gettid().0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whose it is; 0 where nobody's.
    pub fn owner(&self) -> u32 {
        // ORDERING: Relaxed: only looked at.
        owner(self.word.load(Ordering::Relaxed))
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// The address of a word: the mutex may be gone.
    pub(crate) fn word_of(mutex: *const Self) -> *const AtomicU32 {
        mutex.wrapping_byte_add(std::mem::offset_of!(Self, word)).cast()
    }

    /// The kernel wakes who waits for a dead owner, and does that as if all processes could wait. Where it inherits it knows its waiters.
    pub(crate) fn scope(kind: u32) -> Scope {
        let is_woken_by_death = kind & (ROBUST | INHERIT) == ROBUST;
        if kind & SHARED == 0 && !is_woken_by_death { Scope::Private } else { Scope::Shared }
    }

    /// The level of a ceiling.
    pub fn ceiling(&self) -> u8 {
        // ORDERING: Relaxed: changed by the owner only.
        self.ceiling.load(Ordering::Relaxed)
    }

    /// Another ceiling, a level of SCHED_FIFO, for those that protect. Says which it had. Who does not have the mutex takes it for that, whatever
    /// its own level is; of one whose owner ended, the next who locks it is told so.
    ///
    /// # Errors
    /// [`RawError::BadKind`] where it does not protect, or for what is no level; [`RawError::AboveCeiling`] where the caller has the mutex and
    /// is more urgent than the new ceiling; those of [`RawMutex::lock`]. The ceiling is as it was then.
    ///
    /// # Bound
    /// That of [`RawMutex::lock`].
    pub fn set_ceiling(&self, ceiling: u8) -> Result<u8, RawError> {
        let (me, kind) = (gettid(), self.kind());
        if kind & PROTECT == 0 || !ceiling::is_level(ceiling) {
            return Err(RawError::BadKind);
        }
        // ORDERING: Relaxed, here and below: the mutex orders it.
        if self.owner() == me.0 {
            // It falls by the ceiling that it finds when it gives back: it must have risen by that one.
            ceiling::rise(ceiling)?;
            let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
            ceiling::fall(before);
            return Ok(before);
        }
        let acquired = self.take(me, kind, Limit::Never)?;
        let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
        self.pass_on(me, kind, acquired)?;
        Ok(before)
    }

    /// Takes the mutex.
    ///
    /// # Errors
    /// See [`RawError`].
    ///
    /// # Bound
    /// Without contention one exchange of the word, where the kind has no more to do. Otherwise `limit`, and until those before give back.
    #[inline]
    pub fn lock(&self, limit: Limit) -> Result<Acquired, RawError> {
        if self.take_simply() { Ok(Acquired::Clean) } else { self.lock_slow(limit) }
    }

    /// Takes it if it is free and healthy, and its kind lets that be done here. Says whether it came; where not, [`RawMutex::lock`] knows why.
    ///
    /// An exchange of the word waits for all stores before it, also those of a call and of the registers saved for one. So this is inlined, and
    /// whatever is called is called last.
    #[inline(always)]
    pub fn take_simply(&self) -> bool {
        let kind = self.kind();
        match block() {
            Some(block) if kind & SLOW == 0 => self.take_plain(Tid(block.tid()), kind),
            Some(block) if kind & SLOW == ROBUST => self.take_linked(List::of(block), Tid(block.tid()), kind),
            _ => self.take_simply_asking(kind),
        }
    }

    /// With calls for what is not at hand.
    #[inline(never)]
    fn take_simply_asking(&self, kind: u32) -> bool {
        match kind & SLOW {
            0 => self.take_plain(gettid(), kind),
            ROBUST => List::of_this_thread().is_ok_and(|list| self.take_linked(list, gettid(), kind)),
            PROTECT => self.take_risen(gettid()),
            _ => false,
        }
    }

    #[inline(always)]
    fn take_free(&self, me: Tid) -> bool {
        // ORDERING: Acquire pairs with the Release of the unlock.
        self.word.compare_exchange(FREE, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes one of those that nothing else is done for, if it is free. What inherits is counted.
    #[inline(always)]
    fn take_plain(&self, me: Tid, kind: u32) -> bool {
        let is_taken = self.take_free(me);
        if is_taken && kind & INHERIT != 0 {
            held::took_one();
        }
        is_taken
    }

    /// The other way.
    #[inline(always)]
    fn give_plain_back(&self, me: Tid, kind: u32) -> bool {
        let is_given = self.is_taken_once(kind) && self.free(me);
        if is_given && kind & INHERIT != 0 {
            held::gave_one_back();
        }
        is_given
    }

    /// Takes one that protects and is free. Says whether it was.
    #[inline(never)]
    fn take_risen(&self, me: Tid) -> bool {
        let ceiling = self.ceiling();
        // ORDERING: Relaxed: only whether it is worth to rise. Why it could not, the other way finds, too.
        if self.word.load(Ordering::Relaxed) != FREE || ceiling::rise(ceiling).is_err() {
            return false;
        }
        if !self.take_free(me) {
            ceiling::fall(ceiling);
            return false;
        }
        // Changed meanwhile, it is asked for anew.
        let is_risen = self.ceiling() == ceiling;
        if !is_risen {
            // One that is just taken, and not robust, is given back as it was.
            let _ = self.give_word_back(me, self.kind());
            ceiling::fall(ceiling);
        }
        is_risen
    }

    /// Gives back one that protects and nobody waits for. Says whether it was.
    #[inline(never)]
    fn give_back_and_fall(&self, me: Tid, kind: u32) -> bool {
        // Read before the mutex is another's.
        let ceiling = self.ceiling();
        let given = self.is_taken_once(kind) && self.free(me);
        if given {
            ceiling::fall(ceiling);
        }
        given
    }

    /// Takes and links a robust one that is free and healthy. Says whether it was.
    #[inline(always)]
    fn take_linked(&self, list: List, me: Tid, kind: u32) -> bool {
        let inherits = kind & INHERIT != 0;
        list.begin(&self.node, inherits);
        if !self.take_free(me) {
            list.end();
            return false;
        }
        // ORDERING: Relaxed: the mutex orders it.
        if self.state.load(Ordering::Relaxed) != 0 {
            return self.refuse_lost(list, me, kind);
        }
        list.insert(&self.node, inherits);
        list.end();
        true
    }

    /// One that is lost is given back at once: the other way finds that, too.
    #[cold]
    fn refuse_lost(&self, list: List, me: Tid, kind: u32) -> bool {
        let _ = self.give_word_back(me, kind);
        list.end();
        false
    }

    /// Gives back a robust one that is [simply had](Self::is_simply_had), taken out of the list by `unlink`. Says whether it did.
    #[inline(always)]
    fn give_linked_back(&self, list: List, me: Tid, kind: u32, unlink: impl FnOnce(List)) -> bool {
        list.begin(&self.node, kind & INHERIT != 0);
        unlink(list);
        if !self.free(me) {
            return self.give_waited_back(list, me, kind);
        }
        list.end();
        true
    }

    /// Whether it is the caller's, taken once, and nobody waited for it then.
    #[inline(always)]
    fn is_simply_had(&self, me: Tid, kind: u32) -> bool {
        // ORDERING: Relaxed: who reads its own id there wrote it, and the state is the owner's.
        self.word.load(Ordering::Relaxed) == me.0 && self.state.load(Ordering::Relaxed) == 0 && self.is_taken_once(kind)
    }

    /// Somebody has come to wait meanwhile.
    #[cold]
    fn give_waited_back(&self, list: List, me: Tid, kind: u32) -> bool {
        let given = self.give_unlinked_back(list, me, kind).is_ok();
        list.end();
        given
    }

    /// Gives the word back of one that was taken out of the list; where that is refused it is in there again.
    fn give_unlinked_back(&self, list: List, me: Tid, kind: u32) -> Result<(), RawError> {
        self.give_word_back(me, kind).inspect_err(|_| list.insert(&self.node, kind & INHERIT != 0))
    }

    #[cold]
    fn lock_slow(&self, limit: Limit) -> Result<Acquired, RawError> {
        let _errno = KeepErrno::now();
        let (me, kind) = (gettid(), self.kind());
        // ORDERING: Relaxed: who reads its own id there wrote it.
        if owner(self.word.load(Ordering::Relaxed)) == me.0 {
            match (kind & TYPE, limit) {
                (RECURSIVE, _) => return self.lock_again(),
                (_, Limit::Now) => return Err(RawError::Busy),
                (ERROR_CHECK, _) => {
                    return Err(RawError::Deadlock((kind & CHECKED != 0).then(|| Cycle::of_one(me, self))));
                }
                _ => {}
            }
        }
        if kind & PROTECT == 0 {
            return self.take(me, kind, limit);
        }
        self.take_above(me, kind, || self.take(me, kind, limit))
    }

    /// Takes one that protects by `take`, risen to its ceiling: to that of the moment it was taken, for its owner may change it meanwhile.
    fn take_above(
        &self,
        me: Tid,
        kind: u32,
        take: impl FnOnce() -> Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let risen = self.ceiling();
        ceiling::rise(risen)?;
        let taken = take();
        let now = self.ceiling();
        let taken = match taken {
            Ok(acquired) if now != risen => {
                let settled = ceiling::rise(now);
                if settled.is_err() {
                    self.pass_on(me, kind, acquired)?;
                } else {
                    ceiling::fall(risen);
                }
                return settled.map(|()| acquired).inspect_err(|_| ceiling::fall(risen));
            }
            taken => taken,
        };
        taken.inspect_err(|_| ceiling::fall(risen))
    }

    /// Gives back what was taken just now and cannot be kept, as it came.
    fn pass_on(&self, me: Tid, kind: u32, acquired: Acquired) -> Result<(), RawError> {
        match acquired {
            Acquired::Clean => self.give_back_taken(me, kind),
            Acquired::OwnerDied => self.give_back_dead(kind),
        }
    }

    fn lock_again(&self) -> Result<Acquired, RawError> {
        // ORDERING: Relaxed, here and below: only the owner reads and writes it.
        let depth = self.depth.load(Ordering::Relaxed).checked_add(1).ok_or(RawError::TooOften)?;
        self.depth.store(depth, Ordering::Relaxed);
        Ok(Acquired::Clean)
    }

    fn take(&self, me: Tid, kind: u32, limit: Limit) -> Result<Acquired, RawError> {
        self.take_by(me, kind, || match kind & INHERIT {
            0 => self.take_word(me, kind, limit, None),
            _ => self.take_inheriting(me, kind, limit),
        })
    }

    /// Takes the word by `take`, and links a robust one.
    fn take_by(
        &self,
        me: Tid,
        kind: u32,
        take: impl FnOnce() -> Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let inherits = kind & INHERIT != 0;
        let list = if kind & ROBUST == 0 { None } else { Some(List::of_this_thread().map_err(RawError::Sys)?) };
        if let Some(list) = list {
            list.begin(&self.node, inherits);
        }
        let mut taken = take();
        if let (Some(list), Ok(acquired)) = (list, &taken) {
            // ORDERING: Relaxed, here and below: the mutex orders its state.
            if self.state.load(Ordering::Relaxed) == NOT_RECOVERABLE {
                taken = self.give_word_back(me, kind).and(Err(RawError::NotRecoverable));
            } else {
                if *acquired == Acquired::OwnerDied {
                    self.depth.store(0, Ordering::Relaxed);
                    self.state.store(INCONSISTENT, Ordering::Relaxed);
                }
                list.insert(&self.node, inherits);
            }
        }
        match list {
            Some(list) => list.end(),
            None if inherits && taken.is_ok() => held::took_one(),
            None => {}
        }
        taken
    }

    /// `waited`: the caller waited for it already, and whether it was woken.
    fn take_word(&self, me: Tid, kind: u32, limit: Limit, waited: Option<bool>) -> Result<Acquired, RawError> {
        let (mut has_waited, mut was_woken) = (waited.is_some(), waited == Some(true));
        let mut urgent = None;
        let mut published = None;
        // BOUND: each round the word changed, a signal came, or a wait ended; until those before give back.
        loop {
            let word = self.word.load(Ordering::Relaxed);
            let is_left = word == HANDED && Self::scope(kind) == Scope::Shared && self.is_heir_late();
            match word::ask(word, me.0, has_waited, was_woken || is_left) {
                Ask::Take { word: taken, died } => {
                    // ORDERING: Acquire pairs with the Release of who gave back.
                    if self.word.compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return Ok(if died { Acquired::OwnerDied } else { Acquired::Clean });
                    }
                }
                _ if limit == Limit::Now => return Err(RawError::Busy),
                Ask::Announce(announced) => {
                    // Somebody has it: what is handed over from now on is not handed to who was woken before.
                    was_woken = false;
                    // ORDERING: Relaxed: it publishes nothing.
                    let _ = self.word.compare_exchange(word, announced, Ordering::Relaxed, Ordering::Relaxed);
                }
                Ask::Wait => {
                    if kind & CHECKED != 0 && published.is_none() {
                        published = Some(cycle::publish(me, self).map_err(RawError::Deadlock)?);
                    }
                    if kind & (AUTO | ROBUST) == AUTO && urgent.is_none() {
                        urgent = Some(Urgent::count(&self.urgent));
                    }
                    was_woken = self.wait(kind, word, limit)?;
                    has_waited = true;
                }
            }
        }
    }

    /// Of a mutex that was handed over: whether whom it belongs to did not take it for so long that it will not.
    ///
    /// Attempts of any length count together, so who only tries gets it, too: but for one whose attempts are 255 ticks (4.3 s) apart, or a multiple.
    /// A mark that outlasts a hand-over can only make an heir's turn another's, which it sees by the word.
    #[cold]
    fn is_heir_late(&self) -> bool {
        let tick = (clock::now_ns() / TICK_NS % 255) as u8 + 1;
        // ORDERING: Acquire pairs with the Release of the hand-over, which clears the mark.
        if self.word.load(Ordering::Acquire) != HANDED {
            return false;
        }
        // ORDERING: Relaxed: a time, and nothing else.
        match self.handed_at.compare_exchange(0, tick, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(first) if tick >= first => tick - first >= HANDED_TICKS,
            Err(first) => tick + (255 - first) >= HANDED_TICKS,
        }
    }

    /// Says whether it was woken.
    fn wait(&self, kind: u32, word: u32, limit: Limit) -> Result<bool, RawError> {
        let scope = Self::scope(kind);
        let until = match limit {
            Limit::At(until) => Some(until),
            _ => None,
        };
        if scope == Scope::Shared && word == HANDED {
            let grace_ns = u64::from(HANDED_TICKS) * TICK_NS;
            if until.is_none_or(|until| grace_ns < until.left_ns()) {
                let grace = Deadline { clock: Clock::Monotonic, at_ns: clock::now_ns() + grace_ns };
                return match futex::wait_in(scope, &self.word, word, Some(grace)) {
                    // Who was woken has ended since, perhaps: the next look says it.
                    Ended::TimedOut => Ok(false),
                    ended => Self::woken(ended),
                };
            }
        }
        Self::woken(futex::wait_in(scope, &self.word, word, until))
    }

    fn woken(ended: Ended) -> Result<bool, RawError> {
        match ended {
            Ended::Woken => Ok(true),
            Ended::Changed | Ended::Interrupted => Ok(false),
            Ended::TimedOut => Err(RawError::TimedOut),
            Ended::Refused(errno) => Err(RawError::Sys(SysError { call: "futex wait", errno })),
        }
    }

    fn take_inheriting(&self, me: Tid, kind: u32, limit: Limit) -> Result<Acquired, RawError> {
        // ORDERING: Acquire pairs with the Release of the unlock; the kernel's own path is a full barrier.
        if kind & KERNEL_OWNED == 0
            && self.word.compare_exchange(FREE, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Ok(Acquired::Clean);
        }
        // ORDERING: Relaxed: only looked at.
        let word = self.word.load(Ordering::Relaxed);
        // The kernel would let a more urgent try come before the waiter it named already, and its owner would have to ask the kernel.
        if limit == Limit::Now && owner(word) != 0 && word & DIED == 0 {
            return Err(RawError::Busy);
        }
        let _published = match (limit, kind & CHECKED) {
            (Limit::Now, _) | (_, 0) => None,
            _ => Some(cycle::publish(me, self).map_err(RawError::Deadlock)?),
        };
        let scope = Self::scope(kind);
        let mut last = SysError { call: "futex lock", errno: libc::EAGAIN };
        // BOUND: ATTEMPTS_MAX rounds; in each, `limit` and until those before give back.
        for _ in 0..ATTEMPTS_MAX {
            let locked = match limit {
                Limit::Now => futex::trylock_pi(scope, &self.word),
                Limit::Never => futex::lock_pi(scope, &self.word, None),
                Limit::At(until) => futex::lock_pi(scope, &self.word, Some(until)),
            };
            let Err(error) = locked else { return Ok(self.settle_inherited()) };
            match error.errno {
                libc::EAGAIN if limit == Limit::Now => return Err(RawError::Busy),
                libc::EAGAIN | libc::EINTR => last = error,
                libc::ETIMEDOUT => return Err(RawError::TimedOut),
                // It tells a try the same of a mutex that came to be the caller's.
                libc::EDEADLK if limit == Limit::Now => return Err(RawError::Busy),
                libc::EDEADLK => return Err(RawError::Deadlock(None)),
                // The owner ended and was not robust: it never comes.
                libc::ESRCH if limit == Limit::Now => return Err(RawError::Busy),
                _ => return Err(RawError::Sys(error)),
            }
        }
        Err(RawError::Sys(last))
    }

    /// The kernel made the caller the owner.
    fn settle_inherited(&self) -> Acquired {
        // ORDERING: Relaxed: the word is the caller's, and DIED is not cleared by anybody else.
        if self.word.load(Ordering::Relaxed) & DIED == 0 {
            return Acquired::Clean;
        }
        self.word.fetch_and(!DIED, Ordering::Relaxed);
        Acquired::OwnerDied
    }

    /// Takes a mutex that does not inherit, after a wait that may have been for it, behind others or before them.
    pub(super) fn lock_after_wait(&self, was_woken: bool) -> Result<Acquired, RawError> {
        let (me, kind) = (gettid(), self.kind());
        let take = || self.take_by(me, kind, || self.take_word(me, kind, Limit::Never, Some(was_woken)));
        if kind & PROTECT == 0 {
            return take();
        }
        let mut is_asked = false;
        let taken = self.take_above(me, kind, || {
            is_asked = true;
            take()
        });
        if !is_asked {
            // It could not rise. But it may have been handed the mutex, or woken in the place of others: it goes on to them.
            let acquired = take()?;
            self.pass_on(me, kind, acquired)?;
        }
        taken
    }

    /// Before a wait for something else, from where the kernel may make the caller the owner of this one, which inherits. Should it end before
    /// it says so, the kernel looks at it.
    pub(super) fn expect_gift(&self) {
        if self.kind() & ROBUST != 0
            && let Ok(list) = List::of_this_thread()
        {
            list.begin(&self.node, true);
        }
    }

    /// After that wait.
    pub(super) fn expected_gift(&self) {
        if self.kind() & ROBUST != 0
            && !self.is_mine()
            && let Ok(list) = List::of_this_thread()
        {
            list.end();
        }
    }

    /// Before a wait for something else, from where the caller may be moved to this one, which does not inherit. Says whether it was counted.
    pub(super) fn expect_move(&self) -> bool {
        let urgent = (self.kind() & AUTO != 0).then(|| Urgent::count(&self.urgent));
        let is_counted = urgent.as_ref().is_some_and(|urgent| urgent.0.is_some());
        std::mem::forget(urgent);
        is_counted
    }

    /// After that wait.
    pub(super) fn expected_move(&self, is_counted: bool) {
        drop(Urgent(is_counted.then_some(&self.urgent)));
    }

    /// The kernel has made the caller the owner of a mutex that inherits.
    pub(super) fn settle_moved(&self) -> Result<Acquired, RawError> {
        self.take_by(gettid(), self.kind(), || Ok(self.settle_inherited()))
    }

    /// Gives the mutex back.
    ///
    /// # Errors
    /// [`RawError::NotOwner`] where the kind asks who has it; [`RawError::Sys`] where the kernel refuses. The mutex is as it was then.
    ///
    /// # Bound
    /// One exchange of the word; where somebody waits, one system call, or three.
    #[inline]
    pub fn unlock(&self) -> Result<(), RawError> {
        if self.give_back_simply() { Ok(()) } else { self.unlock_slow() }
    }

    /// Gives it back if the caller has it, as it should be, and nobody waits for it. Says whether it was given back; where not, it is as it was, and
    /// [`RawMutex::unlock`] knows why. Made as [`RawMutex::take_simply`].
    #[inline(always)]
    pub fn give_back_simply(&self) -> bool {
        let kind = self.kind();
        match block() {
            Some(block) if kind & SLOW == 0 => self.give_plain_back(Tid(block.tid()), kind),
            Some(block) if kind & SLOW == ROBUST => {
                let (me, list) = (Tid(block.tid()), List::of(block));
                if !self.is_simply_had(me, kind) || !list.is_first(&self.node, kind & INHERIT != 0) {
                    return self.give_back_simply_asking(kind);
                }
                self.give_linked_back(list, me, kind, |list| list.remove_first(&self.node))
            }
            _ => self.give_back_simply_asking(kind),
        }
    }

    /// With calls for what is not at hand.
    #[inline(never)]
    fn give_back_simply_asking(&self, kind: u32) -> bool {
        let me = gettid();
        match kind & SLOW {
            0 => self.give_plain_back(me, kind),
            ROBUST if self.is_simply_had(me, kind) => List::of_this_thread()
                .is_ok_and(|list| self.give_linked_back(list, me, kind, |list| list.remove(&self.node))),
            PROTECT => self.give_back_and_fall(me, kind),
            _ => false,
        }
    }

    /// For the owner; looked at by others it says nothing.
    #[inline(always)]
    fn is_taken_once(&self, kind: u32) -> bool {
        // ORDERING: Relaxed: the owner's.
        kind & TYPE != RECURSIVE || self.depth.load(Ordering::Relaxed) == 0
    }

    /// Where it is the caller's, and nobody waits.
    #[inline(always)]
    fn free(&self, me: Tid) -> bool {
        // ORDERING: Release pairs with the Acquire of the lock.
        self.word.compare_exchange(me.0, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn unlock_slow(&self) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        let (me, kind) = (gettid(), self.kind());
        // ORDERING: Relaxed, here and below: who reads its own id there wrote it, and the rest is the owner's.
        let has = owner(self.word.load(Ordering::Relaxed)) == me.0;
        if asks_who_has_it(kind) && !has {
            return Err(RawError::NotOwner);
        }
        if kind & TYPE == RECURSIVE {
            let depth = self.depth.load(Ordering::Relaxed);
            if depth > 0 {
                self.depth.store(depth - 1, Ordering::Relaxed);
                return Ok(());
            }
        }
        // Read before the mutex is another's.
        let ceiling = self.ceiling();
        if kind & ROBUST != 0 && self.state.load(Ordering::Relaxed) == INCONSISTENT {
            self.state.store(NOT_RECOVERABLE, Ordering::Relaxed);
        }
        self.give_back_taken(me, kind)?;
        if kind & PROTECT != 0 {
            ceiling::fall(ceiling);
        }
        Ok(())
    }

    /// Unlinks a robust one, and gives the word back.
    fn give_back_taken(&self, me: Tid, kind: u32) -> Result<(), RawError> {
        if kind & ROBUST == 0 {
            let given = self.give_word_back(me, kind);
            if kind & INHERIT != 0 && given.is_ok() {
                held::gave_one_back();
            }
            return given;
        }
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        list.begin(&self.node, kind & INHERIT != 0);
        list.remove(&self.node);
        let given = self.give_unlinked_back(list, me, kind);
        list.end();
        given
    }

    /// Gives one back as it came from an owner that ended.
    fn give_back_dead(&self, kind: u32) -> Result<(), RawError> {
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        let address = std::ptr::from_ref(&self.word);
        list.begin(&self.node, false);
        list.remove(&self.node);
        // It says that others may wait: should the one that is woken end, too, the next owner goes on to them.
        // ORDERING: Release pairs with the Acquire of who asks.
        if self.word.swap(DIED | WAITERS, Ordering::Release) & WAITERS != 0 {
            futex::wake_in(Self::scope(kind), address, 1);
        }
        list.end();
        Ok(())
    }

    /// What is done to the word.
    fn give_word_back(&self, me: Tid, kind: u32) -> Result<(), RawError> {
        let scope = Self::scope(kind);
        if kind & INHERIT != 0 {
            return self.give_back_inheriting(me, kind, scope);
        }
        let is_lost = kind & ROBUST != 0 && self.state.load(Ordering::Relaxed) == NOT_RECOVERABLE;
        let serial = self.is_serial(kind);
        // The address: once the word is given back, the mutex may be gone.
        let address = std::ptr::from_ref(&self.word);
        // ORDERING: Release, here and below, pairs with the Acquire of who asks.
        // BOUND: a second round where somebody announced that it waits.
        loop {
            let word = self.word.load(Ordering::Relaxed);
            // One that will never be recoverable is told to all, also to those whom an owner that ended did not come to wake.
            match if is_lost { GiveBack::Wake } else { word::give_back(word, serial) } {
                GiveBack::Free => {
                    if self.word.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
                        continue;
                    }
                }
                GiveBack::Wake => {
                    self.word.store(FREE, Ordering::Release);
                    futex::wake_in(scope, address, if is_lost { i32::MAX } else { 1 });
                }
                GiveBack::Hand(handed) => {
                    // ORDERING: Relaxed: ordered by the store of the word.
                    self.handed_at.store(0, Ordering::Relaxed);
                    self.word.store(handed, Ordering::Release);
                    // Nobody there: who announced itself gave up, or has yet to wait. The latter is woken below, or sees that it is free.
                    if futex::wake_in(scope, address, 1) == 0
                        && self.word.compare_exchange(handed, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
                    {
                        futex::wake_in(scope, address, 1);
                    }
                }
            }
            return Ok(());
        }
    }

    /// Robust ones are, whatever is asked for: of a free one nobody would know that others wait, if the one that was woken ended while somebody else
    /// took it.
    fn is_serial(&self, kind: u32) -> bool {
        // ORDERING: Relaxed: a hint; who begins to wait later is served as it comes.
        kind & (SERIAL | ROBUST) != 0 || kind & AUTO != 0 && self.urgent.load(Ordering::Relaxed) > 0
    }

    fn give_back_inheriting(&self, me: Tid, kind: u32, scope: Scope) -> Result<(), RawError> {
        // ORDERING: Release pairs with the Acquire of the lock.
        if kind & KERNEL_OWNED == 0
            && self.word.compare_exchange(me.0, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return Ok(());
        }
        let mut last = SysError { call: "futex unlock", errno: libc::EAGAIN };
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            match futex::unlock_pi(scope, &self.word) {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.errno, libc::EAGAIN | libc::EINTR) => last = error,
                Err(error) => return Err(RawError::Sys(error)),
            }
        }
        Err(RawError::Sys(last))
    }

    /// What was half done is whole again; the caller holds the mutex after [`Acquired::OwnerDied`].
    ///
    /// # Errors
    /// [`RawError::BadKind`] where it is not robust, or nothing was half done.
    pub fn make_consistent(&self) -> Result<(), RawError> {
        // ORDERING: Relaxed: the mutex orders it.
        if self.kind() & ROBUST == 0 || self.state.load(Ordering::Relaxed) != INCONSISTENT {
            return Err(RawError::BadKind);
        }
        if self.owner() != gettid().0 {
            return Err(RawError::NotOwner);
        }
        self.state.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the caller has it.
    pub fn is_mine(&self) -> bool {
        self.owner() == gettid().0
    }

    /// Whether its owner took it again, and so has to give it back more than once. For the owner.
    pub fn is_taken_again(&self) -> bool {
        // ORDERING: Relaxed: only the owner writes it.
        self.depth.load(Ordering::Relaxed) > 0
    }

    /// Says that somebody may wait, so that the caller, which holds the mutex, wakes it.
    pub(crate) fn announce_waiters(&self) {
        // ORDERING: Relaxed: the word is the caller's.
        self.word.fetch_or(WAITERS, Ordering::Relaxed);
    }
}

/// A real-time thread that waits, counted.
struct Urgent<'a>(Option<&'a AtomicU16>);

impl<'a> Urgent<'a> {
    fn count(urgent: &'a AtomicU16) -> Self {
        let is_real_time = ceiling::scheduling_of_caller().is_ok_and(|now| now.has_level() || now.is_deadline());
        if is_real_time {
            // ORDERING: Relaxed, here and below: a hint.
            urgent.fetch_add(1, Ordering::Relaxed);
        }
        Self(is_real_time.then_some(urgent))
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        if let Some(urgent) = self.0 {
            urgent.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
