//! The file that `--trace` names.

use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFile;
use crate::perfetto;
use lockwright_model::{Protocol, Record, System};
use std::path::{Path, PathBuf};

/// A trace file.
pub struct TraceFile(ResultFile);

impl TraceFile {
    /// Opens the file, if one is wanted. With several protocols, each has its own: `out.pftrace` becomes
    /// `out-pip.pftrace`.
    ///
    /// # Errors
    /// The file cannot be opened; the console has the message.
    pub fn create(
        path: Option<&Path>,
        protocol: Protocol,
        protocols: usize,
        console: &Console,
    ) -> Result<Option<Self>, Exit> {
        let Some(path) = path else { return Ok(None) };
        let path = if protocols > 1 { beside(path, protocol.name()) } else { path.to_owned() };
        ResultFile::open(&path, "--trace", console).map(|file| Some(Self(file)))
    }

    /// Writes the trace, and prints its path.
    ///
    /// # Errors
    /// The file cannot be written, for example on a full disk; the console has the message.
    pub fn write(self, system: &System, title: &str, records: &[Record], console: &Console) -> Result<(), Exit> {
        self.0.write(|out| Ok(perfetto::write(system, title, records, out)?), console)?;
        console.note(format!("the trace is in {}; https://ui.perfetto.dev shows it", self.0.path().display()));
        Ok(())
    }
}

fn beside(path: &Path, word: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{word}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{word}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_has_its_own_file() {
        assert_eq!(beside(Path::new("a/out.pftrace"), "pip"), Path::new("a/out-pip.pftrace"));
        assert_eq!(beside(Path::new("out"), "pip"), Path::new("out-pip"));
    }
}
