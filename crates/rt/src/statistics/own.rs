//! The counters of those mutexes of this process that ask to be counted.

use super::counters::{DETAILED_MAX, MutexCounters};
use lockwright_sys::fork;
use std::sync::OnceLock;

/// How many mutexes of a process are counted.
pub const COUNTED_MAX: usize = DETAILED_MAX;

/// The counters, and the process whose they are.
static OWN: OnceLock<(MutexCounters, u32)> = OnceLock::new();

/// Begins to count what threads do with the [counted](crate::mutex::Builder::counted) mutexes of this process. Until
/// then nothing is counted. Call it before the real-time threads begin and before any `fork`: it maps and locks 2 MB of
/// memory, for at most [`COUNTED_MAX`] mutexes. Later calls do nothing.
///
/// Other processes may read the statistics ([`Mutexes::of_process`](super::Mutexes::of_process), `lockwright watch`),
/// for which this process keeps one more descriptor open. A child process of `fork` counts nothing. Children of
/// `_Fork`, `vfork` and a plain `clone` are not noticed, and must not use counted mutexes.
///
/// # Examples
/// ```
/// use lockwright::mutex::Mutex;
/// use lockwright::statistics::count_mutexes;
///
/// static SHARED: Mutex<u32> = Mutex::builder().counted(true).build(0);
///
/// count_mutexes();
/// *SHARED.lock()? += 1;
/// let statistics = SHARED.statistics().expect("a lock was counted");
/// assert_eq!((statistics.sections, statistics.waits), (1, 0));
/// # Ok::<(), lockwright::mutex::LockError<'static, u32>>(())
/// ```
pub fn count_mutexes() {
    OWN.get_or_init(|| (MutexCounters::detailed(), fork::generation()));
}

/// Begins to count all mutexes that have the attribute, up to 4,096, without the distribution of their waits: for
/// programs that did not choose what to count.
#[doc(hidden)]
pub fn count_all_mutexes() {
    OWN.get_or_init(|| (MutexCounters::new(), fork::generation()));
}

/// Returns the counters, if this process counts.
#[doc(hidden)]
#[must_use]
pub fn own_counters() -> Option<&'static MutexCounters> {
    OWN.get().filter(|own| own.1 == fork::generation()).map(|own| &own.0)
}
