//! Wake-ups and inherited priorities, as the kernel traces them. The kernel permits this to root only (`CAP_PERFMON` or
//! `CAP_SYS_ADMIN`, and the files of tracefs); elsewhere nothing of it is recorded.

use crate::switches::{RECORD_MAX, whole};
use libc::c_int;
use lockwright_record::file::format::switch;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::os::fd::AsRawFd;

/// Types of records, from `linux/perf_event.h`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// The size of a CPU's ring in bytes, for each of the two events.
const RING: usize = 1 << 18;
/// The bytes of a sample before the event: `u32 pid, tid; u64 time; u32 cpu, reserved; u32 size`.
const HEAD: usize = 28;
/// The number of the kernel for the priority 0 of SCHED_FIFO; greater ones are less urgent.
const PRIORITY_0: i32 = 99;

/// What is traced.
#[derive(Clone, Copy)]
enum Event {
    /// Where the thread stands that is woken.
    Waking { thread: usize },
    /// Where the thread and its new priority stand.
    Priority { thread: usize, priority: usize },
}

/// The rings of all CPUs.
pub(crate) struct Traced {
    rings: Vec<(Event, Sampler)>,
}

impl Traced {
    /// Opens the rings. Returns `None` if the kernel refuses.
    pub(crate) fn open() -> Option<Self> {
        let (waking, format) = tracepoint("sched_waking")?;
        let waking = (waking, Event::Waking { thread: offset(&format, "pid")? });
        let (priority, format) = tracepoint("sched_pi_setprio")?;
        let event = Event::Priority { thread: offset(&format, "pid")?, priority: offset(&format, "newprio")? };
        let priority = (priority, event);
        // SAFETY: the call takes a number and cannot fail.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let mut rings = Vec::new();
        for cpu in 0..usize::try_from(cpus).ok()? {
            for (id, event) in [waking, priority] {
                match ring_of(cpu, id) {
                    Ok(ring) => rings.push((event, ring)),
                    // A CPU that is switched off.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                    Err(_) => return None,
                }
            }
        }
        Some(Self { rings })
    }

    /// The descriptors of the rings.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = c_int> {
        self.rings.iter().map(|(_, ring)| ring.as_counter().as_raw_fd())
    }

    /// Removes all records, and calls `each` with those of the program's threads, in the form of switches. `own` has
    /// the numbers of these threads in ascending order. Returns how many were lost.
    ///
    /// BOUND: the records in the rings, plus those that arrive meanwhile.
    pub(crate) fn take(&mut self, own: &[u32], mut each: impl FnMut([u64; 2])) -> u64 {
        let mut lost = 0;
        for (event, ring) in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let mut room = [0; RECORD_MAX];
                let data = whole(record.data(), &mut room);
                match record.ty() {
                    LOST => lost += number(data, 8).unwrap_or_default(),
                    SAMPLE => {
                        if let Some(found) = parse(data, *event, own) {
                            each(found);
                        }
                    }
                    _ => {}
                }
            }
        }
        lost
    }
}

/// The number of a tracepoint of the scheduler, and the description of its fields.
fn tracepoint(name: &str) -> Option<(u64, String)> {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().find_map(|folder| {
        let read = |file: &str| std::fs::read_to_string(format!("{folder}/events/sched/{name}/{file}")).ok();
        Some((read("id")?.trim().parse().ok()?, read("format")?))
    })
}

/// Where a field begins: `field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;`.
fn offset(format: &str, name: &str) -> Option<usize> {
    let field =
        format.lines().find(|line| line.split(';').next().is_some_and(|field| field.ends_with(&format!(" {name}"))));
    let rest = field?.split("offset:").nth(1)?;
    rest.split(';').next()?.parse().ok()
}

fn ring_of(cpu: usize, id: u64) -> std::io::Result<Sampler> {
    let mut builder = Builder::new(Tracepoint::with_id(id));
    builder.any_pid().one_cpu(cpu).sample_period(1).exclude_kernel(false).exclude_hv(false);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::RAW);
    builder.enabled(true).clockid(Clock::MONOTONIC);
    builder.build()?.sampled(RING)
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn number(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes(data, at)?))
}

fn parse(data: &[u8], event: Event, own: &[u32]) -> Option<[u64; 2]> {
    let (thread, value, kind) = match event {
        Event::Waking { thread } => {
            let waker = u32::from_ne_bytes(bytes(data, 4)?);
            // A timer wakes in the name of whichever thread it interrupted.
            let waker = own.binary_search(&waker).map_or(0, |_| waker);
            (thread, waker, switch::WAKEUP)
        }
        Event::Priority { thread, priority } => {
            let level = PRIORITY_0 - i32::from_ne_bytes(bytes(data, HEAD + priority)?);
            (thread, u32::try_from(level).unwrap_or(0).min(99), switch::BOOST)
        }
    };
    let thread = u32::from_ne_bytes(bytes(data, HEAD + thread)?);
    own.binary_search(&thread).ok()?;
    let rest = u64::from(thread) | u64::from(value) << switch::CPU_SHIFT | u64::from(kind) << switch::KIND_SHIFT;
    Some([number(data, 8)?, rest])
}
