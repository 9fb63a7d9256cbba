//! The statistics of the program's mutexes: `LOCKWRIGHT_STATS`.
//!
//! Mutexes that are counted have a bit in their attributes, so other programs pay nothing. The report is written when
//! the process ends and on SIGUSR2, without allocation and with little stack, because the thread that gets the signal
//! writes it. `lockwright watch` reads the same counters.

use crate::report::{self, Line};
use libc::{c_char, c_int, c_void};
use lockwright::statistics::{MutexCounters, MutexStatistics, own_counters};
use std::ffi::{CStr, CString, OsStr};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// How often the end of the process looks whether the report of a signal is written, and the time between two looks.
const END_ROUNDS: u32 = 1_000;
const END_ROUND: Duration = Duration::from_millis(1);

/// The variable.
pub(crate) const NAME: &CStr = c"LOCKWRIGHT_STATS";
/// The most mutexes in a report.
const SHOWN_MAX: usize = 20;

/// Where the report goes, if not to stderr: the file, and the one that is renamed to it.
static FILE: OnceLock<[CString; 2]> = OnceLock::new();
/// The mutexes of a report. Whoever holds it writes; nobody waits for it.
static SHOWN: Mutex<[Option<MutexStatistics>; SHOWN_MAX]> = Mutex::new([None; SHOWN_MAX]);

/// Whether a value of the variable asks for statistics.
pub(crate) fn is_on(value: &CStr) -> bool {
    !matches!(value.to_bytes(), b"" | b"0")
}

/// Prepares the reports of what is counted. `value` is that of the variable.
pub(crate) fn begin(value: &CStr) {
    if value.to_bytes() != b"1" {
        let _ = FILE.set(paths(value.to_bytes()));
    }
    // A program's own handler replaces this one.
    // SAFETY: all bits zero are a valid `sigaction` with the default action and no flags, both structures outlive the
    // calls, and the handler calls only functions that a handler may call.
    unsafe {
        let mut known: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGUSR2, std::ptr::null(), &raw mut known);
        if known.sa_sigaction == libc::SIG_DFL {
            let handler: extern "C" fn(c_int) = on_signal;
            known.sa_sigaction = handler as usize;
            known.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR2, &raw const known, std::ptr::null_mut());
        }
    }
    find_object();
}

/// The file for the report, and a new one that only this process writes.
fn paths(given: &[u8]) -> [CString; 2] {
    let process = std::process::id().to_string();
    let (mut path, mut rest) = (Vec::new(), given);
    while let Some(at) = rest.windows(2).position(|two| two == b"%p") {
        path.extend([&rest[..at], process.as_bytes()].concat());
        rest = &rest[at + 2..];
    }
    path.extend(rest);
    // The program may change its directory.
    let path = std::path::absolute(OsStr::from_bytes(&path)).map_or(path, |path| path.into_os_string().into_vec());
    let new = [&path, &b"."[..], process.as_bytes(), b".new"].concat();
    // Neither has a zero, because the variable has none.
    [path, new].map(|path| CString::new(path).unwrap_or_default())
}

extern "C" fn on_signal(_signal: c_int) {
    // SAFETY: the C library returns the address of the calling thread's own error number.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    write();
    *errno = before;
}

/// Called by the C library after the program's own destructors.
extern "C" fn end() {
    // Another thread may be writing the report that a signal asked for. This one has what came later.
    // BOUND: END_ROUNDS.
    for _ in 0..END_ROUNDS {
        if write() {
            return;
        }
        std::thread::sleep(END_ROUND);
    }
}

// SAFETY: the C library calls the functions of this section at the end of the process, with the arguments of their
// type.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// Writes the report. Returns whether it was the turn of the caller.
fn write() -> bool {
    // Nothing is counted, or the process is a child of the one that is.
    let Some(counters) = own_counters() else { return true };
    // Of two signals at one time, one writes.
    let Ok(mut shown) = SHOWN.try_lock() else { return false };
    *shown = [None; SHOWN_MAX];
    match FILE.get() {
        Some([path, new]) => write_file(counters, &mut *shown, path, new),
        None => lines(counters, &mut *shown, libc::STDERR_FILENO),
    }
    true
}

/// Writes the report into `new`, which then takes the place of `path`. A device or a pipe keeps its place: the report
/// is written into it, as far as it takes it at once.
fn write_file(counters: &MutexCounters, shown: &mut [Option<MutexStatistics>], path: &CStr, new: &CStr) {
    // SAFETY: both paths are strings with a final zero, which live as long as the process, all bits zero are a valid
    // `stat`, which outlives its call, and the calls take no other pointers. A handler may make them.
    unsafe {
        let open = |name: &CStr, flags: c_int| {
            let flags = libc::O_WRONLY | libc::O_CLOEXEC | flags;
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), flags, 0o666) as c_int
        };
        let mut found: libc::stat = std::mem::zeroed();
        let is_replaced =
            libc::stat(path.as_ptr(), &raw mut found) != 0 || found.st_mode & libc::S_IFMT == libc::S_IFREG;
        let file = if is_replaced {
            libc::unlink(new.as_ptr());
            open(new, libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW)
        } else {
            // Otherwise a pipe that nobody reads would delay the end of the process.
            open(path, libc::O_NONBLOCK)
        };
        if file < 0 {
            return report::no_file(path);
        }
        lines(counters, shown, file);
        libc::syscall(libc::SYS_close, file);
        if is_replaced && libc::rename(new.as_ptr(), path.as_ptr()) != 0 {
            report::no_file(path);
        }
    }
}

/// Writes the lines of the report. `shown` has room for the mutexes.
fn lines(counters: &MutexCounters, shown: &mut [Option<MutexStatistics>], file: c_int) {
    let (mut count, mut waited) = (0, 0);
    counters.for_each(|mutex| {
        count += 1;
        waited += u32::from(mutex.waits > 0);
        let key = |one: &MutexStatistics| (one.total_wait, one.sections);
        let at = shown.iter().position(|other| other.as_ref().is_none_or(|other| key(other) < key(&mutex)));
        if let Some(at) = at {
            shown[at..].rotate_right(1);
            shown[at] = Some(mutex);
        }
    });
    let put = |line: &dyn Fn(&mut Line) -> std::fmt::Result| report::line_to(file, line);
    put(&|line| {
        // SAFETY: the call takes nothing and cannot fail.
        let process = unsafe { libc::getpid() };
        write!(line, "{count} mutexes of process {process}, threads waited for {waited} of them; times in us")
    });
    if count == 0 {
        return;
    }
    put(&|line| {
        let heads = ["sections", "waits", "total wait", "longest wait", "longest section"];
        heads.iter().try_for_each(|head| write!(line, "{head:>15}  "))?;
        line.write_str("mutex")
    });
    for mutex in shown.iter().flatten() {
        put(&|line| row(line, mutex));
    }
    if counters.left_out() > 0 {
        put(&|line| write!(line, "{} locks of further mutexes were not counted", counters.left_out()));
    }
    if count > SHOWN_MAX {
        put(&|line| write!(line, "and {} mutexes with shorter waits", count - SHOWN_MAX));
    }
}

fn row(line: &mut Line, mutex: &MutexStatistics) -> std::fmt::Result {
    write!(line, "{:>15}  {:>15}  ", mutex.sections, mutex.waits)?;
    for time in [mutex.total_wait, mutex.longest_wait, mutex.longest_section] {
        write!(line, "{:>13}.{}  ", time.as_ns() / 1_000, time.as_ns() % 1_000 / 100)?;
    }
    let mutex_at = mutex.address as usize;
    match object_of(mutex_at) {
        Some((name, start)) => write!(line, "{}+{:#x}", report::Bytes(name), mutex_at - start)?,
        None => write!(line, "{mutex_at:#x}")?,
    }
    if let (Some(waiter), Some(holder)) = (mutex.waiter, mutex.holder) {
        write!(line, ": {} ({}) waited for {} ({})", waiter.name(), waiter.id, holder.name(), holder.id)?;
    }
    Ok(())
}

/// `struct dl_find_object` of the C library, from 2.35 on.
#[repr(C)]
struct Object {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    map: *const LinkMap,
    rest: [u64; 10],
}

/// The beginning of `struct link_map`.
#[repr(C)]
struct LinkMap {
    start: usize,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(address: *const c_void, object: *mut Object) -> c_int;

static FIND_OBJECT: OnceLock<Option<FindObject>> = OnceLock::new();

/// Looks up the function that finds the file at an address, which older C libraries do not have.
fn find_object() {
    // SAFETY: the name is a constant string with a final zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    // SAFETY: the C library has the function of this name with this type.
    let function = (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, FindObject>(found) });
    let _ = FIND_OBJECT.set(function);
}

/// Returns the file that the program has at an address, by its last name, and where the file begins. A handler may call
/// it.
fn object_of(address: usize) -> Option<(&'static CStr, usize)> {
    let find = (*FIND_OBJECT.get()?)?;
    // SAFETY: all bits zero are a valid value of this structure.
    let mut object: Object = unsafe { std::mem::zeroed() };
    // SAFETY: the function reads no memory at the address, which need not be valid, and `object` is valid for writing.
    if unsafe { find(std::ptr::without_provenance(address), &raw mut object) } != 0 || object.map.is_null() {
        return None;
    }
    // SAFETY: the C library filled `map` with the entry of a file that is loaded, whose name is a string.
    let (start, name) = unsafe { ((*object.map).start, CStr::from_ptr((*object.map).name)) };
    let name = if name.is_empty() { program() } else { name };
    let last = name.to_bytes_with_nul().rsplitn(2, |&byte| byte == b'/').next()?;
    Some((CStr::from_bytes_with_nul(last).ok()?, start))
}

/// The name by which the program was called.
fn program() -> &'static CStr {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: the C library sets the pointer to a string before it calls constructors.
    unsafe { CStr::from_ptr(program_invocation_short_name) }
}
