//! `lockwright study bpl`: three orders of a lock under bursts.

use super::{bpl_page, figures};
use crate::args::Bpl;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFile, ResultFolder, csv_text};
use crate::interrupt::{self, Watch};
use crate::json::{self, BplFreeLock, BplLock, BplOutput, BplResult};
use crate::layout::{Column, Layout};
use crate::paths::real_path;
use crate::progress::Progress;
use crate::seed;
use crate::units;
use lockwright_study::bpl::{FreeLock, Lock, Model, Random, Statistics, play, run_seeds};
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The simulations of one invocation.
struct Plan {
    models: Vec<Model>,
    requests: u64,
    free_lock: FreeLock,
    seed: u64,
    /// One for each run.
    seeds: Vec<u64>,
}

/// One model under the three locks, in the order of [`Lock::ALL`].
struct Cell {
    model: Model,
    seen: [Statistics; 3],
}

/// Executes `study bpl`.
///
/// # Errors
/// The console has the message.
pub fn bpl(arguments: &Bpl, console: &Console) -> Result<Exit, Exit> {
    let plan = Plan::new(arguments, console)?;
    // The directory first: the CSV file may be in it.
    let svg = arguments.svg.as_deref().map(|path| ResultFolder::create(path, "--svg", console)).transpose()?;
    for (option, path) in [("--csv", &arguments.csv), ("--html", &arguments.html)] {
        let Some(path) = path else { continue };
        if svg.as_ref().is_some_and(|svg| plan.draws(path, svg)) {
            let help = format!("give {option} another name");
            console.error(format!("{} is also the name of a figure", path.display()), &help);
            return Err(Exit::BadInput);
        }
    }
    let csv = arguments.csv.as_deref().map(|path| ResultFile::open(path, "--csv", console)).transpose()?;
    let html = arguments.html.as_deref().map(|path| ResultFile::open(path, "--html", console)).transpose()?;
    interrupt::listen(|| {}, console);
    if arguments.seed.is_none() {
        console.note(format!("the seed is {seed}; `--seed {seed}` repeats this study", seed = plan.seed));
    }
    let cells = plan.simulate(arguments.jobs, console)?;
    let results: Vec<BplResult> = cells.iter().flat_map(Cell::results).collect();
    // A signal after the last simulation changes nothing.
    let interrupted = cells.len() < plan.models.len();
    let print = || match arguments.json {
        true => console.print(&json::to_text(&BplOutput {
            verb: BplOutput::VERB,
            study: BplOutput::STUDY,
            seed: plan.seed,
            runs: arguments.runs,
            requests: plan.requests,
            free_lock: match arguments.free_lock {
                FreeLock::Random => BplFreeLock::Random,
                FreeLock::Best => BplFreeLock::Best,
            },
            interrupted,
            results: results.clone(),
        })),
        false => console.print_text(&plan.as_text(&cells, &results, console.layout)),
    };
    // A failure of one output does not prevent the others.
    let printed = print();
    let tabled = csv.map_or(Ok(()), |csv| write_csv(csv, &results, console));
    let shown = html.map_or(Ok(()), |html| {
        let account = bpl_page::Account {
            results: &results,
            complete: !interrupted,
            length: plan.length(),
            command: &arguments.command,
            options: if arguments.seed.is_none() { vec![format!("--seed={}", plan.seed)] } else { Vec::new() },
        };
        bpl_page::write(html, &account, console)
    });
    let drawn = svg.filter(|_| !results.is_empty()).map_or(Ok(()), |svg| figures::write(&results, &svg, console));
    if interrupted {
        let (ended, all) = (cells.len(), plan.models.len());
        console.warn(format!("interrupted; of {all} combinations of cores, burst and rate, {ended} are complete"));
    }
    printed.and(tabled).and(shown).and(drawn)?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Holds })
}

/// Results replace the content of the file; without results it stays.
fn write_csv(csv: ResultFile, results: &[BplResult], console: &Console) -> Result<(), Exit> {
    if results.is_empty() && !csv.is_empty() {
        console.note(format!("there are no results; {} is unchanged", csv.path().display()));
        return Ok(());
    }
    csv.write(|out| Ok(out.write_all(csv_text(results)?.as_bytes())?), console).map(drop)
}

impl Plan {
    fn new(arguments: &Bpl, console: &Console) -> Result<Self, Exit> {
        let free_lock = arguments.free_lock;
        let mut models = Vec::new();
        for &cores in &arguments.cores {
            let bursts = if arguments.burst.is_empty() { usual_bursts(cores) } else { arguments.burst.clone() };
            for burst in bursts {
                for &rate in &arguments.rate {
                    let model = Model::new(cores, burst, rate, free_lock).map_err(|error| {
                        console.error(error, "`lockwright study bpl --help` lists the possible values");
                        Exit::BadInput
                    })?;
                    // A model given twice is simulated once.
                    if !models.contains(&model) {
                        models.push(model);
                    }
                }
            }
        }
        let seed = arguments.seed.unwrap_or_else(seed::draw);
        let seeds = run_seeds(seed).take(arguments.runs as usize).collect();
        Ok(Self { models, requests: arguments.requests, free_lock, seed, seeds })
    }

    /// Whether one of the figures in `folder` is the file at `path`.
    fn draws(&self, path: &Path, folder: &ResultFolder) -> bool {
        let (Ok(folder), Some(path)) = (folder.path().canonicalize(), real_path(path)) else { return false };
        let is_named = |model: &Model| {
            let names = figures::names(model.cores(), model.burst());
            names.iter().any(|name| path.file_name() == Some(name.as_ref()))
        };
        path.parent() == Some(&folder) && self.models.iter().any(is_named)
    }

    /// Simulates all models; after a signal, the complete ones remain. Results are sums of integers in the order of the
    /// models, so they do not depend on the number of threads.
    fn simulate(&self, jobs: Option<u16>, console: &Console) -> Result<Vec<Cell>, Exit> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, usize::from)).build();
        let threads = threads.map_err(|error| {
            console.error(format!("cannot start threads: {error}"), "`--jobs 1` needs only one thread");
            Exit::Machine
        })?;
        let progress = Progress::new(console, "simulating");
        let runs = self.models.len() as u64 * Lock::ALL.len() as u64 * self.seeds.len() as u64;
        let whole = runs.saturating_mul(self.requests);
        // ORDERING: a count alone, for a bar: relaxed.
        let done = AtomicU64::new(0);
        let ended = |requests: u64| {
            progress.set(done.fetch_add(requests, Ordering::Relaxed).saturating_add(requests), whole);
        };
        let signals = Watch::here();
        let run = |model: &Model, lock: Lock, seed: u64| {
            let mut told = 0;
            let mut watch = |granted: u64| {
                ended(granted - told);
                told = granted;
                !signals.requested()
            };
            let traffic = Random::new(model, seed);
            // A short run ends before the first check for signals.
            let seen = if watch(0) { play(model, lock, self.requests, traffic, &mut watch) } else { None };
            ended(self.requests.saturating_sub(told));
            seen
        };
        let merged = |mut one: Statistics, other: Statistics| {
            one.merge(&other);
            Some(one)
        };
        let all = |model: &Model, lock: Lock| {
            let runs = self.seeds.par_iter().map(|&seed| run(model, lock, seed));
            runs.try_reduce(Statistics::default, merged)
        };
        let cell = |model: &Model| {
            let seen: Option<Vec<Statistics>> = Lock::ALL.into_par_iter().map(|lock| all(model, lock)).collect();
            Some(Cell { model: *model, seen: seen?.try_into().ok()? })
        };
        let cells: Vec<Option<Cell>> = threads.install(|| self.models.par_iter().map(cell).collect());
        Ok(cells.into_iter().flatten().collect())
    }

    /// The length and the parameters that all cells share, in words.
    fn length(&self) -> String {
        let who = match self.free_lock {
            FreeLock::Random => "a random member",
            FreeLock::Best => "the best",
        };
        let runs = match self.seeds.len() {
            1 => String::new(),
            runs => format!("{runs} runs of "),
        };
        let requests = units::count(self.requests, "request");
        format!("{runs}{requests} each, seed {}, a free lock goes to {who} of a burst", self.seed)
    }

    fn as_text(&self, cells: &[Cell], results: &[BplResult], layout: Layout) -> String {
        let mut text = format!("batched priority lock: {}\n\n", self.length());
        // Values that the three rows of a cell share are in the first of them.
        let shared =
            |of: fn(&BplResult) -> String| {
                results.iter().enumerate().map(move |(row, result)| {
                    if row.is_multiple_of(Lock::ALL.len()) { of(result) } else { String::new() }
                })
            };
        let each = |of: fn(&BplResult) -> String| results.iter().map(of);
        let or_none =
            |value: Option<f64>, decimals: usize| value.map_or("–".into(), |value| format!("{value:.decimals$}"));
        text.push_str(&layout.draw(&[
            Column::numbers("cores", shared(|result| result.cores.to_string())),
            Column::numbers("burst", shared(|result| result.burst.to_string())),
            Column::numbers("rate", shared(|result| result.rate.to_string())),
            Column::words("lock", cells.iter().flat_map(|_| Lock::ALL).map(|lock| lock.to_string())),
            Column::numbers("inversions", each(|result| format!("{:.1} %", result.inversions_pct))),
            Column::numbers("delay", each(|result| format!("{:.1}", result.weighted_delay))),
            Column::numbers("over fifo", results.iter().map(|result| or_none(result.weighted_delay_over_fifo, 3))),
            Column::numbers("wait", each(|result| format!("{:.1}", result.mean_wait))).gives_way(1),
            Column::numbers("top wait", results.iter().map(|result| or_none(result.top_mean_wait, 1))).gives_way(2),
            Column::numbers("sections", each(|result| result.max_sections_waited.to_string())),
            Column::numbers("unserved", each(|result| result.unserved.to_string())).gives_way(3),
        ]));
        let legend = bpl_page::LEGEND.map(|(name, meaning)| format!("{name}: {meaning}")).join("; ");
        text.push_str(&format!("{legend}; a mean section has 100 units of time\n"));
        text
    }
}

/// The powers of two up to half the cores, or 1: the greatest burst of that mean has one core fewer than all.
fn usual_bursts(cores: u32) -> Vec<u32> {
    (0..u32::BITS).map(|power| 1 << power).take_while(|&burst| burst <= (cores / 2).max(1)).collect()
}

impl Cell {
    fn results(&self) -> [BplResult; 3] {
        let fifo = self.seen[0].weighted_delay().filter(|&delay| delay > 0.0);
        let result = |(lock, seen): (Lock, &Statistics)| {
            let weighted_delay = seen.weighted_delay().unwrap_or_default();
            BplResult {
                cores: self.model.cores(),
                burst: self.model.burst(),
                rate: self.model.rate(),
                lock: match lock {
                    Lock::Fifo => BplLock::Fifo,
                    Lock::Priority => BplLock::Priority,
                    Lock::Batched => BplLock::Batched,
                },
                inversions_pct: seen.inversions_pct(),
                weighted_delay,
                weighted_delay_over_fifo: fifo.map(|fifo| weighted_delay / fifo),
                mean_wait: seen.mean_wait(),
                top_mean_wait: seen.top_mean_wait(),
                max_sections_waited: seen.sections_max,
                unserved: seen.unserved(),
            }
        };
        let [fifo, priority, batched] = Lock::ALL;
        [(fifo, &self.seen[0]), (priority, &self.seen[1]), (batched, &self.seen[2])].map(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_bursts_fit_the_cores() {
        assert_eq!(usual_bursts(64), [1, 2, 4, 8, 16, 32]);
        assert_eq!(usual_bursts(8), [1, 2, 4]);
        assert_eq!((usual_bursts(1), usual_bursts(3)), (vec![1], vec![1]));
    }
}
