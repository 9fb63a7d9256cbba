//! Lines on stderr, each written at once, without allocation and without the C library's streams.

use libc::c_int;
use lockwright::mutex::{Link, NamedThread};
use std::cell::Cell;
use std::ffi::CStr;
use std::fmt::{self, Write};

/// Room for a cycle of the greatest length that is reported.
const LONG: usize = 8192;
/// Room for a line of a report that is written on the stack of any thread.
const SHORT: usize = 512;

/// A line. Text that does not fit is dropped.
pub(crate) struct Line<const BYTES_MAX: usize = SHORT> {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl<const BYTES_MAX: usize> Write for Line<BYTES_MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is reserved for the end of the line.
        let room = &mut self.bytes[self.length..BYTES_MAX - 1];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

fn line(write: impl FnOnce(&mut Line<LONG>) -> fmt::Result) {
    put(libc::STDERR_FILENO, write);
}

/// Writes a short line to a file.
pub(crate) fn line_to(file: c_int, write: impl FnOnce(&mut Line) -> fmt::Result) {
    put(file, write);
}

/// Writes a line to a file.
fn put<const BYTES_MAX: usize>(file: c_int, write: impl FnOnce(&mut Line<BYTES_MAX>) -> fmt::Result) {
    let mut line = Line { bytes: [0; BYTES_MAX], length: 0 };
    // `write_str` never fails.
    let _ = line.write_str("lockwright: ").and_then(|()| write(&mut line));
    line.bytes[line.length] = b'\n';
    // The system call, because the C library's function is a cancellation point. An error cannot be reported.
    // SAFETY: `length` is at most the index of the last byte, so the bytes are initialised and inside the array.
    unsafe { libc::syscall(libc::SYS_write, file, line.bytes.as_ptr(), line.length + 1) };
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the reports of the calling thread while it lives, because its cycle has been reported.
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn new() -> Self {
        QUIET.set(true);
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(false);
    }
}

/// Reports threads that wait for each other, the last one for the first.
pub(crate) fn cycle(links: &[Link]) {
    if QUIET.get() {
        return;
    }
    line(|line| {
        // SAFETY: the call takes nothing and cannot fail.
        write!(line, "deadlock in process {}:", unsafe { libc::getpid() })?;
        for (index, link) in links.iter().enumerate() {
            let next = links[(index + 1) % links.len()].thread;
            let comma = if index == 0 { "" } else { "," };
            let (thread, next) = (NamedThread(link.thread), NamedThread(next));
            write!(line, "{comma} {thread} waits for the mutex at {:#x}, which {next} holds", link.mutex)?;
        }
        Ok(())
    });
}

/// Reports a library that is opened with `RTLD_DEEPBIND`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn deepbind(file: &CStr) {
    line(|line| {
        write!(line, "{} is opened without RTLD_DEEPBIND, with which it would miss this library's mutexes", Bytes(file))
    });
}

/// Reports that this library does not recognise the C library's condition variables.
pub(crate) fn unknown_layout() {
    line(|line| {
        write!(
            line,
            "the layout of the C library's condition variables is unknown; those that processes share may lose signals"
        )
    });
}

/// Reports that statistics cannot be written to a file.
pub(crate) fn no_file(path: &CStr) {
    line_to(libc::STDERR_FILENO, |line| write!(line, "{}: the statistics cannot be written there", Bytes(path)));
}

/// Reports an environment variable with an unknown name. `variable` is its name and value.
pub(crate) fn unknown_name<'a>(variable: &CStr, names: impl Iterator<Item = &'a CStr>) {
    line(|line| {
        write!(line, "{}: unknown variable (known:", Bytes(variable))?;
        list(line, names)?;
        write!(line, "); ignored")
    });
}

/// Reports an environment variable with an unknown value.
pub(crate) fn bad_value(name: &CStr, value: &CStr, values: &[(&CStr, u32)]) {
    line(|line| {
        write!(line, "{}={}: unknown value (known:", Bytes(name), Bytes(value))?;
        list(line, values.iter().map(|(known, _)| *known))?;
        write!(line, "); using {}", Bytes(values[0].0))
    });
}

/// Writes the names, each after a space.
fn list<'a>(line: &mut impl Write, names: impl Iterator<Item = &'a CStr>) -> fmt::Result {
    for (index, name) in names.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(line, "{comma} {}", Bytes(name))?;
    }
    Ok(())
}

/// Shows the bytes, with `?` for those that are not printable ASCII.
pub(crate) struct Bytes<'a>(pub(crate) &'a CStr);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Enough to recognise the value.
        const SHOWN_MAX: usize = 200;
        for &byte in self.0.to_bytes().iter().take(SHOWN_MAX) {
            f.write_char(if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '?' })?;
        }
        Ok(())
    }
}
