//! An ordinary thread that empties the kernel's rings, again and again, until it is stopped or dropped.

use lockwright_sys::sched::{self, ME};
use lockwright_sys::signal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The time between two rounds.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// The thread, and what it collects.
pub(crate) struct Rounds<T> {
    thread: Option<JoinHandle<T>>,
    is_over: Arc<AtomicBool>,
}

impl<T> Rounds<T> {
    /// Tells the thread that one more round is enough.
    fn end(&self) {
        // ORDERING: Relaxed: the flag publishes nothing.
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl<T> Drop for Rounds<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Send + 'static> Rounds<T> {
    /// Starts a thread of this name that collects. `round` is told whether it is the last one.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        name: &str,
        mut collected: T,
        mut round: impl FnMut(&mut T, bool) + Send + 'static,
    ) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let rounds = move || {
            // If the kernel refuses, the thread keeps the caller's policy, and may delay tasks by some microseconds.
            let _ = sched::set_other(ME);
            // BOUND: until the run ends, which it does in bounded time.
            loop {
                // ORDERING: Relaxed: as in `end`.
                let is_last = over.load(Ordering::Relaxed);
                round(&mut collected, is_last);
                if is_last {
                    return collected;
                }
                std::thread::park_timeout(PAUSE);
            }
        };
        let builder = std::thread::Builder::new().name(name.into());
        let thread = signal::with_all_blocked(|| builder.spawn(rounds))?;
        Ok(Self { thread: Some(thread), is_over })
    }

    /// Ends the thread, and returns what it collected; `None` if it panicked.
    ///
    /// BOUND: one last round.
    pub(crate) fn stop(mut self) -> Option<T> {
        self.end();
        self.thread.take()?.join().ok()
    }
}
