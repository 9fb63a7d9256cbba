//! The file that `--trace` names.

use crate::console::Console;
use crate::exit::Exit;
use crate::perfetto;
use lockwright_model::{Protocol, Record, System};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A trace file, created before the long work begins so that a bad path is found out first.
pub struct TraceFile {
    path: PathBuf,
    file: File,
}

impl TraceFile {
    /// Creates the file, if one is wanted. With several protocols each has its own: `out.pftrace` becomes `out-pip.pftrace`.
    ///
    /// # Errors
    /// Says why it cannot be created.
    pub fn create(
        path: Option<&Path>,
        protocol: Protocol,
        protocols: usize,
        console: &Console,
    ) -> Result<Option<Self>, Exit> {
        let Some(path) = path else { return Ok(None) };
        let path = if protocols > 1 { beside(path, protocol.name()) } else { path.to_owned() };
        match File::create(&path) {
            Ok(file) => Ok(Some(Self { path, file })),
            Err(error) => {
                console.error(
                    format!("cannot create the trace {}: {error}", path.display()),
                    "give --trace a file in a folder that exists and can be written to",
                );
                Err(Exit::BadInput)
            }
        }
    }

    /// Writes the trace, and says where it is.
    ///
    /// # Errors
    /// Says why it cannot be written, such as a full disk.
    pub fn write(self, system: &System, title: &str, records: &[Record], console: &Console) -> Result<(), Exit> {
        let shown = self.path.display();
        perfetto::write(system, title, records, BufWriter::new(self.file)).map_err(|error| {
            console.error(format!("cannot write the trace {shown}: {error}"), "make room, or write it elsewhere");
            Exit::Machine
        })?;
        console.note(format!("the trace is in {shown}; open it in https://ui.perfetto.dev"));
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
