//! The scheduling of a thread, as the kernel reports it.

use crate::ring::Ring;
use libc::{cpu_set_t, pid_t};
use lockwright_record::file::format::event;

/// The scheduling of a thread, as the kernel reports it: `struct sched_attr` in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Records the policy of a thread.
pub(crate) fn put_policy(ring: &Ring, id: u32) {
    let mut known = Attributes::default();
    let (size, flags) = (size_of::<Attributes>(), 0);
    // SAFETY: `known` has the size that the call gets, and is valid for writing.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut known, size, flags) } != 0 {
        return;
    }
    let id = u64::from(id);
    if known.policy == libc::SCHED_DEADLINE as u32 {
        ring.put(event::DEADLINE, [id, known.runtime, known.deadline, known.period]);
        return;
    }
    let is_fixed = known.policy == libc::SCHED_FIFO as u32 || known.policy == libc::SCHED_RR as u32;
    // Nice values have 8 bits as well.
    let value = if is_fixed { known.priority as u8 } else { known.nice as u8 };
    ring.put(event::SCHEDULING, [id | u64::from(known.policy as u8) << 32 | u64::from(value) << 40]);
}

/// Records the CPUs of a thread, the first 64 of them.
pub(crate) fn put_cpus(ring: &Ring, id: u32) {
    // SAFETY: all bits zero are an empty set.
    let mut cpus: cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpus` has the size that the call gets, and is valid for writing.
    if unsafe { libc::sched_getaffinity(id as pid_t, size_of::<cpu_set_t>(), &raw mut cpus) } == 0 {
        // SAFETY: `cpus` is initialised, and has more than 64 bits.
        let mask = (0..64).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &cpus) }).fold(0, |mask, cpu| mask | 1 << cpu);
        ring.put(event::AFFINITY, [u64::from(id), mask]);
    }
}
