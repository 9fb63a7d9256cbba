//! Files with results.

use crate::console::Console;
use crate::exit::Exit;
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that an option names. It is opened before the long work begins, so that a bad path is reported first. Its
/// content stays until there are results.
pub struct ResultFile {
    path: PathBuf,
    file: File,
}

impl ResultFile {
    /// Opens the file for `option`, such as `--csv`.
    ///
    /// # Errors
    /// The file cannot be opened; the console has the message.
    pub fn open(path: &Path, option: &str, console: &Console) -> Result<Self, Exit> {
        if path == Path::new("-") {
            console.error(
                format!("{option} needs a file"),
                "`--json` prints the results to standard output; `./-` is a file named `-`",
            );
            return Err(Exit::BadInput);
        }
        match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(error) => {
                console.error(
                    format!("cannot create {}: {error}", path.display()),
                    &format!("give {option} a file in an existing directory with write permission"),
                );
                Err(Exit::BadInput)
            }
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    /// Replaces the content by that which `fill` writes.
    ///
    /// # Errors
    /// The file cannot be written, for example on a full disk; the console has the message.
    pub fn write(
        &self,
        fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Box<dyn Error>>,
        console: &Console,
    ) -> Result<(), Exit> {
        let written = || {
            // Pipes and terminals have no length.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            let mut writer = BufWriter::new(&self.file);
            fill(&mut writer)?;
            Ok(writer.flush()?)
        };
        written().map_err(|error: Box<dyn Error>| cannot_write(&self.path, error, console))
    }
}

/// A directory that an option names, created before the long work begins.
pub struct ResultFolder(PathBuf);

impl ResultFolder {
    /// Creates the directory for `option`, such as `--svg`, and its parents.
    ///
    /// # Errors
    /// The directory cannot be created; the console has the message.
    pub fn create(path: &Path, option: &str, console: &Console) -> Result<Self, Exit> {
        match std::fs::create_dir_all(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) => {
                console.error(
                    format!("cannot create the directory {}: {error}", path.display()),
                    &format!("give {option} a directory with write permission"),
                );
                Err(Exit::BadInput)
            }
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of this name into it.
    ///
    /// # Errors
    /// `content` is an error, or the file cannot be written; the console has the message.
    pub fn write<E: Into<Box<dyn Error>>>(
        &self,
        name: &str,
        content: Result<String, E>,
        console: &Console,
    ) -> Result<(), Exit> {
        let path = self.0.join(name);
        let written = content.map_err(Into::into).and_then(|content| Ok(std::fs::write(&path, content)?));
        written.map_err(|error| cannot_write(&path, error, console))
    }
}

/// CSV: one line with the names of the fields, then one line for each result. Absent values are empty.
///
/// # Errors
/// A result is not a row of plain values.
pub fn csv_text<T: Serialize + Default>(results: &[T]) -> Result<String, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for result in results {
        writer.serialize(result)?;
    }
    if results.is_empty() {
        // The writer prints the names only together with a row: write one and cut it off.
        writer.serialize(T::default())?;
    }
    let mut text = String::from_utf8(writer.into_inner()?)?;
    if results.is_empty() {
        text.truncate(text.find('\n').map_or(0, |end| end + 1));
    }
    Ok(text)
}

fn cannot_write(path: &Path, error: impl Display, console: &Console) -> Exit {
    console.error(format!("cannot write {}: {error}", path.display()), "free space, or choose another path");
    Exit::Machine
}
