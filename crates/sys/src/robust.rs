//! The list by which the kernel finds what a thread holds when it ends: the C library's own, which ours are linked into.
//!
//! ```text
//!   head:  [ prev ] [ list ] [ offset ] [ pending ]      one a thread, registered by the C library
//!                      |
//!   node:           [ next ]   preceded by [ prev ]      in each lock, `offset` bytes behind its word
//! ```
//!
//! The kernel follows `list` through the `next`s, and sets FUTEX_OWNER_DIED in each word that has the thread's id. `pending` names a lock
//! that is being taken or given back. The lowest bit of a link says that the word is under priority inheritance.

use crate::block::{self, Block};
use crate::error::SysError;
use crate::fork;
use crate::head::{Head, WORD_OFFSET, registered};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

/// The lowest bit of a link.
const INHERITS: usize = 1;

/// What is linked: the node in a lock.
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
    /// The node stays where it is from the time a thread [begins](List::begin) with it or [inserts](List::insert) it
    /// until that thread ends or removes it. It lies behind its lock's word as [`Node::fits`] says, and only the thread
    /// that has the lock passes it to its list.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self { prev: Cell::new(0), next: Cell::new(0) }
    }

    /// Whether a node and its lock's word, at these places of one structure, are as far apart as the C library says.
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
#[derive(Clone, Copy)]
pub struct List(*mut Head);

impl List {
    /// Finds the list. One system call a thread.
    ///
    /// # Errors
    /// Where the C library registered none, or one of another layout.
    #[inline]
    pub fn of_this_thread() -> Result<Self, SysError> {
        match block::block() {
            Some(block) => Ok(Self::of(block)),
            None => Self::remembered(),
        }
    }

    /// The same where that takes no call.
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

    /// Says what is about to be taken, or given back: should the thread end in between, the kernel looks at it.
    #[inline]
    pub fn begin(self, node: &Node, inherits: bool) {
        // SAFETY: the head is this thread's, which alone writes it; the kernel reads it when the thread ends.
        unsafe { ptr::write_volatile(&raw mut (*self.0).pending, node.link(inherits)) };
        compiler_fence(Ordering::SeqCst);
    }

    /// It was taken or given back, or not: that is over.
    #[inline]
    pub fn end(self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `begin`.
        unsafe { ptr::write_volatile(&raw mut (*self.0).pending, 0) };
    }

    /// Links a lock that this thread has taken.
    #[inline]
    pub fn insert(self, node: &Node, inherits: bool) {
        // SAFETY: the head, and every node linked, belong to locks this thread holds, which stay where they are; it alone changes their links.
        unsafe {
            let first = (*self.0).list;
            node.next.set(first);
            node.prev.set(self.0.expose_provenance());
            Self::set_prev(first, node.link(false));
            compiler_fence(Ordering::SeqCst);
            ptr::write_volatile(&raw mut (*self.0).list, node.link(inherits));
        }
    }

    /// Whether a lock is the first in the list, as the last one taken is.
    #[inline]
    pub fn is_first(self, node: &Node, inherits: bool) -> bool {
        // SAFETY: as in `begin`.
        unsafe { (*self.0).list == node.link(inherits) }
    }

    /// Takes the first lock out of the list: what [`List::remove`] does, with less to read.
    #[inline]
    pub fn remove_first(self, node: &Node) {
        let next = node.next.get();
        // SAFETY: as in `insert`.
        unsafe {
            Self::set_prev(next, self.0.expose_provenance());
            ptr::write_volatile(&raw mut (*self.0).list, next);
        }
        compiler_fence(Ordering::SeqCst);
        node.prev.set(0);
        node.next.set(0);
    }

    /// Takes a lock out of the list. One that is in none is left alone.
    #[inline]
    pub fn remove(self, node: &Node) {
        let (prev, next) = (node.prev.get() & !INHERITS, node.next.get());
        if prev == 0 || next == 0 {
            return;
        }
        // SAFETY: as in `insert`. `prev` is the address of a link: the head's, or that of another node.
        unsafe {
            Self::set_prev(next, node.prev.get());
            ptr::write_volatile(ptr::with_exposed_provenance_mut::<usize>(prev), next);
        }
        compiler_fence(Ordering::SeqCst);
        node.prev.set(0);
        node.next.set(0);
    }

    /// What precedes the link `next` points at is its `prev`; the C library keeps one before the head, too.
    ///
    /// # Safety
    /// `next` is a link of the calling thread's list.
    unsafe fn set_prev(next: usize, prev: usize) {
        let next = ptr::with_exposed_provenance_mut::<usize>(next & !INHERITS);
        // SAFETY: promised by the caller.
        unsafe { ptr::write_volatile(next.sub(1), prev) };
    }
}
