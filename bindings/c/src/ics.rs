//! The functions `lw_ics_*`: interruptible critical sections.

use crate::argument::{CObject, Const, Mut};
use crate::cut::{self, Cut, Inside, Told};
use crate::ics_types::{
    LW_ICS_AUTO, LW_ICS_LOCKED, LW_ICS_PLAIN, LW_ICS_RSEQ, LW_PRIVATE_ICS_SLOT_, Object, SLOTS, Section, WORDS, WRITES,
    lw_ics_body_t, lw_ics_section_t, lw_ics_slot_t, lw_ics_stats_t, lw_ics_t, lw_private_ics_t,
};
use crate::panic::guarded;
use libc::{c_int, c_void};
use lockwright::ics::{Kind, Stop, Strategy, Var, Word, Writer};
use std::mem::{ManuallyDrop, offset_of};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// The memory that a `lw_ics_t` points to. It begins as `lw_private_ics_t` does.
#[repr(C)]
struct Shared {
    chosen: &'static AtomicI32,
    /// `LW_ICS_LOCKED`, `LW_ICS_PLAIN` or `LW_ICS_RSEQ`.
    commit: u32,
    object: Object,
    /// The signal that cuts invalidated sections short; 0 if there is none.
    signal: AtomicI32,
    /// The section of each slot, for the threads that signal it.
    told: [Told; SLOTS],
}

#[cfg(target_arch = "x86_64")]
const _: () = assert!(
    offset_of!(Shared, chosen) == offset_of!(lw_private_ics_t, lw_chosen)
        && offset_of!(Shared, commit) == offset_of!(lw_private_ics_t, lw_commit)
        && offset_of!(Shared, object) == offset_of!(lw_private_ics_t, lw_object)
        && offset_of!(IcsSlot, object) == offset_of!(lw_ics_slot_t, lw_object)
        && offset_of!(IcsSlot, index) == offset_of!(lw_ics_slot_t, lw_index)
        && offset_of!(IcsSlot, check) == offset_of!(lw_ics_slot_t, lw_check)
);

/// A body that is not null.
type Body = unsafe extern "C-unwind" fn(section: *mut lw_ics_section_t, argument: *mut c_void) -> c_int;

/// A slot that C holds, which is not released when this is dropped.
type Kept = ManuallyDrop<Writer<'static, [Word; WORDS], SLOTS, WRITES, Strategy>>;

const OBJECT_CHECK: u32 = 0x4c57_6963;

/// Where the kernel lists its CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// Returns whether the machine has this CPU, or does not tell which CPUs it has.
fn exists(cpu: u32) -> bool {
    let cpus = std::path::Path::new(CPUS);
    !cpus.is_dir() || cpus.join(format!("cpu{cpu}")).is_dir()
}

/// After how many attempts a section that does not commit is reported, in debug builds.
const ATTEMPTS_TOLD: u32 = 100_000;

/// The contents of a `lw_ics_t`.
#[repr(C)]
pub struct Handle {
    object: AtomicPtr<Shared>,
    check: AtomicU32,
}

// SAFETY: both fields are atomics.
unsafe impl CObject for lw_ics_t {
    type Contents = Handle;

    fn is_made(handle: &Handle) -> bool {
        // ORDERING: Relaxed, here and below: the thread that made the object published it.
        handle.check.load(Ordering::Relaxed) == OBJECT_CHECK
    }
}

impl Handle {
    fn shared(&self) -> Option<&Shared> {
        // SAFETY: the check value shows an object, so `lw_ics_init` put the address of a box there. `lw_ics_destroy`
        // clears the check value before it frees the box, and the header forbids other calls meanwhile.
        unsafe { self.object.load(Ordering::Relaxed).as_ref() }
    }
}

/// The contents of a `lw_ics_slot_t`.
#[repr(C)]
pub struct IcsSlot {
    object: AtomicPtr<Shared>,
    index: AtomicU32,
    check: AtomicU32,
}

// SAFETY: all fields are atomics.
unsafe impl CObject for lw_ics_slot_t {
    type Contents = IcsSlot;

    fn is_made(slot: &IcsSlot) -> bool {
        // ORDERING: Relaxed, here and below: the thread that made the slot published it.
        slot.check.load(Ordering::Relaxed) == slot.proper_check()
    }
}

impl IcsSlot {
    /// Returns the check value of a slot at this place. It depends on the place, so a copy has a wrong one.
    fn proper_check(&self) -> u32 {
        LW_PRIVATE_ICS_SLOT_ ^ ptr::from_ref(self).addr() as u32
    }

    /// Returns the object, and the slot itself. Both are for the current call only.
    #[inline]
    fn kept(&self) -> Option<(&'static Shared, Kept)> {
        // SAFETY: the check value shows a slot, so `lw_ics_slot_open` put the address of a box there. The header
        // requires that the object is not destroyed while the slot is open, so it lives as long as the call.
        let shared = unsafe { self.object.load(Ordering::Relaxed).as_ref() }?;
        // SAFETY: `lw_ics_slot_open` claimed this writer and forgot it, and the header allows only one thread at a time
        // to use the slot.
        let slot = unsafe { shared.object.forgotten_writer(self.index.load(Ordering::Relaxed) as usize) }?;
        Some((shared, ManuallyDrop::new(slot)))
    }
}

/// Executes a body's request. A signal that arrives meanwhile cannot cut the body here, so this reports it before
/// returning.
///
/// # Safety
/// `section` is null, or a section in progress.
#[inline]
unsafe fn in_section(section: *mut lw_ics_section_t, ask: impl FnOnce(&mut lw_ics_section_t) -> c_int) -> c_int {
    if section.is_null() {
        return libc::EINVAL;
    }
    if cut::is_chosen() {
        // SAFETY: `section` is not null, so by the contract of `in_section` it is a section in progress.
        return unsafe { in_watched_section(section, ask) };
    }
    // SAFETY: `section` is not null, so by the contract of `in_section` it is in progress: it lives in the frame of
    // `sections` or `lw_ics_query`, and only its body, which called this, uses it.
    guarded(|| ask(unsafe { &mut *section }))
}

/// As [`in_section`], where sections can be cut short.
///
/// # Safety
/// `section` is a section in progress.
#[cold]
#[inline(never)]
unsafe fn in_watched_section(
    section: *mut lw_ics_section_t,
    ask: impl FnOnce(&mut lw_ics_section_t) -> c_int,
) -> c_int {
    // Declared first, so that it covers the rest: where the body can be cut, nothing needs undoing and nothing uses the
    // section.
    let inside = Inside::of_thread();
    // SAFETY: `section` is in progress: it lives in the frame of `sections` or `lw_ics_query`, and only its body, which
    // called this, uses it.
    let section = unsafe { &mut *section };
    guarded(|| match ask(section) {
        0 if inside.as_ref().is_some_and(Inside::has_note) => section.check().map_or_else(of_stop, |()| 0),
        answer => answer,
    })
}

fn of_kind(kind: Kind) -> u32 {
    match kind {
        Kind::Locked => LW_ICS_LOCKED,
        Kind::Uniprocessor => LW_ICS_PLAIN,
        Kind::Rseq => LW_ICS_RSEQ,
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

fn of_ended(ended: Result<(), Stop>, answer: c_int) -> c_int {
    match ended {
        Ok(()) => 0,
        Err(Stop::Cancelled) => answer,
        Err(stop) => of_stop(stop),
    }
}

/// Initialises `*ics` as an object whose words are 0, whatever the memory contained before. The call allocates memory.
///
/// `commit` is `LW_ICS_AUTO`, `LW_ICS_LOCKED` or `LW_ICS_PLAIN`. With `LW_ICS_AUTO`, `cpu` is the Linux number of the
/// CPU on which the threads execute; otherwise it is ignored.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `ics` is NULL or misaligned, `commit` is another value, or the machine has no such CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_init(ics: Mut<'_, lw_ics_t>, commit: u32, cpu: u32) -> c_int {
    guarded(|| {
        let strategy = match commit {
            LW_ICS_AUTO if exists(cpu) => Strategy::for_cpu(cpu),
            LW_ICS_LOCKED => Strategy::locked(),
            // SAFETY: the header requires for `LW_ICS_PLAIN` that all threads that enter the object are bound to one
            // CPU.
            LW_ICS_PLAIN => unsafe { Strategy::uniprocessor() },
            _ => return libc::EINVAL,
        };
        if !ics.is_there() {
            return libc::EINVAL;
        }
        let object = Object::with([const { Word::new(0) }; WORDS], strategy);
        let shared = Box::new(Shared {
            chosen: cut::chosen(),
            commit: of_kind(object.commit().kind()),
            object,
            signal: AtomicI32::new(0),
            told: [const { Told::new() }; SLOTS],
        });
        let object = AtomicPtr::new(Box::into_raw(shared));
        ics.make(Handle { object, check: AtomicU32::new(OBJECT_CHECK) });
        0
    })
}

/// Destroys an object and frees its memory.
///
/// Before the call, all slots must be closed and no thread may be inside a section. Afterwards no thread may use the
/// object.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a slot of the object is open. Nothing is changed.
/// - EINVAL: `ics` is not an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_destroy(ics: Mut<'_, lw_ics_t>) -> c_int {
    guarded(|| {
        let Some(handle) = ics.object() else { return libc::EINVAL };
        let Some(shared) = handle.shared() else { return libc::EINVAL };
        let slots = [(); SLOTS].map(|()| shared.object.writer());
        if slots.iter().any(Option::is_none) {
            return libc::EBUSY;
        }
        drop(slots);
        // ORDERING: Relaxed: the thread that destroys the object has made sure that no other thread uses it.
        handle.check.store(0, Ordering::Relaxed);
        let shared = handle.object.load(Ordering::Relaxed);
        // SAFETY: `lw_ics_init` made it in a box, no slot is open, and the header requires that no thread uses the
        // object any more.
        drop(unsafe { Box::from_raw(shared) });
        0
    })
}

/// Writes to `*commit` how the object commits now: `LW_ICS_LOCKED`, `LW_ICS_PLAIN` or `LW_ICS_RSEQ`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `ics` is not an object, or `commit` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_commit(ics: Const<'_, lw_ics_t>, commit: Mut<'_, u32>) -> c_int {
    guarded(|| {
        let Some(shared) = ics.object().and_then(Handle::shared) else { return libc::EINVAL };
        let strategy = shared.object.commit();
        let now = match strategy.rseq() {
            Some(rseq) if !rseq.is_at_home() => LW_ICS_LOCKED,
            _ => of_kind(strategy.kind()),
        };
        if commit.write(now) { 0 } else { libc::EINVAL }
    })
}

/// Reserves a slot of the object and stores it in `*slot`, whatever the memory contained before.
///
/// Returns:
/// - 0: success.
/// - EAGAIN: all `LW_ICS_SLOTS` slots are in use.
/// - EINVAL: `ics` is not an object, or `slot` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_open(ics: Const<'_, lw_ics_t>, slot: Mut<'_, lw_ics_slot_t>) -> c_int {
    guarded(|| {
        let Some(shared) = ics.object().and_then(Handle::shared) else { return libc::EINVAL };
        if !slot.is_there() {
            return libc::EINVAL;
        }
        let Some(claimed) = shared.object.writer() else { return libc::EAGAIN };
        let index = claimed.index() as u32;
        std::mem::forget(claimed);
        let object = AtomicPtr::new(ptr::from_ref(shared).cast_mut());
        let opened = IcsSlot { object, index: AtomicU32::new(index), check: AtomicU32::new(0) };
        if let Some(slot) = slot.make(opened) {
            slot.check.store(slot.proper_check(), Ordering::Relaxed);
        }
        0
    })
}

/// Releases a slot. A thread may also release the slot of another thread that has ended, even inside a section, after
/// joining it.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `slot` is not a slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_close(slot: Mut<'_, lw_ics_slot_t>) -> c_int {
    guarded(|| {
        let Some(slot) = slot.object() else { return libc::EINVAL };
        let Some((shared, claimed)) = slot.kept() else { return libc::EINVAL };
        // ORDERING: Relaxed: the thread that closes the slot has made sure that no other thread uses it.
        slot.check.store(0, Ordering::Relaxed);
        // The slot's thread may have ended inside a section.
        shared.told[claimed.index()].close();
        drop(ManuallyDrop::into_inner(claimed));
        0
    })
}

/// Executes `body` in a section and commits its writes. Repeats the body until no other section commits in between.
///
/// Never waits for another thread. On one CPU, only sections of more urgent threads make the body repeat. Makes no
/// system call, except to send the signals of `lw_ics_set_signal`, and except that a thread that finds an object of
/// `LW_ICS_AUTO` on another CPU calls `membarrier`. If the kernel refuses that call, the process is aborted.
///
/// Returns:
/// - 0: the section has committed.
/// - ENOSPC: the body wrote more than `LW_ICS_WRITES` words. Nothing is changed.
/// - EINVAL: `slot` is not a slot, or `body` is NULL.
/// - Any other number is the value that the body returned. Nothing is changed.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lw_ics_update(
    slot: Mut<'_, lw_ics_slot_t>,
    body: lw_ics_body_t,
    argument: *mut c_void,
) -> c_int {
    let (Some(slot), Some(body)) = (slot.object(), body) else { return libc::EINVAL };
    if cut::is_chosen() {
        // SAFETY: the header requires a function that may be called with a section and with `argument`, and this
        // section is not cut.
        return unsafe { watched_update(slot, body, argument, false) };
    }
    // SAFETY: as above.
    unsafe { repeat(slot, body, argument, 0) }
}

/// Private. The header has the usual course of `lw_ics_update`, and calls this for everything else.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lw_private_ics_update_(
    slot: Mut<'_, lw_ics_slot_t>,
    body: lw_ics_body_t,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the function of the header passes what it was called with.
    unsafe { lw_ics_update(slot, body, argument) }
}

/// Private. Ends the first attempt of a section that began in the function of the header, unless that function has
/// committed it. If the attempt cannot commit because of another section, does the rest as `lw_ics_update`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lw_private_ics_end_(
    section: *mut lw_ics_section_t,
    slot: *mut lw_ics_slot_t,
    body: lw_ics_body_t,
    argument: *mut c_void,
    answer: c_int,
) -> c_int {
    // SAFETY: the function of the header passes its section, its slot, which `IcsSlot` fits, and its body, and its
    // attempt has not ended.
    let (section, slot, body) = unsafe { (&*section, &*slot.cast::<IcsSlot>(), body) };
    let Some(body) = body else { return libc::EINVAL };
    // SAFETY: as above.
    let (ended, answer) = unsafe { section.end(answer) };
    if ended != Err(Stop::Conflict) {
        return of_ended(ended, answer);
    }
    // SAFETY: the header requires a function that may be called with a section and with `argument`.
    unsafe { repeat(slot, body, argument, 1) }
}

/// Repeats a section until it commits or gives up, after some attempts. A body may end its thread: nothing here is
/// dropped, and nothing catches what ends a thread.
///
/// # Safety
/// `body` is as the header requires for `lw_ics_update`.
#[inline(never)]
unsafe extern "C-unwind" fn repeat(slot: &IcsSlot, body: Body, argument: *mut c_void, attempts: u32) -> c_int {
    let Some((_, mut slot)) = slot.kept() else { return libc::EINVAL };
    // SAFETY: by the contract of `repeat`, the body may be called with the section and with `argument`.
    sections(&mut slot, attempts, |section| unsafe { body(section, argument) })
}

/// Sets the signal that cuts short invalidated sections of the object.
///
/// From now on, a thread that commits to the object sends `signal` to the threads whose sections are invalidated by
/// that commit, if they execute them by `lw_ics_update_cut`. This costs the committing thread about 2 us for each of
/// them, at most `LW_ICS_SLOTS` - 1. A signal is worth its cost for sections of several microseconds and more. It makes
/// the sections of all other objects of the process longer by some tens of nanoseconds.
///
/// `signal` is SIGUSR1, SIGUSR2, or a real-time signal (SIGRTMIN to SIGRTMAX). It belongs to the library from then on,
/// in the whole process: the program must not send or handle it. All objects use the same signal, and it cannot be
/// changed. Setting it again is harmless.
///
/// Returns:
/// - 0: success.
/// - EBUSY: the signal has a handler or is ignored, or the process has set another signal before.
/// - ENOTSUP: the processor is not an x86-64.
/// - EINVAL: `ics` is not an object, or `signal` is another signal.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_set_signal(ics: Mut<'_, lw_ics_t>, signal: c_int) -> c_int {
    guarded(|| {
        let Some(shared) = ics.object().and_then(Handle::shared) else { return libc::EINVAL };
        let is_usual = signal == libc::SIGUSR1 || signal == libc::SIGUSR2;
        if !is_usual && !(libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal) {
            return libc::EINVAL;
        }
        match cut::announce(signal) {
            0 => {
                // ORDERING: Release pairs with the Acquire in `watched_update`.
                shared.signal.store(signal, Ordering::Release);
                0
            }
            error => error,
        }
    })
}

/// Executes `body` as `lw_ics_update` does, except that the signal of `lw_ics_set_signal` cuts an invalidated body
/// short, which then begins again.
///
/// Makes two more system calls than `lw_ics_update`. Is the same as `lw_ics_update` if the object has no signal, or if
/// the calling thread has blocked it.
///
/// The signal may end the body at any instruction. The body, and each function that it calls, must therefore do nothing
/// that has to be completed or undone:
/// - It must not allocate memory, lock anything, write files or streams, cancel or end a thread, or change the
///   handlers, the mask or the stack of signals.
/// - In C++, no object on its stack may have a destructor.
/// - Of this library, it may call `lw_ics_read`, `lw_ics_check` and `lw_ics_write`, which return EAGAIN once the
///   section is invalidated, and it may enter sections of other objects.
/// - It may call mathematical functions, `memcpy` and other functions that keep no state.
///
/// The memory at `argument` may be half written until a body has executed to its end.
///
/// A body is not cut short while another signal handler executes on top of it, while it is in a section of another
/// object, or while it has more than 4 KiB on the stack. The next read, check or commit then finds the conflict. A
/// signal that arrives too late has no effect, except that it may end a sleep early (EINTR), as any signal may, if
/// threads of several CPUs share the object.
///
/// Returns the values of `lw_ics_update`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_update_cut(
    slot: Mut<'_, lw_ics_slot_t>,
    body: lw_ics_body_t,
    argument: *mut c_void,
) -> c_int {
    let (Some(slot), Some(body)) = (slot.object(), body) else { return libc::EINVAL };
    // SAFETY: the header requires a function that may be called with a section and with `argument`, and that may end at
    // any instruction.
    unsafe { watched_update(slot, body, argument, true) }
}

/// Executes sections if some may be cut short: this one, or those of other threads, which are then signalled.
///
/// # Safety
/// `body` is as the header requires for `lw_ics_update`, or, if `may_be_cut`, for `lw_ics_update_cut`.
#[inline(never)]
unsafe extern "C" fn watched_update(slot: &IcsSlot, body: Body, argument: *mut c_void, may_be_cut: bool) -> c_int {
    let _inside = Inside::of_thread();
    guarded(|| {
        let Some((shared, mut slot)) = slot.kept() else { return libc::EINVAL };
        // ORDERING: Acquire pairs with the Release in `lw_ics_set_signal`. From here on `is_chosen` is true, and the
        // handler finds what it needs.
        let signal = shared.signal.load(Ordering::Acquire);
        let commits = slot.stats().commits;
        let told = &shared.told[slot.index()];
        let answer = Cut::during(if may_be_cut { signal } else { 0 }, |cut| match cut {
            // SAFETY: `may_be_cut` is set, so by the contract of `watched_update` the body may be called with the
            // section, and may end at any instruction.
            Some(cut) => sections(&mut slot, 0, |section| unsafe { cut.call(told, body, section, argument) }),
            // SAFETY: by the contract of `watched_update`, the body may be called with the section and with `argument`.
            None => sections(&mut slot, 0, |section| unsafe { body(section, argument) }),
        });
        if signal != 0 && slot.stats().commits != commits {
            cut::tell(&shared.told, slot.index(), signal);
        }
        answer
    })
}

/// Repeats a section until it commits or gives up, after some attempts.
fn sections(slot: &mut Kept, mut attempts: u32, mut call: impl FnMut(*mut lw_ics_section_t) -> c_int) -> c_int {
    loop {
        // SAFETY: the caller's body uses the section during its call only.
        let (ended, answer) = unsafe { attempt(slot, &mut call) };
        if ended != Err(Stop::Conflict) {
            return of_ended(ended, answer);
        }
        if cfg!(debug_assertions) {
            attempts = attempts.saturating_add(1);
            if attempts == ATTEMPTS_TOLD {
                tell_attempts();
            }
        }
    }
}

/// Tells that a section begins again and again.
#[cold]
#[inline(never)]
fn tell_attempts() {
    guarded(|| {
        eprintln!(
            "lockwright: a section has begun {ATTEMPTS_TOLD} times: its body may enter a section of the same object"
        );
        0
    });
}

/// Executes a section once, and commits it. Returns how it ended, and the answer of the body.
///
/// # Safety
/// `call` uses the section that it receives during the call only.
unsafe fn attempt(slot: &mut Kept, call: impl FnOnce(*mut lw_ics_section_t) -> c_int) -> (Result<(), Stop>, c_int) {
    // SAFETY: this attempt ends below, and the callers use the slot only afterwards.
    let mut section = lw_ics_section_t::writes(unsafe { slot.begin() }, cut::chosen().as_ptr());
    let answer = call(&raw mut section);
    // SAFETY: it has not ended.
    unsafe { section.end(answer) }
}

/// Executes `body` in a section that only reads: all values that it reads existed at one instant. Needs no slot, and
/// makes no other section begin again.
///
/// The body is repeated if another section commits in between.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `ics` is not an object, or `body` is NULL.
/// - Any other number is the value that the body returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_query(ics: Const<'_, lw_ics_t>, body: lw_ics_body_t, argument: *mut c_void) -> c_int {
    let _inside = Inside::of_thread();
    guarded(|| {
        let (Some(shared), Some(body)) = (ics.object().and_then(Handle::shared), body) else { return libc::EINVAL };
        let mut answer = 0;
        let ended = shared.object.query(|view| {
            // SAFETY: the section is a local of this closure, and the header allows the body to use it during this call
            // only, so it does not outlive `view`.
            let mut section = unsafe { lw_ics_section_t::queries(view) };
            // SAFETY: the header requires a function that may be called with a section and with `argument`; the section
            // lives until it returns.
            answer = unsafe { body(&raw mut section, argument) };
            lw_ics_section_t::decide(answer)
        });
        of_ended(ended, answer)
    })
}

/// Reads a word, 0 to `LW_ICS_WORDS` - 1, in a section, and writes it to `*value`.
///
/// The value is the one that the section wrote, or else the one of the instant that all reads of the section share.
///
/// `section` must be the one that the calling body received.
///
/// Returns:
/// - 0: success.
/// - EAGAIN: another section has committed. The body must return EAGAIN.
/// - EINVAL: `section` is NULL, there is no such word, or `value` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_read(section: *mut lw_ics_section_t, word: u32, value: Mut<'_, u64>) -> c_int {
    // SAFETY: the header requires the section that the calling body received, so it is null or in progress. It is not
    // changed here, and nothing else uses it meanwhile.
    if let Some(Section::Writes(known)) = unsafe { section.as_ref() }.map(lw_ics_section_t::part)
        && !cut::is_chosen()
        && !known.may_have_written(word as usize)
        && value.is_there()
    {
        // Nothing is called on the way from here.
        return match known.read(Var::<u64>::new(word as usize)) {
            Ok(read) => {
                value.write(read);
                0
            }
            Err(stop) => of_stop(stop),
        };
    }
    // SAFETY: as above.
    unsafe { read_otherwise(section, word, value) }
}

/// As `lw_ics_read`, for all sections and words.
///
/// # Safety
/// `section` is null, or a section in progress.
#[inline(never)]
unsafe extern "C" fn read_otherwise(section: *mut lw_ics_section_t, word: u32, value: Mut<'_, u64>) -> c_int {
    let read = |section: &mut lw_ics_section_t| {
        if !value.is_there() {
            return libc::EINVAL;
        }
        let var = Var::<u64>::new(word as usize);
        let read = match section.part() {
            Section::Writes(transaction) => transaction.read(var),
            Section::Queries(view) => view.read(var),
        };
        match read {
            Ok(read) => {
                value.write(read);
                0
            }
            Err(stop) => of_stop(stop),
        }
    };
    // SAFETY: by the contract of `read_otherwise`, the section is null or in progress.
    unsafe { in_section(section, read) }
}

/// Private. Reads a word for the function of the header, as `lw_private_ics_update_` updates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_private_ics_read_(section: *mut lw_ics_section_t, word: u32, value: Mut<'_, u64>) -> c_int {
    // SAFETY: the function of the header passes what it was called with.
    unsafe { lw_ics_read(section, word, value) }
}

/// Checks whether a section can still commit. A long body should call this regularly, to avoid useless work.
///
/// `section` must be the one that the calling body received.
///
/// Returns:
/// - 0: the section can commit so far.
/// - EAGAIN: another section has committed. The body must return EAGAIN.
/// - EINVAL: `section` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_check(section: *mut lw_ics_section_t) -> c_int {
    // SAFETY: the header requires the section that the calling body received, so it is null or in progress.
    unsafe { in_section(section, |section| section.check().map_or_else(of_stop, |()| 0)) }
}

/// Writes `value` to a word, 0 to `LW_ICS_WORDS` - 1, in a section. Other sections see the value once this section has
/// committed.
///
/// `section` must be the one that the calling body received. A section with a refused write does not commit, even if
/// its body returns 0.
///
/// Returns:
/// - 0: success.
/// - ENOSPC: the section would write more than `LW_ICS_WRITES` words.
/// - EPERM: the section only reads (`lw_ics_query`).
/// - EINVAL: `section` is NULL, or there is no such word.
/// - EAGAIN: another section has committed. The body must return EAGAIN. Only sections that may be cut short return
///   this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_write(section: *mut lw_ics_section_t, word: u32, value: u64) -> c_int {
    // SAFETY: the header requires the section that the calling body received, so it is null or in progress, and nothing
    // else uses it meanwhile.
    if let Some(known) = unsafe { section.as_mut() }.and_then(lw_ics_section_t::attempt)
        && !cut::is_chosen()
        && known.write_first(word as usize, value)
    {
        return 0;
    }
    // SAFETY: as above.
    unsafe { write_otherwise(section, word, value) }
}

/// Private. Writes a word for the function of the header, as `lw_private_ics_update_` updates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_private_ics_write_(section: *mut lw_ics_section_t, word: u32, value: u64) -> c_int {
    // SAFETY: the function of the header passes what it was called with.
    unsafe { lw_ics_write(section, word, value) }
}

/// As `lw_ics_write`, for all sections and words.
///
/// # Safety
/// `section` is null, or a section in progress.
#[inline(never)]
unsafe extern "C" fn write_otherwise(section: *mut lw_ics_section_t, word: u32, value: u64) -> c_int {
    let write = |section: &mut lw_ics_section_t| {
        let Some(transaction) = section.attempt() else { return libc::EPERM };
        match transaction.write(Var::<u64>::new(word as usize), value) {
            Ok(()) => 0,
            Err(stop) => {
                section.lw_refused = of_stop(stop);
                section.lw_refused
            }
        }
    };
    // SAFETY: by the contract of `write_otherwise`, the section is null or in progress.
    unsafe { in_section(section, write) }
}

/// Writes the statistics of a slot to `*stats`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `slot` is not a slot, or `stats` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_ics_slot_stats(slot: Const<'_, lw_ics_slot_t>, stats: Mut<'_, lw_ics_stats_t>) -> c_int {
    guarded(|| {
        let Some((shared, slot)) = slot.object().and_then(IcsSlot::kept) else { return libc::EINVAL };
        let did = slot.stats();
        let did = lw_ics_stats_t {
            entries: did.entries,
            commits: did.commits,
            conflicts: did.conflicts,
            restarts: did.restarts,
            helped: did.helped,
            cuts: shared.told[slot.index()].cuts(),
        };
        if stats.write(did) { 0 } else { libc::EINVAL }
    })
}
