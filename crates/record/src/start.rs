//! Starts a program with the recording library, waits for it, and reads what was recorded.

use crate::file::FileError;
use crate::file::format::{FILE_NAME, HEADER};
use crate::recording::Recording;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The file name of the library.
const LIBRARY: &str = "liblockwright_recorder.so";
/// The variable with a path to the library, for a library that is in none of the usual places.
const LIBRARY_VARIABLE: &str = "LOCKWRIGHT_RECORDER";
/// The variables that the library reads.
const FOLDER_VARIABLE: &str = "LOCKWRIGHT_RECORD";
const RING_VARIABLE: &str = "LOCKWRIGHT_RECORD_RING";

/// Where and how a program is recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The folder of the recording. It is created; an earlier recording in it is replaced.
    pub folder: PathBuf,
    /// The library that records. By default the file `liblockwright_recorder.so` that the environment variable
    /// `LOCKWRIGHT_RECORDER` names; or else the one beside this program, or in the directory `lib` of its prefix.
    pub library: Option<PathBuf>,
    /// The size of a thread's ring in bytes: a power of two.
    pub ring_bytes: usize,
}

impl Options {
    /// The usual options, with this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), library: None, ring_bytes: 4 << 20 }
    }
}

/// A program that was recorded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The recording.
    pub recording: Recording,
    /// How the program ended.
    pub status: ExitStatus,
}

/// A program that was not recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program, or it cannot be executed.
    Program(String),
    /// The program cannot be recorded.
    Unsuitable(String),
    /// The library was not found.
    Library(String),
    /// The folder cannot be written.
    Folder(String),
    /// The program ran, and the recording cannot be read.
    File(FileError),
    /// The program ran, and the recording cannot be written, for example on a full disk.
    Unwritten(String),
    /// The program ran, and the library was not loaded into it.
    NotLoaded(String, ExitStatus),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Program(text)
            | Self::Unsuitable(text)
            | Self::Library(text)
            | Self::Folder(text)
            | Self::Unwritten(text)
            | Self::NotLoaded(text, _) => f.write_str(text),
        }
    }
}

impl std::error::Error for StartError {}

/// Executes a program, waits until it ends, and reads what was recorded. `command` is the program and its arguments.
///
/// The program has this process's standard input, output and error. The caller decides what happens to this process on
/// a signal from the terminal, which the program gets as well.
///
/// # Errors
/// The program or the library was not found, the program cannot be recorded, or nothing was recorded.
pub fn start(command: &[OsString], options: &Options) -> Result<Run, StartError> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| StartError::Program("give a program to record".to_owned()))?;
    let path = find(program)?;
    check(&path, 0)?;
    let library = library(options)?;

    let folder = &options.folder;
    let fail = |error: std::io::Error| StartError::Folder(format!("cannot write {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let folder = folder.canonicalize().map_err(fail)?;
    match std::fs::remove_file(folder.join(FILE_NAME)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }

    let mut child = Command::new(&path);
    // The program sees the name by which it was called.
    std::os::unix::process::CommandExt::arg0(&mut child, program);
    let status = child
        .args(arguments)
        .env(FOLDER_VARIABLE, &folder)
        .env(RING_VARIABLE, options.ring_bytes.to_string())
        .env("LD_PRELOAD", preload(&library))
        .status()
        .map_err(|error| StartError::Program(format!("{} does not start: {error}", path.display())))?;
    if !folder.join(FILE_NAME).exists() {
        let reason = format!(
            "nothing was recorded: {} was not loaded into {}, or cannot write below {}; see its messages above",
            library.display(),
            path.display(),
            folder.display()
        );
        return Err(StartError::NotLoaded(reason, status));
    }
    if std::fs::metadata(folder.join(FILE_NAME)).is_ok_and(|file| file.len() < HEADER as u64) {
        let place = folder.display();
        return Err(StartError::Unwritten(format!(
            "the recording cannot be written in {place}; see the message above"
        )));
    }
    let recording = Recording::read(&folder).map_err(StartError::File)?;
    Ok(Run { recording, status })
}

/// The library before those that are preloaded anyway, so that it records the calls of the program.
fn preload(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Finds a program as a shell does.
fn find(program: &OsStr) -> Result<PathBuf, StartError> {
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let unknown = |text: &str| StartError::Program(format!("{}: {text}", program.display()));
    let path = PathBuf::from(program);
    let why = if program.as_bytes().contains(&b'/') {
        if is_program(&path) {
            return Ok(path);
        }
        if path.exists() { "is no executable file" } else { "no such file" }
    } else {
        let places = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&places).map(|folder| folder.join(program));
        if let Some(place) = places.find(|place| is_program(place)) {
            return Ok(place);
        }
        "no such program in the directories of PATH"
    };
    Err(unknown(if path.is_dir() { "is a directory" } else { why }))
}

/// Refuses programs into which the loader does not load the library.
fn check(path: &Path, depth: u32) -> Result<(), StartError> {
    /// The kernel follows this many scripts.
    const SCRIPTS_MAX: u32 = 4;
    let unsuitable = |text: &str| StartError::Unsuitable(format!("{}: {text}", path.display()));
    let failed = |error: std::io::Error| StartError::Program(format!("{}: {error}", path.display()));
    let file = std::fs::metadata(path).map_err(failed)?;
    if file.mode() & 0o6000 != 0 {
        return Err(unsuitable(
            "the program is setuid or setgid: the loader ignores preloaded libraries there; record a copy without \
             these bits",
        ));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if let Some(script) = bytes.strip_prefix(b"#!") {
        let line = script.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let name = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).unwrap_or_default();
        return if depth < SCRIPTS_MAX { check(Path::new(OsStr::from_bytes(name)), depth + 1) } else { Ok(()) };
    }
    let header = FileHeader64::<object::LittleEndian>::parse(&*bytes)
        .map_err(|_| unsuitable("the recorder needs a 64-bit ELF program"))?;
    let endian = header.endian().map_err(|_| unsuitable("the recorder needs a program for x86-64"))?;
    if header.e_machine(endian) != EM_X86_64 || !matches!(header.e_type(endian), ET_EXEC | ET_DYN) {
        return Err(unsuitable("the recorder needs a program for x86-64"));
    }
    let segments = header.program_headers(endian, &*bytes).map_err(|_| unsuitable("the ELF file is damaged"))?;
    let Some(loader) = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP) else {
        return Err(unsuitable(
            "the program is linked statically: there is no loader that could load the recorder; link it dynamically",
        ));
    };
    let name = loader.data(endian, &*bytes).unwrap_or_default();
    if !String::from_utf8_lossy(name).contains("ld-linux") {
        let name = String::from_utf8_lossy(name);
        let name = name.trim_end_matches('\0');
        return Err(unsuitable(&format!("the recorder needs glibc, and the program is loaded by {name}")));
    }
    Ok(())
}

/// Finds the library.
fn library(options: &Options) -> Result<PathBuf, StartError> {
    let given = options.library.clone().or_else(|| std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from));
    if let Some(path) = given {
        let path = path.canonicalize();
        return path.map_err(|error| StartError::Library(format!("the recorder {LIBRARY} is not there: {error}")));
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/")).to_owned();
    let lib = beside.parent().unwrap_or(Path::new("/")).join("lib");
    // Cargo builds it beside its programs, and below `deps` for tests.
    let deps = beside.join("deps");
    let places = [beside, deps, lib.join(format!("{}-linux-gnu", std::env::consts::ARCH)), lib];
    let found = places.iter().map(|place| place.join(LIBRARY)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let searched = places.map(|place| place.display().to_string()).join(", ");
        StartError::Library(format!(
            "{LIBRARY} is not in {searched}; install it (`cargo xtask install --prefix DIR`), or name it in \
             {LIBRARY_VARIABLE}"
        ))
    })
}
