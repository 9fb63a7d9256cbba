//! Files that results go to, beside what is printed.

use crate::console::Console;
use crate::exit::Exit;
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that an option names, opened before the long work begins so that a bad path is found out first. What stands in it stays until
/// there are results.
pub struct ResultFile {
    path: PathBuf,
    file: File,
}

impl ResultFile {
    /// Opens the file for `option`, such as `--csv`.
    ///
    /// # Errors
    /// Says why it cannot be opened.
    pub fn open(path: &Path, option: &str, console: &Console) -> Result<Self, Exit> {
        if path == Path::new("-") {
            console.error(
                format!("{option} wants a file"),
                "`--json` prints the results to standard output; `./-` is a file of that name",
            );
            return Err(Exit::BadInput);
        }
        match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file }),
            Err(error) => {
                console.error(
                    format!("cannot create {}: {error}", path.display()),
                    &format!("give {option} a file in a folder that exists and can be written to"),
                );
                Err(Exit::BadInput)
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing stands in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    /// Puts what `fill` writes in the place of what stood there.
    ///
    /// # Errors
    /// Says why it cannot be written, such as a full disk.
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

/// A folder that an option names, created before the long work begins.
pub struct ResultFolder(PathBuf);

impl ResultFolder {
    /// Creates the folder for `option`, such as `--svg`, and those above it.
    ///
    /// # Errors
    /// Says why it cannot be created.
    pub fn create(path: &Path, option: &str, console: &Console) -> Result<Self, Exit> {
        match std::fs::create_dir_all(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) => {
                console.error(
                    format!("cannot create the folder {}: {error}", path.display()),
                    &format!("give {option} a folder that can be written to"),
                );
                Err(Exit::BadInput)
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of this name into it.
    ///
    /// # Errors
    /// Says why `content` is none, or why it cannot be written.
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

/// A line for the names of the fields, then one for each result. What does not exist is empty.
///
/// # Errors
/// When a result is no row of plain values.
pub fn csv_text<T: Serialize + Default>(results: &[T]) -> Result<String, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for result in results {
        writer.serialize(result)?;
    }
    if results.is_empty() {
        // The names come with a row, so one is written, and taken out again.
        writer.serialize(T::default())?;
    }
    let mut text = String::from_utf8(writer.into_inner()?)?;
    if results.is_empty() {
        text.truncate(text.find('\n').map_or(0, |end| end + 1));
    }
    Ok(text)
}

fn cannot_write(path: &Path, error: impl Display, console: &Console) -> Exit {
    console.error(format!("cannot write {}: {error}", path.display()), "make room, or write it elsewhere");
    Exit::Machine
}
