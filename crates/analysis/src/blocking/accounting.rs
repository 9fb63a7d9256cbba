//! How response times include the delays of each protocol.

use lockwright_model::Protocol;

/// How a job's waits are charged to response times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accounting {
    /// The job suspends, and less urgent jobs execute meanwhile.
    Suspends,
    /// The job suspends or executes elsewhere, which counts as its execution (suspension-oblivious analysis).
    Oblivious,
    /// The job executes its sections on another processor.
    Away,
    /// The job spins, or repeats attempts.
    Spins,
}

/// Returns how the delays of a protocol for several processors are charged, or `None` if its bounds are not a
/// [`DelayBounds`](super::DelayBounds).
pub(crate) fn accounting(protocol: Protocol) -> Option<Accounting> {
    Some(match protocol {
        Protocol::FmlpLong | Protocol::FmlpPlus => Accounting::Suspends,
        Protocol::Omlp | Protocol::MpcpVs => Accounting::Oblivious,
        Protocol::Dpcp | Protocol::Dflp => Accounting::Away,
        Protocol::FmlpShort | Protocol::Msrp | Protocol::Mrsp => Accounting::Spins,
        Protocol::PhaseFair | Protocol::TaskFair => Accounting::Spins,
        Protocol::LockFree | Protocol::WaitFree => Accounting::Spins,
        _ => return None,
    })
}
