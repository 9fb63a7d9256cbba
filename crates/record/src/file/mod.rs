//! The file of a recording: what it contains, and how it is read.
//!
//! A recording is a folder with the file `events.lwr`. The library that is loaded into the recorded program writes it
//! from front to back and changes nothing that it has written: a recording that ends when the program is killed is
//! valid up to there. All numbers are little-endian.
//!
//! ```text
//! header  8 bytes "LWRECORD", u32 version, u32 flags, u32 process, u32 zero,
//!         u64 stamp of the start, u64 monotonic clock at the start in nanoseconds
//! chunk   4 bytes "LWCH", u32 kind, u32 argument, u32 bytes, contents, zeros up to a multiple of 8 bytes
//! ```
//!
//! [`mod@format`] lists the kinds of chunks and events. Stamps are counts of the processor's time-stamp counter where
//! it serves the kernel as its clock, and nanoseconds elsewhere. Chunks of the kind `CLOCK` assign times to stamps;
//! between two of them, time is interpolated.

mod clock;
mod decode;
pub mod format;
mod locks;
mod read;
mod threads;

use crate::Recording;
use read::{Contents, Problem};
use std::path::{Path, PathBuf};

/// A recording that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileError {
    /// The file, unless the recording was in memory.
    pub path: Option<PathBuf>,
    /// The place in the file, in bytes, where the problem is known.
    pub at: Option<u64>,
    /// The reason.
    pub reason: String,
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(at) = self.at {
            write!(f, "byte {at}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for FileError {}

impl Recording {
    /// Reads the recording in a folder. With the feature `names`, addresses get names from the recorded program's
    /// files, if these are still there.
    ///
    /// # Errors
    /// The folder contains no recording, or the file is damaged. A file that ends early is not an error, see
    /// [`complete`](Self::complete).
    pub fn read(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join(format::FILE_NAME);
        let fail = |at, reason| FileError { path: Some(path.clone()), at, reason };
        let bytes = std::fs::read(&path)
            .map_err(|error| fail(None, format!("{error}; `lockwright record -- PROGRAM` writes recordings")))?;
        let read = read(&bytes).map_err(|problem| fail(Some(problem.at as u64), problem.reason))?;
        #[cfg_attr(not(feature = "names"), allow(unused_mut, unused_variables))]
        let (mut recording, contents) = read;
        #[cfg(feature = "names")]
        crate::names::resolve(&mut recording, &contents.maps);
        Ok(recording)
    }

    /// Reads the recording in the bytes of its file. Addresses get no names.
    ///
    /// # Errors
    /// The file is damaged. A file that ends early is not an error, see [`complete`](Self::complete).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FileError> {
        let fail = |problem: Problem| FileError { path: None, at: Some(problem.at as u64), reason: problem.reason };
        read(bytes).map(|(recording, _)| recording).map_err(fail)
    }
}

fn read(bytes: &[u8]) -> Result<(Recording, Contents), Problem> {
    let contents = read::contents(bytes)?;
    Ok((decode::recording(&contents)?, contents))
}
