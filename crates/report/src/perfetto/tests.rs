//! Traces, decoded and compared with the records.

use super::proto::{Data, EventType, Trace, TrackDescriptor};
use super::*;
use lockwright_model::{CpuId, Duration, Priority, Resource, Step, Task};
use std::collections::BTreeMap;

const URGENT: TaskId = TaskId(0);
const LOW: TaskId = TaskId(1);
const BUS: ResourceId = ResourceId(0);

fn system() -> System {
    let task = |name: &str, priority: u32| Task {
        name: name.into(),
        cpu: CpuId(0),
        priority: Priority::base(priority),
        period: Duration::from_ns(100),
        deadline: Duration::from_ns(20),
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: Duration::from_ns(10),
        body: vec![Step::Lock(BUS), Step::Run(Duration::from_ns(10)), Step::Unlock(BUS)],
    };
    let bus = Resource::new("bus");
    System::new("two".into(), 2, None, vec![bus], vec![task("urgent", 2), task("low", 1)]).expect("is valid")
}

fn at(ns: u64, task: TaskId, event: Event) -> Record {
    Record { at: Instant::from_ns(ns), task, event }
}

/// The low task holds the bus, the urgent one waits for it and is late.
fn records() -> Vec<Record> {
    vec![
        at(0, LOW, Event::Arrive),
        at(0, LOW, Event::Run),
        at(0, LOW, Event::Request(BUS)),
        at(0, LOW, Event::Acquire(BUS)),
        at(5, URGENT, Event::Arrive),
        at(5, LOW, Event::Stop),
        at(5, URGENT, Event::Run),
        at(6, URGENT, Event::Request(BUS)),
        at(6, LOW, Event::Priority(Priority::base(2))),
        at(6, URGENT, Event::Stop),
        at(6, LOW, Event::Run),
        at(20, LOW, Event::Release(BUS)),
        at(20, URGENT, Event::Acquire(BUS)),
        at(20, LOW, Event::Stop),
        at(20, URGENT, Event::Run),
        at(30, URGENT, Event::Release(BUS)),
        at(30, URGENT, Event::Finish),
        at(30, URGENT, Event::Stop),
    ]
}

/// A track as a viewer would show it.
#[derive(Default, Debug, PartialEq)]
struct Shown {
    /// Begin, end, name.
    slices: Vec<(u64, u64, String)>,
    instants: Vec<(u64, String)>,
}

/// Decodes as a viewer does. Refuses what a viewer would show wrongly.
fn view(bytes: &[u8]) -> Result<BTreeMap<String, Shown>, String> {
    let trace = Trace::decode(bytes).map_err(|error| error.to_string())?;
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut shown: BTreeMap<String, Shown> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut last = 0;
    for (index, packet) in trace.packet.iter().enumerate() {
        if packet.trusted_packet_sequence_id != Some(1) {
            return Err("a packet without its writer".into());
        }
        if (index == 0) != (packet.sequence_flags == Some(1)) {
            return Err("the first packet, and it alone, clears the state".into());
        }
        match packet.data.as_ref().ok_or("an empty packet")? {
            Data::Track(TrackDescriptor { uuid: Some(uuid), name: Some(name), parent_uuid, .. }) => {
                let path = match parent_uuid {
                    Some(parent) => format!("{}/{name}", names.get(parent).ok_or("an unknown parent")?),
                    None => name.clone(),
                };
                shown.insert(path.clone(), Shown::default());
                if names.insert(*uuid, path).is_some() {
                    return Err("two tracks of one number".into());
                }
            }
            Data::Track(_) => return Err("a track without number or name".into()),
            Data::Event(event) => {
                let now = packet.timestamp.ok_or("an event without time")?;
                if now < last {
                    return Err(format!("time goes back from {last} to {now}"));
                }
                last = now;
                let track = event.track_uuid.ok_or("an event without track")?;
                let path = names.get(&track).ok_or("an event on an unknown track")?;
                let shown = shown.entry(path.clone()).or_default();
                let open = open.entry(track).or_default();
                match event.r#type() {
                    EventType::SliceBegin => open.push((now, event.name.clone().ok_or("a slice without name")?)),
                    EventType::SliceEnd => {
                        let (begin, name) = open.pop().ok_or(format!("an end without begin on {path}"))?;
                        shown.slices.push((begin, now, name));
                    }
                    EventType::Instant => shown.instants.push((now, event.name.clone().unwrap_or_default())),
                    EventType::Unspecified => return Err("an event without type".into()),
                }
            }
        }
    }
    if open.values().any(|open| !open.is_empty()) {
        return Err("a slice that never ends".into());
    }
    Ok(shown)
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&Scene::of(&system(), "two"), records, &mut bytes).expect("memory takes all");
    bytes
}

fn slice(begin: u64, end: u64, name: &str) -> (u64, u64, String) {
    (begin, end, name.into())
}

fn instant(at: u64, name: &str) -> (u64, String) {
    (at, name.into())
}

#[test]
fn a_trace_shows_the_records() {
    let tracks = view(&written(&records())).expect("a viewer can read it");
    let names: Vec<&str> = tracks.keys().map(String::as_str).collect();
    assert_eq!(names, ["two", "two/CPU 0", "two/CPU 1", "two/low", "two/low/locks", "two/urgent", "two/urgent/locks"]);
    assert_eq!(
        tracks["two/CPU 0"].slices,
        [slice(0, 5, "low"), slice(5, 6, "urgent"), slice(6, 20, "low"), slice(20, 30, "urgent")]
    );
    assert_eq!(tracks["two/CPU 1"], Shown::default());
    assert_eq!(tracks["two/low"].slices, [slice(0, 5, "running"), slice(6, 20, "running")]);
    assert_eq!(tracks["two/low/locks"].slices, [slice(0, 20, "holding bus")], "no wait where the grant is at once");
    assert_eq!(tracks["two/low"].instants[..2], [instant(0, "arrival"), instant(6, "priority 2")]);
    assert_eq!(tracks["two/urgent"].slices, [slice(5, 6, "running"), slice(20, 30, "running")]);
    assert_eq!(tracks["two/urgent/locks"].slices, [slice(6, 20, "waiting for bus"), slice(20, 30, "holding bus")]);
    assert_eq!(
        tracks["two/urgent"].instants,
        [instant(5, "arrival"), instant(25, "deadline missed"), instant(30, "finish")]
    );
}

#[test]
fn unfinished_jobs_can_miss_their_deadlines() {
    let tracks = view(&written(&records())).expect("a viewer can read it");
    assert_eq!(
        tracks["two/low"].instants[2..],
        [instant(20, "deadline missed")],
        "arrived at 0, due at 20, seen until 30"
    );
}

/// A section elsewhere: by a simulator, which stops a task before it sends it, and by a thread, which executes on.
#[test]
fn slices_follow_a_task_to_another_cpu() {
    let away = |stops: bool| {
        let mut records = vec![
            at(0, LOW, Event::Run),
            at(2, LOW, Event::Stop),
            at(2, LOW, Event::Migrate(CpuId(1))),
            at(2, LOW, Event::Run),
            at(3, URGENT, Event::Run),
            at(6, URGENT, Event::Stop),
            at(7, LOW, Event::Stop),
            at(7, LOW, Event::Migrate(CpuId(0))),
            at(7, LOW, Event::Run),
            at(9, LOW, Event::Stop),
        ];
        let keeps = |record: &Record| {
            stops || ![2, 7].contains(&record.at.as_ns()) || matches!(record.event, Event::Migrate(_))
        };
        records.retain(keeps);
        view(&written(&records)).expect("a viewer can read it")
    };
    for tracks in [away(true), away(false)] {
        assert_eq!(tracks["two/CPU 0"].slices, [slice(0, 2, "low"), slice(3, 6, "urgent"), slice(7, 9, "low")]);
        assert_eq!(tracks["two/CPU 1"].slices, [slice(2, 7, "low")]);
        assert_eq!(tracks["two/low"].slices, [slice(0, 2, "running"), slice(2, 7, "running"), slice(7, 9, "running")]);
        assert_eq!(tracks["two/low"].instants, [instant(2, "on CPU 1"), instant(7, "on CPU 0")]);
    }
}

#[test]
fn malformed_traces_are_refused() {
    let good = written(&records());
    let mut packets = Trace::decode(good.as_slice()).expect("can be decoded").packet;
    let refused = |packets: &[TracePacket]| view(&Trace { packet: packets.to_vec() }.encode_to_vec()).is_err();
    assert!(!refused(&packets), "a correct trace is accepted");
    assert!(refused(&packets[1..]), "without the first packet");
    assert!(refused(&packets[..packets.len() - 1]), "without the last end");
    let last = packets.len() - 1;
    packets.swap(last, last - 4);
    assert!(refused(&packets), "out of order");
    assert!(view(&good[..good.len() - 1]).is_err(), "cut short");
}

/// Records of real threads may be lost or overlap; whatever comes, a viewer can read it.
#[test]
fn any_records_give_a_readable_trace() {
    let mut state = 7_u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    for _ in 0..2000 {
        let length = next(40);
        let events = [
            Event::Arrive,
            Event::Run,
            Event::Stop,
            Event::Request(BUS),
            Event::Acquire(BUS),
            Event::Release(BUS),
            Event::Priority(Priority::base(1).boosted()),
            Event::Migrate(CpuId(0)),
            Event::Migrate(CpuId(1)),
            Event::Migrate(CpuId(7)),
            Event::Finish,
        ];
        let any = |next: &mut dyn FnMut(u64) -> u64| {
            at(next(50), TaskId(next(2) as u16), events[next(events.len() as u64) as usize])
        };
        let records: Vec<Record> = (0..length).map(|_| any(&mut next)).collect();
        if let Err(fault) = view(&written(&records)) {
            panic!("{fault}: {records:?}");
        }
    }
}
