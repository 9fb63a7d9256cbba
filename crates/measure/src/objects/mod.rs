//! Non-blocking objects, beside the sequential ones: alone, and used by all CPUs at once.
//!
//! The operations are those of a published table: a buffer of ten words is written or read at random; a queue and a
//! heap grow, because 60 % of the operations append. All objects get the same operations.

pub(crate) mod alone;
pub(crate) mod contended;
mod subjects;

use lockwright_model::ObjectKind;
use lockwright_sys::cycles;
use subjects::Call;

/// How an object is shared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sharing {
    /// Not at all: the sequential object.
    Short,
    /// The lock-free object.
    LockFree,
    /// The wait-free object.
    WaitFree,
    /// The sequential object under a ticket lock.
    Spin,
    /// The sequential object under a mutex with priority inheritance.
    Inherit,
}

impl Sharing {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::LockFree => "lock-free",
            Self::WaitFree => "wait-free",
            Self::Spin => "ticket lock",
            Self::Inherit => "PI mutex",
        }
    }
}

/// The greatest number of operations without a rest.
const CHUNK: usize = 1_000;
/// Longer than any chunk: operations of 50 us.
const CHUNK_NS_MAX: u64 = 50_000_000;

/// The operations on an object of this kind, `count` of them.
fn calls(kind: ObjectKind, count: usize) -> Vec<Call> {
    let mut random = fastrand::Rng::with_seed(2008);
    let puts = if kind == ObjectKind::Buffer { 5 } else { 6 };
    (0..count).map(|_| if random.u8(0..10) < puts { Call::Put(random.u64(..)) } else { Call::Take }).collect()
}

/// The median time of an empty reading, in cycles.
fn empty_reading() -> u64 {
    let mut times = [0; 1_001];
    times.iter_mut().for_each(|time| {
        let before = cycles::now();
        *time = cycles::now().saturating_sub(before);
    });
    times.sort_unstable();
    times[times.len() / 2]
}

/// Times each call, in cycles.
#[inline(always)]
fn time(calls: &[Call], empty: u64, readings: &mut Vec<u64>, mut operate: impl FnMut(Call)) {
    for &call in calls {
        let before = cycles::now();
        operate(call);
        readings.push(cycles::now().saturating_sub(before).saturating_sub(empty));
    }
}
