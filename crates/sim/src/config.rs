//! What is simulated, besides the system.

use lockwright_model::{Duration, Instant, Priority, Protocol, TaskId};

/// When the first jobs arrive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Offsets {
    /// As the system says.
    #[default]
    File,
    /// All at time zero.
    Synchronous,
    /// Each uniformly within its period, from the seed.
    Random,
    /// These, by task id; missing ones are zero.
    Fixed(Vec<Duration>),
}

/// How jobs follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrivals {
    /// One every period.
    #[default]
    Periodic,
    /// At least a period apart, from the seed: mostly just that, now and then up to two.
    Sporadic,
}

/// How long runs take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Execution {
    /// The worst case, always.
    #[default]
    Worst,
    /// From the seed: the worst case, a nanosecond, or anything between.
    Random,
}

/// The base priority of a task changes while the system runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// Whose.
    pub task: TaskId,
    /// To what. Under `icpp` it must not exceed the ceilings of what the task uses.
    pub priority: Priority,
}

/// What the machine takes from its processors beside what tasks execute: above every task, sections included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// From one tick of a processor to the next; zero where there is none.
    pub tick_period: Duration,
    /// The interrupt of a tick.
    pub tick: Duration,
    /// The interrupt that releases a job, on the processor of its task; in a cluster on any of those, from the seed.
    pub release: Duration,
    /// How late ticks and releases are, from the seed: at most this.
    pub latency: Duration,
    /// Whenever another task executes on a processor, or none.
    pub switch: Duration,
    /// Whenever a job goes on that did not execute on the processor just before.
    pub refill: Duration,
}

/// What is simulated, besides the system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// The protocol of resources that name none; `None` is the system's own choice
    /// ([`System::protocol_or_default`](lockwright_model::System::protocol_or_default)).
    pub protocol: Option<Protocol>,
    /// When the first jobs arrive.
    pub offsets: Offsets,
    /// How jobs follow one another.
    pub arrivals: Arrivals,
    /// How long runs take.
    pub execution: Execution,
    /// Source of everything random: offsets, arrivals, executions, and release jitter. One seed, one schedule.
    pub seed: u64,
    /// Processors that have something to do at the same instant do it in random order, from the seed; else the lower CPU is first.
    pub shuffle: bool,
    /// Scripted changes of base priorities. Observed blocking is counted by the priorities of the start.
    pub changes: Vec<Change>,
    /// Where the machine takes time itself. Observed blocking means nothing then.
    pub taken: Option<Taken>,
}
