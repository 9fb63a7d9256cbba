//! `perf_event_open`: the kernel's record of the executing threads, as a ring of context switches.
//!
//! The ring of a CPU records all of its threads. It requires root, CAP_PERFMON, or a `kernel.perf_event_paranoid` below
//! 1. The ring of one thread of the process requires no permission.

use lockwright_sys::SysError;
use lockwright_sys::sched::Tid;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

/// The size of a CPU's ring in bytes: room for about 12,000 switches.
const CPU_RING: usize = 1 << 20;
/// The size of a thread's ring in bytes. For a user other than root, all rings together are limited to half a MiB.
const THREAD_RING: usize = 1 << 15;

/// Types of records, and flags, from `linux/perf_event.h`.
const LOST: u32 = 2;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;
/// The bytes of the header of each record.
const HEADER: usize = 8;
/// The most bytes of one record, with its header.
const RECORD_MAX: usize = 64;

/// A record of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Switch {
    /// The thread executes on the CPU from this time on; thread 0 is the idle thread.
    In { at_ns: u64, cpu: usize, thread: u32 },
    /// The thread has left the CPU. It waits if it was not preempted. `is_last` means that the next thread is not
    /// recorded.
    Out { at_ns: u64, cpu: usize, thread: u32, waits: bool, is_last: bool },
    /// Records did not fit into the ring.
    Lost,
}

/// The context switches of a CPU or of a thread since the ring was opened.
pub struct Ring {
    sampler: Sampler,
    bytes: usize,
}

impl Ring {
    /// Opens a ring for all threads on this CPU, given by its Linux number.
    pub(crate) fn of_cpu(cpu: usize) -> Result<Self, SysError> {
        Self::open(builder().any_pid().one_cpu(cpu).include_kernel(), CPU_RING)
    }

    /// Opens a ring for this thread, on any CPU.
    pub fn of_thread(thread: Tid) -> Result<Self, SysError> {
        // Thread ids are positive numbers of 22 bits.
        Self::open(builder().observe_pid(thread.0.cast_signed()).any_cpu(), THREAD_RING)
    }

    fn open(builder: &Builder<'_>, bytes: usize) -> Result<Self, SysError> {
        let failed = |error: std::io::Error| SysError {
            call: "perf_event_open",
            errno: error.raw_os_error().unwrap_or(libc::EOPNOTSUPP),
        };
        builder
            .build()
            .and_then(|counter| counter.sampled(bytes))
            .map(|sampler| Self { sampler, bytes })
            .map_err(failed)
    }

    /// Removes all records from the ring, in order. A full ring is reported as [`Switch::Lost`]: the kernel reports
    /// lost records only with the next record, and there may be none.
    ///
    /// BOUND: the records in the ring, plus those that arrive meanwhile. A switch takes longer than reading its record.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Switch)) {
        let mut read = 0;
        while let Some(record) = self.sampler.next_record() {
            read += HEADER + record.len();
            let switch = match record.ty() {
                LOST => Some(Switch::Lost),
                SWITCH | SWITCH_CPU_WIDE => parse(&record.to_contiguous(), record.misc(), record.ty()),
                _ => None,
            };
            if let Some(switch) = switch {
                each(switch);
            }
        }
        if read + RECORD_MAX >= self.bytes {
            each(Switch::Lost);
        }
    }
}

fn builder() -> Builder<'static> {
    let mut builder = Builder::new(Software::DUMMY);
    builder.enabled(true).context_switch(true).clockid(Clock::MONOTONIC);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU).sample_id_all(true);
    builder
}

/// Parses a record. Each ends with its thread, time and CPU: `u32 pid, tid; u64 time; u32 cpu, reserved`.
fn parse(data: &[u8], flags: u16, kind: u32) -> Option<Switch> {
    const TAIL: usize = 24;
    let tail = &data[data.len().checked_sub(TAIL)?..];
    let word = |at: usize| Some(u32::from_ne_bytes(tail.get(at..at + 4)?.try_into().ok()?));
    let at_ns = u64::from_ne_bytes(tail.get(8..16)?.try_into().ok()?);
    let (thread, cpu) = (word(4)?, word(16)? as usize);
    match (flags & IS_OUT != 0, kind) {
        (false, _) => Some(Switch::In { at_ns, cpu, thread }),
        (true, _) => {
            let waits = flags & IS_PREEMPTED == 0;
            Some(Switch::Out { at_ns, cpu, thread, waits, is_last: kind == SWITCH })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_sys::{clock, sched};

    /// How often the calling thread was switched to and from while it slept twice.
    fn sleeps(ring: &mut Ring, own: Tid) -> (usize, usize) {
        let from = clock::now_ns();
        for _ in 0..2 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let until = clock::now_ns();
        let (mut ins, mut outs) = (0, 0);
        ring.drain(|switch| {
            let at = match switch {
                Switch::In { at_ns, .. } | Switch::Out { at_ns, .. } => at_ns,
                Switch::Lost => panic!("the ring lost records"),
            };
            if !(from..until).contains(&at) {
                return;
            }
            ins += usize::from(matches!(switch, Switch::In { thread, .. } if thread == own.0));
            outs += usize::from(matches!(switch, Switch::Out { thread, waits: true, .. } if thread == own.0));
        });
        (ins, outs)
    }

    #[test]
    fn a_thread_records_its_sleeps_without_permission() {
        let me = sched::gettid();
        let mut ring = match Ring::of_thread(me) {
            Ok(ring) => ring,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let (ins, outs) = sleeps(&mut ring, me);
        assert!(ins >= 2 && outs >= 2, "{ins} {outs}");
    }

    #[test]
    fn a_cpu_records_all_its_threads() {
        let me = sched::gettid();
        let allowed = sched::affinity().expect("a set of CPUs");
        sched::set_affinity(me, &allowed[..1]).expect("an allowed CPU");
        let ring = Ring::of_cpu(allowed[0]);
        let seen = ring.map(|mut ring| sleeps(&mut ring, me));
        sched::set_affinity(me, &allowed).expect("the original CPUs");
        match seen {
            Ok((ins, outs)) => assert!(ins >= 2 && outs >= 2, "{ins} {outs}"),
            Err(error) if error.is_permission() => eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_short_record_is_not_parsed() {
        assert_eq!(parse(&[0; 23], 0, SWITCH), None);
        let mut data = [0; 24];
        (data[4], data[8], data[16]) = (7, 9, 1);
        assert_eq!(parse(&data, 0, SWITCH), Some(Switch::In { at_ns: 9, cpu: 1, thread: 7 }));
        let out = |waits, is_last| Some(Switch::Out { at_ns: 9, cpu: 1, thread: 7, waits, is_last });
        assert_eq!(parse(&data, IS_OUT, SWITCH), out(true, true));
        assert_eq!(parse(&data, IS_OUT | IS_PREEMPTED, SWITCH_CPU_WIDE), out(false, false));
    }
}
