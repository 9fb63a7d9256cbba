//! The work of the recorder when the program begins, forks and ends.

use crate::file::{self, Output};
use crate::spill::{self, Kernel};
use crate::stage::{self, RING_USUAL, Stage};
use crate::switches::Switches;
use crate::traced::Traced;
use crate::{clock, next, thread};
use libc::{c_char, c_int};
use lockwright_record::file::format::chunk;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The folder of the recording. Without it, nothing is recorded.
const FOLDER: &CStr = c"LOCKWRIGHT_RECORD";
/// The bytes of a thread's ring: a power of two, from 64 KiB to 4 GiB.
const RING: &CStr = c"LOCKWRIGHT_RECORD_RING";
const RING_MIN: usize = 1 << 16;
const RING_MAX: usize = 1 << 32;

/// The process that is recorded. A child that shares its memory has another number.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A process records once.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// As `getenv`, but returns null in a program that has more rights than its caller.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: the name is a constant string, and programs change their environment only after this library was loaded.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: it is not null, so the C library returned a string of the environment.
    if value.is_null() { None } else { unsafe { CStr::from_ptr(value) }.to_str().ok() }
}

fn ring_bytes() -> usize {
    let requested = variable(RING).and_then(|value| value.parse::<usize>().ok());
    requested.map_or(RING_USUAL, |bytes| bytes.clamp(RING_MIN, RING_MAX).next_power_of_two())
}

/// Called by the loader, before the program's own constructors.
extern "C" fn load() {
    next::warm_up();
    thread::warm_up();
    // Without the variable, the program may ask for a recording later.
    let Some(folder) = variable(FOLDER) else { return };
    let begin = |file| begin(file).map(|()| true);
    let begun = file::open(Path::new(folder)).and_then(|file| file.map_or(Ok(false), begin));
    let begun = begun.unwrap_or_else(|error| {
        eprintln!("lockwright: nothing is recorded: {folder}: {error}");
        false
    });
    HAS_BEGUN.store(begun, Ordering::Release);
    stage::set(if begun { Stage::Records { ring_bytes: ring_bytes() } } else { Stage::Ended });
    thread::current();
}

/// Begins a recording in this folder, which the program asks for; an earlier one in the folder is replaced.
///
/// # Errors
/// The folder cannot be written, or the process has recorded before.
pub(crate) fn start(folder: &Path) -> io::Result<()> {
    // ORDERING: AcqRel: of two calls at one time, the second one fails.
    if HAS_BEGUN.swap(true, Ordering::AcqRel) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // The program may try again.
    let again = |_: &io::Error| HAS_BEGUN.store(false, Ordering::Release);
    file::replace(folder).and_then(begin).inspect_err(again)?;
    thread::heed();
    stage::set(Stage::Records { ring_bytes: ring_bytes() });
    thread::current();
    Ok(())
}

/// Ends the recording. Returns whether this process was recorded.
pub(crate) fn stop() -> bool {
    let is_recorded = is_recorded();
    if is_recorded {
        // Threads that begin from now on are not recorded. What the others still record is not written.
        stage::set(Stage::Ended);
        thread::ignore();
        spill::finish();
    }
    is_recorded
}

/// Begins the recording in this file.
fn begin(file: File) -> io::Result<()> {
    if !thread::has_key() {
        return Err(io::Error::from_raw_os_error(libc::EAGAIN));
    }
    let (is_cycles, start) = clock::start();
    let mut output = Output::begin(file, is_cycles, start);
    output.chunk(chunk::PROGRAM, 0, &std::fs::read("/proc/self/cmdline").unwrap_or_default());
    // SAFETY: the call takes nothing and cannot fail.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    let kernel = Kernel { switches: Switches::open(), traced: Traced::open() };
    // SAFETY: the handler takes nothing, cannot unwind, and lives as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    // Two moments give the rate of the counter.
    output.moment(clock::moment());
    spill::start(output, kernel)
}

/// A child is not recorded: it has none of the other threads, and the file is the parent's.
extern "C" fn in_child() {
    stage::set(Stage::Ended);
    thread::ignore();
}

/// Whether this is the recorded process, and the recording has not ended.
fn is_recorded() -> bool {
    is_process() && matches!(stage::get(), Stage::Records { .. })
}

/// Whether this is the recorded process.
fn is_process() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    PROCESS.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

/// Whether the calling thread has the descriptors of the program. The thread that writes has its own ones, and so has a
/// child that shares the memory (`vfork`).
pub(crate) fn has_descriptors_of_program() -> bool {
    (PROCESS.load(Ordering::Relaxed) == 0 || is_process()) && !spill::is_own_thread()
}

/// Writes the rest of the recording, if this is the recorded process. If another thread stops the recording, its end is
/// waited for.
fn end() {
    if is_process() {
        // The wait below is not the program's.
        thread::ignore();
        spill::finish();
    }
}

/// Called by the C library after the program's own destructors.
extern "C" fn unload() {
    end();
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    end();
    // SAFETY: neither call takes a pointer, and neither returns.
    unsafe {
        next::_exit(status);
        libc::abort()
    }
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the call takes an integer and ends the process.
    unsafe { _exit(status) }
}

// SAFETY: the loader calls the functions of this section, with arguments that `load` ignores.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

// SAFETY: the C library calls the functions of this section at the end of the process, with the arguments of their
// type.
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
