//! Scheduling of threads: their id, policy, priority and processors.
//!
//! All functions take thread ids and make system calls directly: the C library's functions of the same names refer to
//! processes in some libraries, and do nothing in others.

use crate::error::{KeepErrno, SysError};
use crate::{block, fork};
use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::Write as _;

/// A thread, by the kernel's id.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tid(pub u32);

thread_local! {
    static TID: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread, for system calls that take a thread id. Also valid in a child process.
pub const ME: Tid = Tid(0);

/// The id of the calling thread. Read from the C library's record of the thread; without that, from a thread-local word
/// after one system call in each thread.
#[inline]
pub fn gettid() -> Tid {
    match block::block() {
        Some(block) => Tid(block.tid()),
        None => remembered(),
    }
}

fn remembered() -> Tid {
    match TID.get() {
        0 => ask(),
        tid => Tid(tid),
    }
}

#[cold]
fn ask() -> Tid {
    extern "C" fn forget() {
        TID.set(0);
    }
    fork::in_child(forget);
    // SAFETY: the call has no arguments and cannot fail.
    TID.set(unsafe { libc::syscall(libc::SYS_gettid) } as u32);
    block::find(TID.get());
    Tid(TID.get())
}

/// Whether a thread of this process has this id. A thread that has just ended may still count.
pub fn is_ours(tid: Tid) -> bool {
    let process = process();
    // The kernel knows the main thread until all others have ended.
    is_thread_of(process, tid) && !(process as u32 == tid.0 && is_zombie(tid))
}

/// Whether a thread of another process has this id.
pub fn is_foreign(tid: Tid) -> bool {
    if is_thread_of(process(), tid) {
        return false;
    }
    // SAFETY: signal 0 is not sent; the kernel only checks whether it could be.
    let is_known = unsafe { libc::syscall(libc::SYS_tkill, tid.0, 0) == 0 };
    // The process may be another user's.
    is_known || SysError::last("tkill").errno == libc::EPERM
}

fn process() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::getpid() }
}

/// Whether the kernel knows a thread of this process with this id.
fn is_thread_of(process: libc::pid_t, tid: Tid) -> bool {
    // SAFETY: signal 0 is not sent; the kernel only checks whether it could be.
    unsafe { libc::syscall(libc::SYS_tgkill, process, tid.0, 0) == 0 }
}

/// Whether the kernel has no more than the id of the thread.
#[cold]
fn is_zombie(tid: Tid) -> bool {
    // `71 (name) Z ...`, where the name may contain anything, and has up to 15 bytes here.
    let mut text = [0; 64];
    let length = read_file(tid, "stat", &mut text);
    let name_ends = text[..length].iter().rposition(|&byte| byte == b')');
    name_ends.is_some_and(|at| text.get(at + 2) == Some(&b'Z'))
}

/// Reads the beginning of a file about a thread of this process. Returns how many bytes there are, 0 if the thread has
/// ended. Makes three system calls, and allocates nothing.
fn read_file(tid: Tid, name: &str, to: &mut [u8]) -> usize {
    let _errno = KeepErrno::now();
    let mut path = [0_u8; 48];
    let mut rest = &mut path[..];
    // The longest path leaves a zero at the end.
    if write!(rest, "/proc/self/task/{}/{name}", tid.0).is_err() || rest.is_empty() {
        return 0;
    }
    // SAFETY: the path ends with a zero, and the kernel writes at most as many bytes as `to` has.
    unsafe {
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let length = libc::syscall(libc::SYS_read, file, to.as_mut_ptr(), to.len());
        libc::syscall(libc::SYS_close, file);
        usize::try_from(length).unwrap_or(0)
    }
}

/// The name of a thread, as the kernel has it: up to 15 bytes, padded with zeros.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ThreadName(pub [u8; 16]);

impl ThreadName {
    /// Reads the name of the calling thread, by one system call that does not wait.
    #[must_use]
    pub fn own() -> Self {
        let _errno = KeepErrno::now();
        let mut name = [0; 16];
        // SAFETY: the kernel writes 16 bytes, as many as the array has.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        // What follows the final zero is of no meaning.
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        name[length..].fill(0);
        Self(name)
    }

    /// Reads the name of a thread of this process; an empty one if the thread has ended. Makes three system calls, and
    /// allocates nothing.
    #[must_use]
    pub fn of(tid: Tid) -> Self {
        let mut name = [0; 16];
        let length = read_file(tid, "comm", &mut name);
        // The kernel ends the name with a line break.
        name[length.saturating_sub(1)..].fill(0);
        Self(name)
    }
}

impl fmt::Display for ThreadName {
    /// Shows `?` for bytes that are not printable ASCII.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.iter().take_while(|&&byte| byte != 0) {
            f.write_char(if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '?' })?;
        }
        Ok(())
    }
}

/// A system call that does nothing.
#[inline]
pub fn null_call() {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Lets another thread of the same level execute, if one is ready.
#[inline]
pub fn yield_now() {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// Puts a thread under SCHED_FIFO.
///
/// # Errors
/// EPERM without the permission for this level; EINVAL for a level that is not one of 1 to 99; ESRCH if the thread has
/// ended.
#[inline]
pub fn set_fifo(tid: Tid, level: u8) -> Result<(), SysError> {
    set_scheduler(tid, libc::SCHED_FIFO, level)
}

/// Puts a thread under SCHED_DEADLINE: `runtime_ns` of execution in each `period_ns`, which is also its relative
/// deadline.
///
/// # Errors
/// EPERM without CAP_SYS_NICE, and if the thread may not execute on all processors of its root domain; EBUSY if the
/// kernel does not admit the utilization; EINVAL if the runtime exceeds the period, or the period is outside the
/// kernel's limits; ESRCH if the thread has ended.
pub fn set_deadline(tid: Tid, runtime_ns: u64, period_ns: u64) -> Result<(), SysError> {
    // SAFETY: all zeros are a value of this struct of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_DEADLINE as u32;
    attributes.sched_runtime = runtime_ns;
    attributes.sched_deadline = period_ns;
    attributes.sched_period = period_ns;
    // SAFETY: `attributes` is valid for reading, and has its size in it. The kernel may write that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid.0, &raw mut attributes, 0) };
    if result == 0 { Ok(()) } else { Err(SysError::last("sched_setattr")) }
}

/// Takes a thread from SCHED_DEADLINE to the ordinary policy, and gives its reservation back at once. The kernel would
/// keep it until the deadline, so this first reduces it to almost nothing.
///
/// Linux 6.18 takes a reservation that it keeps back twice if the scheduling domains are built again meanwhile; then it
/// refuses SCHED_DEADLINE to all programs. Reading `/proc/sys/kernel/sched_rt_runtime_us` builds them again.
///
/// BOUND: if the thread has used up what it could execute, 4.2 s: then it gets enough for both calls.
///
/// # Errors
/// Those of [`set_other`]. If the kernel refuses the smaller reservation, it keeps the old one until the deadline.
pub fn leave_deadline(tid: Tid) -> Result<(), SysError> {
    /// Enough for the second call, and 0.0024 % of a CPU.
    const RUNTIME_NS: u64 = 100_000;
    /// The longest period by default.
    const PERIOD_NS: u64 = 4_194_304_000;
    let _ = set_deadline(tid, RUNTIME_NS, PERIOD_NS);
    set_other(tid)
}

/// Where the kernel shows its account of reservations to root.
pub const ACCOUNT: &str = "/sys/kernel/debug/sched/debug";

/// The sums of the reservations under SCHED_DEADLINE in the text of [`ACCOUNT`], in units of 1 / 2^20 of a CPU: for
/// each CPU, its number and the sum of its scheduling domain.
#[must_use]
pub fn reservations(account: &str) -> Vec<(usize, i64)> {
    let mut cpu = None;
    let mut sums = Vec::new();
    // Such as `dl_rq[0]:`, and below it `  .dl_bw->total_bw               : 104856`.
    for line in account.lines() {
        if let Some(number) = line.strip_prefix("dl_rq[").and_then(|rest| rest.strip_suffix("]:")) {
            cpu = number.parse().ok();
        } else if let Some((name, sum)) = line.split_once(':')
            && name.contains("total_bw")
        {
            sums.extend(cpu.zip(sum.trim().parse().ok()));
        }
    }
    sums
}

/// The sum of the reservations under SCHED_DEADLINE by the kernel's account, in units of 1 / 2^20 of a CPU. With
/// several scheduling domains, this is the least sum. `None` if the kernel does not show it to this process.
#[must_use]
pub fn reserved() -> Option<i64> {
    let shown = std::fs::read_to_string(ACCOUNT).ok()?;
    reservations(&shown).into_iter().map(|(_, sum)| sum).min()
}

/// Makes the kernel count all reservations under SCHED_DEADLINE again, if its account is visibly wrong: the sum is
/// negative.
pub fn recount_deadlines() {
    if reserved().is_some_and(|sum| sum < 0) {
        // Reading it builds the scheduling domains again. Its contents do not matter.
        let _ = std::fs::read("/proc/sys/kernel/sched_rt_runtime_us");
    }
}

/// Whether this process may put a thread under SCHED_FIFO at this level. Tries it on a new thread.
///
/// # Errors
/// The kernel's error if it refuses, or if no thread can be started.
pub fn try_fifo(level: u8) -> Result<(), SysError> {
    try_out(move || set_fifo(gettid(), level))
}

/// Whether this process may put a thread under SCHED_DEADLINE. Tries it on a new thread, with a small part of a CPU.
///
/// # Errors
/// The kernel's error if it refuses, or if no thread can be started.
pub fn try_deadline() -> Result<(), SysError> {
    try_out(|| {
        set_deadline(gettid(), 100_000, 100_000_000)?;
        leave_deadline(gettid())
    })
}

fn try_out(call: impl FnOnce() -> Result<(), SysError> + Send + 'static) -> Result<(), SysError> {
    let thread = std::thread::Builder::new()
        .spawn(call)
        .map_err(|error| SysError { call: "starting a thread", errno: error.raw_os_error().unwrap_or(libc::EAGAIN) })?;
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Puts a thread under the ordinary policy, SCHED_OTHER.
///
/// # Errors
/// ESRCH if the thread has ended; EPERM if it belongs to another user.
#[inline]
pub fn set_other(tid: Tid) -> Result<(), SysError> {
    set_scheduler(tid, libc::SCHED_OTHER, 0)
}

#[inline]
fn set_scheduler(tid: Tid, policy: i32, level: u8) -> Result<(), SysError> {
    let param = libc::sched_param { sched_priority: i32::from(level) };
    // SAFETY: `param` is valid for reading.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid.0, policy, &raw const param) };
    if result == 0 { Ok(()) } else { Err(SysError::last("sched_setscheduler")) }
}

/// Changes the level of a thread that is under SCHED_FIFO.
///
/// # Errors
/// EINVAL if the thread has been put under the ordinary policy meanwhile. The call then changes nothing, so it cannot
/// promote a demoted thread. Otherwise those of [`set_fifo`].
#[inline]
pub fn set_level(tid: Tid, level: u8) -> Result<(), SysError> {
    let param = libc::sched_param { sched_priority: i32::from(level) };
    // SAFETY: `param` is valid for reading.
    let result = unsafe { libc::syscall(libc::SYS_sched_setparam, tid.0, &raw const param) };
    if result == 0 { Ok(()) } else { Err(SysError::last("sched_setparam")) }
}

/// The scheduling policy and level of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scheduling {
    /// The policy; SCHED_RESET_ON_FORK is included if it is set.
    policy: i32,
    /// The real-time level; 0 for other policies.
    pub level: u8,
}

impl Scheduling {
    /// SCHED_FIFO, with the flags of `self`.
    #[inline]
    pub fn fifo(self, level: u8) -> Self {
        Self { policy: libc::SCHED_FIFO | (self.policy & libc::SCHED_RESET_ON_FORK), level }
    }

    /// Another policy and level, with the flags of `self`.
    #[inline]
    pub fn under(self, policy: i32, level: u8) -> Self {
        Self { policy: policy | (self.policy & libc::SCHED_RESET_ON_FORK), level }
    }

    /// The same policy at another level.
    #[inline]
    pub fn at(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// The policy without flags.
    #[inline]
    pub fn policy(self) -> i32 {
        self.policy & !libc::SCHED_RESET_ON_FORK
    }

    /// Whether the policy has levels: SCHED_FIFO and SCHED_RR.
    #[inline]
    pub fn has_level(self) -> bool {
        matches!(self.policy(), libc::SCHED_FIFO | libc::SCHED_RR)
    }

    /// Whether the policy is SCHED_DEADLINE, whose parameters a level does not describe.
    #[inline]
    pub fn is_deadline(self) -> bool {
        self.policy() == libc::SCHED_DEADLINE
    }
}

/// How the kernel schedules a thread, without inherited priorities.
///
/// # Errors
/// ESRCH if the thread has ended.
#[inline]
pub fn scheduling(tid: Tid) -> Result<Scheduling, SysError> {
    let mut attributes = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: `attributes` is valid for writing, and its size is given.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, tid.0, attributes.as_mut_ptr(), size, 0) } < 0 {
        return scheduling_separately(tid);
    }
    // SAFETY: all zeros are a value, and the kernel wrote only integers.
    let attributes = unsafe { attributes.assume_init() };
    let resets = attributes.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0;
    let flag = if resets { libc::SCHED_RESET_ON_FORK } else { 0 };
    // The kernel's policies are small numbers, and its levels are 0 to 99.
    Ok(Scheduling { policy: attributes.sched_policy as i32 | flag, level: attributes.sched_priority as u8 })
}

/// As [`scheduling`], by one system call for threads without a level, and two for others. Sandboxes permit these calls;
/// that of Chromium ends the process at the newer one.
///
/// # Errors
/// ESRCH if the thread has ended.
pub fn scheduling_separately(tid: Tid) -> Result<Scheduling, SysError> {
    // SAFETY: the call takes an integer.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid.0) };
    if policy < 0 {
        return Err(SysError::last("sched_getscheduler"));
    }
    let without_level = Scheduling { policy: policy as i32, level: 0 };
    if !without_level.has_level() {
        return Ok(without_level);
    }
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid for writing.
    if unsafe { libc::syscall(libc::SYS_sched_getparam, tid.0, &raw mut param) } < 0 {
        return Err(SysError::last("sched_getparam"));
    }
    Ok(without_level.at(param.sched_priority as u8))
}

/// Schedules a thread as `scheduling` describes.
///
/// # Errors
/// Those of [`set_fifo`].
#[inline]
pub fn set_scheduling(tid: Tid, scheduling: Scheduling) -> Result<(), SysError> {
    set_scheduler(tid, scheduling.policy, scheduling.level)
}

/// Binds a thread to processors, given by their Linux numbers.
///
/// # Errors
/// EINVAL if the thread may use none of them; ESRCH if the thread has ended; EPERM if it belongs to another user.
pub fn set_affinity(tid: Tid, cpus: &[usize]) -> Result<(), SysError> {
    // SAFETY: all zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: `cpu` is less than the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is valid for reading and its size is given.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid.0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 { Ok(()) } else { Err(SysError::last("sched_setaffinity")) }
}

/// The processors that the calling thread may use, as Linux numbers in ascending order.
///
/// # Errors
/// EINVAL if the kernel supports more processors than the set holds.
pub fn affinity() -> Result<Vec<usize>, SysError> {
    // SAFETY: all zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing and its size is given.
    let result = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result < 0 {
        return Err(SysError::last("sched_getaffinity"));
    }
    // SAFETY: every `cpu` is less than the size of the set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Reads a list of processors as the kernel writes it, such as `0-3,8`. Returns `None` if it is none.
pub fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cpus)
}

/// The processors that the kernel keeps apart (`isolcpus`). It moves no thread by itself between these and the others.
pub fn isolated() -> Vec<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/isolated").ok();
    list.and_then(|list| parse_cpus(&list)).unwrap_or_default()
}

/// The Linux number of the processor on which the caller executes. It may change at any time.
#[inline]
pub fn current_cpu() -> Option<usize> {
    // SAFETY: the call has no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Sets the calling thread's timer slack to 1 ns. Recent kernels do so for real-time threads by themselves.
pub fn exact_timers() {
    // SAFETY: the call takes two integers. A refusal leaves the default slack of 50 us, so timers are late but still
    // work.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpus("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpus("\n"), Some(vec![]));
        assert_eq!(parse_cpus("0-x"), None);
        // Older kernels write this where no processor is isolated.
        assert_eq!(parse_cpus("(null)\n"), None);
    }

    #[test]
    fn both_ways_to_read_the_scheduling_agree() {
        let read = || {
            let both = (scheduling(ME), scheduling_separately(ME));
            assert_eq!(both.0, both.1);
            both.0.expect("the caller exists")
        };
        let thread = std::thread::spawn(move || {
            assert!(!read().has_level());
            // Without permission, the ordinary policy is the only one.
            for policy in [libc::SCHED_FIFO, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, libc::SCHED_OTHER] {
                let level = if policy == libc::SCHED_OTHER { 0 } else { 7 };
                let wanted = Scheduling { policy, level };
                if set_scheduling(ME, wanted).is_ok() {
                    assert_eq!(read(), wanted);
                }
            }
        });
        thread.join().expect("the thread does not panic");
        let nobody = Tid(i32::MAX as u32);
        assert_eq!(scheduling(nobody), scheduling_separately(nobody));
        assert_eq!(scheduling(nobody).err().map(|error| error.errno), Some(libc::ESRCH));
    }
}
