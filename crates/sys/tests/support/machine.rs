//! The machine, which tests on real threads use one at a time: they need its real-time levels and its processors.
//!
//! The tests of this crate and of all crates above it include this file. They can be several processes at once.

use lockwright_sys::sched;
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// The highest level there is.
const HIGHEST: u8 = 99;

/// The kernel's error if it has no time left for SCHED_DEADLINE.
const EBUSY: i32 = 16;

/// The turns of the tests in this process.
static HERE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread, which executes one test, has waited for the machine.
    static HAS_WAITED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the test of this thread has waited for the machine.
#[allow(dead_code, reason = "not every crate has tests that start other programs")]
pub fn has_waited() -> bool {
    HAS_WAITED.get()
}

/// The right to the machine, until it is dropped.
pub struct Machine {
    _here: Turn,
    /// The turn among the processes.
    _everywhere: Option<File>,
}

/// Alone, or with others that only compute.
enum Turn {
    Alone { _guard: RwLockWriteGuard<'static, ()> },
    Shared { _guard: RwLockReadGuard<'static, ()> },
}

impl Turn {
    fn alone() -> Self {
        HAS_WAITED.set(true);
        Self::Alone { _guard: HERE.write().unwrap_or_else(PoisonError::into_inner) }
    }

    fn shared() -> Self {
        HAS_WAITED.set(true);
        Self::Shared { _guard: HERE.read().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// Waits for the machine. Returns `None`, and prints the reason, if the process may not use real-time priorities; with
/// LOCKWRIGHT_REQUIRE_RT, that is a failure.
pub fn require_realtime() -> Option<Machine> {
    let here = Turn::alone();
    has_permission().then(|| Machine { _here: here, _everywhere: lock_file(File::lock) })
}

/// As [`require_realtime`], for tests whose threads have real-time priorities for moments only: several of them run at
/// once.
#[allow(dead_code, reason = "not every crate has such tests")]
pub fn require_moments() -> Option<Machine> {
    let here = Turn::shared();
    has_permission().then(|| Machine { _here: here, _everywhere: lock_file(File::lock_shared) })
}

fn has_permission() -> bool {
    match sched::try_fifo(HIGHEST) {
        Ok(()) => true,
        Err(error) if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() => {
            panic!("no permission for real-time priorities: {error}")
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: no permission for real-time priorities: {error}");
            false
        }
    }
}

/// Waits for the machine, also without permission for real-time priorities.
#[allow(dead_code, reason = "not every crate has such tests")]
pub fn alone() -> Machine {
    Machine { _here: Turn::alone(), _everywhere: lock_file(File::lock) }
}

/// As [`require_realtime`], for threads under SCHED_DEADLINE. Also returns the number of CPUs that the process may use.
#[allow(dead_code, reason = "not every crate has such tests")]
pub fn require_deadline() -> Option<(Machine, usize)> {
    let machine = require_realtime()?;
    let mut answer = sched::try_deadline();
    if answer.as_ref().is_err_and(|error| error.errno == EBUSY) {
        // The longest deadline, until which the kernel keeps the reservations of threads that have ended.
        std::thread::sleep(Duration::from_millis(4_200));
        sched::recount_deadlines();
        answer = sched::try_deadline();
    }
    match answer {
        Ok(()) => Some((machine, sched::affinity().map_or(0, |cpus| cpus.len()))),
        // Others have reserved all time.
        Err(error) if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() && error.errno != EBUSY => {
            panic!("no SCHED_DEADLINE: {error}")
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: no SCHED_DEADLINE: {error}");
            None
        }
    }
}

/// Waits until no test uses the machine alone. Tests that keep a processor busy for seconds share it.
#[allow(dead_code, reason = "not every crate has such tests")]
pub fn shared() -> Machine {
    Machine { _here: Turn::shared(), _everywhere: lock_file(File::lock_shared) }
}

/// Without the file, only the tests of this process take turns; with LOCKWRIGHT_REQUIRE_RT, that is a failure.
///
/// BOUND: the tests of all processes that use the machine.
fn lock_file(lock: fn(&File) -> std::io::Result<()>) -> Option<File> {
    let path = std::env::temp_dir().join("lockwright-realtime-tests.lock");
    // The file of another user can be opened for reading.
    let file = File::options().create(true).append(true).open(&path).or_else(|_| File::open(&path));
    let locked = file.and_then(|file| lock(&file).map(|()| file));
    if let Err(error) = &locked {
        assert!(std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_none(), "{}: {error}", path.display());
    }
    locked.ok()
}
