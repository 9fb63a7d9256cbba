//! What the C library keeps about each thread, read without a call.
//!
//! ```text
//!   thread pointer + offset:  [ tid ] [ .. ] [ prev ] [ list ] [ offset ] [ pending ]
//!                                                       \ head of the list of robust locks, registered with the kernel
//! ```
//!
//! No header says where that is, so it is found, once a process, from what the kernel was told: the head of the list of robust locks and the
//! address of the thread's id, which it clears when the thread ends. Where anything does not fit, nothing is read here, and callers do
//! without: another C library, another processor, another layout.

use super::robust::Head;

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod found {
    use super::Head;
    use crate::sys::robust;
    use std::arch::asm;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// From the thread pointer to the thread's id, in bytes; 0 while that is not known.
    static OFFSET: AtomicUsize = AtomicUsize::new(0);

    /// From the id to the head of the list of robust locks.
    const TO_HEAD: usize = 16;
    /// The C library's block is smaller.
    const OFFSET_MAX: usize = 8192;
    /// `prctl`: where the kernel clears the thread's id when it ends.
    const PR_GET_TID_ADDRESS: i32 = 40;

    #[inline]
    pub(crate) fn tid() -> Option<u32> {
        // ORDERING: Relaxed: the offset is all there is to know.
        let offset = OFFSET.load(Ordering::Relaxed);
        if offset == 0 {
            return None;
        }
        let tid: u32;
        // SAFETY: the offset is that of a word in the block of every thread, as `find` made sure.
        unsafe {
            asm!("mov {tid:e}, fs:[{offset}]", tid = out(reg) tid, offset = in(reg) offset, options(nostack, preserves_flags, readonly));
        }
        Some(tid)
    }

    #[inline]
    pub(crate) fn head() -> Option<*mut Head> {
        // ORDERING: as in `tid`.
        match OFFSET.load(Ordering::Relaxed) {
            0 => None,
            offset => {
                Some(std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(offset).wrapping_add(TO_HEAD)))
            }
        }
    }

    #[inline]
    fn thread_pointer() -> usize {
        let pointer: usize;
        // SAFETY: the first word of the block is its own address: that is the processor's convention.
        unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
        pointer
    }

    /// Looks where it is, with the caller's block, whose id is `tid`.
    #[cold]
    pub(crate) fn find(tid: u32) {
        let Ok(head) = robust::registered() else { return };
        let tid_at = head.addr().wrapping_sub(TO_HEAD);
        let offset = tid_at.wrapping_sub(thread_pointer());
        if offset == 0 || offset >= OFFSET_MAX {
            return;
        }
        // SAFETY: from the thread pointer to the head, both of which are in the block, all is mapped.
        let (seen, prev, list) = unsafe {
            let words = head.cast::<usize>();
            (head.cast::<u32>().sub(TO_HEAD / 4).read_volatile(), words.sub(1).read_volatile(), words.read_volatile())
        };
        let is_empty = list == head.addr();
        let mut told: *const u32 = std::ptr::null();
        // SAFETY: `told` is valid for writing. Kernels without this call leave it alone.
        unsafe { libc::prctl(PR_GET_TID_ADDRESS, &raw mut told) };
        if seen == tid && (!is_empty || prev == head.addr()) && (told.is_null() || told.addr() == tid_at) {
            // ORDERING: as in `tid`.
            OFFSET.store(offset, Ordering::Relaxed);
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod found {
    use super::Head;

    #[inline]
    pub(crate) fn tid() -> Option<u32> {
        None
    }

    #[inline]
    pub(crate) fn head() -> Option<*mut Head> {
        None
    }

    pub(crate) fn find(_tid: u32) {}
}

pub(super) use found::{find, head, tid};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{fork, robust, sched};

    fn asked() -> u32 {
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::syscall(libc::SYS_gettid) as u32 }
    }

    /// What is read is what the kernel says, or nothing is read.
    fn fits() -> bool {
        tid().is_none_or(|tid| tid == asked())
            && head().is_none_or(|head| Ok(head) == robust::registered())
            && sched::gettid().0 == asked()
    }

    #[test]
    fn every_thread_and_child_reads_its_own() {
        sched::gettid();
        #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
        assert!(tid().is_some(), "it is found under glibc");
        assert!(fits());
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(fits)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("a thread")));
        assert!(fork::holds_in_child(fits));
    }
}
