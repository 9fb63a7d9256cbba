//! Signals: after the first SIGINT, SIGTERM or SIGHUP a verb stops and prints its results; the second ends the process.

use crate::console::Console;
use crate::exit::Exit;
use crate::streams;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// ORDERING: a flag alone, it publishes nothing: relaxed.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Handles SIGINT, SIGTERM and SIGHUP from now on. Ignored signals stay ignored: `nohup` ignores SIGHUP, and a script
/// that starts a command in the background ignores SIGINT. `then` is called once, at the first signal, by a thread of
/// its own. In a call inside another program, which handles its own signals, it does nothing.
pub fn listen(then: impl FnOnce() + Send + 'static, console: &Console) {
    if streams::is_call() {
        return;
    }
    let failed = |error| console.warn(format!("a signal may end this command without output: {error}"));
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

/// The handler itself sets the flag, so that no other thread needs to be scheduled. The shutdown is registered first:
/// at the first signal, it finds the flag unset.
fn handle(signal: i32, signals: &Signals) -> io::Result<()> {
    flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, &REQUESTED)?;
    flag::register(signal, &REQUESTED)?;
    signals.add_signal(signal)
}

/// The ignored signals of this process, signal 1 in the lowest bit; 0 if they are not known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Whether the verb should stop, for the threads that work for it.
#[derive(Clone, Debug)]
pub struct Watch(Option<Arc<AtomicBool>>);

impl Watch {
    /// The watch of the verb that this thread executes.
    #[must_use]
    pub fn here() -> Self {
        Self(streams::stop())
    }

    /// Whether the verb should stop.
    #[must_use]
    pub fn requested(&self) -> bool {
        REQUESTED.load(Ordering::Relaxed) || self.0.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Whether the verb that this thread executes should stop.
#[must_use]
pub fn requested() -> bool {
    Watch::here().requested()
}
