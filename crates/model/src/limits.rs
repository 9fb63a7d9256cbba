//! The limits of a system. They are the capacities of the protocol machines as well.

/// The maximum number of tasks of one system.
pub const MAX_TASKS: usize = 8192;
/// The maximum number of tasks of a system that is simulated or executed, which is the capacity of the protocol
/// machines. The analysis accepts [`MAX_TASKS`].
pub const MAX_EXECUTED_TASKS: usize = 1024;
/// The maximum number of resources of one system.
pub const MAX_RESOURCES: usize = 256;
/// The maximum number of processors of one system.
pub const MAX_CPUS: usize = 64;
/// The maximum number of steps of one job.
pub const MAX_STEPS: usize = 4096;
/// The maximum number of resources that one job may hold at the same time.
pub const MAX_NESTING: usize = 8;
