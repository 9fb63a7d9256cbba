//! Terms and charges that a mutant of the analysis omits. Tests use the mutants to show that they would detect the
//! missing term.

/// The omission of an analysis: none, or the part that a mutant omits. Without the feature `mutants`, it takes no room,
/// and the compiler removes every question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Omission<M> {
    #[cfg(feature = "mutants")]
    part: Option<M>,
    #[cfg(not(feature = "mutants"))]
    part: core::marker::PhantomData<M>,
}

#[cfg(feature = "mutants")]
impl<M: Copy + PartialEq> Omission<M> {
    pub(crate) const NOTHING: Self = Self { part: None };

    pub(crate) fn of(part: M) -> Self {
        Self { part: Some(part) }
    }

    pub(crate) fn is(self, part: M) -> bool {
        self.part == Some(part)
    }
}

#[cfg(not(feature = "mutants"))]
impl<M: Copy> Omission<M> {
    pub(crate) const NOTHING: Self = Self { part: core::marker::PhantomData };

    pub(crate) const fn is(self, _part: M) -> bool {
        false
    }
}

impl<M: Copy + PartialEq> Omission<M> {
    /// Returns `value`, or the default one, which is nothing, if the mutant omits this part.
    pub(crate) fn unless<T: Default>(self, part: M, value: T) -> T {
        if self.is(part) { T::default() } else { value }
    }
}

/// One term of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mutant {
    /// Sections of less urgent tasks under `icpp`.
    LocalIcpp,
    /// Sections of less urgent tasks under `pip`.
    LocalPip,
    /// All sections that block under `pip`, except the longest.
    LocalPipRest,
    /// Boosted sections of less urgent tasks.
    Boosted,
    /// The repetition of blocking at every resumption.
    Repeats,
    /// The less urgent holder that a request may find.
    RemoteHolder,
    /// More urgent requests that are granted first.
    RemoteUrgent,
    /// Requests of equal priority that are granted first.
    RemoteEquals,
    /// Jobs of more urgent tasks that arrived before the request: the mutant omits R in `ceil((X + R) / T)`.
    RemoteCarryIn,
    /// Boosted sections that prolong the section of a holder.
    Stretch,
    /// In the program of `mpcp`: sections that preempt owners on the processor of the job that waits for them.
    #[cfg_attr(not(feature = "lp"), allow(dead_code))]
    OwnOwners,
    /// The jitter of tasks that suspend.
    SuspensionJitter,
    /// Release jitter, and in the programs of `p-edf` the lateness of releases.
    ReleaseJitter,
    /// Interference of tasks of equal priority.
    Equals,
    /// The waits of requests, under the protocols of `system/across.rs`, and in the programs of `p-edf`.
    Waiting,
    /// In clusters: the requests of other tasks of the job's own cluster.
    OwnCluster,
    /// In clusters: the work left from before the window.
    CarryIn,
    /// Interruptible sections that are executed again, and attempts under `lock_free` that fail because of jobs of the
    /// same processor.
    Again,
    /// All sections that one job restarts, except the longest.
    AgainRest,
    /// The restarts of the section under a lock of a less urgent task that blocks.
    AgainOfBlocker,
    /// In clusters: that each interrupt executes on one processor, so that its work is not divided.
    Pinned,
    /// Attempts under `lock_free` that fail because of commits on other processors.
    RemoteCommits,
    /// The jobs that preempt one operation under `lock_free`, and prolong the time in which others commit.
    Preempted,
    /// Under `phase_fair` and `task_fair`: the sections of others that read.
    Reads,
    /// Under `phase_fair` and `task_fair`: the sections of others that write.
    Writes,
    /// Under `p-edf` with long resources: the section of its processor that delays a job when it resumes.
    Resumption,
    /// In the programs of `p-edf`, and with long resources: that other processors must be proved as well.
    #[cfg_attr(not(feature = "lp"), allow(dead_code))]
    Partners,
}

#[cfg(feature = "mutants")]
impl Mutant {
    /// Every mutant.
    pub const ALL: [Self; 27] = [
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
        Self::OwnOwners,
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
        Self::RemoteCommits,
        Self::Preempted,
        Self::Reads,
        Self::Writes,
        Self::Resumption,
        Self::Partners,
    ];
}

/// A charge that a mutant omits. Tests use the mutants to show that they would detect the missing charge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChargeMutant {
    /// The two switches of each job.
    JobSwitches,
    /// The cache refill after a job that preempted another.
    JobRefill,
    /// The lateness of a release.
    Lateness,
    /// The timer ticks.
    Ticks,
    /// The interrupts of releases.
    Releases,
    /// The operations in a section.
    Operations,
    /// The costs before a section.
    Before,
    /// The switches in a section.
    SectionSwitches,
    /// The cache refills in a section.
    SectionRefills,
    /// The interrupts during a section.
    SectionInterrupts,
    /// The moves of an owner whose section other jobs help to finish, under `mrsp`.
    Helped,
    /// The interrupts between the spins of a job, under `p-edf` with `msrp`.
    BetweenSpins,
    /// The part of cache refills that depends on working sets.
    CacheDelay,
    /// The working sets of the tasks of a home, whose jobs a section preempts there, under `dpcp` and `dflp`.
    Hosts,
    /// The working sets of other tasks with sections on the same home, which a section preempts there.
    Guests,
    /// The interprocessor interrupt of a release.
    ReleaseIpi,
    /// The interprocessor interrupts of a section.
    SectionIpi,
    /// If a dedicated processor handles the releases: those that it handles before that of a job.
    QueuedReleases,
    /// All costs of a section inside another one.
    InnerSections,
}

#[cfg(feature = "mutants")]
impl ChargeMutant {
    /// Every mutant.
    pub const ALL: [Self; 19] = [
        Self::JobSwitches,
        Self::JobRefill,
        Self::Lateness,
        Self::Ticks,
        Self::Releases,
        Self::Operations,
        Self::Before,
        Self::SectionSwitches,
        Self::SectionRefills,
        Self::SectionInterrupts,
        Self::Helped,
        Self::BetweenSpins,
        Self::CacheDelay,
        Self::Hosts,
        Self::Guests,
        Self::ReleaseIpi,
        Self::SectionIpi,
        Self::QueuedReleases,
        Self::InnerSections,
    ];
}
