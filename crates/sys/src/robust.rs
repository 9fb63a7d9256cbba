//! The list of robust locks that a thread holds, which the kernel reads when the thread ends. It is the C library's own
//! list; Lockwright links its locks into it.
//!
//! ```text
//!   head:  [ prev ] [ list ] [ offset ] [ pending ]      one per thread, registered by the C library
//!                      |
//!   node:           [ next ]   preceded by [ prev ]      in each lock, `offset` bytes after its word
//! ```
//!
//! The kernel follows `list` through the `next` links, and sets FUTEX_OWNER_DIED in each word that has the thread's id.
//! `pending` names a lock that is being locked or unlocked. The lowest bit of a link is set if the word has priority
//! inheritance.
//!
//! A thread that is killed after it has freed a word and before it clears `pending` leaves the address of a lock that
//! another thread may have locked, unlocked and freed since. If the memory then has the thread's id in that place, the
//! kernel changes it. Since Linux 7.2 the vDSO has a function that does both: if the thread is killed in the middle,
//! the kernel completes it first.

use crate::block::{self, Block};
use crate::error::SysError;
use crate::fork;
use crate::head::{Head, WORD_OFFSET, registered};
use crate::vdso;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, compiler_fence};

/// The lowest bit of a link: the word has priority inheritance.
const INHERITS: usize = 1;

/// Exchanges a word from an id to 0, and writes 0 to the third argument if it did. Returns what the word was.
type TryUnlock = unsafe extern "C" fn(word: *mut u32, me: u32, pending: *mut usize) -> u32;

/// The function of the vDSO with this effect, or null.
static TRY_UNLOCK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Whether the kernel has such a function, so that the end of a thread in [`List::unlock`] changes no memory of a freed
/// lock.
#[inline]
pub fn unlocks_in_one_step() -> bool {
    // ORDERING: Relaxed: the address of a function, which publishes no other data.
    !TRY_UNLOCK.load(Ordering::Relaxed).is_null()
}

extern "C" fn find_try_unlock() {
    if let Some(function) = vdso::function("__vdso_futex_robust_list64_try_unlock") {
        TRY_UNLOCK.store(function.cast_mut(), Ordering::Relaxed);
    }
}

// SAFETY: the loader calls the functions of this section, with arguments that `find_try_unlock` ignores.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = find_try_unlock;

/// The node in a lock, which is linked into the list.
///
/// A node that was removed keeps its links: nobody reads them, and the exchange of an unlock would wait for the stores
/// that clear them.
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    prev: Cell<usize>,
    next: Cell<usize>,
}

impl Node {
    /// A node that is in no list.
    ///
    /// # Safety
    /// The node does not move from the time a thread [begins](List::begin) with it or [inserts](List::insert) it until
    /// that thread ends or removes it. Its distance from its lock's word satisfies [`Node::fits`]. Only the thread that
    /// holds the lock passes the node to its list, and removes it only if it has inserted it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self { prev: Cell::new(0), next: Cell::new(0) }
    }

    /// Whether a node and its lock's word, at these offsets of one structure, are as far apart as the C library
    /// registered.
    #[must_use]
    pub const fn fits(word: usize, node: usize) -> bool {
        (node + std::mem::offset_of!(Self, next)) as isize + WORD_OFFSET == word as isize
    }

    #[inline]
    fn link(&self, inherits: bool) -> usize {
        ptr::from_ref(&self.next).expose_provenance() | if inherits { INHERITS } else { 0 }
    }
}

thread_local! {
    static HEAD: Cell<*mut Head> = const { Cell::new(ptr::null_mut()) };
}

/// The calling thread's list.
#[derive(Clone, Copy, Debug)]
pub struct List(*mut Head);

impl List {
    /// Finds the list. Makes at most one system call in each thread.
    ///
    /// # Errors
    /// If the C library registered no list, or one with another layout.
    #[inline]
    pub fn of_this_thread() -> Result<Self, SysError> {
        match block::block() {
            Some(block) => Ok(Self::of(block)),
            None => Self::remembered(),
        }
    }

    /// Finds the list from the thread's block, without a system call.
    #[inline]
    pub fn of(block: Block) -> Self {
        Self(block.head())
    }

    fn remembered() -> Result<Self, SysError> {
        match HEAD.get() {
            head if head.is_null() => Self::ask(),
            head => Ok(Self(head)),
        }
    }

    #[cold]
    fn ask() -> Result<Self, SysError> {
        extern "C" fn forget() {
            HEAD.set(ptr::null_mut());
        }
        fork::in_child(forget);
        let head = registered()?;
        HEAD.set(head);
        Ok(Self(head))
    }

    /// Announces that this lock is about to be locked or unlocked. If the thread ends before [`List::end`], the kernel
    /// examines the lock.
    #[inline]
    pub fn begin(self, node: &Node, inherits: bool) {
        // SAFETY: the head belongs to the calling thread, and stays valid as long as that thread. Only this thread
        // writes it; the kernel reads it when the thread ends.
        unsafe { ptr::write_volatile(&raw mut (*self.0).pending, node.link(inherits)) };
        compiler_fence(Ordering::SeqCst);
    }

    /// As [`List::begin`], for the list of the block.
    #[inline]
    pub fn begin_in(block: Block, node: &Node, inherits: bool) {
        block.announce(node.link(inherits));
        compiler_fence(Ordering::SeqCst);
    }

    /// Withdraws the announcement of [`List::begin`].
    #[inline]
    pub fn end(self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the head belongs to the calling thread, and stays valid as long as that thread. Only this thread
        // writes it; the kernel reads it when the thread ends.
        unsafe { ptr::write_volatile(&raw mut (*self.0).pending, 0) };
    }

    /// Exchanges the word of the announced lock from `me`, the id of the calling thread, to 0, and withdraws the
    /// announcement. Returns whether the word was `me`; if not, both are unchanged.
    #[inline(always)]
    pub fn unlock(self, word: &AtomicU32, me: u32) -> bool {
        self.unlock_at_once(word, me) || self.unlock_by(word, me)
    }

    /// As [`List::unlock`], without a call. Also returns false, with both unchanged, if the kernel has a function that
    /// does both in one step.
    #[inline(always)]
    pub fn unlock_at_once(self, word: &AtomicU32, me: u32) -> bool {
        if unlocks_in_one_step() {
            return false;
        }
        // ORDERING: Release pairs with the Acquire of the next lock.
        let unlocks = word.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_ok();
        if unlocks {
            self.end();
        }
        unlocks
    }

    #[inline(never)]
    fn unlock_by(self, word: &AtomicU32, me: u32) -> bool {
        // ORDERING: Relaxed: the address of a function, which publishes no other data.
        let function = TRY_UNLOCK.load(Ordering::Relaxed);
        if function.is_null() {
            return false;
        }
        // SAFETY: `TRY_UNLOCK` has only functions of this type, which live as long as the process.
        let function: TryUnlock = unsafe { std::mem::transmute(function) };
        // SAFETY: the word is borrowed and atomic. The head belongs to the calling thread, which alone writes it, and
        // stays valid as long as that thread. The exchange in the function is a full barrier.
        unsafe { function(word.as_ptr(), me, &raw mut (*self.0).pending) == me }
    }

    /// Links a lock that this thread has locked.
    #[inline]
    pub fn insert(self, node: &Node, inherits: bool) {
        // SAFETY: the head belongs to the calling thread. Every linked node belongs to a lock that this thread holds,
        // so it does not move, and only this thread changes its links.
        unsafe {
            let first = (*self.0).list;
            node.next.set(first);
            node.prev.set(self.0.expose_provenance());
            self.set_prev(first, node.link(false));
            compiler_fence(Ordering::SeqCst);
            ptr::write_volatile(&raw mut (*self.0).list, node.link(inherits));
        }
    }

    /// Whether this lock is the first in the list of the block. The lock that was locked last is.
    #[inline]
    pub fn is_first(block: Block, node: &Node, inherits: bool) -> bool {
        block.first() == node.link(inherits)
    }

    /// Removes the first lock from the list of the block. As [`List::remove`], with fewer accesses.
    #[inline]
    pub fn remove_first(block: Block, node: &Node) {
        let (list, next) = (Self::of(block), node.next.get());
        // SAFETY: `next` is the link after the first node: the head, or a node of a lock that this thread holds. It
        // does not move, and only this thread changes its links.
        unsafe { list.set_prev(next, list.0.expose_provenance()) };
        block.set_first(next);
    }

    /// Removes a lock from the list.
    #[inline]
    pub fn remove(self, node: &Node) {
        let (prev, next) = (node.prev.get() & !INHERITS, node.next.get());
        // SAFETY: the node is linked, so `prev` and `next` are links of this thread's list: the head, or nodes of locks
        // that this thread holds. They do not move, and only this thread changes them.
        unsafe {
            self.set_prev(next, node.prev.get());
            ptr::write_volatile(ptr::with_exposed_provenance_mut::<usize>(prev), next);
        }
    }

    /// Sets the `prev` of the node whose link `next` points to, which is the word before the link. Does nothing at the
    /// head: the C library keeps such a word there as well, and nobody reads it.
    ///
    /// # Safety
    /// `next` is a link of the calling thread's list.
    #[inline]
    unsafe fn set_prev(self, next: usize, prev: usize) {
        if next == self.0.addr() {
            return;
        }
        let next = ptr::with_exposed_provenance_mut::<usize>(next & !INHERITS);
        // SAFETY: `next` is a link of the calling thread's list, and not the head. The word before it is its `prev`,
        // and only this thread writes it.
        unsafe { ptr::write_volatile(next.sub(1), prev) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::gettid;

    static CALLS: AtomicU32 = AtomicU32::new(0);

    /// As in the kernel.
    unsafe extern "C" fn try_unlock(word: *mut u32, me: u32, pending: *mut usize) -> u32 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller passes a word that is valid and atomic, and a place that only it accesses.
        unsafe {
            match AtomicU32::from_ptr(word).compare_exchange(me, 0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(before) => {
                    pending.write_volatile(0);
                    before
                }
                Err(before) => before,
            }
        }
    }

    /// Announces an unlock of a word that is `before`. Returns whether `unlock` did it, and what is left.
    fn unlocked(before: u32) -> (bool, u32, bool) {
        let list = List::of_this_thread().expect("the C library registered a list");
        // SAFETY: only the thread of the list uses the node, which does not move until it is withdrawn below.
        let node = unsafe { Node::new() };
        let word = AtomicU32::new(before);
        list.begin(&node, false);
        let unlocks = list.unlock(&word, gettid().0);
        // SAFETY: the head belongs to the calling thread.
        let is_announced = unsafe { (*list.0).pending != 0 };
        list.end();
        (unlocks, word.load(Ordering::Relaxed), is_announced)
    }

    #[test]
    fn an_unlock_frees_the_word_and_withdraws_in_one_step_or_two() {
        let me = gettid().0;
        let waited = me | 1 << 31;
        let check = || {
            assert_eq!(unlocked(me), (true, 0, false));
            assert_eq!(unlocked(waited), (false, waited, true), "the slow path unlocks, still announced");
        };
        let found = TRY_UNLOCK.load(Ordering::Relaxed);
        assert_eq!(found.cast_const(), vdso::function("__vdso_futex_robust_list64_try_unlock").unwrap_or(ptr::null()));
        check();
        println!("the kernel {} the function", if found.is_null() { "lacks" } else { "has" });
        TRY_UNLOCK.store(try_unlock as *mut (), Ordering::Relaxed);
        check();
        assert!(unlocks_in_one_step());
        assert_eq!(CALLS.load(Ordering::Relaxed), 2, "the function of the vDSO is called");
        TRY_UNLOCK.store(found, Ordering::Relaxed);
    }

    /// The links of the list, from the first on.
    fn links(list: List) -> Vec<usize> {
        // SAFETY: the head belongs to the calling thread.
        let mut link = unsafe { (*list.0).list };
        let mut links = Vec::new();
        while link != list.0.addr() {
            links.push(link);
            // SAFETY: it is the link of a node that this thread has inserted and not moved.
            link = unsafe { ptr::with_exposed_provenance::<usize>(link & !INHERITS).read_volatile() };
        }
        links
    }

    #[test]
    fn nodes_are_removed_in_any_order() {
        let list = List::of_this_thread().expect("the C library registered a list");
        gettid();
        // SAFETY: only this thread uses the nodes, which do not move until they are removed below.
        let nodes: [Node; 3] = std::array::from_fn(|_| unsafe { Node::new() });
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            nodes.iter().for_each(|node| list.insert(node, false));
            let mut left = vec![2, 1, 0];
            for index in order {
                match block::block() {
                    Some(block) if List::is_first(block, &nodes[index], false) => {
                        assert_eq!(left[0], index);
                        List::remove_first(block, &nodes[index]);
                    }
                    _ => list.remove(&nodes[index]),
                }
                left.retain(|other| *other != index);
                assert_eq!(links(list), left.iter().map(|index| nodes[*index].link(false)).collect::<Vec<_>>());
            }
        }
    }
}
