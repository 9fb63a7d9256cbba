//! `lw_ics_*`: interruptible critical sections.

use crate::errno::guarded;
use libc::{c_int, c_void};
use lockwright::ics::{Ics, Kind, Slot, Stop, Strategy, Transaction, Var, View, Word};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Most words of an object.
pub const LW_ICS_WORDS: u32 = 64;
/// Most slots of an object: threads that write.
pub const LW_ICS_SLOTS: u32 = 16;
/// Most words that one section writes.
pub const LW_ICS_WRITES: u32 = 16;

/// Restartable sequences for threads of one processor where there are some, else the processor's compare-and-swap. Right wherever threads are: when one enters on another
/// processor, the object goes over to compare-and-swap.
pub const LW_ICS_AUTO: u32 = 0;
/// The processor's compare-and-swap: for threads of several processors.
pub const LW_ICS_LOCKED: u32 = 1;
/// The same without LOCK prefix. All threads that enter must be bound to one processor, and nobody may move them: otherwise updates get lost.
pub const LW_ICS_PLAIN: u32 = 2;
/// Restartable sequences; only `lw_ics_commit` answers it.
pub const LW_ICS_RSEQ: u32 = 3;

/// An object: `LW_ICS_WORDS` words of 64 bits, zeros at first, that sections read and write. Initialise it by `lw_ics_init`, and never move or copy it, nor
/// share it between processes: its words are in memory of the process that made it. Its fields are nobody's business.
#[repr(C)]
pub struct lw_ics_t {
    lw_object: *const c_void,
    lw_check: u32,
    lw_spare: u32,
}

/// The right to write sections: one thread's at a time, or that of several which a lock serialises. Its fields are nobody's business.
#[repr(C)]
pub struct lw_ics_slot_t {
    lw_object: *const c_void,
    lw_index: u32,
    lw_check: u32,
}

/// A section under way; its body alone has it.
pub struct lw_ics_section_t(Section<'static>);

/// What a slot did.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_ics_stats_t {
    /// Sections entered, each attempt counted.
    pub entries: u64,
    /// Commits.
    pub commits: u64,
    /// Commits refused because another was first.
    pub conflicts: u64,
    /// Attempts given up at a read that found another commit.
    pub restarts: u64,
    /// Sections of others whose writes it performed.
    pub helped: u64,
}

/// What a section does. It may be executed several times, each time from its beginning, so it should do nothing but read, compute, write, and leave results where `argument`
/// says. It reads and writes the object by `lw_ics_read` and `lw_ics_write` alone, and answers at once what they answer if that is not 0. It may take
/// time, call other functions, and enter sections of other objects; it must not enter one of the same object, close the slot, or leave by `longjmp` or a C++ exception.
///
/// 0: commit. EAGAIN: begin again. Another number: nothing is changed, and the caller gets it.
pub type lw_ics_body_t = Option<unsafe extern "C" fn(section: *mut lw_ics_section_t, argument: *mut c_void) -> c_int>;

const WORDS: usize = LW_ICS_WORDS as usize;
const SLOTS: usize = LW_ICS_SLOTS as usize;
const WRITES: usize = LW_ICS_WRITES as usize;

type Object = Ics<[Word; WORDS], SLOTS, WRITES, Strategy>;

enum Section<'s> {
    Writes(&'s mut Transaction<'s, [Word; WORDS], SLOTS, WRITES, Strategy>),
    Queries(&'s View<'s, [Word; WORDS], SLOTS, WRITES, Strategy>),
}

const OBJECT_CHECK: u32 = 0x4c57_6963;
const SLOT_CHECK: u32 = 0x4c57_736c;

/// The check value at a place, as an atomic: garbage may be looked at by one thread while another makes an object of it.
///
/// # Safety
/// Aligned, and memory that stays for the call.
unsafe fn check<'a>(place: *const u32) -> &'a AtomicU32 {
    // SAFETY: promised by the caller.
    unsafe { &*place.cast::<AtomicU32>() }
}

/// # Safety
/// Null, misaligned, or memory of a `lw_ics_t` that stays for the call.
unsafe fn object<'a>(ics: *const lw_ics_t) -> Option<&'a Object> {
    if ics.is_null() || !ics.is_aligned() {
        return None;
    }
    // SAFETY: promised by the caller. With the check value, `lw_object` is what `lw_ics_init` put there.
    unsafe {
        // ORDERING: Relaxed: who made it made it known.
        if check(&raw const (*ics).lw_check).load(Ordering::Relaxed) != OBJECT_CHECK {
            return None;
        }
        (*ics).lw_object.cast::<Object>().as_ref()
    }
}

/// # Safety
/// Null, misaligned, or memory of a `lw_ics_slot_t` that stays for the call, and whose object is not destroyed.
unsafe fn slot<'a>(
    slot: *const lw_ics_slot_t,
) -> Option<ManuallyDrop<Slot<'a, [Word; WORDS], SLOTS, WRITES, Strategy>>> {
    if slot.is_null() || !slot.is_aligned() {
        return None;
    }
    // SAFETY: promised by the caller. With the check value, the fields are what `lw_ics_slot_open` put there: a slot that it forgot, and that the header asks
    // one thread at a time to use.
    unsafe {
        // ORDERING: Relaxed: who made it made it known.
        if check(&raw const (*slot).lw_check).load(Ordering::Relaxed) != SLOT_CHECK {
            return None;
        }
        let object = (*slot).lw_object.cast::<Object>().as_ref()?;
        object.forgotten_slot((*slot).lw_index as usize).map(ManuallyDrop::new)
    }
}

fn of_stop(stop: Stop) -> c_int {
    match stop {
        Stop::Conflict => libc::EAGAIN,
        Stop::Full => libc::ENOSPC,
        Stop::NoSuchWord => libc::EINVAL,
        _ => libc::ECANCELED,
    }
}

/// Executes a body in a section, and says how it is to end; what it answered is kept.
fn execute(body: impl FnOnce() -> c_int, answer: &mut c_int) -> Result<(), Stop> {
    *answer = body();
    match *answer {
        0 => Ok(()),
        libc::EAGAIN => Err(Stop::Conflict),
        _ => Err(Stop::Cancelled),
    }
}

fn of_ended(ended: Result<(), Stop>, answer: c_int) -> c_int {
    match ended {
        Ok(()) => 0,
        Err(Stop::Cancelled) => answer,
        Err(stop) => of_stop(stop),
    }
}

/// Makes an object in `*ics`, whatever was there, with `commit` one of `LW_ICS_AUTO`, `LW_ICS_LOCKED`, `LW_ICS_PLAIN`, for threads of the processor `cpu` (its Linux number; it
/// counts with `LW_ICS_AUTO` alone). Allocates; nothing else of these does.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_init(ics: *mut lw_ics_t, commit: u32, cpu: u32) -> c_int {
    guarded(|| {
        let strategy = match commit {
            LW_ICS_AUTO => Strategy::for_cpu(cpu),
            LW_ICS_LOCKED => Strategy::locked(),
            // SAFETY: the header asks that all threads be bound to one processor.
            LW_ICS_PLAIN => unsafe { Strategy::plain() },
            _ => return libc::EINVAL,
        };
        if ics.is_null() || !ics.is_aligned() {
            return libc::EINVAL;
        }
        let object = Box::new(Object::with([const { Word::new(0) }; WORDS], strategy));
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe {
            ics.write(lw_ics_t { lw_object: Box::into_raw(object).cast(), lw_check: OBJECT_CHECK, lw_spare: 0 });
        }
        0
    })
}

/// Ends an object: nobody is inside, all slots are closed, and nobody uses it from then on.
///
/// EINVAL: it is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_destroy(ics: *mut lw_ics_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        if unsafe { object(ics) }.is_none() {
            return libc::EINVAL;
        }
        // SAFETY: it is an object; made by `lw_ics_init` in a box, and nobody uses it any more.
        unsafe {
            // ORDERING: Relaxed: who destroys it made sure that nobody else uses it.
            check(&raw const (*ics).lw_check).store(0, Ordering::Relaxed);
            drop(Box::from_raw((*ics).lw_object.cast::<Object>().cast_mut()));
        }
        0
    })
}

/// How commits are decided now: `LW_ICS_LOCKED`, `LW_ICS_PLAIN`, or `LW_ICS_RSEQ`.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_commit(ics: *const lw_ics_t, commit: *mut u32) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(object) = (unsafe { object(ics) }) else { return libc::EINVAL };
        if commit.is_null() || !commit.is_aligned() {
            return libc::EINVAL;
        }
        let strategy = object.commit();
        let now = match strategy.kind() {
            Kind::Locked => LW_ICS_LOCKED,
            Kind::Plain => LW_ICS_PLAIN,
            Kind::Rseq if strategy.rseq().is_some_and(lockwright::ics::Rseq::is_at_home) => LW_ICS_RSEQ,
            Kind::Rseq => LW_ICS_LOCKED,
        };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { commit.write(now) };
        0
    })
}

/// Takes a slot of an object into `*slot`.
///
/// EAGAIN: all `LW_ICS_SLOTS` are taken. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_open(ics: *const lw_ics_t, slot: *mut lw_ics_slot_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(object) = (unsafe { object(ics) }) else { return libc::EINVAL };
        if slot.is_null() || !slot.is_aligned() {
            return libc::EINVAL;
        }
        let Some(claimed) = object.slot() else { return libc::EAGAIN };
        let index = claimed.index() as u32;
        std::mem::forget(claimed);
        let opened =
            lw_ics_slot_t { lw_object: std::ptr::from_ref(object).cast(), lw_index: index, lw_check: SLOT_CHECK };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { slot.write(opened) };
        0
    })
}

/// Gives a slot back. That of a thread that has ended, wherever it was, may be closed by another one, after it has joined it.
///
/// EINVAL: it is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_close(slot: *mut lw_ics_slot_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        match unsafe { self::slot(slot) } {
            None => libc::EINVAL,
            Some(claimed) => {
                // SAFETY: it is a slot.
                // ORDERING: Relaxed: who closes it made sure that nobody else uses it.
                unsafe { check(&raw const (*slot).lw_check).store(0, Ordering::Relaxed) };
                drop(ManuallyDrop::into_inner(claimed));
                0
            }
        }
    })
}

/// Executes `body` in a section, again and again until no other section commits in between, and commits what it wrote. Never waits. Makes no
/// system call, but for one of a thread that finds an object of `LW_ICS_AUTO` on another processor (`membarrier`); where the kernel refuses that, the process is aborted.
///
/// 0: committed. ENOSPC: it wrote more than `LW_ICS_WRITES` words. EINVAL: an argument is not one. Otherwise what the body answered; nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_update(slot: *mut lw_ics_slot_t, body: lw_ics_body_t, argument: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let (Some(mut slot), Some(body)) = (unsafe { self::slot(slot) }, body) else { return libc::EINVAL };
        let mut answer = 0;
        let ended = slot.update(|transaction| {
            // SAFETY: only the lifetimes are changed: the body has it for this call alone, as the header says.
            let mut section = lw_ics_section_t(Section::Writes(unsafe {
                std::mem::transmute::<&mut Transaction<'_, _, _, _, _>, &mut Transaction<'_, _, _, _, _>>(transaction)
            }));
            // SAFETY: the header asks for a function of this type.
            execute(|| unsafe { body(&raw mut section, argument) }, &mut answer)
        });
        of_ended(ended, answer)
    })
}

/// Executes `body`, which must not write, in a section: all that it reads was so at one instant. Needs no slot, and makes nobody begin again.
///
/// 0: done. EINVAL: an argument is not one. Otherwise what the body answered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_query(ics: *const lw_ics_t, body: lw_ics_body_t, argument: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let (Some(object), Some(body)) = (unsafe { object(ics) }, body) else { return libc::EINVAL };
        let mut answer = 0;
        let ended = object.query(|view| {
            // SAFETY: as in `lw_ics_update`.
            let mut section = lw_ics_section_t(Section::Queries(unsafe {
                std::mem::transmute::<&View<'_, _, _, _, _>, &View<'_, _, _, _, _>>(view)
            }));
            // SAFETY: the header asks for a function of this type.
            execute(|| unsafe { body(&raw mut section, argument) }, &mut answer)
        });
        of_ended(ended, answer)
    })
}

/// Reads a word (0 to `LW_ICS_WORDS` - 1) in a section: as the section wrote it, or as it was when it began. With all that was read before, it was so at one instant.
///
/// 0: it is in `*value`. EAGAIN: another section committed meanwhile; the body answers EAGAIN, too. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_read(section: *mut lw_ics_section_t, word: u32, value: *mut u64) -> c_int {
    guarded(|| {
        if section.is_null() || value.is_null() || !value.is_aligned() {
            return libc::EINVAL;
        }
        let var = Var::<u64>::new(word as usize);
        // SAFETY: the header asks for the section that the body was given, during the body.
        let read = match unsafe { &(*section).0 } {
            Section::Writes(transaction) => transaction.read(var),
            Section::Queries(view) => view.read(var),
        };
        match read {
            Ok(read) => {
                // SAFETY: looked at just now; the header's head asks for the rest.
                unsafe { value.write(read) };
                0
            }
            Err(stop) => of_stop(stop),
        }
    })
}

/// Whether a section can still commit: to be asked now and then by a long body, so as not to work on in vain.
///
/// 0: so far. EAGAIN: another section committed meanwhile; the body answers EAGAIN, too. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_check(section: *mut lw_ics_section_t) -> c_int {
    guarded(|| {
        if section.is_null() {
            return libc::EINVAL;
        }
        // SAFETY: as in `lw_ics_read`.
        let checked = match unsafe { &(*section).0 } {
            Section::Writes(transaction) => transaction.check(),
            Section::Queries(view) => view.check(),
        };
        checked.map_or_else(of_stop, |()| 0)
    })
}

/// Writes a word in a section. Nobody sees it before the section has committed.
///
/// ENOSPC: more than `LW_ICS_WRITES` words. EPERM: the section is a query. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_write(section: *mut lw_ics_section_t, word: u32, value: u64) -> c_int {
    guarded(|| {
        if section.is_null() {
            return libc::EINVAL;
        }
        // SAFETY: as in `lw_ics_read`.
        match unsafe { &mut (*section).0 } {
            Section::Queries(_) => libc::EPERM,
            Section::Writes(transaction) => match transaction.write(Var::new(word as usize), value) {
                Ok(()) => 0,
                Err(stop) => of_stop(stop),
            },
        }
    })
}

/// What a slot did, whoever had it.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_stats(slot: *const lw_ics_slot_t, stats: *mut lw_ics_stats_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(slot) = (unsafe { self::slot(slot) }) else { return libc::EINVAL };
        if stats.is_null() || !stats.is_aligned() {
            return libc::EINVAL;
        }
        let did = slot.stats();
        let did = lw_ics_stats_t {
            entries: did.entries,
            commits: did.commits,
            conflicts: did.conflicts,
            restarts: did.restarts,
            helped: did.helped,
        };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { stats.write(did) };
        0
    })
}
