//! `lockwright study bpl`: three orders of a lock under bursts.

use super::figures;
use crate::args::Bpl;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFile, ResultFolder, csv_text};
use crate::interrupt;
use crate::json::{self, BplLock, BplOutput, BplResult, BplStudy, StudyVerb};
use crate::progress::Progress;
use crate::seed;
use crate::table::{self, Column};
use crate::units;
use clap::ValueEnum;
use lockwright_study::bpl::{FreeLock, Lock, Model, Random, Statistics, play};
use rayon::prelude::*;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is simulated, and how often.
struct Plan {
    models: Vec<Model>,
    requests: u64,
    runs: u32,
    seed: u64,
}

/// One model under the three locks, in the order of [`Lock::ALL`].
struct Cell {
    model: Model,
    seen: [Statistics; 3],
}

/// Does `study bpl`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn bpl(arguments: &Bpl, console: &Console) -> Result<Exit, Exit> {
    let plan = Plan::new(arguments, console)?;
    let csv = arguments.csv.as_deref().map(|path| ResultFile::open(path, "--csv", console)).transpose()?;
    let svg = arguments.svg.as_deref().map(|path| ResultFolder::create(path, "--svg", console)).transpose()?;
    interrupt::listen(|| {}, console);
    if arguments.seed.is_none() {
        console.note(format!("the seed is {seed}; `--seed {seed}` repeats this study", seed = plan.seed));
    }
    let cells = plan.simulate(arguments.jobs, console)?;
    let results: Vec<BplResult> = cells.iter().flat_map(Cell::results).collect();
    if let Some(csv) = csv {
        csv.write(|out| Ok(out.write_all(csv_text(&results)?.as_bytes())?), console)?;
    }
    if let Some(svg) = svg {
        figures::write(&results, &svg, console)?;
    }
    let text = if arguments.json {
        json::to_text(&BplOutput {
            verb: StudyVerb::Study,
            study: BplStudy::Bpl,
            seed: plan.seed,
            runs: plan.runs,
            requests: plan.requests,
            free_lock: word(arguments),
            interrupted: interrupt::requested(),
            results,
        })
    } else {
        plan.as_text(arguments, &cells, &results)
    };
    console.print(&text)?;
    if interrupt::requested() {
        let (ended, all) = (cells.len(), plan.models.len());
        console.warn(format!(
            "interrupted; of {all} combinations of cores, burst and rate, {ended} were simulated to their end"
        ));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Holds)
}

/// `--free-lock`, as typed.
fn word(arguments: &Bpl) -> String {
    arguments.free_lock.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Plan {
    fn new(arguments: &Bpl, console: &Console) -> Result<Self, Exit> {
        let free_lock = arguments.free_lock.free_lock();
        let mut models = Vec::new();
        for &cores in &arguments.cores {
            let bursts = if arguments.burst.is_empty() { usual_bursts(cores) } else { arguments.burst.clone() };
            for burst in bursts {
                for &rate in &arguments.rate {
                    let model = Model::new(cores, burst, rate, free_lock).map_err(|error| {
                        console.error(error, "");
                        Exit::BadInput
                    })?;
                    // Given twice, simulated once.
                    if !models.contains(&model) {
                        models.push(model);
                    }
                }
            }
        }
        let seed = arguments.seed.unwrap_or_else(seed::draw);
        Ok(Self { models, requests: arguments.requests, runs: arguments.runs, seed })
    }

    /// All models to their end, or those that came to it before a signal. Sums of integers, in the order of the models: neither
    /// the number of threads nor who is first changes anything.
    fn simulate(&self, jobs: Option<u16>, console: &Console) -> Result<Vec<Cell>, Exit> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, usize::from)).build();
        let threads = threads.map_err(|error| {
            console.error(format!("cannot start threads: {error}"), "`--jobs 1` needs only one");
            Exit::Machine
        })?;
        let progress = Progress::new(console, "simulating");
        let runs = self.models.len() as u64 * Lock::ALL.len() as u64 * u64::from(self.runs);
        let whole = runs.saturating_mul(self.requests);
        // ORDERING: a count alone, for a bar: relaxed.
        let done = AtomicU64::new(0);
        let ended = |requests: u64| {
            progress.set(done.fetch_add(requests, Ordering::Relaxed).saturating_add(requests), whole);
        };
        let run = |model: &Model, lock: Lock, number: u32| {
            let mut told = 0;
            let mut watch = |granted: u64| {
                ended(granted - told);
                told = granted;
                !interrupt::requested()
            };
            let traffic = Random::new(model, self.seed.wrapping_add(u64::from(number)));
            // A short run ends before anybody looks.
            let seen = if watch(0) { play(model, lock, self.requests, traffic, &mut watch) } else { None };
            ended(self.requests.saturating_sub(told));
            seen
        };
        let merged = |mut one: Statistics, other: Statistics| {
            one.merge(&other);
            Some(one)
        };
        let all = |model: &Model, lock: Lock| {
            let runs = (0..self.runs).into_par_iter().map(|number| run(model, lock, number));
            runs.try_reduce(Statistics::default, merged)
        };
        let cell = |model: &Model| {
            let seen: Option<Vec<Statistics>> = Lock::ALL.into_par_iter().map(|lock| all(model, lock)).collect();
            Some(Cell { model: *model, seen: seen?.try_into().ok()? })
        };
        let cells: Vec<Option<Cell>> = threads.install(|| self.models.par_iter().map(cell).collect());
        Ok(cells.into_iter().flatten().collect())
    }

    fn as_text(&self, arguments: &Bpl, cells: &[Cell], results: &[BplResult]) -> String {
        let who = match arguments.free_lock.free_lock() {
            FreeLock::Random => "a random member",
            FreeLock::Best => "the best",
        };
        let runs = match self.runs {
            1 => String::new(),
            runs => format!("{runs} runs of "),
        };
        let mut text = format!(
            "batched priority lock: {runs}{} each, seed {}, a free lock goes to {who} of a burst\n\n",
            units::count(self.requests, "request"),
            self.seed
        );
        // What the three rows of a cell share stands in the first of them.
        let shared =
            |of: fn(&BplResult) -> String| {
                results.iter().enumerate().map(move |(row, result)| {
                    if row.is_multiple_of(Lock::ALL.len()) { of(result) } else { String::new() }
                })
            };
        let each = |of: fn(&BplResult) -> String| results.iter().map(of);
        let or_none =
            |value: Option<f64>, decimals: usize| value.map_or("–".into(), |value| format!("{value:.decimals$}"));
        let unserved = cells.iter().flat_map(|cell| &cell.seen).map(|seen| seen.unserved().to_string());
        text.push_str(&table::draw(&[
            Column::numbers("cores", shared(|result| result.cores.to_string())),
            Column::numbers("burst", shared(|result| result.burst.to_string())),
            Column::numbers("rate", shared(|result| result.rate.to_string())),
            Column::words("lock", cells.iter().flat_map(|_| Lock::ALL).map(|lock| lock.to_string())),
            Column::numbers("inversions", each(|result| format!("{:.1} %", result.inversions_pct))),
            Column::numbers("delay", each(|result| format!("{:.1}", result.weighted_delay))),
            Column::numbers("over fifo", results.iter().map(|result| or_none(result.weighted_delay_over_fifo, 3))),
            Column::numbers("wait", each(|result| format!("{:.1}", result.mean_wait))),
            Column::numbers("top wait", results.iter().map(|result| or_none(result.top_mean_wait, 1))),
            Column::numbers("sections", each(|result| result.max_sections_waited.to_string())),
            Column::numbers("unserved", unserved),
        ]));
        text.push_str(
            "rate: bursts per mean section; inversions: requests that waited while a less important one held the lock; delay: mean of the\n\
             cores' mean waits, weighted by importance, without those that never got the lock (unserved); wait: of all granted\n\
             requests, and of the most important core's; sections: the most one request waited for; a mean section has 100 units of time\n",
        );
        text
    }
}

/// The powers of two up to half the cores, or 1: with a mean of half the cores a burst is at most all but one.
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
