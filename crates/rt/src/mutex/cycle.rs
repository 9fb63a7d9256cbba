//! Who waits for what, so that a thread finds out before it waits for itself.
//!
//! A table of the threads of this process that wait for a mutex that is checked. A thread enters itself, follows the owners (its
//! mutex's owner, what that one waits for, and so on), and if it comes back to itself takes its entry out and says the cycle. All under a
//! guard, so that of two threads that would close a cycle together the second one sees it.
//!
//! A thread that waits for a condition enters itself, too, for a signal may move it to its mutex without its executing:
//!
//! | at the condition variable | it waits for |
//! |---|---|
//! | no signal since it began | a signal |
//! | signals, and the kernel has nobody there any more | its mutex: it was moved, or is on its way there |
//! | signals, and somebody is there still | one of both, nobody knows which |
//!
//! Where only the last kind closes a cycle, those at the mutex are woken: who had been moved there asks for it then, and finds the cycle by itself.

use super::kind;
use super::raw::RawMutex;
use super::word::DIED;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::guard::{Guard, Guarded};
use lockwright_sys::robust::{List, Node};
use lockwright_sys::sched::{Tid, gettid};
use lockwright_sys::{clock, fork};
use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// Most threads that wait at once and are looked at. Those beyond wait without a look.
const WAITING_MAX: usize = 4096;
/// Longest chain of owners that is followed; a longer one counts as none.
pub const CHAIN_MAX: usize = 64;
/// How far from its place an entry may be.
const PROBES: usize = 16;
/// Between two attempts to get at the table, where the kernel refuses.
const NAP_NS: u64 = 100_000;

/// A thread on a cycle, and the mutex it waits for, which the next one has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The thread's id, as the kernel has it.
    pub thread: u32,
    /// The mutex's address.
    pub mutex: usize,
}

/// Threads that wait for each other; the last one for the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle(Vec<Link>);

impl Cycle {
    /// Of one who waits for itself.
    pub(super) fn of_one(me: Tid, mutex: &RawMutex) -> Box<Self> {
        Box::new(Self(vec![Link { thread: me.0, mutex: std::ptr::from_ref(mutex).addr() }]))
    }

    /// Who waits for what, from the caller on.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.0
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, link) in self.0.iter().enumerate() {
            let next = self.0[(index + 1) % self.0.len()].thread;
            let comma = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{comma}thread {} waits for the mutex at {:#x}, which thread {next} has",
                link.thread, link.mutex
            )?;
        }
        Ok(())
    }
}

/// What becomes of a thread that would wait for itself.
#[derive(Clone, Copy, Debug)]
pub enum OnCycle {
    /// It is refused, and gets the cycle. The default.
    Refuse,
    /// It is refused, and nothing is allocated for the cycle.
    RefuseOnly,
    /// This is told the cycle, and the thread waits.
    Tell(fn(&[Link])),
}

static TELL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static ON_CYCLE: AtomicU8 = AtomicU8::new(0);

/// For all mutexes of this process that are looked at, from now on.
pub fn on_cycle(what: OnCycle) {
    if let OnCycle::Tell(tell) = what {
        TELL.store(tell as *mut (), Ordering::Relaxed);
    }
    // ORDERING: Release pairs with the Acquire of `chosen`.
    ON_CYCLE.store(
        match what {
            OnCycle::Refuse => 0,
            OnCycle::RefuseOnly => 1,
            OnCycle::Tell(_) => 2,
        },
        Ordering::Release,
    );
}

fn chosen() -> OnCycle {
    // ORDERING: Acquire pairs with the Release of `on_cycle`.
    match ON_CYCLE.load(Ordering::Acquire) {
        0 => OnCycle::Refuse,
        1 => OnCycle::RefuseOnly,
        // ORDERING: Relaxed: ordered by the load above.
        // SAFETY: 2 is written after a function of this type.
        _ => OnCycle::Tell(unsafe { std::mem::transmute::<*mut (), fn(&[Link])>(TELL.load(Ordering::Relaxed)) }),
    }
}

/// A thread that waits.
///
/// `thread` is the word of a robust lock as the kernel sees it, and `node` is in the thread's list of robust locks. So
/// the kernel marks the entry of a thread that ends while it waits, by a raw system call for example, and nothing is
/// read through it any more.
#[repr(C)]
struct Entry {
    /// The thread's id, or 0 if the entry is free; with [`DIED`] if the thread ended.
    thread: AtomicU32,
    /// See `signals`.
    seen: u32,
    /// While the entry stands, its thread is inside `lock` or waits for a condition, and the mutex is there.
    mutex: *const RawMutex,
    /// The signals of the condition variable where it waits, which is there as long, and their count when that began; else null.
    signals: *const AtomicU32,
    node: Node,
    /// The wait ends by itself, at its deadline.
    is_timed: bool,
}

const _: () = assert!(Node::fits(std::mem::offset_of!(Entry, thread), std::mem::offset_of!(Entry, node)));

/// What a thread waits for: see [`Entry`].
struct Wait {
    mutex: *const RawMutex,
    signals: *const AtomicU32,
    seen: u32,
    is_timed: bool,
}

impl Wait {
    /// A wait for `mutex` alone, without a deadline.
    fn of(mutex: &RawMutex) -> Self {
        Self { mutex, signals: std::ptr::null(), seen: 0, is_timed: false }
    }
}

/// Whether a thread waits for its mutex, or will without waiting for anything else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waits {
    No,
    Perhaps,
    /// Surely, until a deadline.
    Until,
    Surely,
}

impl Entry {
    const NONE: Self = Self {
        thread: AtomicU32::new(0),
        seen: 0,
        mutex: std::ptr::null(),
        signals: std::ptr::null(),
        // SAFETY: the table is a static, and only the thread of an entry passes its node on.
        node: unsafe { Node::new() },
        is_timed: false,
    };

    /// Whether no thread that lives has it.
    fn is_free(&self) -> bool {
        // ORDERING: Relaxed, here and below: changed under the guard, or by the kernel for a thread that ended.
        let thread = self.thread.load(Ordering::Relaxed);
        thread == 0 || thread & DIED != 0
    }

    fn is_of(&self, thread: u32) -> bool {
        self.thread.load(Ordering::Relaxed) == thread
    }

    /// For who has the guard.
    fn waits(&self) -> Waits {
        let surely = if self.is_timed { Waits::Until } else { Waits::Surely };
        if self.signals.is_null() {
            return surely;
        }
        // SAFETY: the entry stands, and the guard is held: see `Entry`.
        let signals = unsafe { &*self.signals };
        // ORDERING: Relaxed: who moved it had the caller's mutex, or comes after the look.
        if signals.load(Ordering::Relaxed) == self.seen {
            Waits::No
        } else if futex::has_waiters(Scope::Private, signals) {
            Waits::Perhaps
        } else {
            surely
        }
    }
}

struct Table([Entry; WAITING_MAX]);

// SAFETY: the pointers are read only while their entries stand.
unsafe impl Send for Table {}

static TABLE: Guarded<Table> = Guarded::new(Table([const { Entry::NONE }; WAITING_MAX]));

impl Table {
    fn places(thread: u32) -> impl Iterator<Item = usize> {
        // Ids of threads that wait together are often consecutive: they have places of their own.
        (0..PROBES).map(move |probe| (thread as usize + probe * probe) % WAITING_MAX)
    }

    fn find(&self, thread: u32) -> Option<usize> {
        Self::places(thread).find(|&place| self.0[place].is_of(thread))
    }

    /// Enters the calling thread. Returns the place, if there was one.
    fn enter(&mut self, me: Tid, wait: Wait) -> Option<usize> {
        let place = Self::places(me.0).find(|&place| self.0[place].is_free())?;
        let entry = &mut self.0[place];
        (entry.mutex, entry.signals, entry.seen, entry.is_timed) = (wait.mutex, wait.signals, wait.seen, wait.is_timed);
        // The list comes first: a thread that ends in between leaves no entry.
        if let Ok(list) = List::of_this_thread() {
            list.insert(&entry.node, false);
        }
        entry.thread.store(me.0, Ordering::Relaxed);
        Some(place)
    }

    /// Takes the calling thread's entry out.
    fn leave(&mut self, me: Tid, place: usize) {
        let entry = &mut self.0[place];
        // In a child process the place may be free, or another thread's.
        if !entry.is_of(me.0) {
            return;
        }
        entry.thread.store(0, Ordering::Relaxed);
        if let Ok(list) = List::of_this_thread() {
            list.remove(&entry.node);
        }
    }

    /// Whether `me` would close a cycle by waiting for `mutex`.
    ///
    /// BOUND: CHAIN_MAX steps.
    fn closes_cycle(&self, me: u32, mutex: &RawMutex) -> Waits {
        self.follow(me, mutex, |_, _| {})
    }

    /// The cycle it would close. Nothing is allocated here.
    #[cold]
    fn cycle(&self, me: u32, mutex: &RawMutex) -> ([Link; CHAIN_MAX], usize) {
        let (mut links, mut length) = ([Link { thread: 0, mutex: 0 }; CHAIN_MAX], 0);
        self.follow(me, mutex, |link, _| {
            links[length] = link;
            length += 1;
        });
        (links, length)
    }

    /// Wakes those that were perhaps moved to the mutexes they wait for.
    #[cold]
    fn rouse(&self, me: u32, mutex: &RawMutex) {
        self.follow(me, mutex, |_, moved| {
            if let Some(moved) = moved {
                rouse(moved);
            }
        });
    }

    /// Says of each link what it is, and the mutex to which a thread may have been moved.
    fn follow(&self, me: u32, mutex: &RawMutex, mut note: impl FnMut(Link, Option<&RawMutex>)) -> Waits {
        let mut link = Link { thread: me, mutex: std::ptr::from_ref(mutex).addr() };
        let (mut owner, mut closes, mut moved) = (mutex.owner(), Waits::Surely, None);
        for _ in 0..CHAIN_MAX {
            note(link, moved);
            if owner == me {
                return closes;
            }
            let Some(place) = self.find(owner).filter(|_| owner != 0) else { return Waits::No };
            let entry = &self.0[place];
            // SAFETY: the entry stands, and the guard is held: see `Entry`.
            let waits_for = unsafe { &*entry.mutex };
            let next = waits_for.owner();
            // It was given what it waits for, and has yet to take its entry out. Or threads unlock this mutex for each other.
            if next == owner || waits_for.is_unlocked_by_others() {
                return Waits::No;
            }
            let waits = entry.waits();
            if waits == Waits::No {
                return Waits::No;
            }
            moved = (waits == Waits::Perhaps).then_some(waits_for);
            closes = closes.min(waits);
            (link, owner) = (Link { thread: owner, mutex: entry.mutex.addr() }, next);
        }
        Waits::No
    }
}

/// Wakes those at a mutex. Not where it inherits: the kernel keeps them.
fn rouse(mutex: &RawMutex) {
    if mutex.kind() & kind::INHERIT == 0 {
        futex::wake(RawMutex::scope(mutex.kind()), mutex.word(), i32::MAX);
    }
}

/// An entry, taken out when dropped.
pub(super) struct Published(Option<usize>);

/// What is asked of the system once, asked for before the first wait.
pub(super) fn warm_up() {
    fork::in_child(forget);
}

/// Enters the calling thread, which is about to wait for `mutex`.
///
/// # Errors
/// It would close a cycle, and does not wait for that: the cycle, where that is wanted.
pub(super) fn publish(me: Tid, mutex: &RawMutex, is_timed: bool) -> Result<Published, Option<Box<Cycle>>> {
    warm_up();
    // Without the table it waits unseen.
    let Some(mut table) = TABLE.lock_or_inherit() else { return Ok(Published(None)) };
    // A thread that waits for itself is told so in any case.
    let is_no_cycle = mutex.is_unlocked_by_others() || is_timed && mutex.owner() != me.0;
    let closes = if is_no_cycle { Waits::No } else { table.closes_cycle(me.0, mutex) };
    if closes == Waits::Surely {
        return close_cycle(me, mutex, table);
    }
    let published = Published(table.enter(me, Wait { is_timed, ..Wait::of(mutex) }));
    if closes == Waits::Perhaps {
        table.rouse(me.0, mutex);
    }
    drop(table);
    Ok(published)
}

/// Enters the calling thread, which is about to wait for a signal that may move it to `mutex`. [`forget_place`] comes after it.
pub(super) fn publish_waiting(me: Tid, mutex: &RawMutex, signals: &AtomicU32, seen: u32) -> Option<usize> {
    warm_up();
    TABLE.lock_or_inherit()?.enter(me, Wait { signals, seen, ..Wait::of(mutex) })
}

/// Whether the cycle that the calling thread, which is entered, closes by waiting for `mutex` passes by itself: another
/// thread on it waits until a deadline.
#[cold]
pub(super) fn passes(me: Tid, mutex: &RawMutex) -> bool {
    TABLE.lock_or_inherit().is_some_and(|table| table.closes_cycle(me.0, mutex) == Waits::Until)
}

/// Takes that entry out.
pub(super) fn forget_place(place: Option<usize>) {
    drop(Published(place));
}

/// Waiters of a condition variable were moved to `mutex` by one who does not have it. Where its owner waits itself, perhaps for one of them, they
/// are woken, to look whether it does.
pub(super) fn look_after_move(mutex: &RawMutex) {
    let owner = mutex.owner();
    if let Some(table) = TABLE.lock_or_inherit()
        && owner != 0
        && table.find(owner).is_some()
    {
        rouse(mutex);
    }
}

#[cold]
fn close_cycle(me: Tid, mutex: &RawMutex, mut table: Guard<'_, Table>) -> Result<Published, Option<Box<Cycle>>> {
    match chosen() {
        OnCycle::RefuseOnly => Err(None),
        OnCycle::Refuse => {
            let (links, length) = table.cycle(me.0, mutex);
            drop(table);
            Err(Some(Box::new(Cycle(links[..length].to_vec()))))
        }
        OnCycle::Tell(tell) => {
            let (links, length) = table.cycle(me.0, mutex);
            let published = Published(table.enter(me, Wait::of(mutex)));
            drop(table);
            tell(&links[..length]);
            Ok(published)
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            // BOUND: until the kernel, which refuses for want of memory only, has some; the naps leave the processor to less urgent threads. An
            // entry must not outlast the wait: it names a mutex that may go.
            loop {
                if let Some(mut table) = TABLE.lock_or_inherit() {
                    table.leave(gettid(), place);
                    break;
                }
                // A refused nap is an attempt sooner.
                let _ = clock::sleep_until(clock::now_ns() + NAP_NS);
            }
        }
    }
}

/// In a child process nobody waits, and the guard is nobody's.
extern "C" fn forget() {
    // SAFETY: the child has one thread, and it is in no function that looks at the table.
    unsafe { TABLE.reset() };
    // Not 0: the child's thread may have its node in its list still.
    TABLE
        .lock()
        .0
        .iter()
        .filter(|entry| !entry.is_free())
        .for_each(|entry| entry.thread.store(DIED, Ordering::Relaxed));
}
