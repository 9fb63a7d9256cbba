//! The default capacities of the machines.

use lockwright_model::{MAX_EXECUTED_TASKS, MAX_RESOURCES};

/// The default capacity of a machine: the tasks of the largest system that is simulated or executed.
pub const DEFAULT_TASKS: usize = MAX_EXECUTED_TASKS;
/// The default capacity of a machine: the resources of the largest system.
pub const DEFAULT_RESOURCES: usize = MAX_RESOURCES;
