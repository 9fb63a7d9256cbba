//! The configuration of a simulation.

use lockwright_model::{CpuId, Duration, Instant, Priority, Protocol, TaskId};

/// When the first jobs arrive.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Offsets {
    /// At the offsets of the system.
    #[default]
    File,
    /// All at time zero.
    Synchronous,
    /// Each at random within its period, uniformly.
    Random,
    /// At these offsets, by task id. Missing ones are zero.
    Fixed(Vec<Duration>),
}

/// How the jobs of a task follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arrivals {
    /// One every period.
    #[default]
    Periodic,
    /// At least one period apart: mostly exactly one, at random up to two.
    Sporadic,
}

/// How long jobs execute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Execution {
    /// Always for the worst case.
    #[default]
    Worst,
    /// At random, from one nanosecond to the worst case.
    Random,
}

/// A change of a task's base priority during the simulation.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// The time of the change.
    pub at: Instant,
    /// The task.
    pub task: TaskId,
    /// The new base priority. Under `icpp` it must not exceed the ceilings of the resources that the task uses.
    pub priority: Priority,
}

/// A time in which a processor executes no task, because the machine uses it or a host has taken it.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stall {
    /// The start.
    pub at: Instant,
    /// The processor.
    pub cpu: CpuId,
    /// The length. If the processor is stalled already, this is added.
    pub length: Duration,
}

/// The overheads of the machine, which execute above every task and every section. The default has none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Taken {
    /// The period of a processor's tick; zero if there is none.
    pub tick_period: Duration,
    /// The length of the interrupt of a tick.
    pub tick: Duration,
    /// The length of the interrupt that releases a job. It comes on the processor of the task, or in a cluster on one
    /// of its processors, at random.
    pub release: Duration,
    /// The greatest delay of ticks and releases. Each delay is drawn at random.
    pub latency: Duration,
    /// The time of a context switch: whenever a processor executes another task than before, or becomes idle.
    pub switch: Duration,
    /// The time to refill the caches: whenever a job continues on a processor that executed something else before.
    pub refill: Duration,
    /// By task id: the time to refill the caches in addition to `refill`. Missing ones are zero.
    pub refills: Vec<Duration>,
    /// The greatest time after which a processor notices what another one did: it made a job ready or moved it there.
    /// In clusters, under global schedulers and with `dedicated`, that includes releases. Each time is drawn at random.
    pub ipi: Duration,
    /// Whether a processor without tasks executes the interrupts that release jobs, one after the other. A job is
    /// released at the end of its interrupt.
    pub dedicated: bool,
    /// Scripted times in which single processors execute no task.
    pub stalls: Vec<Stall>,
}

/// The configuration of a simulation: everything except the system.
///
/// # Examples
/// ```
/// use lockwright_model::Protocol;
/// use lockwright_sim::{Config, Offsets};
/// let config = Config::default().with_protocol(Protocol::Icpp).with_offsets(Offsets::Random).with_seed(7);
/// assert_eq!((config.protocol, config.seed), (Some(Protocol::Icpp), 7));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// The protocol of resources that name none. `None` stands for the system's own choice
    /// ([`System::protocol_or_default`](lockwright_model::System::protocol_or_default)).
    pub protocol: Option<Protocol>,
    /// When the first jobs arrive.
    pub offsets: Offsets,
    /// How the jobs of a task follow one another.
    pub arrivals: Arrivals,
    /// How long jobs execute.
    pub execution: Execution,
    /// The seed of everything random. The same seed gives the same schedule.
    pub seed: u64,
    /// Whether processors that act at the same instant do so in random order. Otherwise the lowest CPU is first.
    pub shuffle: bool,
    /// Scripted changes of base priorities. Observed blocking is counted by the priorities at the start.
    pub changes: Vec<Change>,
    /// The overheads of the machine. With overheads, the observed blocking has no meaning.
    pub taken: Option<Taken>,
}

impl Config {
    /// The same with this protocol for resources that name none.
    #[must_use]
    pub fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// The same with these first arrivals.
    #[must_use]
    pub fn with_offsets(self, offsets: Offsets) -> Self {
        Self { offsets, ..self }
    }

    /// The same with this distance of jobs.
    #[must_use]
    pub fn with_arrivals(self, arrivals: Arrivals) -> Self {
        Self { arrivals, ..self }
    }

    /// The same with these execution times.
    #[must_use]
    pub fn with_execution(self, execution: Execution) -> Self {
        Self { execution, ..self }
    }

    /// The same with this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same with processors that act at the same instant in random order, or not.
    #[must_use]
    pub fn with_shuffle(self, shuffle: bool) -> Self {
        Self { shuffle, ..self }
    }

    /// The same with these scripted changes of base priorities.
    #[must_use]
    pub fn with_changes(self, changes: Vec<Change>) -> Self {
        Self { changes, ..self }
    }

    /// The same with these overheads of the machine.
    #[must_use]
    pub fn with_taken(self, taken: Taken) -> Self {
        Self { taken: Some(taken), ..self }
    }
}
