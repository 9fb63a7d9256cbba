//! `record`.

use super::help::OUTPUT;
use super::values::{duration, up_to};
use clap::{Args, ValueHint};
use lockwright_model::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

/// `record`.
#[derive(Args, Debug)]
pub struct Record {
    /// Read the recording in this directory again, instead of executing a program
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "program")]
    pub read: Option<PathBuf>,
    /// Directory of the results [default: record-PROGRAM, or the directory of --read]
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    /// Lengthen execution times and sections by this many percent [1 to 1,000]
    #[arg(long, value_name = "PERCENT", value_parser = up_to::<u32>(1_000))]
    pub margin: Option<u32>,
    /// Wait that separates the jobs of a thread: a part of the name of its call site, the address of the site, or the
    /// name of the object waited for; may be given for several threads
    #[arg(long, value_name = "SITE")]
    pub job_at: Vec<String>,
    /// Report critical sections with a longer CPU time, for example 50us
    #[arg(long, value_name = "LENGTH", value_parser = duration)]
    pub sections_longer: Option<Duration>,
    /// Write the findings, the tables and the task set into this file as one page of HTML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// The whole command line, for pages.
    #[arg(skip)]
    pub command: Vec<OsString>,
    /// Print one JSON object instead of tables (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Program to record, and its arguments
    #[arg(value_name = "PROGRAM", last = true, required_unless_present = "read")]
    pub program: Vec<OsString>,
}
