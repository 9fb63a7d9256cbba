//! `serve`.

use super::tasks::{ProtocolChoice, protocols};
use super::values::{duration, up_to};
use clap::{Args, ValueHint};
use lockwright_model::Duration;
use std::path::PathBuf;

/// `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Task-set file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Protocol that the page shows first
    #[arg(long, short, value_name = "PROTOCOL", default_value = "file", value_parser = protocols())]
    pub protocol: ProtocolChoice,
    /// Charge the overheads in this file (format: docs/overheads.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
    /// Virtual length of each schedule, for example 10s [default: two hyperperiods, at most the time of about 10,000
    /// jobs, and at least that of one job of each task]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Port on 127.0.0.1 [1 to 65,535] [default: a free one]
    #[arg(long, value_name = "PORT", value_parser = up_to::<u16>(65_535))]
    pub port: Option<u16>,
    /// Let the page save the file
    #[arg(long)]
    pub save: bool,
    /// Answer one question of a page, for the server with this process id, which starts this process
    #[arg(long, hide = true, value_name = "PID")]
    pub answer: Option<u32>,
}
