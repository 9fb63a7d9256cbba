//! The signal that cuts an invalidated section short.
//!
//! ```text
//!   slot's word   | thread | attempt | signalled |       0 0 0: no section to signal
//!
//!   L  enters, publishes itself in its slot's word ... body ........ X cut: begins again
//!   H                                     commits, reads the words, marks this one signalled, signals L
//! ```
//! The signal decides nothing. A section that it does not reach finds the conflict at its next read or its commit, and
//! a section that it reaches is cut only if it is invalidated. So a word that is out of date (its thread has ended, or
//! its id belongs to another thread) costs a signal that has no effect. The jump is in `cut.c`.

use crate::ics_types::lw_ics_section_t;
use libc::{c_int, c_void};
use std::ffi::c_long;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};

/// A section that may be cut: `struct cut` of `cut.c`. Only its thread and the handlers on that thread use it.
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
    // Only Rust uses the fields from here on.
    thread: u32,
}

#[allow(improper_ctypes)] // Sections are opaque to C.
unsafe extern "C" {
    fn lockwright_cut_current() -> *mut c_void;
    fn lockwright_cut_install(signal: c_int) -> c_int;
    fn lockwright_cut_prepare(cut: *mut Cut, signal: c_int) -> c_int;
    fn lockwright_cut_body(
        cut: *const Cut,
        body: unsafe extern "C-unwind" fn(*mut lw_ics_section_t, *mut c_void) -> c_int,
        section: *mut lw_ics_section_t,
        argument: *mut c_void,
        was_cut: *mut c_int,
    ) -> c_int;
}

/// The signal of the process; 0 if none was chosen, so that no section can be cut.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Returns whether sections can be cut.
#[inline]
pub fn is_chosen() -> bool {
    // ORDERING: Relaxed: a thread in a section that may be cut has acquired the choice from the object.
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// Returns the word that is not 0 once a signal is chosen.
pub fn chosen() -> &'static AtomicI32 {
    &SIGNAL
}

/// Returns the innermost section of the calling thread that may be cut, or null.
fn current() -> &'static AtomicPtr<Cut> {
    // SAFETY: `cut.c` returns the address of a thread-local pointer, which lives as long as the thread, and only this
    // thread and its handlers use it.
    unsafe { &*lockwright_cut_current().cast::<AtomicPtr<Cut>>() }
}

/// Marks that the thread is in the library, where its innermost section that may be cut must not be cut, until dropped.
/// The entry into that section marked the outer ones already.
pub struct Inside<'a>(&'a Cut);

impl<'a> Inside<'a> {
    /// Returns `None` if the thread is in no section that may be cut.
    #[inline]
    pub fn of_thread() -> Option<Self> {
        if !is_chosen() {
            return None;
        }
        // SAFETY: it is null, or `Cut::during` stored it there and removes it when the section ends; so that section is
        // in progress.
        unsafe { current().load(Ordering::Relaxed).as_ref() }.map(Self::enter)
    }

    fn enter(cut: &'a Cut) -> Self {
        // ORDERING: Relaxed, here and below: only the thread and its handlers look, and these see it in program order.
        cut.inside.store(cut.inside.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(cut)
    }

    /// Returns whether a signal came, now or before, that did not cut the section.
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
    /// Executes `update` with the record of a section that may be cut, or with `None` if it may not: no signal was
    /// chosen, or the thread has blocked it.
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
        // ORDERING: Relaxed: for handlers of this thread. The fence completes the record before they can find it.
        compiler_fence(Ordering::SeqCst);
        current().store(ptr::from_ref(cut).cast_mut(), Ordering::Relaxed);
        update(Some(cut))
    }

    /// Executes the body of an attempt that has begun. Returns EAGAIN if the body was cut.
    ///
    /// # Safety
    /// `section` is a section of this thread that writes, and `body` may be called with it and with `argument`.
    pub unsafe fn call(
        &self,
        told: &Told,
        body: unsafe extern "C-unwind" fn(*mut lw_ics_section_t, *mut c_void) -> c_int,
        section: *mut lw_ics_section_t,
        argument: *mut c_void,
    ) -> c_int {
        let mut was_cut = 0;
        self.note.store(0, Ordering::Relaxed);
        told.open(self.thread);
        // A thread that committed before `open` did not see this section, so look for its commit here.
        // SAFETY: by the contract of `call`, the section belongs to this thread and `body` may be called with it. The
        // record is that of this thread's innermost section, and outlives the call.
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

/// Returns whether the section can no longer commit. A handler calls it while the body executes outside the library.
unsafe extern "C" fn is_lost(section: *const c_void) -> c_int {
    // SAFETY: `call` passes the section of its body. The handler calls this while the body executes outside the
    // library, so no reference to the section is in use.
    let section = unsafe { &*section.cast::<lw_ics_section_t>() };
    c_int::from(section.check().is_err())
}

/// The section that a slot publishes, and the number of its sections that were cut.
pub struct Told {
    /// | thread, 32 bits | attempt, 31 bits | signalled, 1 bit |
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
        // ORDERING: Relaxed, here and below: at worst a signal too many or too few. On one CPU all of it is seen in
        // program order, which the fence keeps.
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

    /// Signals the section, once for each attempt: (thread, n, 0) -> (thread, n, 1). If the kernel refuses, the word
    /// changes back, or to (0, n, 0) if the thread no longer exists.
    fn signal(&self, signal: c_int) {
        let word = self.word.load(Ordering::Relaxed);
        let thread = (word >> 32) as c_int;
        if thread == 0 || word & TOLD != 0 || !self.becomes(word, word | TOLD) {
            return;
        }
        // Asks for the process id each time: in a child of `fork` the word may name a thread of the parent.
        // SAFETY: the call takes integers. If another thread of this process has the id by now, its handler finds no
        // such section and does nothing.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, c_long::from(libc::getpid()), thread, signal) };
        if sent != 0 {
            // SAFETY: the C library returns the address of the calling thread's own error number.
            let is_gone = unsafe { *libc::__errno_location() } == libc::ESRCH;
            self.becomes(word | TOLD, if is_gone { word & ATTEMPT } else { word });
        }
    }

    fn becomes(&self, old: u64, new: u64) -> bool {
        self.word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Signals all other threads that are in sections: a commit has invalidated all of these.
///
/// BOUND: one signal for each slot.
#[inline(never)]
pub fn tell(slots: &[Told], mine: usize, signal: c_int) {
    compiler_fence(Ordering::SeqCst);
    for (_, told) in slots.iter().enumerate().filter(|(index, _)| *index != mine) {
        told.signal(signal);
    }
}

/// Makes `signal` the signal of the process. Returns EBUSY if it has a handler, or if another signal was chosen before.
pub fn announce(signal: c_int) -> c_int {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match SIGNAL.load(Ordering::Relaxed) {
        chosen if chosen == signal => 0,
        0 => {
            // SAFETY: the call takes an integer, and installs a handler of this library, which is never unloaded.
            let error = unsafe { lockwright_cut_install(signal) };
            if error == 0 {
                // ORDERING: Relaxed: the object for which it is chosen publishes it with Release.
                SIGNAL.store(signal, Ordering::Relaxed);
            }
            error
        }
        _ => libc::EBUSY,
    }
}
