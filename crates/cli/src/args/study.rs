//! `study`.

use super::help::{OUTPUT, with_statuses};
use super::values::{duration_in, number_in, one_of, up_to};
use clap::{Args, Subcommand, ValueHint};
use lockwright_model::Duration;
use lockwright_study::bpl::{BURST_MAX, CORES_MAX, FreeLock, RATE_MAX, RATE_MIN};
use lockwright_study::plan::SAMPLES_MAX;
use lockwright_study::rtas2008::{Counting, Length, Nested, Others, Retries, Tests};
use std::ffi::OsString;
use std::path::PathBuf;

const BPL_EXAMPLES: &str = "Examples:
  lockwright study bpl
  lockwright study bpl --cores 64 --burst 8,32 --svg figures --csv figures.csv
  lockwright study bpl --cores 64 --html bpl.html
  lockwright study bpl --cores 64 --burst 8 --rate 0.001,0.01,0.1,1 --requests 100000 --seed 7 --json";

const FILE_EXAMPLES: &str = "Examples:
  lockwright study study.toml -o results
  lockwright study study.toml -o results --resume
  lockwright study study.toml -o trial --samples 10 --jobs 1
  lockwright study study.toml -o results --dask tcp://host:8786
  lockwright study list
  lockwright study bpl

Exit status:
  0    success
  2    the arguments or the file are invalid
  3    a file cannot be written; finished parts are kept
  130  interrupted (Ctrl-C); finished parts are kept, and --resume continues";

/// `study`. The arguments are those of `study FILE`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = FILE_EXAMPLES)]
pub struct Study {
    /// A published study.
    #[command(subcommand)]
    pub verb: Option<StudyVerb>,
    /// Study file (docs/study.md); `-` reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    pub file: Option<PathBuf>,
    /// Directory for the results; it is created if it does not exist
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, required = true)]
    pub output: Option<PathBuf>,
    /// Seed of all random numbers [default: that of the file, or chosen at random and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of systems in each cell, instead of that of the file [1 to 1,000,000,000]
    #[arg(long, value_name = "N", value_parser = up_to::<u64>(SAMPLES_MAX))]
    pub samples: Option<u64>,
    /// Judge on the workers of a Dask cluster, whose scheduler has this address, for example tcp://host:8786
    ///
    /// This needs the Python package `lockwright` here and on the workers, in the same version. The variable
    /// LOCKWRIGHT_PYTHON names the interpreter that has it [default: python3]. The results have the same bytes as on
    /// this machine alone; after an interruption, the same command continues.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "share", "html"])]
    pub dask: Option<String>,
    /// How the study is executed.
    #[command(flatten)]
    pub run: StudyRun,
}

/// Options of the execution of a study.
#[derive(Args, Debug)]
pub struct StudyRun {
    /// Continue an unfinished run of the same study in this directory
    #[arg(long)]
    pub resume: bool,
    /// Number of threads; the results do not depend on it [1 to 1024] [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(1024))]
    pub jobs: Option<u16>,
    /// Write the tables and the curves into this file as one page of HTML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// The whole command line, for pages.
    #[arg(skip)]
    pub command: Vec<OsString>,
    /// Judge only the Kth of N shares, for several machines; 0/N judges none
    ///
    /// Each machine has a directory of its own, and all have the same study and seed. Put the files of all their
    /// `parts` folders into that of one machine, and finish there with --resume. Files of another study, seed or
    /// version are ignored.
    #[arg(long, value_name = "K/N", value_parser = share)]
    pub share: Option<Share>,
}

/// One of several shares of a study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The number of the share, from 1; 0 is a share without parts.
    pub number: u64,
    /// The number of shares.
    pub of: u64,
}

fn share(text: &str) -> Result<Share, String> {
    let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((number, of)) if number <= of && of > 0 => Ok(Share { number, of }),
        _ => Err("a share is two whole numbers such as 1/4, of which the first is not the greater one".into()),
    }
}

/// The published studies.
#[derive(Subcommand, Debug)]
pub enum StudyVerb {
    /// Compare FIFO, priority and batched priority locks under bursts of requests
    ///
    /// This is the simulation of the batched priority lock: the machine repairman model with bursts. At each burst,
    /// some of the cores that have no pending request all request the lock at one instant. Lengths of critical sections
    /// are exponential with a mean of 100 units of time, times between bursts are exponential, and sizes of bursts are
    /// uniform. All three locks get the same bursts and the same sections.
    #[command(after_help = with_statuses(BPL_EXAMPLES))]
    Bpl(Bpl),
    /// List the published studies, with the paper and the command of each
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Repeat a study of spinning, suspending and non-blocking objects, under global and partitioned EDF
    ///
    /// The paper is Brandenburg, Calandrino, Block, Leontyev, Anderson, RTAS 2008. docs/rtas2008.md describes the
    /// choices that it leaves open, and which of its conclusions hold.
    #[command(name = "rtas2008", after_help = RTAS2008_EXAMPLES)]
    Rtas2008(Rtas2008),
}

const LIST_EXAMPLES: &str = "Example:
  lockwright study list

Exit status:
  0    success
  2    the arguments are invalid
  3    the output cannot be written";

const RTAS2008_EXAMPLES: &str = "Examples:
  lockwright study rtas2008 --figure 1 -o figure-1
  lockwright study rtas2008 --all -o all
  lockwright study rtas2008 --figure 1 --counting per-job --tests best -o ours
  lockwright study rtas2008 --figure 3 --overheads costs -o here

Exit status:
  0    success; the table tells which conclusions hold
  2    the arguments or a file are invalid
  3    a file cannot be written; finished parts are kept
  130  interrupted (Ctrl-C); finished parts are kept, and --resume continues";

/// `study rtas2008`.
#[derive(Args, Debug)]
pub struct Rtas2008 {
    /// Directory for the results; it is created if it does not exist
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Numbers of the figures; 5 and 6 cannot be repeated [1 to 132]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,3,4", value_parser = up_to::<u32>(132))]
    pub figure: Vec<u32>,
    /// All figures that can be repeated
    #[arg(long, conflicts_with = "figure")]
    pub all: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 2008)]
    pub seed: u64,
    /// Number of task sets at each point [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = up_to::<u64>(1_000_000))]
    pub samples: u64,
    /// Also execute the sets of figure 2 with real threads, each for this time, beside ordinary work [40 ms to 2 s]
    /// [without a value: 240 ms]
    ///
    /// One ordinary thread on each CPU counts its work, as a share of its work without the set. TIME becomes a multiple
    /// of 40 ms, the period of all tasks. All sets together take about 200 times TIME. It needs the permission for
    /// real-time threads, as `lockwright run` does.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "240 ms", conflicts_with = "share",
        value_parser = duration_in(Duration::from_ms(40)..=Duration::from_ms(2_000), "40 ms to 2 s"))]
    pub real: Option<Duration>,
    /// Charge the overheads of `worst.toml` and `average.toml` in this directory, instead of those of the paper
    ///
    /// `lockwright measure protocols --overheads DIR` writes such files.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub overheads: Option<PathBuf>,
    /// Lengths of sections
    #[arg(long, value_name = "LENGTHS", default_value = "greatest", help_heading = READING, value_parser = one_of([
        ("greatest", "All sections have the greatest length", Length::Greatest),
        ("up-to", "All lengths up to the greatest one are equally likely", Length::UpTo),
    ]))]
    pub lengths: Length,
    /// How the requests of others are counted
    #[arg(long, value_name = "COUNT", default_value = "per-request", help_heading = READING, value_parser = one_of([
        ("per-request", "For each request, the longest sections of others", Counting::PerRequest),
        ("per-job", "Also as often as the others request during the job", Counting::PerJob),
    ]))]
    pub counting: Counting,
    /// The charge for the long sections of others
    #[arg(long, value_name = "CHARGE", default_value = "release", help_heading = READING, value_parser = one_of([
        ("release", "The release of the lock", Others::Release),
        ("switches", "The release, and the switches to and from the owner", Others::Switches),
    ]))]
    pub others: Others,
    /// Tests of hard deadlines
    #[arg(long, value_name = "TESTS", default_value = "published", help_heading = READING, value_parser = one_of([
        ("published", "GFB, and utilizations with blocking on each processor", Tests::Published),
        ("best", "Several tests of global EDF, and the processor demand", Tests::Best),
    ]))]
    pub tests: Tests,
    /// Nesting of sections; resources that are held together are one lock
    #[arg(long, value_name = "NESTING", default_value = "traced", help_heading = READING, value_parser = one_of([
        ("traced", "As traced in Linux", Nested::Traced),
        ("never", "No nested sections", Nested::Never),
    ]))]
    pub nesting: Nested,
    /// How failed attempts on lock-free objects are counted
    #[arg(long, value_name = "COUNT", default_value = "per-access", help_heading = READING, value_parser = one_of([
        ("per-access", "Accesses of two jobs of each other task per access; not safe for preempted accesses", Retries::PerAccess),
        ("per-job", "All accesses of others during the job", Retries::PerJob),
    ]))]
    pub retries: Retries,
    /// How the study is executed.
    #[command(flatten)]
    pub run: StudyRun,
}

/// The heading of options for what the paper leaves open.
const READING: &str = "What the paper leaves open";

/// `study bpl`.
#[derive(Args, Debug)]
pub struct Bpl {
    /// Numbers of cores, which are the sources of requests [1 to 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8,16,32,64",
        value_parser = up_to::<u32>(CORES_MAX.into()))]
    pub cores: Vec<u32>,
    /// Mean sizes M of a burst, which is uniform from 1 to 2M-1 [1 to 1,000,000] [default: powers of two up to half the
    /// cores]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = up_to::<u32>(BURST_MAX.into()))]
    pub burst: Vec<u32>,
    /// Bursts per mean critical section: λ/μ in the paper [0.000001 to 1000]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true,
        default_value = "0.001,0.002,0.005,0.01,0.02,0.05,0.1,0.2,0.5,1",
        value_parser = number_in(RATE_MIN..=RATE_MAX, "bursts per mean critical section"))]
    pub rate: Vec<f64>,
    /// Number of requests in each run, which ends after the current batch [1 to 1,000,000,000]
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = up_to::<u64>(1_000_000_000))]
    pub requests: u64,
    /// Number of runs that are combined into each result [1 to 1000]
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = up_to::<u32>(1_000))]
    pub runs: u32,
    /// Seed, from which the seed of each run is drawn [default: chosen at random and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Member of a burst that gets a free lock
    #[arg(long, value_name = "MEMBER", default_value = "random", value_parser = one_of([
        ("random", "A member chosen at random", FreeLock::Random),
        ("best", "The most important member", FreeLock::Best),
    ]))]
    pub free_lock: FreeLock,
    /// Number of threads; the results do not depend on it [1 to 1024] [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = up_to::<u16>(1024))]
    pub jobs: Option<u16>,
    /// Print one JSON object instead of a table (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Write the results as CSV into this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub csv: Option<PathBuf>,
    /// Draw figures over the rate into this directory
    ///
    /// The files are inversions-CORES-BURST.svg and delay-CORES-BURST.svg for each number of cores and mean burst.
    /// Delays above 1.25 are drawn at 1.25.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,
    /// Write the tables and the curves into this file as one page of HTML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// The whole command line, for pages.
    #[arg(skip)]
    pub command: Vec<OsString>,
}
