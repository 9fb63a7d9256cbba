//! Compares the analyses with the published examples in a folder.

use clap::Parser;
use lockwright_vectors::{Vector, Work, analyses, check, departure, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The minimum time for which each analysis is measured.
const TIMED: Duration = Duration::from_millis(300);

/// Compare the analyses with every example in a folder's .json files.
/// The exit status is 1 if one differs, and 2 if one cannot be read.
#[derive(Parser)]
struct Arguments {
    /// The folder with the examples.
    folder: PathBuf,
    /// Also print the sets per second on one core, without the reading.
    #[arg(long)]
    time: bool,
}

/// The results of one analysis.
#[derive(Default)]
struct Seen {
    passed: usize,
    vectors: Vec<Vector>,
    first: Option<String>,
    /// The number of examples whose source has a defect that changes their expectation, and the defect.
    departed: (usize, &'static str),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("vectors: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for path in files(&arguments.folder)? {
        let text = std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        for vector in read(&text).map_err(|why| format!("{}: {}", path.display(), why.0))? {
            let entry = seen.entry(vector.analysis.clone()).or_default();
            let difference = check(&vector).unwrap_or_else(|why| Some(why.0));
            match difference {
                None => entry.passed += 1,
                Some(difference) => {
                    entry.first.get_or_insert_with(|| format!("{}: {difference}", vector.id));
                }
            }
            if let Ok(Some((why, _))) = departure(&vector) {
                entry.departed = (entry.departed.0 + 1, why);
            }
            entry.vectors.push(vector);
        }
    }
    let width = seen.keys().map(|id| id.chars().count()).max().unwrap_or(0);
    for (id, seen) in &seen {
        let rate = if arguments.time { format!("  {:>14}", rate(id, &seen.vectors)) } else { String::new() };
        println!("{id:<width$}  {:>4}/{:<4}{rate}", seen.passed, seen.vectors.len());
        if let Some(first) = &seen.first {
            println!("    {first}");
        }
        if let (count @ 1.., why) = seen.departed {
            println!("    {count} expect another result because of a defect in the source: {why}");
        }
    }
    let (passed, all) = seen.values().fold((0, 0), |(p, a), seen| (p + seen.passed, a + seen.vectors.len()));
    println!("{passed} of {all} examples, {} analyses", seen.len());
    Ok(passed == all)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|why| format!("{}: {why}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() { Err(format!("{}: no .json file found", folder.display())) } else { Ok(files) }
}

/// Returns the sets per second, over rounds of all examples of the analysis.
fn rate(id: &str, vectors: &[Vector]) -> String {
    let Some(analysis) = analyses().find(|analysis| analysis.id == id) else { return "-".into() };
    let ready: Vec<Work> = vectors.iter().filter_map(|vector| (analysis.prepare)(&vector.input).ok()).collect();
    if ready.is_empty() {
        return "-".into();
    }
    let (mut sets, start) = (0_u64, Instant::now());
    while start.elapsed() < TIMED {
        for work in &ready {
            work.run();
        }
        sets += ready.len() as u64;
    }
    format!("{:.0} sets/s", sets as f64 / start.elapsed().as_secs_f64())
}
