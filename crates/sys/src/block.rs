//! The C library's record of the calling thread, read without a system call.
//!
//! ```text
//!   thread pointer + TID_AT:  [ tid ] [ .. ] [ prev ] [ list ] [ offset ] [ pending ]
//!                                                       \ head of the list of robust locks, registered with the kernel
//! ```
//!
//! No header documents this layout. It is therefore verified once in each process against what the C library told the
//! kernel: the head of the list of robust locks, and the address of the thread's id, which the kernel clears when the
//! thread ends. If anything differs (another C library, processor or layout), nothing is read here, and callers use
//! their fallback.

use crate::head::Head;

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]
mod found {
    use super::Head;
    use crate::head::registered;
    use std::arch::asm;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the layout was verified; false until then. The processor predicts the branch on this flag; a layout held
    /// in variables would have to be loaded before the id.
    static FITS: AtomicBool = AtomicBool::new(false);

    /// The distance from the thread pointer to the thread's id, in bytes, in glibc 2.36.
    const TID_AT: usize = 720;
    /// The distance from the thread pointer to the head of the list of robust locks, in bytes.
    const HEAD_AT: usize = TID_AT + 16;
    /// The distance to the link of the announced lock in that head.
    const PENDING_AT: usize = HEAD_AT + std::mem::offset_of!(Head, pending);
    /// The option of `prctl` that returns the address at which the kernel clears the thread's id when the thread ends.
    const PR_GET_TID_ADDRESS: i32 = 40;

    /// Proof that the layout was verified.
    #[derive(Clone, Copy, Debug)]
    pub struct Block(());

    /// Returns `None` if the layout is unknown.
    #[inline]
    pub fn block() -> Option<Block> {
        // ORDERING: Relaxed: the flag publishes no other data.
        FITS.load(Ordering::Relaxed).then_some(Block(()))
    }

    impl Block {
        /// The calling thread's id.
        #[inline]
        pub fn tid(self) -> u32 {
            let tid: u32;
            // SAFETY: `find` verified that the block of every thread has the thread's id at this place.
            unsafe {
                asm!("mov {tid:e}, fs:[{at}]", tid = out(reg) tid, at = const TID_AT, options(nostack, preserves_flags, readonly));
            }
            tid
        }

        /// The head of the calling thread's list of robust locks.
        #[inline]
        pub fn head(self) -> *mut Head {
            std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(HEAD_AT))
        }
    }

    // The address of the head has to be loaded. These functions do not wait for it, because theirs
    // are relative to the thread pointer.
    impl Block {
        /// The first link of the list.
        #[inline]
        pub(crate) fn first(self) -> usize {
            let link: usize;
            // SAFETY: `find` verified that the block of every thread has the head at this place, which begins with the
            // first link.
            unsafe {
                asm!("mov {link}, fs:[{at}]", link = out(reg) link, at = const HEAD_AT, options(nostack, preserves_flags, readonly));
            }
            link
        }

        /// Sets the first link of the list.
        #[inline]
        pub(crate) fn set_first(self, link: usize) {
            // SAFETY: `find` verified that the block of every thread has the head at this place. Only the thread writes
            // this field of it; the kernel reads it when the thread ends.
            unsafe {
                asm!("mov qword ptr fs:[{at}], {link}", link = in(reg) link, at = const HEAD_AT, options(nostack, preserves_flags));
            }
        }

        /// Sets the link of the announced lock.
        #[inline]
        pub(crate) fn announce(self, link: usize) {
            // SAFETY: `find` verified that the block of every thread has the head at this place. Only the thread writes
            // this field of it; the kernel reads it when the thread ends.
            unsafe {
                asm!("mov qword ptr fs:[{at}], {link}", link = in(reg) link, at = const PENDING_AT, options(nostack, preserves_flags));
            }
        }
    }

    #[inline]
    fn thread_pointer() -> usize {
        let pointer: usize;
        // SAFETY: by the convention of the processor's ABI, the first word of the block is its own address.
        unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
        pointer
    }

    /// Verifies the layout against the calling thread's block; `tid` is the id of that thread.
    #[cold]
    pub fn find(tid: u32) {
        let Ok(head) = registered() else { return };
        let block = thread_pointer();
        if head.addr() != block.wrapping_add(HEAD_AT) {
            return;
        }
        // SAFETY: the thread pointer and the head are both in the block, so everything between them is mapped.
        let (seen, prev, list) = unsafe {
            let words = head.cast::<usize>();
            (
                head.cast::<u32>().sub((HEAD_AT - TID_AT) / 4).read_volatile(),
                words.sub(1).read_volatile(),
                words.read_volatile(),
            )
        };
        let is_empty = list == head.addr();
        let mut told: *const u32 = std::ptr::null();
        // SAFETY: `told` is valid for writing. A kernel without this call leaves it unchanged.
        unsafe { libc::prctl(PR_GET_TID_ADDRESS, &raw mut told, 0_usize, 0_usize, 0_usize) };
        if seen == tid
            && (!is_empty || prev == head.addr())
            && (told.is_null() || told.addr() == block.wrapping_add(TID_AT))
        {
            // ORDERING: as in `block`.
            FITS.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu")))]
mod found {
    use super::Head;

    /// The type has no values: the layout is unknown here.
    #[derive(Clone, Copy, Debug)]
    pub enum Block {}

    #[inline]
    pub fn block() -> Option<Block> {
        None
    }

    impl Block {
        #[inline]
        pub fn tid(self) -> u32 {
            match self {}
        }

        #[inline]
        pub fn head(self) -> *mut Head {
            match self {}
        }
        #[inline]
        pub(crate) fn first(self) -> usize {
            match self {}
        }
        #[inline]
        pub(crate) fn set_first(self, _: usize) {
            match self {}
        }
        #[inline]
        pub(crate) fn announce(self, _: usize) {
            match self {}
        }
    }

    pub fn find(_tid: u32) {}
}

pub(crate) use found::find;
pub use found::{Block, block};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::registered;
    use crate::process::holds_in_child;
    use crate::sched;

    fn asked() -> u32 {
        // SAFETY: the call has no arguments and cannot fail.
        unsafe { libc::syscall(libc::SYS_gettid) as u32 }
    }

    /// Whether the values read equal the kernel's answers, or nothing is read.
    fn fits() -> bool {
        block().is_none_or(|block| block.tid() == asked() && Ok(block.head()) == registered())
            && sched::gettid().0 == asked()
    }

    #[test]
    fn every_thread_and_child_reads_its_own_block() {
        sched::gettid();
        #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]
        assert!(block().is_some(), "the layout is not verified under glibc");
        assert!(fits());
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(fits)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("a thread")));
        assert!(holds_in_child(fits));
    }
}
