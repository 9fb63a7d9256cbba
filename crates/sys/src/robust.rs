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

use crate::block::{self, Block};
use crate::error::SysError;
use crate::fork;
use crate::head::{Head, WORD_OFFSET, registered};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

/// The lowest bit of a link: the word has priority inheritance.
const INHERITS: usize = 1;

/// The node in a lock, which is linked into the list.
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
    /// holds the lock passes the node to its list.
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

    /// Withdraws the announcement of [`List::begin`].
    #[inline]
    pub fn end(self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the head belongs to the calling thread, and stays valid as long as that thread. Only this thread
        // writes it; the kernel reads it when the thread ends.
        unsafe { ptr::write_volatile(&raw mut (*self.0).pending, 0) };
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
            Self::set_prev(first, node.link(false));
            compiler_fence(Ordering::SeqCst);
            ptr::write_volatile(&raw mut (*self.0).list, node.link(inherits));
        }
    }

    /// Whether this lock is the first in the list. The lock that was locked last is.
    #[inline]
    pub fn is_first(self, node: &Node, inherits: bool) -> bool {
        // SAFETY: the head belongs to the calling thread, which alone writes it, and stays valid as long as that
        // thread.
        unsafe { (*self.0).list == node.link(inherits) }
    }

    /// Removes the first lock from the list. As [`List::remove`], with fewer reads.
    #[inline]
    pub fn remove_first(self, node: &Node) {
        let next = node.next.get();
        // SAFETY: `next` is the link after the first node: the head, or a node of a lock that this thread holds. It
        // does not move, and only this thread changes its links.
        unsafe {
            Self::set_prev(next, self.0.expose_provenance());
            ptr::write_volatile(&raw mut (*self.0).list, next);
        }
        compiler_fence(Ordering::SeqCst);
        node.prev.set(0);
        node.next.set(0);
    }

    /// Removes a lock from the list. A lock that is in no list is left unchanged.
    #[inline]
    pub fn remove(self, node: &Node) {
        let (prev, next) = (node.prev.get() & !INHERITS, node.next.get());
        if prev == 0 || next == 0 {
            return;
        }
        // SAFETY: the node is linked, so `prev` and `next` are links of this thread's list: the head, or nodes of locks
        // that this thread holds. They do not move, and only this thread changes them.
        unsafe {
            Self::set_prev(next, node.prev.get());
            ptr::write_volatile(ptr::with_exposed_provenance_mut::<usize>(prev), next);
        }
        compiler_fence(Ordering::SeqCst);
        node.prev.set(0);
        node.next.set(0);
    }

    /// Sets the `prev` of the node whose link `next` points to. It is the word before the link; the C library also
    /// keeps one before the head.
    ///
    /// # Safety
    /// `next` is a link of the calling thread's list.
    unsafe fn set_prev(next: usize, prev: usize) {
        let next = ptr::with_exposed_provenance_mut::<usize>(next & !INHERITS);
        // SAFETY: `next` is a link of the calling thread's list. The word before each link is its `prev`, also before
        // the head, and only this thread writes it.
        unsafe { ptr::write_volatile(next.sub(1), prev) };
    }
}
