//! The signal that cuts a section short once it is in vain.
//!
//! ```text
//!   slot's word   | thread | attempt | told |            0 0 0 : nothing to tell of
//!
//!   L  enters, tells of itself in its slot's word ... body ........ X cut: begins again
//!   H                                        commits, reads the words, marks this one told, signals L
//! ```
//! The signal decides nothing: a section that it does not reach finds the conflict at its next read or its commit, and one that it reaches is cut only if it is in vain. So a word that is
//! out of date (its thread has ended, its number is another's) costs a signal that does nothing. `cut.c` has the jump.

use crate::ics::{self, Shared, lw_ics_section_t};
use libc::{c_int, c_void};
use std::ffi::c_long;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};

/// `struct cut` of `cut.c`: a section that may be cut. Its thread's alone, and that of handlers there.
#[repr(C)]
pub struct Cut {
    outer: *mut Cut,
    section: AtomicPtr<c_void>,
    is_lost: unsafe extern "C" fn(*const c_void) -> c_int,
    jump: AtomicPtr<c_void>,
    end: AtomicPtr<c_void>,
    mask: u64,
    is_open: AtomicI32,
    inside: AtomicI32,
    note: AtomicI32,
    // From here on Rust's alone.
    thread: u32,
}

#[allow(improper_ctypes)] // Sections are opaque to C.
unsafe extern "C" {
    fn lockwright_cut_current() -> *mut c_void;
    fn lockwright_cut_install(signal: c_int) -> c_int;
    fn lockwright_cut_prepare(cut: *mut Cut, signal: c_int) -> c_int;
    fn lockwright_cut_body(
        cut: *const Cut,
        body: unsafe extern "C" fn(*mut lw_ics_section_t, *mut c_void) -> c_int,
        section: *mut lw_ics_section_t,
        argument: *mut c_void,
        was_cut: *mut c_int,
    ) -> c_int;
}

/// The signal of the process; 0: none was chosen, and no section can be cut.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Whether any section can be.
#[inline]
pub fn is_chosen() -> bool {
    // ORDERING: Relaxed: a thread in a section that may be cut has acquired the choice from the object.
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// The innermost section of the calling thread that may be cut, or null.
fn current() -> &'static AtomicPtr<Cut> {
    // SAFETY: a thread-local word of `cut.c`, a pointer, there as long as the thread, which uses it before it ends.
    unsafe { &*lockwright_cut_current().cast::<AtomicPtr<Cut>>() }
}

/// That the thread is in the library, where its innermost section that may be cut is not; until dropped. Those outside have been told by the entry into that one.
pub struct Inside<'a>(&'a Cut);

impl<'a> Inside<'a> {
    /// `None` where the thread is in no section that may be cut.
    #[inline]
    pub fn of_thread() -> Option<Self> {
        if !is_chosen() {
            return None;
        }
        // SAFETY: what is there is under way: `Cut::during` takes it away at its end.
        unsafe { current().load(Ordering::Relaxed).as_ref() }.map(Self::enter)
    }

    fn enter(cut: &'a Cut) -> Self {
        // ORDERING: Relaxed, here and below: only the thread and its handlers look, and these see it in the order of the text.
        cut.inside.store(cut.inside.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(cut)
    }

    /// Whether a signal came, now or before, that did not cut it.
    pub fn has_note(&self) -> bool {
        self.0.note.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.inside.store(self.0.inside.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

impl Cut {
    /// Executes `update` with the record of a section that may be cut; with `None` where it may not: no signal was chosen, or the thread has blocked it.
    pub fn during<R>(signal: c_int, update: impl FnOnce(Option<&Self>) -> R) -> R {
        struct Ended(*mut Cut);
        impl Drop for Ended {
            fn drop(&mut self) {
                current().store(self.0, Ordering::Relaxed);
            }
        }
        if signal == 0 {
            return update(None);
        }
        let mut cut = Self {
            outer: current().load(Ordering::Relaxed),
            section: AtomicPtr::new(ptr::null_mut()),
            is_lost,
            jump: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            mask: 0,
            is_open: AtomicI32::new(0),
            inside: AtomicI32::new(0),
            note: AtomicI32::new(0),
            thread: 0,
        };
        // SAFETY: the record is valid for writing.
        match u32::try_from(unsafe { lockwright_cut_prepare(&raw mut cut, signal) }) {
            Ok(thread @ 1..) => cut.thread = thread,
            _ => return update(None),
        }
        let cut = &cut;
        let _ended = Ended(cut.outer);
        // ORDERING: Relaxed: for handlers of this thread; the fence has the record written before they find it.
        compiler_fence(Ordering::SeqCst);
        current().store(ptr::from_ref(cut).cast_mut(), Ordering::Relaxed);
        update(Some(cut))
    }

    /// Executes the body of an attempt that has begun; EAGAIN where it was cut.
    ///
    /// # Safety
    /// `section` is one of this thread, to be written; the body is one for it and `argument`.
    pub unsafe fn call(
        &self,
        told: &Told,
        body: unsafe extern "C" fn(*mut lw_ics_section_t, *mut c_void) -> c_int,
        section: *mut lw_ics_section_t,
        argument: *mut c_void,
    ) -> c_int {
        let mut was_cut = 0;
        self.note.store(0, Ordering::Relaxed);
        told.open(self.thread);
        // Who committed before that did not find it.
        // SAFETY: promised by the caller; the record is that of this thread's innermost section.
        let answer = unsafe {
            match is_lost(section.cast()) {
                0 => lockwright_cut_body(self, body, section, argument, &raw mut was_cut),
                _ => libc::EAGAIN,
            }
        };
        told.close();
        if was_cut != 0 {
            told.count();
        }
        answer
    }
}

/// Whether the section cannot commit any more. A handler calls it while the body is under way, and not in the library.
unsafe extern "C" fn is_lost(section: *const c_void) -> c_int {
    // SAFETY: the section of the body, which does not use it now.
    c_int::from(unsafe { ics::check_section(section.cast()) }.is_err())
}

/// What a slot tells of its section, and how many of them were cut.
pub struct Told {
    /// | thread, 32 bits | attempt, 31 bits | whether it was signalled |
    word: AtomicU64,
    cuts: AtomicU64,
}

const TOLD: u64 = 1;
const ATTEMPT: u64 = 0xffff_fffe;

impl Told {
    pub const fn new() -> Self {
        Self { word: AtomicU64::new(0), cuts: AtomicU64::new(0) }
    }

    /// (0, n, _) -> (thread, n + 1, 0)
    fn open(&self, thread: u32) {
        // ORDERING: Relaxed, here and below: a signal more or less; on one processor all is seen in the order of the text, which the fence keeps.
        let attempt = (self.word.load(Ordering::Relaxed) & ATTEMPT).wrapping_add(2) & ATTEMPT;
        self.word.store(u64::from(thread) << 32 | attempt, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// (_, n, _) -> (0, n, 0)
    pub fn close(&self) {
        self.word.store(self.word.load(Ordering::Relaxed) & ATTEMPT, Ordering::Relaxed);
    }

    fn count(&self) {
        self.cuts.store(self.cuts.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }

    /// Signals the section, once an attempt: (thread, n, 0) -> (thread, n, 1); back where the kernel refuses it, and to (0, n, 0) where there is no such thread any more.
    fn signal(&self, signal: c_int) {
        let word = self.word.load(Ordering::Relaxed);
        let thread = (word >> 32) as c_int;
        if thread == 0 || word & TOLD != 0 || !self.becomes(word, word | TOLD) {
            return;
        }
        // The process is asked for anew: in a child of `fork` the word may name a thread of the parent's.
        // SAFETY: take integers. A thread of this process that has the id but no such section finds nothing to do.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, c_long::from(libc::getpid()), thread, signal) };
        if sent != 0 {
            // SAFETY: the C library's own.
            let is_gone = unsafe { *libc::__errno_location() } == libc::ESRCH;
            self.becomes(word | TOLD, if is_gone { word & ATTEMPT } else { word });
        }
    }

    fn becomes(&self, old: u64, new: u64) -> bool {
        self.word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Whoever committed signals the others that are in sections: all of them are in vain.
///
/// BOUND: a signal a slot.
#[inline(never)]
pub fn tell(shared: &Shared, mine: usize, signal: c_int) {
    compiler_fence(Ordering::SeqCst);
    for (_, told) in shared.told.iter().enumerate().filter(|(index, _)| *index != mine) {
        told.signal(signal);
    }
}

/// Makes `signal` that of the process. EBUSY: it has a handler, or another one was chosen.
pub fn announce(signal: c_int) -> c_int {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match SIGNAL.load(Ordering::Relaxed) {
        chosen if chosen == signal => 0,
        0 => {
            // SAFETY: takes an integer.
            let error = unsafe { lockwright_cut_install(signal) };
            if error == 0 {
                // ORDERING: Relaxed: the object that it is chosen for releases it.
                SIGNAL.store(signal, Ordering::Relaxed);
            }
            error
        }
        _ => libc::EBUSY,
    }
}
