//! The directory of a study: what it contains is complete files, whatever happens meanwhile.
//!
//! ```text
//! manifest.json    the study, its seed and its version, the machine, and whether the study is complete
//! parts/           while the study is incomplete: one file for each finished part, with the number of the study
//! sums.json        when the study is complete: the sums of all parts
//! results.*        the tables
//! ```
//! Each file is written under another name first, and then renamed.

use super::table::Table;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{self, ResultFolder};
use crate::paths::STUDIED;
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::fnv1a;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The identity of a study: two studies with equal identities have equal results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the study, such as "rtas2008", or the file.
    pub study: String,
    /// Version of Lockwright.
    pub version: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of samples of each cell.
    pub samples: u64,
    /// The study file, or the options of a published study.
    pub specification: String,
    /// The overheads files, by the names in the study file.
    pub overheads: BTreeMap<String, String>,
}

/// The contents of `manifest.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The study.
    #[serde(flatten)]
    pub identity: Identity,
    /// Whether all samples were judged.
    pub complete: bool,
    /// The machine that judged the last of them.
    pub machine: Machine,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and kernel.
    pub system: String,
    /// Model of the processor.
    pub processor: String,
    /// Number of CPUs that this process may use.
    pub cpus: usize,
}

impl Machine {
    fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = info.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(": ")?.1.trim()));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            system: format!("{} {}", std::env::consts::OS, release.trim()),
            processor: processor.unwrap_or(std::env::consts::ARCH).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl Identity {
    /// A number that the parts of this study have, and those of other studies do not.
    pub fn number(&self) -> String {
        format!("{:016x}", fnv1a(crate::json::to_text(self).bytes()))
    }
}

/// The sums of one part of a study: consecutive samples of one cell, one tally for each method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The number of the study's identity.
    #[serde(default)]
    pub study: String,
    /// Number of the cell.
    pub cell: usize,
    /// First sample.
    pub first: u64,
    /// Number of samples.
    pub samples: u64,
    /// The five sums of each tally.
    pub sums: Vec<[u64; 5]>,
}

impl Part {
    /// The name of its file.
    fn name(&self) -> String {
        format!("{PARTS}/{}-{}.json", self.cell, self.first)
    }
}

/// The five sums of a tally.
pub fn sums(tally: &Tally) -> [u64; 5] {
    [tally.samples, tally.accepted, tally.utilization, tally.utilization_accepted, tally.bound]
}

/// Whether these can be the sums of a method over this many samples. A method that does not apply to the cell has none.
pub fn are_possible([of, accepted, utilization, utilization_accepted, _]: &[u64; 5], samples: u64) -> bool {
    (*of == samples || *of == 0) && accepted <= of && utilization_accepted <= utilization
}

/// The tally with these sums.
pub fn tally([samples, accepted, utilization, utilization_accepted, bound]: [u64; 5]) -> Tally {
    let mut tally = Tally::default();
    (tally.samples, tally.accepted, tally.bound) = (samples, accepted, bound);
    (tally.utilization, tally.utilization_accepted) = (utilization, utilization_accepted);
    tally
}

/// The directory of one study.
pub struct Folder {
    path: PathBuf,
    /// Sums of the whole study, if it was complete.
    pub whole: Option<Vec<Tally>>,
}

const MANIFEST: &str = "manifest.json";
const SUMS: &str = "sums.json";
const PARTS: &str = "parts";
/// The directory of the figures.
pub const PLOTS: &str = "plots";

/// The files of the results in a sentence.
pub const RESULTS: &str = if cfg!(feature = "parquet") { "results.csv, results.parquet" } else { "results.csv" };

impl Folder {
    /// The seed of the study in the directory at `path`, if there is one.
    pub fn seed_of(path: &Path) -> Option<u64> {
        let text = fs::read(path.join(MANIFEST)).ok()?;
        Some(serde_json::from_slice::<Manifest>(&text).ok()?.identity.seed)
    }

    /// Creates the directory at `path` for a study, or opens it if it has this study already.
    ///
    /// # Errors
    /// It has another study, or parts of this one and `resumes` is false, or files that no study wrote and this one
    /// would replace, or it cannot be written; the console has the message.
    pub fn open(
        path: &Path,
        identity: &Identity,
        experiment: &dyn Experiment,
        resumes: bool,
        console: &Console,
    ) -> Result<Self, Exit> {
        let refuse = |message: String, help: &str| {
            console.error(message, help);
            Exit::BadInput
        };
        let shown = path.display();
        ResultFolder::create(path, "-o", console)?;
        let mut folder = Self { path: path.to_owned(), whole: None };
        match fs::read(path.join(MANIFEST)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(foreign) = folder.foreign(&identity.number()) {
                    let message = format!("{} is there without the {MANIFEST} of this study", foreign.display());
                    return Err(refuse(message, "give another directory with -o"));
                }
            }
            Err(error) => {
                return Err(refuse(format!("cannot read {shown}/{MANIFEST}: {error}"), "choose another directory"));
            }
            Ok(text) => {
                let known: Option<Manifest> = serde_json::from_slice(&text).ok();
                let Some(known) = known.filter(|known| known.identity == *identity) else {
                    let message = format!("{shown} has the results of another study, seed or version");
                    return Err(refuse(message, "choose another directory, or remove this one"));
                };
                if known.complete {
                    folder.whole = folder.read_sums(experiment);
                    if folder.whole.is_none() {
                        console.note(format!("{shown}/{SUMS} is damaged or missing; the study is judged again"));
                    }
                } else if !resumes {
                    let message = format!("{shown} has an unfinished run of this study");
                    return Err(refuse(message, "add --resume to continue it, or choose another directory"));
                }
            }
        }
        if folder.whole.is_none() {
            folder.note(identity, false, console)?;
            let made = fs::create_dir_all(path.join(PARTS));
            made.map_err(|error| folder.cannot_write(PARTS, &error, console))?;
        }
        Ok(folder)
    }

    fn read_sums(&self, experiment: &dyn Experiment) -> Option<Vec<Tally>> {
        let text = fs::read(self.path.join(SUMS)).ok()?;
        let all: Vec<[u64; 5]> = serde_json::from_slice(&text).ok()?;
        let is_whole = all.len() == experiment.cells() * experiment.methods()
            && all.iter().all(|sums| are_possible(sums, experiment.samples()));
        is_whole.then(|| all.into_iter().map(tally).collect())
    }

    /// A file or directory with a name that a study uses, which is not a part of the study with this number.
    fn foreign(&self, study: &str) -> Option<PathBuf> {
        let foreign = |entry: io::Result<fs::DirEntry>| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let is_figure = name.starts_with("figure-") && name.ends_with(".csv");
            if name == PARTS {
                let of_study = |path: &PathBuf| read_part(path).is_some_and(|part| part.study == study);
                return paths_in(&path).into_iter().find(|path| !of_study(path) && !is_mark(path));
            }
            (is_figure || name == PLOTS || STUDIED.contains(&name)).then_some(path)
        };
        fs::read_dir(&self.path).ok()?.find_map(foreign)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// It cannot be written; the console has the message.
    fn note(&self, identity: &Identity, complete: bool, console: &Console) -> Result<(), Exit> {
        let manifest = Manifest { identity: identity.clone(), complete, machine: Machine::here() };
        self.write(MANIFEST, crate::json::to_text(&manifest).as_bytes(), console)
    }

    /// The finished parts. A file that is no part is ignored.
    pub fn parts(&self) -> Vec<Part> {
        paths_in(&self.path.join(PARTS)).iter().filter_map(|path| read_part(path)).collect()
    }

    /// Writes a part.
    ///
    /// # Errors
    /// The file cannot be written, for example on a full disk.
    pub fn write_part(&self, part: &Part) -> io::Result<()> {
        self.replace(&part.name(), crate::json::to_text(part).as_bytes())
    }

    /// Marks the study as complete. Its parts, which are all finished, are replaced by their sums.
    ///
    /// # Errors
    /// A file cannot be written; the console has the message.
    pub fn complete(
        &self,
        identity: &Identity,
        finished: &[Part],
        tallies: &[Tally],
        console: &Console,
    ) -> Result<(), Exit> {
        let all: Vec<[u64; 5]> = tallies.iter().map(sums).collect();
        self.write(SUMS, crate::json::to_text(&all).as_bytes(), console)?;
        self.note(identity, true, console)?;
        // What remains is ignored: parts of other studies, and files that no study wrote.
        let parts = self.path.join(PARTS);
        let marks = paths_in(&parts).into_iter().filter(|path| is_mark(path));
        for path in finished.iter().map(|part| self.path.join(part.name())).chain(marks) {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir(parts);
        Ok(())
    }

    /// Writes a file of results.
    ///
    /// # Errors
    /// It cannot be written; the console has the message.
    pub fn write(&self, name: &str, content: &[u8], console: &Console) -> Result<(), Exit> {
        self.replace(name, content).map_err(|error| self.cannot_write(name, &error, console))
    }

    /// Writes a table as CSV.
    ///
    /// # Errors
    /// It cannot be written; the console has the message.
    pub fn write_table(&self, name: &str, table: &Table, console: &Console) -> Result<(), Exit> {
        let csv = table.to_csv().map_err(|error| cannot_compute(&*error, console))?;
        self.write(name, &csv, console)
    }

    /// Writes the results: `results.csv`, and `results.parquet` if this program can. [`RESULTS`] names them.
    ///
    /// # Errors
    /// They cannot be written; the console has the message.
    pub fn write_results(&self, table: &Table, console: &Console) -> Result<(), Exit> {
        self.write_table("results.csv", table, console)?;
        #[cfg(feature = "parquet")]
        {
            let parquet = table.to_parquet().map_err(|error| cannot_compute(&*error, console))?;
            self.write("results.parquet", &parquet, console)?;
        }
        Ok(())
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        export::replace(&path, content)
    }

    fn cannot_write(&self, name: &str, error: &io::Error, console: &Console) -> Exit {
        self.tell_unwritable(&self.path.join(name), error, console)
    }

    /// Reports a file that cannot be written.
    pub fn tell_unwritable(&self, path: &Path, error: &io::Error, console: &Console) -> Exit {
        console.error(
            format!("cannot write {}: {}", path.display(), export::reason(error)),
            "free space or give write permission; --resume then continues with the finished parts",
        );
        Exit::Machine
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The files and directories in a directory; none if there is none.
fn paths_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map_or_else(|_| Vec::new(), |all| all.filter_map(|one| Some(one.ok()?.path())).collect())
}

/// The part in a file, if there is one.
fn read_part(path: &Path) -> Option<Part> {
    is_part(path).then(|| serde_json::from_slice(&fs::read(path).ok()?).ok())?
}

/// Whether the file has the name of a part.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")?.split_once('-'));
    name.is_some_and(|(cell, first)| cell.parse::<usize>().is_ok() && first.parse::<u64>().is_ok())
}

/// Whether the file has the name of a part that was not finished, or is the mark of a finished share, which the Python
/// package writes: a file without contents.
fn is_mark(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let share = name.strip_prefix("share-").and_then(|numbers| numbers.split_once("-of-"));
    let is_share = share.is_some_and(|(number, of)| number.parse::<u64>().is_ok() && of.parse::<u64>().is_ok());
    name.starts_with(".unfinished-") || is_share && fs::metadata(path).is_ok_and(|file| file.len() == 0)
}

/// Reports results that no file can hold.
pub fn cannot_compute(error: &dyn std::error::Error, console: &Console) -> Exit {
    console.error(format!("the results cannot be written: {error}"), "");
    Exit::Machine
}
