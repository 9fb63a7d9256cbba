//! Terms that a broken twin of the analysis leaves out, so that tests can show they would notice.

/// One term of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "twins"), allow(dead_code))]
pub enum Omit {
    /// Sections of less urgent tasks under `icpp`.
    LocalIcpp,
    /// Sections of less urgent tasks under `pip`.
    LocalPip,
    /// `pip`: every blocker but the longest.
    LocalPipRest,
    /// Boosted sections of less urgent tasks.
    Boosted,
    /// That blocking repeats at every resumption.
    Repeats,
    /// The less urgent holder met by a request.
    RemoteHolder,
    /// More urgent requests granted first.
    RemoteUrgent,
    /// Requests of equal priority granted first.
    RemoteEquals,
    /// Jobs of more urgent requesters that arrived before the request (T instead of T and R in their count).
    RemoteCarryIn,
    /// Boosted sections that stretch a holder's own.
    Stretch,
    /// The jitter of tasks that suspend.
    SuspensionJitter,
    /// Release jitter.
    ReleaseJitter,
    /// Interference of tasks of equal priority.
    Equals,
    /// Whatever requests wait for, under the protocols of `blocking/across.rs`.
    Waiting,
    /// In clusters: requests of other tasks of the own one.
    OwnCluster,
    /// In clusters: work left from before the window.
    CarryIn,
    /// Interruptible sections that begin again.
    Again,
    /// Of those that one job makes begin again, all but the longest.
    AgainRest,
    /// Those under a lock of less urgent tasks, which block.
    AgainOfBlocker,
    /// In clusters: that interrupts are shared by no other processors.
    Pinned,
}

#[cfg(feature = "twins")]
impl Omit {
    /// Every twin.
    pub const ALL: [Self; 20] = [
        Self::LocalIcpp,
        Self::LocalPip,
        Self::LocalPipRest,
        Self::Boosted,
        Self::Repeats,
        Self::RemoteHolder,
        Self::RemoteUrgent,
        Self::RemoteEquals,
        Self::RemoteCarryIn,
        Self::Stretch,
        Self::SuspensionJitter,
        Self::ReleaseJitter,
        Self::Equals,
        Self::Waiting,
        Self::OwnCluster,
        Self::CarryIn,
        Self::Again,
        Self::AgainRest,
        Self::AgainOfBlocker,
        Self::Pinned,
    ];
}
