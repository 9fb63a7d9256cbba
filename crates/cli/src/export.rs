//! Files with results.

use crate::console::Console;
use crate::exit::Exit;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file that an option names. A bad path is reported before the long work begins, and the content stays until the new
/// one is complete.
pub struct ResultFile {
    path: PathBuf,
    target: Target,
}

/// Where a result goes.
enum Target {
    /// A new file in the same directory, which replaces the file of this path in one step.
    Replaced(Unfinished, PathBuf),
    /// A pipe, a terminal or another file that cannot be replaced.
    Written(File),
}

impl Target {
    fn open(path: &Path) -> io::Result<Self> {
        let old = match OpenOptions::new().write(true).open(path) {
            Ok(file) if !file.metadata()?.is_file() => return Ok(Self::Written(file)),
            Ok(file) => Some(file.metadata()?.permissions()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A link stays: the file behind it is replaced.
        let path = if old.is_some() { path.canonicalize()? } else { path.to_owned() };
        let file = Unfinished::create(folder_of(&path))?;
        if let Some(permissions) = old {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(Self::Replaced(file, path))
    }

    /// Writes with `fill`, and replaces the file.
    fn write<E: From<io::Error>>(self, fill: impl FnOnce(&mut &File) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Replaced(file, path) => {
                fill(&mut file.as_file())?;
                Ok(file.replace(&path)?)
            }
            Self::Written(file) => fill(&mut &file),
        }
    }
}

/// A file with a result that is not complete.
enum Unfinished {
    /// It has no name until it is complete, so nothing is left of it however the process ends.
    Unnamed(File),
    /// On file systems that cannot do this.
    Named(NamedTempFile),
}

impl Unfinished {
    /// Creates a file that can get a name in this directory.
    fn create(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let unnamed = rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)).map(File::from);
        match unnamed {
            Ok(file) if Path::new(&link_of(&file)).exists() => Ok(Self::Unnamed(file)),
            _ => named().permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map(Self::Named),
        }
    }

    fn as_file(&self) -> &File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Replaces the file of this path in one step. The path is in the directory of the file.
    fn replace(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Unnamed(file) => {
                // A link replaces no file: the new one gets a name beside it first.
                let link = |name: &Path| Ok(linkat(CWD, link_of(&file), CWD, name, AtFlags::SYMLINK_FOLLOW)?);
                named().make_in(folder_of(path), link)?.persist(path).map_err(|error| error.error)?;
            }
            Self::Named(file) => drop(file.persist(path).map_err(|error| error.error)?),
        }
        Ok(())
    }
}

/// The name of an open file for this process.
fn link_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How the names of unfinished files begin.
fn named() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".unfinished-");
    builder
}

impl ResultFile {
    /// Opens the file for `option`, such as `--csv`.
    ///
    /// # Errors
    /// The file cannot be written; the console has the message.
    pub fn open(path: &Path, option: &str, console: &Console) -> Result<Self, Exit> {
        if path == Path::new("-") {
            console.error(
                format!("{option} needs a file"),
                "`--json` prints the results to standard output; `./-` is a file named `-`",
            );
            return Err(Exit::BadInput);
        }
        Target::open(path).map(|target| Self { path: path.to_owned(), target }).map_err(|error| {
            console.error(
                format!("cannot create {}: {}", path.display(), reason(&error)),
                &format!("give {option} a file in an existing directory with write permission"),
            );
            Exit::of_output(&error)
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is no content that a result would replace.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.target {
            Target::Replaced(_, path) => path.metadata().map_or(true, |metadata| metadata.len() == 0),
            Target::Written(_) => false,
        }
    }

    /// Replaces the content by that which `fill` writes, and returns the path.
    ///
    /// # Errors
    /// The file cannot be written, for example on a full disk; the console has the message. A file then keeps its
    /// content.
    pub fn write(
        self,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Box<dyn Error>>,
        console: &Console,
    ) -> Result<PathBuf, Exit> {
        let filled = |file: &mut &File| {
            let mut writer = BufWriter::new(*file);
            fill(&mut writer)?;
            Ok::<_, Box<dyn Error>>(writer.flush()?)
        };
        let written = self.target.write(filled);
        written.map_err(|error| cannot_write(&self.path, error, console))?;
        Ok(self.path)
    }
}

/// Replaces the content of a file in one step; without an error it is complete.
///
/// # Errors
/// The file cannot be written, for example on a full disk. It then keeps its content.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Target::open(path)?.write(|file| file.write_all(content))
}

/// The message of the operating system, without the path of the temporary file.
pub(crate) fn reason(error: impl Display) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or_default().to_owned()
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
                Err(Exit::of_output(&error))
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
        let written = content.map_err(Into::into).and_then(|content| Ok(replace(&path, content.as_bytes())?));
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
    console.error(format!("cannot write {}: {}", path.display(), reason(error)), "free space, or choose another path");
    Exit::Machine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Color;

    #[test]
    fn a_file_in_a_folder_is_replaced_in_one_step() {
        let console = Console::new(Color::Never, true);
        let parent = tempfile::tempdir().expect("a directory");
        let folder = ResultFolder::create(parent.path(), "-o", &console).expect("it is there");
        let [file, link] = ["file", "link"].map(|name| parent.path().join(name));
        std::fs::write(&file, "old").expect("written");
        std::fs::hard_link(&file, &link).expect("linked");
        folder.write("file", Ok::<_, io::Error>("new".into()), &console).expect("written");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        assert_eq!([read(&file), read(&link)], ["new", "old"], "the old content was not touched");
        assert_eq!(std::fs::read_dir(parent.path()).expect("a folder").count(), 2, "no other file stays");
    }
}
