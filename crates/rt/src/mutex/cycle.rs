//! Who waits for what, so that a thread finds out before it waits for itself.
//!
//! A table of the threads of this process that wait for a mutex that is checked. A thread enters itself, follows the owners (its
//! mutex's owner, what that one waits for, and so on), and if it comes back to itself takes its entry out and says the cycle. All under a
//! guard, so that of two threads that would close a cycle together the second one sees it.

use super::raw::RawMutex;
use crate::guard::Guarded;
use crate::sys::fork;
use crate::sys::sched::Tid;
use std::fmt;
use std::sync::Once;

/// Most threads that wait at once and are looked at. Those beyond wait without a look.
const WAITING_MAX: usize = 4096;
/// Longest chain of owners that is followed; a longer one counts as none.
pub const CHAIN_MAX: usize = 64;
/// How far from its place an entry may be.
const PROBES: usize = 16;

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

#[derive(Clone, Copy)]
struct Entry {
    thread: u32,
    /// While the entry stands, its thread is inside `lock`, and the mutex is there.
    mutex: *const RawMutex,
}

struct Table([Entry; WAITING_MAX]);

// SAFETY: the pointers are read only while their entries stand.
unsafe impl Send for Table {}

static TABLE: Guarded<Table> = Guarded::new(Table([Entry { thread: 0, mutex: std::ptr::null() }; WAITING_MAX]));

impl Table {
    fn places(thread: u32) -> impl Iterator<Item = usize> {
        // Ids of threads that wait together are often consecutive: they have places of their own.
        (0..PROBES).map(move |probe| (thread as usize + probe * probe) % WAITING_MAX)
    }

    fn find(&self, thread: u32) -> Option<usize> {
        Self::places(thread).find(|&place| self.0[place].thread == thread)
    }

    /// The cycle that `me` would close by waiting for `mutex`.
    ///
    /// BOUND: CHAIN_MAX steps.
    fn cycle(&self, me: u32, mutex: &RawMutex) -> Option<Box<Cycle>> {
        let mut length = 0;
        self.follow(me, mutex, |_| length += 1).then(|| {
            let mut links = Vec::with_capacity(length);
            self.follow(me, mutex, |link| links.push(link));
            Box::new(Cycle(links))
        })
    }

    fn follow(&self, me: u32, mutex: &RawMutex, mut note: impl FnMut(Link)) -> bool {
        let mut link = Link { thread: me, mutex: std::ptr::from_ref(mutex).addr() };
        let mut owner = mutex.owner();
        for _ in 0..CHAIN_MAX {
            note(link);
            if owner == me {
                return true;
            }
            let Some(place) = self.find(owner).filter(|_| owner != 0) else { return false };
            let waits_for = self.0[place].mutex;
            // SAFETY: the entry stands, and the guard is held: see `Entry`.
            let next = unsafe { &*waits_for }.owner();
            // It was given what it waits for, and has yet to take its entry out.
            if next == owner {
                return false;
            }
            (link, owner) = (Link { thread: owner, mutex: waits_for.addr() }, next);
        }
        false
    }
}

/// An entry, taken out when dropped.
pub(super) struct Published(Option<usize>);

/// Enters the calling thread, which is about to wait for `mutex`.
///
/// # Errors
/// The cycle it would close.
pub(super) fn publish(me: Tid, mutex: &RawMutex) -> Result<Published, Box<Cycle>> {
    static FORGET: Once = Once::new();
    FORGET.call_once(|| fork::in_child(forget));
    let mut table = TABLE.lock();
    if let Some(cycle) = table.cycle(me.0, mutex) {
        return Err(cycle);
    }
    let place = Table::places(me.0).find(|&place| table.0[place].thread == 0);
    if let Some(place) = place {
        table.0[place] = Entry { thread: me.0, mutex };
    }
    Ok(Published(place))
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            TABLE.lock().0[place].thread = 0;
        }
    }
}

/// In a child process nobody waits, and the guard is nobody's.
extern "C" fn forget() {
    TABLE.reset();
    TABLE.lock().0.iter_mut().for_each(|entry| entry.thread = 0);
}
