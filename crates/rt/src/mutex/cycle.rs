//! Deadlock detection: a table of the waiting threads, in which a thread finds out before it waits whether it would
//! wait for itself.
//!
//! The table holds the threads of this process that wait for a checked mutex. A thread enters itself and follows the
//! owners: the owner of its mutex, the owner of the mutex for which that thread waits, and so on. If it comes back to
//! itself, it reports the cycle and does not wait. All this happens under a guard, so that of two threads that would
//! close a cycle together the second one sees it.
//!
//! A thread that waits for a condition also enters itself, because a signal may move it to its mutex without executing
//! it:
//!
//! | at the condition variable | the thread waits for |
//! |---|---|
//! | no signal since its wait began | a signal |
//! | signals, and no thread left in the kernel's queue | its mutex: it was moved, or is on its way there |
//! | signals, and a thread still in the kernel's queue | either of the two; the table cannot tell |
//!
//! If the cycle depends on the last case, the waiters of the mutex are woken: a waiter that had been moved there then
//! requests the mutex itself and finds the cycle.

use super::attributes;
use super::raw::RawMutex;
use super::word::DIED;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::guard::{Guard, Guarded};
use lockwright_sys::robust::{List, Node};
use lockwright_sys::sched::{ThreadName, Tid, gettid};
use lockwright_sys::{clock, fork};
use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// The most waiting threads that the table holds. Further threads wait without deadlock detection.
const WAITING_MAX: usize = 4096;
/// The longest chain of owners that is followed. A longer chain counts as no cycle.
pub const CHAIN_MAX: usize = 64;
/// How many places are tried for an entry.
const PROBES: usize = 16;
/// Nanoseconds between two attempts to lock the table if the kernel refuses.
const NAP_NS: u64 = 100_000;

/// A thread on a cycle and the mutex for which it waits. The next thread on the cycle owns that mutex.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The kernel's id of the thread.
    pub thread: u32,
    /// The mutex's address.
    pub mutex: usize,
}

/// A thread of this process, shown as `thread 71 (camera)`. Without a name if the thread has ended.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NamedThread(
    /// The kernel's id of the thread.
    pub u32,
);

impl fmt::Display for NamedThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ThreadName::of(Tid(self.0));
        write!(f, "thread {}", self.0)?;
        if name == ThreadName::default() { Ok(()) } else { write!(f, " ({name})") }
    }
}

/// The name of a thread of this process, padded with zeros; only zeros if the thread has ended.
#[doc(hidden)]
#[must_use]
pub fn thread_name(thread: u32) -> [u8; 16] {
    ThreadName::of(Tid(thread)).0
}

/// Threads that wait for each other, the last one for the first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cycle(Vec<Link>);

impl Cycle {
    /// The cycle of a thread that waits for itself.
    pub(super) fn of_one(me: Tid, mutex: &RawMutex) -> Box<Self> {
        Box::new(Self(vec![Link { thread: me.0, mutex: std::ptr::from_ref(mutex).addr() }]))
    }

    /// Returns each thread and the mutex for which it waits, starting with the caller.
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
            let (thread, next) = (NamedThread(link.thread), NamedThread(next));
            write!(f, "{comma}{thread} waits for the mutex at {:#x}, which {next} holds", link.mutex)?;
        }
        Ok(())
    }
}

/// The treatment of a thread that would wait for itself.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum OnCycle {
    /// The lock fails and returns the cycle.
    #[default]
    Refuse,
    /// The lock fails, and nothing is allocated for the cycle.
    RefuseOnly,
    /// The function is called with the cycle, and then the thread waits.
    Tell(fn(&[Link])),
}

static TELL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static ON_CYCLE: AtomicU8 = AtomicU8::new(0);

/// Sets the treatment for all checked mutexes of this process, from now on.
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
        // SAFETY: `ON_CYCLE` is 2 only after `on_cycle` stored a function of this type in `TELL`.
        _ => OnCycle::Tell(unsafe { std::mem::transmute::<*mut (), fn(&[Link])>(TELL.load(Ordering::Relaxed)) }),
    }
}

/// The entry of a waiting thread.
///
/// `thread` is the word of a robust lock as the kernel sees it, and `node` is in the thread's list of robust locks. So
/// the kernel marks the entry of a thread that ends while it waits, for example by a raw system call, and its pointers
/// are not read any more.
#[repr(C)]
struct Entry {
    /// The thread's id, or 0 if the entry is free. [`DIED`] is set if the thread ended.
    thread: AtomicU32,
    /// See `signals`.
    seen: u32,
    /// The mutex for which the thread waits. It exists while the entry stands, because the thread is then inside `lock`
    /// or waits for a condition.
    mutex: *const RawMutex,
    /// The signal count of the condition variable at which the thread waits, which also exists while the entry stands;
    /// otherwise null. `seen` is its value when the wait began.
    signals: *const AtomicU32,
    node: Node,
    /// The wait ends by itself, at its deadline.
    is_timed: bool,
}

const _: () = assert!(Node::fits(std::mem::offset_of!(Entry, thread), std::mem::offset_of!(Entry, node)));

/// The fields of an [`Entry`] that describe its wait.
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

/// Whether a thread waits for its mutex, or will do so without waiting for anything else first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waits {
    No,
    Perhaps,
    /// Surely, until a deadline.
    Until,
    Surely,
}

impl Entry {
    /// A free entry.
    const fn free() -> Self {
        Self {
            thread: AtomicU32::new(0),
            seen: 0,
            mutex: std::ptr::null(),
            signals: std::ptr::null(),
            // SAFETY: the table is a static, so the node does not move. Only the thread to which an entry belongs
            // inserts and removes its node.
            node: unsafe { Node::new() },
            is_timed: false,
        }
    }

    /// Whether the entry belongs to no living thread.
    fn is_free(&self) -> bool {
        // ORDERING: Relaxed, here and below: changed under the guard, or by the kernel for a thread that ended.
        let thread = self.thread.load(Ordering::Relaxed);
        thread == 0 || thread & DIED != 0
    }

    fn is_of(&self, thread: u32) -> bool {
        self.thread.load(Ordering::Relaxed) == thread
    }

    /// Whether the thread waits for its mutex. The caller holds the guard.
    fn waits(&self) -> Waits {
        let surely = if self.is_timed { Waits::Until } else { Waits::Surely };
        if self.signals.is_null() {
            return surely;
        }
        // SAFETY: the entry stands, and its thread needs the guard, which the caller holds, to remove it. So that
        // thread is still in its wait, and the condition variable exists.
        let signals = unsafe { &*self.signals };
        // ORDERING: Relaxed: the thread that moved the waiter held the caller's mutex before, or checks the cycle after
        // this look.
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

// SAFETY: a table moves no thread's data: its pointers are followed only under the guard, while their entries stand.
unsafe impl Send for Table {}

static TABLE: Guarded<Table> = Guarded::new(Table([const { Entry::free() }; WAITING_MAX]));

impl Table {
    fn places(thread: u32) -> impl Iterator<Item = usize> {
        // Threads that wait together often have consecutive ids, and these get different places.
        (0..PROBES).map(move |probe| (thread as usize + probe * probe) % WAITING_MAX)
    }

    fn find(&self, thread: u32) -> Option<usize> {
        Self::places(thread).find(|&place| self.0[place].is_of(thread))
    }

    /// Enters the calling thread. Returns its place, or `None` if all its places are used.
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

    /// Removes the calling thread's entry.
    fn leave(&mut self, me: Tid, place: usize) {
        let entry = &mut self.0[place];
        // In a child process the place may be free, or belong to another thread.
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

    /// Returns the links of the cycle that `me` would close, and their number. Allocates nothing.
    #[cold]
    fn cycle(&self, me: u32, mutex: &RawMutex) -> ([Link; CHAIN_MAX], usize) {
        let (mut links, mut length) = ([Link { thread: 0, mutex: 0 }; CHAIN_MAX], 0);
        self.follow(me, mutex, |link, _| {
            links[length] = link;
            length += 1;
        });
        (links, length)
    }

    /// Wakes the threads that may have been moved to the mutexes for which they wait.
    #[cold]
    fn rouse(&self, me: u32, mutex: &RawMutex) {
        self.follow(me, mutex, |_, moved| {
            if let Some(moved) = moved {
                rouse(moved);
            }
        });
    }

    /// Follows the chain of owners from `mutex`. Calls `note` with each link, and with the mutex to which its owner may
    /// have been moved. Returns how surely the chain leads back to `me`.
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
            // SAFETY: the entry stands, and its thread needs the guard, which the caller holds, to remove it. So that
            // thread is still in its wait, and the mutex exists.
            let waits_for = unsafe { &*entry.mutex };
            let next = waits_for.owner();
            // Either the thread already owns the mutex and has yet to remove its entry, or threads unlock this mutex
            // for each other.
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

/// Wakes all waiters of a mutex, except one that inherits: its waiters stay in the kernel.
fn rouse(mutex: &RawMutex) {
    if mutex.attributes() & attributes::INHERIT == 0 {
        futex::wake(RawMutex::scope(mutex.attributes()), mutex.word(), i32::MAX);
    }
}

/// An entry in the table; dropping it removes the entry.
pub(super) struct Published(Option<usize>);

/// Registers the fork handler, before the first wait does.
pub(super) fn warm_up() {
    fork::in_child(forget);
}

/// Enters the calling thread, which is about to wait for `mutex`.
///
/// # Errors
/// The wait would close a cycle, and the thread must not wait. Contains the cycle, unless [`OnCycle::RefuseOnly`] is
/// set.
pub(super) fn publish(me: Tid, mutex: &RawMutex, is_timed: bool) -> Result<Published, Option<Box<Cycle>>> {
    warm_up();
    // Without the table the thread waits unseen.
    let Some(mut table) = TABLE.lock_or_inherit() else { return Ok(Published(None)) };
    // A thread that waits for itself gets the error in any case.
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

/// Enters the calling thread, which is about to wait for a signal that may move it to `mutex`. The caller passes the
/// result to [`forget_place`] afterwards.
pub(super) fn publish_waiting(me: Tid, mutex: &RawMutex, signals: &AtomicU32, seen: u32) -> Option<usize> {
    warm_up();
    TABLE.lock_or_inherit()?.enter(me, Wait { signals, seen, ..Wait::of(mutex) })
}

/// Whether the cycle that the calling thread closes by waiting for `mutex` ends by itself, because another thread on it
/// waits until a deadline. The calling thread is entered.
#[cold]
pub(super) fn passes(me: Tid, mutex: &RawMutex) -> bool {
    TABLE.lock_or_inherit().is_some_and(|table| table.closes_cycle(me.0, mutex) == Waits::Until)
}

/// Removes the entry of [`publish_waiting`].
pub(super) fn forget_place(place: Option<usize>) {
    drop(Published(place));
}

/// Called after a thread moved the waiters of a condition variable to `mutex`, which it does not own. If the owner of
/// `mutex` waits itself, perhaps for one of them, they are woken to check for a cycle.
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
            // BOUND: until the kernel, which refuses only if it lacks memory, has some; the naps leave the processor to
            // less urgent threads. An entry must not outlast the wait, because the mutex that it points to may then
            // disappear.
            loop {
                if let Some(mut table) = TABLE.lock_or_inherit() {
                    table.leave(gettid(), place);
                    break;
                }
                // A refused nap only makes the next attempt earlier.
                let _ = clock::sleep_until(clock::now_ns() + NAP_NS);
            }
        }
    }
}

/// Resets the table in a child process: no thread waits there, and none holds the guard.
extern "C" fn forget() {
    // SAFETY: the child has one thread, and that thread is in no function that uses the table.
    unsafe { TABLE.reset() };
    // Not 0: the node may still be in the list of the child's thread.
    TABLE
        .lock()
        .0
        .iter()
        .filter(|entry| !entry.is_free())
        .for_each(|entry| entry.thread.store(DIED, Ordering::Relaxed));
}
