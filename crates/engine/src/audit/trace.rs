//! The kernel's trace of the threads of a run: switches, inherited priorities, and wake-ups.

use crate::rounds::Rounds;
use lockwright_sys::sched::{self, Tid};
use lockwright_sys::tracepoint::{self, Tracepoint};
use perf_event::events::Tracepoint as Event;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io;

/// The size of the ring of a CPU in bytes, for each event: room for about 10,000 switches.
const RING: usize = 1 << 20;
/// The CPUs of the machine. Also those that the process may not use are traced: another program can move its threads.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The most events that are kept: 128 MiB.
const EVENTS_MAX: usize = 1 << 22;

/// Types of records, from `linux/perf_event.h`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// The bytes of a sample before the event: `u32 pid, tid; u64 time; u32 cpu, reserved; u32 size`.
const HEAD: usize = 28;

/// The state of a thread in `sched_switch`: it sleeps and may be interrupted. The same number is in every kernel.
const INTERRUPTIBLE: u32 = 1;

/// An event of the kernel, by thread ids and the kernel's priorities: 99 minus the level; ordinary threads are above
/// 99, and SCHED_DEADLINE is below 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Traced {
    /// `sleeps` states that the first thread leaves the CPU until it is woken, and that it may be interrupted: it waits
    /// for a futex or a time, and not for a lock of the kernel.
    Switch {
        from: (u32, i32),
        to: (u32, i32),
        sleeps: bool,
    },
    Boost {
        thread: u32,
        priority: i32,
    },
    WakeUp {
        thread: u32,
        by: u32,
    },
}

/// The fields of an event, by their offsets.
#[derive(Clone, Copy)]
enum Fields {
    Switch([usize; 5]),
    Boost([usize; 2]),
    WakeUp(usize),
}

/// What the kernel traced of the threads of a run: the time in nanoseconds of the monotonic clock, the Linux number of
/// the CPU, and the event.
pub(crate) struct Trace {
    pub(super) events: Vec<(u64, usize, Traced)>,
    pub(super) lost: u64,
}

/// Traces until it is stopped or dropped.
pub(crate) struct Tracer(Rounds<Trace>);

impl Tracer {
    /// Starts to trace these threads on all CPUs. Returns why not, if the kernel does not permit it.
    pub(crate) fn start(tasks: &[Tid]) -> Result<Self, String> {
        if !crate::occupancy::is_first_namespace() {
            return Err("the kernel traces the thread ids of the initial PID namespace, and this is another one".into());
        }
        // The kernel's number of the first one; kernels without time namespaces have no such file.
        if std::fs::read_link("/proc/self/ns/time").is_ok_and(|link| link.as_os_str() != "time:[4026531834]") {
            return Err("the kernel traces times of the initial time namespace, and this is another one".into());
        }
        let cpus = std::fs::read_to_string(ONLINE).ok().and_then(|text| sched::parse_cpus(&text));
        let cpus = cpus.ok_or_else(|| format!("{ONLINE} has no list of CPUs"))?;
        let mut own: Vec<u32> = tasks.iter().map(|task| task.0).collect();
        own.sort_unstable();
        let mut rings = Vec::new();
        for name in ["sched_switch", "sched_pi_setprio", "sched_waking"] {
            let tracepoint = Tracepoint::of_scheduler(name).ok_or_else(|| {
                format!("cannot read the event {name} of tracefs: it needs root and `mount -t tracefs none /sys/kernel/tracing`")
            })?;
            let fields = fields(name, &tracepoint).ok_or_else(|| format!("the event {name} has unknown fields"))?;
            for &cpu in &cpus {
                let ring = ring_of(cpu, tracepoint.id(), &condition(fields, &own));
                let ring = ring.map_err(|error| format!("cannot trace CPU {cpu} (perf event: {error})"))?;
                rings.push((fields, ring));
            }
        }
        let round = move |trace: &mut Trace, _| {
            rings.iter_mut().for_each(|(fields, ring)| trace.take(*fields, ring, &own));
        };
        let rounds = Rounds::start("lockwright-tracer", Trace { events: Vec::new(), lost: 0 }, round);
        rounds.map(Self).map_err(|error| format!("cannot start a thread: {error}"))
    }

    /// Stops, and returns the trace.
    ///
    /// BOUND: one last read of the rings.
    pub(crate) fn stop(self) -> Trace {
        let mut trace = self.0.stop().unwrap_or(Trace { events: Vec::new(), lost: 1 });
        trace.events.sort_by_key(|event| event.0);
        trace
    }
}

impl Trace {
    /// Returns the threads that began or ceased to execute.
    pub(super) fn switched(&self) -> HashSet<u32> {
        let of = |event: &Traced| match *event {
            Traced::Switch { from, to, .. } => Some([from.0, to.0]),
            Traced::Boost { .. } | Traced::WakeUp { .. } => None,
        };
        self.events.iter().filter_map(|(_, _, event)| of(event)).flatten().collect()
    }

    /// Removes the records from a ring, and keeps those of the own threads.
    ///
    /// BOUND: the records in the ring, plus those that arrive meanwhile.
    fn take(&mut self, fields: Fields, ring: &mut Sampler, own: &[u32]) {
        let mut read = 0;
        while let Some(record) = ring.next_record() {
            read += record.len();
            let data = record.to_contiguous();
            match record.ty() {
                LOST => self.lost += 1,
                SAMPLE => match parse(&data, fields) {
                    Some(event) if !concerns(&event.2, own) => {}
                    Some(event) if self.events.len() < EVENTS_MAX => self.events.push(event),
                    _ => self.lost += 1,
                },
                _ => {}
            }
        }
        // The kernel reports lost records with the next one only, and there may be none.
        self.lost += u64::from(read > RING - RING / 8);
    }
}

fn concerns(event: &Traced, own: &[u32]) -> bool {
    let is_own = |thread: &u32| own.binary_search(thread).is_ok();
    match event {
        Traced::Switch { from, to, .. } => is_own(&from.0) || is_own(&to.0),
        Traced::Boost { thread, .. } | Traced::WakeUp { thread, .. } => is_own(thread),
    }
}

fn fields(name: &str, tracepoint: &Tracepoint) -> Option<Fields> {
    let at = |field: &str| tracepoint.offset(field);
    Some(match name {
        "sched_switch" => {
            Fields::Switch([at("prev_pid")?, at("prev_prio")?, at("next_pid")?, at("next_prio")?, at("prev_state")?])
        }
        "sched_pi_setprio" => Fields::Boost([at("pid")?, at("newprio")?]),
        _ => Fields::WakeUp(at("pid")?),
    })
}

/// The condition for the kernel's filter. It admits the threads between the first and the last of these in order, so it
/// has few terms: a run starts its threads one after another. The numbers of threads may begin anew in between, and it
/// then admits most threads. Without a filter, other programs could fill the rings.
fn condition(fields: Fields, own: &[u32]) -> CString {
    let (first, last) = (own.first().copied().unwrap_or(0), own.last().copied().unwrap_or(0));
    let is_own = |field: &str| format!("({field}>={first}&&{field}<={last})");
    let condition = match fields {
        Fields::Switch(_) => [is_own("prev_pid"), is_own("next_pid")].join("||"),
        Fields::Boost(_) | Fields::WakeUp(_) => is_own("pid"),
    };
    CString::new(condition).expect("digits and names have no NUL")
}

/// A ring is filtered before it records anything.
fn ring_of(cpu: usize, id: u64, condition: &CStr) -> io::Result<Sampler> {
    let mut builder = Builder::new(Event::with_id(id));
    builder.any_pid().one_cpu(cpu).sample_period(1).exclude_kernel(false).exclude_hv(false);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::RAW);
    builder.enabled(false).clockid(Clock::MONOTONIC);
    let mut event = builder.build()?;
    tracepoint::set_filter(&event, condition).map_err(io::Error::other)?;
    event.enable()?;
    event.sampled(RING)
}

fn word(data: &[u8], at: usize) -> Option<[u8; 4]> {
    data.get(at..at.checked_add(4)?)?.try_into().ok()
}

fn parse(data: &[u8], fields: Fields) -> Option<(u64, usize, Traced)> {
    let at_ns = u64::from_ne_bytes(data.get(8..16)?.try_into().ok()?);
    let cpu = u32::from_ne_bytes(word(data, 16)?) as usize;
    let thread = |offset: usize| Some(u32::from_ne_bytes(word(data, HEAD + offset)?));
    let priority = |offset: usize| Some(i32::from_ne_bytes(word(data, HEAD + offset)?));
    let event = match fields {
        Fields::Switch([from, had, to, has, state]) => Traced::Switch {
            from: (thread(from)?, priority(had)?),
            to: (thread(to)?, priority(has)?),
            sleeps: thread(state)? == INTERRUPTIBLE,
        },
        Fields::Boost([one, new]) => Traced::Boost { thread: thread(one)?, priority: priority(new)? },
        Fields::WakeUp(one) => Traced::WakeUp { thread: thread(one)?, by: u32::from_ne_bytes(word(data, 4)?) },
    };
    Some((at_ns, cpu, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_parsed_and_short_ones_are_not() {
        let mut data = vec![0; HEAD + 20];
        (data[4], data[8], data[16]) = (7, 9, 1);
        for (place, value) in [(0, 21), (4, 60), (8, 22), (12, 120)] {
            data[HEAD + place] = value;
        }
        let switch = Fields::Switch([0, 4, 8, 12, 16]);
        for (state, sleeps) in [(0, false), (1, true), (2, false)] {
            data[HEAD + 16] = state;
            assert_eq!(parse(&data, switch), Some((9, 1, Traced::Switch { from: (21, 60), to: (22, 120), sleeps })));
        }
        assert_eq!(parse(&data, Fields::Boost([0, 4])), Some((9, 1, Traced::Boost { thread: 21, priority: 60 })));
        assert_eq!(parse(&data, Fields::WakeUp(8)), Some((9, 1, Traced::WakeUp { thread: 22, by: 7 })));
        assert_eq!(parse(&data[..HEAD + 19], switch), None);
        let switched = Traced::Switch { from: (21, 60), to: (22, 120), sleeps: true };
        let events = vec![(9, 1, switched), (9, 1, Traced::WakeUp { thread: 23, by: 7 })];
        assert_eq!(Trace { events, lost: 0 }.switched(), HashSet::from([21, 22]));
        let one = c"(prev_pid>=21&&prev_pid<=21)||(next_pid>=21&&next_pid<=21)";
        assert_eq!(condition(switch, &[21]).as_c_str(), one);
        assert_eq!(condition(Fields::WakeUp(8), &[21, 24, 27]).as_c_str(), c"(pid>=21&&pid<=27)");
        assert!(concerns(&Traced::Switch { from: (21, 0), to: (22, 0), sleeps: false }, &[22]));
        assert!(!concerns(&Traced::WakeUp { thread: 22, by: 21 }, &[21]));
    }
}
