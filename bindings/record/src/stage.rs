//! Whether threads are recorded now.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The size of a ring unless something else is requested.
pub(crate) const RING_USUAL: usize = 4 << 20;

/// Where the recording is.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// Nothing is recorded yet: the library is not loaded, or the program has not asked for it.
    Before,
    /// Threads are recorded.
    Records { ring_bytes: usize },
    /// Nothing is recorded in this process, or no more.
    Ended,
}

const BEFORE: u32 = 0;
const RECORDS: u32 = 1;
const ENDED: u32 = 2;

static STAGE: AtomicU32 = AtomicU32::new(BEFORE);
static RING_BYTES: AtomicUsize = AtomicUsize::new(RING_USUAL);

pub(crate) fn get() -> Stage {
    // ORDERING: Acquire pairs with the Release in `set`.
    match STAGE.load(Ordering::Acquire) {
        BEFORE => Stage::Before,
        RECORDS => Stage::Records { ring_bytes: RING_BYTES.load(Ordering::Relaxed) },
        _ => Stage::Ended,
    }
}

pub(crate) fn set(stage: Stage) {
    let number = match stage {
        Stage::Before => BEFORE,
        Stage::Records { ring_bytes } => {
            RING_BYTES.store(ring_bytes, Ordering::Relaxed);
            RECORDS
        }
        Stage::Ended => ENDED,
    };
    // ORDERING: Release pairs with the Acquire in `get`.
    STAGE.store(number, Ordering::Release);
}
