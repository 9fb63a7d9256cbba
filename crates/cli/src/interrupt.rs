//! Ctrl-C and its kin: asked for once, a verb stops and prints what it has; twice, the process ends.

use crate::exit::Exit;
use std::sync::atomic::{AtomicBool, Ordering};

/// ORDERING: a flag alone, it publishes nothing: relaxed.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on, SIGINT, SIGTERM and SIGHUP are requests. `then` is called once, at the first of them, from a thread of its own.
pub fn listen(then: impl Fn() + Send + 'static) {
    let handler = move || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
        then();
    };
    // Where no handler can be set, signals do what they always do.
    let _ = ctrlc::try_set_handler(handler);
}

/// Whether the verb should come to its end.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
