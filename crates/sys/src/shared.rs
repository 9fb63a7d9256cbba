//! Memory that other processes may read: a file without a name, which exists as long as this process has it open.
//!
//! Another process with the rights to look at this one finds the file among the descriptors in `/proc`. Nothing is left
//! behind when this process is killed.

use crate::error::KeepErrno;
use std::ffi::{CStr, c_int};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes that [`read_named`] reads from one file.
const BYTES_MAX: u64 = 1 << 30;

/// The fewest words of a page.
const PAGE_WORDS: usize = 512;
/// Nobody changes the size of the file, so a mapping of it stays valid.
const SIZE_SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// Words that other processes may read. They begin as zeros, and are present in memory, locked there if the process may
/// lock that much. Others read them only once the first word is not zero.
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
        let _errno = KeepErrno::now();
        if let Some((words, file)) = map(name, length) {
            let words = Self { words, length, file: Some(file) };
            // A page that was only read may be missing at the first write.
            words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
            // SAFETY: the words are memory of this process. If it may not lock them, they are as other memory.
            unsafe { libc::mlock(words.words.cast(), length * size_of::<AtomicU64>()) };
            return words;
        }
        Self { words: map_alone(length), length, file: None }
    }

    /// Makes this number of words, for this process alone. A child process of `fork` has a copy.
    #[must_use]
    pub fn private(length: usize) -> Self {
        let words = Self { words: map_alone(length), length, file: None };
        words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
        // SAFETY: the words are memory of this process. If it may not lock them, they are as other memory.
        unsafe { libc::mlock(words.words.cast(), length * size_of::<AtomicU64>()) };
        words
    }

    /// Returns all words as they are now, read in the order of their places.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u64> {
        copy(self)
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
        // SAFETY: `new` made this mapping, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.words.cast_mut().cast(), (self.length * size_of::<AtomicU64>()).max(1)) };
    }
}

/// Makes a file with this number of words and maps it, or returns `None` where the kernel refuses.
fn map(name: &CStr, length: usize) -> Option<(*const AtomicU64, OwnedFd)> {
    let bytes = length.checked_mul(size_of::<AtomicU64>())?;
    let file = file(name, bytes)?;
    let words = map_file(&file, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
    // From now on nobody else can write. Kernels before 5.1 cannot promise that.
    for seals in [libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL, libc::F_SEAL_SEAL] {
        // SAFETY: the call takes integers.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0 {
            break;
        }
    }
    Some((words, file))
}

/// Maps memory of this process alone, and not from the allocator: it may lock a mutex that is counted in these words.
/// If there is no memory, ends the process as the allocator does.
fn map_alone(length: usize) -> *const AtomicU64 {
    let out_of_memory: fn() -> ! = || std::alloc::handle_alloc_error(std::alloc::Layout::new::<AtomicU64>());
    // No mapping is empty.
    let bytes = length.checked_mul(size_of::<AtomicU64>()).unwrap_or_else(|| out_of_memory()).max(1);
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses a free range for the mapping, so no memory in use is affected.
    let words = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if words == libc::MAP_FAILED {
        out_of_memory();
    }
    words.cast_const().cast()
}

/// Maps a file of this size, or returns `None` where the kernel refuses.
fn map_file(file: &impl AsRawFd, bytes: usize, access: c_int) -> Option<*const AtomicU64> {
    // SAFETY: the kernel chooses a free range for the mapping, so no memory in use is affected.
    let words = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    (words != libc::MAP_FAILED).then(|| words.cast_const().cast())
}

/// The words as they are now.
fn copy(words: &[AtomicU64]) -> Vec<u64> {
    // ORDERING: Acquire: who finds a word that was written by Release finds what was written before, in later places.
    words.iter().map(|word| word.load(Ordering::Acquire)).collect()
}

/// Makes a file of this size, or `None` where the kernel refuses.
fn file(name: &CStr, bytes: usize) -> Option<OwnedFd> {
    // Systems may require the first form, which kernels before 6.3 do not know.
    let flags = [libc::MFD_NOEXEC_SEAL, 0].map(|more| more | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
    // SAFETY: the name is a string with a final zero.
    let mut made = flags.into_iter().map(|flags| unsafe { libc::memfd_create(name.as_ptr(), flags) });
    let descriptor = made.find(|&descriptor| descriptor >= 0)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let size = libc::off_t::try_from(bytes).ok()?;
    // SAFETY: both calls take integers.
    let made = unsafe {
        libc::ftruncate(descriptor, size) == 0 && libc::fcntl(descriptor, libc::F_ADD_SEALS, SIZE_SEALS) == 0
    };
    made.then_some(file)
}

/// Reads the words of all files of this name that a process has open for [`SharedWords`]. A word that the process
/// changes meanwhile has its old or its new value. Words whose first one is still zero are left out.
///
/// # Errors
/// `NotFound` if there is no such process, `PermissionDenied` if the caller may not look at it.
pub fn read_named(pid: u32, name: &CStr) -> io::Result<Vec<Vec<u64>>> {
    let target = format!("/memfd:{} (deleted)", name.to_string_lossy());
    let mut found: Vec<(u64, Vec<u64>)> = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        let is_it = || std::fs::read_link(&path).is_ok_and(|link| link.as_os_str() == target.as_str());
        if !is_it() {
            continue;
        }
        // Another file may have the descriptor by now; nothing waits for it.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = match File::options().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if is_it() => return Err(error),
            // The descriptor was closed meanwhile.
            Err(_) => continue,
        };
        // SAFETY: the call takes an integer.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // A file of another kind has no seals, and a new one has none yet.
        if seals < 0 || seals & SIZE_SEALS != SIZE_SEALS {
            continue;
        }
        let details = file.metadata()?;
        let is_known = found.iter().any(|(known, _)| *known == details.ino());
        if let Some(words) = read_file(&file, details.len()).filter(|_| !is_known) {
            found.push((details.ino(), words));
        }
    }
    // In the order in which they were made.
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, words)| words).collect())
}

/// Reads the words of a file whose length does not change, once there are words.
fn read_file(file: &File, length: u64) -> Option<Vec<u64>> {
    let bytes = usize::try_from(length).ok().filter(|_| (1..=BYTES_MAX).contains(&length))?;
    let words = map_file(file, bytes, libc::PROT_READ)?;
    // SAFETY: the mapping has at least this many bytes, aligned to a page, and exists until it is unmapped below.
    let mapped = unsafe { std::slice::from_raw_parts(words, bytes / size_of::<AtomicU64>()) };
    // ORDERING: Acquire: who finds the first word finds those that were written before.
    let is_filled = mapped.first().is_some_and(|first| first.load(Ordering::Acquire) != 0);
    let copied = is_filled.then(|| copy(mapped));
    // SAFETY: this function made the mapping, and the copy does not refer to it.
    unsafe { libc::munmap(words.cast_mut().cast(), bytes) };
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn words_are_read_through_the_descriptors_of_the_process() {
        let me = std::process::id();
        let name = c"lockwright-test-of-words";
        assert_eq!(read_named(me, name).expect("it is readable"), Vec::<Vec<u64>>::new());
        let words = SharedWords::new(name, 600);
        assert!(words.is_visible() && words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[599].store(7, Ordering::Relaxed);
        let other = SharedWords::new(name, 1);
        // Without a first word, they are not ready.
        assert_eq!(read_named(me, name).expect("it is readable"), Vec::<Vec<u64>>::new());
        words[0].store(1, Ordering::Release);
        other[0].store(2, Ordering::Release);
        let read = read_named(me, name).expect("it is readable");
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [600, 1]);
        assert_eq!((read[0][598], read[0][599]), (0, 7));
        // Nobody else writes them.
        let path = format!("/proc/self/fd/{}", words.file.as_ref().expect("it has a file").as_raw_fd());
        let written = File::options().write(true).open(path).and_then(|file| file.write_at(&[1; 8], 0));
        assert!(written.is_err() && words[0].load(Ordering::Relaxed) == 1, "{written:?}");
        assert_eq!((words.to_vec()[599], words.to_vec().len()), (7, 600));
        let none = SharedWords::new(name, 0);
        assert!(!none.is_visible() && none.is_empty());
        drop((words, other));
        assert_eq!(read_named(me, name).expect("it is readable"), Vec::<Vec<u64>>::new());
        assert_eq!(read_named(u32::MAX, name).expect_err("no such process").kind(), io::ErrorKind::NotFound);
    }

    /// Files that only have the name: they may change their size, or have none yet.
    #[test]
    fn files_that_are_not_sealed_are_left_out() {
        let (me, name) = (std::process::id(), c"lockwright-test-of-seals");
        // SAFETY: the name is a string with a final zero.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        assert!(descriptor >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let read = || read_named(me, name).expect("it is readable");
        assert_eq!(read(), Vec::<Vec<u64>>::new());
        file.write_at(&5_u64.to_ne_bytes(), 0).expect("it is writable");
        assert_eq!(read(), Vec::<Vec<u64>>::new());
        // SAFETY: the call takes integers.
        assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, SIZE_SEALS) }, 0);
        assert_eq!(read(), [[5]]);
    }

    #[test]
    fn every_page_is_written_and_locked() {
        let words = SharedWords::new(c"lockwright-test-of-pages", 5 * PAGE_WORDS);
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("it is readable");
        let own = maps.split("/memfd:lockwright-test-of-pages").nth(1).expect("it is mapped");
        let kib = |key: &str| {
            let line = own.lines().find_map(|line| line.strip_prefix(key)).expect("a line of this name");
            line.trim_end_matches("kB").trim().parse::<usize>().expect("a number")
        };
        let all = words.len() * size_of::<u64>() / 1024;
        assert_eq!(kib("Shared_Dirty:") + kib("Private_Dirty:"), all, "{own:.900}");
        if crate::memory::may_lock_anything() {
            assert_eq!(kib("Locked:"), all, "{own:.900}");
        }
    }
}
