//! Ctrl-C and its kin: asked for once, a verb stops and prints what it has; twice, the process ends.

use crate::console::Console;
use crate::exit::Exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// ORDERING: a flag alone, it publishes nothing: relaxed.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on, SIGINT, SIGTERM and SIGHUP are requests. Those that are ignored stay so: `nohup` has SIGHUP ignored, and a script
/// SIGINT where it starts a command in the background. `then` is called once, at the first request, from a thread of its own.
pub fn listen(then: impl FnOnce() + Send + 'static, console: &Console) {
    let failed = |error| console.warn(format!("a signal may end this without output: {error}"));
    let mut signals = match Signals::new([0; 0]) {
        Ok(signals) => signals,
        Err(error) => return failed(error),
    };
    let ignored = ignored();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored & 1 << (signal - 1) == 0
            && let Err(error) = handle(signal, &signals)
        {
            failed(error);
        }
    }
    let wait = move || {
        if signals.forever().next().is_some() {
            then();
        }
    };
    if let Err(error) = std::thread::Builder::new().name("signals".into()).spawn(wait) {
        failed(error);
    }
}

/// What is done in the handler itself needs no thread to get a turn. The end of the process comes first: the signal that makes the request
/// does not find one.
fn handle(signal: i32, signals: &Signals) -> io::Result<()> {
    flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, &REQUESTED)?;
    flag::register(signal, &REQUESTED)?;
    signals.add_signal(signal)
}

/// The signals this process ignores, signal 1 in the lowest bit; where the kernel does not say, none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether the verb should come to its end.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
