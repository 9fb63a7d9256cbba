//! The results of the measurements, and their errors.

use crate::harness::Readings;
use crate::works::{Interruptions, Work};
use lockwright::section::SectionError;
use lockwright::tasks::{ResourceError, TaskError};
use lockwright_engine::RunError;
use lockwright_model::Protocol;

/// The costs of one protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolCost {
    /// The name of the protocol, and of the variant if there are two.
    pub name: &'static str,
    /// The protocol, if its operations are those of a task set.
    pub protocol: Option<Protocol>,
    /// Lock and unlock together, without contention, in nanoseconds.
    pub alone: Readings,
    /// Lock, and unlock, without contention.
    pub alone_each: Option<(Readings, Readings)>,
    /// The work of the protocol at the begin and at the end of a job, together.
    pub job: Option<Readings>,
    /// The value that the median of `alone` should not exceed, in nanoseconds, computed from the machine's costs in the
    /// same run.
    pub target_ns: Option<u64>,
    /// Lock, and unlock, under the workload; `None` if they were not measured.
    pub contended: Option<(Readings, Readings)>,
}

/// The results of the measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocols {
    /// The costs of the machine and its kernel. Operations that cannot be measured on this machine are missing.
    pub machine: Vec<(Work, Readings)>,
    /// The interruptions of a thread above all others: by ticks, by other interrupts, and by the host.
    pub interruptions: Interruptions,
    /// The costs of each protocol.
    pub costs: Vec<ProtocolCost>,
    /// The number of application processors of the workload.
    pub applications: usize,
    /// Whether synchronisation has a processor of its own.
    pub has_synchronisation: bool,
    /// Whether the measurement was ended early.
    pub interrupted: bool,
}

impl Protocols {
    /// Returns the readings of one operation of the machine.
    #[must_use]
    pub fn work(&self, work: Work) -> Option<&Readings> {
        self.machine.iter().find(|(known, _)| *known == work).map(|(_, readings)| readings)
    }
}

/// A protocol and how its tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) protocol: Protocol,
    pub(super) variant: Variant,
}

/// How the tasks of a measurement are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Variant {
    /// By fixed priorities, each on one processor.
    Partitioned,
    /// By fixed priorities, in a cluster of two processors.
    Clustered,
    /// By deadlines, on one processor: its scheduler decides at the begin and at the end of a job.
    ByDeadline,
}

impl Kind {
    /// Returns the variants of the protocols on a machine with this number of processors.
    pub(super) fn of(protocols: &[Protocol], cpus: usize) -> Vec<Self> {
        let plain = protocols.iter().map(|&protocol| Self::plain(protocol));
        let has = |protocol| protocols.contains(&protocol);
        let by_deadline = Self { protocol: Protocol::Srp, variant: Variant::ByDeadline };
        let clustered = Self { protocol: Protocol::Omlp, variant: Variant::Clustered };
        let others = [(by_deadline, has(Protocol::Srp)), (clustered, has(Protocol::Omlp) && cpus > 1)];
        plain.chain(others.into_iter().filter(|(_, is_measured)| *is_measured).map(|(kind, _)| kind)).collect()
    }

    pub(super) fn plain(protocol: Protocol) -> Self {
        Self { protocol, variant: Variant::Partitioned }
    }

    pub(super) fn name(self) -> &'static str {
        match self.variant {
            Variant::Partitioned => self.protocol.name(),
            Variant::Clustered => "omlp, in a cluster",
            Variant::ByDeadline => "srp, under p-edf",
        }
    }

    /// Whether it is executed under the workload. The workload has no interruptible sections, as its threads cannot
    /// undo their writes.
    pub(super) fn has_workload(self) -> bool {
        self.variant == Variant::Partitioned && !self.protocol.is_interruptible()
    }
}

pub(super) fn run_error(error: TaskError) -> RunError {
    match error {
        TaskError::Machine(error) => error.into(),
        TaskError::Lock(ResourceError::Sys(error)) => error.into(),
        _ => RunError::SetUp,
    }
}

pub(super) fn section_error(error: SectionError) -> RunError {
    match error {
        SectionError::Sys(error) | SectionError::NoCpu { error, .. } | SectionError::NoPermission { error, .. } => {
            error.into()
        }
        _ => RunError::SetUp,
    }
}
