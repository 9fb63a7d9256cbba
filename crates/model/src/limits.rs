//! The limits of a system. They are also the capacities of the protocol machines.

/// The maximum number of tasks of one system.
pub const TASKS_MAX: usize = 8192;
/// The maximum number of tasks of a system that is simulated or executed, which is the capacity of the protocol
/// machines. The analysis accepts [`TASKS_MAX`].
pub const EXECUTED_TASKS_MAX: usize = 1024;
/// The maximum number of resources of one system.
pub const RESOURCES_MAX: usize = 256;
/// The maximum number of processors of one system.
pub const CPUS_MAX: usize = 64;
/// The maximum number of steps of one job.
pub const STEPS_MAX: usize = 4096;
/// The maximum number of resources that one job may hold at the same time.
pub const NESTING_MAX: usize = 8;
