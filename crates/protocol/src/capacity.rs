//! The default capacities of the machines.

use lockwright_model::{EXECUTED_TASKS_MAX, RESOURCES_MAX};

/// The default capacity of a machine: the tasks of the largest system that is simulated or executed.
pub const DEFAULT_TASKS: usize = EXECUTED_TASKS_MAX;
/// The default capacity of a machine: the resources of the largest system.
pub const DEFAULT_RESOURCES: usize = RESOURCES_MAX;
