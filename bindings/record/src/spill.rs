//! The thread that writes the contents of the rings. It has the ordinary scheduling policy and takes no lock that the
//! program uses, and the program waits for it only at its end.

use crate::clock;
use crate::file::Output;
use crate::next;
use crate::ring::{self, Ring};
use crate::switches::Switches;
use crate::thread;
use crate::traced::Traced;
use libc::{c_int, c_void};
use lockwright_record::file::format::chunk;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The time between two rounds in nanoseconds.
const PERIOD_NS: i64 = 10_000_000;
/// The number of rounds after which the names of threads, and the mappings of files, are read again.
const NAME_ROUNDS: u64 = 50;
const MAPS_ROUNDS: u64 = 100;
/// The words that are copied at once.
const COPY: usize = 1 << 15;
/// The most bytes of a list of mappings.
const MAPS_MAX: usize = 1 << 20;
/// How long a program waits at its end, in seconds.
const END_S: i64 = 10;

/// The latest request to the thread that writes, or its answer.
static STOP: AtomicU32 = AtomicU32::new(STARTS);
const RUNS: u32 = 0;
const REQUESTED: u32 = 1;
const DONE: u32 = 2;
/// The thread has not begun.
const STARTS: u32 = 3;

const WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

/// Waits until `STOP` is not `value`, for at most this time.
fn wait(value: u32, s: i64, ns: i64) {
    let time = libc::timespec { tv_sec: s, tv_nsec: ns };
    // SAFETY: the word is a static, and the time outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, STOP.as_ptr(), WAIT, value, &raw const time) };
}

fn wake() {
    // SAFETY: the word is a static.
    unsafe { libc::syscall(libc::SYS_futex, STOP.as_ptr(), WAKE, c_int::MAX) };
}

/// Writes all that is recorded, and ends the recording.
///
/// BOUND: END_S.
pub(crate) fn finish() {
    // ORDERING: AcqRel, as the other changes of this word; nothing else is ordered by it.
    let _ = STOP.compare_exchange(RUNS, REQUESTED, Ordering::AcqRel, Ordering::Acquire);
    wake();
    for _ in 0..END_S {
        if STOP.load(Ordering::Acquire) == DONE {
            return;
        }
        wait(REQUESTED, 1, 0);
    }
}

/// What the kernel records, as far as it permits that.
pub(crate) struct Kernel {
    pub(crate) switches: Option<Switches>,
    pub(crate) traced: Option<Traced>,
}

/// Starts the thread.
pub(crate) fn start(output: Output, kernel: Kernel) -> io::Result<()> {
    let switches = kernel.switches.iter().flat_map(Switches::descriptors);
    let traced = kernel.traced.iter().flat_map(Traced::descriptors);
    let descriptors: Vec<c_int> = switches.chain(traced).chain([output.descriptor()]).collect();
    let spill = Box::new(Spill::new(output, kernel, descriptors.clone()));
    // SAFETY: every object is initialised before it is used, and outlives the calls. The new thread owns the box; if
    // there is no new thread, this frame still does.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setinheritsched(&raw mut attributes, libc::PTHREAD_EXPLICIT_SCHED);
        libc::pthread_attr_setschedpolicy(&raw mut attributes, libc::SCHED_OTHER);
        // Without this call, glibc takes the priority of a real-time creator, which this policy does not have.
        let ordinary = libc::sched_param { sched_priority: 0 };
        libc::pthread_attr_setschedparam(&raw mut attributes, &raw const ordinary);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        // The program's signals are for its own threads.
        let (mut all, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let argument = Box::into_raw(spill);
        let mut thread = 0;
        let answer = next::pthread_create(&raw mut thread, &raw const attributes, run, argument.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        libc::pthread_attr_destroy(&raw mut attributes);
        if answer != 0 {
            drop(Box::from_raw(argument));
            return Err(io::Error::from_raw_os_error(answer));
        }
    }
    // BOUND: the thread begins, or the program ends.
    while STOP.load(Ordering::Acquire) == STARTS {
        wait(STARTS, 1, 0);
    }
    if HAS_OWN_FILES.load(Ordering::Acquire) {
        for descriptor in descriptors {
            // SAFETY: the recorder opened these descriptors, and this is their only close: the other thread has copies
            // of its own.
            unsafe { libc::close(descriptor) };
        }
    }
    Ok(())
}

/// The number of the thread in the kernel.
static OWN_ID: AtomicU32 = AtomicU32::new(0);

/// Whether this thread calls.
pub(crate) fn is_own_thread() -> bool {
    // ORDERING: Relaxed: the thread itself has stored it.
    OWN_ID.load(Ordering::Relaxed) == thread::id()
}

/// Whether the descriptors of the thread are its own.
static HAS_OWN_FILES: AtomicBool = AtomicBool::new(false);

/// Separates the thread's descriptors from the program's, so that neither closes those of the other. Closes all
/// descriptors except these and standard error. Returns whether it succeeded.
fn separate(descriptors: &mut [c_int]) -> bool {
    // SAFETY: the call takes an integer. It gives this thread its own table of descriptors, and changes no other
    // thread's.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return false;
    }
    descriptors.sort_unstable();
    let mut from = 0;
    for &kept in [libc::STDERR_FILENO].iter().chain(descriptors.iter()).chain(&[c_int::MAX]) {
        if from < kept {
            // SAFETY: this thread has its own table of descriptors, and uses only those that are kept.
            unsafe { libc::syscall(libc::SYS_close_range, from, kept - 1, 0) };
        }
        from = kept.saturating_add(1);
    }
    true
}

/// The rounds between two looks whether all threads of the program have ended.
const ALONE_ROUNDS: u64 = 10;

/// Whether the program's main thread has called `pthread_exit` and no other thread is left except this one.
fn is_alone() -> bool {
    /// The links of the directory besides those of the threads.
    const LINKS: u64 = 2;
    // The main thread stays in the directory.
    let threads = std::fs::metadata("/proc/self/task").map_or(0, |task| task.nlink().saturating_sub(LINKS));
    if threads != 2 {
        return false;
    }
    let mut text = [0; 512];
    let length = File::open("/proc/self/stat").and_then(|mut file| file.read(&mut text)).unwrap_or(0);
    // `1234 (name) Z ...`: the name may contain anything.
    let after = text[..length].iter().rposition(|&byte| byte == b')');
    after.is_some_and(|at| text.get(at + 2) == Some(&b'Z'))
}

extern "C-unwind" fn run(spill: *mut c_void) -> *mut c_void {
    thread::ignore();
    // SAFETY: `start` made the box, and passed it to this thread alone.
    let mut spill = unsafe { Box::from_raw(spill.cast::<Spill>()) };
    // SAFETY: the call sets the name of this thread, and reads a constant string.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lw-recorder".as_ptr()) };
    OWN_ID.store(thread::id(), Ordering::Relaxed);
    HAS_OWN_FILES.store(separate(&mut spill.descriptors), Ordering::Release);
    STOP.store(RUNS, Ordering::Release);
    wake();
    // BOUND: the program's life.
    let mut is_behind = false;
    while STOP.load(Ordering::Acquire) == RUNS {
        if !is_behind {
            wait(RUNS, 0, PERIOD_NS);
        }
        is_behind = spill.round();
        // The C library ends the process when its last thread ends, and this one must not keep it alive.
        if spill.rounds.is_multiple_of(ALONE_ROUNDS) && is_alone() {
            break;
        }
    }
    // What happened after the request.
    spill.round();
    // ORDERING: Relaxed: a counter.
    spill.output.end(ring::WITHOUT_RING.load(Ordering::Relaxed));
    STOP.store(DONE, Ordering::Release);
    wake();
    std::ptr::null_mut()
}

/// The part of a ring's state that the writing thread keeps.
#[derive(Clone, Copy, Default)]
struct Known {
    number: u32,
    lost: u64,
    name: [u8; 16],
    is_written: bool,
}

/// The thread's own state. It allocates nothing later: the program's allocator may lock.
struct Spill {
    output: Output,
    kernel: Kernel,
    descriptors: Vec<c_int>,
    /// The threads of the program in this round, in the order of their numbers in the kernel.
    threads: Vec<u32>,
    rounds: u64,
    known: Vec<Known>,
    words: Vec<u64>,
    bytes: Vec<u8>,
    maps: Vec<u8>,
    maps_before: Vec<u8>,
}

impl Spill {
    fn new(output: Output, kernel: Kernel, descriptors: Vec<c_int>) -> Self {
        Self {
            output,
            kernel,
            descriptors,
            threads: Vec::with_capacity(ring::RINGS_MAX),
            rounds: 0,
            known: vec![Known::default(); ring::RINGS_MAX],
            words: vec![0; COPY],
            bytes: Vec::with_capacity(COPY * size_of::<u64>()),
            maps: Vec::with_capacity(MAPS_MAX),
            maps_before: Vec::with_capacity(MAPS_MAX),
        }
    }

    /// Writes everything that had come when the round began. Returns whether a ring was at least half full.
    ///
    /// BOUND: RINGS_MAX rings, and the size of each.
    fn round(&mut self) -> bool {
        let is_last = STOP.load(Ordering::Acquire) != RUNS;
        if is_last || self.rounds.is_multiple_of(MAPS_ROUNDS) {
            self.write_maps();
        }
        let reads_names = is_last || self.rounds % NAME_ROUNDS == NAME_ROUNDS - 1;
        let mut is_behind = false;
        if self.kernel.traced.is_some() {
            self.threads.clear();
            self.threads.extend(ring::all().map(|ring| ring.id.load(Ordering::Relaxed)));
            self.threads.sort_unstable();
        }
        for (index, ring) in ring::all().enumerate() {
            is_behind |= self.spill(index, ring, reads_names) >= ring.size() / 2;
        }
        self.write_switches();
        self.output.moment(clock::moment());
        self.rounds += 1;
        is_behind
    }

    /// Writes what a ring contains now. Returns how many words it wrote.
    fn spill(&mut self, index: usize, ring: &Ring, reads_names: bool) -> usize {
        let Some((number, has_ended)) = ring.owner() else { return 0 };
        if !self.known[index].is_written || self.known[index].number != number {
            self.known[index] = Known { number, ..Known::default() };
        }
        // What the thread appends meanwhile is for the next round: a thread that appends faster than this one writes
        // must not keep it from the other rings, and not from its end.
        let mut written = 0;
        // BOUND: the size of the ring.
        loop {
            let most = COPY.min(ring.size() - written);
            let taken = ring.take(&mut self.words[..most]);
            if taken == 0 {
                break;
            }
            written += taken;
            if !self.known[index].is_written {
                self.write_thread(index, number, ring, name_of(ring));
            }
            let bytes = std::ptr::from_ref(self.words.as_slice()).cast::<u8>();
            // SAFETY: `take` filled the first `taken` words, which live as long as `self`. Words have no invalid bytes,
            // and stand in the order of the file, which is that of x86-64.
            let bytes = unsafe { std::slice::from_raw_parts(bytes, taken * size_of::<u64>()) };
            self.output.chunk(chunk::EVENTS, number, bytes);
        }
        let known = self.known[index];
        let name = match (has_ended, reads_names) {
            (true, _) => last_name_of(ring),
            (_, true) => name_of(ring),
            _ => known.name,
        };
        if known.is_written && (name != known.name || ring.lost() != known.lost) {
            self.write_thread(index, number, ring, name);
        }
        if has_ended {
            self.known[index].is_written = false;
            ring.free();
        }
        written
    }

    fn write_thread(&mut self, index: usize, number: u32, ring: &Ring, name: [u8; 16]) {
        let lost = ring.lost();
        let mut contents = [0; 32];
        contents[..4].copy_from_slice(&ring.id.load(Ordering::Relaxed).to_le_bytes());
        contents[8..16].copy_from_slice(&lost.to_le_bytes());
        contents[16..].copy_from_slice(&name);
        self.output.chunk(chunk::THREAD, number, &contents);
        self.known[index] = Known { number, lost, name, is_written: true };
    }

    fn write_switches(&mut self) {
        let Some(switches) = &mut self.kernel.switches else { return };
        let (output, bytes, own_id) = (&mut self.output, &mut self.bytes, u64::from(thread::id()));
        bytes.clear();
        let mut put = |switch: [u64; 2]| {
            if switch[1] & 0xFFFF_FFFF == own_id {
                return;
            }
            if bytes.len() + 16 > bytes.capacity() {
                output.chunk(chunk::SWITCHES, 0, bytes);
                bytes.clear();
            }
            bytes.extend(switch.iter().flat_map(|word| word.to_le_bytes()));
        };
        let mut lost = switches.take(&mut put);
        if let Some(traced) = &mut self.kernel.traced {
            lost += traced.take(&self.threads, &mut put);
        }
        if !bytes.is_empty() || lost > 0 || self.rounds == 0 {
            output.chunk(chunk::SWITCHES, u32::try_from(lost).unwrap_or(u32::MAX), bytes);
        }
    }

    /// Writes the mappings of files, if they are not as before.
    fn write_maps(&mut self) {
        // Those of the process are empty after the end of its main thread.
        let Ok(mut file) = File::open("/proc/thread-self/maps") else { return };
        self.maps.resize(MAPS_MAX, 0);
        let mut length = 0;
        // BOUND: MAPS_MAX.
        while let Ok(read @ 1..) = file.read(&mut self.maps[length..]) {
            length += read;
        }
        self.maps.truncate(length);
        let is_file = |line: &&[u8]| line.contains(&b'/');
        let lines = |text: &'_ [u8]| -> u64 {
            // Enough to see that a file was mapped or unmapped.
            let sum =
                |sum: u64, line: &[u8]| line.iter().fold(sum, |sum, &byte| sum.wrapping_mul(31) + u64::from(byte));
            text.split(|&byte| byte == b'\n').filter(is_file).fold(0, sum)
        };
        if lines(&self.maps) != lines(&self.maps_before) {
            self.output.chunk(chunk::MAPS, 0, &self.maps);
            std::mem::swap(&mut self.maps, &mut self.maps_before);
        }
    }
}

/// The name that a thread has now. Zeros if it has ended.
fn name_of(ring: &Ring) -> [u8; 16] {
    let mut name = [0; 16];
    let mut path = [0_u8; 40];
    let id = ring.id.load(Ordering::Relaxed);
    use std::io::Write;
    if write!(&mut path[..], "/proc/self/task/{id}/comm").is_err() {
        return name;
    }
    let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
    let opened = std::str::from_utf8(&path[..end]).ok().and_then(|path| File::open(path).ok());
    let length = opened.and_then(|mut file| file.read(&mut name).ok()).unwrap_or(0);
    // The kernel ends the name with a line break.
    if let Some(last) = length.checked_sub(1) {
        name[last] = 0;
    }
    name
}

fn last_name_of(ring: &Ring) -> [u8; 16] {
    let mut name = [0; 16];
    for (bytes, half) in name.chunks_exact_mut(8).zip(&ring.name) {
        bytes.copy_from_slice(&half.load(Ordering::Relaxed).to_le_bytes());
    }
    name
}
