//! `perf_event_open`: the kernel's record of who executes, as a ring of context switches.
//!
//! A ring of a CPU has all its threads, and needs a right: root, CAP_PERFMON, or a `kernel.perf_event_paranoid` below 1. A
//! ring of one thread of the own process needs none.

use lockwright_sys::SysError;
use lockwright_sys::sched::Tid;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

/// Bytes of the ring of a CPU: some 12,000 switches.
const CPU_RING: usize = 1 << 20;
/// Bytes of the ring of a thread. All rings of a user together may have half a MiB, if he is not root.
const THREAD_RING: usize = 1 << 15;

/// Types of records and a flag, as `linux/perf_event.h` has them.
const LOST: u32 = 2;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
const IS_OUT: u16 = 1 << 13;
/// Bytes before each record, and most of a record with them.
const HEADER: usize = 8;
const RECORD_MAX: usize = 64;

/// What a ring said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Switch {
    /// The thread has the CPU from now on; the idle thread is 0.
    In { at_ns: u64, cpu: usize, thread: u32 },
    /// The thread has left the CPU, and the ring does not know for whom.
    Out { at_ns: u64, cpu: usize },
    /// Records did not fit into the ring.
    Lost,
}

/// The switches of a CPU or of a thread, from when it was opened.
pub struct Ring {
    sampler: Sampler,
    bytes: usize,
}

impl Ring {
    /// Of all threads on this CPU, by its Linux number.
    pub(crate) fn of_cpu(cpu: usize) -> Result<Self, SysError> {
        Self::open(builder().any_pid().one_cpu(cpu).include_kernel(), CPU_RING)
    }

    /// Of this thread, wherever it executes.
    pub fn of_thread(thread: Tid) -> Result<Self, SysError> {
        // Ids of threads are positive numbers of 22 bits.
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

    /// Takes everything out of the ring, in order. A ring that was full counts as one that lost records: the kernel says so
    /// with the next one only, and there may be none.
    ///
    /// BOUND: the records that are there, and those that come meanwhile: a switch takes longer than reading one.
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

/// Each record ends with who it is of, when it was written, and where: `u32 pid, tid; u64 time; u32 cpu, reserved`.
fn parse(data: &[u8], flags: u16, kind: u32) -> Option<Switch> {
    const TAIL: usize = 24;
    let tail = &data[data.len().checked_sub(TAIL)?..];
    let word = |at: usize| Some(u32::from_ne_bytes(tail.get(at..at + 4)?.try_into().ok()?));
    let at_ns = u64::from_ne_bytes(tail.get(8..16)?.try_into().ok()?);
    let (thread, cpu) = (word(4)?, word(16)? as usize);
    match (flags & IS_OUT != 0, kind) {
        (false, _) => Some(Switch::In { at_ns, cpu, thread }),
        (true, SWITCH) => Some(Switch::Out { at_ns, cpu }),
        // Who comes after it is told by the next record.
        (true, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_sys::{clock, sched};

    /// When the calling thread went onto a CPU and left it, while it slept twice.
    fn sleeps(ring: &mut Ring, own: Tid) -> (usize, usize) {
        let from = clock::now_ns();
        for _ in 0..2 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let until = clock::now_ns();
        let (mut ins, mut outs, mut is_own) = (0, 0, false);
        ring.drain(|switch| {
            let at = match switch {
                Switch::In { at_ns, .. } | Switch::Out { at_ns, .. } => at_ns,
                Switch::Lost => panic!("the ring is large enough"),
            };
            if !(from..until).contains(&at) {
                return;
            }
            let now_own = matches!(switch, Switch::In { thread, .. } if thread == own.0);
            ins += usize::from(now_own);
            outs += usize::from(!now_own && is_own);
            is_own = now_own || is_own && ins == 0;
        });
        (ins, outs)
    }

    #[test]
    fn a_thread_sees_its_own_sleeps_without_any_right() {
        let me = sched::gettid();
        let mut ring = match Ring::of_thread(me) {
            Ok(ring) => ring,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let (ins, outs) = sleeps(&mut ring, me);
        assert!(ins >= 2 && outs >= 1, "{ins} {outs}");
    }

    #[test]
    fn a_cpu_sees_all_threads() {
        let me = sched::gettid();
        let allowed = sched::affinity().expect("a set of CPUs");
        sched::set_affinity(me, &allowed[..1]).expect("a CPU of it");
        let ring = Ring::of_cpu(allowed[0]);
        let seen = ring.map(|mut ring| sleeps(&mut ring, me));
        sched::set_affinity(me, &allowed).expect("as before");
        match seen {
            Ok((ins, outs)) => assert!(ins >= 2 && outs >= 1, "{ins} {outs}"),
            Err(error) if error.is_permission() => eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_too_short_is_no_record() {
        assert_eq!(parse(&[0; 23], 0, SWITCH), None);
        let mut data = [0; 24];
        (data[4], data[8], data[16]) = (7, 9, 1);
        assert_eq!(parse(&data, 0, SWITCH), Some(Switch::In { at_ns: 9, cpu: 1, thread: 7 }));
        assert_eq!(parse(&data, IS_OUT, SWITCH), Some(Switch::Out { at_ns: 9, cpu: 1 }));
        assert_eq!(parse(&data, IS_OUT, SWITCH_CPU_WIDE), None);
    }
}
