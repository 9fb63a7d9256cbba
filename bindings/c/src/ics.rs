//! `lw_ics_*`: interruptible critical sections.

use crate::cut::{self, Cut, Inside, Told};
use crate::errno::guarded;
use libc::{c_int, c_void};
use lockwright::ics::{Ics, Kind, Stop, Strategy, Transaction, Var, View, Word, Writer};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

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
    /// Of `restarts`, those that the signal cut short.
    pub cuts: u64,
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

/// What a `lw_ics_t` leads to.
pub struct Shared {
    object: Object,
    /// What cuts sections in vain; 0: nothing does.
    pub signal: AtomicI32,
    /// Of each slot.
    pub told: [Told; SLOTS],
}

/// A slot of C's.
type Kept<'a> = ManuallyDrop<Writer<'a, [Word; WORDS], SLOTS, WRITES, Strategy>>;

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
unsafe fn object<'a>(ics: *const lw_ics_t) -> Option<&'a Shared> {
    if ics.is_null() || !ics.is_aligned() {
        return None;
    }
    // SAFETY: promised by the caller. With the check value, `lw_object` is what `lw_ics_init` put there.
    unsafe {
        // ORDERING: Relaxed: who made it made it known.
        if check(&raw const (*ics).lw_check).load(Ordering::Relaxed) != OBJECT_CHECK {
            return None;
        }
        (*ics).lw_object.cast::<Shared>().as_ref()
    }
}

/// # Safety
/// Null, misaligned, or memory of a `lw_ics_slot_t` that stays for the call, and whose object is not destroyed.
unsafe fn slot<'a>(slot: *const lw_ics_slot_t) -> Option<(&'a Shared, Kept<'a>)> {
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
        let shared = (*slot).lw_object.cast::<Shared>().as_ref()?;
        let slot = shared.object.forgotten_writer((*slot).lw_index as usize)?;
        Some((shared, ManuallyDrop::new(slot)))
    }
}

impl lw_ics_section_t {
    fn check(&self) -> Result<(), Stop> {
        match &self.0 {
            Section::Writes(transaction) => transaction.check(),
            Section::Queries(view) => view.check(),
        }
    }
}

/// Whether a section can still commit.
///
/// # Safety
/// It is one, and nobody writes it meanwhile.
pub unsafe fn check_section(section: *const lw_ics_section_t) -> Result<(), Stop> {
    // SAFETY: promised by the caller.
    unsafe { &*section }.check()
}

/// What a body asks for. A signal that comes meanwhile, and cannot cut it here, is answered on the way out.
///
/// # Safety
/// Null, or a section that is under way.
#[inline]
unsafe fn in_section(section: *mut lw_ics_section_t, ask: impl FnOnce(&mut lw_ics_section_t) -> c_int) -> c_int {
    if section.is_null() {
        return libc::EINVAL;
    }
    if cut::is_chosen() {
        // SAFETY: promised by the caller.
        return unsafe { in_watched_section(section, ask) };
    }
    // SAFETY: promised by the caller.
    guarded(|| ask(unsafe { &mut *section }))
}

/// # Safety
/// A section that is under way.
#[cold]
#[inline(never)]
unsafe fn in_watched_section(
    section: *mut lw_ics_section_t,
    ask: impl FnOnce(&mut lw_ics_section_t) -> c_int,
) -> c_int {
    // Around all the rest: where the body can be cut, nothing must be undone, and nobody uses the section.
    let inside = Inside::of_thread();
    // SAFETY: promised by the caller.
    let section = unsafe { &mut *section };
    guarded(|| match ask(section) {
        0 if inside.as_ref().is_some_and(Inside::has_note) => section.check().map_or_else(of_stop, |()| 0),
        answer => answer,
    })
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
        let object = Object::with([const { Word::new(0) }; WORDS], strategy);
        let shared = Box::new(Shared { object, signal: AtomicI32::new(0), told: [const { Told::new() }; SLOTS] });
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe {
            ics.write(lw_ics_t { lw_object: Box::into_raw(shared).cast(), lw_check: OBJECT_CHECK, lw_spare: 0 });
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
            drop(Box::from_raw((*ics).lw_object.cast::<Shared>().cast_mut()));
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
        let Some(shared) = (unsafe { object(ics) }) else { return libc::EINVAL };
        if commit.is_null() || !commit.is_aligned() {
            return libc::EINVAL;
        }
        let strategy = shared.object.commit();
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
        let Some(shared) = (unsafe { object(ics) }) else { return libc::EINVAL };
        if slot.is_null() || !slot.is_aligned() {
            return libc::EINVAL;
        }
        let Some(claimed) = shared.object.writer() else { return libc::EAGAIN };
        let index = claimed.index() as u32;
        std::mem::forget(claimed);
        let opened = lw_ics_slot_t { lw_object: ptr::from_ref(shared).cast(), lw_index: index, lw_check: SLOT_CHECK };
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
            Some((shared, claimed)) => {
                // SAFETY: it is a slot.
                // ORDERING: Relaxed: who closes it made sure that nobody else uses it.
                unsafe { check(&raw const (*slot).lw_check).store(0, Ordering::Relaxed) };
                // Its thread may have ended in a section.
                shared.told[claimed.index()].close();
                drop(ManuallyDrop::into_inner(claimed));
                0
            }
        }
    })
}

/// Executes `body` in a section, again and again until no other section commits in between, and commits what it wrote. Never waits. Makes no
/// system call, but for one of a thread that finds an object of `LW_ICS_AUTO` on another processor (`membarrier`); where the kernel refuses that, the process is aborted. And the
/// signals that `lw_ics_set_signal` asks for.
///
/// 0: committed. ENOSPC: it wrote more than `LW_ICS_WRITES` words. EINVAL: an argument is not one. Otherwise what the body answered; nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_update(slot: *mut lw_ics_slot_t, body: lw_ics_body_t, argument: *mut c_void) -> c_int {
    if cut::is_chosen() {
        // SAFETY: the header's head asks for it.
        return unsafe { watched_update(slot, body, argument, false) };
    }
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let (Some((_, mut slot)), Some(body)) = (unsafe { self::slot(slot) }, body) else { return libc::EINVAL };
        // SAFETY: the header asks for a function of this type.
        sections(&mut slot, |section| unsafe { body(section, argument) })
    })
}

/// From now on whoever commits to the object sends `signal` to the threads whose sections are in vain because of that, if they execute them by `lw_ics_update_cut`: about 2 us of
/// its time for each of them, `LW_ICS_SLOTS` - 1 at most. It pays where sections are long, some microseconds at least;
/// those of all other objects of the process become longer by some tens of nanoseconds.
///
/// The signal is a real-time one (SIGRTMIN to SIGRTMAX), SIGUSR1 or SIGUSR2, and the library's from then on, in the whole process: nobody else sends it or handles it. One for
/// all objects; the same again does no harm. Once chosen it stays.
///
/// EBUSY: the signal has a handler or is ignored, or another one was chosen before. ENOTSUP: not on this processor, only on x86-64. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_set_signal(ics: *mut lw_ics_t, signal: c_int) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some(shared) = (unsafe { object(ics) }) else { return libc::EINVAL };
        let is_usual = signal == libc::SIGUSR1 || signal == libc::SIGUSR2;
        if !is_usual && !(libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal) {
            return libc::EINVAL;
        }
        match cut::announce(signal) {
            0 => {
                // ORDERING: Release pairs with the Acquire of `lw_ics_update_cut`.
                shared.signal.store(signal, Ordering::Release);
                0
            }
            error => error,
        }
    })
}

/// As `lw_ics_update`, and a body that is in vain is cut off at once, by the signal of `lw_ics_set_signal`, and begun again. Without one, and in a thread that has it blocked, the same as
/// `lw_ics_update`. Two system calls a call more than that.
///
/// So the body may be left at any instruction. It and what it calls do nothing that has to be ended: no memory is allocated, no lock taken, no file or stream written, no thread
/// cancelled, no handler, mask or stack of signals changed; the thread is not ended; and in C++ no object on the stack has a destructor. What it leaves where `argument` says may be half written until it is executed to its end.
/// Of this library it calls `lw_ics_read`, `lw_ics_check` and `lw_ics_write`, which answer EAGAIN where it is in vain, and it may enter sections of other objects. Functions of
/// mathematics, `memcpy` and others that keep no state may be called.
///
/// It is not cut while another handler executes on top of it, nor in a section of another object inside, nor with more than 4 KiB on the stack: then the next read, check or commit finds
/// that it is in vain. A signal that comes too late does nothing, but as any signal it may end a sleep early (EINTR), where threads of several processors share the object.
///
/// As `lw_ics_update`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_update_cut(
    slot: *mut lw_ics_slot_t,
    body: lw_ics_body_t,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { watched_update(slot, body, argument, true) }
}

/// Where sections may be cut: this one, or those of others, who are told.
///
/// # Safety
/// As `lw_ics_update`; if it may be cut, as `lw_ics_update_cut`.
#[inline(never)]
unsafe fn watched_update(
    slot: *mut lw_ics_slot_t,
    body: lw_ics_body_t,
    argument: *mut c_void,
    may_be_cut: bool,
) -> c_int {
    let _inside = Inside::of_thread();
    guarded(|| {
        // SAFETY: promised by the caller.
        let (Some((shared, mut slot)), Some(body)) = (unsafe { self::slot(slot) }, body) else { return libc::EINVAL };
        // ORDERING: Acquire pairs with the Release of `lw_ics_set_signal`: `is_chosen` says so from here on, and the handler finds what it needs.
        let signal = shared.signal.load(Ordering::Acquire);
        let commits = slot.stats().commits;
        let told = &shared.told[slot.index()];
        let answer = Cut::during(if may_be_cut { signal } else { 0 }, |cut| match cut {
            // SAFETY: promised by the caller.
            Some(cut) => sections(&mut slot, |section| unsafe { cut.call(told, body, section, argument) }),
            // SAFETY: promised by the caller.
            None => sections(&mut slot, |section| unsafe { body(section, argument) }),
        });
        if signal != 0 && slot.stats().commits != commits {
            cut::tell(shared, slot.index(), signal);
        }
        answer
    })
}

/// A section, begun again until it commits or gives up.
#[inline]
fn sections(slot: &mut Kept<'_>, mut call: impl FnMut(*mut lw_ics_section_t) -> c_int) -> c_int {
    let mut answer = 0;
    let ended = slot.update(|transaction| {
        // SAFETY: only the lifetimes are changed: the body has it for this call alone, as the header says.
        let mut section = lw_ics_section_t(Section::Writes(unsafe {
            std::mem::transmute::<&mut Transaction<'_, _, _, _, _>, &mut Transaction<'_, _, _, _, _>>(transaction)
        }));
        execute(|| call(&raw mut section), &mut answer)
    });
    of_ended(ended, answer)
}

/// Executes `body`, which must not write, in a section: all that it reads was so at one instant. Needs no slot, and makes nobody begin again.
///
/// 0: done. EINVAL: an argument is not one. Otherwise what the body answered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_query(ics: *const lw_ics_t, body: lw_ics_body_t, argument: *mut c_void) -> c_int {
    let _inside = Inside::of_thread();
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let (Some(shared), Some(body)) = (unsafe { object(ics) }, body) else { return libc::EINVAL };
        let mut answer = 0;
        let ended = shared.object.query(|view| {
            // SAFETY: as in `sections`.
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
    let read = |section: &mut lw_ics_section_t| {
        if value.is_null() || !value.is_aligned() {
            return libc::EINVAL;
        }
        let var = Var::<u64>::new(word as usize);
        let read = match &section.0 {
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
    };
    // SAFETY: the header asks for the section that the body was given, during the body.
    unsafe { in_section(section, read) }
}

/// Whether a section can still commit: to be asked now and then by a long body, so as not to work on in vain.
///
/// 0: so far. EAGAIN: another section committed meanwhile; the body answers EAGAIN, too. EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_check(section: *mut lw_ics_section_t) -> c_int {
    // SAFETY: as in `lw_ics_read`.
    unsafe { in_section(section, |section| section.check().map_or_else(of_stop, |()| 0)) }
}

/// Writes a word in a section. Nobody sees it before the section has committed.
///
/// ENOSPC: more than `LW_ICS_WRITES` words. EPERM: the section is a query. EINVAL: an argument is not one. EAGAIN: as `lw_ics_read`, in sections that may be cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_write(section: *mut lw_ics_section_t, word: u32, value: u64) -> c_int {
    let write = |section: &mut lw_ics_section_t| match &mut section.0 {
        Section::Queries(_) => libc::EPERM,
        Section::Writes(transaction) => transaction.write(Var::new(word as usize), value).map_or_else(of_stop, |()| 0),
    };
    // SAFETY: as in `lw_ics_read`.
    unsafe { in_section(section, write) }
}

/// What a slot did, whoever had it.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_stats(slot: *const lw_ics_slot_t, stats: *mut lw_ics_stats_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        let Some((shared, slot)) = (unsafe { self::slot(slot) }) else { return libc::EINVAL };
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
            cuts: shared.told[slot.index()].cuts(),
        };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { stats.write(did) };
        0
    })
}
