//! Lines on stderr, written in one piece, without allocation, and without the C library's streams.

use lockwright::mutex::Link;
use std::cell::Cell;
use std::ffi::CStr;
use std::fmt::{self, Write};

/// As much as a cycle of the greatest length that is followed.
const BYTES_MAX: usize = 8192;

/// What does not fit is left out.
struct Line {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the end of the line.
        let room = &mut self.bytes[self.length..BYTES_MAX - 1];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

fn line(write: impl FnOnce(&mut Line) -> fmt::Result) {
    let mut line = Line { bytes: [0; BYTES_MAX], length: 0 };
    // It cannot fail.
    let _ = line.write_str("lockwright: ").and_then(|()| write(&mut line));
    line.bytes[line.length] = b'\n';
    // The system call: the C library's function would be a place where the thread can be cancelled. What cannot be told is not.
    // SAFETY: the bytes are valid for reading.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.bytes.as_ptr(), line.length + 1) };
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// While it lives nothing is told of the calling thread's cycles: they are known.
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

/// Threads that wait for each other, the last one for the first.
pub(crate) fn cycle(links: &[Link]) {
    if QUIET.get() {
        return;
    }
    line(|line| {
        // SAFETY: takes nothing and cannot fail.
        write!(line, "deadlock in process {}:", unsafe { libc::getpid() })?;
        for (index, link) in links.iter().enumerate() {
            let next = links[(index + 1) % links.len()].thread;
            let comma = if index == 0 { "" } else { "," };
            write!(
                line,
                "{comma} thread {} waits for the mutex at {:#x}, which thread {next} has",
                link.thread, link.mutex
            )?;
        }
        Ok(())
    });
}

/// A variable of the environment that says nothing known.
pub(crate) fn bad_value(name: &CStr, value: &CStr, values: &[(&CStr, u32)]) {
    line(|line| {
        write!(line, "{}={}: it can be", Bytes(name), Bytes(value))?;
        for (index, (known, _)) in values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(line, "{comma} {}", Bytes(known))?;
        }
        write!(line, "; taken as {}", Bytes(values[0].0))
    });
}

/// Shown as far as it is ASCII that can be printed.
struct Bytes<'a>(&'a CStr);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Enough to recognize it.
        const SHOWN_MAX: usize = 200;
        for &byte in self.0.to_bytes().iter().take(SHOWN_MAX) {
            f.write_char(if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '?' })?;
        }
        Ok(())
    }
}
