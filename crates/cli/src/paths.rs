//! The files that one command line names: standard input is one file, results are files, and none replaces an input
//! or another result.

use crate::args::{Execution, ProtocolChoice, Schedules, Study, StudyVerb, Subject, Verb};
use crate::console::Console;
use crate::exit::Exit;
use crate::schedule::beside;
use crate::{record, streams};
use lockwright_model::Protocol;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The tables and the records of a study in its directory, besides figures.
pub const STUDIED: [&str; 6] =
    ["manifest.json", "sums.json", "results.csv", "results.parquet", "weighted.csv", "conclusions.csv"];
/// The files in the directory of `study rtas2008 --overheads`.
pub const OVERHEADS: [&str; 2] = ["worst.toml", "average.toml"];

/// The files of a command line.
#[derive(Default)]
struct Named {
    /// Files that are read; `-` is standard input.
    inputs: Vec<PathBuf>,
    /// Files that are written, and the options that name them or their directory.
    results: Vec<(&'static str, PathBuf)>,
}

/// Refuses a command line that reads standard input twice, that names a directory for a result, that replaces a file
/// which it reads, or that writes two results into one file.
///
/// # Errors
/// The console has the message.
pub fn refuse_clashes(verb: &Verb, console: &Console) -> Result<(), Exit> {
    let Named { inputs, results } = Named::of(verb);
    if inputs.iter().filter(|path| is_stdin(path)).count() > 1 {
        // The second would be empty.
        console.error("standard input has one file, and `-` is given twice", "give one of them the path of a file");
        return Err(Exit::BadInput);
    }
    for (option, path) in &results {
        refuse_directory(option, path, console)?;
        refuse_replaced(&inputs, option, path, console)?;
    }
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in &results {
        let Some(place) = place(path) else { continue };
        if let Some((other, _)) = written.iter().find(|(_, other)| *other == place) {
            let message = format!("{other} and {option} name the same file: {}", path.display());
            console.error(message, "give one of them another name");
            return Err(Exit::BadInput);
        }
        written.push((option, place));
    }
    Ok(())
}

/// Refuses the name of a directory for a result, such as `nodir/`. Pictures may go into a directory that exists.
fn refuse_directory(option: &str, path: &Path, console: &Console) -> Result<(), Exit> {
    let name = path.file_name();
    let is_file = name.is_some_and(|name| path.as_os_str().as_bytes().ends_with(name.as_bytes()));
    if is_file || path.is_dir() {
        return Ok(());
    }
    let message = format!("cannot create {}: this is the name of a directory", path.display());
    console.error(message, &format!("give {option} a file in an existing directory with write permission"));
    Err(Exit::BadInput)
}

/// Refuses a result, written to the path that `option` names, in place of one of these inputs.
///
/// # Errors
/// The console has the message.
pub fn refuse_replaced(inputs: &[PathBuf], option: &str, path: &Path, console: &Console) -> Result<(), Exit> {
    let result = place(path);
    if result.is_some() && inputs.iter().any(|input| place_of_input(input) == result) {
        let message = format!("{}, which {option} names, is read by this command", path.display());
        console.error(message, &format!("give {option} another name"));
        return Err(Exit::BadInput);
    }
    Ok(())
}

impl Named {
    fn of(verb: &Verb) -> Self {
        let mut named = Self::default();
        match verb {
            Verb::Check(check) => {
                named.subject(&check.subject);
                named.result("--svg", check.svg.as_deref());
            }
            Verb::Simulate(simulate) => {
                named.subject(&simulate.subject);
                named.schedules(&simulate.schedules, simulate.subject.protocol);
            }
            Verb::Run(run) => named.execution(&run.execution),
            Verb::Verify(verify) => named.execution(&verify.execution),
            Verb::Report(report) => {
                // Here `-` is a file of this name.
                named.inputs.extend(report.files.iter().map(|path| Path::new(".").join(path)));
                named.result("--html", report.html.as_deref());
            }
            Verb::Record(record) => {
                let is_path = |program: &&OsString| program.as_bytes().contains(&b'/');
                named.inputs.extend(record.program.first().filter(is_path).map(PathBuf::from));
                named.folder(&record::folder(record), &record::RESULTS);
                named.result("--html", record.html.as_deref());
            }
            Verb::Study(study) => named.study(study),
            _ => {}
        }
        named
    }

    fn result(&mut self, option: &'static str, path: Option<&Path>) {
        self.results.extend(path.map(|path| (option, path.to_owned())));
    }

    /// The files with these names in the directory of `-o`.
    fn folder(&mut self, folder: &Path, names: &[&str]) {
        self.results.extend(names.iter().map(|name| ("-o", folder.join(name))));
    }

    fn subject(&mut self, subject: &Subject) {
        self.inputs.extend([Some(&subject.file), subject.overheads.as_ref()].into_iter().flatten().cloned());
        self.result("--html", subject.html.as_deref());
    }

    fn execution(&mut self, execution: &Execution) {
        self.subject(&execution.subject);
        self.schedules(&execution.schedules, execution.subject.protocol);
    }

    fn schedules(&mut self, schedules: &Schedules, protocol: ProtocolChoice) {
        for (option, path) in [("--trace", &schedules.trace), ("--svg", &schedules.svg)] {
            let Some(path) = path else { continue };
            self.result(option, Some(path));
            if protocol == ProtocolChoice::All {
                self.results.extend(Protocol::ALL.map(|protocol| (option, beside(path, protocol.name()))));
            }
        }
    }

    fn study(&mut self, study: &Study) {
        match &study.verb {
            Some(StudyVerb::Bpl(bpl)) => {
                self.result("--csv", bpl.csv.as_deref());
                self.result("--html", bpl.html.as_deref());
            }
            Some(StudyVerb::Rtas2008(study)) => {
                let overheads = study.overheads.iter();
                self.inputs.extend(overheads.flat_map(|folder| OVERHEADS.map(|name| folder.join(name))));
                self.folder(&study.output, &STUDIED);
                self.result("--html", study.run.html.as_deref());
            }
            Some(StudyVerb::List) => {}
            None => {
                self.inputs.extend(study.file.clone());
                study.output.iter().for_each(|folder| self.folder(folder, &STUDIED));
                self.result("--html", study.run.html.as_deref());
            }
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The place of an input.
fn place_of_input(path: &Path) -> Option<PathBuf> {
    match is_stdin(path) {
        true if streams::is_call() => None,
        true => place(Path::new("/dev/stdin")),
        false => place(path),
    }
}

/// The place of a file, which may not exist yet, without links. A device, a pipe or a directory has none.
fn place(path: &Path) -> Option<PathBuf> {
    match path.metadata() {
        Ok(metadata) => metadata.is_file().then(|| path.canonicalize().ok())?,
        Err(_) => real_path(path).or_else(|| std::path::absolute(path).ok()),
    }
}

/// The path without links of a file that may not exist yet, in a directory that exists.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    })
}
