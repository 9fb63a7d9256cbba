//! The standard streams of this process, or those of a program that executes a command line in this process.

use crate::layout::Layout;
use std::cell::RefCell;
use std::io::{self, Cursor, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The streams of a call.
#[derive(Debug, Default)]
struct Call {
    input: Vec<u8>,
    out: Vec<u8>,
    err: Vec<u8>,
    /// Whether the call should stop.
    stop: Arc<AtomicBool>,
}

thread_local! {
    /// The streams of the call that this thread executes; `None` if it uses those of the process.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// The output of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// Executes `body` with `input` as standard input, and collects its output. `stop` interrupts it as a signal would.
/// Threads that `body` starts use the streams of the process.
pub fn collect<T>(input: Vec<u8>, stop: Arc<AtomicBool>, body: impl FnOnce() -> T) -> (T, Written) {
    CALL.set(Some(Call { input, stop, ..Call::default() }));
    let result = body();
    let call = CALL.take().unwrap_or_default();
    let [out, err] = [call.out, call.err].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (result, Written { out, err })
}

/// Whether this thread executes a call.
#[must_use]
pub fn is_call() -> bool {
    CALL.with_borrow(Option::is_some)
}

/// The flag that stops the call that this thread executes.
#[must_use]
pub fn stop() -> Option<Arc<AtomicBool>> {
    CALL.with_borrow(|call| call.as_ref().map(|call| Arc::clone(&call.stop)))
}

/// Writes to standard output.
///
/// # Errors
/// The stream cannot be written.
pub fn write_out(bytes: &[u8]) -> io::Result<()> {
    if CALL.with_borrow_mut(|call| call.as_mut().map(|call| call.out.extend_from_slice(bytes))).is_some() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes to standard error.
pub fn write_err(bytes: &[u8]) {
    if CALL.with_borrow_mut(|call| call.as_mut().map(|call| call.err.extend_from_slice(bytes))).is_none() {
        // If standard error is closed, there is nowhere to report that.
        let _ = io::stderr().lock().write_all(bytes);
    }
}

/// Standard input.
pub fn input() -> Box<dyn Read> {
    match CALL.with_borrow_mut(|call| call.as_mut().map(|call| std::mem::take(&mut call.input))) {
        Some(bytes) => Box::new(Cursor::new(bytes)),
        None => Box::new(io::stdin().lock()),
    }
}

/// Whether standard output and standard error are terminals.
#[must_use]
pub fn are_terminals() -> [bool; 2] {
    if is_call() { [false; 2] } else { [io::stdout().is_terminal(), io::stderr().is_terminal()] }
}

/// The layouts of standard output and standard error. With `wide` lines may be of any length.
#[must_use]
pub fn layouts(wide: bool) -> [Layout; 2] {
    if is_call() {
        return [Layout::of_pipe(wide); 2];
    }
    [Layout::of(io::stdout(), wide), Layout::of(io::stderr(), wide)]
}
