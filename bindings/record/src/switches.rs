//! The kernel's records of context switches, one ring for each CPU.
//!
//! The first thread opens the rings before it creates others, which inherit them. This requires no privileges where
//! `kernel.perf_event_paranoid` is 2 or less.

use libc::c_int;
use lockwright_record::file::format::switch;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::os::fd::AsRawFd;

/// Types of records, and flags, from `linux/perf_event.h`.
const LOST: u32 = 2;
const SWITCH: u32 = 14;
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;

/// The size of a CPU's ring in bytes: room for 8,000 switches. For a user other than root, the rings of each CPU are
/// limited to half a MiB.
const RING: usize = 1 << 18;
/// The least size.
const RING_MIN: usize = 1 << 14;

/// The rings of all CPUs.
pub(crate) struct Switches {
    rings: Vec<Sampler>,
}

impl Switches {
    /// Opens the rings for the calling thread and those that it will create. Returns `None` if the kernel refuses.
    pub(crate) fn open() -> Option<Self> {
        // SAFETY: the call takes a number and cannot fail.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let mut rings = Vec::new();
        for cpu in 0..usize::try_from(cpus).ok()? {
            let mut size = RING;
            let ring = loop {
                match ring_of(cpu, size) {
                    // The limit of locked memory.
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) && size > RING_MIN => size /= 2,
                    ring => break ring,
                }
            };
            match ring {
                Ok(ring) => rings.push(ring),
                // A CPU that is switched off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(_) => return None,
            }
        }
        Some(Self { rings })
    }

    /// The descriptors of the rings.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = c_int> {
        self.rings.iter().map(|ring| ring.as_counter().as_raw_fd())
    }

    /// Removes all records, and calls `each` with each switch in the form of the file. Returns how many were lost.
    ///
    /// BOUND: the records in the rings, plus those that arrive meanwhile. A switch takes longer than reading it.
    pub(crate) fn take(&mut self, mut each: impl FnMut([u64; 2])) -> u64 {
        let mut lost = 0;
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let mut room = [0; RECORD_MAX];
                let data = whole(record.data(), &mut room);
                match record.ty() {
                    LOST => lost += double(data, 8).unwrap_or_default(),
                    SWITCH => {
                        if let Some(switch) = parse(data, record.misc()) {
                            each(switch);
                        }
                    }
                    _ => {}
                }
            }
        }
        lost
    }
}

/// The longest record of a ring.
pub(crate) const RECORD_MAX: usize = 256;

/// A record in one piece. At the end of a ring it has two, which are copied, because the program's allocator may lock.
pub(crate) fn whole<'a>(pieces: &[&'a [u8]], room: &'a mut [u8; RECORD_MAX]) -> &'a [u8] {
    if let [one] = pieces {
        return one;
    }
    let mut length = 0;
    for piece in pieces {
        let copied = piece.len().min(room.len() - length);
        room[length..length + copied].copy_from_slice(&piece[..copied]);
        length += copied;
    }
    &room[..length]
}

fn ring_of(cpu: usize, bytes: usize) -> std::io::Result<Sampler> {
    let mut builder = Builder::new(Software::DUMMY);
    builder.observe_self().one_cpu(cpu).inherit(true).inherit_thread(true).remove_on_exec(true);
    builder.enabled(true).context_switch(true).clockid(Clock::MONOTONIC);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU).sample_id_all(true);
    builder.build()?.sampled(bytes)
}

fn double(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// Parses a record, which ends with its thread, time and CPU: `u32 pid, tid; u64 time; u32 cpu, reserved`.
fn parse(data: &[u8], flags: u16) -> Option<[u64; 2]> {
    const TAIL: usize = 24;
    let tail = &data[data.len().checked_sub(TAIL)?..];
    let (thread, cpu) = (double(tail, 0)? >> 32, double(tail, 16)? & 0xFF_FFFF);
    let kind = match (flags & IS_OUT != 0, flags & IS_PREEMPTED != 0) {
        (false, _) => switch::IN,
        (true, false) => switch::SUSPENDED,
        (true, true) => switch::PREEMPTED,
    };
    Some([double(tail, 8)?, thread | cpu << switch::CPU_SHIFT | u64::from(kind) << switch::KIND_SHIFT])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_at_the_end_of_a_ring_is_put_together() {
        let bytes: Vec<u8> = (0..40).collect();
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(whole(&[first, second], &mut [0; RECORD_MAX]), bytes);
        }
        assert_eq!(whole(&[&bytes], &mut [0; RECORD_MAX]), bytes);
        let long = [7; 200];
        assert_eq!(whole(&[&long, &long], &mut [0; RECORD_MAX]), [7; RECORD_MAX], "what is too long is cut");
    }
}
