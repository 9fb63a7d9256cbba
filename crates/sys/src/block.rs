//! What the C library keeps about each thread, read without a call.
//!
//! ```text
//!   thread pointer + TID_AT:  [ tid ] [ .. ] [ prev ] [ list ] [ offset ] [ pending ]
//!                                                       \ head of the list of robust locks, registered with the kernel
//! ```
//!
//! No header says where that is. So it is made sure, once a process, by what the kernel was told: the head of the list of robust locks and the
//! address of the thread's id, which it clears when the thread ends. Where anything does not fit, nothing is read here, and callers do
//! without: another C library, another processor, another layout.

use crate::head::Head;

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod found {
    use super::Head;
    use crate::head::registered;
    use std::arch::asm;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether this is so here; false while that is not known. That a known place is right the processor predicts; a place that has to be looked up
    /// it would have to read before the id.
    static FITS: AtomicBool = AtomicBool::new(false);

    /// From the thread pointer to the thread's id, in bytes, under glibc 2.36.
    const TID_AT: usize = 720;
    /// To the head of the list of robust locks.
    const HEAD_AT: usize = TID_AT + 16;
    /// `prctl`: where the kernel clears the thread's id when it ends.
    const PR_GET_TID_ADDRESS: i32 = 40;

    /// That it fits.
    #[derive(Clone, Copy)]
    pub struct Block(());

    /// `None` where nothing can be read.
    #[inline]
    pub fn block() -> Option<Block> {
        // ORDERING: Relaxed: that it fits is all there is to know.
        FITS.load(Ordering::Relaxed).then_some(Block(()))
    }

    impl Block {
        /// The calling thread's id.
        #[inline]
        pub fn tid(self) -> u32 {
            let tid: u32;
            // SAFETY: that is the thread's id in the block of every thread, as `find` made sure.
            unsafe {
                asm!("mov {tid:e}, fs:[{at}]", tid = out(reg) tid, at = const TID_AT, options(nostack, preserves_flags, readonly));
            }
            tid
        }

        /// The head of its list of robust locks.
        #[inline]
        pub fn head(self) -> *mut Head {
            std::ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(HEAD_AT))
        }
    }

    #[inline]
    fn thread_pointer() -> usize {
        let pointer: usize;
        // SAFETY: the first word of the block is its own address: that is the processor's convention.
        unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
        pointer
    }

    /// Looks whether it fits, with the caller's block, whose id is `tid`.
    #[cold]
    pub fn find(tid: u32) {
        let Ok(head) = registered() else { return };
        let block = thread_pointer();
        if head.addr() != block.wrapping_add(HEAD_AT) {
            return;
        }
        // SAFETY: from the thread pointer to the head, both of which are in the block, all is mapped.
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
        // SAFETY: `told` is valid for writing. Kernels without this call leave it alone.
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

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod found {
    use super::Head;

    /// There is none.
    #[derive(Clone, Copy)]
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
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::syscall(libc::SYS_gettid) as u32 }
    }

    /// What is read is what the kernel says, or nothing is read.
    fn fits() -> bool {
        block().is_none_or(|block| block.tid() == asked() && Ok(block.head()) == registered())
            && sched::gettid().0 == asked()
    }

    #[test]
    fn every_thread_and_child_reads_its_own() {
        sched::gettid();
        #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
        assert!(block().is_some(), "it is found under glibc");
        assert!(fits());
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(fits)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("a thread")));
        assert!(holds_in_child(fits));
    }
}
