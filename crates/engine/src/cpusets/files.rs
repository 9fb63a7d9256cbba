//! The files of a hierarchy of control groups: those of the kernel, and in tests those of an imitation.

use std::io;
use std::path::Path;
use std::time::Duration;

/// What the partitions need of a file system. A text is written in one piece into a file that exists.
pub trait Files {
    /// The whole text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes a text into a file that exists.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Makes a group.
    fn make(&self, path: &Path) -> io::Result<()>;
    /// Removes a group without members.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The names in a group.
    fn names(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Lets time pass.
    fn wait(&self, time: Duration);
}

/// The files of this machine.
#[derive(Debug, Default)]
pub struct Kernel;

impl Files for Kernel {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = std::fs::File::options().write(true).open(path)?;
        io::Write::write_all(&mut file, text.as_bytes())
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
