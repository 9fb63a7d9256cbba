//! Test threads of given levels, their state in the kernel, and a watchdog.

use crate::machine::{Machine, require_moments, require_realtime};
use lockwright::mutex::{Attributes, Builder, Mutex, MutexProtocol, RawMutex, Unlock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// A level above all threads of the tests.
const WATCHDOG_LEVEL: u8 = 99;
/// The longest wait for a thread.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shorthands that only tests may use freely.
pub trait Robustly {
    fn robustly(self, robust: bool) -> Self;
}

impl Robustly for Builder {
    fn robustly(self, robust: bool) -> Self {
        // SAFETY: mutexes of the tests stay where they are: in statics, in `Arc`s that threads which end with them
        // keep, or in mapped memory.
        unsafe { self.robust(robust) }
    }
}

pub trait Inside {
    fn inside(&self) -> &RawMutex;
}

impl<T: ?Sized> Inside for Mutex<T> {
    fn inside(&self) -> &RawMutex {
        // SAFETY: the raw mutex is only read.
        unsafe { self.raw() }
    }
}

/// Creates a mutex of a kind that the builder does not make.
pub fn raw_mutex(kind: u32, ceiling: u8) -> RawMutex {
    // SAFETY: mutexes of the tests stay where they are: in statics, in `Arc`s that threads which end with them keep, or
    // in mapped memory.
    unsafe { RawMutex::new(Attributes::from_bits(kind), ceiling) }
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The kernel's id of the calling thread.
pub fn tid() -> u32 {
    // SAFETY: the call takes no arguments.
    (unsafe { libc::gettid() }) as u32
}

fn set_scheduler(tid: u32, policy: i32, level: u8) -> bool {
    let param = libc::sched_param { sched_priority: i32::from(level) };
    // SAFETY: `param` is valid for reading.
    (unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const param) }) == 0
}

pub fn set_fifo(tid: u32, level: u8) {
    assert!(set_scheduler(tid, libc::SCHED_FIFO, level), "permission was checked");
}

/// Sets the level of the calling thread, not of the threads it starts later.
pub fn set_fifo_alone(level: u8) {
    assert!(set_scheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, level), "permission was checked");
}

/// Puts the calling thread under SCHED_DEADLINE.
pub fn become_deadline(runtime: Duration, period: Duration) -> std::io::Result<()> {
    let [runtime, period] = [runtime, period].map(|time| time.as_nanos() as u64);
    // The fields of `struct sched_attr`: size and policy, flags, nice and level, runtime, deadline, period.
    let attributes = [48 | (libc::SCHED_DEADLINE as u64) << 32, 0, 0, runtime, period, period];
    // SAFETY: the attributes are valid for reading, and their size is given.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes.as_ptr(), 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

pub fn set_other(tid: u32) {
    assert!(set_scheduler(tid, libc::SCHED_OTHER, 0), "always allowed");
}

/// The policy and level of a thread, with ceilings and without inheritance.
pub fn scheduling(tid: u32) -> (i32, i32) {
    let mut param = libc::sched_param { sched_priority: -1 };
    // SAFETY: `param` is valid for writing; the other call takes an integer.
    unsafe {
        libc::syscall(libc::SYS_sched_getparam, tid, &raw mut param);
        (libc::syscall(libc::SYS_sched_getscheduler, tid) as i32, param.sched_priority)
    }
}

pub fn cpus() -> Vec<usize> {
    // SAFETY: all zeros is an empty set, and it is valid for writing; every CPU asked for is within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

pub fn pin(cpu: usize) {
    // SAFETY: all zeros is an empty set, `cpu` is within it, and it is valid for reading.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// A line of the kernel's files on a thread of this process.
fn proc_of(tid: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/task/{tid}/{file}")).unwrap_or_default()
}

/// The level at which a thread executes, with inheritance; 0 under the ordinary policy.
pub fn level(tid: u32) -> i32 {
    let stat = proc_of(tid, "stat");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let priority: i32 = after_name.split_whitespace().nth(15).and_then(|field| field.parse().ok()).unwrap_or(0);
    if priority < 0 { -1 - priority } else { 0 }
}

/// The number of times a thread suspended.
pub fn suspensions(tid: u32) -> u64 {
    let status = proc_of(tid, "status");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The address of the futex on which a thread is suspended.
fn futex_of(tid: u32) -> Option<usize> {
    let call = proc_of(tid, "syscall");
    let mut fields = call.split_whitespace();
    let is_futex = fields.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex);
    let first = fields.next().and_then(|first| usize::from_str_radix(first.trim_start_matches("0x"), 16).ok());
    first.filter(|_| is_futex)
}

/// Whether a thread is suspended in a futex call on this address.
pub fn waits_at(tid: u32, address: usize) -> bool {
    futex_of(tid) == Some(address)
}

/// Waits until a thread is suspended on a futex inside `object`.
pub fn until_waiting_in<T>(tid: u32, object: &T) {
    let begin = std::ptr::from_ref(object).addr();
    until("a thread waits", || futex_of(tid).is_some_and(|futex| (begin..begin + size_of::<T>()).contains(&futex)));
}

/// Whether a thread is suspended on a mutex.
pub fn is_waiting(tid: u32, mutex: &RawMutex) -> bool {
    waits_at(tid, std::ptr::from_ref(mutex).addr())
}

/// Waits until a thread is suspended on a mutex.
pub fn until_waiting(tid: u32, mutex: &RawMutex) {
    until("a thread waits for the mutex", || is_waiting(tid, mutex));
}

/// Waits until a thread is suspended on a condition variable (or was moved from there).
pub fn until_waiting_at<T>(tid: u32, place: &T) {
    until("a thread waits", || waits_at(tid, std::ptr::from_ref(place).addr()));
}

/// A limit of time on this machine: an emulated processor is slower, and TEST_TIME_SCALE says how many times.
pub fn scaled(limit: Duration) -> Duration {
    let scale = std::env::var("TEST_TIME_SCALE").ok().and_then(|scale| scale.parse().ok());
    limit * scale.unwrap_or(1)
}

/// Waits until the condition holds.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < scaled(PATIENCE), "not in time: {what}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Ends the process if it is not dropped in time.
pub struct Watchdog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

pub fn watch(limit: Duration) -> Watchdog {
    let limit = scaled(limit);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let thread = spawn(move || {
        // Without permission there are no real-time threads to outrank.
        let _ = set_scheduler(tid(), libc::SCHED_FIFO, WATCHDOG_LEVEL);
        let start = Instant::now();
        // ORDERING: Relaxed: it publishes nothing.
        while !is_over.load(Ordering::Relaxed) {
            if start.elapsed() > limit {
                eprintln!("the watchdog aborts {name}, which does not end");
                std::process::abort();
            }
            std::thread::park_timeout(ms(200));
        }
    });
    Watchdog { over, thread: Some(thread) }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // ORDERING: Relaxed: see above.
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A watched test machine: its levels and one of its processors.
pub struct Stage {
    pub cpu: usize,
    _watchdog: Watchdog,
    _machine: Machine,
}

impl Stage {
    pub fn set() -> Option<Self> {
        Self::set_for(Duration::from_secs(60))
    }

    pub fn set_for(limit: Duration) -> Option<Self> {
        Some(Self::on(require_realtime()?, limit))
    }

    /// A stage beside those of other tests, for ordinary threads, which have a level in sections only.
    pub fn beside_others() -> Option<Self> {
        Some(Self::on(require_moments()?, Duration::from_secs(60)))
    }

    fn on(machine: Machine, limit: Duration) -> Self {
        Self { cpu: cpus()[0], _watchdog: watch(limit), _machine: machine }
    }

    /// Starts a thread under SCHED_FIFO on the stage's processor.
    pub fn thread<T: Send + 'static>(&self, level: u8, body: impl FnOnce() -> T + Send + 'static) -> Player<T> {
        Player::enter(Some((level, self.cpu)), body)
    }
}

/// A thread with its id.
pub struct Player<T> {
    pub tid: u32,
    handle: JoinHandle<T>,
}

impl<T: Send + 'static> Player<T> {
    pub fn enter(level_and_cpu: Option<(u8, usize)>, body: impl FnOnce() -> T + Send + 'static) -> Self {
        let (send, receive) = std::sync::mpsc::channel();
        let handle = spawn(move || {
            if let Some((level, cpu)) = level_and_cpu {
                set_fifo(tid(), level);
                pin(cpu);
            }
            send.send(tid()).expect("the test waits");
            body()
        });
        Self { tid: receive.recv().expect("the thread begins"), handle }
    }

    #[allow(dead_code)] // One of the programs that share this file uses it.
    pub fn thread(&self) -> &std::thread::Thread {
        self.handle.thread()
    }

    /// Whether the thread has ended.
    pub fn is_over(&self) -> bool {
        self.handle.is_finished()
    }

    #[track_caller]
    pub fn end(self) -> T {
        self.handle.join().expect("the thread does not panic")
    }
}

/// A barrier that opens once. Waiters poll it, so that opening it never suspends or wakes a thread.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn open(&self) {
        // ORDERING: Release pairs with the Acquire below.
        self.0.store(true, Ordering::Release);
    }

    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    #[track_caller]
    pub fn pass(&self) {
        until("the gate opens", || self.is_open());
    }
}

pub const PROTOCOLS: [MutexProtocol; 3] = [MutexProtocol::None, MutexProtocol::Inherit, MutexProtocol::Protect(60)];
pub const UNLOCKS: [Unlock; 3] = [Unlock::Serial, Unlock::Parallel, Unlock::Auto];

/// All kinds of mutexes.
pub fn kinds() -> Vec<Builder> {
    let mut kinds = Vec::new();
    for bits in 0..3 * 3 * 8 {
        let (protocol, unlock) = (PROTOCOLS[bits % 3], UNLOCKS[bits / 3 % 3]);
        let [robust, shared, checked] = [9, 18, 36].map(|place| bits / place % 2 == 1);
        let kind = Mutex::builder().protocol(protocol).unlock(unlock);
        kinds.push(kind.robustly(robust).shared(shared).check_deadlocks(checked));
    }
    let inherits = Mutex::builder().kernel_owned(true);
    kinds.extend([inherits, inherits.robustly(true), inherits.shared(true)]);
    kinds
}

/// A pseudorandom sequence of numbers.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number, below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Executes for about `time`, preemption included.
pub fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Makes this signal of the operating system interrupt system calls and do nothing else.
pub fn let_interrupt(signal: i32) {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: all zeros is a valid action without SA_RESTART; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Memory shared with child processes.
pub struct Shared<T: 'static>(pub &'static T);

impl<T: Sync> Shared<T> {
    pub fn new(value: T) -> Self {
        // SAFETY: new memory, large enough (at least a page), and written before it is read. It is unmapped when
        // dropped, after the last use by this process; children have their own mappings.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let place = libc::mmap(std::ptr::null_mut(), size_of::<T>(), access, flags, -1, 0).cast::<T>();
            assert_ne!(place.cast(), libc::MAP_FAILED, "memory");
            place.write(value);
            Self(&*place)
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this range, and the last use by this process was before this drop; children have their
        // own mappings.
        unsafe { libc::munmap(std::ptr::from_ref(self.0).cast_mut().cast(), size_of::<T>()) };
    }
}

/// A child process that executes `body` and ends with its result. The child prints nothing.
pub struct Child(pub i32);

impl Child {
    pub fn start(body: impl FnOnce() -> bool) -> Self {
        // SAFETY: the child calls `body` and ends without returning.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: the call takes integers; the child ends with its parent.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
                // SAFETY: the call takes an integer and ends the child at once.
                unsafe { libc::_exit(i32::from(!held)) }
            }
            child => {
                assert!(child > 0, "a child process");
                Self(child)
            }
        }
    }

    pub fn kill(&self) {
        // SAFETY: the call takes integers; the child is not waited for yet, so the id is still its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// Waits for the child's end. Returns whether `body` returned true.
    pub fn end(&self) -> bool {
        self.status() == 0
    }

    /// Waits for the child's end. Returns its status, as `waitpid` does.
    pub fn status(&self) -> i32 {
        let mut status = -1;
        // SAFETY: `status` is valid for writing.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        assert_eq!(waited, self.0, "a child is waited for once");
        status
    }
}
