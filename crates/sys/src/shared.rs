//! Memory that other processes may read: a file without a name, which exists as long as this process has it open.
//!
//! Another process with the rights to look at this one finds the file among the descriptors in `/proc`. Nothing is left
//! behind when this process is killed.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

/// The most bytes that [`read_named`] reads from one file.
const BYTES_MAX: u64 = 1 << 30;

/// Words that other processes may read. They begin as zeros, and are present in memory.
///
/// A child process of `fork` has the same words as its parent, and not a copy.
#[derive(Debug)]
pub struct SharedWords {
    words: *const AtomicU64,
    length: usize,
    /// Keeps the file; `None` if the words are memory of this process alone.
    file: Option<OwnedFd>,
}

// SAFETY: the words are atomics in memory that exists until the value is dropped, and the rest is not changed.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Makes this number of words. Where the kernel refuses a file, the words are memory of this process alone.
    #[must_use]
    pub fn new(name: &CStr, length: usize) -> Self {
        if let Some((words, file)) = map(name, length) {
            return Self { words, length, file: Some(file) };
        }
        let words: Box<[AtomicU64]> = (0..length).map(|_| AtomicU64::new(0)).collect();
        Self { words: Box::into_raw(words).cast(), length, file: None }
    }

    /// Whether other processes may read the words.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.file.is_some()
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `new` made this many words, aligned and initialised, and they exist as long as `self`. All accesses
        // of this process are atomic, and others only read.
        unsafe { std::slice::from_raw_parts(self.words, self.length) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let words = self.words.cast_mut();
        if self.file.is_some() {
            // SAFETY: `new` made this mapping, and no reference to it outlives `self`.
            unsafe { libc::munmap(words.cast(), self.length * size_of::<AtomicU64>()) };
        } else {
            // SAFETY: `new` took this pointer from a box of a slice of this length.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(words, self.length)) });
        }
    }
}

/// Makes a file with this number of words and maps it, or returns `None` where the kernel refuses.
fn map(name: &CStr, length: usize) -> Option<(*const AtomicU64, OwnedFd)> {
    let bytes = length.checked_mul(size_of::<AtomicU64>())?;
    let file = file(name, bytes)?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: the kernel chooses a free range for the mapping, so no memory in use is affected.
    let words = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, file.as_raw_fd(), 0) };
    if words == libc::MAP_FAILED {
        return None;
    }
    // From now on nobody else can write. Kernels before 5.1 cannot promise that.
    for seals in [libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL, libc::F_SEAL_SEAL] {
        // SAFETY: the call takes integers.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0 {
            break;
        }
    }
    Some((words.cast_const().cast(), file))
}

/// Makes a file of this size, or `None` where the kernel refuses.
fn file(name: &CStr, bytes: usize) -> Option<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string with a final zero.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let size = libc::off_t::try_from(bytes).ok()?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: both calls take integers.
    let made =
        unsafe { libc::ftruncate(descriptor, size) == 0 && libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) == 0 };
    made.then_some(file)
}

/// Reads the words of all files of this name that a process has open for [`SharedWords`]. A word that the process
/// changes meanwhile has its old or its new value.
///
/// # Errors
/// `NotFound` if there is no such process, `PermissionDenied` if the caller may not look at it.
pub fn read_named(pid: u32, name: &CStr) -> io::Result<Vec<Vec<u64>>> {
    let target = format!("/memfd:{} (deleted)", name.to_string_lossy());
    let mut found: Vec<(u64, Vec<u64>)> = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        // A descriptor may be closed meanwhile.
        let is_it = std::fs::read_link(&path).is_ok_and(|link| link.as_os_str() == target.as_str());
        if !is_it {
            continue;
        }
        let file = File::open(&path)?;
        let details = file.metadata()?;
        let number = std::os::unix::fs::MetadataExt::ino(&details);
        if details.len() > BYTES_MAX || found.iter().any(|(known, _)| *known == number) {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(details.len()).unwrap_or_default()];
        file.read_exact_at(&mut bytes, 0)?;
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        found.push((number, bytes.chunks_exact(size_of::<u64>()).map(word).collect()));
    }
    // In the order in which they were made.
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, words)| words).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_are_read_through_the_descriptors_of_the_process() {
        let me = std::process::id();
        let name = c"lockwright-test-of-words";
        assert_eq!(read_named(me, name).expect("it is readable"), Vec::<Vec<u64>>::new());
        let words = SharedWords::new(name, 600);
        assert!(words.is_visible() && words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[599].store(7, Ordering::Relaxed);
        let other = SharedWords::new(name, 1);
        let read = read_named(me, name).expect("it is readable");
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [600, 1]);
        assert_eq!((read[0][598], read[0][599]), (0, 7));
        // Nobody else writes them.
        let path = format!("/proc/self/fd/{}", words.file.as_ref().expect("it has a file").as_raw_fd());
        let written = File::options().write(true).open(path).and_then(|file| file.write_at(&[1; 8], 0));
        assert!(written.is_err() && words[0].load(Ordering::Relaxed) == 0, "{written:?}");
        let none = SharedWords::new(name, 0);
        assert!(!none.is_visible() && none.is_empty());
        drop((words, other));
        assert_eq!(read_named(me, name).expect("it is readable"), Vec::<Vec<u64>>::new());
        assert_eq!(read_named(u32::MAX, name).expect_err("no such process").kind(), io::ErrorKind::NotFound);
    }
}
