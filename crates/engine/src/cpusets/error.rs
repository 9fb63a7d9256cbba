//! Why there are no partitions.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the CPUs could not be made partitions of their own. The message says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CpusetError {
    /// No mounted hierarchy of control groups has cpusets.
    NotMounted,
    /// Another process has partitions.
    InUse {
        /// Its id.
        process: u32,
    },
    /// A file or folder of the hierarchy could not be read, written, made or removed.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        errno: i32,
    },
    /// The kernel does not make a partition of a group.
    Refused {
        /// The file that tells so.
        path: PathBuf,
        /// What the file contains.
        found: String,
    },
}

impl CpusetError {
    pub(super) fn file(path: &Path, error: &io::Error) -> Self {
        Self::File { path: path.into(), errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

impl fmt::Display for CpusetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted => f.write_str(
                "no hierarchy of control groups with cpusets is mounted: `sudo mount -t cgroup2 none /sys/fs/cgroup`, or \
                 `sudo mount -t cgroup -o cpuset none FOLDER` where only version 1 has them; the kernel needs \
                 CONFIG_CPUSETS",
            ),
            Self::InUse { process } => write!(
                f,
                "process {process} has partitions of CPUs; wait for its end (`lockwright doctor` removes what a killed \
                 run left)"
            ),
            Self::File { path, errno } => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "{}: {error}; ", path.display())?;
                f.write_str(match *errno {
                    libc::EACCES | libc::EPERM | libc::EROFS => {
                        "it requires root, and a hierarchy that is mounted for writing (in a container usually not)"
                    }
                    _ => {
                        "other groups may have these CPUs (a container, a partition of another program): give them \
                         others, or choose other CPUs with `taskset`"
                    }
                })
            }
            Self::Refused { path, found } => write!(
                f,
                "{}: the kernel answers `{found}`; the CPUs must belong to the root and to no other partition, and at \
                 least one CPU must be left for it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CpusetError {}
