//! `watch`.

use super::help::OUTPUT;
use super::values::duration;
use clap::Args;
use lockwright_model::Duration;

/// `watch`.
#[derive(Args, Debug)]
pub struct Watch {
    /// Process to watch
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub process: u32,
    /// Time between two looks
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "250ms")]
    pub every: Duration,
    /// Look once, and print text, also on a terminal
    #[arg(long, help_heading = OUTPUT)]
    pub once: bool,
    /// Look once, and print one JSON object (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}
